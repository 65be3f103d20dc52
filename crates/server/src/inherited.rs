//! Sockets at which somebody else listens for the server, until it serves: systemd's socket activation.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use rustix::net::AddressFamily;
use rustix::net::sockopt::{socket_acceptconn, socket_domain};
use tupelo_protocol::{Endpoint, Host};

use crate::ServeError;

const HINT: &str =
    "in the .socket unit, ListenStream= names a port or the path of a socket, and Accept= is no";

/// A socket that the server was given by whoever has started it.
#[derive(Clone, Debug)]
pub struct Inherited {
    socket: Arc<OwnedFd>,
    /// Where it listens.
    pub(crate) endpoint: Endpoint,
}

impl PartialEq for Inherited {
    fn eq(&self, other: &Self) -> bool {
        self.socket.as_raw_fd() == other.socket.as_raw_fd()
    }
}

impl Eq for Inherited {}

impl Inherited {
    /// A socket by its name (`FileDescriptorName=`): at a port, `tls` and `http` say what is spoken there.
    ///
    /// # Errors
    ///
    /// It is none at which anybody listens.
    pub fn new(socket: OwnedFd, name: &str) -> Result<Self, ServeError> {
        let endpoint = endpoint(&socket, name).map_err(|error| ServeError::System {
            problem: format!("the socket {name:?} that the server was given can not be used"),
            hint: HINT,
            error,
        })?;
        Ok(Self { socket: Arc::new(socket), endpoint })
    }

    /// The socket, once more.
    pub(crate) fn socket(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }
}

fn endpoint(socket: &OwnedFd, name: &str) -> io::Result<Endpoint> {
    let other = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    if !socket_acceptconn(socket.as_fd())? {
        return Err(other("nobody listens there"));
    }
    if socket_domain(socket.as_fd())? == AddressFamily::UNIX {
        let address = UnixListener::from(socket.try_clone()?).local_addr()?;
        let path = address.as_pathname().ok_or_else(|| other("it has no path"))?;
        return Ok(Endpoint::Unix(path.to_owned()));
    }
    let address = std::net::TcpListener::from(socket.try_clone()?).local_addr()?;
    let host = host(address);
    Ok(match name {
        "tls" => Endpoint::Tls(host),
        "http" => Endpoint::Http(host),
        _ => Endpoint::Tcp(host),
    })
}

fn host(address: SocketAddr) -> Host {
    Host { name: address.ip().to_string(), port: address.port() }
}
