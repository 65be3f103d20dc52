//! Telling a supervisor that the server serves, as systemd understands it (`Type=notify`).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable in which a supervisor names the socket that it listens at.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Says that the program is ready, and what it does. Without a supervisor nothing happens.
///
/// # Errors
///
/// What the system says: nobody was shown.
pub(crate) fn ready(status: &str) -> io::Result<()> {
    let Some(socket) = std::env::var_os(SOCKET) else { return Ok(()) };
    let message = format!("READY=1\nSTATUS={status}\n");
    UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address(&socket)?).map(drop)
}

/// The address that a name stands for: a path, or with an `@` in front a name that is no file.
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(socket),
    }
}
