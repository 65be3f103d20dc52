//! Spaces as a program uses them, from several threads and processes: one program, so that the engine is linked once.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod blocked;
mod claim_puts;
#[path = "../common/mod.rs"]
mod common;
mod connect;
mod full;
mod keep_alive;
mod keys;
mod largest;
mod linearizable;
mod refused;
mod room;
mod search;
mod threads;
mod timeout;
mod transaction_threads;
