//! Waiting without the lock of the interpreter, in slices, so that Ctrl-C works (rules O3, T5): for tuples, and for room
//! (rule B1).

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use tupelo::{Error, Space, Subscription, Waiter, WhenFull};

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

    /// The time that was given; `None` for ever.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.timeout
    }

    /// Whether the caller does not want to wait at all.
    pub(crate) fn is_now(&self) -> bool {
        self.timeout == Some(Duration::ZERO)
    }

    /// Whether the time has run out.
    pub(crate) fn is_over(&self) -> bool {
        self.left() == Some(Duration::ZERO)
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
/// The exception of a signal handler, such as `KeyboardInterrupt`, also when the tuple came at the same moment:
/// dropping the waiter then puts it back (T5). The errors of the space.
pub(crate) fn wait(py: Python<'_>, waiter: &Waiter, deadline: &Deadline) -> Result<bool, Failure> {
    in_slices(py, deadline, |part| waiter.wait_part(part), |rest| waiter.wait(Some(rest)))
}

/// As [`wait`], and ends the wait when the time has run out. A tuple that was handed over by then has come in time, and
/// none is handed over later.
///
/// # Errors
///
/// As [`wait`].
pub(crate) fn last_wait(
    py: Python<'_>,
    waiter: &Waiter,
    deadline: &Deadline,
) -> Result<bool, Failure> {
    let last = |rest| waiter.last_wait(Some(rest));
    in_slices(py, deadline, |part| waiter.wait_part(part), last)
}

/// Waits until `subscription` may have an event (`true`) or the time has run out (`false`).
///
/// # Errors
///
/// As [`wait`].
pub(crate) fn for_event(
    py: Python<'_>,
    subscription: &Subscription,
    deadline: &Deadline,
) -> Result<bool, Failure> {
    let last = |rest| subscription.wait(Some(rest));
    in_slices(py, deadline, |part| subscription.wait_part(part), last)
}

/// Waits by calling `wait_part` with a slice of time again and again, and `wait` with the remaining time at last. It
/// ends when one returns `true` or the time has run out. The end of a slice is no answer; the end of the last wait is
/// (rule L5).
///
/// # Errors
///
/// As [`wait`].
pub(crate) fn in_slices(
    py: Python<'_>,
    deadline: &Deadline,
    wait_part: impl Fn(Duration) -> Result<bool, Error> + Sync,
    wait: impl Fn(Duration) -> Result<bool, Error> + Sync,
) -> Result<bool, Failure> {
    loop {
        let last = deadline.left().filter(|left| *left <= SLICE);
        let happened = py.detach(|| last.map_or_else(|| wait_part(SLICE), &wait))?;
        py.check_signals()?;
        if happened || last.is_some() {
            return Ok(happened);
        }
    }
}

/// How long a put waits for room whose caller gave this `timeout`: as long as that, or else as the space was created.
pub(crate) fn deadline(space: &Space, timeout: Option<Duration>) -> Deadline {
    let waits = timeout.is_none() && space.when_full() == WhenFull::Wait;
    Deadline::after(if waits { None } else { Some(timeout.unwrap_or_default()) })
}

/// Runs `put`; if it finds no room, in the wait queue for room, as long as `timeout` and the space say.
///
/// # Errors
///
/// What `put` says at the end, and as [`wait`].
#[inline]
pub(crate) fn with_room<R>(
    py: Python<'_>,
    space: &Space,
    timeout: Option<Duration>,
    put: impl Fn() -> Result<R, Error>,
) -> Result<R, Failure> {
    match put() {
        Ok(result) => Ok(result),
        Err(error) => when_room(py, (space, error), timeout, put),
    }
}

#[cold]
fn when_room<R>(
    py: Python<'_>,
    (space, error): (&Space, Error),
    timeout: Option<Duration>,
    put: impl Fn() -> Result<R, Error>,
) -> Result<R, Failure> {
    let deadline = deadline(space, timeout);
    if !error.may_pass() || deadline.is_now() {
        return Err(error.into());
    }
    let room = space.room()?;
    loop {
        match room.with_grant(&put) {
            Err(full) if full.may_pass() => {
                if !wait(py, &room, &deadline)? {
                    return Err(full.into());
                }
            }
            done => return Ok(done?),
        }
    }
}
