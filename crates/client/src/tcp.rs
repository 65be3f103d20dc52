//! TCP: making a connection, and noticing that the other host has gone.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;
use tupelo_protocol::Host;

/// How long one address of a host may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection is silent until the system asks the other host whether it is still there.
const IDLE: Duration = Duration::from_secs(10);
/// How long until the system asks again.
const INTERVAL: Duration = Duration::from_secs(5);
/// How often it asks before the connection has ended: after 30 s, as for what was sent and not confirmed.
const PROBES: u32 = 4;
const UNCONFIRMED_MS_MAX: u32 = 30_000;

/// Why there is no connection.
pub(crate) enum Unreachable {
    /// Nobody knows the host.
    Unknown(io::Error),
    /// None of its addresses answers; what the last one said.
    Refused(io::Error),
}

/// Connects to the first address of `host` that answers.
pub(crate) fn connect(host: &Host) -> Result<TcpStream, Unreachable> {
    let addresses =
        (host.name.as_str(), host.port).to_socket_addrs().map_err(Unreachable::Unknown)?;
    let mut refused = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in addresses {
        let connected = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT);
        match connected.and_then(|stream| watch_peer(&stream).map(|()| stream)) {
            Ok(stream) => return Ok(stream),
            Err(error) => refused = error,
        }
    }
    Err(Unreachable::Refused(refused))
}

/// Has the system send what is written at once, and end the connection when the other host has been silent for half a
/// minute: it was cut off, or has lost its power. A process that ends, however it ends, is noticed at once.
///
/// # Errors
///
/// What the system says.
pub fn watch_peer(socket: impl AsFd) -> io::Result<()> {
    let socket = socket.as_fd();
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, IDLE)?;
    sockopt::set_tcp_keepintvl(socket, INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, PROBES)?;
    sockopt::set_tcp_user_timeout(socket, UNCONFIRMED_MS_MAX)?;
    Ok(())
}
