//! What a server of spaces costs, beside Redis on the same machine.
//!
//! Questions: what does a put, a take and a blocked take cost a client who waits for each answer? What do eight clients get
//! done, and clients who send sixteen requests at a time? What does the library of a program add? Does the number of tuples
//! matter? What does a connection cost that only waits?
//!
//! One loop speaks both protocols, over TCP on this machine: so the clients do the same work. It has one thread. With several
//! clients it sends the requests of all, and then reads the answers of all. Runs alternate. The servers are processes of
//! their own; both keep everything in memory.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at a refusal"
)]
#![allow(clippy::cast_precision_loss, reason = "nanoseconds and counts are far below 2^52")]

mod idle;
mod peers;
mod redis;
mod tupelo_raw;

use std::time::Instant;

use peers::{Client, Process, SPACE, Server};
use redis::Redis;
use tupelo::{ConnectOptions, Error, Field, Kind, KindSet, Order, PatternRef, Space, TemplateRef};
use tupelo_raw::Raw;

/// Runs of each figure; the median is printed.
pub(crate) const RUNS: usize = 7;
/// Requests of a run.
const REQUESTS: u32 = 16_000;
/// Tuples that are put at a time to fill a space.
const CHUNK: i64 = 10_000;
/// Threads that share the connection of a process.
const THREADS: u32 = 8;

const JOB: PatternRef<'static> = PatternRef::Actual(Field::Str("job"));
const FLOAT: PatternRef<'static> = PatternRef::Kinds(KindSet::of(Kind::Float));
const INT: PatternRef<'static> = PatternRef::Kinds(KindSet::of(Kind::Int));

fn main() {
    if let Some(role) = std::env::args().skip_while(|argument| argument != "--role").nth(1) {
        assert_eq!(role, "serve", "the one thing that this program does for itself");
        return peers::serve();
    }
    let tupelo = Server::tupelo();
    let Some(redis) = Server::redis() else {
        println!("Redis is not installed: apt-get install redis-server");
        return;
    };
    println!("times of one request; ratios to Redis in the same run");
    for (clients, at_once) in [(1, 1), (8, 1), (1, 16), (8, 16)] {
        beside::<Raw, Redis>(&tupelo, &redis, clients, at_once);
    }
    blocked(&tupelo, &redis);
    library(&tupelo, &redis);
    keyed(&tupelo);
    idle::connections(&tupelo);
}

/// The median.
pub(crate) fn median(mut runs: Vec<f64>) -> f64 {
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

/// Nanoseconds of each of the requests that `act` makes.
fn each(requests: u32, act: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    act();
    begin.elapsed().as_nanos() as f64 / f64::from(requests)
}

/// Prints a figure, beside that of Redis. `asked` is what the ratio may be.
fn row(name: &str, ours: Vec<f64>, theirs: Vec<f64>, asked: f64) {
    let (ours, theirs) = (median(ours), median(theirs));
    let ratio = ours / theirs;
    let verdict = if ratio <= asked { "reached" } else { "MISSED" };
    println!(
        "{name:<58} {:>8.2} us, Redis {:>8.2} us  {ratio:>5.2} x  (asked: at most {asked:.2}; {verdict})",
        ours / 1e3,
        theirs / 1e3
    );
}

/// Puts and takes of so many clients, each of which sends `at_once` requests before it reads their answers.
fn beside<O: Client, T: Client>(ours: &Server, theirs: &Server, clients: u32, at_once: u32) {
    let mut ours: Vec<O> = (0..clients).map(|_| O::connect(ours)).collect();
    let mut theirs: Vec<T> = (0..clients).map(|_| T::connect(theirs)).collect();
    let mut runs = [(); 4].map(|()| Vec::new());
    for _ in 0..=RUNS {
        let figures = [
            run(&mut ours, at_once, O::put),
            run(&mut theirs, at_once, T::put),
            run(&mut ours, at_once, O::take),
            run(&mut theirs, at_once, T::take),
        ];
        runs.iter_mut().zip(figures).for_each(|(runs, figure)| runs.push(figure));
    }
    // The first one warms up.
    let [our_puts, their_puts, our_takes, their_takes] = runs.map(|runs| runs[1..].to_vec());
    // As issued: a round trip 1.15 x, eight clients 1.5 x the throughput, sixteen at a time twice.
    let asked = match (clients, at_once) {
        (1, 1) => 1.15,
        (_, 1) => 1.0 / 1.5,
        _ => 0.5,
    };
    let of = format!("{clients} clients, {at_once} at a time");
    row(&format!("put beside LPUSH: {of}"), our_puts, their_puts, asked);
    row(&format!("take beside RPOP: {of}"), our_takes, their_takes, asked);
}

/// Nanoseconds of one request of a run: all clients send, then all read.
fn run<C: Client>(clients: &mut [C], at_once: u32, request: fn(&mut C)) -> f64 {
    let at_a_time = u32::try_from(clients.len()).unwrap() * at_once;
    let rounds = REQUESTS / at_a_time;
    each(rounds * at_a_time, || {
        for _ in 0..rounds {
            for client in &mut *clients {
                (0..at_once).for_each(|_| request(client));
                client.send();
            }
            for client in &mut *clients {
                client.read(at_once);
            }
        }
    })
}

/// A take that waits, and is woken by the put of another client: from before the put until the tuple is there.
fn blocked(ours: &Server, theirs: &Server) {
    let mut runs = [Vec::new(), Vec::new()];
    let (mut our_taker, mut our_putter) = (Raw::connect(ours), Raw::connect(ours));
    let (mut taker, mut putter) = (Redis::connect(theirs), Redis::connect(theirs));
    for _ in 0..=RUNS {
        runs[0].push(wakes(&mut our_taker, &mut our_putter));
        runs[1].push(wakes(&mut taker, &mut putter));
    }
    let [our_runs, their_runs] = runs.map(|runs| runs[1..].to_vec());
    row("blocked take woken by a put beside BRPOP", our_runs, their_runs, 1.15);
}

fn wakes<C: Client>(taker: &mut C, putter: &mut C) -> f64 {
    let rounds = REQUESTS / 8;
    let times = (0..rounds).map(|_| {
        taker.take_waiting();
        taker.send();
        // Answered behind the take that waits: it is in line from here on.
        putter.ping();
        putter.send();
        putter.read(1);
        let begin = Instant::now();
        putter.put();
        putter.send();
        taker.read(1);
        let elapsed = begin.elapsed().as_nanos() as f64;
        putter.read(1);
        elapsed
    });
    median(times.collect())
}

/// The calls of a program, by one thread and by several that share the connection; those of Redis have one each.
fn library(ours: &Server, theirs: &Server) {
    let space = open(ours);
    let put = |number| space.put(&[Field::Str("job"), Field::Int(number)]).unwrap();
    let take = |_| {
        let patterns = [JOB, INT];
        let taken =
            space.try_take(&[TemplateRef::new(&patterns)], Order::Fifo, |_| Ok::<_, Error>(()));
        assert!(taken.unwrap().is_some());
    };
    for threads in [1, THREADS] {
        let mut clients: Vec<Redis> = (0..threads).map(|_| Redis::connect(theirs)).collect();
        let mut runs = [(); 4].map(|()| Vec::new());
        for _ in 0..=RUNS {
            let figures = [
                calls(threads, put),
                in_threads(&mut clients, Redis::put),
                calls(threads, take),
                in_threads(&mut clients, Redis::take),
            ];
            runs.iter_mut().zip(figures).for_each(|(runs, figure)| runs.push(figure));
        }
        let [our_puts, their_puts, our_takes, their_takes] = runs.map(|runs| runs[1..].to_vec());
        let asked = if threads == 1 { 1.15 } else { 1.0 / 1.5 };
        row(&format!("Space::put beside LPUSH: {threads} threads"), our_puts, their_puts, asked);
        row(
            &format!("Space::try_take beside RPOP: {threads} threads"),
            our_takes,
            their_takes,
            asked,
        );
    }
}

/// Nanoseconds of one request, each client in a thread of its own, which waits for each answer.
fn in_threads<C: Client + Send>(clients: &mut [C], request: fn(&mut C)) -> f64 {
    let threads = u32::try_from(clients.len()).unwrap();
    let each_thread = REQUESTS / threads;
    each(each_thread * threads, || {
        std::thread::scope(|scope| {
            for client in clients {
                scope.spawn(move || {
                    for _ in 0..each_thread {
                        request(client);
                        client.send();
                        client.read(1);
                    }
                });
            }
        });
    })
}

/// Nanoseconds of a call of one of so many threads that make them at the same time.
fn calls(threads: u32, call: impl Fn(i64) + Sync) -> f64 {
    let each_thread = REQUESTS / threads;
    each(each_thread * threads, || {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..i64::from(each_thread)).for_each(&call));
            }
        });
    })
}

/// A take by a key, and the put that brings it back, among a thousand tuples and among a million.
fn keyed(ours: &Server) {
    let space = open(ours);
    let pair = |key: i64| {
        let patterns = [JOB, PatternRef::Actual(Field::Int(key)), FLOAT];
        let taken =
            space.try_take(&[TemplateRef::new(&patterns)], Order::Fifo, |_| Ok::<_, Error>(()));
        assert!(taken.unwrap().is_some(), "there is a tuple of the key {key}");
        space.put(&[Field::Str("job"), Field::Int(key), Field::Float(0.5)]).unwrap();
    };
    let mut filled = 0;
    let [few, many] = [1_000, 1_000_000].map(|tuples: i64| {
        while filled < tuples {
            let chunk = CHUNK.min(tuples - filled);
            let fields: Vec<_> = (filled..filled + chunk)
                .map(|key| [Field::Str("job"), Field::Int(key), Field::Float(0.5)])
                .collect();
            let tuples: Vec<_> = fields.iter().map(|fields| &fields[..]).collect();
            space.put_all(&tuples).unwrap();
            filled += chunk;
        }
        // Keys in no order, so that none is in a cache since the one before.
        let keys = |n: i64| n.wrapping_mul(7_919_317).rem_euclid(tuples);
        let run = |_| each(REQUESTS, || (0..i64::from(REQUESTS)).for_each(|n| pair(keys(n))));
        median((0..=RUNS).map(run).skip(1).collect())
    });
    let verdict = if many / few <= 1.3 { "reached" } else { "MISSED" };
    println!(
        "take by a key and put, among 1 000 000: {:.2} us, among 1 000: {:.2} us  {:.2} x  (asked: at most 1.30; {verdict})",
        many / 1e3,
        few / 1e3,
        many / few
    );
}

/// The space of the server, as a program opens it.
pub(crate) fn open(server: &Server) -> Space {
    let url = format!("tcp://127.0.0.1:{}/{SPACE}", server.port);
    Space::connect(&url, &ConnectOptions::default()).unwrap()
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
