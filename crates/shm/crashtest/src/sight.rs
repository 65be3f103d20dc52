//! What others can tell of a process that dies now.
//!
//! Its own memory is gone with it. What stays is what it wrote to the memory that it shares, what it asked the kernel
//! for, and the locks that it holds: those the kernel finds in its robust list, which is its own memory, but read after its
//! death. Two deaths between which none of these has changed are the same death.

use std::collections::{BTreeSet, HashMap};
use std::mem;

use crate::memory::{Region, Snapshot};
use crate::tracee::Tracee;

/// What others see of a traced process, as far as they can when it dies.
pub(crate) struct Sight<'a> {
    tracee: &'a Tracee,
    memory: Vec<Snapshot>,
    /// Where the kernel finds its locks, and what stands there.
    list: (usize, [i64; 3]),
    /// Whether its next instruction is a call of the kernel. True at first: nothing was seen before.
    calls: bool,
    /// The same of each instruction that was seen.
    known_calls: HashMap<usize, bool>,
}

impl<'a> Sight<'a> {
    /// What is to be seen of a process that writes to these pages and no others of the regions.
    pub(crate) fn of(tracee: &'a Tracee, regions: &[Region], written: &BTreeSet<usize>) -> Self {
        let snapshot = |region: &Region| {
            region.snapshot_of(written.iter().filter_map(|&address| region.page_at(address)))
        };
        Self {
            tracee,
            memory: regions.iter().map(snapshot).collect(),
            list: (0, [0; 3]),
            calls: true,
            known_calls: HashMap::new(),
        }
    }

    /// Whether the instruction that was just executed changed anything; `next` is the address of the one to come.
    pub(crate) fn changes(&mut self, next: usize) -> bool {
        let tracee = self.tracee;
        let is_call = *self.known_calls.entry(next).or_insert_with(|| tracee.calls_kernel(next));
        let has_called = mem::replace(&mut self.calls, is_call);
        if has_called {
            // Only now may there be another list.
            self.list.0 = tracee.robust_list();
        }
        let list = tracee.words(self.list.0);
        let has_linked = mem::replace(&mut self.list.1, list) != list;
        // All of them, not only until one differs: each has to know what stands there now.
        let has_written =
            self.memory.iter_mut().map(Snapshot::renew).filter(|is_other| *is_other).count() > 0;
        has_called || has_linked || has_written
    }
}
