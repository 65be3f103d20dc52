//! The journal of a space: what it tells adds up to what is there (rule C4).
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

mod replay;
#[path = "../support/mod.rs"]
mod support;
mod told;
