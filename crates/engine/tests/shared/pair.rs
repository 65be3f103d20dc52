//! Two spaces for crash tests of what happens in both or in neither.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tupelo_crashtest::{Death, Experiment, Script, Summary, shared_words, thorough};
use tupelo_engine::Engine;
use tupelo_shm::Directory;

use super::{
    FIRST_KILLS_THOROUGH, KILLS_THOROUGH, RECORDINGS_MAX, SECOND_KILLS_THOROUGH, contents, hitting,
    named_space, region, register, use_it,
};

/// Kills, spread over the whole of an ordinary run's script.
const KILLS: usize = 8;
/// Steps at the end of a script, where the spaces commit and are unlocked: all are killed at.
const END: usize = 40;

/// Two spaces that change together: where tuples are moved from, and where to.
pub(crate) struct Pair {
    pub(crate) from: Arc<Engine>,
    pub(crate) into: Arc<Engine>,
    /// Of the segments. A commit over both writes each name into the log of the other.
    names: [String; 2],
    /// The process that removes them: not a child that is killed, and not one that ends.
    owner: u32,
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in self.names.iter().filter(|_| self.owner == std::process::id()) {
            // Another test may have been killed in here before, with the number of this process.
            let _ = Directory::default().remove(name);
        }
    }
}

impl Pair {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (owner, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let names = ["from", "into"].map(|end| format!("tupelo-pair-{owner}-{number}-{end}"));
        let [from, into] = [0, 1].map(|index: usize| named_space(8 << 20, &names[index]));
        Self { from, into, names, owner }
    }

    pub(crate) fn experiment(&self) -> Experiment {
        let experiment = Experiment::new(region(&self.from)).with_region(region(&self.into));
        experiment.with_named_deaths()
    }

    /// A process that uses both spaces, and then does what is asked.
    pub(crate) fn script<'a>(&'a self, work: impl Fn(&Self) + 'a) -> Script<'a, &'a Self> {
        let register = move || {
            self.from.check().unwrap();
            self.into.check().unwrap();
            self
        };
        Script::new(register, move |pair| work(pair))
    }

    /// The two, in an order that is drawn by when somebody died.
    pub(crate) fn drawn(&self, death: Death) -> [&Arc<Engine>; 2] {
        if death.steps.is_multiple_of(2) {
            [&self.from, &self.into]
        } else {
            [&self.into, &self.from]
        }
    }

    /// What is in the two after somebody has come by, first to the one and then to the other: with a sweep, or
    /// with work of their own.
    pub(crate) fn recovered(&self, death: Death) -> [Vec<String>; 2] {
        for (number, engine) in self.drawn(death).into_iter().enumerate() {
            if (death.steps / 2 + number).is_multiple_of(2) {
                contents(engine);
            } else {
                engine.sweep().unwrap();
            }
        }
        for engine in self.drawn(death) {
            engine.sweep().unwrap();
            assert_eq!(engine.check().unwrap().held(), 0, "nobody is left to hold anything");
        }
        [contents(&self.from), contents(&self.into)]
    }

    pub(crate) fn contents(&self) -> [Vec<String>; 2] {
        [contents(&self.from), contents(&self.into)]
    }

    /// Kills a process in `script` again and again; each time, both spaces are as before, or both as `after`. The kills
    /// are spread evenly, then dense at the end, and then close in on the step at which it has happened.
    pub(crate) fn kill_everywhere(&self, script: impl Fn(&Self), after: &[Vec<String>; 2]) {
        let before = self.contents();
        let seen = shared_words(2);
        let worker = self.script(script);
        let check = |death: Death| {
            let found = self.recovered(death);
            let is_after = found == *after;
            assert!(is_after || found == before, "{found:?} is neither before nor after");
            assert!(is_after || death.steps < death.of, "it had ended");
            seen[usize::from(is_after)].fetch_add(1, Ordering::Relaxed);
            use_it(self.drawn(death)[0]);
        };
        let kills = if thorough() { KILLS_THOROUGH } else { KILLS };
        hitting(|| self.experiment().with_kills(kills).kill_at_every_instruction(&worker, check));
        let Summary { steps, .. } =
            hitting(|| self.experiment().with_last(END).kill_at_every_instruction(&worker, check));
        let befores = || seen[0].load(Ordering::Relaxed);
        self.close_in(&worker, steps, (check, befores));
        let [before, after] = [0, 1].map(|index: usize| seen[index].load(Ordering::Relaxed));
        assert!(before > 3 && after > 3, "{before} before, {after} after");
    }

    /// Kills a process in `script`, and then whoever comes by after it, in either space; each time, both spaces are
    /// as before, or both as `after`.
    pub(crate) fn kill_twice(&self, script: impl Fn(&Self), after: &[Vec<String>; 2]) {
        let before = self.contents();
        let worker = self.script(script);
        let come_after = || {
            register(&self.from);
            register(&self.into);
            self
        };
        let recoverer = Script::new(come_after, |pair| {
            pair.into.sweep().unwrap();
            pair.from.sweep().unwrap();
        });
        let (kills, recoverer_kills) =
            if thorough() { (FIRST_KILLS_THOROUGH, SECOND_KILLS_THOROUGH) } else { (4, 8) };
        let experiment =
            self.experiment().with_kills(kills).with_recoverer_kills(recoverer_kills).centred();
        let check = |_, second| {
            let found = self.recovered(second);
            assert!(found == *after || found == before, "{found:?} is neither before nor after");
            use_it(self.drawn(second)[0]);
        };
        hitting(|| experiment.double_kill(&worker, &recoverer, || true, check));
    }

    /// Kills halfway between a step after which nothing has happened and one after which all has, until no
    /// other is between them. What lies between, if the spaces do not change at one moment, is hit whatever its
    /// length: kills at a stride can pass over it.
    ///
    /// `befores` counts the deaths so far after which nothing had happened.
    fn close_in(
        &self,
        worker: &Script<'_, &Self>,
        steps: usize,
        (check, befores): (impl Fn(Death), impl Fn() -> u32),
    ) {
        // Counted from the end: what comes before varies with what the spaces have learned.
        let (mut all, mut nothing) = (0, steps);
        let mut missed = 0;
        while nothing - all > 1 && missed < RECORDINGS_MAX {
            let halfway = usize::midpoint(all, nothing);
            let count = befores();
            let experiment = self.experiment().with_last(halfway).with_kills(1);
            let summary = experiment.kill_at_every_instruction(worker, &check);
            if summary.missed > 0 {
                missed += 1;
            } else if befores() > count {
                nothing = halfway;
            } else {
                all = halfway;
            }
        }
        eprintln!("it has happened {all} steps before the end");
        assert!(missed < RECORDINGS_MAX, "every run takes another path");
    }
}
