//! What a put and a take cost, beside a private hash map in the same run.
//!
//! Question: how much dearer is a crash-safe tuple in shared memory than an entry of a private table? Does filling the
//! space, or the field that a template names, make a difference? Ratios count; absolute times are for orientation,
//! since machines differ and drift.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at a refusal"
)]
#![allow(clippy::cast_precision_loss, reason = "nanoseconds and counts are far below 2^52")]

mod common;

use std::hint::black_box;

use common::{
    BATCH, FLOAT, INT, JOB, fresh, is, key, measure, measure_in_batches, put, read, report,
    report_asked, take, verdict,
};
use hashbrown::HashMap;
use tupelo::{Error, Field, Kind, KindSet, Order, PatternRef, Space, TemplateRef, TupleView};

const CALLS: u64 = 300_000;

/// Insert and remove of a boxed record of 64 bytes, in a private table.
fn yardstick(resident: i64) -> f64 {
    let mut map: HashMap<i64, Box<[u8; 64]>> = HashMap::new();
    for k in 0..resident {
        map.insert(key(-1 - k), Box::new([1; 64]));
    }
    let mut k = 0;
    let measured = measure(CALLS, || {
        k += 1;
        map.insert(black_box(key(k)), Box::new(black_box([2; 64])));
        black_box(map.remove(&key(k)));
    });
    report(&format!("hashbrown insert + remove, {resident} resident"), measured, measured.median)
}

/// Lets the space learn the two fields as a key.
fn teach(space: &Space) {
    for k in 0..200 {
        put(space, key(k), 3.5);
    }
    for k in (0..200).rev() {
        assert!(take(space, &[JOB, is(key(k)), FLOAT]));
    }
}

fn pairs(url: &str, resident: i64) {
    let is_large = resident >= 1_000_000;
    let yardstick = yardstick(resident);
    let space = fresh(url);
    for k in 0..resident {
        put(&space, key(-1 - k), 3.5);
    }
    teach(&space);
    let mut k = 0;
    let pair = measure(CALLS, || {
        k += 1;
        put(&space, key(k), 3.5);
        assert!(take(&space, &[JOB, is(key(k)), FLOAT]));
    });
    let name = format!("{url}: put + take by (\"job\", k, ?)");
    let pair = report_asked(&name, pair, yardstick, if is_large { 2.5 } else { 3.0 });
    let fifo = measure(CALLS, || {
        k += 1;
        put(&space, key(k), 3.5);
        assert!(take(&space, &[JOB, INT, FLOAT]));
    });
    report(&format!("{url}: put + take by (\"job\", ?, ?)"), fifo, yardstick);
    put(&space, key(-1), 3.5);
    let reads = measure(CALLS, || assert!(read(&space, &[JOB, is(key(-1)), FLOAT])));
    let in_pairs = |name, measured, most| {
        // What was asked for is asked of an empty space.
        if resident == 0 {
            report_asked(name, measured, pair, most);
        } else {
            report(name, measured, pair);
        }
    };
    in_pairs("    read by (\"job\", k, ?), in pairs", reads, 0.2);
    let misses = measure(CALLS, || assert!(!take(&space, &[JOB, is(1), FLOAT])));
    in_pairs("    take that misses, in pairs", misses, 0.4);
    if is_large {
        // Before a second shape comes, whose tuples are others.
        let stat = space.stat().unwrap();
        let bytes = stat.bytes_used / stat.tuples;
        let verdict = verdict("at most 160", bytes <= 160);
        println!("    {bytes} bytes per tuple, with one index{verdict}");
        last_field(&space);
    }
    tupelo::remove(url).unwrap();
}

/// Takes by the first field alone against takes by the last alone, among many others.
fn last_field(space: &Space) {
    let put_row = |k| {
        let value = Field::Float(key(k) as f64);
        space.put(&[Field::Int(key(k)), Field::Str(black_box("row")), value]).unwrap();
    };
    let takes_by = |patterns: &dyn Fn(i64) -> [PatternRef<'static>; 3]| {
        let take_row = |k| {
            let patterns = patterns(key(k));
            let template = [TemplateRef::new(&patterns)];
            let visitor = |_: TupleView<'_>| Ok::<_, Error>(());
            assert!(space.try_take(&template, Order::Fifo, visitor).unwrap().is_some());
        };
        measure_in_batches(|| (0..BATCH).for_each(put_row), take_row, || ())
    };
    let text = PatternRef::Kinds(KindSet::of(Kind::Str));
    (1..=1_000_000).for_each(|k| put_row(-k));
    let first = takes_by(&|k| [is(k), text, FLOAT]);
    let first =
        report("    take by the first field alone, 1 000 000 resident", first, first.median);
    let last = takes_by(&|k| [INT, text, PatternRef::Actual(Field::Float(k as f64))]);
    report_asked("    take by the last field alone, in the first's", last, first, 1.5);
}

fn main() {
    for resident in [0, 1_000, 1_000_000] {
        pairs("shm://bench-pair", resident);
    }
    pairs("mem://bench-pair", 0);
}
