//! A stream socket with time limits: what of it has to be asked of the system.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// Waits until there may be something to read, or `deadline` has passed; with `to_write`, also until there is room to
/// write. Returns whether there may be something to read.
pub(crate) fn wait(
    socket: &OwnedFd,
    deadline: Option<Instant>,
    to_write: bool,
) -> io::Result<bool> {
    let flags = if to_write { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.map(Timespec::try_from).transpose().ok().flatten();
        let mut polled = [PollFd::new(socket, flags)];
        match poll(&mut polled, left.as_ref()) {
            Ok(_) => return Ok(!(polled[0].revents() & !PollFlags::OUT).is_empty()),
            // Only the caller knows whether there is something else to do at a signal, and looks in time.
            Err(Errno::INTR) if deadline.is_none() => {}
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether there is room to write a small frame without waiting.
pub(crate) fn has_room(socket: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(socket, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok_and(|_| polled[0].revents().contains(PollFlags::OUT))
}

/// Whether the other side has closed it, or it has broken, whatever of it is unread.
pub(crate) fn is_closed(socket: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(socket, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// What has come, if anything has; 0 at the end.
pub(crate) fn read(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match recv(socket, buffer, RecvFlags::DONTWAIT) {
        Ok((_, bytes)) => Ok(Some(bytes)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Sends as much of `bytes` as there is room for. A connection that is closed is an error, and no signal.
pub(crate) fn write(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    match send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(sent) => Ok(sent),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}
