//! The way of a script, instruction by instruction.

use std::collections::HashMap;

use crate::experiment::Script;
use crate::tracee::{Stop, Tracee};

/// Longest script, in instructions: about two minutes to note their addresses. Most have some thousands. A script that
/// grows a space may, a second after the last time, read the system's files about memory.
const INSTRUCTIONS_MAX: usize = 4_000_000;
/// How often in a row the same instruction counts. An instruction that repeats itself (`rep movsb`) stops after each
/// byte. Killed at the 17th byte it leaves nothing that it did not leave at the 16th.
const REPEATS_MAX: usize = 16;
/// The cost of passing a breakpoint once more, in steps.
const PASS_STEPS: usize = 2;

/// The way of a script, and how to get to each of its instructions quickly.
pub(crate) struct Trace {
    /// `addresses[n]` is the next instruction after `n + 1` were executed.
    addresses: Vec<usize>,
    /// For each of them: the breakpoint to go to, as an index into `addresses`, and the how-manieth
    /// time it is there. The rest is stepped.
    anchors: Vec<(usize, usize)>,
    /// The instructions at which to kill, as indexes into `addresses`.
    counted: Vec<usize>,
}

impl Trace {
    /// Steps a process through its script.
    ///
    /// # Panics
    ///
    /// If the script is longer than anybody will wait for.
    pub(crate) fn record<C>(script: &Script<'_, C>) -> Self {
        let tracee = script.start();
        let mut addresses = Vec::new();
        let mut repeats = 0;
        let mut counted = Vec::new();
        while let Stop::At(address) = tracee.step() {
            repeats = if addresses.last() == Some(&address) { repeats + 1 } else { 0 };
            if repeats < REPEATS_MAX {
                counted.push(addresses.len());
            }
            addresses.push(address);
            assert!(addresses.len() <= INSTRUCTIONS_MAX, "the script is too long");
        }
        tracee.kill();
        Self { anchors: anchors(&addresses), addresses, counted }
    }

    /// How many instructions the script has: the index that stands for its end.
    pub(crate) const fn len(&self) -> usize {
        self.addresses.len()
    }

    /// The indexes of the instructions at which to kill.
    pub(crate) fn counted(&self) -> &[usize] {
        &self.counted
    }

    /// Brings a process to the instruction, or, if it takes another way, somewhere else, or to its end.
    pub(crate) fn bring(&self, tracee: &Tracee, index: usize) -> Stop {
        let (anchor, times) = self.anchors[index];
        let mut stop = tracee.run_to(self.addresses[anchor], times);
        for _ in anchor..index {
            if stop == Stop::End {
                break;
            }
            stop = tracee.step();
        }
        stop
    }

    /// Whether a process that stopped so is in front of the instruction.
    pub(crate) fn is_at(&self, stop: &Stop, index: usize) -> bool {
        *stop == Stop::At(self.addresses[index])
    }
}

/// The cheapest way to each instruction of a script.
fn anchors(addresses: &[usize]) -> Vec<(usize, usize)> {
    let mut passed: HashMap<usize, usize> = HashMap::new();
    let mut anchors: Vec<(usize, usize)> = Vec::with_capacity(addresses.len());
    for (index, &address) in addresses.iter().enumerate() {
        let times = passed.entry(address).or_default();
        *times += 1;
        let cost = |&(anchor, times): &(usize, usize)| index - anchor + (times - 1) * PASS_STEPS;
        let own = (index, *times);
        let best = anchors.last().copied().filter(|last| cost(last) < cost(&own)).unwrap_or(own);
        anchors.push(best);
    }
    anchors
}
