//! A server as its clients see it: one program, so that the engine is linked once.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod authority;
#[path = "../../../space/tests/common/mod.rs"]
mod common;
mod conformance;
mod http;
mod protocol;
mod rights;
mod serving;
mod tls;
