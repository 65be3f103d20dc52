//! The process at the other end of a Unix socket: its death ends the connection at once (rule L5). That holds also
//! where a child that it has forked has the socket open still.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;

use crate::descriptor::watched;

/// A process that is watched.
pub(crate) struct Process(Option<AsyncFd<OwnedFd>>);

impl Process {
    /// The one that has connected. One that can not be watched (of another namespace, or dead already) ends with its
    /// connection alone.
    pub(crate) fn of(stream: &UnixStream) -> Self {
        Self(Self::watched(stream).ok())
    }

    /// One of another machine, perhaps: it ends with its connection alone.
    pub(crate) const fn far() -> Self {
        Self(None)
    }

    fn watched(stream: &UnixStream) -> io::Result<AsyncFd<OwnedFd>> {
        let pid = stream.peer_cred()?.pid().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::NotFound)?;
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        watched(process)
    }

    /// Returns when it has died.
    pub(crate) async fn death(&self) {
        match &self.0 {
            Some(process) if process.readable().await.is_ok() => {}
            _ => std::future::pending().await,
        }
    }
}
