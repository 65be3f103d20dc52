//! Waiting for a descriptor that is no socket of the event loop's own.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Lets the event loop say when `descriptor` can be read.
pub(crate) fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(
        deprecated,
        reason = "unsound for what lends a descriptor and closes it meanwhile, which one that owns it does not"
    )]
    AsyncFd::with_interest(descriptor, Interest::READABLE)
}
