//! Kills at every instruction, and kills of the cleaning processes at every one of theirs.

use std::fmt::Debug;

use crate::chance::phase;
use crate::changes::Changes;
use crate::child::{Exit, fork};
use crate::memory::{Region, Snapshot};
use crate::trace::Trace;
use crate::tracee::{OneProcessor, Tracee};
use crate::way::Way;

/// The actions of a process: `prepare` as it likes, then `script` one step at a time.
///
/// Everything that differs between processes belongs to `prepare`: attaching, registering, reading files.
pub struct Script<'a, C> {
    pub(crate) prepare: Box<dyn Fn() -> C + 'a>,
    pub(crate) script: Box<dyn Fn(&mut C) + 'a>,
}

/// Memory, and how densely to kill. Steps are instructions, unless it tells deaths apart ([`Experiment::with_named_deaths`]).
pub struct Experiment {
    regions: Vec<Region>,
    names_deaths: bool,
    stride: usize,
    phase: usize,
    is_centred: bool,
    first: usize,
    last: usize,
    kills_max: usize,
    recoverer_kills_max: usize,
    pub(crate) begins_with_ends: bool,
}

/// When a process died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death {
    /// The process.
    pub pid: u32,
    /// Steps of the script that it had made.
    pub steps: usize,
    /// Steps of the whole script; if it had made all of them, its work was done.
    pub of: usize,
}

/// What an experiment did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The length of the script.
    pub steps: usize,
    /// How many processes were killed inside their script, recoverers included.
    pub kills: usize,
    /// How many recoverers were among them.
    pub recoverers: usize,
    /// How many were stopped inside their script for another one.
    pub interruptions: usize,
    /// How many did not come to the step at which they were to be killed or stopped, but elsewhere. None,
    /// unless the script takes another path each time.
    pub missed: usize,
}

impl<'a, C> Script<'a, C> {
    /// A script with what has to be done before.
    pub fn new(prepare: impl Fn() -> C + 'a, script: impl Fn(&mut C) + 'a) -> Self {
        Self { prepare: Box::new(prepare), script: Box::new(script) }
    }

    pub(crate) fn start(&self) -> Tracee {
        Tracee::start(|| self.prepared(), &self.script)
    }

    /// The actions of a process before its script begins.
    pub(crate) fn prepared(&self) -> C {
        let context = (self.prepare)();
        // Read at most once a second: a script that commits memory would do so or not, by the time it is run.
        tupelo_shm::headroom::refresh();
        context
    }
}

impl Experiment {
    /// An experiment that starts each time with the region's contents at its beginning, in the [`phase`] of this run.
    pub fn new(region: Region) -> Self {
        let max = usize::MAX;
        Self {
            regions: vec![region],
            names_deaths: false,
            stride: 1,
            phase: phase(),
            is_centred: false,
            first: max,
            last: max,
            kills_max: max,
            recoverer_kills_max: max,
            begins_with_ends: false,
        }
    }

    /// Steps are no longer the instructions. They are the beginning of the script and each instruction after which a
    /// death leaves another state than before: in the memory, or in the kernel's work for the dead. At every other
    /// instruction a death leaves the same state as at one of these. So kills at these steps cover every instruction,
    /// however long the script is.
    ///
    /// For kills only: another process that comes between can tell more, namely what this one has read already.
    #[must_use]
    pub fn with_named_deaths(mut self) -> Self {
        self.names_deaths = true;
        self
    }

    /// Kills only at every `stride`-th step.
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

    /// If only a part of the steps is taken, takes the ones that come `phase` behind those of phase 0. Experiments with
    /// consecutive phases together cover all steps, and for a double kill all pairs.
    #[must_use]
    pub fn with_phase(mut self, phase: usize) -> Self {
        self.phase = phase;
        self
    }

    /// If only a part of the steps is taken, kills in the middle of each part of a script, not at its beginning. Before
    /// its first step nothing has happened, and after its last one everything has.
    #[must_use]
    pub fn centred(mut self) -> Self {
        self.is_centred = true;
        self
    }

    /// Kills only within the first `count` steps: where a script that is mostly something else decides.
    #[must_use]
    pub fn with_first(mut self, count: usize) -> Self {
        self.first = count;
        self
    }

    /// Kills only within the last `count` steps: where a script that is mostly preparation decides.
    #[must_use]
    pub fn with_last(mut self, count: usize) -> Self {
        self.last = count;
        self
    }

    /// Kills at about `kills_max` steps only, evenly spread.
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

    /// Kills recoverers of one death at about `kills_max` of their steps only, evenly spread. A recoverer that does more than to
    /// roll back is long.
    ///
    /// # Panics
    ///
    /// If `kills_max` is 0.
    #[must_use]
    pub fn with_recoverer_kills(mut self, kills_max: usize) -> Self {
        assert!(kills_max > 0, "at least one");
        self.recoverer_kills_max = kills_max;
        self
    }

    /// Stops a process at the beginning and at the end of its script before it does so anywhere between. So the results
    /// of two processes one after the other are known, when they come between one another.
    #[must_use]
    pub fn with_ends_first(mut self) -> Self {
        self.begins_with_ends = true;
        self
    }

    /// Restores a further region as well.
    #[must_use]
    pub fn with_region(mut self, region: Region) -> Self {
        self.regions.push(region);
        self
    }

    /// Kills a process after each step of `worker`, and once at its end. Each time `check` runs in a process of its own
    /// and panics unless the state is legal. The memory is as before afterwards.
    ///
    /// # Panics
    ///
    /// If a check panics or hangs: with its message, and the step.
    pub fn kill_at_every_instruction<C>(
        &self,
        worker: &Script<'_, C>,
        check: impl Fn(Death),
    ) -> Summary {
        let _one = OneProcessor::new();
        let before = self.snapshot();
        let way = self.way(worker);
        let mut summary = Summary { steps: way.len(), ..Summary::default() };
        for index in self.points(&way.steps(), way.len()).0 {
            restore(&before);
            let death = self.kill(worker, &way, index, &mut summary);
            require(|| check(death), &death);
        }
        restore(&before);
        summary
    }

    /// As [`kill_at_every_instruction`](Self::kill_at_every_instruction), but the dead process gets a recoverer, which
    /// cleans up. The recoverer is killed at each of its steps (or at every so manieth) and once at its end. `check` runs
    /// after both.
    ///
    /// `leaves_work` tells, from the memory after the first death, whether the recoverer has anything to do;
    /// if not, it only runs to its end.
    ///
    /// # Panics
    ///
    /// If a check panics or hangs: with its message, and both steps.
    pub fn double_kill<C, H>(
        &self,
        worker: &Script<'_, C>,
        recoverer: &Script<'_, H>,
        leaves_work: impl Fn() -> bool,
        check: impl Fn(Death, Death),
    ) -> Summary {
        let _one = OneProcessor::new();
        let before = self.snapshot();
        let way = self.way(worker);
        let mut summary = Summary { steps: way.len(), ..Summary::default() };
        let (points, phases) = self.points(&way.steps(), way.len());
        for index in points {
            restore(&before);
            let first = self.kill(worker, &way, index, &mut summary);
            let left = self.snapshot();
            let leaves_work = leaves_work();
            let recoverer_way = self.way(recoverer);
            let recoverer_points = if leaves_work {
                self.recoverer_points(&recoverer_way, phases)
            } else {
                vec![recoverer_way.len()]
            };
            for recoverer_index in recoverer_points {
                restore(&left);
                let second = self.kill(recoverer, &recoverer_way, recoverer_index, &mut summary);
                summary.recoverers += usize::from(second.steps < second.of);
                require(|| check(first, second), &(first, second));
            }
        }
        restore(&before);
        summary
    }

    /// Goes through a script, and notes its steps.
    fn way<C>(&self, script: &Script<'_, C>) -> Way {
        if self.names_deaths {
            Way::Changes(Changes::record(script, &self.regions))
        } else {
            Way::Instructions(Trace::record(script))
        }
    }

    /// The steps of a script of this length at which to kill or to stop, and its end. Also the number of phases: as
    /// many experiments cover all of the steps.
    pub(crate) fn points(&self, steps: &[usize], of: usize) -> (Vec<usize>, usize) {
        let within = of.saturating_sub(self.last)..self.first;
        let steps: Vec<usize> =
            steps.iter().copied().filter(|step| within.contains(step)).collect();
        let phases = self.stride.max(spread(steps.len(), self.kills_max));
        (self.in_phase(&steps, phases, self.phase).chain([of]).collect(), phases)
    }

    /// The same of a recoverer, where the first process dies in so many phases.
    fn recoverer_points(&self, way: &Way, phases: usize) -> Vec<usize> {
        let steps = way.steps();
        let recoverer_phases = spread(steps.len(), self.recoverer_kills_max);
        self.in_phase(&steps, recoverer_phases, self.phase / phases).chain([way.len()]).collect()
    }

    /// One of so many of the steps, beginning behind as many as the phase says.
    fn in_phase(
        &self,
        steps: &[usize],
        phases: usize,
        phase: usize,
    ) -> impl Iterator<Item = usize> {
        let middle = if self.is_centred { phases / 2 } else { 0 };
        steps.iter().copied().skip((phase + middle) % phases).step_by(phases)
    }

    /// Runs a script to a step, or its end, and kills it there.
    fn kill<C>(
        &self,
        script: &Script<'_, C>,
        way: &Way,
        index: usize,
        summary: &mut Summary,
    ) -> Death {
        let (pid, has_come) = way.kill(script, &self.regions, index);
        summary.missed += usize::from(!has_come);
        summary.kills += usize::from(index < way.len());
        Death { pid, steps: index + 1, of: way.len() + 1 }
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

/// One of how many steps is a kill, for at most about so many kills.
const fn spread(steps: usize, kills_max: usize) -> usize {
    // Odd: a loop of an even number of steps is met at all of them in turn.
    if steps > kills_max { (steps / kills_max) | 1 } else { 1 }
}

/// Runs a check in a process of its own: its knowledge of the memory ends with it.
pub(crate) fn require(check: impl FnOnce(), when: &dyn Debug) {
    match fork(check).wait() {
        Exit::Done => {}
        Exit::Panicked(message) => panic!("after {when:?}: {message}"),
        Exit::Killed(signal) => panic!("after {when:?}: the check ended by signal {signal}"),
    }
}
