//! Making a connection: the socket, and the handshake.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::rand::{GetRandomFlags, getrandom};
use tupelo_protocol::{Endpoint, FRAME_BYTES_MAX, Fault, Frames, HANDSHAKE_BYTES_MAX, Hello};
use tupelo_protocol::{Reply, SessionState, SessionTerms, Tls, VERSION, Welcome, code, rustls};
use tupelo_shm::clock;

use crate::server::Server;
use crate::tcp::{self, Unreachable};
use crate::wire::Wire;
use crate::{socket, tls};

/// How long a server may take to say that it is one.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a session outlives a connection that breaks, whatever the time in which another one is made: somebody else may
/// wait for what it has.
const SESSION_LEASE_MAX: Duration = Duration::from_secs(30);

/// What is there once hands are shaken.
pub(crate) struct Greeted {
    socket: OwnedFd,
    tls: Option<Tls>,
    /// What has come since.
    frames: Frames,
    /// The number of this client.
    pub(crate) client: u64,
    /// What the server says of the session, if one was asked for.
    pub(crate) session: Option<SessionState>,
}

impl Greeted {
    pub(crate) fn into_wire(self, address: &str) -> Wire {
        Wire::new(self.socket, self.tls, self.frames, address)
    }
}

/// Shakes hands with `server` over a new socket, as a client that was not there before.
///
/// # Errors
///
/// A [`Fault`] with what was tried.
pub(crate) fn dial(server: &Server) -> Result<Greeted, Fault> {
    dial_as(server, random(), false)
}

/// As [`dial`], as the client that had this number: it goes on with its session, if the server has that still. Otherwise it has
/// another number.
///
/// # Errors
///
/// As [`dial`].
pub(crate) fn dial_again(server: &Server, client: u64) -> Result<Greeted, Fault> {
    let greeted = dial_as(server, client, true)?;
    if greeted.session.is_some_and(|session| session.resumed) {
        return Ok(greeted);
    }
    drop(greeted);
    dial(server)
}

fn dial_as(server: &Server, client: u64, resumes: bool) -> Result<Greeted, Fault> {
    let address = server.endpoint.to_string();
    let (socket, tls) = match &server.endpoint {
        Endpoint::Unix(path) => (unix(path, &address)?, None),
        Endpoint::Tcp(host) => (reach(tcp::connect(host), &address)?, None),
        Endpoint::Tls(host) => {
            let tls = tls::client(host, &server.trust)?;
            (reach(tcp::connect(host), &address)?, Some(tls))
        }
        Endpoint::Http(_) => {
            let hint =
                "connect to tcp://, tls:// or unix:// of the same server; http:// is for curl";
            return Err(Fault::new(
                code::UNSUPPORTED,
                format!("{address} is for HTTP"),
                Some(hint),
            ));
        }
    };
    let lease = server.reconnect.min(SESSION_LEASE_MAX);
    let hello = Hello {
        version_min: VERSION,
        version_max: VERSION,
        client,
        token: server.token.clone(),
        session: (!lease.is_zero()).then_some(SessionTerms { lease, resumes }),
    };
    let frames = Frames::new(HANDSHAKE_BYTES_MAX);
    let greeted = Greeted { socket, tls, frames, client, session: None };
    shake_hands(greeted, &hello).map_err(|failed| match failed {
        Failed::Refused(fault) => fault,
        Failed::Tls(error) => tls::failed(&address, &error),
        Failed::System(error) => no_server(&address, &error),
    })
}

/// Why a handshake failed.
enum Failed {
    /// The other side said so, or what it said makes no sense.
    Refused(Fault),
    Tls(rustls::Error),
    System(io::Error),
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
    }
}

impl From<rustls::Error> for Failed {
    fn from(error: rustls::Error) -> Self {
        Self::Tls(error)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Says who this is, and reads who the other side is.
fn shake_hands(mut greeted: Greeted, said: &Hello) -> Result<Greeted, Failed> {
    let mut hello = Vec::new();
    said.write(&mut hello)?;
    if let Some(tls) = &mut greeted.tls {
        hello = tls.seal(&hello)?;
    }
    write_short(&greeted.socket, &hello)?;
    let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
    loop {
        if let Some(frame) = greeted.frames.next_frame().map_err(malformed)? {
            if let Ok(Reply::Refused { fault, .. }) = Reply::read(frame) {
                return Err(fault.into());
            }
            greeted.session = Welcome::read(frame).map_err(malformed)?.session;
            greeted.frames.set_limit(FRAME_BYTES_MAX);
            return Ok(greeted);
        }
        read(&mut greeted, deadline)?;
    }
}

/// What came is no answer of a server.
fn malformed(fault: Fault) -> Failed {
    io::Error::new(io::ErrorKind::InvalidData, fault.message).into()
}

/// Reads what comes until `deadline`, and says what TLS has to say to it.
fn read(greeted: &mut Greeted, deadline: Instant) -> Result<(), Failed> {
    let Greeted { socket, tls, frames, .. } = greeted;
    let mut buffer = [0; HANDSHAKE_BYTES_MAX];
    let may_read = socket::wait(socket, Some(deadline), false)?;
    let bytes = match socket::read(socket, &mut buffer)? {
        Some(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        Some(bytes) => bytes,
        None if may_read || Instant::now() < deadline => return Ok(()),
        None => return Err(io::Error::from(io::ErrorKind::TimedOut).into()),
    };
    let Some(tls) = tls else {
        frames.add(&buffer[..bytes]);
        return Ok(());
    };
    let opened = tls.open(&buffer[..bytes], frames);
    // Also why it does not trust the other side.
    write_short(socket, &tls.outgoing())?;
    Ok(opened?)
}

/// Writes what is shorter than what the system keeps for a new connection.
fn write_short(socket: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    let is_whole = bytes.is_empty() || socket::write(socket, bytes)? == bytes.len();
    if is_whole { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// A number that nobody else has.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    // So few bytes come whole, once the system has any. Else: who this is, and when.
    if getrandom(&mut bytes, GetRandomFlags::empty()).is_err() {
        let now = clock::monotonic_ns();
        bytes = (now ^ u64::from(std::process::id()).rotate_right(24)).to_be_bytes();
    }
    u64::from_be_bytes(bytes) >> 1
}

/// Connects to the Unix socket at `path`.
fn unix(path: &Path, address: &str) -> Result<OwnedFd, Fault> {
    let connected = UnixStream::connect(path);
    connected.map(OwnedFd::from).map_err(|error| {
        let (problem, hint) = why_no_socket(&error);
        unreachable(address, problem, &error, hint)
    })
}

/// Why there is no connection to a Unix socket, and what to do.
fn why_no_socket(error: &io::Error) -> (&'static str, &'static str) {
    match error.kind() {
        io::ErrorKind::NotFound => ("there is no such socket", START),
        io::ErrorKind::ConnectionRefused => ("nobody listens there any more", START),
        io::ErrorKind::PermissionDenied => {
            let hint = "the socket belongs to another user: run as that one, or have the server make it elsewhere";
            ("this user may not use it", hint)
        }
        _ => ("the system refused", START),
    }
}

const START: &str = "start one with `tupelo serve --socket PATH`, and give the same path";

/// A connection over TCP, or why there is none.
fn reach(
    connected: Result<std::net::TcpStream, Unreachable>,
    address: &str,
) -> Result<OwnedFd, Fault> {
    connected.map(OwnedFd::from).map_err(|failed| match failed {
        Unreachable::Unknown(error) => {
            let hint = "is the name of the host right? its address in digits needs no name service";
            unreachable(address, "nobody knows this host", &error, hint)
        }
        Unreachable::Refused(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let hint = format!("start one there with `tupelo serve --listen {address}`");
            unreachable(address, "nothing listens there", &error, &hint)
        }
        Unreachable::Refused(error) => {
            let hint = "is the host on, and does a firewall let this port through?";
            unreachable(address, "the host does not answer", &error, hint)
        }
    })
}

/// There is no way to the server.
fn unreachable(address: &str, problem: &str, error: &io::Error, hint: &str) -> Fault {
    let message = format!("no connection to a server at {address}: {problem} ({error})");
    Fault::new(code::CONNECTION_LOST, message, Some(hint))
}

/// Somebody is there who does not speak the protocol.
fn no_server(address: &str, error: &io::Error) -> Fault {
    let message =
        format!("what listens at {address} did not answer as a tupelo server does ({error})");
    Fault::new(
        code::CONNECTION_LOST,
        message,
        Some(
            "is it another program's, a server that is about to end, or one with TLS, as in tls://hub:7668/jobs?",
        ),
    )
}
