//! Handing over to a blocked caller, in every order in which those concerned can interleave that interrupts them at most
//! three times (T3, T5, T6). The signal is the engine's own; the lock is taken for one, and time stands still: whoever sleeps and is not
//! woken sleeps for ever, which loom reports.
#![allow(unreachable_pub, reason = "the signal's file is a part of its crate")]
#![allow(clippy::unwrap_used, reason = "a step that fails, fails the test")]

#[path = "../../src/base/signal.rs"]
mod signal;

use std::time::Duration;

use loom::sync::{Arc, Mutex};
use loom::thread::spawn;
use sync::{AtomicU32, Ordering};

/// The modules that the signal's file uses.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};

    pub(crate) mod futex {
        use std::time::Duration;

        use loom::sync::{Condvar, Mutex};

        use super::{AtomicU32, Ordering};

        loom::lazy_static! {
            /// Whether the owner of the signal, who alone sleeps on it, does.
            static ref SLEEPS: Mutex<bool> = Mutex::new(false);
            static ref WOKEN: Condvar = Condvar::new();
        }

        pub(crate) fn wait(word: &AtomicU32, expected: u32, _: Option<Duration>) {
            let mut sleeps = SLEEPS.lock().unwrap();
            if word.load(Ordering::SeqCst) != expected {
                return;
            }
            *sleeps = true;
            while *sleeps {
                sleeps = WOKEN.wait(sleeps).unwrap();
            }
        }

        pub(crate) fn wake(_: &AtomicU32, _: u32) {
            *SLEEPS.lock().unwrap() = false;
            WOKEN.notify_all();
        }
    }
}

/// A wait node, and what its lock protects.
struct Space {
    signal: AtomicU32,
    record: AtomicU32,
    locked: Mutex<Locked>,
}

#[derive(Default)]
struct Locked {
    is_queued: bool,
    tuples: Vec<u32>,
}

impl Space {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            signal: AtomicU32::new(signal::AWAKE),
            record: AtomicU32::new(0),
            locked: Mutex::new(Locked::default()),
        })
    }

    /// Stores a tuple, or hands it to who is in the wait queue.
    fn put(&self, tuple: u32) {
        let mut locked = self.locked.lock().unwrap();
        let is_taken = std::mem::take(&mut locked.is_queued);
        if is_taken {
            self.record.store(tuple, Ordering::Relaxed);
        } else {
            locked.tuples.push(tuple);
        }
        drop(locked);
        if is_taken {
            signal::raise(&self.signal, 0);
        }
    }

    fn join_queue(&self) {
        let mut locked = self.locked.lock().unwrap();
        match locked.tuples.pop() {
            Some(tuple) => self.record.store(tuple, Ordering::Relaxed),
            None => locked.is_queued = true,
        }
    }

    /// Takes a tuple, waiting for it.
    fn take(&self) -> u32 {
        self.join_queue();
        loop {
            let tuple = self.record.load(Ordering::Relaxed);
            if tuple != 0 {
                // Picks it up: only the owner does.
                self.record.store(0, Ordering::Relaxed);
                return tuple;
            }
            while !signal::take(&self.signal) {
                signal::sleep(&self.signal, Duration::from_secs(1));
            }
        }
    }

    /// Leaves the wait queue. Returns what was handed over until then.
    fn give_up(&self) -> Option<u32> {
        self.locked.lock().unwrap().is_queued = false;
        let tuple = self.record.load(Ordering::Relaxed);
        self.record.store(0, Ordering::Relaxed);
        (tuple != 0).then_some(tuple)
    }

    fn left(&self) -> Vec<u32> {
        self.locked.lock().unwrap().tuples.clone()
    }
}

/// Switches between threads at places where neither has to wait. What two or three threads can do wrong shows with few
/// switches. Without a bound three threads take minutes.
const SWITCHES_MAX: usize = 3;

fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(SWITCHES_MAX);
    builder.check(test);
}

#[test]
fn who_waits_for_a_tuple_gets_it() {
    explore(|| {
        let space = Space::new();
        let putter = spawn({
            let space = Arc::clone(&space);
            move || space.put(7)
        });
        assert_eq!(space.take(), 7);
        putter.join().unwrap();
        assert_eq!(space.left(), []);
    });
}

#[test]
fn of_two_puts_one_serves_who_waits_and_the_other_stays() {
    explore(|| {
        let space = Space::new();
        let putters = [7, 8].map(|tuple| {
            let space = Arc::clone(&space);
            spawn(move || space.put(tuple))
        });
        let taken = space.take();
        for putter in putters {
            putter.join().unwrap();
        }
        assert_eq!(space.left(), [15 - taken]);
    });
}

/// The put that served the first wait may raise its signal only when the same wait node waits again.
#[test]
fn a_signal_that_comes_late_neither_serves_nor_hides_the_next_one() {
    explore(|| {
        let space = Space::new();
        let putters = [7, 8].map(|tuple| {
            let space = Arc::clone(&space);
            spawn(move || space.put(tuple))
        });
        let mut taken = [space.take(), space.take()];
        taken.sort_unstable();
        assert_eq!(taken, [7, 8]);
        for putter in putters {
            putter.join().unwrap();
        }
    });
}

#[test]
fn who_gives_up_has_the_tuple_or_leaves_it_to_others_t5() {
    explore(|| {
        let space = Space::new();
        space.join_queue();
        let putter = spawn({
            let space = Arc::clone(&space);
            move || space.put(7)
        });
        let handed = space.give_up();
        putter.join().unwrap();
        let all: Vec<u32> = handed.into_iter().chain(space.left()).collect();
        assert_eq!(all, [7]);
    });
}
