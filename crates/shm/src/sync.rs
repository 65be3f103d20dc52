//! What the lock is made of. The exhaustive test of its interleavings puts other things in their place, which
//! count and permute every step.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{Ordering, compiler_fence, fence};
pub(crate) use std::thread::sleep;

/// Tries before sleeping. A section lasts about 20 ns, a sleep costs 30 us (measured): worth a wait.
pub(crate) const SPINS: u32 = 100;
