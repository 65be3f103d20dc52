//! Connections that wait, and do nothing else.

use std::time::{Duration, Instant};

use crate::peers::{Client, Server};
use crate::tupelo_raw::Raw;
use crate::{median, open};
use tupelo::Field;

/// How many there are.
const CONNECTIONS: i64 = 10_000;
/// How long nothing happens while the server's processor time is looked at.
const REST: Duration = Duration::from_secs(5);
/// How often one of them is woken.
const WAKES: i64 = 200;

/// What ten thousand connections cost the server, each with one take that waits; and how soon a put wakes the right one.
pub(crate) fn connections(server: &Server) {
    let pid = server.process.0.id();
    let before = resident_bytes(pid);
    let mut idle: Vec<Raw> = (0..CONNECTIONS).map(|_| Raw::connect(server)).collect();
    for (raw, number) in idle.iter_mut().zip(0..) {
        raw.wait_for_ever(number);
    }
    for raw in &mut idle {
        raw.ping();
        raw.send();
        raw.read(1);
    }
    let each = (resident_bytes(pid) - before) / CONNECTIONS as f64 / 1024.0;
    println!(
        "memory of the server for a connection that waits: {each:.1} KiB  (asked: at most 20)"
    );
    let busy = processor_ticks(pid);
    std::thread::sleep(REST);
    let ticks = processor_ticks(pid) - busy;
    println!(
        "its processor time in {} s without a request: {ticks} ticks of 10 ms",
        REST.as_secs()
    );
    let space = open(server);
    let times = (0..WAKES).map(|wake| {
        let number = (wake * 7_919) % CONNECTIONS;
        let raw = &mut idle[usize::try_from(number).unwrap()];
        let begin = Instant::now();
        space.put(&[Field::Str("idle"), Field::Int(number)]).unwrap();
        raw.read(1);
        let woken = begin.elapsed().as_nanos() as f64;
        raw.wait_for_ever(number);
        woken
    });
    let woken = median(times.collect());
    let times = (0..WAKES).map(|_| {
        let begin = Instant::now();
        space.put(&[Field::Str("none")]).unwrap();
        begin.elapsed().as_nanos() as f64
    });
    let trip = median(times.collect());
    let verdict = if woken <= 2.0 * trip { "reached" } else { "MISSED" };
    println!(
        "a put wakes the right one of them: {:.1} us, a put alone: {:.1} us  {:.2} x  (asked: at most 2.00; {verdict})",
        woken / 1e3,
        trip / 1e3,
        woken / trip
    );
}

/// The memory of a process that is in use, in bytes.
fn resident_bytes(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0
}

/// The processor time of a process, in ticks of the clock.
fn processor_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // Behind the name, which may have spaces: the 12th and 13th.
    let fields = stat.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
    fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}
