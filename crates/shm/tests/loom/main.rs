//! The lock in every order in which threads can interleave that interrupts them at most twice, and with the death of its
//! owner at every step (C1). The code is the crate's own; what stands below it here is a few words, and a kernel of three rules.
//!
//! Nothing wakes by time here, but for one case that is named: whoever sleeps and is not woken sleeps for ever,
//! which loom reports. So a wake-up that only a time-out would have made up for is found.
#![allow(dead_code, unreachable_pub, reason = "the lock's file has more than these tests use")]
#![allow(clippy::inline_always, reason = "the lock's file is a part of its crate")]
#![allow(clippy::unused_self, reason = "what stands below it is called as the real things are")]
#![allow(clippy::unwrap_used, reason = "a step that fails, fails the test")]

mod world;

#[path = "../../src/lock.rs"]
mod lock;

use world::{access, error, futex, log, memory, process, sync, thread};

use loom::thread::spawn;
use tupelo_crashtest::{phase, thorough};
use world::{Fate, World, live};

/// Switches between threads at places where neither has to wait. What two or three threads can do wrong shows with few
/// switches. Without a bound three threads take minutes.
const SWITCHES_MAX: usize = 2;

fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(SWITCHES_MAX);
    builder.check(test);
}

#[test]
fn of_two_threads_each_sees_what_the_other_stored_inside() {
    explore(|| {
        let world = World::new();
        let other = spawn(move || live(world, 1, Fate::Lives));
        live(world, 2, Fate::Lives);
        other.join().unwrap();
        assert_eq!(world.pair(), (2, 2));
    });
}

#[test]
fn of_three_threads_nobody_is_left_asleep() {
    explore(|| {
        let world = World::new();
        let others = [1, 2].map(|number| spawn(move || live(world, number, Fate::Lives)));
        live(world, 3, Fate::Lives);
        for other in others {
            assert!(other.join().unwrap());
        }
        assert_eq!(world.pair(), (3, 3));
    });
}

#[test]
fn a_reader_without_the_lock_never_takes_half_a_section_for_the_whole() {
    explore(|| {
        let world = World::new();
        let writer = spawn(move || live(world, 1, Fate::Lives));
        let view = world.view();
        if let Some(sequence) = view.begin_read(world::SCOPE) {
            let (left, right) = world.racing_pair();
            if view.unchanged(world::SCOPE, sequence) {
                assert_eq!(left, right);
            }
        }
        writer.join().unwrap();
    });
}

/// Runs a victim that dies at each of its steps in turn, or at one of `stride`, others in each phase, beside `others` that
/// live. Returns how many steps it has, to the stride.
fn die_everywhere(others: usize, stride: usize) -> usize {
    let mut step = phase() % stride;
    loop {
        let died = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let seen = std::sync::Arc::clone(&died);
        explore(move || {
            let world = World::new();
            let numbers = 2..2 + u32::try_from(others).unwrap();
            let recoverers: Vec<_> =
                numbers.map(|number| spawn(move || live(world, number, Fate::Lives))).collect();
            let committed = live(world, 1, Fate::DiesAfter(step));
            if world.has_dead() {
                seen.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            for recoverer in recoverers {
                assert!(recoverer.join().unwrap());
            }
            // Whoever comes next settles what is left.
            assert!(live(world, 9, Fate::Lives));
            let sections = u32::try_from(others).unwrap() + 1 + u32::from(committed);
            assert_eq!(world.pair(), (sections, sections));
        });
        if !died.load(std::sync::atomic::Ordering::Relaxed) {
            return step;
        }
        step += stride;
    }
}

#[test]
fn an_owner_that_dies_at_any_step_leaves_a_recoverer_that_goes_on() {
    assert!(die_everywhere(1, 1) > 15, "steps to die at");
}

#[test]
fn of_two_that_wait_for_a_dead_owner_both_go_on() {
    // One step takes a second and more.
    let stride = if thorough() { 1 } else { 3 };
    assert!(die_everywhere(2, stride) > 15, "steps to die at");
}
