//! Waiting without the lock of the interpreter, in slices, so that Ctrl-C works (rules O3, T5).

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use tupelo::Waiter;

use crate::errors::Failure;

/// Longest sleep between two looks at signals.
const SLICE: Duration = Duration::from_millis(50);

/// The moment at which a call gives up.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    timeout: Option<Duration>,
    begin: Instant,
}

impl Deadline {
    /// So long from now; `None` for never.
    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        Self { timeout, begin: Instant::now() }
    }

    /// The time that was given, for the message; zero for never, which does not run out.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or_default()
    }

    /// Whether the caller does not want to wait at all.
    pub(crate) fn is_now(&self) -> bool {
        self.timeout == Some(Duration::ZERO)
    }

    /// How long there is still, or `None` for ever.
    fn left(&self) -> Option<Duration> {
        self.timeout.map(|timeout| timeout.saturating_sub(self.begin.elapsed()))
    }
}

/// Waits until `waiter` has something (`true`) or the time has run out (`false`). Other threads of Python
/// run meanwhile.
///
/// # Errors
///
/// What a signal handler raises, such as `KeyboardInterrupt`, also when the tuple came at the same moment:
/// dropping the waiter then puts it back (T5). What the space says.
pub(crate) fn wait(py: Python<'_>, waiter: &Waiter, deadline: &Deadline) -> Result<bool, Failure> {
    loop {
        let left = deadline.left();
        let slice = left.map_or(SLICE, |left| left.min(SLICE));
        let happened = py.detach(|| waiter.wait(Some(slice)))?;
        py.check_signals()?;
        if happened {
            return Ok(true);
        }
        if left == Some(Duration::ZERO) {
            return Ok(false);
        }
    }
}
