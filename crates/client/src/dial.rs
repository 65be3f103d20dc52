//! Making a connection: the socket, and the handshake.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::rand::{GetRandomFlags, getrandom};
use tupelo_protocol::{FRAME_BYTES_MAX, Fault, Frames, HANDSHAKE_BYTES_MAX, Hello, Reply, VERSION};
use tupelo_protocol::{Welcome, code};
use tupelo_shm::clock;

use crate::connection::Connection;
use crate::socket;

/// How long a server may take to say that it is one.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to the server at the Unix socket `path`.
///
/// # Errors
///
/// A [`Fault`] with what was tried.
pub(crate) fn unix(path: &Path) -> Result<Connection, Fault> {
    let address = format!("unix://{}", path.display());
    let socket = UnixStream::connect(path).map_err(|error| unreachable(&address, &error))?;
    let client = random();
    let frames = shake_hands(&socket, client).map_err(|failed| match failed {
        Failed::Refused(fault) => fault,
        Failed::System(error) => no_server(&address, &error),
    })?;
    Ok(Connection::new(socket, &address, client, frames))
}

/// Why a handshake failed.
enum Failed {
    /// The other side said so, or what it said makes no sense.
    Refused(Fault),
    System(io::Error),
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Says who this is, and reads who the other side is. Returns what came behind that.
fn shake_hands(socket: &UnixStream, client: u64) -> Result<Frames, Failed> {
    let mut hello = Vec::new();
    Hello { version_min: VERSION, version_max: VERSION, client }.write(&mut hello)?;
    // Shorter than what the system keeps for a new connection.
    if socket::write(socket, &hello)? < hello.len() {
        return Err(io::Error::from(io::ErrorKind::WriteZero).into());
    }
    let deadline = Some(Instant::now() + HANDSHAKE_TIMEOUT);
    let mut frames = Frames::new(HANDSHAKE_BYTES_MAX);
    let mut buffer = [0; HANDSHAKE_BYTES_MAX];
    loop {
        if let Some(frame) = frames.next_frame()? {
            if let Ok(Reply::Refused { fault, .. }) = Reply::read(frame) {
                return Err(fault.into());
            }
            Welcome::read(frame)?;
            frames.set_limit(FRAME_BYTES_MAX);
            return Ok(frames);
        }
        let may_read = socket::wait(socket, deadline, false)?;
        match socket::read(socket, &mut buffer)? {
            Some(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Some(bytes) => frames.add(&buffer[..bytes]),
            None if may_read || deadline.is_some_and(|end| Instant::now() < end) => {}
            None => return Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        }
    }
}

/// A number that nobody else has.
fn random() -> u64 {
    let mut bytes = [0; 8];
    // So few bytes come whole, once the system has any. Else: who this is, and when.
    if getrandom(&mut bytes, GetRandomFlags::empty()).is_err() {
        let now = clock::monotonic_ns();
        bytes = (now ^ u64::from(std::process::id()).rotate_right(24)).to_be_bytes();
    }
    u64::from_be_bytes(bytes) >> 1
}

/// There is no way to the server.
fn unreachable(address: &str, error: &io::Error) -> Fault {
    let (problem, hint) = match error.kind() {
        io::ErrorKind::NotFound => ("there is no such socket", START),
        io::ErrorKind::ConnectionRefused => ("nobody listens there any more", START),
        io::ErrorKind::PermissionDenied => {
            let hint = "the socket belongs to another user: run as that one, or have the server make it elsewhere";
            ("this user may not use it", hint)
        }
        _ => ("the system refused", START),
    };
    let message = format!("no connection to a server at {address}: {problem} ({error})");
    Fault::new(code::CONNECTION_LOST, message, Some(hint))
}

const START: &str = "start one with `tupelo serve --socket PATH`, and give the same path";

/// Somebody is there who does not speak the protocol.
fn no_server(address: &str, error: &io::Error) -> Fault {
    let message =
        format!("what listens at {address} did not answer as a tupelo server does ({error})");
    Fault::new(
        code::CONNECTION_LOST,
        message,
        Some("is it another program's socket, or a server that is about to end?"),
    )
}
