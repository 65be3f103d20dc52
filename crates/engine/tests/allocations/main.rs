//! What the engine allocates. The counting allocator is the whole program's, so these tests have a program of their own.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "../shared/mod.rs"]
mod shared;
mod steady;
#[path = "../support/mod.rs"]
mod support;

/// Spaces of this program have no journal.
const JOURNALLED: bool = false;
