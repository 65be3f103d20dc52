//! What calls of this process have left behind, to be settled later.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use tupelo_shm::Slot;
use tupelo_shm::process::fork_generation;

use crate::base::want::Want;
use crate::store::{Store, in_flight};

/// What one process left.
#[derive(Default)]
pub(crate) struct Abandoned {
    /// Whether there is any: asked often.
    pub(crate) is_some: AtomicBool,
    all: Mutex<Vec<Left>>,
}

#[derive(Clone, Copy)]
pub(crate) struct Left {
    pub(crate) what: What,
    /// The child of a fork leaves its parent's alone.
    pub(crate) fork_generation: u32,
}

#[derive(Clone, Copy)]
pub(crate) enum What {
    Place(Place),
    Hand(Hand),
}

#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) number: u32,
    pub(crate) want: Want,
}

/// The word in a thread's slot that names the record in its hands.
#[derive(Clone, Copy)]
pub(crate) struct Hand {
    /// Where the slot is, and whose it was: when the thread has ended, the sweep settles what it had, and the slot may be
    /// another's.
    pub(crate) slot: usize,
    pub(crate) owner: (u32, u64),
    pub(crate) word: usize,
}

impl Hand {
    /// The record; 0 if it was settled.
    pub(crate) fn record(self, store: &Store) -> u32 {
        let slot = self.slot(store);
        let is_its = store.memory.owner_of(slot) == Some(self.owner);
        if is_its { in_flight::named(slot, self.word) } else { 0 }
    }

    pub(crate) fn slot(self, store: &Store) -> Slot<'_> {
        store.memory.view().span(self.slot)
    }
}

impl Left {
    pub(crate) fn new(what: What) -> Self {
        Self { what, fork_generation: fork_generation() }
    }
}

impl Abandoned {
    pub(crate) fn add(&self, left: Left) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(left);
        self.is_some.store(true, Ordering::Release);
    }

    pub(crate) fn take(&self) -> Vec<Left> {
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
