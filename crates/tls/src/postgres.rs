//! `postgres://…?sslmode=…`.
//!
//! | `sslmode` | |
//! |---|---|
//! | `disable` | no TLS |
//! | `allow`, `prefer` (the default) | TLS if the server has it. Whoever answers is believed |
//! | `require` | TLS. Whoever answers is believed |
//! | `verify-ca` | an authority that is trusted stands for the server, whatever its name |
//! | `verify-full` | and it is the server that the URL names |
//!
//! It is libpq's meaning, also of `sslrootcert=FILE`: these authorities and no others, and with any mode they are asked
//! for. Without it, the two last ones trust the usual authorities, as `sslrootcert=system` says. Certificates of clients
//! (`sslcert`) are not known.

mod binding;
mod options;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::str::FromStr as _;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

use self::options::Options;
use crate::check::Checks;
use crate::{Authorities, TlsError};

/// Reads a URL, or libpq's `key=value` form.
///
/// # Errors
///
/// [`TlsError::Invalid`] for what is neither, which the text does not repeat: there may be a password in it.
pub fn parse(url: &str) -> Result<(Config, Tls), TlsError> {
    let mut options = Options::split(url);
    let mode = options.take("sslmode");
    let root = options.take("sslrootcert");
    for name in ["sslcert", "sslkey", "sslcrl"] {
        if options.take(name).is_some() {
            let text = format!("{name} is not known here: there are no certificates of clients");
            return Err(TlsError::Invalid(text));
        }
    }
    let mut config = Config::from_str(&options.rest())
        .map_err(|_| TlsError::Invalid("not a PostgreSQL URL that can be used here".into()))?;
    let (ssl, checks) = meaning(mode.as_deref(), root.as_deref())?;
    config.ssl_mode(ssl);
    // It leads to this machine, whatever the mode: as libpq has it.
    let is_local = |host: &Host| matches!(host, Host::Unix(_));
    if !config.get_hosts().is_empty() && config.get_hosts().iter().all(is_local) {
        config.ssl_mode(SslMode::Disable);
    }
    let authorities = match root.as_deref() {
        _ if checks == Checks::Nothing => Authorities::none(),
        None | Some("system") => Authorities::usual()?,
        Some(file) => {
            let mut found = Authorities::none();
            found.add(Path::new(file))?;
            found
        }
    };
    let tls = Tls(Arc::new(crate::config(authorities, checks)?));
    Ok((config, tls))
}

fn meaning(mode: Option<&str>, root: Option<&str>) -> Result<(SslMode, Checks), TlsError> {
    let system = root == Some("system");
    let at_least = match root {
        Some(_) => Checks::Authority,
        None => Checks::Nothing,
    };
    match mode {
        Some("verify-full") => Ok((SslMode::Require, Checks::Name)),
        None if system => Ok((SslMode::Require, Checks::Name)),
        // Anybody can have a certificate by a well-known authority.
        Some("allow" | "prefer" | "require" | "verify-ca") if system => Err(TlsError::Invalid(
            "sslrootcert=system says little with a weak sslmode: use verify-full".into(),
        )),
        Some("verify-ca") => Ok((SslMode::Require, Checks::Authority)),
        Some("require") => Ok((SslMode::Require, at_least)),
        None | Some("allow" | "prefer") => Ok((SslMode::Prefer, at_least)),
        Some("disable") => Ok((SslMode::Disable, Checks::Nothing)),
        Some(other) => Err(TlsError::Invalid(format!("there is no sslmode {other:?}"))),
    }
}

/// Makes connections secure, for [`Config::connect`] and for cancelling.
#[derive(Clone, Debug)]
pub struct Tls(Arc<ClientConfig>);

/// [`Tls`] towards one server.
#[derive(Debug)]
pub struct TlsTo {
    config: Arc<ClientConfig>,
    host: String,
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Secure<S>;
    type TlsConnect = TlsTo;
    type Error = TlsError;

    fn make_tls_connect(&mut self, host: &str) -> Result<TlsTo, TlsError> {
        Ok(TlsTo {
            config: Arc::clone(&self.0),
            host: host.to_owned(),
        })
    }
}

impl<S> TlsConnect<S> for TlsTo
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Secure<S>;
    type Error = TlsError;
    type Future = Pin<Box<dyn Future<Output = Result<Secure<S>, TlsError>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let stream = crate::connect(&self.config, &self.host, stream).await?;
            Ok(Secure(stream))
        })
    }
}

/// A secure connection.
#[derive(Debug)]
pub struct Secure<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Secure<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let certificate = self
            .0
            .get_ref()
            .1
            .peer_certificates()
            .and_then(<[_]>::first);
        certificate
            .and_then(|certificate| binding::end_point(certificate))
            .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Secure<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Secure<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<(SslMode, String), String> {
        let (config, tls) = parse(url).map_err(|error| error.to_string())?;
        Ok((config.get_ssl_mode(), format!("{tls:?}")))
    }

    #[test]
    fn modes_mean_what_libpq_says() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../guard/tests/tls/certificate.pem"
        );
        let cases = [
            ("", SslMode::Prefer, "Check(Nothing)"),
            ("sslmode=disable", SslMode::Disable, "Check(Nothing)"),
            ("sslmode=allow", SslMode::Prefer, "Check(Nothing)"),
            ("sslmode=require", SslMode::Require, "Check(Nothing)"),
            ("sslmode=verify-ca", SslMode::Require, "Check(Authority)"),
            ("sslmode=verify-full", SslMode::Require, "Check(Name)"),
            ("sslrootcert=system", SslMode::Require, "Check(Name)"),
            (
                &format!("sslmode=require&sslrootcert={file}"),
                SslMode::Require,
                "Check(Authority)",
            ),
        ];
        for (query, mode, check) in cases {
            let (found, tls) = read(&format!("postgres://u:secret@h/d?{query}")).expect("read");
            assert_eq!(found, mode, "{query}");
            assert!(tls.contains(check), "{query}: {tls}");
        }
        let words = read(&format!(
            "host=h user=u sslmode=verify-full sslrootcert='{file}'"
        ));
        assert_eq!(words.expect("read").0, SslMode::Require);
        let local = read("postgres://u@/d?host=/run&sslmode=require");
        assert_eq!(local.expect("read").0, SslMode::Disable);
    }

    #[test]
    fn what_cannot_be_done_is_said_without_the_url() {
        for (query, said) in [
            ("sslmode=sometimes", "no sslmode \"sometimes\""),
            ("sslmode=require&sslrootcert=system", "use verify-full"),
            ("sslmode=verify-ca&sslrootcert=/nowhere.pem", "/nowhere.pem"),
            ("sslcert=a.pem", "sslcert is not known"),
            ("nonsense=1", "not a PostgreSQL URL"),
        ] {
            let error = read(&format!("postgres://u:secret@h/d?{query}")).expect_err(query);
            assert!(error.contains(said), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
