//! Kills at every instruction, and kills of those who clean up at every one of theirs.

use std::fmt::Debug;

use crate::child::{Exit, fork};
use crate::memory::{Region, Snapshot};
use crate::sight::Sight;
use crate::trace::Trace;
use crate::tracee::{OneProcessor, Tracee};
use crate::written::pages_written;

/// How often a script is recorded that writes to other pages than the time before.
const RECORDINGS_MAX: usize = 5;

/// What a process does: `prepare` as it likes, then `script` one instruction at a time.
///
/// Everything that depends on who does it belongs to `prepare`: attaching, registering, reading files.
pub struct Script<'a, C> {
    pub(crate) prepare: Box<dyn Fn() -> C + 'a>,
    pub(crate) script: Box<dyn Fn(&mut C) + 'a>,
}

/// Whether the environment variable `TUPELO_EVERY_INSTRUCTION` asks for the long run: a shorter one for every
/// day, the long one for every night.
pub fn thorough() -> bool {
    std::env::var_os("TUPELO_EVERY_INSTRUCTION").is_some()
}

/// The number in the environment variable `TUPELO_PHASE`, or 0: at which of the instructions to begin where not all are
/// killed at ([`Experiment::with_phase`]).
///
/// # Panics
///
/// If it is set to something else.
pub fn phase() -> usize {
    let number = |text: String| text.parse().expect("TUPELO_PHASE is a number");
    std::env::var("TUPELO_PHASE").map_or(0, number)
}

/// Memory, and how densely to kill.
pub struct Experiment {
    regions: Vec<Region>,
    tells_apart: bool,
    stride: usize,
    phase: usize,
    is_centred: bool,
    first: usize,
    last: usize,
    kills_max: usize,
    heir_kills_max: usize,
}

/// When a process died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death {
    /// The process.
    pub pid: u32,
    /// Instructions of the script that it had executed.
    pub instructions: usize,
    /// Instructions of the whole script; if it had executed all of them, its work was done.
    pub of: usize,
}

/// What an experiment did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The length of the script, in instructions.
    pub instructions: usize,
    /// How many processes were killed inside their script, heirs included.
    pub kills: usize,
    /// How many heirs were among them.
    pub heirs: usize,
    /// How many were stopped inside their script for another one.
    pub interruptions: usize,
    /// How many did not come to the instruction at which they were to be killed or stopped, but elsewhere. None,
    /// unless the script takes another path each time.
    pub missed: usize,
}

impl<'a, C> Script<'a, C> {
    /// A script with what has to be done before.
    pub fn new(prepare: impl Fn() -> C + 'a, script: impl Fn(&mut C) + 'a) -> Self {
        Self { prepare: Box::new(prepare), script: Box::new(script) }
    }

    pub(crate) fn start(&self) -> Tracee {
        Tracee::start(&self.prepare, &self.script)
    }
}

impl Experiment {
    /// An experiment that starts each time with what the region holds when it begins.
    pub fn new(region: Region) -> Self {
        let max = usize::MAX;
        Self {
            regions: vec![region],
            tells_apart: false,
            stride: 1,
            phase: 0,
            is_centred: false,
            first: max,
            last: max,
            kills_max: max,
            heir_kills_max: max,
        }
    }

    /// Passes over the instructions at which a death leaves what one at the instruction before leaves: of the memory,
    /// and of what the kernel does for the dead. All others stay: so whoever kills at each of them has killed at every
    /// instruction, however long the script is.
    ///
    /// Numbers of instructions that are asked for elsewhere, but for those of the first and the last, count only what is left.
    #[must_use]
    pub fn told_apart(mut self) -> Self {
        self.tells_apart = true;
        self
    }

    /// Kills only at every `stride`-th instruction.
    ///
    /// # Panics
    ///
    /// If `stride` is 0.
    #[must_use]
    pub fn with_stride(mut self, stride: usize) -> Self {
        assert!(stride > 0, "the stride is at least 1");
        self.stride = stride;
        self
    }

    /// Where not all instructions are killed at, kills at those that come `phase` behind the ones of phase 0: one experiment after
    /// the other, each in its phase, come to all of them, and those of a double kill to all pairs.
    #[must_use]
    pub fn with_phase(mut self, phase: usize) -> Self {
        self.phase = phase;
        self
    }

    /// Where not all instructions are killed at, kills in the middle of each part of a script, not at its beginning: before its
    /// first instruction nothing has happened, and after its last one all has.
    #[must_use]
    pub fn centred(mut self) -> Self {
        self.is_centred = true;
        self
    }

    /// Kills only within the first `count` instructions: where a script that is mostly something else decides.
    #[must_use]
    pub fn with_first(mut self, count: usize) -> Self {
        self.first = count;
        self
    }

    /// Kills only within the last `count` instructions: where a script that is mostly preparation decides.
    #[must_use]
    pub fn with_last(mut self, count: usize) -> Self {
        self.last = count;
        self
    }

    /// Kills at about `kills_max` instructions only, evenly spread.
    ///
    /// # Panics
    ///
    /// If `kills_max` is 0.
    #[must_use]
    pub fn with_kills(mut self, kills_max: usize) -> Self {
        assert!(kills_max > 0, "at least one");
        self.kills_max = kills_max;
        self
    }

    /// Kills heirs of one death at about `kills_max` of their instructions only, evenly spread: one that does
    /// more than to roll back is long.
    ///
    /// # Panics
    ///
    /// If `kills_max` is 0.
    #[must_use]
    pub fn with_heir_kills(mut self, kills_max: usize) -> Self {
        assert!(kills_max > 0, "at least one");
        self.heir_kills_max = kills_max;
        self
    }

    /// Restores a further region as well.
    #[must_use]
    pub fn with_region(mut self, region: Region) -> Self {
        self.regions.push(region);
        self
    }

    /// Kills a process after each instruction of `worker`, and once at its end. Each time `check` runs in
    /// a process of its own and panics unless what it finds is legal. The memory is as before afterwards.
    ///
    /// # Panics
    ///
    /// If a check panics or hangs: with its message, and the instruction.
    pub fn kill_at_every_instruction<C>(
        &self,
        worker: &Script<'_, C>,
        check: impl Fn(Death),
    ) -> Summary {
        let _one = OneProcessor::new();
        let before = self.snapshot();
        let trace = self.record(worker);
        let mut summary = Summary { instructions: trace.len(), ..Summary::default() };
        for index in self.points(&trace).0 {
            restore(&before);
            let death = kill(worker, &trace, index, &mut summary);
            require(|| check(death), &death);
        }
        restore(&before);
        summary
    }

    /// As [`kill_at_every_instruction`](Self::kill_at_every_instruction), but the dead process gets an
    /// heir, which cleans up and is killed at each of its instructions (or at every so manieth) and
    /// once at its end. `check` runs after both.
    ///
    /// `leaves_work` tells, from the memory after the first death, whether the heir has anything to do;
    /// if not, it only runs to its end.
    ///
    /// # Panics
    ///
    /// If a check panics or hangs: with its message, and both instructions.
    pub fn double_kill<C, H>(
        &self,
        worker: &Script<'_, C>,
        heir: &Script<'_, H>,
        leaves_work: impl Fn() -> bool,
        check: impl Fn(Death, Death),
    ) -> Summary {
        let _one = OneProcessor::new();
        let before = self.snapshot();
        let trace = self.record(worker);
        let mut summary = Summary { instructions: trace.len(), ..Summary::default() };
        let (points, phases) = self.points(&trace);
        for index in points {
            restore(&before);
            let first = kill(worker, &trace, index, &mut summary);
            let left = self.snapshot();
            let work = leaves_work();
            let heir_trace = self.record(heir);
            let (max, phase) = (usize::MAX, (self.phase / phases, self.is_centred));
            let (points, _) = heir_trace.kill_points((max, max), 1, self.heir_kills_max, phase);
            for heir_index in points.into_iter().filter(|_| work).chain([heir_trace.len()]) {
                restore(&left);
                let second = kill(heir, &heir_trace, heir_index, &mut summary);
                summary.heirs += usize::from(second.instructions < second.of);
                require(|| check(first, second), &(first, second));
            }
        }
        restore(&before);
        summary
    }

    /// Runs a script step by step and notes where it was, and, if asked for, after which steps others see something else.
    pub(crate) fn record<C>(&self, script: &Script<'_, C>) -> Trace {
        if self.tells_apart {
            return self.record_apart(script);
        }
        let tracee = script.start();
        let trace = Trace::record(&tracee, None);
        tracee.kill();
        trace
    }

    /// The same for who tells deaths apart. Another process goes through the script before, to know where to look after each
    /// step: to compare all memory takes too long. If there is more to see in the end, once more.
    fn record_apart<C>(&self, script: &Script<'_, C>) -> Trace {
        let before = self.snapshot();
        let mut written = pages_written(script, &self.regions);
        for _ in 0..RECORDINGS_MAX {
            restore(&before);
            let tracee = script.start();
            let sight = Sight::of(&tracee, &self.regions, &written);
            let trace = Trace::record(&tracee, Some(sight));
            tracee.kill();
            let count = written.len();
            written.extend(before.iter().flat_map(Snapshot::differing));
            if written.len() == count {
                return trace;
            }
        }
        panic!("the script writes to other pages each time");
    }

    /// The instructions of a script at which to kill or to stop, and its end; how many phases there are.
    pub(crate) fn points(&self, trace: &Trace) -> (Vec<usize>, usize) {
        let within = (self.first, self.last);
        let start = (self.phase, self.is_centred);
        let (mut points, phases) = trace.kill_points(within, self.stride, self.kills_max, start);
        points.push(trace.len());
        (points, phases)
    }

    pub(crate) fn snapshot(&self) -> Vec<Snapshot> {
        self.regions.iter().map(|region| region.snapshot()).collect()
    }
}

pub(crate) fn restore(snapshots: &[Snapshot]) {
    for snapshot in snapshots {
        snapshot.restore();
    }
}

/// Runs a script to an instruction, or its end, and kills it there.
fn kill<C>(script: &Script<'_, C>, trace: &Trace, index: usize, summary: &mut Summary) -> Death {
    let tracee = script.start();
    let pid = tracee.pid();
    if index == trace.len() {
        tracee.run_to_end();
    } else {
        let stop = trace.bring(&tracee, index);
        summary.missed += usize::from(!trace.is_at(&stop, index));
        summary.kills += 1;
    }
    tracee.kill();
    Death { pid, instructions: index + 1, of: trace.len() + 1 }
}

/// Runs a check in a process of its own: what it remembers of the memory ends with it.
pub(crate) fn require(check: impl FnOnce(), when: &dyn Debug) {
    match fork(check).wait() {
        Exit::Done => {}
        Exit::Panicked(message) => panic!("after {when:?}: {message}"),
        Exit::Killed(signal) => panic!("after {when:?}: the check ended by signal {signal}"),
    }
}
