//! What a put and a take cost, beside a private hash map in the same run.
//!
//! Question: how much dearer is a crash-safe tuple in shared memory than an entry of a private table?
//! Ratios count; absolute times are for orientation, since machines differ and drift.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at a refusal"
)]
#![allow(clippy::cast_precision_loss, reason = "nanoseconds and counts are far below 2^52")]
#![allow(clippy::unnecessary_wraps, reason = "the sink's signature")]

use std::hint::black_box;
use std::time::Instant;

use hashbrown::HashMap;
use tupelo::{
    ConnectOptions, Error, Field, Kind, KindSet, Order, PatternRef, Space, TemplateRef, TupleView,
};

/// Runs of each measurement; the median is printed.
const RUNS: usize = 11;
/// Keys are spread, so that neither table profits from their order.
fn key(k: i64) -> i64 {
    k.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed()) >> 1 & !1
}

/// Nanoseconds of one call: median, least and greatest of the runs.
fn measure(calls: u64, mut call: impl FnMut()) -> (f64, f64, f64) {
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
    (runs[RUNS / 2], runs[0], runs[RUNS - 1])
}

fn report(name: &str, measured: (f64, f64, f64), yardstick: f64) -> f64 {
    let (median, least, greatest) = measured;
    println!(
        "{name:<58} {median:>8.1} ns  ({least:.1} to {greatest:.1})  {:>5.2} x",
        median / yardstick
    );
    median
}

fn field(tuple: TupleView<'_>) -> Result<i64, Error> {
    match tuple.field(1) {
        Some(Field::Int(value)) => Ok(value),
        other => panic!("{other:?}"),
    }
}

fn yardstick(resident: i64) -> f64 {
    let mut map: HashMap<i64, Box<[u8; 64]>> = HashMap::new();
    for k in 0..resident {
        map.insert(key(-1 - k), Box::new([1; 64]));
    }
    let mut k = 0;
    let measured = measure(300_000, || {
        k += 1;
        map.insert(black_box(key(k)), Box::new(black_box([2; 64])));
        black_box(map.remove(&key(k)));
    });
    report(&format!("hashbrown insert + remove, {resident} resident"), measured, measured.0)
}

fn engine(url: &str, resident: i64) {
    let yardstick = yardstick(resident);
    let space = Space::connect(
        url,
        &ConnectOptions { fresh: true, size_bytes: 1 << 30, ..Default::default() },
    )
    .unwrap();
    let name = PatternRef::Actual(Field::Str("job"));
    let float = PatternRef::Kinds(KindSet::of(Kind::Float));
    let int = PatternRef::Kinds(KindSet::of(Kind::Int));
    let put = |k: i64| {
        space.put(&[Field::Str(black_box("job")), Field::Int(k), Field::Float(3.5)]).unwrap()
    };
    let take = |patterns: &[PatternRef<'_>]| {
        space.try_take(&[TemplateRef::new(patterns)], Order::Fifo, field).unwrap()
    };
    let read = |patterns: &[PatternRef<'_>]| {
        space.try_read(&[TemplateRef::new(patterns)], Order::Fifo, field).unwrap()
    };
    for k in 0..resident {
        put(key(-1 - k));
    }
    // Lets the space learn the key.
    for k in 0..200 {
        put(key(k));
    }
    for k in (0..200).rev() {
        assert!(take(&[name, PatternRef::Actual(Field::Int(key(k))), float]).is_some());
    }
    let mut k = 0;
    let pair = measure(300_000, || {
        k += 1;
        put(key(k));
        let taken = take(&[name, PatternRef::Actual(Field::Int(key(k))), float]);
        assert!(taken.is_some());
    });
    let pair = report(
        &format!("{url}: put + take by (\"job\", k, ?), {resident} resident"),
        pair,
        yardstick,
    );
    let fifo = measure(300_000, || {
        k += 1;
        put(key(k));
        assert!(take(&[name, int, float]).is_some());
    });
    report(&format!("{url}: put + take by (\"job\", ?, ?), {resident} resident"), fifo, yardstick);
    put(key(-1));
    let reads = measure(300_000, || {
        assert!(read(&[name, PatternRef::Actual(Field::Int(key(-1))), float]).is_some());
    });
    report("    read by (\"job\", k, ?), in pairs", reads, pair);
    let misses = measure(300_000, || {
        assert!(take(&[name, PatternRef::Actual(Field::Int(1)), float]).is_none());
    });
    report("    take that misses, in pairs", misses, pair);
    let stat = space.stat().unwrap();
    println!(
        "    {} bytes used, {} tuples: {:?}",
        stat.bytes_used, stat.tuples, stat.shapes[0].indexes
    );
    let _ = tupelo::remove(url);
}

fn main() {
    for resident in [0, 1_000, 1_000_000] {
        engine("shm://bench-pair", resident);
    }
    engine("mem://bench-pair", 0);
}
