//! `move_to` happens in both spaces or in none, at whichever instruction its process is killed, and whoever
//! cleans up after it, in whichever space they come first: every tuple is in exactly one of the two (C1, O7).
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a step that fails, fails the test")]

mod crash;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crash::{INT, STR, contents, int, learn, put, region, space, use_it};
use tupelo_crashtest::{Death, Experiment, Script, shared_words, thorough};
use tupelo_engine::Engine;
use tupelo_tuple::{Field, PatternRef, TemplateRef};

/// Kills, spread over the whole of an ordinary run's script.
const KILLS: usize = 8;
/// The end of a script, where the spaces commit and are unlocked, in instructions; and the kills there.
const END: usize = 500;
const END_KILLS: usize = 40;

/// Two spaces: where tuples are moved from, and where to.
struct Pair {
    from: Arc<Engine>,
    into: Arc<Engine>,
}

impl Pair {
    fn new() -> Self {
        Self { from: space(8 << 20), into: space(8 << 20) }
    }

    fn experiment(&self) -> Experiment {
        Experiment::new(region(&self.from)).with_region(region(&self.into))
    }

    /// A process that uses both spaces, and then does what is asked.
    fn script<'a>(&'a self, work: impl Fn(&Self) + 'a) -> Script<'a, &'a Self> {
        let register = move || {
            self.from.check().unwrap();
            self.into.check().unwrap();
            self
        };
        Script::new(register, move |pair| work(pair))
    }

    /// The two, in an order that is drawn by when somebody died.
    fn drawn(&self, death: Death) -> [&Arc<Engine>; 2] {
        if death.instructions.is_multiple_of(2) {
            [&self.from, &self.into]
        } else {
            [&self.into, &self.from]
        }
    }

    /// What is in the two after somebody has come by, first to the one and then to the other: with a sweep, or
    /// with work of their own.
    fn recovered(&self, death: Death) -> [Vec<String>; 2] {
        for (number, engine) in self.drawn(death).into_iter().enumerate() {
            if (death.instructions / 2 + number).is_multiple_of(2) {
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

    fn contents(&self) -> [Vec<String>; 2] {
        [contents(&self.from), contents(&self.into)]
    }

    /// Kills a process in `script` again and again; each time, both spaces are as before, or both as `after`.
    fn kill_everywhere(&self, script: impl Fn(&Self), after: &[Vec<String>; 2]) {
        let before = self.contents();
        let seen = shared_words(2);
        let worker = self.script(script);
        let check = |death: Death| {
            let found = self.recovered(death);
            let is_after = found == *after;
            assert!(is_after || found == before, "{found:?} is neither before nor after");
            assert!(is_after || death.instructions < death.of, "it had ended");
            seen[usize::from(is_after)].fetch_add(1, Ordering::Relaxed);
            use_it(self.drawn(death)[0]);
        };
        let kills = if thorough() { 10_000 } else { KILLS };
        for experiment in [
            self.experiment().with_kills(kills),
            self.experiment().with_last(END).with_kills(END_KILLS),
        ] {
            let summary = experiment.kill_at_every_instruction(&worker, check);
            eprintln!("{summary:?}");
        }
        let [before, after] = [0, 1].map(|index: usize| seen[index].load(Ordering::Relaxed));
        assert!(before > 3 && after > 3, "{before} before, {after} after");
    }
}

/// Tuples of two shapes, indexed in the space that they are moved from.
fn mixed() -> Pair {
    let pair = Pair::new();
    for value in 0..30 {
        put(&pair.from, value % 5, value);
    }
    learn(&pair.from, &[int(4), INT]);
    for name in ["a", "b"] {
        pair.from.put(&[Field::Str(name), Field::Int(7)]).unwrap();
    }
    put(&pair.into, 3, 100);
    pair.into.put(&[Field::Float(0.25)]).unwrap();
    pair
}

fn move_all(from: &Engine, into: &Engine, patterns: &[&[PatternRef<'_>]]) -> u64 {
    let templates: Vec<TemplateRef<'_>> =
        patterns.iter().map(|patterns| TemplateRef::new(patterns)).collect();
    from.move_to(into, &templates).unwrap()
}

/// The contents of both when what `goes` chooses has moved; in order of the shapes of `into`.
fn moved(pair: &Pair, goes: impl Fn(&str) -> bool, into: &[&str]) -> [Vec<String>; 2] {
    let from = contents(&pair.from).into_iter().filter(|tuple| !goes(tuple)).collect();
    [from, into.iter().map(ToString::to_string).collect()]
}

#[test]
fn tuples_of_one_shape_are_in_exactly_one_of_two_spaces() {
    let pair = mixed();
    let into = ["3,100", "3,3", "3,8", "3,13", "3,18", "3,23", "3,28", "0.25"];
    let after = moved(&pair, |tuple| tuple.starts_with("3,"), &into);
    let script = |pair: &Pair| {
        assert_eq!(move_all(&pair.from, &pair.into, &[&[int(3), INT]]), 6);
    };
    pair.kill_everywhere(script, &after);
}

#[test]
fn tuples_of_several_shapes_are_in_exactly_one_of_two_spaces() {
    let pair = mixed();
    let into = ["3,100", "4,4", "4,9", "4,14", "4,19", "4,24", "4,29", "0.25", "a,7", "b,7"];
    let after = moved(
        &pair,
        |tuple| {
            tuple.starts_with("4,")
                || tuple.ends_with(",7") && tuple.len() == 3 && !tuple.starts_with('2')
        },
        &into,
    );
    let script = |pair: &Pair| {
        assert_eq!(move_all(&pair.from, &pair.into, &[&[int(4), INT], &[STR, INT]]), 8);
    };
    pair.kill_everywhere(script, &after);
}

#[test]
fn more_tuples_than_a_short_log_can_note_are_in_exactly_one_of_two_spaces() {
    let pair = Pair::new();
    for value in 0..50 {
        put(&pair.from, 1, value);
    }
    put(&pair.into, 1, 50);
    // Both threads' logs are long before the script: that is an experiment of its own.
    let script = |pair: &Pair| assert_eq!(move_all(&pair.from, &pair.into, &[&[int(1), INT]]), 50);
    let into: Vec<String> =
        [50].into_iter().chain(0..50).map(|value| format!("1,{value}")).collect();
    pair.kill_everywhere(script, &[Vec::new(), into]);
}

#[test]
fn a_transfer_survives_the_death_of_the_heir_too() {
    let pair = mixed();
    let before = pair.contents();
    let into = ["3,100", "3,3", "3,8", "3,13", "3,18", "3,23", "3,28", "0.25"];
    let after = moved(&pair, |tuple| tuple.starts_with("3,"), &into);
    let worker = pair.script(|pair| {
        assert_eq!(move_all(&pair.from, &pair.into, &[&[int(3), INT]]), 6);
    });
    let heir = pair.script(|pair| {
        pair.into.sweep().unwrap();
        pair.from.sweep().unwrap();
    });
    let (kills, heir_kills) = if thorough() { (END, 400) } else { (10, 4) };
    let experiment = pair.experiment().with_last(END).with_kills(kills).with_heir_kills(heir_kills);
    experiment.double_kill(
        &worker,
        &heir,
        || true,
        |_, second| {
            let found = pair.recovered(second);
            assert!(found == after || found == before, "{found:?} is neither before nor after");
            use_it(pair.drawn(second)[0]);
        },
    );
}
