//! How late what is due happens.
//!
//! Question: how long after its time does a blocked caller see that a tuple is there, or is gone? How long until it is
//! back from a claim of a silent holder? Who subscribed, who waits for room, and who is not blocked, but looks again
//! and again? And how long is a call held up when a million leases end at one moment? Nobody but the one caller keeps
//! the time meanwhile. What is asked for is 20 ms; the yardstick is a sleep of the system. How soon is a tuple back
//! whose holder was killed? 100 ms are asked for, which is how often who sleeps looks for the dead (rule L5). And how
//! late is what is due to one of two who are blocked, while the other one, who keeps the time, is stopped?
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at a refusal"
)]
#![allow(clippy::cast_precision_loss, reason = "nanoseconds and counts are far below 2^52")]

mod common;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use common::{FLOAT, INT, JOB, fresh, is, key, number, put, take, verdict};
use tupelo::{
    ClaimTerms, ConnectOptions, Error, EventKind, Field, LeaseTerms, Order, PatternRef, Space,
    SubscribeTerms, TemplateRef, Watch,
};

/// When it is due, from when the clock is looked at.
const DUE: Duration = Duration::from_millis(5);
const ROUNDS: usize = 400;
/// Leases that end at one moment, when the last of them was put.
const TOGETHER: i64 = 1_000_000;

/// Times that a holder is killed.
const KILLS: usize = 50;
/// Times that the one who keeps the time is stopped.
const STOPS: usize = 50;
/// What is due to others then: long enough after it is put for the one to be stopped.
const DUE_TO_STOPPED: Duration = Duration::from_millis(50);
/// How often who is blocked looks around at least.
const SLICE: Duration = Duration::from_millis(100);
/// How late may be what is due, in milliseconds.
const LATE_MS_MAX: f64 = 20.0;
/// How late may be what only those who look around notice: that a process is dead, or that who keeps the time is stopped.
const LOOKED_MS_MAX: f64 = 100.0;
const CLAIMED: PatternRef<'static> = PatternRef::Actual(Field::Str("claimed"));
const URL: &str = "shm://bench-lateness";

/// Prints how much later than [`DUE`] after its beginning `call` ends.
fn lateness(name: &str, mut call: impl FnMut()) {
    let late_us = (0..ROUNDS).map(|_| {
        let begin = Instant::now();
        call();
        (begin.elapsed().as_nanos() as f64 - DUE.as_nanos() as f64) / 1e3
    });
    report_late(name, late_us.collect(), LATE_MS_MAX);
}

/// Prints a row. All but one of a hundred are to be within `most_ms`: what the system does to a process that is due may take longer.
fn report_late(name: &str, mut late_us: Vec<f64>, most_ms: f64) {
    late_us.sort_by(f64::total_cmp);
    let at = |share: usize| late_us[(late_us.len() - 1) * share / 100];
    let (middle, most, all) = (at(50), at(99), at(100));
    let verdict = verdict(&format!("within {most_ms} ms"), most <= most_ms * 1e3);
    println!(
        "{name:<62} {middle:>9.0} us late  (99 of 100 within {most:.0}, all within {all:.0}){verdict}"
    );
}

fn put_on(space: &Space, terms: &LeaseTerms) {
    space.put_leased(&[Field::Str("job"), Field::Int(1), Field::Float(3.5)], terms).unwrap();
}

fn for_who_is_blocked(space: &Space) {
    let patterns = [JOB, INT, FLOAT];
    let template = [TemplateRef::new(&patterns)];
    lateness("a sleep of the system", || thread::sleep(DUE));
    lateness("a tuple that is there later, to a take that waits for it", || {
        put_on(space, &LeaseTerms { lease: None, after: Some(DUE) });
        space.take(&template, Order::Fifo, None, number).unwrap();
    });
    lateness("a tuple whose lease ends, to who waits for its end", || {
        let watch = space.watch(&template, Watch::Removal).unwrap();
        put_on(space, &LeaseTerms { lease: Some(DUE), after: None });
        // May be woken in vain, but not before its time: then it would count as early.
        assert!(watch.wait(None).unwrap());
    });
    lateness("a tuple that is there later, to who looks again and again", || {
        put_on(space, &LeaseTerms { lease: None, after: Some(DUE) });
        while !take(space, &patterns) {}
    });
    let terms = SubscribeTerms::new([EventKind::Expire], 16);
    let subscription = space.subscribe(&template, &terms).unwrap();
    lateness("a tuple whose lease ends, to a subscriber that waits to hear of it", || {
        put_on(space, &LeaseTerms { lease: Some(DUE), after: None });
        assert!(subscription.next(None, |event| number(event.tuple)).unwrap().is_some());
    });
    drop(subscription);
    lateness("a tuple whose claim ends, to a take that waits for it", || {
        put(space, 1, 3.5);
        let terms = ClaimTerms { ttl: DUE, attempts_max: None };
        let claim = space.try_claim(&template, Order::Fifo, &terms, number).unwrap();
        space.take(&template, Order::Fifo, None, number).unwrap();
        drop(claim);
    });
}

/// Who is blocked in a take of what another process has claimed, which is killed then.
fn for_who_waits_for_a_killed_holder(space: &Space) {
    let patterns = [JOB, INT, FLOAT];
    let template = [TemplateRef::new(&patterns)];
    let program = std::env::current_exe().unwrap();
    let late_us = (0..KILLS).map(|_| {
        put(space, 1, 3.5);
        let mut holder = Command::new(&program).args(["--role", "holder"]).spawn().unwrap();
        space
            .take(&[TemplateRef::new(&[CLAIMED])], Order::Fifo, None, |_| Ok::<_, Error>(()))
            .unwrap();
        thread::scope(|scope| {
            let taker = scope.spawn(|| {
                space.take(&template, Order::Fifo, None, number).unwrap();
                Instant::now()
            });
            // So that it is asleep: one that still looks around would find out sooner.
            thread::sleep(DUE);
            let begin = Instant::now();
            holder.kill().unwrap();
            let late = taker.join().unwrap().duration_since(begin);
            holder.wait().unwrap();
            late.as_nanos() as f64 / 1e3
        })
    });
    let name = "a tuple whose holder is killed, to a take that waits for it";
    report_late(name, late_us.collect(), LOOKED_MS_MAX);
}

/// Who is blocked beside the one who keeps the time, which is stopped before it would wake.
fn for_who_waits_beside_a_stopped_leader(space: &Space) {
    let patterns = [JOB, INT, FLOAT];
    let template = [TemplateRef::new(&patterns)];
    let program = std::env::current_exe().unwrap();
    let mut leader = Command::new(&program).args(["--role", "leader"]).spawn().unwrap();
    let number_of_it = leader.id().to_string();
    let send = |signal: &str| {
        assert!(Command::new("kill").args([signal, &number_of_it]).status().unwrap().success());
    };
    let late_us = (0..STOPS).map(|_| {
        // Whoever is blocked keeps the time by then, if nobody else does.
        thread::sleep(2 * SLICE);
        let begin = Instant::now();
        put_on(space, &LeaseTerms { lease: None, after: Some(DUE_TO_STOPPED) });
        send("-STOP");
        space.take(&template, Order::Fifo, None, number).unwrap();
        let late = begin.elapsed().as_nanos() as f64 - DUE_TO_STOPPED.as_nanos() as f64;
        send("-CONT");
        late / 1e3
    });
    let name = "a tuple that is there later, beside a leader that is stopped";
    report_late(name, late_us.collect(), LOOKED_MS_MAX);
    leader.kill().unwrap();
    leader.wait().unwrap();
}

/// Waits for what never comes, and keeps the time meanwhile.
fn keep(space: &Space) {
    let template = [TemplateRef::new(&[CLAIMED])];
    space.take(&template, Order::Fifo, None, |_| Ok::<_, Error>(())).unwrap();
}

/// Claims the tuple, says so, and holds it until it is killed.
fn hold(space: &Space) {
    let patterns = [JOB, INT, FLOAT];
    let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
    let template = [TemplateRef::new(&patterns)];
    let _claim = space.try_claim(&template, Order::Fifo, &terms, number).unwrap().unwrap();
    space.put(&[Field::Str("claimed")]).unwrap();
    loop {
        thread::park();
    }
}

/// For whom the end of a lease is room: the only tuple that the space may have is there.
fn for_who_waits_for_room(space: &Space) {
    let patterns = [JOB, INT, FLOAT];
    let terms = LeaseTerms { lease: Some(DUE), after: None };
    lateness("a tuple whose lease ends, to a put that waits for its place", || {
        put_on(space, &terms);
        space.when_room(None, |space| space.put(&[Field::Str("job"), Field::Int(2)])).unwrap();
        assert!(take(space, &[JOB, INT]));
        assert!(!take(space, &patterns), "its place was had before its end");
    });
}

/// How long calls take while many leases end at one moment: that of who clears them away, and somebody else's.
fn leases_that_end_together(space: &Space) {
    let end = Instant::now() + Duration::from_secs(5);
    for k in 0..TOGETHER {
        let terms = LeaseTerms { lease: Some(end - Instant::now()), after: None };
        let fields = [Field::Str("job"), Field::Int(key(k)), Field::Float(3.5)];
        space.put_leased(&fields, &terms).unwrap();
    }
    let longest = || {
        let mut longest = Duration::ZERO;
        while Instant::now() < end + Duration::from_secs(2) {
            let begin = Instant::now();
            assert!(!take(space, &[JOB, is(1), FLOAT]));
            longest = longest.max(begin.elapsed());
        }
        longest.as_secs_f64() * 1e3
    };
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(longest);
        (longest(), other.join().unwrap())
    });
    assert_eq!(space.count(&[TemplateRef::new(&[JOB, INT, FLOAT])]), Ok(0));
    let verdict = verdict(&format!("within {LATE_MS_MAX} ms"), one.max(other) <= LATE_MS_MAX);
    println!(
        "{TOGETHER} leases end at one moment: the longest calls of two threads take {one:.0} and {other:.0} ms{verdict}"
    );
}

fn main() {
    if let Some(role) = std::env::args().skip_while(|argument| argument != "--role").nth(1) {
        let space = Space::connect(URL, &ConnectOptions::default()).unwrap();
        return if role == "leader" { keep(&space) } else { hold(&space) };
    }
    for url in [URL, "mem://bench-lateness"] {
        println!("{url}");
        let space = fresh(url);
        for_who_is_blocked(&space);
        leases_that_end_together(&space);
        let one = ConnectOptions { tuples_max: Some(1), fresh: true, ..ConnectOptions::default() };
        for_who_waits_for_room(&Space::connect(url, &one).unwrap());
        tupelo::remove(url).unwrap();
    }
    for_who_waits_beside_a_stopped_leader(&fresh(URL));
    for_who_waits_for_a_killed_holder(&fresh(URL));
    tupelo::remove(URL).unwrap();
}
