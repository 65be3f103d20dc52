//! The way of a script by what others can tell of it.

use std::collections::HashMap;

use crate::experiment::Script;
use crate::memory::Region;
use crate::supervised::Supervised;
use crate::tracee::Stop;

/// Most changes of a script: half a minute to go through them.
const CHANGES_MAX: usize = 200_000;

/// Where a process stands at the beginning of its script, and behind each instruction that changes anything that others see.
pub(crate) struct Changes {
    addresses: Vec<usize>,
    /// Of the instructions that write: where the next one begins.
    behind: HashMap<usize, usize>,
}

impl Changes {
    /// Has a process go through the script.
    ///
    /// # Panics
    ///
    /// If there are more changes than anybody will wait for.
    pub(crate) fn record<C>(script: &Script<'_, C>, regions: &[Region]) -> Self {
        let mut process = Supervised::start(script, regions, HashMap::new());
        let mut addresses = vec![process.position()];
        while let Stop::At(address) = process.next() {
            addresses.push(address);
            assert!(addresses.len() <= CHANGES_MAX, "the script changes too much");
        }
        let behind = process.behind().clone();
        process.kill();
        Self { addresses, behind }
    }

    /// How many there are: the index that stands for the end of the script.
    pub(crate) const fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Brings a process behind so many changes and kills it there. Returns its number, and whether it stood where the first
    /// one did.
    pub(crate) fn kill<C>(
        &self,
        script: &Script<'_, C>,
        regions: &[Region],
        index: usize,
    ) -> (u32, bool) {
        let mut process = Supervised::start(script, regions, self.behind.clone());
        let mut stop = Stop::At(process.position());
        for _ in 0..index {
            if stop == Stop::End {
                break;
            }
            stop = process.next();
        }
        let pid = process.pid();
        process.kill();
        (pid, stop == Stop::At(self.addresses[index]))
    }
}
