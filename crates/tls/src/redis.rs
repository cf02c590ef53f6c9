//! `redis://…` and `rediss://…`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisError,
};
use rustls::ClientConfig;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::TlsError;

/// Where a Redis server is, and how it is spoken to.
#[derive(Clone)]
pub struct Address {
    info: ConnectionInfo,
    tls: Option<Arc<ClientConfig>>,
}

/// Without the password.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address")
            .field("at", &self.info.addr())
            .field("tls", &self.tls.is_some())
            .finish()
    }
}

/// Why there is no connection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("no connection: {0}")]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Redis(#[from] RedisError),
    #[error("no connection within {0:?}")]
    Late(Duration),
    /// A server without TLS may wait for the end of what it takes for a line.
    #[error("no connection within {0:?}; does it speak TLS here?")]
    Silent(Duration),
}

impl Address {
    /// # Errors
    ///
    /// [`TlsError::Invalid`] for a URL that is none, which the text does not repeat: there may be a password in it.
    pub fn parse(url: &str) -> Result<Self, TlsError> {
        // The client is built without TLS of its own, and does not know the scheme.
        let secure = url.strip_prefix("rediss:");
        let plain = secure.map(|rest| format!("redis:{rest}"));
        let info = plain
            .as_deref()
            .unwrap_or(url)
            .into_connection_info()
            .map_err(|_| TlsError::Invalid("not a Redis URL that can be used here".into()))?;
        let tls = match secure {
            Some(_) => Some(Arc::new(crate::client()?)),
            None => None,
        };
        Ok(Self { info, tls })
    }

    /// A connection. An answer that takes longer than `within` is a failure, now and later.
    ///
    /// # Errors
    ///
    /// If there is nobody, or somebody else.
    pub async fn connect(&self, within: Duration) -> Result<MultiplexedConnection, ConnectError> {
        timeout(within, self.open(within))
            .await
            .unwrap_or_else(|_| {
                Err(match self.tls {
                    Some(_) => ConnectError::Silent(within),
                    None => ConnectError::Late(within),
                })
            })
    }

    async fn open(&self, within: Duration) -> Result<MultiplexedConnection, ConnectError> {
        match self.info.addr() {
            ConnectionAddr::Unix(path) => {
                let stream = UnixStream::connect(path).await?;
                self.speak(stream, within).await
            }
            ConnectionAddr::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                match &self.tls {
                    None => self.speak(stream, within).await,
                    Some(tls) => {
                        let stream = crate::connect(tls, host, stream).await?;
                        self.speak(stream, within).await
                    }
                }
            }
            other => Err(TlsError::Invalid(format!("{other} cannot be reached from here")).into()),
        }
    }

    async fn speak<S>(
        &self,
        stream: S,
        within: Duration,
    ) -> Result<MultiplexedConnection, ConnectError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(within));
        let settings = self.info.redis_settings();
        let made = MultiplexedConnection::new_with_config(settings, stream, config).await;
        let (connection, driver) = made?;
        tokio::spawn(driver);
        Ok(connection)
    }
}
