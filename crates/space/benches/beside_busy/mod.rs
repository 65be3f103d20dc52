//! Requests and answers of two processes on two processors, beside processes that never sleep: through a space, and
//! through a socketpair.
//!
//! The load is open: a request is due at its time, whether or not the one before has been answered. The time of an answer
//! counts from then on.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use tupelo::Space;

use super::common::{FLOAT, INT, fresh, is, verdict};
use super::{PING, PONG, URL, blocking_take, say};

const BUSY_MAX: usize = 4;
const RATES: [u32; 2] = [1_000, 10_000];
/// Pairs of runs, a socket's and a space's in turns.
const PAIRS: usize = 10;
/// A run takes a part of a second.
const RUNS_PER_S: u32 = 4;
/// The most that a space may take, in times of what the socket takes.
const RATIO_MAX: f64 = 1.3;

/// A process that is killed with its owner.
struct Other(Child);

impl Other {
    fn new(role: &str, input: Stdio) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        Self(command.args(["--role", role]).stdin(input).spawn().unwrap())
    }

    /// For how long it has run, in microseconds.
    fn run_us(&self) -> f64 {
        run_us(self.0.id())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn run_us(pid: u32) -> f64 {
    let times = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    times.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e3
}

fn pin(processor: usize) {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).unwrap();
}

/// Keeps a processor busy.
pub(crate) fn burn(processor: usize) -> ! {
    pin(processor);
    loop {
        std::hint::spin_loop();
    }
}

/// Answers each request in the space.
pub(crate) fn answer(space: &Space) {
    pin(1);
    loop {
        let round = blocking_take(space, &[PING, INT, FLOAT]);
        say(space, "pong", round);
    }
}

/// Answers each request on the socket that is the standard input.
pub(crate) fn answer_on_socket() {
    pin(1);
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().unwrap());
    let mut bytes = [0; 8];
    while socket.read_exact(&mut bytes).is_ok() {
        socket.write_all(&bytes).unwrap();
    }
}

/// What a run has shown, in microseconds.
struct Run {
    p50: f64,
    p99: f64,
    /// Of both processes, for a request.
    processor: f64,
}

fn run(rate: u32, other: &Other, mut ask: impl FnMut(i64)) -> Run {
    let requests = rate / RUNS_PER_S;
    let both = || other.run_us() + run_us(std::process::id());
    let before = both();
    let begin = Instant::now() + Duration::from_millis(1);
    let mut times: Vec<f64> = (0..requests)
        .map(|number| {
            let due = begin + Duration::from_secs(1) * number / rate;
            while let left = due.saturating_duration_since(Instant::now())
                && !left.is_zero()
            {
                thread::sleep(left.saturating_sub(Duration::from_micros(150)));
            }
            ask(number.into());
            due.elapsed().as_nanos() as f64 / 1e3
        })
        .collect();
    let processor = (both() - before) / f64::from(requests);
    times.sort_by(f64::total_cmp);
    Run { p50: times[times.len() / 2], p99: times[times.len() * 99 / 100], processor }
}

fn median(of: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = of.collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Measures both, beside none to four busy processes.
pub(crate) fn measure() {
    if thread::available_parallelism().unwrap().get() < 2 {
        return println!("beside busy processes: not measured, with one processor");
    }
    // In a thread of its own, which alone is pinned.
    thread::spawn(|| {
        pin(0);
        let space = fresh(URL);
        let answers = Other::new("answer", Stdio::null());
        let (mut socket, its) = UnixStream::pair().unwrap();
        let socket_answers = Other::new("answer-on-socket", OwnedFd::from(its).into());
        let mut bytes = [0; 8];
        let mut ask_socket = |_| {
            socket.write_all(&bytes).unwrap();
            socket.read_exact(&mut bytes).unwrap();
        };
        let mut ask_space = |round| {
            say(&space, "ping", round);
            blocking_take(&space, &[PONG, is(round), FLOAT]);
        };
        let mut busy = Vec::new();
        for count in 0..=BUSY_MAX {
            for rate in RATES {
                let pairs: Vec<[Run; 2]> = (0..PAIRS)
                    .map(|_| {
                        [
                            run(rate, &socket_answers, &mut ask_socket),
                            run(rate, &answers, &mut ask_space),
                        ]
                    })
                    .collect();
                report(&format!("{count} busy processes, {rate} requests/s"), &pairs);
            }
            busy.push(Other::new(&format!("burn-{}", count % 2), Stdio::null()));
        }
    })
    .join()
    .unwrap();
}

fn report(name: &str, pairs: &[[Run; 2]]) {
    let ratio = median(pairs.iter().map(|[socket, space]| space.p50 / socket.p50));
    let each = |of: fn(&Run) -> f64| {
        let [socket, space] = [0, 1].map(|which| median(pairs.iter().map(|pair| of(&pair[which]))));
        format!("{space:.1} ({socket:.1})")
    };
    let name = format!("{name}: of a socketpair's p50");
    println!("{name:<62} {ratio:>9.2} x{}", verdict("at most 1.3", ratio <= RATIO_MAX));
    println!(
        "    us, and a socketpair's: p50 {}, p99 {}, processor time per request {}",
        each(|run| run.p50),
        each(|run| run.p99),
        each(|run| run.processor)
    );
}
