//! Cleaning up after the dead (rules C1, L5), by whoever comes by: there is no daemon.
//!
//! What a dead thread left inside a lock is undone by the next locker ([`tupelo_shm::Section`]). What it
//! left between two sections is named in its thread slot or in a waiter's cell: reserved records are freed,
//! held ones go back to their place. Every step is a small section, so a killed sweeper is just repeated.

use std::sync::atomic::Ordering;

use tupelo_shm::{
    PARTICIPANTS_MAX, ParticipantInfo, Section, Slot, THREADS_MAX, View, clock, log_run,
    set_log_run,
};

use tupelo_tuple::TemplateRef;

use crate::Engine;
use crate::base::error::Error;
use crate::base::layout::{EXTENT_BYTES, LOG_ENTRIES_MAX, LOG_ENTRIES_PER_EXTENT, head};
use crate::engine::space_line;
use crate::operations::targets::Targets;
use crate::recovery::held::Held;
use crate::recovery::provide::Gathering;
use crate::store::stripe::{self, Stripe};
use crate::store::{arena, flight, record, registry};
use crate::time::list::List;
use crate::waiters::events::Happening;
use crate::waiters::{self, Want, cells};

/// Whether a look at all of one moment has yet to be preceded by [`Engine::recall`]. Asked under the locks: what a
/// process held that died inside of one of them is known only when the next one to lock has undone what it did there.
#[derive(Default)]
pub(crate) struct FirstLook {
    is_over: bool,
}

impl FirstLook {
    /// Whether tuples of `targets` are hidden, at the first look: then its locks are given up, what the dead held is
    /// recalled, and the look begins anew.
    pub(crate) fn needs_recall(&mut self, view: &View<'_>, targets: &Targets<'_>) -> bool {
        let hides = |shape| Stripe::of_shape(view, shape).hides_some();
        !std::mem::replace(&mut self.is_over, true)
            && targets.all.iter().any(|target| hides(target.shape))
    }
}

/// Shortest time between two sweeps of a space by those who wait, in milliseconds. Somebody blocked looks
/// around every 100 ms, and is to see by then what a dead process held (rule L5).
const PERIOD_MS: u32 = 90;

impl Engine {
    /// Sweeps if it is time, or if more than half of the places for processes or threads are taken: those of
    /// the dead would fill them up, if nobody ever waited here.
    pub(crate) fn sweep_at_attach(&self) -> Result<(), Error> {
        let is_crowded = 2 * self.memory.participants_count() > PARTICIPANTS_MAX
            || 2 * self.memory.slots_used() > THREADS_MAX;
        if is_crowded { if_there_is_room(self.sweep()) } else { self.sweep_if_due() }
    }

    /// Cleans up after the dead, if a thread of this process has found most places taken when it came. Called at the end of
    /// what may be all that a process does here.
    #[inline(always)]
    pub(crate) fn see_to_crowd(&self) {
        if self.memory.is_crowded() {
            self.make_places();
        }
    }

    #[cold]
    #[inline(never)]
    fn make_places(&self) {
        self.memory.crowd_is_seen_to();
        // What was asked for is done, and says nothing of this: who finds no place is told so.
        let _ = if_there_is_room(self.settle_the_dead());
    }

    /// Sweeps, unless somebody did so just now.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub(crate) fn sweep_if_due(&self) -> Result<(), Error> {
        self.leave_abandoned();
        let view = self.memory.view();
        let word = space_line(&view).word(crate::engine::NEXT_SWEEP_MS);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "compared as a difference, modulo 2^32"
        )]
        let now_ms = (clock::monotonic_coarse_ns() / 1_000_000) as u32;
        let due_ms = word.load(Ordering::Relaxed);
        if now_ms.wrapping_sub(due_ms).cast_signed() < 0 {
            return Ok(());
        }
        let next = now_ms.wrapping_add(PERIOD_MS);
        if word.compare_exchange(due_ms, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.note_all_due();
            if_there_is_room(self.settle_the_dead())?;
            self.shrink()?;
        }
        Ok(())
    }

    /// Cleans up after every process and thread that is dead by now, and gives memory back to the system that
    /// was free at the last sweep, too; leaves it to whoever is at it already.
    ///
    /// # Errors
    ///
    /// What the memory says; what was done stays done.
    pub fn sweep(&self) -> Result<(), Error> {
        self.settle_all()?;
        self.shrink()
    }

    /// Cleans up after the dead, if a cheap look shows that there are any.
    pub(crate) fn settle_the_dead(&self) -> Result<(), Error> {
        if self.memory.somebody_died() { self.settle_all() } else { Ok(()) }
    }

    /// Cleans up after every process and thread that is dead by now; leaves it to whoever is at it already.
    #[cold]
    pub(crate) fn settle_all(&self) -> Result<(), Error> {
        // One at a time: a number that a sweeper has made free is soon another's, who lives.
        let Some(right) = Section::try_enter(&self.memory, head::SWEEP_SCOPE)? else {
            return Ok(());
        };
        self.settle_each(&right)
    }

    fn settle_each(&self, _right: &Section<'_>) -> Result<(), Error> {
        // Looked for first: who dies from here on is the next sweep's. What the threads of these were in the middle of is
        // undone below, so what is in their names then, they had. A process that dies after its threads were looked at might
        // seem to have a cell that it only was about to get, which is in the list of free ones.
        let dead_processes: Vec<ParticipantInfo> =
            self.memory.participants().into_iter().filter(|process| !process.alive).collect();
        let mut dead_slots = self.memory.dead_slots();
        // All of them before anything is believed of one: a sweeper among them may have settled what another one held, and that
        // was not certain.
        for (slot, scopes) in &mut dead_slots {
            // The sweeper has its own right, also if the dead thread that had it once had the same number.
            let others = self.scopes().filter(|scope| *scope != head::SWEEP_SCOPE);
            scopes.extend(others.filter(|scope| self.memory.is_locked_by(*scope, *slot)));
            for scope in scopes.iter().copied() {
                // Locking undoes what the dead thread left there.
                drop(Section::enter(&self.memory, scope)?);
            }
        }
        let mut has_freed = false;
        for (slot, _) in dead_slots {
            self.settle_flights(slot)?;
            if !self.memory.still_decides(slot)? {
                self.free_log_run(slot)?;
                self.memory.free_slot(slot);
                has_freed = true;
            }
        }
        for dead in dead_processes {
            self.free_cells_of(dead.number)?;
            self.free_holds_of(dead.number, dead.pid)?;
            self.memory.free_participant(dead.number);
        }
        // What the dead had reserved is room that no tuple has left. Not at every sweep: who is told tries, and sweeps again.
        let told = if has_freed { self.tell_first_for_room() } else { Ok(()) };
        // Who waits for room looks around without being told, too; and all that the dead held is back.
        if told.as_ref().is_err_and(Error::is_stall) { Ok(()) } else { told }
    }

    /// Cleans up before a miss is answered where somebody holds tuples: what the dead held comes back first
    /// (rule L5). If there is no room to put it back, the miss stands.
    ///
    /// Waits for whoever is at it already, since until then the miss may be wrong. If that one was stopped, this ends as
    /// every wait for a lock does, with the error that names it.
    #[cold]
    #[inline(never)]
    pub(crate) fn recall(&self) -> Result<(), Error> {
        self.leave_abandoned();
        if !self.memory.somebody_died() {
            return Ok(());
        }
        let right = Section::enter(&self.memory, head::SWEEP_SCOPE)?;
        if_there_is_room(self.settle_each(&right))
    }

    /// As [`Engine::recall`], if tuples of a shape that `template` can match are held. Returns whether they are.
    #[cold]
    pub(crate) fn recall_matches_of(&self, template: &[TemplateRef<'_>]) -> Result<bool, Error> {
        let view = self.memory.view();
        let held = |shape| Stripe::of_shape(&view, shape).hides_some();
        let is_held = self.fitting(template).into_iter().any(|(_, shape)| held(shape));
        if is_held {
            self.recall()?;
        }
        Ok(is_held)
    }

    /// The locks of the space.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = u32> {
        let stripes = (0..registry::count(&self.memory.view())).map(stripe::scope_of);
        stripes.chain(head::SCOPES)
    }

    /// Frees or puts back the records that a dead thread had in its hands.
    fn settle_flights(&self, slot: Slot<'_>) -> Result<(), Error> {
        for word in flight::words() {
            self.settle_flight((slot, word), || flight::named(slot, word))?;
            // Whoever settled it before may have died before this.
            flight::free(slot, word);
        }
        Ok(())
    }

    /// Frees or puts back the record that a word of a slot names, as `named` tells.
    pub(crate) fn settle_flight(
        &self,
        (slot, word): (Slot<'_>, usize),
        named: impl Fn() -> u32,
    ) -> Result<(), Error> {
        let delivery = self.retry(|| {
            let mut delivery = waiters::deliver::Delivery::default();
            let Some(held) = self.lock_held(&named, false)? else { return Ok(delivery) };
            let Held { mut section, stripe, reference, kinds } = held;
            match record::header(section.view(), reference).load(record::STATE) {
                record::RESERVED | record::COPIED => {
                    self.free_record(&mut section, stripe, reference)?;
                }
                record::TAKEN => {
                    let back = (reference, Happening::Unheard);
                    delivery = self.give_back(&mut section, stripe, back, kinds.as_slice())?;
                }
                _ => {}
            }
            flight::settle(&mut section, slot, word);
            section.commit()?;
            flight::free(slot, word);
            Ok(delivery)
        })?;
        delivery.wake(self);
        Ok(())
    }

    /// Gives the extents of a long log back: a dead thread's, or the caller's own.
    pub(crate) fn free_log_run(&self, slot: Slot<'_>) -> Result<(), Error> {
        if log_run(slot).is_none() {
            return Ok(());
        }
        let mut section = Section::enter(&self.memory, head::ARENA_SCOPE)?;
        let slot = section.view().span(section.view().offset_of(slot));
        self.replace_log_run(&mut section, slot, (0, 0))?;
        section.commit()?;
        Ok(())
    }

    /// Gives the log in `slot` another run, and the extents of the one that it had back, in one section.
    fn replace_log_run<'m>(
        &self,
        section: &mut Section<'m>,
        slot: Slot<'m>,
        (run, bytes): (u32, usize),
    ) -> Result<(), Error> {
        let Some(old) = set_log_run(section, slot, run, bytes) else { return Ok(()) };
        let first = self.layout.extent_of(old);
        let count = arena::entry(section.view(), &self.layout, first).load(arena::LIVE);
        arena::give_back(section, &self.layout, first, count)
    }

    /// Gives back what a dead process had claimed, or in a transaction.
    fn free_holds_of(&self, participant: u32, pid: u32) -> Result<(), Error> {
        let view = self.memory.view();
        for shape in 0..registry::count(&view) {
            let (stripe, scope) = (Stripe::of_shape(&view, shape), stripe::scope_of(shape));
            if !List::Claimed.is_empty(stripe) {
                self.fail_claims_of(participant, pid, scope)?;
            }
            if !List::Enlisted.is_empty(stripe) || !List::Locks.is_empty(stripe) {
                self.free_enlisted_of(participant, scope)?;
            }
        }
        Ok(())
    }

    /// Gives the cells of a dead process back, and the tuples that it was handed.
    fn free_cells_of(&self, participant: u32) -> Result<(), Error> {
        let view = self.memory.view();
        for number in 1..=cells::used(&view) {
            let cell = waiters::cell(&view, number);
            if cell.load(waiters::OWNER) != participant + 1 {
                continue;
            }
            let want = if cell.load(waiters::WANT) == Want::Read.number() {
                Want::Read
            } else {
                Want::Take
            };
            self.withdraw(number, want)?;
            self.drop_ring(number)?;
            self.drop_template(cell)?;
            self.free_cell(number)?;
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
    pub(crate) fn lengthen_log(&self, gathering: Gathering) -> Result<(), Error> {
        let thread = self.memory.thread()?;
        let entries = thread.log_capacity();
        if entries >= LOG_ENTRIES_MAX {
            return Err(Error::TransactionTooBig { limit: LOG_ENTRIES_MAX as usize });
        }
        let entries = (entries * 4).min(LOG_ENTRIES_MAX);
        let extents = entries.div_ceil(LOG_ENTRIES_PER_EXTENT);
        self.retry_by(gathering, || {
            let mut section = Section::enter(&self.memory, head::ARENA_SCOPE)?;
            let first = arena::take_beyond(&mut section, &self.layout, extents)?;
            arena::mark_run(&section, &self.layout, first, extents, head::ARENA_SCOPE);
            let slot = section.thread().slot();
            let run = (self.layout.extent_granule(first), extents as usize * EXTENT_BYTES);
            self.replace_log_run(&mut section, slot, run)?;
            section.commit()?;
            Ok(())
        })
    }

    /// Gives this thread's long log back if it lies where the next one to empty a full space may need room.
    /// Elsewhere it stays, for the thread's next long step, until a sweep.
    #[cold]
    pub(crate) fn return_log_reserve(&self) {
        let Ok(thread) = self.memory.thread() else { return };
        let end = log_run(thread.slot()).map_or(0, |run| {
            let first = self.layout.extent_of(run);
            let bytes =
                (thread.log_capacity() as usize).saturating_mul(tupelo_shm::LOG_ENTRY_BYTES);
            first.saturating_add(u32::try_from(bytes / EXTENT_BYTES).unwrap_or(u32::MAX))
        });
        if end > self.layout.extents_max {
            // The step is done and its result counts. What can not be given back now is found by a sweep.
            let _ = self.free_log_run(thread.slot());
        }
    }
}

/// What became of a sweep that somebody made in passing: if there was no room to put something back, the next one will.
fn if_there_is_room(swept: Result<(), Error>) -> Result<(), Error> {
    match swept {
        Err(Error::SpaceFull(_)) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests;
