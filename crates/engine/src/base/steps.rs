//! A long computation in steps: other threads of an interpreter run meanwhile, and it can be given up between two steps.
//!
//! Only the caller knows whether it holds a lock that another thread may wait for, while that has the lock of an interpreter.
//! So the call says that it may be done in steps ([`in_steps`]).

use std::cell::Cell;
use std::time::Instant;

use tupelo_shm::surroundings::{is_interrupted, outside};

use crate::base::error::Error;

/// How the calls of a thread are done.
#[derive(Clone, Copy)]
struct Steps {
    /// When they are given up.
    until: Option<Instant>,
}

thread_local! {
    static STEPS: Cell<Option<Steps>> = const { Cell::new(None) };
}

/// Puts back what was there before, whatever happens.
struct Before(Option<Steps>);

impl Before {
    fn set(steps: Option<Steps>) -> Self {
        Self(STEPS.replace(steps))
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        STEPS.set(self.0);
    }
}

/// Lets the calls in `act` be done in steps, and given up at `until` with [`Error::OutOfTime`], or as soon as the language
/// has something to raise, with [`Error::Interrupted`]. Nothing has happened then.
pub fn in_steps<R>(until: Option<Instant>, act: impl FnOnce() -> R) -> R {
    let _before = Before::set(Some(Steps { until }));
    act()
}

/// Does a step of a computation that may be long, while the caller is inside of no section.
pub(crate) fn step<R: Send>(act: impl FnOnce() -> R + Send) -> Result<R, Error> {
    let Some(Steps { until }) = STEPS.get() else { return Ok(act()) };
    let result = outside(act);
    // A signal handler may call what is not to be done in steps.
    let before = Before::set(None);
    let interrupted = is_interrupted();
    drop(before);
    if interrupted {
        return Err(Error::Interrupted);
    }
    if until.is_some_and(|until| until <= Instant::now()) {
        return Err(Error::OutOfTime);
    }
    Ok(result)
}
