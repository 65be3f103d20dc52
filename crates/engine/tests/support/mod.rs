//! What tests of the engine share: a private space, and templates that own nothing.
#![allow(dead_code, clippy::unwrap_used, reason = "a refusal fails the test")]

pub(crate) mod notifiers;
pub(crate) mod replay;
pub(crate) mod transactions;

use std::sync::Arc;
use std::time::Duration;

use tupelo_engine::{Claim, ClaimTerms, CreateOptions, Engine, Error, Limits, Order, Outcome};
use tupelo_shm::Segment;
use tupelo_tuple::{Field, Kind, KindSet, PatternRef, TemplateRef, TupleView};

/// A private space that may grow to so many bytes.
pub(crate) fn engine(size_bytes: u64) -> Arc<Engine> {
    engine_with(&Limits { size_bytes, ..Limits::default() })
}

/// As [`engine`], for at most so many tuples.
pub(crate) fn engine_for(size_bytes: u64, tuples_max: Option<u64>) -> Arc<Engine> {
    engine_with(&Limits { size_bytes, tuples_max, ..Limits::default() })
}

/// A private space with these limits; in a program of journalled spaces, one whose journal is checked in the end.
pub(crate) fn engine_with(limits: &Limits) -> Arc<Engine> {
    if crate::JOURNALLED {
        return replay::watched(limits);
    }
    let options = CreateOptions {
        reserve_bytes: Engine::reserve_bytes(limits.size_bytes),
        initial_commit_bytes: 4096,
        create: true,
        fresh: false,
        mode: 0o600,
    };
    let segment = Segment::private(&options, &Engine::segment_layout(), |mapping| {
        Engine::initialise(mapping, limits)
    });
    Arc::new(Engine::new(segment.unwrap()).unwrap())
}

/// Any field of one kind.
pub(crate) fn any(kind: Kind) -> PatternRef<'static> {
    PatternRef::Kinds(KindSet::of(kind))
}

/// The tuple `("job", number)`.
pub(crate) fn job(number: i64) -> [Field<'static>; 2] {
    [Field::Str("job"), Field::Int(number)]
}

/// The patterns of any `("job", int)`.
pub(crate) fn any_job() -> [PatternRef<'static>; 2] {
    [PatternRef::Actual(Field::Str("job")), any(Kind::Int)]
}

/// The patterns of one `("job", number)`.
pub(crate) fn this_job(number: i64) -> [PatternRef<'static>; 2] {
    [PatternRef::Actual(Field::Str("job")), PatternRef::Actual(Field::Int(number))]
}

/// The number in a job: a visitor.
#[expect(clippy::unnecessary_wraps, reason = "visitors may fail")]
pub(crate) fn number(tuple: TupleView<'_>) -> Result<i64, Error> {
    match tuple.field(1) {
        Some(Field::Int(number)) => Ok(number),
        other => panic!("no job: {other:?}"),
    }
}

/// Takes a job, if there is one.
pub(crate) fn try_take(engine: &Engine, patterns: &[PatternRef<'_>]) -> Option<i64> {
    engine.try_take(&[TemplateRef::new(patterns)], Order::Fifo, number).unwrap()
}

/// Reads a job, if there is one.
pub(crate) fn try_read(engine: &Engine, patterns: &[PatternRef<'_>]) -> Option<i64> {
    engine.try_read(&[TemplateRef::new(patterns)], Order::Fifo, number).unwrap()
}

/// Terms of a claim that nobody outlives.
pub(crate) const LONG: ClaimTerms =
    ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };

/// Claims a job, if there is one.
pub(crate) fn try_claim(
    engine: &Arc<Engine>,
    patterns: &[PatternRef<'_>],
    terms: &ClaimTerms,
) -> Option<(Claim, i64)> {
    engine.try_claim(&[TemplateRef::new(patterns)], Order::Fifo, terms, number).unwrap()
}

/// What a waiter got that was told that there is something.
pub(crate) fn done<R>(outcome: Result<Outcome<R>, Error>) -> R {
    match outcome.unwrap() {
        Outcome::Done(result) => result,
        Outcome::Waits(waiter) => panic!("it was told that there is something: {waiter:?}"),
    }
}

/// How many jobs there are.
pub(crate) fn count(engine: &Engine) -> u64 {
    engine.count(&[TemplateRef::new(&any_job())]).unwrap()
}
