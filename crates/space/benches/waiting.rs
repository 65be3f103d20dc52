//! What waiting costs: handing a tuple to a blocked taker of another process, and putting past waiters.
//!
//! Questions: how long from a put to the return of a blocked take, beside two processes that pass a cache
//! line to and fro? How long does a put take that wakes a sleeping taker, beside the kernel's call that wakes a thread,
//! and does it wake that one only? Does a thousand takers who wait for something else slow a put down? Do two processes with
//! keys of their own do twice the work of one, and two with shapes of their own? How long does an answer take while other
//! processes keep the processors busy?
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at a refusal"
)]
#![allow(clippy::cast_precision_loss, reason = "nanoseconds and counts are far below 2^52")]

mod beside_busy;
mod common;
mod sleeper;

use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use common::{
    BATCH, FLOAT, JOB, Measured, RUNS, drain, fresh, is, key, measure, measure_in_batches, number,
    put, report, report_asked, take, verdict,
};
use sleeper::Sleeper;
use tupelo::{ConnectOptions, Field, KindSet, Order, PatternRef, Space, TemplateRef, Waiter, Want};

const URL: &str = "shm://bench-waiting";
const ROUNDS: i64 = 100_000;
/// Rounds of all runs together.
const ROUNDS_IN_ALL: i64 = ROUNDS * 11;
const _: () = assert!(RUNS == 11);
/// Times that a thread is woken in a run.
const WAKES: u64 = 1_000;
const PING: PatternRef<'static> = PatternRef::Actual(Field::Str("ping"));
const PONG: PatternRef<'static> = PatternRef::Actual(Field::Str("pong"));
/// The last field of the tuples of one process; another kind makes another shape.
const VALUE: Field<'static> = Field::Float(3.5);

fn sorted(mut runs: Vec<f64>) -> Measured {
    runs.sort_by(f64::total_cmp);
    Measured { median: runs[runs.len() / 2], least: runs[0], greatest: runs[runs.len() - 1] }
}

/// Two cache lines between two threads on two cores: nothing can be faster.
fn raw_ping_pong() -> f64 {
    #[repr(align(128))]
    struct Line(AtomicU64);
    static LINES: [Line; 2] = [Line(AtomicU64::new(0)), Line(AtomicU64::new(0))];
    let rounds = ROUNDS.cast_unsigned();
    let run = || {
        for line in &LINES {
            line.0.store(0, Ordering::Relaxed);
        }
        let wait = |line: usize, round| {
            while LINES[line].0.load(Ordering::Acquire) != round {
                std::hint::spin_loop();
            }
        };
        let other = thread::spawn(move || {
            for round in 1..=rounds {
                wait(0, round);
                LINES[1].0.store(round, Ordering::Release);
            }
        });
        let begin = Instant::now();
        for round in 1..=rounds {
            LINES[0].0.store(round, Ordering::Release);
            wait(1, round);
        }
        let elapsed = begin.elapsed().as_nanos() as f64;
        other.join().unwrap();
        elapsed / rounds as f64 / 2.0
    };
    let measured = sorted((0..RUNS).map(|_| run()).collect());
    report("two cache lines, one way (spinning)", measured, measured.median)
}

/// Another process that runs this program with `role`.
fn child(role: &str) -> Child {
    Command::new(std::env::current_exe().unwrap()).args(["--role", role]).spawn().unwrap()
}

fn blocking_take(space: &Space, patterns: &[PatternRef<'_>]) -> i64 {
    space.take(&[TemplateRef::new(patterns)], Order::Fifo, None, number).unwrap()
}

fn say(space: &Space, what: &str, round: i64) {
    space.put(&[Field::Str(what), Field::Int(round), Field::Float(0.5)]).unwrap();
}

fn echo(space: &Space) {
    for round in 0..ROUNDS_IN_ALL {
        blocking_take(space, &[PING, is(round), FLOAT]);
        say(space, "pong", round);
    }
}

fn hand_off(yardstick: f64) {
    let space = fresh(URL);
    let mut echo = child("echo");
    let mut round = 0;
    let runs = (0..RUNS).map(|_| {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            say(&space, "ping", round);
            blocking_take(&space, &[PONG, is(round), FLOAT]);
            round += 1;
        }
        begin.elapsed().as_nanos() as f64 / ROUNDS as f64 / 2.0
    });
    let measured = sorted(runs.collect());
    echo.wait().unwrap();
    report_asked("put -> blocked take in another process, one way", measured, yardstick, 2.0);
}

/// Takers of keys that nobody puts.
fn bystanders(space: &Space) -> Vec<Waiter> {
    let one = |number: i64| {
        let patterns = [JOB, is(-1 - 2 * number), FLOAT];
        space.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap()
    };
    (0..1000).map(one).collect()
}

/// Wakes a thread again and again while it sleeps; the time of that call alone.
fn wakes(sleeper: &Sleeper, wake: impl Fn(u64)) -> Measured {
    let run = |run: u64| {
        let rounds = run * WAKES..(run + 1) * WAKES;
        rounds.map(|round| sleeper.time_to_wake(round, || wake(round))).sum::<f64>() / WAKES as f64
    };
    sorted((0..RUNS as u64).map(run).collect())
}

/// What it costs to wake who sleeps: the kernel's call, and a put. Another thread sleeps in a take of another key meanwhile.
fn sleeping_takers() {
    let rounds = WAKES * RUNS as u64;
    let parked = Sleeper::new(rounds, |_| thread::park());
    let thread = parked.thread();
    let raw = wakes(&parked, |_| thread.unpark());
    let raw = report("a futex's wake of a sleeping thread", raw, raw.median);

    let space = fresh(URL);
    let others = bystanders(&space);
    let take = |what: &'static str| {
        let space = space.clone();
        move |round: u64| {
            let of_this_round = is(round.cast_signed());
            blocking_take(&space, &[PatternRef::Actual(Field::Str(what)), of_this_round, FLOAT]);
        }
    };
    let taker = Sleeper::new(rounds, take("ping"));
    let other = Sleeper::new(1, take("pong"));
    let (before, begin) = (other.times_slept(), Instant::now());
    let put = wakes(&taker, |round| say(&space, "ping", round.cast_signed()));
    let woken = other.times_slept() - before;
    // It looks around by itself each 100 ms (rule L5): so often in whole seconds.
    let by_itself = begin.elapsed().as_secs() * 10 + 10;
    report("put that wakes a sleeping taker, among 1 002", put, raw);
    let name = format!("times that another sleeping taker woke, of {rounds} puts");
    println!(
        "{name:<62} {woken:>9}{}",
        verdict(&format!("at most {by_itself}, by itself"), woken <= by_itself)
    );
    say(&space, "pong", 0);
    other.join();
    drop(others);
}

/// Puts of keys that nobody waits for, and their takes, without and with a thousand waiters.
fn past_waiters() {
    let space = fresh(URL);
    let put_one = |k| put(&space, key(k), 3.5);
    let take_one = |k| assert!(take(&space, &[JOB, is(key(k)), FLOAT]));
    // So that the two fields are known as a key.
    (0..BATCH).for_each(put_one);
    (0..BATCH).rev().for_each(take_one);
    let puts = || measure_in_batches(|| (), put_one, || drain(&space));
    let takes = || measure_in_batches(|| (0..BATCH).for_each(put_one), take_one, || ());
    let (put_alone, take_alone) = (puts(), takes());
    let put_alone = report("put, nobody waits", put_alone, put_alone.median);
    let take_alone = report("take, nobody waits", take_alone, take_alone.median);
    let waiters = bystanders(&space);
    report_asked("put, 1 000 takers wait for other keys", puts(), put_alone, 2.0);
    report("take, 1 000 takers wait for other keys", takes(), take_alone);
    drop(waiters);
}

/// Pairs of one process alone, then of two at once, each with keys of its own. The two are in one shape, which has one
/// lock, and then each in a shape of its own.
fn two_processes() {
    let space = fresh(URL);
    let alone = own_keys(&space, 0, VALUE);
    let alone = report("one process, pairs of its own keys", alone, alone.median);
    for (role, what) in [("keys", "the same shape"), ("shape", "a shape of its own")] {
        let mut other = child(role);
        let both = own_keys(&space, 0, VALUE);
        other.wait().unwrap();
        let both = report(&format!("while another process does so in {what}"), both, alone);
        let work = 2.0 * alone / both;
        let verdict = verdict("at least 1.8", work >= 1.8);
        println!("{:<62} {work:>9.2} x{verdict}", "two processes do, of the work of one");
    }
}

/// Pairs of every second key, with `value` in their last field.
fn own_keys(space: &Space, offset: i64, value: Field<'static>) -> Measured {
    let last = PatternRef::Kinds(KindSet::of(value.kind()));
    let mut k = offset;
    measure(300_000, || {
        k += 2;
        space.put(&[Field::Str("job"), Field::Int(key(k)), value]).unwrap();
        assert!(take(space, &[JOB, is(key(k)), last]));
    })
}

fn main() {
    let role = std::env::args().skip_while(|argument| argument != "--role").nth(1);
    match role.as_deref() {
        Some("echo") => echo(&Space::connect(URL, &ConnectOptions::default()).unwrap()),
        Some("answer") => {
            beside_busy::answer(&Space::connect(URL, &ConnectOptions::default()).unwrap());
        }
        Some("answer-on-socket") => beside_busy::answer_on_socket(),
        Some("burn-0") => beside_busy::burn(0),
        Some("burn-1") => beside_busy::burn(1),
        Some("keys") => {
            own_keys(&Space::connect(URL, &ConnectOptions::default()).unwrap(), 1, VALUE);
        }
        Some("shape") => {
            own_keys(&Space::connect(URL, &ConnectOptions::default()).unwrap(), 1, Field::Int(3));
        }
        _ => {
            let yardstick = raw_ping_pong();
            hand_off(yardstick);
            sleeping_takers();
            past_waiters();
            two_processes();
            beside_busy::measure();
            tupelo::remove(URL).unwrap();
        }
    }
}
