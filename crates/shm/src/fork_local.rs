//! What each process has for itself, behind a lock.
//!
//! The child of a fork has a copy of its parent's memory. That includes locks that other threads of the parent held at
//! that moment: in the child no thread lets them go. So a lock counts for one generation of forks, and a child waits
//! for no lock of its parent's.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::process::{fork_generation, watch_forks};

/// In a line of forks each from the child of the last, the slots begin again after so many; they are few words each.
const SLOTS: usize = 16;

/// Something of which each process has its own, and which the threads of a process share.
#[derive(Debug)]
pub struct ForkLocal<T> {
    slots: [Mutex<Slot<T>>; SLOTS],
}

/// What one process has.
#[derive(Debug)]
pub struct Slot<T> {
    /// Which process that is, as forks are counted.
    fork_generation: u32,
    content: Option<T>,
}

impl<T> ForkLocal<T> {
    /// Nothing yet, in any process.
    pub const fn new() -> Self {
        let slots = [const { Mutex::new(Slot { fork_generation: 0, content: None }) }; SLOTS];
        Self { slots }
    }

    /// Locks what this process has. The child of a fork begins with what `inherit` makes of the copy that it has of its
    /// parent's, unless that was locked.
    pub fn lock(&self, inherit: impl FnOnce(T) -> Option<T>) -> MutexGuard<'_, Slot<T>> {
        watch_forks();
        let fork_generation = fork_generation();
        // A change leaves it whole after each step: a panic does no harm.
        let slot = self.slots[number_of(fork_generation)].lock();
        let mut slot = slot.unwrap_or_else(PoisonError::into_inner);
        if slot.fork_generation != fork_generation {
            let parents = self.slots[number_of(fork_generation.wrapping_sub(1))].try_lock();
            let copy = parents.ok().and_then(|mut parents| parents.content.take());
            *slot = Slot { fork_generation, content: copy.and_then(inherit) };
        }
        slot
    }

    /// What this process has, if it has anything.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        let fork_generation = fork_generation();
        let slot = self.slots[number_of(fork_generation)].get_mut();
        let slot = slot.unwrap_or_else(PoisonError::into_inner);
        if slot.fork_generation == fork_generation { slot.content.as_mut() } else { None }
    }
}

impl<T> Default for ForkLocal<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slot<T> {
    /// The value of the process; at first nothing.
    pub fn content_mut(&mut self) -> &mut Option<T> {
        &mut self.content
    }
}

impl<T: Default> Slot<T> {
    /// The value of the process; at first the default.
    pub fn content(&mut self) -> &mut T {
        self.content.get_or_insert_default()
    }
}

const fn number_of(fork_generation: u32) -> usize {
    fork_generation as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use tupelo_crashtest::{Exit, fork};

    use super::ForkLocal;

    #[test]
    fn the_child_of_a_fork_begins_with_a_copy_unless_that_is_locked_and_has_its_own() {
        let own: ForkLocal<Vec<u32>> = ForkLocal::new();
        own.lock(Some).content().push(1);
        for is_locked in [false, true] {
            let locked = is_locked.then(|| own.lock(Some));
            let child = fork(|| {
                assert_eq!(own.lock(Some).content().len(), usize::from(!is_locked));
                own.lock(Some).content().push(2);
                let grandchild = fork(|| own.lock(|_| None).content().push(3));
                assert_eq!(grandchild.wait(), Exit::Done);
                assert_eq!(own.lock(Some).content().last(), Some(&2));
            });
            drop(locked);
            assert_eq!(child.wait(), Exit::Done);
        }
        assert_eq!(*own.lock(Some).content(), [1]);
    }
}
