//! The parts of the lock. The exhaustive test of its interleavings puts other parts in their place, which count and
//! permute every step.

pub(crate) use std::sync::atomic::{AtomicU32, Ordering, compiler_fence, fence};
pub(crate) use std::thread::sleep;

use crate::clock;
pub(crate) use crate::clock::monotonic_ns as now_ns;

/// Pauses before a sleep: 45 us together, about the cost of a sleep on a virtual machine (measured).
pub(crate) const PAUSES: u32 = 20;
/// The first pause: as a rule, the rest of a section when another thread comes upon it.
const PAUSE_NS_MIN: u64 = 25;
/// How often the pause is doubled. The longest pause is 3.2 us. In that time a thread that is inside again and again
/// does dozens of sections with all their lines in its cache. To fetch the lines takes a microsecond. So two threads
/// that took turns after each section would together do a third of the work of one (measured).
const DOUBLINGS: u32 = 7;

/// Spins between looks at the clock.
const SPINS_PER_LOOK: u32 = 8;

/// Waits before another look at a lock that another thread has, without touching its line. `number` counts the looks.
pub(crate) fn pause(number: u32) {
    if number > DOUBLINGS {
        // The owner may have lost its processor, and this may be the processor for it.
        std::thread::yield_now();
    }
    let end_ns = clock::monotonic_ns() + (PAUSE_NS_MIN << number.min(DOUBLINGS));
    while clock::monotonic_ns() < end_ns {
        for _ in 0..SPINS_PER_LOOK {
            std::hint::spin_loop();
        }
    }
}
