//! What the engine does for one thread at a time. Every access to a block that is not in use panics: the program is built
//! with the feature `checked` alone.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod claims;
mod events;
mod first;
mod leases;
mod room_back;
#[path = "../support/mod.rs"]
mod support;
mod transactions;
mod transactions_over;
mod transactions_write_set;
mod watched;

/// Spaces of this program have no journal.
const JOURNALLED: bool = false;
