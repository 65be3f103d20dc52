//! How many instructions an operation takes: for a machine that is too busy for times.
//!
//! Question: where does the work of a call go? Run by itself it only makes the calls; the counts come from callgrind, which is
//! told to count inside the function of one operation (docs/where-the-time-goes.md has the command). A count is the same in
//! every run.
//! Without the name of an operation it prints the least time of each; a name that none has is refused.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at a refusal"
)]
#![allow(clippy::cast_precision_loss, reason = "nanoseconds and counts are far below 2^52")]

mod common;

use std::env;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use common::{FLOAT, INT, JOB, fresh, is, key, number, put, read, take, transfer};
use tupelo::{
    ClaimTerms, EventKind, Field, LeaseTerms, Order, Outcome, Space, SubscribeTerms, Subscription,
    TemplateRef,
};

/// Tuples in the space while calls are counted.
const BATCH: i64 = 1_000;
/// Batches that are counted.
const COUNTED: usize = 3;
/// Batches that are timed.
const TIMED: usize = 300;

const TERMS: ClaimTerms = ClaimTerms { ttl: Duration::from_secs(30), attempts_max: None };
const HOUR: LeaseTerms = LeaseTerms { lease: Some(Duration::from_secs(3600)), after: None };

fn fill(space: &Space) {
    (0..BATCH).for_each(|k| put(space, key(k), 3.5));
}

fn drain(space: &Space) {
    (0..BATCH).for_each(|k| assert!(take(space, &[JOB, is(key(k)), FLOAT])));
}

#[inline(never)]
fn counted_put(space: &Space) {
    (0..BATCH).for_each(|k| put(space, key(k), 3.5));
}

#[inline(never)]
fn counted_take(space: &Space) {
    (0..BATCH).for_each(|k| assert!(take(space, &[JOB, is(key(k)), FLOAT])));
}

#[inline(never)]
fn counted_pair(space: &Space) {
    for k in 0..BATCH {
        put(space, key(k), 3.5);
        assert!(take(space, &[JOB, is(key(k)), FLOAT]));
    }
}

#[inline(never)]
fn counted_read(space: &Space) {
    (0..BATCH).for_each(|k| assert!(read(space, &[JOB, is(key(k)), FLOAT])));
}

#[inline(never)]
fn counted_miss(space: &Space) {
    (0..BATCH).for_each(|_| assert!(!take(space, &[JOB, is(1), FLOAT])));
}

#[inline(never)]
fn counted_claim(space: &Space) {
    (0..BATCH).for_each(|k| {
        let patterns = [JOB, is(key(k)), FLOAT];
        let template = [TemplateRef::new(&patterns)];
        let claimed = space.try_claim(&template, Order::Fifo, &TERMS, number).unwrap();
        claimed.unwrap().0.done().unwrap();
    });
}

#[inline(never)]
fn counted_lease(space: &Space) {
    for k in 0..BATCH {
        let fields = [Field::Str("job"), Field::Int(key(k)), Field::Float(3.5)];
        space.put_leased(&fields, &HOUR).unwrap();
    }
}

#[inline(never)]
fn counted_transaction(space: &Space) {
    for k in 0..BATCH {
        transfer(space, key(k), TERMS.ttl);
    }
}

/// A hand-over, without the way from one processor to the other.
#[inline(never)]
fn counted_hand_over(space: &Space) {
    for k in 0..BATCH {
        let patterns = [JOB, is(key(k)), FLOAT];
        let template = [TemplateRef::new(&patterns)];
        let waits = space.take_or_wait(&template, Order::Fifo, number).unwrap();
        let Outcome::Waits(waiter) = waits else { panic!("there is none yet") };
        put(space, key(k), 3.5);
        waiter.finish(number).unwrap();
    }
}

/// Of all that is put.
static SUBSCRIPTION: Mutex<Option<Subscription>> = Mutex::new(None);

fn subscribe(space: &Space) {
    listen(space, &TemplateRef::new(&[JOB, INT, FLOAT]));
}

/// As [`subscribe`], by a template that spans shapes.
fn subscribe_wide(space: &Space) {
    listen(space, &TemplateRef::beginning(&[JOB]));
}

fn listen(space: &Space, template: &TemplateRef<'_>) {
    let terms = SubscribeTerms::new([EventKind::Put], 1_000);
    let subscription = space.subscribe(std::slice::from_ref(template), &terms).unwrap();
    *SUBSCRIPTION.lock().unwrap() = Some(subscription);
}

fn unsubscribe(space: &Space) {
    drop(SUBSCRIPTION.lock().unwrap().take());
    drain(space);
}

type Step = fn(&Space);

fn nothing(_: &Space) {}

/// What is asked about: the name, what comes before each batch, the calls, and what comes after.
const ALL: [(&str, [Step; 3]); 11] = [
    ("put", [nothing, counted_put, drain]),
    ("take", [fill, counted_take, nothing]),
    ("pair", [nothing, counted_pair, nothing]),
    ("read", [fill, counted_read, drain]),
    ("miss", [fill, counted_miss, drain]),
    ("claim", [fill, counted_claim, nothing]),
    ("lease", [nothing, counted_lease, drain]),
    ("transaction", [fill, counted_transaction, drain]),
    ("hand-over", [nothing, counted_hand_over, nothing]),
    ("heard", [subscribe, counted_put, unsubscribe]),
    ("heard-wide", [subscribe_wide, counted_put, unsubscribe]),
];

/// The steps of the operation of that name.
fn steps_of(asked: &str) -> Option<[Step; 3]> {
    ALL.iter().find(|(name, _)| *name == asked).map(|(_, steps)| *steps)
}

/// The batches of one operation, for callgrind to count.
fn count(space: &Space, steps: [Step; 3]) {
    for _ in 0..COUNTED {
        for step in steps {
            step(space);
        }
    }
    println!("{COUNTED} times {BATCH} calls");
}

/// The least time of a call of each operation, in turns: on a busy machine they have the same chances.
fn time(space: &Space) {
    let mut least = [Duration::MAX; ALL.len()];
    for _ in 0..TIMED {
        for ((_, [before, counted, after]), least) in ALL.iter().zip(&mut least) {
            before(space);
            let begin = Instant::now();
            counted(space);
            *least = begin.elapsed().min(*least);
            after(space);
        }
    }
    for ((name, _), least) in ALL.iter().zip(least) {
        println!("{name:<11} {:>8.1} ns", least.as_nanos() as f64 / BATCH as f64);
    }
}

fn main() -> ExitCode {
    // `cargo bench` adds a word of its own.
    let asked = env::args().nth(1).filter(|word| word != "--bench");
    let steps = asked.as_deref().map(steps_of);
    if let Some(None) = steps {
        eprintln!("give one of these, or nothing: {}", ALL.map(|(name, _)| name).join(", "));
        return ExitCode::from(2);
    }
    let space = fresh("shm://bench-instructions");
    fill(&space);
    // Backwards, so that it learns the key.
    (0..BATCH).rev().for_each(|k| assert!(take(&space, &[JOB, is(key(k)), FLOAT])));
    match steps.flatten() {
        Some(steps) => count(&space, steps),
        None => time(&space),
    }
    tupelo::remove("shm://bench-instructions").unwrap();
    ExitCode::SUCCESS
}
