//! The machine's monotonic clock, at three prices.
//!
//! | what | ns | how far it is off |
//! |---|---:|---|
//! | [`monotonic_ns`] | 20 | |
//! | [`monotonic_ahead_ns`] | 9 | up to 0.1 ms ahead, never behind: for ends that must not come too early |
//! | [`monotonic_coarse_ns`] | 3 | behind, by a timer tick and for as long as the host stops us |
//!
//! What makes the exact clock dear is that it waits for all instructions before it. The second one does not need to
//! know how late it is, only that it is not yet later than the time that it says. It looks at the exact clock, and says
//! a time 0.1 ms ahead of that. It goes on to say so until the processor's cycle counter has moved on by 0.08 ms. It is
//! the exact clock where the kernel did not keep its own time by that counter when the process opened its first space.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// How far ahead [`monotonic_ahead_ns`] may be, in nanoseconds.
pub const AHEAD_NS: u64 = 100_000;
/// For how long one look at the exact clock is good. Less than [`AHEAD_NS`], for two reasons. The kernel slews its
/// clock by up to a tenth, and a processor may look at its counter a few instructions early.
const GOOD_NS: u64 = 80_000;
/// For how long the counter is watched, to learn how fast it is. Three times: each may be interrupted.
const WATCHED_NS: u64 = 10_000;

/// What [`monotonic_ahead_ns`] says until the counter reaches [`LIMIT`]. It only grows.
static BOUND_NS: AtomicU64 = AtomicU64::new(0);
static LIMIT: AtomicU64 = AtomicU64::new(0);
/// Cycles in [`GOOD_NS`]; 0 where the counter is not used.
static GOOD_CYCLES: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds of the machine's monotonic clock, the same in all processes of a time namespace (20 ns).
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// As [`monotonic_ns`], at the last timer tick: up to 10 ms behind, and 3 ns instead of 20.
pub fn monotonic_coarse_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::MonotonicCoarse))
}

/// As [`monotonic_ns`], or up to [`AHEAD_NS`] later. In a process it never goes back.
#[inline]
pub fn monotonic_ahead_ns() -> u64 {
    let good = GOOD_CYCLES.load(Ordering::Relaxed);
    if good == 0 {
        return monotonic_ns();
    }
    let left = LIMIT.load(Ordering::Acquire).wrapping_sub(cycles());
    // From a counter that has gone back, in a machine that was moved, the limit is too far.
    if left.wrapping_sub(1) < good {
        // As late as the limit that was seen asks for, or later.
        return BOUND_NS.load(Ordering::Relaxed);
    }
    look(good)
}

#[cold]
#[inline(never)]
fn look(good: u64) -> u64 {
    // The counter first: if we are stopped in between, the limit is only reached sooner.
    let limit = cycles().wrapping_add(good);
    let bound_ns = monotonic_ns() + AHEAD_NS;
    let bound_ns = BOUND_NS.fetch_max(bound_ns, Ordering::Relaxed).max(bound_ns);
    LIMIT.store(limit, Ordering::Release);
    bound_ns
}

/// Finds out whether the counter can be used, and how fast it is, once in a process: it reads a file, and takes 30 us.
pub(crate) fn learn() {
    static LEARNED: AtomicBool = AtomicBool::new(false);
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    if LEARNED.swap(true, Ordering::Relaxed) {
        return;
    }
    let is_kept_by_it = fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc");
    if is_kept_by_it {
        let most = (0..3).map(|_| watch()).max().unwrap_or(0);
        GOOD_CYCLES.store(most, Ordering::Relaxed);
    }
}

/// Cycles in [`GOOD_NS`], or fewer if this was interrupted: the clock is read before and after all of the cycles.
fn watch() -> u64 {
    let begin_ns = monotonic_ns();
    let begin = cycles();
    let (mut end, mut end_ns) = (begin, begin_ns);
    while end_ns < begin_ns + WATCHED_NS {
        (end, end_ns) = (cycles(), monotonic_ns());
    }
    let watched = u128::from(end.wrapping_sub(begin)) * u128::from(GOOD_NS);
    u64::try_from(watched / u128::from(end_ns - begin_ns)).unwrap_or(0)
}

/// The processor's cycle counter, which is the same on all processors where the kernel keeps its time by it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn cycles() -> u64 {
    // SAFETY: the instruction, which every processor of this kind has, reads a register. A system may forbid it to
    // programs. Then the kernel's own clock in our address space could not use it either, and this code is not reached.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles() -> u64 {
    0
}

#[expect(
    clippy::cast_sign_loss,
    reason = "the monotonic clock starts at 0 and the parts are positive"
)]
const fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// What an end is told by (rule L1): whatever threads look, and however often the limit is reached meanwhile.
    #[test]
    fn the_clock_ahead_is_never_behind_never_far_ahead_and_never_goes_back_l1() {
        learn();
        let look_often = || {
            let (begin_ns, mut last_ns) = (monotonic_ns(), 0);
            while last_ns < begin_ns + 50_000_000 {
                let before_ns = monotonic_ns();
                let ahead_ns = monotonic_ahead_ns();
                let after_ns = monotonic_ns();
                assert!(ahead_ns >= before_ns, "{} ns behind", before_ns - ahead_ns);
                assert!(ahead_ns <= after_ns + AHEAD_NS, "{} ns ahead", ahead_ns - after_ns);
                assert!(ahead_ns >= last_ns, "back by {} ns", last_ns - ahead_ns);
                last_ns = ahead_ns;
            }
        };
        thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(look_often)));
        });
    }

    #[test]
    fn the_coarse_clock_is_never_ahead_of_the_exact_one() {
        for _ in 0..1000 {
            let coarse_ns = monotonic_coarse_ns();
            assert!(coarse_ns <= monotonic_ns());
        }
    }
}
