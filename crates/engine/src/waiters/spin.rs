//! Spinning before a sleep: whether, and how, is learned from how the thread's waits ended.
//!
//! A spin pays where the answer comes soon, from another processor, to a thread that keeps its own. So a thread
//!
//! * sleeps at once if its waits are long,
//! * sleeps at once for a number of waits after it has lost its processor while it spun,
//! * gives its processor away, and does not spin, where the thread that answers runs on the same one.
//!
//! A thread that has lost its processor knows that others need it. A sleeper that is woken has it back at once. A thread
//! that has used up its time slice waits for theirs.
//!
//! It never gives the processor away otherwise: beside a busy process it would be back after a whole time slice.

use std::cell::Cell;
use std::sync::atomic::AtomicU32;

use tupelo_shm::clock;

use crate::base::signal;

/// Longest spin before a sleep, and the longest usual wait that is spun for. It is longer than the time in which a
/// sleeper comes back (25 to 50 us on a virtual machine, measured; 5 on others). So two threads that wait for each
/// other do not sleep because the other does. Who sees a longer gap between two looks at the clock has lost the processor.
const SPIN_NS_MAX: u64 = 100_000;
/// Spins between looks at the clock.
const SPINS_PER_LOOK: u32 = 32;
/// Longest wait that is remembered: one of them ends the spinning, and a dozen short ones bring it back.
const LONG_WAIT_NS: u64 = 4 * SPIN_NS_MAX;
/// So many waits in a row that were ended on the processor of this thread, and it gives that away.
const SHARED_MIN: u32 = 4;
/// A yield of the processor that nobody wants takes a third of this.
const YIELD_NS_MIN: u64 = 1_000;
/// So many of those, and whoever answers is not ready to run: then the thread sleeps.
const IDLE_YIELDS_MAX: u32 = 8;
/// How many waits are not spun for after the processor was lost: twice as many each time, and fewer by this part with each
/// spin that pays.
const RESTS: std::ops::RangeInclusive<u32> = 64..=4096;
const RESTS_DECAY: u32 = 256;

thread_local! {
    static HABITS: Cell<Habits> = const { Cell::new(Habits::NEW) };
}

/// How a wait begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Sleep,
    Spin,
    Yield,
}

/// How a thread's waits end.
#[derive(Clone, Copy)]
struct Habits {
    /// How long they last, as a moving average: long waits are not spun for.
    usual_wait_ns: u64,
    /// How many in a row were ended on the processor of this thread.
    shared: u32,
    /// How many more are not spun for, since the processor was lost.
    rests_left: u32,
    /// How many that will be the next time.
    rests: u32,
}

impl Habits {
    const NEW: Self =
        Self { usual_wait_ns: SPIN_NS_MAX, shared: 0, rests_left: 0, rests: *RESTS.start() };

    fn manner(self) -> Manner {
        if self.usual_wait_ns > SPIN_NS_MAX || self.rests_left > 0 {
            Manner::Sleep
        } else if self.shared >= SHARED_MIN {
            Manner::Yield
        } else {
            Manner::Spin
        }
    }

    /// After a wait; `is_shared` says whether it was ended on this processor, if that is known.
    fn after_wait(self, waited_ns: u64, is_shared: Option<bool>) -> Self {
        let usual_wait_ns = (self.usual_wait_ns * 7 + waited_ns.min(LONG_WAIT_NS)) / 8;
        let shared = match is_shared {
            Some(true) => self.shared.saturating_add(1),
            Some(false) => 0,
            None => self.shared,
        };
        Self { usual_wait_ns, shared, rests_left: self.rests_left.saturating_sub(1), ..self }
    }

    fn after_loss(self) -> Self {
        let rests = (2 * self.rests).min(*RESTS.end());
        Self { rests_left: self.rests, rests, ..self }
    }

    fn after_gain(self) -> Self {
        let rests = (self.rests - self.rests.div_ceil(RESTS_DECAY)).max(*RESTS.start());
        Self { rests, ..self }
    }
}

/// Looks again and again whether `happened`, for as long as that may be cheaper than a sleep. Returns when it had not
/// yet, a microsecond before at most: another look at the clock would cost more than it told.
pub(crate) fn spin(
    signal: &AtomicU32,
    begin_ns: u64,
    deadline_ns: Option<u64>,
    happened: impl Fn() -> bool,
) -> Option<u64> {
    let end_ns = deadline_ns.unwrap_or(u64::MAX).min(begin_ns + SPIN_NS_MAX);
    let is_over = || signal::is_raised(signal) && happened();
    match HABITS.get().manner() {
        Manner::Sleep => None,
        Manner::Spin => spin_until(begin_ns, end_ns, is_over),
        Manner::Yield => yield_until(begin_ns, end_ns, is_over),
    }
}

fn spin_until(begin_ns: u64, end_ns: u64, is_over: impl Fn() -> bool) -> Option<u64> {
    let mut now_ns = begin_ns;
    while now_ns < end_ns {
        for _ in 0..SPINS_PER_LOOK {
            if is_over() {
                HABITS.set(HABITS.get().after_gain());
                return Some(now_ns);
            }
            std::hint::spin_loop();
        }
        let before_ns = std::mem::replace(&mut now_ns, clock::monotonic_ns());
        if now_ns - before_ns > SPIN_NS_MAX {
            HABITS.set(HABITS.get().after_loss());
        }
    }
    is_over().then_some(now_ns)
}

/// As [`spin_until`], on the processor of whoever answers: lets it run.
fn yield_until(begin_ns: u64, end_ns: u64, is_over: impl Fn() -> bool) -> Option<u64> {
    let (mut now_ns, mut idle) = (begin_ns, 0);
    while now_ns < end_ns && idle < IDLE_YIELDS_MAX && !is_over() {
        std::thread::yield_now();
        let before_ns = std::mem::replace(&mut now_ns, clock::monotonic_ns());
        if now_ns - before_ns > SPIN_NS_MAX {
            // It was somebody with work of their own.
            HABITS.set(HABITS.get().after_loss());
        }
        idle += u32::from(now_ns - before_ns < YIELD_NS_MIN);
    }
    is_over().then_some(now_ns)
}

/// Learns from a wait that is over, however it ended. It began on `processor`.
pub(crate) fn learn(waited_ns: u64, signal: &AtomicU32, processor: u32) {
    let is_shared = signal::raised_on(signal).map(|raised_on| raised_on == processor);
    HABITS.set(HABITS.get().after_wait(waited_ns, is_shared));
}

#[cfg(test)]
mod tests {
    use super::{Habits, LONG_WAIT_NS, Manner, RESTS, SHARED_MIN};

    #[test]
    fn long_waits_end_the_spinning_and_short_ones_bring_it_back() {
        let once = Habits::NEW.after_wait(60_000_000_000, None);
        assert_eq!(once.manner(), Manner::Sleep);
        let after = (0..12).fold(once, |habits, _| habits.after_wait(1_000, None));
        assert_eq!(after.manner(), Manner::Spin);
        let longest = (0..100).fold(Habits::NEW, |habits, _| habits.after_wait(u64::MAX, None));
        assert!(longest.usual_wait_ns <= LONG_WAIT_NS);
    }

    #[test]
    fn the_processor_is_given_away_only_where_whoever_answers_has_the_same_one() {
        let here = |habits: Habits| habits.after_wait(1_000, Some(true));
        let some = (1..SHARED_MIN).fold(Habits::NEW, |habits, _| here(habits));
        assert_eq!(some.manner(), Manner::Spin);
        let enough = here(some);
        assert_eq!(enough.manner(), Manner::Yield);
        assert_eq!(enough.after_wait(1_000, None).manner(), Manner::Yield, "not known");
        assert_eq!(enough.after_wait(1_000, Some(false)).manner(), Manner::Spin);
        assert_eq!(enough.after_loss().manner(), Manner::Sleep, "a third has work of its own");
    }

    #[test]
    fn who_lost_the_processor_while_it_spun_sleeps_for_a_time_and_longer_each_time() {
        let rested = |mut habits: Habits| {
            let mut waits = 0;
            while habits.manner() == Manner::Sleep {
                habits = habits.after_wait(1_000, None);
                waits += 1;
            }
            (habits, waits)
        };
        let (after, waits) = rested(Habits::NEW.after_loss());
        assert_eq!(waits, *RESTS.start());
        let (again, more) = rested(after.after_gain().after_loss());
        assert!(more > waits, "{more} waits");
        let most = (0..100).fold(again, |habits, _| rested(habits.after_loss()).0);
        assert_eq!(most.rests, *RESTS.end());
        let well = (0..5_000).fold(most, |habits, _| habits.after_gain());
        assert_eq!(well.rests, *RESTS.start());
    }
}
