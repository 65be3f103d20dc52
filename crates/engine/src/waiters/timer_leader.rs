//! Time while nobody comes by (rule T6): one of the blocked callers, the *leader*, sleeps no longer than until the
//! next timer of the space, and lets everything happen then. Another one, its *deputy*, looks a little later: the leader may be
//! stopped, or be busy with something else when it is woken.
//!
//! The space notes when its next timer is due, and which wait nodes' owners these two are. Whoever arms an earlier timer
//! raises their signals; a leader that is served appoints another sleeper. All three words are hints: that they may
//! be lost with a killed process is made up for by every blocked caller, which looks after each slice of its sleep.

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
use crate::waiters::{self, FREE, OWNER, SIGNAL, SLICE_MS, STATE, nodes, wake};

/// The wait node whose owner keeps the time; 0 if none does.
const LEADER: usize = 8;
/// The wait node whose owner is its deputy; 0 if none is.
const DEPUTY: usize = 12;

/// How much later than the leader its deputy looks: half of what may be late (rule L1).
const DEPUTY_LATER_MS: u64 = 10;

fn leader<'m>(view: &View<'m>) -> &'m AtomicU32 {
    line(view).word(LEADER)
}

fn deputy<'m>(view: &View<'m>) -> &'m AtomicU32 {
    line(view).word(DEPUTY)
}

/// Replaces one number by another. Returns whether it was that one.
fn replace(word: &AtomicU32, known: u32, number: u32) -> bool {
    word.compare_exchange(known, number, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Leaves a place to nobody. Returns whether it was that one's.
fn gives_up(word: &AtomicU32, number: u32) -> bool {
    word.load(Ordering::Relaxed) == number && replace(word, number, 0)
}

/// The process that has a wait node, as a number; 0 for a free one.
fn process_of(view: &View<'_>, number: u32) -> u32 {
    if number == 0 { 0 } else { waiters::node(view, number).load(OWNER) }
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

/// Makes the owner of a wait node the leader's deputy, if there is none, or one that stops when the leader does. Returns whether it is.
fn stands_in(view: &View<'_>, number: u32) -> bool {
    let word = deputy(view);
    let known = word.load(Ordering::Relaxed);
    if known == number {
        return true;
    }
    let kept_by = leader(view).load(Ordering::Relaxed);
    let is_better = || {
        let [first, second, own] = [kept_by, known, number].map(|node| process_of(view, node));
        second == 0 || second == first && own != first
    };
    (known == kept_by || is_better()) && replace(word, known, number)
}

/// Tells those who keep the time that the earliest timer of the space is due at `due_ms`, if that is soon.
pub(crate) fn notify_leader(store: &Store, due_ms: u64) {
    if !is_soon(due_ms) {
        return;
    }
    let view = store.memory.view();
    match leader(&view).load(Ordering::Relaxed) {
        0 => appoint(store),
        number => wake::notify(store, number),
    }
    match deputy(&view).load(Ordering::Relaxed) {
        0 => {}
        number => wake::notify(store, number),
    }
}

/// Makes one of those who sleep the leader, if there is none, and lets it look at the time.
fn appoint(store: &Store) {
    let view = store.memory.view();
    let second = Some(deputy(&view).load(Ordering::Relaxed)).filter(|number| *number != 0);
    let mut all = second.into_iter().chain(1..=nodes::used(&view));
    let Some(number) = all.find(|number| is_away(&view, *number)) else { return };
    if replace(leader(&view), 0, number) {
        wake::notify(store, number);
    }
}

/// How long the owner of a wait node may sleep, at most `slice`. If there is no timer leader, it becomes the leader; if
/// there is no deputy, it becomes the deputy.
pub(crate) fn sleep_until_due(store: &Store, number: u32, slice: Duration) -> Duration {
    let view = store.memory.view();
    let word = leader(&view);
    let later_ms = if word.load(Ordering::Relaxed) == number || replace(word, 0, number) {
        gives_up(deputy(&view), number);
        0
    } else if stands_in(&view, number) {
        DEPUTY_LATER_MS
    } else {
        return slice;
    };
    match earliest::earliest(&view).load(Ordering::Acquire) {
        0 => slice,
        due_ms => {
            let look_ms = due_ms.saturating_add(later_ms);
            slice.min(Duration::from_millis(look_ms.saturating_sub(now_ms())))
        }
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
    // Whoever comes later finds nothing due, or what was noted since; a deputy, that it is not done yet.
    let later_ms = due_ms.saturating_add(DEPUTY_LATER_MS);
    if word.compare_exchange(due_ms, later_ms, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return Ok(());
    }
    // The leader may be dead, or stopped; and if it is later than a deputy looks, so may be that one.
    leader(&view).store(number, Ordering::Relaxed);
    if is_past(due_ms.saturating_add(2 * DEPUTY_LATER_MS)) {
        deputy(&view).store(0, Ordering::Relaxed);
    }
    let done = catch_up_where_free(store);
    // Fails if something earlier was noted, or somebody else is at it.
    let _ = word.compare_exchange(later_ms, 0, Ordering::AcqRel, Ordering::Relaxed);
    // What could not happen is still due: that is looked at again, but not at once.
    let is_left = *done.as_ref().unwrap_or(&true);
    note_due_from(store, if is_left { now_ms() + DEPUTY_LATER_MS } else { 0 });
    done.map(|_| ())
}

/// As [`catch_up_all`], for who waits for something else: passes over a partition in which somebody stays, who may be
/// stopped. Who is inside there, or comes after, sees to it. Returns whether there is one.
fn catch_up_where_free(store: &Store) -> Result<bool, Error> {
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
    gives_up(deputy(&view), number);
    if gives_up(leader(&view), number) && is_soon(earliest::earliest(&view).load(Ordering::Acquire))
    {
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
