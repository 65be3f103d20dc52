//! The way of a script, instruction by instruction.

use std::collections::HashMap;

use crate::sight::Sight;
use crate::tracee::{Stop, Tracee};

/// Longest script, in instructions: about two minutes to note their addresses. Most have some thousands; one that
/// grows a space may, a second after the last time, read the system's files about memory.
const INSTRUCTIONS_MAX: usize = 4_000_000;
/// How often in a row the same instruction counts. One that repeats itself (`rep movsb`) stops after each
/// byte; killed at the 17th it leaves nothing that it did not leave at the 16th.
const REPEATS_MAX: usize = 16;
/// What it costs to pass a breakpoint once more, in steps.
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
    /// Steps a process through its script. What counts are the instructions of which others see something, if `sight` is given,
    /// and else all.
    ///
    /// # Panics
    ///
    /// If the script is longer than anybody will wait for.
    pub(crate) fn record(tracee: &Tracee, mut sight: Option<Sight<'_>>) -> Self {
        let mut addresses = Vec::new();
        let mut repeats = 0;
        let mut counted = Vec::new();
        while let Stop::At(address) = tracee.step() {
            repeats = if addresses.last() == Some(&address) { repeats + 1 } else { 0 };
            let index = addresses.len();
            addresses.push(address);
            let counts =
                sight.as_mut().map_or(repeats < REPEATS_MAX, |sight| sight.changes(address));
            if counts {
                counted.push(index);
            }
            assert!(addresses.len() <= INSTRUCTIONS_MAX, "the script is too long");
        }
        Self { anchors: anchors(&addresses), addresses, counted }
    }

    /// How many instructions the script has: the index that stands for its end.
    pub(crate) const fn len(&self) -> usize {
        self.addresses.len()
    }

    /// The indexes of the instructions at which to kill, among the first and the last so many, and how many phases there
    /// are: with as many experiments all of them are killed at.
    pub(crate) fn kill_points(
        &self,
        (first, last): (usize, usize),
        stride: usize,
        kills_max: usize,
        (phase, is_centred): (usize, bool),
    ) -> (Vec<usize>, usize) {
        let within = self.addresses.len().saturating_sub(last)..first;
        let points: Vec<usize> =
            self.counted.iter().copied().filter(|index| within.contains(index)).collect();
        // Odd: a loop of an even number of instructions is met at all of them in turn.
        let spread = if points.len() > kills_max { (points.len() / kills_max) | 1 } else { 1 };
        let phases = stride.max(spread);
        let phase = (phase + if is_centred { phases / 2 } else { 0 }) % phases;
        (points.into_iter().skip(phase).step_by(phases).collect(), phases)
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
