//! How long a thread waits for answers that are only nice to have.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long that is.
const BRIEFLY: Duration = Duration::from_secs(1);

thread_local! {
    static END: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Ends it, also if the call panics.
struct DeadlineGuard;

impl Drop for DeadlineGuard {
    fn drop(&mut self) {
        END.set(None);
    }
}

/// Runs `act`, whose calls that do not wait for anything but the server wait for that no longer than a second: then they are
/// refused. For what is only nice to know.
pub fn briefly<R>(act: impl FnOnce() -> R) -> R {
    END.set(Instant::now().checked_add(BRIEFLY));
    let _guard = DeadlineGuard;
    act()
}

/// When the calls of this thread give up; `None`: never.
pub(crate) fn end() -> Option<Instant> {
    END.get()
}
