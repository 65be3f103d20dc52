//! One socket, with TLS on it or not: bytes out, frames in, and how long nothing has come.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tupelo_protocol::{Fault, Frames, Tls};

use crate::socket;
use crate::tls::failed;

/// What one look at the socket reads at most.
const READ_BYTES: usize = 64 << 10;
/// How long a server may say nothing to somebody who waits, until it is asked whether it is there.
const PING_AFTER: Duration = Duration::from_secs(10);
/// How long it may say nothing until it counts as gone.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);
/// Longest time between two waits that counts as one.
const GAP: Duration = Duration::from_secs(1);

/// A socket behind its handshake.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: OwnedFd,
    tls: Option<Mutex<Tls>>,
    /// What messages call the server.
    address: String,
    /// Locked while a frame is written, so that no two mix.
    writing: Mutex<()>,
    /// Locked by the thread that reads.
    reading: Mutex<Reading>,
    silence: Mutex<Silence>,
}

/// What has come.
#[derive(Debug)]
struct Reading {
    frames: Frames,
    /// What is read at a time.
    buffer: Box<[u8]>,
}

/// How long somebody has waited, and nothing has come.
#[derive(Debug)]
struct Silence {
    since: Instant,
    /// When somebody last waited.
    waited_at: Instant,
    has_pinged: bool,
}

/// What has to be done about a server that says nothing.
pub(crate) enum Due {
    Nothing,
    /// It is to be asked whether it is there.
    Ping,
    /// It has not answered that.
    End,
}

impl Wire {
    /// One on which `frames` has what came behind the handshake.
    pub(crate) fn new(socket: OwnedFd, tls: Option<Tls>, frames: Frames, address: &str) -> Self {
        let now = Instant::now();
        Self {
            socket,
            tls: tls.map(Mutex::new),
            address: address.to_owned(),
            writing: Mutex::default(),
            reading: Mutex::new(Reading { frames, buffer: vec![0; READ_BYTES].into() }),
            silence: Mutex::new(Silence { since: now, waited_at: now, has_pinged: false }),
        }
    }

    /// Has no other thread write until the guard is dropped.
    pub(crate) fn lock_writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Wire::lock_writing`], unless another thread writes.
    pub(crate) fn try_lock_writing(&self) -> Option<MutexGuard<'_, ()>> {
        self.writing.try_lock().ok()
    }

    /// What is written for `bytes`. What is sealed first is written first.
    fn sealed<'b>(&self, bytes: &'b [u8]) -> io::Result<Cow<'b, [u8]>> {
        let Some(tls) = &self.tls else { return Ok(bytes.into()) };
        let mut tls = tls.lock().unwrap_or_else(PoisonError::into_inner);
        tls.seal(bytes).map(Cow::Owned)
    }

    /// Writes all of `bytes`, by the one that may write. While the server takes nothing, it may be waiting for us to read:
    /// then `read` comes first.
    pub(crate) fn write(
        &self,
        bytes: &[u8],
        mut read: impl FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let sealed = self.sealed(bytes)?;
        let mut bytes = &sealed[..];
        loop {
            let sent = socket::write(&self.socket, bytes)?;
            bytes = &bytes[sent..];
            if bytes.is_empty() {
                return Ok(());
            }
            let end = Instant::now() + SILENCE;
            if socket::wait(&self.socket, Some(end), true)? {
                read()?;
            }
            if Instant::now() >= end {
                return Err(silent());
            }
        }
    }

    /// Waits until there may be something to read, or `deadline` has passed, or the silence has lasted so long that something
    /// is [due](Self::due). Returns whether there may be something.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> io::Result<bool> {
        let look = self.note_that_somebody_waits();
        let until = deadline.map_or(look, |deadline| deadline.min(look));
        let came = socket::wait(&self.socket, Some(until), false)?;
        self.silence().waited_at = Instant::now();
        Ok(came)
    }

    /// Notes that somebody waits for the server, and returns when it is to be looked what is [due](Self::due). To be said at
    /// least once a second: a longer time in which nobody waits is no silence.
    pub(crate) fn note_that_somebody_waits(&self) -> Instant {
        let (mut silence, now) = (self.silence(), Instant::now());
        if now.duration_since(silence.waited_at) > GAP {
            // Nobody has asked for anything meanwhile.
            (silence.since, silence.has_pinged) = (now, false);
        }
        silence.waited_at = now;
        silence.since + if silence.has_pinged { SILENCE } else { PING_AFTER }
    }

    /// What is to be done about the silence.
    pub(crate) fn due(&self) -> Due {
        let mut silence = self.silence();
        let lasted = silence.since.elapsed();
        if lasted >= SILENCE && silence.has_pinged {
            Due::End
        } else if lasted >= PING_AFTER && !std::mem::replace(&mut silence.has_pinged, true) {
            Due::Ping
        } else {
            Due::Nothing
        }
    }

    /// Reads what is there, and hands each frame that is whole to `deliver`. Returns whether something was there.
    pub(crate) fn read(
        &self,
        mut deliver: impl FnMut(&[u8]) -> Result<(), Fault>,
    ) -> io::Result<bool> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let Reading { frames, buffer } = &mut *reading;
        let Some(bytes) = socket::read(&self.socket, buffer)? else { return Ok(false) };
        if bytes == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it"));
        }
        {
            let mut silence = self.silence();
            (silence.since, silence.has_pinged) = (Instant::now(), false);
        }
        match &self.tls {
            None => frames.add(&buffer[..bytes]),
            Some(tls) => {
                let mut tls = tls.lock().unwrap_or_else(PoisonError::into_inner);
                tls.open(&buffer[..bytes], frames).map_err(|error| {
                    io::Error::new(io::ErrorKind::InvalidData, failed(&self.address, &error))
                })?;
            }
        }
        let refused = |fault: Fault| io::Error::new(io::ErrorKind::InvalidData, fault);
        while let Some(frame) = frames.next_frame().map_err(refused)? {
            deliver(frame).map_err(refused)?;
        }
        Ok(true)
    }

    /// Whether there is room to write a small frame without waiting.
    pub(crate) fn has_room(&self) -> bool {
        socket::has_room(&self.socket)
    }

    /// Whether the server has closed it, or it has broken, whatever of it is unread.
    pub(crate) fn is_closed(&self) -> bool {
        socket::is_closed(&self.socket)
    }

    fn silence(&self) -> MutexGuard<'_, Silence> {
        self.silence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The server has said nothing for too long.
pub(crate) fn silent() -> io::Error {
    let problem = format!("it has said nothing for {} s", SILENCE.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, problem)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    use tupelo_protocol::{FRAME_BYTES_MAX, Frames};

    use super::{Due, GAP, PING_AFTER, SILENCE, Wire};

    #[test]
    fn a_server_that_says_nothing_to_somebody_who_waits_is_asked_and_then_given_up() {
        let (socket, _server) = UnixStream::pair().unwrap();
        let wire = Wire::new(socket.into(), None, Frames::new(FRAME_BYTES_MAX), "here");
        // As if it had been silent for so long, while somebody waited until just now.
        let tended = |silent: Duration, waited: Duration| {
            let now = Instant::now();
            wire.silence().since = now.checked_sub(silent).unwrap();
            wire.silence().waited_at = now.checked_sub(waited).unwrap();
            wire.note_that_somebody_waits();
            wire.due()
        };
        assert!(matches!(tended(PING_AFTER / 2, Duration::ZERO), Due::Nothing));
        assert!(matches!(tended(PING_AFTER, Duration::ZERO), Due::Ping));
        assert!(matches!(tended(PING_AFTER, Duration::ZERO), Due::Nothing), "it was asked");
        assert!(matches!(tended(SILENCE, Duration::ZERO), Due::End));
        assert!(matches!(tended(SILENCE, GAP * 2), Due::Nothing), "nobody has waited");
    }
}
