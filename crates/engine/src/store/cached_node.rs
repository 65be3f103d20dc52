//! The wait node that a process keeps at hand.

use std::sync::atomic::{AtomicU64, Ordering};

use tupelo_shm::process::fork_generation;

/// The wait node that this process waited in last, kept for its next wait: whoever waits often, and briefly, needs no
/// lock for it. It is the process's own all the while, so it goes with it if it dies.
#[derive(Default)]
pub(crate) struct CachedNode {
    /// Its number, 0 if there is none, below the count of forks at which it was kept: a child must not use
    /// its parent's.
    word: AtomicU64,
}

impl CachedNode {
    /// Takes it out.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are meant")]
    pub(crate) fn take(&self) -> Option<u32> {
        // Acquire pairs with the Release in `keep`: its last user has done with it.
        let word = self.word.swap(0, Ordering::Acquire);
        let is_own = (word >> 32) as u32 == fork_generation();
        (is_own && word as u32 != 0).then_some(word as u32)
    }

    /// Keeps a wait node, unless there is one. Returns whether it does.
    pub(crate) fn keep(&self, number: u32) -> bool {
        let word = u64::from(fork_generation()) << 32 | u64::from(number);
        self.word.compare_exchange(0, word, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}
