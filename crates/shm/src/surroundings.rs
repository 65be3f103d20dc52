//! What a language does around a call that takes its time: it lets go of its lock, and looks for Ctrl-C.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Duration;

/// Longest wait between two looks for an interruption.
const SLICE: Duration = Duration::from_millis(50);

/// What the language of this process does around what waits for a server, or computes for long.
pub trait Surroundings: Send + Sync {
    /// Runs `act`, which waits or computes, without the lock of the interpreter, if this thread has it.
    fn without_lock(&self, act: &mut (dyn FnMut() + Send));

    /// Whether the thread shall give up what it waits for: Ctrl-C, say. Asked from time to time. The binding keeps what
    /// it is going to raise.
    fn is_interrupted(&self) -> bool;
}

/// One for the process, since the language is.
static SURROUNDINGS: OnceLock<&'static dyn Surroundings> = OnceLock::new();

/// Sets what is done around calls that take their time; once per process, by the binding of a language.
pub fn surround(surroundings: &'static dyn Surroundings) {
    // A second one would be of the same language.
    let _ = SURROUNDINGS.set(surroundings);
}

thread_local! {
    /// Whether this thread has nothing to do with the language.
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Lets the calling thread have nothing to do with the language from now on: its calls wait for no interpreter. For threads
/// that the language knows nothing of.
pub fn alone() {
    IS_ALONE.set(true);
}

/// What there is around the calls of this thread.
fn surroundings() -> Option<&'static dyn Surroundings> {
    SURROUNDINGS.get().copied().filter(|_| !IS_ALONE.get())
}

/// Runs `act` without the lock of the interpreter.
pub fn outside<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    let Some(surroundings) = surroundings() else { return act() };
    let (mut act, mut result) = (Some(act), None);
    surroundings.without_lock(&mut || result = act.take().map(|act| act()));
    match result {
        Some(result) => result,
        None => unreachable!("a language runs what it is given"),
    }
}

/// How long a wait may last until somebody has to look for an interruption; `None`: for ever.
#[must_use]
pub fn slice() -> Option<Duration> {
    surroundings().map(|_| SLICE)
}

/// Whether the thread shall give up what it waits for.
#[must_use]
pub fn is_interrupted() -> bool {
    surroundings().is_some_and(Surroundings::is_interrupted)
}
