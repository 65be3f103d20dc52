//! Processes are killed, or stopped for others, between any two instructions of an operation: one program, so that the engine
//! is linked once.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod claims;
mod conditions;
mod damage;
mod events;
mod handed;
mod interleaved;
mod interleaved_held;
mod interleaved_races;
mod journal;
mod keys;
mod leases_many;
mod memory;
mod notifiers;
mod put_take;
mod room;
#[path = "../shared/mod.rs"]
mod shared;
mod slabs;
#[path = "../support/mod.rs"]
mod support;
mod timer_leaders;
mod torture;
mod transactions;
mod transfer;
mod waiters;

/// Spaces of this program have no journal.
const JOURNALLED: bool = false;
