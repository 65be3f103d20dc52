//! Waiting for room in a full space (rule B1): first come, first served.
//!
//! Who waits for room owns a wait node that wants no tuple, in a line of its own under the lock of the multi-shape waiters. A
//! removal tells the first in the wait queue, and only that one (T4), and notes that it has the *grant*: other puts leave the
//! room to it ([`crate::waiters::grants`]). Whoever leaves the wait queue, served or not, hands the grant to the next; the sweeper does it
//! for the dead.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tupelo_tuple::TemplateRef;

use crate::Engine;
use crate::base::error::Error;
use crate::base::want::Want;
use crate::operations::wait::{self, Waiter};
use crate::store::multi_shape;
use crate::waiters::grants::OWN_PLACE;

/// Forgets the place in the wait queue again, also if the put panics.
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
    /// Runs `put` for this place in the wait queue for room: it may use the grant that the place was given.
    pub fn with_grant<R>(&self, put: impl FnOnce() -> R) -> R {
        let (own, view) = (self.number(), self.engine.memory.view());
        let line = multi_shape::multi_shape_line(&view);
        let (grant, tries) =
            (line.word(multi_shape::ROOM_GRANT), line.word(multi_shape::ROOM_TRIES));
        if grant.load(Ordering::Relaxed) == own {
            tries.store(own, Ordering::Relaxed);
        }
        OWN_PLACE.set(own);
        let _placed = Placed;
        put()
    }
}
