//! The network that the servers of a sandbox have, used from outside.
//!
//! A sandbox without the host's network has a loopback of its own. Nobody outside can reach a
//! server that listens there, and a server cannot reach anybody outside, but for sockets that were
//! made in that network and are held here.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::sandbox::Sandbox;

/// A way into a sandbox's network. What it made stays open when the sandbox is gone, and leads nowhere.
#[derive(Clone)]
pub struct Network {
    own: Option<Arc<Own>>,
}

/// Waiting to be accepted.
const BACKLOG: i32 = 64;

#[cfg(target_os = "linux")]
struct Own {
    init: OwnedFd,
    namespaces: libc::c_int,
}
#[cfg(not(target_os = "linux"))]
struct Own;

impl Sandbox {
    pub fn network(&self) -> io::Result<Network> {
        #[cfg(target_os = "linux")]
        if let Some(namespaces) = &self.namespaces
            && namespaces.kinds & libc::CLONE_NEWNET != 0
        {
            return Ok(Network {
                own: Some(Arc::new(Own {
                    init: namespaces.init.pidfd.try_clone()?,
                    namespaces: namespaces.kinds,
                })),
            });
        }
        Ok(Network { own: None })
    }
}

impl Network {
    /// Whether it is the sandbox's alone, so that all ports in it are free.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// To a server in the sandbox. Blocks for a moment.
    pub fn connect(&self, port: u16) -> io::Result<TcpStream> {
        // Servers that listen on `localhost` may mean either.
        let four = self.connect_to((Ipv4Addr::LOCALHOST, port).into());
        match four {
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => self
                .connect_to((Ipv6Addr::LOCALHOST, port).into())
                .map_err(|_| e),
            other => other,
        }
    }

    /// A place on the loopback where servers in the sandbox can reach this program.
    pub fn listen(&self, port: u16) -> io::Result<TcpListener> {
        let address = (Ipv4Addr::LOCALHOST, port).into();
        match &self.own {
            None => TcpListener::bind(address),
            Some(own) => own.listen(address),
        }
    }

    fn connect_to(&self, address: SocketAddr) -> io::Result<TcpStream> {
        match &self.own {
            None => TcpStream::connect(address),
            Some(own) => own.connect(address),
        }
    }
}

#[cfg(target_os = "linux")]
impl Own {
    fn socket(&self, address: SocketAddr) -> io::Result<OwnedFd> {
        use std::os::fd::AsFd as _;

        let family = match address {
            SocketAddr::V4(_) => libc::AF_INET,
            SocketAddr::V6(_) => libc::AF_INET6,
        };
        crate::linux::sys::socket::make(self.init.as_fd(), self.namespaces, family)
    }

    fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = self.socket(address)?;
        rustix::net::connect(&socket, &address)?;
        Ok(socket.into())
    }

    fn listen(&self, address: SocketAddr) -> io::Result<TcpListener> {
        let socket = self.socket(address)?;
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(socket.into())
    }
}

#[cfg(not(target_os = "linux"))]
impl Own {
    fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(address)
    }

    fn listen(&self, address: SocketAddr) -> io::Result<TcpListener> {
        TcpListener::bind(address)
    }
}
