//! Places in line whose owner is gone and could not leave them: a lock was not to be had for ten seconds, since its holder was
//! stopped. They would be handed tuples that nobody picks up, so they are left as soon as that goes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tupelo_shm::{Section, process::fork_generation};

use super::{RECORD, SCOPE, Want, cell};
use crate::Engine;
use crate::error::Error;
use crate::layout::head;
use crate::stripe;

/// Those of one process.
#[derive(Default)]
pub(crate) struct Abandoned {
    /// Whether there are any: asked often.
    is_some: AtomicBool,
    places: Mutex<Vec<Place>>,
}

#[derive(Clone, Copy)]
struct Place {
    number: u32,
    want: Want,
    /// The child of a fork leaves its parent's alone.
    fork_generation: u32,
}

impl Abandoned {
    fn add(&self, place: Place) {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).push(place);
        self.is_some.store(true, Ordering::Release);
    }

    fn take(&self) -> Vec<Place> {
        if !self.is_some.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut *self.places.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Engine {
    /// Takes a cell of this process out of line, puts back what it was handed, and gives it back; later, if that fails.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub(super) fn leave_line(&self, number: u32, want: Want) -> Result<(), Error> {
        let place = Place { number, want, fork_generation: fork_generation() };
        self.leave(place).inspect_err(|_| self.abandoned.add(place))
    }

    /// Gives a cell of this process back that is linked nowhere and holds no record; later, if that fails: it has nothing to do
    /// with what its owner was given.
    pub(super) fn give_cell_back(&self, number: u32, want: Want) {
        let place = Place { number, want, fork_generation: fork_generation() };
        if self.free_place(place).is_err() {
            self.abandoned.add(place);
        }
    }

    /// Leaves the places that could not be left before, as far as that goes by now.
    pub(crate) fn leave_abandoned(&self) {
        for place in self.abandoned.take() {
            let is_own = place.fork_generation == fork_generation();
            if is_own && (!self.may_leave(place) || self.leave(place).is_err()) {
                self.abandoned.add(place);
            }
        }
    }

    /// Whether nobody is inside the locks that leaving takes, by a look: who comes by must not wait for somebody who is
    /// stopped, too.
    fn may_leave(&self, Place { number, .. }: Place) -> bool {
        let view = self.memory.view();
        let own = cell(&view, number).load(SCOPE);
        let Ok(shape) = self.shape_of_held(|| cell(&view, number).load(RECORD)) else {
            return false;
        };
        let scopes = [own, shape.map_or(0, stripe::scope_of), head::CELLS_SCOPE, head::ARENA_SCOPE];
        let is_free = |scope| matches!(Section::try_enter(&self.memory, scope), Ok(Some(_)));
        scopes.into_iter().filter(|scope| *scope != 0).all(is_free)
    }

    /// Can be done again from the beginning, wherever it ended.
    fn leave(&self, place: Place) -> Result<(), Error> {
        self.withdraw(place.number, place.want)?;
        self.free_place(place)
    }

    fn free_place(&self, Place { number, want, .. }: Place) -> Result<(), Error> {
        if want == Want::Events {
            self.drop_ring(number)?;
        }
        self.drop_template(cell(&self.memory.view(), number))?;
        self.release_cell(number)
    }
}
