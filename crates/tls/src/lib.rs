//! TLS towards servers of others: whom to trust, and what went wrong in words.
//!
//! One place for all who connect (servers behind `https`, Redis, PostgreSQL), so that `SSL_CERT_FILE` means the same to
//! all of them, and one implementation: rustls with ring. With the features `postgres` and `redis`, connections to these
//! servers as their URLs ask for them.

mod check;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::client::TlsStream;

use crate::check::{Check, Checks};

/// Why there is no secure connection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    #[error("the authorities in {} cannot be read: {because}", path.display())]
    Authorities { path: PathBuf, because: String },
    #[error(
        "the certificate of {host} is by nobody who is trusted; SSL_CERT_FILE names a file of more authorities"
    )]
    Untrusted { host: String },
    #[error("the certificate of {host} is not for this name{for_whom}")]
    OtherName { host: String, for_whom: String },
    #[error("{host} does not speak TLS here")]
    NotSpoken { host: String },
    #[error("no secure connection to {host}: {because}")]
    Handshake { host: String, because: String },
    /// What a URL asks for cannot be done.
    #[error("{0}")]
    Invalid(String),
}

/// Whose certificates are trusted.
#[derive(Debug)]
struct Authorities {
    roots: RootCertStore,
    /// Those that somebody has named. A server may also present one of these itself, as self-signed ones do.
    named: Vec<CertificateDer<'static>>,
}

impl Authorities {
    /// The well-known ones, and those in the file that `SSL_CERT_FILE` names, as other programs have it.
    fn usual() -> Result<Self, TlsError> {
        let mut found = Self::none();
        let known = webpki_roots::TLS_SERVER_ROOTS.iter().cloned();
        found.roots.extend(known);
        if let Some(path) = std::env::var_os("SSL_CERT_FILE") {
            found.add(Path::new(&path))?;
        }
        Ok(found)
    }

    fn none() -> Self {
        Self {
            roots: RootCertStore::empty(),
            named: Vec::new(),
        }
    }

    fn add(&mut self, path: &Path) -> Result<(), TlsError> {
        let failed = |because: String| TlsError::Authorities {
            path: path.to_owned(),
            because,
        };
        let found = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| failed(error.to_string()))?;
        if found.is_empty() {
            return Err(failed("there is no certificate in it".into()));
        }
        self.roots.add_parsable_certificates(found.clone());
        self.named.extend(found);
        Ok(())
    }
}

/// Trusts the usual authorities, and checks the server's name.
///
/// # Errors
///
/// If the file that `SSL_CERT_FILE` names cannot be read.
pub fn client() -> Result<ClientConfig, TlsError> {
    config(Authorities::usual()?, Checks::Name)
}

fn config(authorities: Authorities, checks: Checks) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let check: Arc<dyn ServerCertVerifier> = Arc::new(Check::new(&provider, authorities, checks));
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Invalid(error.to_string()))?;
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(check)
        .with_no_client_auth())
}

/// Makes a connection a secure one.
///
/// # Errors
///
/// If the server is not who it should be, or does not speak TLS.
pub async fn connect<S>(
    config: &Arc<ClientConfig>,
    host: &str,
    stream: S,
) -> Result<TlsStream<S>, TlsError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // As URLs have addresses of IPv6.
    let host = host.trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        TlsError::Invalid(format!("no certificate can be for a server called {host}"))
    })?;
    tokio_rustls::TlsConnector::from(Arc::clone(config))
        .connect(name, stream)
        .await
        .map_err(|error| told(host, &error))
}

/// The library's words are for those who know TLS.
fn told(host: &str, error: &std::io::Error) -> TlsError {
    use rustls::Error as Tls;
    let host = host.to_owned();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        // A bad signature: there is an authority of this name, and it is another one.
        Some(Tls::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => TlsError::Untrusted { host },
        Some(Tls::InvalidCertificate(CertificateError::NotValidForName)) => TlsError::OtherName {
            host,
            for_whom: String::new(),
        },
        Some(Tls::InvalidCertificate(CertificateError::NotValidForNameContext {
            presented,
            ..
        })) => TlsError::OtherName {
            host,
            for_whom: format!(", but for {}", presented.join(", ")),
        },
        Some(Tls::InvalidMessage(_)) => TlsError::NotSpoken { host },
        Some(other) => TlsError::Handshake {
            host,
            because: other.to_string(),
        },
        None if error.kind() == std::io::ErrorKind::UnexpectedEof => TlsError::Handshake {
            host,
            because: "it ended the connection; does it speak TLS here?".into(),
        },
        None => TlsError::Handshake {
            host,
            because: error.to_string(),
        },
    }
}
