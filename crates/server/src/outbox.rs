//! What is on its way to a client.

use std::cell::RefCell;

use tokio::sync::Notify;
use tupelo_protocol::{Fault, Reply};

/// Bytes that may be on their way to a client who reads nothing; then its connection ends.
const BYTES_MAX: usize = 256 << 20;

/// Frames that are not written yet, in their order.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: RefCell<Vec<u8>>,
    pub(crate) filled: Notify,
}

impl Outbox {
    /// Adds an answer; instead of one that is too large for a frame, that it is.
    pub(crate) fn push(&self, reply: &Reply<'_>) -> Result<(), Fault> {
        let mut bytes = self.bytes.borrow_mut();
        let written = reply.write(&mut bytes);
        self.filled.notify_one();
        written
    }

    /// All that there is.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.bytes.take()
    }

    /// Whether there is more than a client may leave unread.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes.borrow().len() > BYTES_MAX
    }
}
