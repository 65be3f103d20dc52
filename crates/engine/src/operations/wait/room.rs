//! Waiting for room in a full space (rule B1): first come, first served.
//!
//! Who waits for room owns a wait node that wants no tuple, in a line of its own under the lock of the wide waiters. A
//! removal tells the first in line, and only that one (T4), and notes that it has the *turn*: other puts leave the
//! room to it ([`crate::waiters::turns`]). Whoever leaves the line, served or not, hands the turn to the next; the sweeper does it
//! for the dead.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tupelo_tuple::TemplateRef;

use crate::Engine;
use crate::base::error::Error;
use crate::base::want::Want;
use crate::operations::wait::{self, Waiter};
use crate::store::wide;
use crate::waiters::turns::OWN_PLACE;

/// Forgets the place in line again, also if the put panics.
struct Placed;

impl Drop for Placed {
    fn drop(&mut self) {
        OWN_PLACE.set(0);
    }
}

/// As [`crate::Engine::room`] says.
pub(crate) fn room(engine: &Arc<Engine>) -> Result<Waiter, Error> {
    wait::waiter(engine, &[TemplateRef::beginning(&[])], Want::Room)
}

impl Waiter {
    /// Runs `put` for this place in line for room: it may use the turn that the place was given.
    pub fn in_turn<R>(&self, put: impl FnOnce() -> R) -> R {
        let (own, view) = (self.number(), self.engine.memory.view());
        let line = wide::wide_line(&view);
        let (turn, tries) = (line.word(wide::ROOM_TURN), line.word(wide::ROOM_TRIES));
        if turn.load(Ordering::Relaxed) == own {
            tries.store(own, Ordering::Relaxed);
        }
        OWN_PLACE.set(own);
        let _placed = Placed;
        put()
    }
}
