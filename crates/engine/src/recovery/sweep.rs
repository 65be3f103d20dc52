//! Cleaning up after the dead (rules C1, L5), by whoever comes by: there is no daemon.
//!
//! What a dead thread left inside a lock is undone by the next locker ([`tupelo_shm::Section`]). What it
//! left between two sections is named in its thread slot or in a wait node: reserved records are freed,
//! held ones go back to their place. Every step is a small section, so a killed sweeper is just repeated.

use std::sync::atomic::Ordering;

use tupelo_shm::{
    HowRemoved, PARTICIPANTS_MAX, ParticipantInfo, Section, Slot, THREADS_MAX, clock, log_run,
    set_log_run,
};

use crate::base::error::Error;
use crate::base::layout::{EXTENT_BYTES, LOG_ENTRIES_MAX, LOG_ENTRIES_PER_EXTENT, head};
use crate::base::want::Want;
use crate::index::links;
use crate::journal;
use crate::recovery::held::{self, Held};
use crate::recovery::provide::{self, Gathering};
use crate::recovery::{abandoned, node_memory, shrink, withdraw};
use crate::store::partition;
use crate::store::{self, Store, arena, in_flight, record, registry, space_line};
use crate::waiters::events::Happening;
use crate::waiters::{self, grants, nodes, timer_leader};

/// Shortest time between two sweeps of a space by those who wait, in milliseconds. Somebody blocked looks
/// around every 100 ms, and is to see by then what a dead process held (rule L5).
const PERIOD_MS: u32 = 90;

/// Sweeps if it is time, or if more than half of the places for processes or threads are taken. Those of the dead would
/// fill the table, if nobody ever waited here.
pub(crate) fn sweep_at_attach(store: &Store) -> Result<(), Error> {
    let is_crowded = 2 * store.memory.participants_count() > PARTICIPANTS_MAX
        || 2 * store.memory.slots_used() > THREADS_MAX;
    if is_crowded { if_there_is_room(sweep(store)) } else { sweep_if_due(store) }
}

/// Cleans up after the dead, if a thread of this process has found most places taken when it came. Called at the end of
/// what may be all that a process does here.
#[inline(always)]
pub(crate) fn see_to_crowd(store: &Store) {
    if store.memory.is_crowded() {
        make_places(store);
    }
}

#[cold]
#[inline(never)]
fn make_places(store: &Store) {
    store.memory.crowd_is_seen_to();
    // What was asked for is done, and says nothing of this: who finds no place is told so.
    let _ = if_there_is_room(settle_the_dead(store));
}

/// Sweeps, unless somebody did so just now.
///
/// # Errors
///
/// What the memory says.
pub(crate) fn sweep_if_due(store: &Store) -> Result<(), Error> {
    abandoned::leave_abandoned(store);
    let view = store.memory.view();
    let word = space_line(&view).word(crate::store::NEXT_SWEEP_MS);
    #[expect(clippy::cast_possible_truncation, reason = "compared as a difference, modulo 2^32")]
    let now_ms = (clock::monotonic_coarse_ns() / 1_000_000) as u32;
    let due_ms = word.load(Ordering::Relaxed);
    if now_ms.wrapping_sub(due_ms).cast_signed() < 0 {
        return Ok(());
    }
    let next = now_ms.wrapping_add(PERIOD_MS);
    if word.compare_exchange(due_ms, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        require_name(store)?;
        timer_leader::note_all_due(store);
        if_there_is_room(settle_the_dead(store))?;
        shrink::shrink(store)?;
    }
    Ok(())
}

/// Looks whether the file of the space still has its name. If it was removed by other means than ours, attached processes
/// would wait for others that can not come: they are told. Not in a space with a journal: it goes on until another process
/// opens its file anew, and then each change is refused.
fn require_name(store: &Store) -> Result<(), Error> {
    if store.layout.journal_bytes == 0 && store.segment.is_missing() {
        store.memory.retire(HowRemoved::Missing);
        store::require_sound(store)?;
    }
    Ok(())
}

/// As [`crate::Engine::sweep`] says.
pub(crate) fn sweep(store: &Store) -> Result<(), Error> {
    settle_all(store)?;
    shrink::shrink(store)
}

/// Cleans up after the dead, if a cheap look shows that there are any.
pub(crate) fn settle_the_dead(store: &Store) -> Result<(), Error> {
    if store.memory.somebody_died() { settle_all(store) } else { Ok(()) }
}

/// Cleans up after every process and thread that is dead by now; leaves it to whoever is at it already.
#[cold]
pub(crate) fn settle_all(store: &Store) -> Result<(), Error> {
    // One at a time: a number that a sweeper has made free is soon another's, who lives.
    let Some(right) = Section::try_enter(&store.memory, head::SWEEP_SCOPE)? else {
        return Ok(());
    };
    settle_each(store, &right)
}

fn settle_each(store: &Store, _right: &Section<'_>) -> Result<(), Error> {
    // Looked for first: who dies from here on is the next sweep's. What the threads of these were in the middle of is
    // undone below, so what is in their names then, they had. A process that dies after its threads were looked at might
    // seem to have a wait node that it only was about to get, which is in the list of free ones.
    let dead_processes: Vec<ParticipantInfo> =
        store.memory.participants().into_iter().filter(|process| !process.alive).collect();
    let mut dead_slots = store.memory.dead_slots();
    // All of them before anything is believed of one: a sweeper among them may have settled what another one held, and that
    // was not certain.
    for (slot, inside) in &mut dead_slots {
        // The sweeper has its own right, also if the dead thread that had it once had the same number.
        let others = scopes(store).filter(|scope| *scope != head::SWEEP_SCOPE);
        inside.extend(others.filter(|scope| store.memory.is_locked_by(*scope, *slot)));
        for scope in inside.iter().copied() {
            // Locking undoes what the dead thread left there.
            drop(Section::enter(&store.memory, scope)?);
        }
    }
    let mut has_freed = false;
    for (slot, _) in dead_slots {
        settle_in_flights(store, slot)?;
        if !store.memory.still_decides(slot)? {
            free_log_run(store, slot)?;
            store.memory.free_slot(slot);
            has_freed = true;
        }
    }
    for dead in dead_processes {
        free_nodes_of(store, dead.number)?;
        (store.callbacks.free_holds_of)(store, dead.number, dead.pid)?;
        store.memory.free_participant(dead.number);
    }
    // What the dead had reserved is room that no tuple has left. Not at every sweep: who is told tries, and sweeps again.
    let granted = if has_freed { grants::grant_to_first(store) } else { Ok(()) };
    // Who waits for room looks around without being told, too; and all that the dead held is back.
    if granted.as_ref().is_err_and(Error::is_stall) { Ok(()) } else { granted }
}

/// Cleans up before a miss is answered where somebody holds tuples: what the dead held comes back first
/// (rule L5). If there is no room to put it back, the miss stands.
///
/// Waits for whoever is at it already, since until then the miss may be wrong. If that one was stopped, this ends as
/// every wait for a lock does, with the error that names it.
#[cold]
#[inline(never)]
pub(crate) fn recall(store: &Store) -> Result<(), Error> {
    abandoned::leave_abandoned(store);
    if !store.memory.somebody_died() {
        return Ok(());
    }
    let right = Section::enter(&store.memory, head::SWEEP_SCOPE)?;
    if_there_is_room(settle_each(store, &right))
}

/// The locks of the space.
pub(crate) fn scopes(store: &Store) -> impl Iterator<Item = u32> {
    let partitions = (0..registry::count(&store.memory.view())).map(partition::scope_of);
    partitions.chain(head::SCOPES)
}

/// Frees or puts back the records that a dead thread had in its hands.
fn settle_in_flights(store: &Store, slot: Slot<'_>) -> Result<(), Error> {
    for word in in_flight::words() {
        settle_in_flight(store, (slot, word), || in_flight::named(slot, word))?;
        // Whoever settled it before may have died before this.
        in_flight::free(slot, word);
    }
    Ok(())
}

/// Frees or puts back the record that a word of a slot names, as `named` tells.
pub(crate) fn settle_in_flight(
    store: &Store,
    (slot, word): (Slot<'_>, usize),
    named: impl Fn() -> u32,
) -> Result<(), Error> {
    let delivery = provide::retry(store, || {
        let mut delivery = waiters::deliver::Delivery::default();
        let Some(held) = held::lock_held(store, &named, false)? else { return Ok(delivery) };
        let Held { mut section, partition, reference, kinds } = held;
        match record::header(section.view(), reference).load(record::STATE) {
            record::RESERVED | record::COPIED => {
                links::free_record(store, &mut section, partition, reference)?;
            }
            record::TAKEN => {
                let back = (reference, Happening::Unpublished);
                delivery = held::give_back(store, &mut section, partition, back, kinds.as_slice())?;
            }
            _ => {}
        }
        in_flight::settle(&mut section, slot, word);
        journal::commit(store, &mut section)?;
        in_flight::free(slot, word);
        Ok(delivery)
    })?;
    delivery.wake(store);
    Ok(())
}

/// Gives the extents of a long log back: a dead thread's, or the caller's own.
pub(crate) fn free_log_run(store: &Store, slot: Slot<'_>) -> Result<(), Error> {
    if log_run(slot).is_none() {
        return Ok(());
    }
    let mut section = Section::enter(&store.memory, head::ARENA_SCOPE)?;
    let slot = section.view().span(section.view().offset_of(slot));
    replace_log_run(store, &mut section, slot, (0, 0))?;
    section.commit()?;
    Ok(())
}

/// Gives the log in `slot` another run, and the extents of the one that it had back, in one section.
fn replace_log_run<'m>(
    store: &Store,
    section: &mut Section<'m>,
    slot: Slot<'m>,
    (run, bytes): (u32, usize),
) -> Result<(), Error> {
    let Some(old) = set_log_run(section, slot, run, bytes) else { return Ok(()) };
    let first = store.layout.extent_of(old);
    let count = arena::entry(section.view(), &store.layout, first).load(arena::LIVE);
    arena::give_back(section, &store.layout, first, count)
}

/// Gives the wait nodes of a dead process back, and the tuples that it was handed.
fn free_nodes_of(store: &Store, participant: u32) -> Result<(), Error> {
    let view = store.memory.view();
    for number in 1..=nodes::used(&view) {
        let node = waiters::node(&view, number);
        if node.load(waiters::OWNER) != participant + 1 {
            continue;
        }
        let want =
            if node.load(waiters::WANT) == Want::Read.number() { Want::Read } else { Want::Take };
        withdraw::withdraw(store, number, want)?;
        node_memory::drop_ring(store, number)?;
        node_memory::drop_template(store, node)?;
        nodes::free_node(store, number)?;
    }
    Ok(())
}

/// Gives this thread a log for long sections, four times as long as the one it has. In a full space its room is looked for
/// in that way.
///
/// # Errors
///
/// [`Error::TransactionTooBig`] beyond the maximum.
#[cold]
pub(crate) fn lengthen_log(store: &Store, gathering: Gathering) -> Result<(), Error> {
    let thread = store.memory.thread()?;
    let entries = thread.log_capacity();
    if entries >= LOG_ENTRIES_MAX {
        return Err(Error::TransactionTooBig { limit: LOG_ENTRIES_MAX as usize });
    }
    let entries = (entries * 4).min(LOG_ENTRIES_MAX);
    let extents = entries.div_ceil(LOG_ENTRIES_PER_EXTENT);
    provide::retry_by(store, gathering, || {
        let mut section = Section::enter(&store.memory, head::ARENA_SCOPE)?;
        let first = arena::take_beyond(&mut section, &store.layout, extents)?;
        arena::mark_run(&section, &store.layout, first, extents, head::ARENA_SCOPE);
        let slot = section.thread().slot();
        let run = (store.layout.extent_granule(first), extents as usize * EXTENT_BYTES);
        replace_log_run(store, &mut section, slot, run)?;
        section.commit()?;
        Ok(())
    })
}

/// Gives this thread's long log back if it lies where the next one to empty a full space may need room.
/// Elsewhere it stays, for the thread's next long step, until a sweep.
#[cold]
pub(crate) fn return_log_reserve(store: &Store) {
    let Ok(thread) = store.memory.thread() else { return };
    let end = log_run(thread.slot()).map_or(0, |run| {
        let first = store.layout.extent_of(run);
        let bytes = (thread.log_capacity() as usize).saturating_mul(tupelo_shm::LOG_ENTRY_BYTES);
        first.saturating_add(u32::try_from(bytes / EXTENT_BYTES).unwrap_or(u32::MAX))
    });
    if end > store.layout.extents_max {
        // The step is done and its result counts. What can not be given back now is found by a sweep.
        let _ = free_log_run(store, thread.slot());
    }
}

/// What became of a sweep that somebody made in passing: if there was no room to put something back, the next one will.
fn if_there_is_room(swept: Result<(), Error>) -> Result<(), Error> {
    match swept {
        Err(Error::SpaceFull(_) | Error::JournalFull { .. } | Error::Storage(_)) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests;
