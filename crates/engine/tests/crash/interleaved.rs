//! Two operations at once have happened one after the other (rules O1, O3 to O9, T6). One operation is stopped before
//! every instruction, or before a sample of them, until another process has done the other operation, or waits in it.
//!
//! What the two gave and left is compared with what they give and leave one after the other, in either order. Those are
//! the first and the last of these experiments.

use std::sync::Arc;
use std::time::Duration;

use crate::shared::both::{Both, NOTHING, Operation, POINTS, filled, value, waiting};
use crate::shared::{INT, contents, int, put, text};
use tupelo_crashtest::{phase, thorough};
use tupelo_engine::{ClaimTerms, Engine, Error, Order, Want};
use tupelo_tuple::{Field, PatternRef, TemplateRef};

/// Of the pairs, an ordinary run has one of so many: others in each phase. A prime that does not divide the number of
/// operations, so that each is the second one in some phase.
const PAIRS_STRIDE: usize = 29;

/// Something that a process does at one moment, and a number for what it gives.
type AtOnce = (&'static str, fn(&Arc<Engine>) -> i64);

const OPERATIONS: &[AtOnce] = &[
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
    ("join the wait queue, and leave it", |engine| {
        let patterns = [int(3), INT];
        let waiter = engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
        waiter.give_up().unwrap();
        0
    }),
];

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

#[test]
fn two_operations_have_happened_one_after_the_other() {
    let engine = filled();
    let stride = if thorough() { 1 } else { PAIRS_STRIDE };
    let pairs =
        OPERATIONS.iter().flat_map(|first| OPERATIONS.iter().map(move |second| (first, second)));
    let (mut interruptions, mut wrong) = (0, Vec::new());
    for (first, second) in pairs.skip(phase() % stride).step_by(stride) {
        let operations = [first, second].map(|(name, work)| Operation::at_once(name, work));
        match Both::new(&engine, operations).run() {
            Ok(summary) => interruptions += summary.interruptions,
            Err(panic) => wrong.push(panic),
        }
    }
    eprintln!("{interruptions} interruptions");
    assert!(wrong.is_empty(), "{} pairs:\n{}", wrong.len(), wrong.join("\n"));
    assert!(interruptions > OPERATIONS.len() * OPERATIONS.len() / stride * POINTS / 2);
    assert_eq!(contents(&engine).len(), 5, "as before");
}
