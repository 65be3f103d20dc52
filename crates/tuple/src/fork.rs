//! Forks, beside the tables that all threads of a process share.

use crate::{class, condition};

/// Locks all tables of this crate until it is dropped. To be called by a thread that is about to fork, and dropped by it
/// after that, in the parent and in the child. Else a table that another thread had locked at the fork would stay
/// locked in the child for ever.
#[must_use]
pub fn before_fork() -> impl Sized {
    (class::lock_classes(), condition::lock_kept())
}
