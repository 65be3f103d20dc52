//! The signal of a blocked caller: a word that it sleeps on, and that others raise after they have done
//! something that concerns it.
//!
//! Raising costs a system call only if the owner sleeps. A signal may be meant for the wait node's last owner, so who
//! takes one looks whether there is anything; and several may be taken as one. None is lost: what was done
//! before a signal was raised is seen by whoever takes it, or finds it taken.
//!
//! A raised signal also says on which processor that was: two threads that wait for each other on one processor must not
//! spin there.

use std::time::Duration;

use super::sync::{AtomicU32, Ordering, futex};

/// The owner runs, and looks at the signal before it sleeps.
pub(crate) const AWAKE: u32 = 0;
/// The owner sleeps on the signal.
const ASLEEP: u32 = 1;
/// Something happened: look.
const RAISED: u32 = 2;
/// The owner waits for something else to be readable, too, and has to be sent a byte.
const LISTENING: u32 = 3;

/// The bits of a signal below those that have the processor.
const PROCESSOR_SHIFT: u32 = 8;
const STATES: u32 = (1 << PROCESSOR_SHIFT) - 1;

/// Tells the owner to look, by a thread that runs on `processor`. Returns whether it listens, and so has to be sent a
/// byte.
pub(crate) fn raise(signal: &AtomicU32, processor: u32) -> bool {
    // AcqRel pairs with the owner's exchanges: whoever sees the signal sees what was committed before it.
    let before = signal.swap(RAISED | processor << PROCESSOR_SHIFT, Ordering::AcqRel);
    if before == ASLEEP {
        futex::wake(signal, 1);
    }
    before == LISTENING
}

/// Takes the signal, or ends listening for it.
#[allow(dead_code, reason = "the model of this file has nobody who listens")]
pub(crate) fn acknowledge(signal: &AtomicU32) {
    // As in `take`.
    signal.swap(AWAKE, Ordering::AcqRel);
}

/// Begins to listen. Returns whether the owner may wait: not if the signal is raised.
#[allow(dead_code, reason = "the model of this file has nobody who listens")]
pub(crate) fn listen(signal: &AtomicU32) -> bool {
    let listens = signal.compare_exchange(AWAKE, LISTENING, Ordering::AcqRel, Ordering::Acquire);
    listens.is_ok() || listens == Err(LISTENING)
}

/// Whether the signal is raised, by a look that costs nothing.
#[inline]
pub(crate) fn is_raised(signal: &AtomicU32) -> bool {
    // Acquire pairs with the exchange of `raise`: what was committed before it is seen, also by who leaves the signal up.
    signal.load(Ordering::Acquire) & STATES == RAISED
}

/// The processor on which the signal was raised, if it still is.
#[allow(dead_code, reason = "the model of this file has nobody who spins")]
pub(crate) fn raised_on(signal: &AtomicU32) -> Option<u32> {
    let value = signal.load(Ordering::Relaxed);
    (value & STATES == RAISED).then_some(value >> PROCESSOR_SHIFT)
}

/// Whether the owner sleeps or listens, by such a look.
#[allow(dead_code, reason = "the model of this file has nobody who keeps the time")]
pub(crate) fn is_away(signal: &AtomicU32) -> bool {
    matches!(signal.load(Ordering::Relaxed), ASLEEP | LISTENING)
}

/// Takes the signal, if it is raised. Returns whether it was.
pub(crate) fn take(signal: &AtomicU32) -> bool {
    // The exchange sees what every signal until now was raised for, also one that came after the look.
    is_raised(signal) && signal.swap(AWAKE, Ordering::AcqRel) & STATES == RAISED
}

/// Sleeps until the signal is raised, a slice at most. Returns whether it was not.
pub(crate) fn sleep(signal: &AtomicU32, slice: Duration) -> bool {
    // AcqRel pairs with the exchange of `raise`: it sees us asleep, or we see its signal.
    let asleep = signal.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
    if asleep.is_ok() || asleep == Err(ASLEEP) {
        futex::wait(signal, ASLEEP, Some(slice));
    }
    signal.compare_exchange(ASLEEP, AWAKE, Ordering::AcqRel, Ordering::Acquire).is_ok()
}
