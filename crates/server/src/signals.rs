//! The signals that a server knows.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Those that end a server, and the one at which it reads its files again.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// `SIGTERM`, `SIGINT`: to end.
    End,
    /// `SIGHUP`: to read the certificates again.
    Reload,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::End,
            _ = self.interrupt.recv() => Asked::End,
            _ = self.hang_up.recv() => Asked::Reload,
        }
    }
}
