//! A thread that sleeps in the kernel until it is woken, again and again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle, Thread};
use std::time::Instant;

pub(crate) struct Sleeper {
    /// Of the thread, in `/proc`.
    folder: PathBuf,
    /// How often it was woken.
    woken: Arc<AtomicU64>,
    join: JoinHandle<()>,
}

impl Sleeper {
    /// A thread that calls `sleep` so many times, with the number of the round.
    pub(crate) fn new(rounds: u64, sleep: impl Fn(u64) + Send + 'static) -> Self {
        let woken = Arc::new(AtomicU64::new(0));
        let (of_thread, folder) = mpsc::channel();
        let count = Arc::clone(&woken);
        let join = thread::spawn(move || {
            of_thread.send(fs::read_link("/proc/thread-self").unwrap()).unwrap();
            for round in 0..rounds {
                sleep(round);
                count.store(round + 1, Ordering::Release);
            }
        });
        Self { folder: Path::new("/proc").join(folder.recv().unwrap()), woken, join }
    }

    pub(crate) fn thread(&self) -> Thread {
        self.join.thread().clone()
    }

    /// The time of `wake` in nanoseconds. It is called when the thread sleeps in this round; returns when that is over.
    pub(crate) fn time_to_wake(&self, round: u64, wake: impl FnOnce()) -> f64 {
        while !self.is_asleep() {
            thread::yield_now();
        }
        let begin = Instant::now();
        wake();
        let elapsed = begin.elapsed().as_nanos() as f64;
        while self.woken.load(Ordering::Acquire) == round {
            thread::yield_now();
        }
        elapsed
    }

    /// Waits for the end of its rounds.
    pub(crate) fn join(self) {
        self.join.join().unwrap();
    }

    /// How often the thread has gone to sleep by itself so far.
    pub(crate) fn times_slept(&self) -> u64 {
        let status = fs::read_to_string(self.folder.join("status")).unwrap();
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.and_then(|count| count.trim().parse().ok()).expect("a count of switches")
    }

    fn is_asleep(&self) -> bool {
        let stat = fs::read_to_string(self.folder.join("stat")).unwrap();
        // The state follows the name of the program, which stands in brackets and may have any letters.
        stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('S'))
    }
}
