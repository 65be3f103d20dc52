//! What the engine does for several threads and processes: one program, so that the engine is linked once.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod by_age;
#[cfg(target_os = "linux")]
mod come_and_go;
mod conditions;
mod fragmented;
mod full_back;
mod given_up;
mod handed;
mod large_reads;
mod limited;
mod membership;
mod notifiers;
mod refusable;
mod scan;
mod small_users;
#[path = "../support/mod.rs"]
mod support;
mod timer_leaders;
mod waiters_max;

/// Spaces of this program have no journal.
const JOURNALLED: bool = false;
