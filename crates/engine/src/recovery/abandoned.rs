//! What a call of this process left behind, since a lock was not to be had for ten seconds: its holder was stopped. A place in
//! line whose owner is gone would be handed tuples that nobody picks up; a large tuple that a call had in hands would be
//! nobody's for as long as its thread lives. Both are settled as soon as that goes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use tupelo_shm::{Section, Slot, process::fork_generation};

use crate::Engine;
use crate::base::error::Error;
use crate::base::layout::head;
use crate::store::flight::{self, Flight};
use crate::store::stripe;
use crate::waiters::{RECORD, SCOPE, Want, cell};

/// What one process left.
#[derive(Default)]
pub(crate) struct Abandoned {
    /// Whether there is any: asked often.
    is_some: AtomicBool,
    all: Mutex<Vec<Left>>,
}

#[derive(Clone, Copy)]
struct Left {
    what: What,
    /// The child of a fork leaves its parent's alone.
    fork_generation: u32,
}

#[derive(Clone, Copy)]
enum What {
    Place(Place),
    Hand(Hand),
}

#[derive(Clone, Copy)]
struct Place {
    number: u32,
    want: Want,
}

/// The word in a thread's slot that names the record in its hands.
#[derive(Clone, Copy)]
struct Hand {
    /// Where the slot is, and whose it was: when the thread has ended, the sweep settles what it had, and the slot may be
    /// another's.
    slot: usize,
    owner: (u32, u64),
    word: usize,
}

impl Hand {
    /// The record; 0 if it was settled.
    fn record(self, engine: &Engine) -> u32 {
        let slot = self.slot(engine);
        let is_its = engine.memory.owner_of(slot) == Some(self.owner);
        if is_its { flight::named(slot, self.word) } else { 0 }
    }

    fn slot(self, engine: &Engine) -> Slot<'_> {
        engine.memory.view().span(self.slot)
    }
}

impl Left {
    fn new(what: What) -> Self {
        Self { what, fork_generation: fork_generation() }
    }
}

impl Abandoned {
    fn add(&self, left: Left) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(left);
        self.is_some.store(true, Ordering::Release);
    }

    fn take(&self) -> Vec<Left> {
        if !self.is_some.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        match self.all.try_lock() {
            Ok(mut all) => std::mem::take(&mut all),
            Err(TryLockError::Poisoned(poisoned)) => std::mem::take(&mut poisoned.into_inner()),
            // Another thread is at it; or a thread of the parent was, when this process was forked.
            Err(TryLockError::WouldBlock) => {
                self.is_some.store(true, Ordering::Release);
                Vec::new()
            }
        }
    }
}

impl Engine {
    /// Takes a cell of this process out of line, puts back what it was handed, and gives it back; later, if that fails.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub(crate) fn leave_line(&self, number: u32, want: Want) -> Result<(), Error> {
        let place = Place { number, want };
        self.leave(place).inspect_err(|_| self.abandoned.add(Left::new(What::Place(place))))
    }

    /// Gives a cell of this process back that is linked nowhere and holds no record; later, if that fails: it has nothing to do
    /// with what its owner was given.
    pub(crate) fn give_cell_back(&self, number: u32, want: Want) {
        let place = Place { number, want };
        if self.free_place(place).is_err() {
            self.abandoned.add(Left::new(What::Place(place)));
        }
    }

    /// Notes that this thread could not let go of what a flight of it names: it is put back, or freed, later.
    #[cold]
    pub(crate) fn abandon_flight(&self, flight: &Flight) {
        // The thread has a slot, since the flight has begun.
        let Ok(thread) = self.memory.thread() else { return };
        let Some(owner) = self.memory.owner_of(thread.slot()) else { return };
        let slot = self.memory.view().offset_of(thread.slot());
        let hand = Hand { slot, owner, word: flight.word() };
        self.abandoned.add(Left::new(What::Hand(hand)));
    }

    /// Settles what could not be settled before, as far as that goes by now.
    pub(crate) fn leave_abandoned(&self) {
        for left in self.abandoned.take() {
            let is_own = left.fork_generation == fork_generation();
            if is_own && !self.is_left(left.what) {
                self.abandoned.add(left);
            }
        }
    }

    fn is_left(&self, what: What) -> bool {
        match what {
            What::Place(place) => self.may_leave(place) && self.leave(place).is_ok(),
            What::Hand(hand) => self.may_let_go(hand) && matches!(self.let_go(hand), Ok(true)),
        }
    }

    /// Whether nobody stays inside of the locks that leaving takes, by a look: who comes by must not wait for somebody who is
    /// stopped, too.
    fn may_leave(&self, Place { number, .. }: Place) -> bool {
        let view = self.memory.view();
        let own = cell(&view, number).load(SCOPE);
        let Ok(shape) = self.shape_of_held(|| cell(&view, number).load(RECORD)) else {
            return false;
        };
        self.are_free(&[own, shape.map_or(0, stripe::scope_of), head::CELLS_SCOPE])
    }

    /// As [`Engine::may_leave`].
    fn may_let_go(&self, hand: Hand) -> bool {
        let shape = self.shape_of_held(|| hand.record(self));
        shape.is_ok_and(|shape| self.are_free(&[shape.map_or(0, stripe::scope_of)]))
    }

    /// Whether nobody stays inside of these locks (0 is none), nor of those that whatever is given back may take: of the wide
    /// waiters, who may be waiting for it, and of the arena. One after the other, and none held over the next.
    fn are_free(&self, scopes: &[u32]) -> bool {
        let is_free = |scope| matches!(self.enter_if_free(scope), Ok(Some(_)));
        let all = scopes.iter().copied().chain([head::WIDE_SCOPE, head::ARENA_SCOPE]);
        all.filter(|scope| *scope != 0).all(is_free)
    }

    /// Can be done again from the beginning, wherever it ended.
    fn leave(&self, place: Place) -> Result<(), Error> {
        self.withdraw(place.number, place.want)?;
        self.free_place(place)
    }

    fn free_place(&self, Place { number, want }: Place) -> Result<(), Error> {
        if want == Want::Events {
            self.drop_ring(number)?;
        }
        self.drop_template(cell(&self.memory.view(), number))?;
        self.release_cell(number)
    }

    /// Puts back, or frees, what was left in a thread's hands. Returns whether it did: not beside somebody who cleans up, since
    /// the thread may have ended, and its slot be given to another before this is certain.
    fn let_go(&self, hand: Hand) -> Result<bool, Error> {
        let Some(_right) = Section::try_enter(&self.memory, head::SWEEP_SCOPE)? else {
            return Ok(false);
        };
        let slot = hand.slot(self);
        self.settle_flight((slot, hand.word), || hand.record(self))?;
        flight::free(slot, hand.word);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tupelo_tuple::{Field, PatternRef, TemplateRef};

    use super::*;
    use crate::testing;

    #[test]
    fn who_stays_inside_of_any_lock_that_leaving_takes_is_seen_t5() {
        let engine = Arc::new(testing::engine(8 << 20));
        engine.put(&[Field::Int(1)]).unwrap();
        let patterns = [PatternRef::Actual(Field::Int(2))];
        let waiter = engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
        let place = Place { number: waiter.number, want: waiter.want };
        let own = cell(&engine.memory.view(), place.number).load(SCOPE);
        assert_eq!(own, stripe::scope_of(0), "in the line of its shape");
        assert!(engine.may_leave(place));
        for scope in [own, head::CELLS_SCOPE, head::WIDE_SCOPE, head::ARENA_SCOPE] {
            let inside = Section::enter(&engine.memory, scope).unwrap();
            let looks =
                || std::thread::scope(|scope| scope.spawn(|| engine.may_leave(place)).join());
            assert!(!looks().unwrap(), "in {scope}");
            drop(inside);
            assert!(looks().unwrap(), "in {scope}");
        }
    }
}
