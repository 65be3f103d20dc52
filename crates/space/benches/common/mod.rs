//! What the benchmarks share: measuring, printing, and the tuples that they use.
#![allow(dead_code, reason = "each benchmark uses its part")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use tupelo::{
    ConnectOptions, Error, Field, Kind, KindSet, Order, PatternRef, Space, TemplateRef, TupleView,
};

/// Runs of each measurement; the median is printed.
pub(crate) const RUNS: usize = 11;
/// Calls between two looks at the clock, where what is around them is not timed.
pub(crate) const BATCH: i64 = 1_000;
/// Batches per run.
const BATCHES: usize = 100;

/// Nanoseconds of one call: median, least and greatest of the runs.
#[derive(Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) greatest: f64,
}

/// Measures `call`, after a quarter of the calls as warm-up.
pub(crate) fn measure(calls: u64, mut call: impl FnMut()) -> Measured {
    for _ in 0..calls / 4 {
        call();
    }
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..calls {
                call();
            }
            begin.elapsed().as_nanos() as f64 / calls as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    Measured { median: runs[RUNS / 2], least: runs[0], greatest: runs[RUNS - 1] }
}

/// Measures `call`, made once for each number of a batch, between `before` and `after`, which are not timed.
pub(crate) fn measure_in_batches(
    mut before: impl FnMut(),
    mut call: impl FnMut(i64),
    mut after: impl FnMut(),
) -> Measured {
    let mut run = || {
        let mut timed = Duration::ZERO;
        for _ in 0..BATCHES {
            before();
            let begin = Instant::now();
            (0..BATCH).for_each(&mut call);
            timed += begin.elapsed();
            after();
        }
        timed.as_nanos() as f64 / (BATCHES as f64 * BATCH as f64)
    };
    run();
    let mut runs: Vec<f64> = (0..RUNS).map(|_| run()).collect();
    runs.sort_by(f64::total_cmp);
    Measured { median: runs[RUNS / 2], least: runs[0], greatest: runs[RUNS - 1] }
}

/// Prints a row: what, how long, and how many times the yardstick. Returns the median.
pub(crate) fn report(name: &str, measured: Measured, yardstick: f64) -> f64 {
    row(name, measured, yardstick, "")
}

/// As [`report`], of what is to take at most so many times the yardstick; says whether it does.
pub(crate) fn report_asked(name: &str, measured: Measured, yardstick: f64, most: f64) -> f64 {
    let is_reached = measured.median / yardstick <= most;
    row(name, measured, yardstick, &verdict(&format!("at most {most:.1}"), is_reached))
}

fn row(name: &str, measured: Measured, yardstick: f64, verdict: &str) -> f64 {
    let Measured { median, least, greatest } = measured;
    let ratio = median / yardstick;
    println!("{name:<62} {median:>9.1} ns  ({least:.1} to {greatest:.1})  {ratio:>6.2} x{verdict}");
    median
}

/// The end of a row for which `asked` is the target.
pub(crate) fn verdict(asked: &str, is_reached: bool) -> String {
    format!("  (asked: {asked}; {})", if is_reached { "reached" } else { "MISSED" })
}

/// Keys are spread, so that no table profits from their order.
pub(crate) fn key(k: i64) -> i64 {
    k.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed()) >> 1 & !1
}

/// A fresh space that may grow to a gigabyte.
pub(crate) fn fresh(url: &str) -> Space {
    let options = ConnectOptions { fresh: true, size_bytes: 1 << 30, ..ConnectOptions::default() };
    Space::connect(url, &options).unwrap()
}

pub(crate) const JOB: PatternRef<'static> = PatternRef::Actual(Field::Str("job"));
pub(crate) const INT: PatternRef<'static> = PatternRef::Kinds(KindSet::of(Kind::Int));
pub(crate) const FLOAT: PatternRef<'static> = PatternRef::Kinds(KindSet::of(Kind::Float));

/// The pattern of one key.
pub(crate) fn is(k: i64) -> PatternRef<'static> {
    PatternRef::Actual(Field::Int(k))
}

/// Puts `("job", k, value)`.
pub(crate) fn put(space: &Space, k: i64, value: f64) {
    space.put(&[Field::Str(black_box("job")), Field::Int(k), Field::Float(value)]).unwrap();
}

/// Takes a match; says whether there was one.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as the call of a program that names its template")]
pub(crate) fn take(space: &Space, patterns: &[PatternRef<'_>]) -> bool {
    space.try_take(&[TemplateRef::new(patterns)], Order::Fifo, number).unwrap().is_some()
}

/// Takes what a batch of puts has left.
pub(crate) fn drain(space: &Space) {
    (0..BATCH).for_each(|k| assert!(take(space, &[JOB, is(key(k)), FLOAT])));
}

/// Reads a match; says whether there was one.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as the call of a program that names its template")]
pub(crate) fn read(space: &Space, patterns: &[PatternRef<'_>]) -> bool {
    space.try_read(&[TemplateRef::new(patterns)], Order::Fifo, number).unwrap().is_some()
}

/// Field 1 as a number: the visitor of all benchmarks.
#[expect(clippy::unnecessary_wraps, reason = "a visitor may fail")]
pub(crate) fn number(tuple: TupleView<'_>) -> Result<i64, Error> {
    match tuple.field(1) {
        Some(Field::Int(value)) => Ok(value),
        other => panic!("{other:?}"),
    }
}

/// Takes the tuple of a key and puts it again, changed, as one change, which may take `ttl`.
pub(crate) fn transfer(space: &Space, k: i64, ttl: Duration) {
    let transaction = space.transaction(&[], ttl).unwrap();
    let inside = transaction.at(0);
    let patterns = [JOB, is(k), FLOAT];
    let template = [TemplateRef::new(&patterns)];
    assert!(inside.try_take(&template, Order::Fifo, number).unwrap().is_some());
    inside.put(&[Field::Str("job"), Field::Int(k), Field::Float(4.5)]).unwrap();
    transaction.commit().unwrap();
}
