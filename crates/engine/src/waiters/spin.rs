//! Spinning before a sleep: for how long, and when the processor is offered to others meanwhile, is learned from
//! how the thread's waits ended.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::AtomicU32;

use tupelo_shm::clock;

use crate::base::signal;

/// Longest spin before a sleep, and the longest usual wait that is spun for. It is longer than the time in which a
/// sleeper comes back (25 to 50 us on a virtual machine, measured; 5 on others). So two threads that wait for each
/// other do not sleep because the other does.
const SPIN_NS_MAX: u64 = 100_000;
/// Spins between looks at the clock.
const SPINS_PER_LOOK: u32 = 32;
/// Longest wait that is remembered: one of them ends the spinning, and a dozen short ones bring it back.
const LONG_WAIT_NS: u64 = 4 * SPIN_NS_MAX;
/// Spins before the processor is offered to others: whom this thread waits for may need it.
const SPIN_ALONE_NS: u64 = 1_000;
/// How long an offer takes that somebody else has made use of, and answered. One that nobody wants is over in a third
/// of the least; after more than the greatest, it was somebody with work of their own.
const OFFER_NS: Range<u64> = 1_000..SPIN_NS_MAX;
/// So many of those in a row, and whom this thread waits for runs on its processor: not while it spins.
const OFFERS_TAKEN: u32 = 4;

thread_local! {
    static HABITS: Cell<Habits> = const { Cell::new(Habits::NEW) };
}

/// How a thread's waits end.
#[derive(Clone, Copy)]
struct Habits {
    /// How long they last, as a moving average: long waits are not spun for.
    usual_wait_ns: u64,
    /// How many offers of the processor in a row have brought the signal.
    offers_taken: u32,
}

impl Habits {
    const NEW: Self = Self { usual_wait_ns: SPIN_NS_MAX, offers_taken: 0 };

    /// For how long a spin may pay.
    fn spin_ns(self) -> u64 {
        if self.usual_wait_ns > SPIN_NS_MAX { 0 } else { SPIN_NS_MAX }
    }

    /// For how long the processor is kept.
    fn alone_ns(self) -> u64 {
        if self.offers_taken >= OFFERS_TAKEN { 0 } else { SPIN_ALONE_NS }
    }

    fn after_wait(self, waited_ns: u64) -> Self {
        let usual_wait_ns = (self.usual_wait_ns * 7 + waited_ns.min(LONG_WAIT_NS)) / 8;
        Self { usual_wait_ns, ..self }
    }

    fn after_offer(self, took_ns: u64, is_raised: bool) -> Self {
        let is_taken = is_raised && OFFER_NS.contains(&took_ns);
        let offers_taken = if is_taken { self.offers_taken.saturating_add(1) } else { 0 };
        Self { offers_taken, ..self }
    }
}

/// Looks again and again whether `happened`, for as long as that may be cheaper than a sleep. Returns when it had not
/// yet, a microsecond before at most: another look at the clock would cost more than it told.
pub(crate) fn spin(
    signal: &AtomicU32,
    (begin_ns, deadline_ns): (u64, Option<u64>),
    happened: impl Fn() -> bool,
) -> Option<u64> {
    let habits = HABITS.get();
    let end_ns = deadline_ns.unwrap_or(u64::MAX).min(begin_ns + habits.spin_ns());
    let offer_ns = begin_ns + habits.alone_ns();
    let mut now_ns = begin_ns;
    while now_ns < end_ns {
        if now_ns >= offer_ns {
            now_ns = offer_processor(signal, now_ns);
        }
        for _ in 0..SPINS_PER_LOOK {
            if signal::is_raised(signal) && happened() {
                return Some(now_ns);
            }
            std::hint::spin_loop();
        }
        if now_ns < offer_ns {
            now_ns = clock::monotonic_ns();
        }
    }
    None
}

/// Lets others run who are ready to: on one processor, or a busy one, whom this thread waits for. Returns the
/// time after it.
fn offer_processor(signal: &AtomicU32, now_ns: u64) -> u64 {
    std::thread::yield_now();
    let then_ns = clock::monotonic_ns();
    HABITS.set(HABITS.get().after_offer(then_ns - now_ns, signal::is_raised(signal)));
    then_ns
}

/// Learns from a wait that is over, however it ended.
pub(crate) fn learn(waited_ns: u64) {
    HABITS.set(HABITS.get().after_wait(waited_ns));
}

#[cfg(test)]
mod tests {
    use super::{Habits, LONG_WAIT_NS, OFFER_NS, OFFERS_TAKEN, SPIN_ALONE_NS, SPIN_NS_MAX};

    #[test]
    fn long_waits_end_the_spinning_and_short_ones_bring_it_back() {
        let once = Habits::NEW.after_wait(60_000_000_000);
        assert_eq!(once.spin_ns(), 0);
        let short = |habits: Habits| habits.after_wait(1_000);
        let after = (0..12).fold(once, |habits, _| short(habits));
        assert_eq!(after.spin_ns(), SPIN_NS_MAX);
        let longest = (0..100).fold(Habits::NEW, |habits, _| habits.after_wait(u64::MAX));
        assert!(longest.usual_wait_ns <= LONG_WAIT_NS);
    }

    #[test]
    fn whoever_is_answered_by_offers_makes_them_at_once() {
        let answered = |habits: Habits| habits.after_offer(OFFER_NS.start, true);
        let some = (1..OFFERS_TAKEN).fold(Habits::NEW, |habits, _| answered(habits));
        assert_eq!(some.alone_ns(), SPIN_ALONE_NS);
        assert_eq!(answered(some).alone_ns(), 0);
    }

    #[test]
    fn one_offer_that_brought_nothing_ends_that() {
        let enough = Habits { offers_taken: u32::MAX, ..Habits::NEW };
        let kept = enough.after_offer(OFFER_NS.start, true);
        assert_eq!(kept.alone_ns(), 0);
        // Nobody wanted it; whoever did had work of their own; whoever took it answered nothing.
        for (took_ns, is_raised) in
            [(OFFER_NS.start - 1, true), (OFFER_NS.end, true), (OFFER_NS.start, false)]
        {
            assert_eq!(enough.after_offer(took_ns, is_raised).alone_ns(), SPIN_ALONE_NS);
        }
    }
}
