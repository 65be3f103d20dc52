//! One connection: bytes in, bytes out. What they mean is the session's.

use std::future::pending;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};
use tupelo_protocol::{
    FRAME_BYTES_MAX, Fault, Frames, HANDSHAKE_BYTES_MAX, Hello, REQUESTS_MAX, Reply, SessionState,
    Welcome,
};

use crate::Shared;
use crate::outbox::settle;
use crate::process::Process;
use crate::rights::Principal;
use crate::session::Session;
use crate::sessions::{Seat, Sessions};
use crate::stream::{Read, Socket, Stream};

/// How long a client may take to say who it is.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client may take to notice that its connection ends, before it ends hard.
const FAREWELL: Duration = Duration::from_secs(1);
/// What the server calls itself.
const PROGRAM: &str = concat!("tupelo ", env!("CARGO_PKG_VERSION"));

/// Serves a client until it goes, or the server ends.
pub(crate) async fn serve(stream: Stream, shared: Rc<Shared>, mut ended: watch::Receiver<()>) {
    let process = match &stream.socket {
        Socket::Unix(stream) => Process::of(stream),
        Socket::Tcp(_) => Process::far(),
    };
    let frames = Frames::new(HANDSHAKE_BYTES_MAX);
    Connection { stream, process, frames, shared }.serve(&mut ended).await;
}

struct Connection {
    stream: Stream,
    process: Process,
    frames: Frames,
    shared: Rc<Shared>,
}

/// Why a connection ends.
enum End {
    /// The client or the server goes.
    Gone,
    /// Nobody knows what has become of the client: the connection was reset, or nothing was subscription.
    Broken { was_reset: bool },
    /// The client has another connection.
    Ousted,
    /// It was given a tuple, and says nothing: it is stopped, perhaps.
    Silent,
    /// What the client has sent makes no sense.
    Fault(Fault),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        let resets = [BrokenPipe, ConnectionAborted, ConnectionReset];
        Self::Broken { was_reset: resets.contains(&error.kind()) }
    }
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Connection {
    async fn serve(mut self, ended: &mut watch::Receiver<()>) {
        let end = match timeout(HANDSHAKE, self.shake_hands()).await {
            Err(_) => End::Fault(Fault::protocol("nobody said hello within 10 s")),
            Ok(Err(end)) => end,
            Ok(Ok((hello, principal))) => {
                let shared = Rc::clone(&self.shared);
                let (session, seat, state) = shared.sessions.begin(&shared, principal, &hello);
                let end = match self.welcome(&hello, state).await {
                    Ok(()) => self.go_on(&session, &seat, ended).await,
                    Err(end) => end,
                };
                self.end_session(&session, &seat, &end).await;
                // What the session has is given back when it is dropped: before the farewell, which may take long.
                end
            }
        };
        if let End::Fault(fault) = end {
            // A client who does not take it has gone.
            let _ = timeout(FAREWELL, self.say_farewell(fault)).await;
        }
    }

    /// Ends the session, unless it outlives this connection.
    async fn end_session(&mut self, session: &Rc<Session>, seat: &Rc<Seat>, end: &End) {
        if seat.is_ousted() {
            // The session is another connection's by now, and what came over this one is from before.
            return;
        }
        let is_far = matches!(self.stream.socket, Socket::Tcp(_));
        match end {
            End::Ousted => {}
            // The process at the other end of a Unix socket has gone, however that shows.
            End::Broken { was_reset } if is_far => {
                self.read_what_came(session);
                Sessions::wait(&self.shared, seat, *was_reset);
            }
            End::Gone | End::Broken { .. } => {
                // Bounded, since nothing more can be written to it.
                let _ = timeout(FAREWELL, self.read_rest(session)).await;
                self.shared.sessions.end(seat);
            }
            End::Fault(_) | End::Silent => self.shared.sessions.end(seat),
        }
    }

    async fn shake_hands(&mut self) -> Result<(Hello, Rc<Principal>), End> {
        let hello = loop {
            if let Some(frame) = self.frames.next_frame()? {
                break Hello::read(frame)?;
            }
            self.read().await?;
        };
        hello.agree(PROGRAM)?;
        let principal = self.principal(hello.token.as_deref()).await?;
        self.frames.set_limit(FRAME_BYTES_MAX);
        Ok((hello, principal))
    }

    async fn welcome(&mut self, hello: &Hello, session: Option<SessionState>) -> Result<(), End> {
        let mut welcome = Vec::new();
        let (frame_bytes_max, requests_max) = (FRAME_BYTES_MAX as u64, REQUESTS_MAX as u64);
        let (version, server) = (hello.agree(PROGRAM)?, PROGRAM.to_owned());
        Welcome { version, server, frame_bytes_max, requests_max, session }.write(&mut welcome)?;
        self.write(welcome).await
    }

    /// Who has connected. On a Unix socket that is this user, who may do everything unless a token says less.
    async fn principal(&self, token: Option<&str>) -> Result<Rc<Principal>, Fault> {
        let tokens = self.shared.tokens.borrow().clone();
        let is_this_user = matches!(self.stream.socket, Socket::Unix(_));
        match tokens {
            Some(tokens) if token.is_some() || !is_this_user => {
                let holder = tokens.holder(token).await;
                holder.inspect_err(|fault| self.shared.audit.note_stranger(fault))
            }
            _ => Ok(Rc::new(Principal::Anybody)),
        }
    }

    async fn go_on(
        &mut self,
        session: &Rc<Session>,
        seat: &Seat,
        ended: &mut watch::Receiver<()>,
    ) -> End {
        session.holds_back.set(true);
        loop {
            if seat.is_ousted() {
                return End::Ousted;
            }
            session.attend();
            let served = self.serve_frames(session);
            if session.serve_those_who_wait() {
                // They have waited longer than this client: what they are told is written first.
                tokio::task::yield_now().await;
                // Meanwhile the client may have come back over another connection, for which the answers are now.
                if seat.is_ousted() {
                    return End::Ousted;
                }
            }
            // Also what was answered before a frame that makes no sense.
            if let Err(end) = self.write_answers(session).await {
                return end;
            }
            if let Err(fault) = served {
                return End::Fault(fault);
            }
            if session.outbox.is_over() {
                return End::Gone;
            }
            let silence = session.held_since().map(|since| since + seat.silence_max());
            let silent = async {
                match silence {
                    Some(silence) => sleep_until(silence).await,
                    None => pending().await,
                }
            };
            let came = tokio::select! {
                biased;
                came = self.read() => came,
                () = seat.ousted() => Err(End::Ousted),
                () = session.outbox.filled.notified() => Ok(()),
                _ = ended.changed() => Err(End::Gone),
                () = silent => Err(End::Silent),
            };
            if let Err(end) = came {
                return end;
            }
        }
    }

    /// Writes the answers of a session. A client is told of nothing that the disk may lose.
    async fn write_answers(&mut self, session: &Session) -> Result<(), End> {
        if session.outbox.begins_to_settle() {
            tokio::task::spawn_local(settle(session.weak()));
        }
        let bytes = session.outbox.take();
        if bytes.is_empty() {
            return Ok(());
        }
        self.write(bytes).await
    }

    /// Does what the frames that have come ask for.
    fn serve_frames(&mut self, session: &Rc<Session>) -> Result<(), Fault> {
        while let Some(frame) = self.frames.next_frame()? {
            session.serve(frame)?;
        }
        Ok(())
    }

    /// Reads what the client has written before its connection ends, as it was told that this arrives: what it has
    /// acknowledged is consumed. Whatever it would write from here on is refused to it by the system.
    async fn read_rest(&mut self, session: &Rc<Session>) -> Result<(), End> {
        rustix::net::shutdown(&self.stream.socket, rustix::net::Shutdown::Read)
            .map_err(io::Error::from)?;
        loop {
            self.stream.socket.readable().await?;
            match self.read_now() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
                Ok(Read::Bytes(0) | Read::Untrusted) => return Ok(()),
                Ok(Read::Bytes(_)) => self.serve_frames(session)?,
            }
        }
    }

    /// Does what has come over a connection that broke.
    fn read_what_came(&mut self, session: &Rc<Session>) {
        while matches!(self.read_now(), Ok(Read::Bytes(1..))) && self.serve_frames(session).is_ok()
        {
        }
    }

    async fn read(&mut self) -> Result<(), End> {
        loop {
            tokio::select! {
                biased;
                readable = self.stream.socket.readable() => readable?,
                // A child of it may have the socket open still.
                () = self.process.death() => return Err(End::Gone),
            }
            match self.read_now() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
                Ok(Read::Bytes(0)) => return Err(End::Gone),
                Ok(read) => {
                    // Of TLS itself; also why this connection ends.
                    let outgoing = self.stream.outgoing();
                    self.write_sealed(&outgoing).await?;
                    return if matches!(read, Read::Untrusted) { Err(End::Gone) } else { Ok(()) };
                }
            }
        }
    }

    fn read_now(&mut self) -> io::Result<Read> {
        let mut buffer = self.shared.buffer.borrow_mut();
        self.stream.try_read(&mut buffer, &mut self.frames)
    }

    async fn write(&mut self, bytes: Vec<u8>) -> Result<(), End> {
        let bytes = self.stream.seal(bytes)?;
        self.write_sealed(&bytes).await
    }

    async fn write_sealed(&mut self, mut bytes: &[u8]) -> Result<(), End> {
        while !bytes.is_empty() {
            match self.stream.socket.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::select! {
                        writable = self.stream.socket.writable() => writable?,
                        () = self.process.death() => return Err(End::Gone),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Says why the connection ends, and reads until the client has seen it: what is not read would end it hard.
    async fn say_farewell(&mut self, fault: Fault) -> Result<(), End> {
        let mut bytes = Vec::new();
        Reply::Refused { id: None, fault }.write(&mut bytes)?;
        self.write(bytes).await?;
        let farewell = self.stream.farewell();
        self.write_sealed(&farewell).await?;
        rustix::net::shutdown(&self.stream.socket, rustix::net::Shutdown::Write)
            .map_err(io::Error::from)?;
        loop {
            self.stream.socket.readable().await?;
            match self.stream.socket.try_read(&mut [0; 4096]) {
                Ok(0) => return Ok(()),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error.into()),
                _ => {}
            }
        }
    }
}
