//! The client at the other end of a connection: whether it is still there.
//!
//! A request that waits is for a client that may go meanwhile, and what it takes must not go with it. The HTTP library
//! reads nothing more once a request is the last of its connection, so the socket is watched here.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;

use crate::descriptor::watched;

/// A client, by its socket.
pub(super) struct Caller(AsyncFd<OwnedFd>);

impl Caller {
    pub(super) fn of(stream: &TcpStream) -> io::Result<Self> {
        stream.as_fd().try_clone_to_owned().and_then(watched).map(Self)
    }

    /// Returns when the client has closed its side.
    pub(super) async fn gone(&self) {
        loop {
            // A socket that can not be watched is gone.
            let Ok(mut guard) = self.0.readable().await else { return };
            if guard.ready().is_read_closed() {
                return;
            }
            // More has come, which is another request.
            guard.clear_ready();
        }
    }

    /// Whether the client has closed its side by now.
    pub(super) fn is_gone(&self) -> bool {
        let mut polled = [PollFd::new(&self.0, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok_and(|count| count > 0)
    }
}
