//! Two operations at once have happened one after the other (rules O1, O3 to O9, T6): the one is stopped in front of every
//! instruction, or of every so manieth, until another process has done the other, or waits for it.
//!
//! What the two gave and left is compared with what they give and leave one after the other, in either order: those are the first
//! and the last of these experiments.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

mod crash;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crash::{INT, contents, int, put, region, space, text};
use tupelo_crashtest::{Experiment, Script, Summary, shared_words, thorough};
use tupelo_engine::{ClaimTerms, Engine, Error, Order, Outcome, Want};
use tupelo_tuple::{Field, PatternRef, TemplateRef, TupleView};

/// Interruptions per pair of operations in an ordinary run.
const POINTS: usize = 12;
/// The same in a thorough one.
const POINTS_THOROUGH: usize = 60;
/// Of the pairs, an ordinary run has one of so many.
const PAIRS_STRIDE: usize = 12;
/// What an operation gives that finds nothing.
const NOTHING: i64 = -1;

/// Something that a process does at one moment, and a number for what it gives.
type Operation = (&'static str, fn(&Arc<Engine>) -> i64);

const OPERATIONS: &[Operation] = &[
    ("put", |engine| {
        put(engine, 1, 90);
        0
    }),
    ("put of another shape", |engine| {
        engine.put(&[Field::Str("a"), Field::Int(91)]).unwrap();
        0
    }),
    ("put of a new shape", |engine| {
        engine.put(&[Field::Bool(true), Field::Int(92)]).unwrap();
        0
    }),
    ("put of a large tuple", |engine| {
        engine.put(&[Field::Int(1), Field::Int(93), Field::Bytes(&[7; 12_000])]).unwrap();
        0
    }),
    ("put_all", |engine| {
        let tuples = [94, 95].map(|value| [Field::Int(1), Field::Int(value)]);
        let other = [Field::Str("a"), Field::Int(96)];
        let tuples = [&tuples[0][..], &other[..], &tuples[1][..]];
        count_of(engine.put_all(&tuples))
    }),
    ("put_if_absent", |engine| {
        let template = [int(3), INT];
        let tuple = [Field::Int(3), Field::Int(97)];
        let put = engine.put_if_absent(&tuple, &[TemplateRef::new(&template)]).unwrap();
        i64::from(put)
    }),
    ("take by key", |engine| take(engine, &[int(1), INT])),
    ("take of any", |engine| take(engine, &[INT, INT])),
    ("take of any shape", |engine| {
        let everything = [TemplateRef::beginning(&[])];
        engine.try_take(&everything, Order::Fifo, value).unwrap().unwrap_or(NOTHING)
    }),
    ("take of the largest", |engine| {
        let patterns = [INT, INT];
        let template = [TemplateRef::new(&patterns)];
        engine.try_take(&template, Order::Max(1), value).unwrap().unwrap_or(NOTHING)
    }),
    ("take_all", |engine| {
        let patterns = [int(1), INT];
        all(&engine.take_all(&[TemplateRef::new(&patterns)], None, value).unwrap())
    }),
    ("read", |engine| {
        let patterns = [int(1), INT];
        let template = [TemplateRef::new(&patterns)];
        engine.try_read(&template, Order::Fifo, value).unwrap().unwrap_or(NOTHING)
    }),
    ("read_all", |engine| {
        let everything = [TemplateRef::beginning(&[])];
        all(&engine.read_all(&everything, None, value).unwrap())
    }),
    ("count", |engine| {
        i64::try_from(engine.count(&[TemplateRef::beginning(&[])]).unwrap()).unwrap()
    }),
    ("present", |engine| {
        let patterns = [int(1), int(10)];
        i64::from(engine.present(&[TemplateRef::new(&patterns)]).unwrap())
    }),
    ("swap", |engine| {
        let patterns = [int(1), INT];
        let tuple = [Field::Int(1), Field::Int(98)];
        let template = [TemplateRef::new(&patterns)];
        engine.try_swap(&template, &tuple, value).unwrap().unwrap_or(NOTHING)
    }),
    ("requeue", |engine| {
        let patterns = [int(1), INT];
        i64::try_from(engine.requeue(&[TemplateRef::new(&patterns)]).unwrap()).unwrap()
    }),
    ("copy into the space itself", |engine| {
        let patterns = [int(1), INT];
        i64::try_from(engine.copy_to(engine, &[TemplateRef::new(&patterns)]).unwrap()).unwrap()
    }),
    ("claim", |engine| claim(engine, std::mem::forget)),
    ("claim and done", |engine| claim(engine, |claim| claim.done(&[]).unwrap())),
    ("wait for a take", |engine| waiting(engine, &[TemplateRef::new(&[int(3), INT])], Want::Take)),
    ("wait for a take of a rare shape", |engine| {
        waiting(engine, &[TemplateRef::new(&[text("a"), int(91)])], Want::Take)
    }),
    ("wait for any take", |engine| {
        let alternatives = [[int(3), INT], [text("a"), INT]];
        waiting(engine, &alternatives.each_ref().map(|one| TemplateRef::new(one)), Want::Take)
    }),
    ("wait for any read", |engine| {
        let alternatives = [[int(3), INT], [text("a"), int(91)]];
        waiting(engine, &alternatives.each_ref().map(|one| TemplateRef::new(one)), Want::Read)
    }),
    ("get in line, and leave it", |engine| {
        let patterns = [int(3), INT];
        let waiter = engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
        waiter.give_up().unwrap();
        0
    }),
];

/// The second field: what tells tuples apart here.
#[expect(clippy::unnecessary_wraps, reason = "a sink")]
fn value(tuple: TupleView<'_>) -> Result<i64, Error> {
    match tuple.field(1) {
        Some(Field::Int(value)) => Ok(value),
        other => panic!("no such tuple was put: {other:?}"),
    }
}

/// Several values as one.
fn all(values: &[i64]) -> i64 {
    values.iter().fold(0, |all, value| all * 100 + value)
}

fn count_of(count: Result<usize, Error>) -> i64 {
    i64::try_from(count.unwrap()).unwrap()
}

fn take(engine: &Engine, patterns: &[PatternRef<'_>]) -> i64 {
    let taken = engine.try_take(&[TemplateRef::new(patterns)], Order::Fifo, value);
    taken.unwrap().unwrap_or(NOTHING)
}

fn claim(engine: &Arc<Engine>, then: impl FnOnce(tupelo_engine::Claim)) -> i64 {
    let patterns = [int(1), INT];
    let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
    let claimed = engine.try_claim(&[TemplateRef::new(&patterns)], Order::Fifo, &terms, value);
    claimed.unwrap().map_or(NOTHING, |(claim, value)| {
        then(claim);
        value
    })
}

/// Gets in line and picks up what is there by then; stays in line if it is nothing.
fn waiting(engine: &Arc<Engine>, template: &[TemplateRef<'_>], want: Want) -> i64 {
    let waiter = engine.waiter(template, want).unwrap();
    match waiter.finish_now(value).unwrap() {
        Outcome::Done(value) => value,
        Outcome::Waits(waiter) => {
            std::mem::forget(waiter);
            NOTHING
        }
    }
}

/// A space with some tuples, two of each key.
fn filled() -> Arc<Engine> {
    let engine = space(8 << 20);
    for (key, value) in [(1, 10), (2, 20), (1, 11), (2, 21)] {
        put(&engine, key, value);
    }
    engine.put(&[Field::Str("a"), Field::Int(30)]).unwrap();
    engine
}

/// Words that processes write a text into, for others to read.
struct Note(&'static [AtomicU32]);

impl Note {
    fn new() -> Self {
        Self(shared_words(1024))
    }

    fn write(&self, text: &str) {
        self.0[0].store(u32::try_from(text.len()).unwrap(), Ordering::SeqCst);
        for (word, byte) in self.0[1..].iter().zip(text.bytes()) {
            word.store(u32::from(byte), Ordering::SeqCst);
        }
    }

    fn read(&self) -> String {
        let length = self.0[0].load(Ordering::SeqCst) as usize;
        let byte = |word: &AtomicU32| u8::try_from(word.load(Ordering::SeqCst)).unwrap();
        String::from_utf8(self.0[1..=length].iter().map(byte).collect()).unwrap()
    }
}

/// Two operations in two processes, and what they gave.
struct Both<'e> {
    engine: &'e Arc<Engine>,
    operations: [Operation; 2],
    gave: &'static [AtomicU32],
    /// What they give and leave one after the other: the second first, and the first first.
    expected: [Note; 2],
}

impl<'e> Both<'e> {
    fn new(engine: &'e Arc<Engine>, operations: [Operation; 2]) -> Self {
        let expected = [Note::new(), Note::new()];
        Self { engine, operations, gave: shared_words(2), expected }
    }

    fn script(&self, number: usize) -> Script<'_, ()> {
        let register = move || {
            // Registers the process, and has it look at all there is.
            self.engine.check().unwrap();
        };
        Script::new(register, move |()| {
            let given = (self.operations[number].1)(self.engine);
            let word = u32::try_from(given & 0xffff_ffff).unwrap();
            self.gave[number].store(word, Ordering::SeqCst);
        })
    }

    /// What the two gave, and what is in the space.
    fn outcome(&self) -> String {
        self.engine.check().unwrap();
        let gave = [0, 1].map(|number: usize| self.gave[number].load(Ordering::SeqCst));
        format!("{} {} {:?}", gave[0].cast_signed(), gave[1].cast_signed(), contents(self.engine))
    }

    fn run(&self) -> Summary {
        let experiment = || Experiment::new(region(self.engine));
        let (first, second) = (self.script(0), self.script(1));
        experiment().with_kills(1).interrupt_at_every_instruction(&first, &second, |now| {
            let is_last = now.instructions == now.of;
            self.expected[usize::from(is_last)].write(&self.outcome());
        });
        let points = if thorough() { POINTS_THOROUGH } else { POINTS };
        experiment().with_kills(points).interrupt_at_every_instruction(&first, &second, |_| {
            let outcome = self.outcome();
            let expected = self.expected.each_ref().map(Note::read);
            assert!(
                expected.contains(&outcome),
                "{} and {}: {outcome} instead of {expected:?}",
                self.operations[0].0,
                self.operations[1].0
            );
        })
    }
}

#[test]
fn two_operations_have_happened_one_after_the_other() {
    let engine = filled();
    let stride = if thorough() { 1 } else { PAIRS_STRIDE };
    let pairs =
        OPERATIONS.iter().flat_map(|first| OPERATIONS.iter().map(move |second| (first, second)));
    let (mut interruptions, mut wrong) = (0, Vec::new());
    for (first, second) in pairs.step_by(stride) {
        let both = Both::new(&engine, [*first, *second]);
        match catch_unwind(AssertUnwindSafe(|| both.run())) {
            Ok(summary) => interruptions += summary.interruptions,
            Err(panic) => wrong.push(panic.downcast_ref::<String>().cloned().unwrap_or_default()),
        }
    }
    eprintln!("{interruptions} interruptions");
    assert!(wrong.is_empty(), "{} pairs:\n{}", wrong.len(), wrong.join("\n"));
    assert!(interruptions > OPERATIONS.len() * OPERATIONS.len() / stride * POINTS / 2);
    assert_eq!(contents(&engine).len(), 5, "as before");
}
