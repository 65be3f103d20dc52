//! Time while nobody comes by (rule T6): one of the blocked callers, the *leader*, sleeps no longer than until the
//! next timer of the space, and lets everything happen then.
//!
//! The space notes when its next timer is due, and which wait node's owner is the leader. Whoever arms an earlier timer
//! raises the leader's signal; a leader that is served appoints another sleeper. Both words are hints: they may be lost
//! with a killed process, and the leader may be stopped, or be busy with something else when it is woken. That is made up
//! for by every blocked caller, which looks after each slice of its sleep, and leads from then on if anything is overdue.
//! Rejected: a second one that looks a little later than the leader. It made 10 ms of the 100, beside stopped leaders only.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tupelo_shm::{Section, View};

use crate::base::clock::{is_past, now_ms};
use crate::base::error::{Error, Need};
use crate::base::signal;
use crate::store::partition::{DUE_MS, Partition, is_behind, scope_of};
use crate::store::{Store, multi_shape, registry};
use crate::time::bounded_lock;
use crate::time::earliest::{self, line, lower};
use crate::waiters::{self, FREE, SIGNAL, SLICE_MS, STATE, nodes, wake};

/// The wait node whose owner keeps the time; 0 if none does.
const LEADER: usize = 8;

/// When somebody looks again at what could not happen yet, or was not done by whoever began with it.
const AGAIN_MS: u64 = 10;

fn leader<'m>(view: &View<'m>) -> &'m AtomicU32 {
    line(view).word(LEADER)
}

/// Replaces one number by another. Returns whether it was that one.
fn replace(word: &AtomicU32, known: u32, number: u32) -> bool {
    word.compare_exchange(known, number, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// If the owner of a wait node is the leader, nobody is from now on. Returns whether it was.
fn gives_up(view: &View<'_>, number: u32) -> bool {
    let word = leader(view);
    word.load(Ordering::Relaxed) == number && replace(word, number, 0)
}

/// Whether the owner of a wait node sleeps, or listens.
fn is_away(view: &View<'_>, number: u32) -> bool {
    let node = waiters::node(view, number);
    node.load(STATE) != FREE && signal::is_away(node.word(SIGNAL))
}

/// Whether something is due before everybody who sleeps looks around: then somebody has to be told.
fn is_soon(due_ms: u64) -> bool {
    due_ms != 0 && due_ms.saturating_sub(now_ms()) <= SLICE_MS
}

/// When to look at what is due at `due_ms`: if it is overdue, at `from_ms`.
fn not_before(due_ms: u64, from_ms: u64) -> u64 {
    if is_past(due_ms) { due_ms.max(from_ms) } else { due_ms }
}

/// Tells who keeps the time that the earliest timer of the space is due at `due_ms`, if that is soon.
pub(crate) fn notify_leader(store: &Store, due_ms: u64) {
    if !is_soon(due_ms) {
        return;
    }
    let view = store.memory.view();
    match leader(&view).load(Ordering::Relaxed) {
        0 => appoint(store),
        number => wake::notify(store, number),
    }
}

/// Makes one of those who sleep the leader, if there is none, and lets it look at the time.
fn appoint(store: &Store) {
    let view = store.memory.view();
    let mut all = 1..=nodes::used(&view);
    let Some(number) = all.find(|number| is_away(&view, *number)) else { return };
    if replace(leader(&view), 0, number) {
        wake::notify(store, number);
    }
}

/// How long the owner of a wait node may sleep, at most `slice`. If there is no timer leader, it becomes the leader.
pub(crate) fn sleep_until_due(store: &Store, number: u32, slice: Duration) -> Duration {
    let view = store.memory.view();
    let word = leader(&view);
    if word.load(Ordering::Relaxed) != number && !replace(word, 0, number) {
        return slice;
    }
    match earliest::earliest(&view).load(Ordering::Acquire) {
        0 => slice,
        due_ms => slice.min(Duration::from_millis(due_ms.saturating_sub(now_ms()))),
    }
}

/// Lets everything happen that is due in the space, if anything is; the owner of wait node `number` looked.
///
/// # Errors
///
/// As the callback that lets it happen.
pub(crate) fn run_due_timers(store: &Store, number: u32) -> Result<(), Error> {
    let view = store.memory.view();
    let due_ms = earliest::earliest(&view).load(Ordering::Acquire);
    if !is_past(due_ms) {
        return Ok(());
    }
    let word = earliest::earliest(&view);
    // Whoever comes later finds nothing due, or what was noted since. If it is not done by then, somebody else begins.
    let later_ms = due_ms.saturating_add(AGAIN_MS);
    if word.compare_exchange(due_ms, later_ms, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return Ok(());
    }
    // The leader may be dead, or stopped.
    leader(&view).store(number, Ordering::Relaxed);
    let done = catch_up_where_free(store);
    // Fails if something earlier was noted, or somebody else is at it.
    let _ = word.compare_exchange(later_ms, 0, Ordering::AcqRel, Ordering::Relaxed);
    // What could not happen is still due: that is looked at again, but not at once.
    let is_left = *done.as_ref().unwrap_or(&true);
    note_due_from(store, if is_left { now_ms() + AGAIN_MS } else { 0 });
    done.map(|_| ())
}

/// As [`catch_up_all`], for who waits for something else: passes over a partition in which somebody stays, who may be
/// stopped. Who is inside there, or comes after, sees to it. Returns whether there is one.
pub(crate) fn catch_up_where_free(store: &Store) -> Result<bool, Error> {
    let view = store.memory.view();
    let mut is_left = false;
    for shape in 0..registry::count(&view) {
        if !is_behind(Partition::of_shape(&view, shape)) {
            continue;
        }
        if bounded_lock::is_passable(store, scope_of(shape))? {
            (store.callbacks.catch_up)(store, scope_of(shape))?;
        } else {
            is_left = true;
        }
    }
    Ok(is_left)
}

/// Whether anything in the space is due.
pub(crate) fn anything_is_due(store: &Store) -> bool {
    let view = store.memory.view();
    (0..registry::count(&view)).any(|shape| is_behind(Partition::of_shape(&view, shape)))
}

/// Lets everything happen that is due in the space.
pub(crate) fn catch_up_all(store: &Store) -> Result<(), Error> {
    let view = store.memory.view();
    for shape in 0..registry::count(&view) {
        if is_behind(Partition::of_shape(&view, shape)) {
            (store.callbacks.catch_up)(store, scope_of(shape))?;
        }
    }
    Ok(())
}

/// Asks for everything that is due in the space to happen, before a tuple is put that those who wait for tuples of
/// several shapes could get: what was due in another partition, where nobody has been since, was there before it (T6).
#[inline]
pub(crate) fn require_time_for_multi_shape(
    store: &Store,
    section: &Section<'_>,
    partition: Partition<'_>,
) -> Result<(), Error> {
    if multi_shape::concerns_multi_shape(section, partition) && anything_is_due(store) {
        return Err(Need::Time.into());
    }
    Ok(())
}

/// As [`require_time_for_multi_shape`], for a section that the multi-shape waiters concern: locks them, too. Passes it on by value, so
/// that it has no address in its caller.
#[inline(never)]
pub(crate) fn enter_multi_shape_on_time<'m>(
    store: &'m Store,
    mut section: Section<'m>,
) -> Result<Section<'m>, Error> {
    if anything_is_due(store) {
        return Err(Need::Time.into());
    }
    multi_shape::enter_multi_shape(&mut section)?;
    Ok(section)
}

/// As [`require_time_for_multi_shape`], before an operation of any length: it is not begun anew for what is due
/// while it goes on.
#[inline]
pub(crate) fn catch_up_for_multi_shape(store: &Store) -> Result<(), Error> {
    if multi_shape::counts_any_multi_shape(&store.memory.view()) {
        catch_up_all(store)
    } else {
        Ok(())
    }
}

/// Notes the earliest timer of the space anew: who cleared the note may have died over it.
pub(crate) fn note_all_due(store: &Store) {
    note_due_from(store, 0);
}

/// As [`note_all_due`], with what is overdue as due at that time.
fn note_due_from(store: &Store, from_ms: u64) {
    let view = store.memory.view();
    let due = |shape| Partition::of_shape(&view, shape).page().load64(DUE_MS);
    let due = (0..registry::count(&view)).map(due).filter(|due_ms| *due_ms != 0);
    if let Some(due_ms) = due.map(|due_ms| not_before(due_ms, from_ms)).min() {
        lower(earliest::earliest(&view), due_ms);
    }
}

/// The owner of a wait node sleeps no more: if it kept the time, somebody else has to.
pub(crate) fn resign(store: &Store, number: u32) {
    let view = store.memory.view();
    if gives_up(&view, number) && is_soon(earliest::earliest(&view).load(Ordering::Acquire)) {
        appoint(store);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

    use tupelo_tuple::Field;

    use super::*;
    use crate::{LeaseTerms, testing};

    #[test]
    fn what_can_not_happen_yet_does_not_put_off_what_is_due_next_l1() {
        let engine = testing::engine(8 << 20);
        let terms = |ms| LeaseTerms { lease: Some(Duration::from_millis(ms)), after: None };
        engine.put_leased(&[Field::Int(1)], &terms(1)).unwrap();
        engine.put_leased(&[Field::Str("later")], &terms(100_000)).unwrap();
        while !anything_is_due(&engine) {
            std::thread::yield_now();
        }
        let view = engine.memory.view();
        let next_ms = Partition::of_shape(&view, 1).page().load64(DUE_MS);
        for (look_again_ms, noted_ms) in
            [(next_ms - 50_000, next_ms - 50_000), (next_ms + 50_000, next_ms)]
        {
            earliest::earliest(&view).store(0, Ordering::Relaxed);
            note_due_from(&engine, look_again_ms);
            assert_eq!(earliest::earliest(&view).load(Ordering::Relaxed), noted_ms);
        }
    }
}
