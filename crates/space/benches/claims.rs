//! What claims, transactions, leases and subscriptions cost, beside plain takes and puts in the same run.
//!
//! Question: what does it cost that a tuple comes back if its taker dies, that a take and a put are one change, and that a
//! tuple disappears by itself? And does it matter how many such tuples there are? What does a put cost that somebody hears
//! of, and one that nobody hears of while somebody listens for others?
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at a refusal"
)]
#![allow(clippy::cast_precision_loss, reason = "nanoseconds and counts are far below 2^52")]

mod common;

use std::time::Duration;

use common::{
    BATCH, FLOAT, INT, JOB, drain, fresh, is, key, measure_in_batches, number, put, report,
    report_asked, take, transfer,
};
use tupelo::{
    ClaimTerms, ConnectOptions, EventKind, Field, KindSet, LeaseTerms, Order, PatternRef,
};
use tupelo::{Space, SubscribeTerms, Subscription, TemplateRef, WhenFull};

const TERMS: ClaimTerms = ClaimTerms { ttl: Duration::from_secs(30), attempts_max: None };
const HOUR: LeaseTerms = LeaseTerms { lease: Some(Duration::from_secs(3600)), after: None };

fn fill(space: &Space) {
    (0..BATCH).for_each(|k| put(space, key(k), 3.5));
}

fn put_leased(space: &Space, k: i64) {
    let fields = [Field::Str("job"), Field::Int(key(k)), Field::Float(3.5)];
    space.put_leased(&fields, &HOUR).unwrap();
}

fn claim(space: &Space, k: i64) -> tupelo::Claim {
    let patterns = [JOB, is(key(k)), FLOAT];
    let template = [TemplateRef::new(&patterns)];
    space.try_claim(&template, Order::Fifo, &TERMS, number).unwrap().unwrap().0
}

fn claims(space: &Space) {
    let taken = |k| assert!(take(space, &[JOB, is(key(k)), FLOAT]));
    let yardstick = measure_in_batches(|| fill(space), taken, || ());
    let yardstick = report("take by (\"job\", k, ?), 1 000 resident", yardstick, yardstick.median);
    let done = measure_in_batches(|| fill(space), |k| claim(space, k).done().unwrap(), || ());
    report_asked("    claim + done, in takes", done, yardstick, 3.0);
    let abort =
        measure_in_batches(|| fill(space), |k| claim(space, k).abort("").unwrap(), || drain(space));
    report("    claim + abort, in takes", abort, yardstick);
    let note = [Field::Str("done"), Field::Int(1)];
    let patterns = [PatternRef::Actual(Field::Str("done")), INT];
    let with_put = measure_in_batches(
        || fill(space),
        |k| {
            let claim = claim(space, k);
            claim.put(&note).unwrap();
            claim.done().unwrap();
        },
        || {
            space.take_all(&[TemplateRef::new(&patterns)], None, number).unwrap();
        },
    );
    report("    claim + done with a put, in takes", with_put, yardstick);
}

fn transactions(space: &Space) {
    let pair = |k| {
        assert!(take(space, &[JOB, is(key(k)), FLOAT]));
        put(space, key(k), 4.5);
    };
    let (before, after) = (|| fill(space), || drain(space));
    let yardstick = measure_in_batches(before, pair, after);
    let yardstick = report("take + put, 1 000 resident", yardstick, yardstick.median);
    let together = measure_in_batches(before, |k| transfer(space, key(k), TERMS.ttl), after);
    report_asked("    the same in a transaction, in pairs", together, yardstick, 6.0);
}

fn leases(space: &Space, resident: i64) {
    (1..=resident).for_each(|k| put_leased(space, -k));
    let plain = measure_in_batches(|| (), |k| put(space, key(k), 3.5), || drain(space));
    let plain = report(&format!("put, {resident} leases resident"), plain, plain.median);
    let leased = measure_in_batches(|| (), |k| put_leased(space, k), || drain(space));
    report_asked("    put with a lease, in puts", leased, plain, 1.5);
}

/// A subscription to puts that match, with room for those of a batch.
fn subscribe(space: &Space, patterns: &[PatternRef<'_>]) -> Subscription {
    let terms = SubscribeTerms::new([EventKind::Put], 1_024);
    space.subscribe(&[TemplateRef::new(patterns)], &terms).unwrap()
}

fn subscriptions(space: &Space) {
    let puts = |heard: Option<&Subscription>| {
        let after = || {
            drain(space);
            let events = heard.map_or(0, |heard| {
                std::iter::from_fn(|| heard.try_next(|event| number(event.tuple)).unwrap()).count()
            });
            assert!(heard.is_none() || i64::try_from(events) == Ok(BATCH));
        };
        measure_in_batches(|| (), |k| put(space, key(k), 3.5), after)
    };
    let plain = puts(None);
    let plain = report("put, nobody listens", plain, plain.median);
    let any = [JOB, INT, FLOAT];
    let narrow = subscribe(space, &any);
    report_asked(
        "    put that one subscription hears of, in puts",
        puts(Some(&narrow)),
        plain,
        2.0,
    );
    drop(narrow);
    let other = subscribe(space, &[JOB, is(1), FLOAT]);
    report("    put beside a subscription to another key, in puts", puts(None), plain);
    drop(other);
    let wide = subscribe(space, &[JOB, PatternRef::Kinds(KindSet::ALL)]);
    report("    put beside a subscription to other shapes, in puts", puts(None), plain);
    drop(wide);
    let wide = subscribe(space, &[JOB, PatternRef::Kinds(KindSet::ALL), FLOAT]);
    report_asked(
        "    put that one that spans shapes hears of, in puts",
        puts(Some(&wide)),
        plain,
        2.0,
    );
    drop(wide);
    // Its buffer is full already: each put drops an event for its own (rule N2).
    let full = subscribe(space, &any);
    (0..2).for_each(|_| {
        fill(space);
        drain(space);
    });
    let dropping = measure_in_batches(|| (), |k| put(space, key(k), 3.5), || drain(space));
    report("    put that drops the oldest event of a full buffer, in puts", dropping, plain);
    drop(full);
}

/// What a put costs that finds its space full and drops the oldest tuple for its own, beside one that finds room.
fn full() {
    const URL: &str = "shm://bench-claims-full";
    let space = fresh(URL);
    let plain = measure_in_batches(|| (), |k| put(&space, key(k), 3.5), || drain(&space));
    let plain = report("put, with room", plain, plain.median);
    drop(space);
    let options = ConnectOptions {
        fresh: true,
        tuples_max: Some(BATCH as u64),
        when_full: WhenFull::DropOldest,
        ..ConnectOptions::default()
    };
    let space = Space::connect(URL, &options).unwrap();
    fill(&space);
    let mut next = BATCH;
    let dropping = measure_in_batches(
        || (),
        |_| {
            put(&space, key(next), 3.5);
            next += 1;
        },
        || assert_eq!(space.count(&[TemplateRef::new(&[JOB, INT, FLOAT])]), Ok(BATCH as u64)),
    );
    report("    put that drops the oldest of 1 000, in puts", dropping, plain);
    tupelo::remove(URL).unwrap();
}

fn main() {
    full();
    let space = fresh("shm://bench-claims");
    fill(&space);
    (0..BATCH).rev().for_each(|k| assert!(take(&space, &[JOB, is(key(k)), FLOAT])));
    claims(&space);
    transactions(&space);
    subscriptions(&space);
    leases(&space, 0);
    leases(&space, 1_000_000);
    tupelo::remove("shm://bench-claims").unwrap();
}
