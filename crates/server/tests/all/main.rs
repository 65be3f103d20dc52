//! A server as its clients see it: one program, so that the engine is linked once.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod authority;
mod chaos;
#[path = "../../../space/tests/common/mod.rs"]
mod common;
mod conformance;
mod http;
mod http_kept;
mod killed;
mod left_open;
mod notifiers;
mod protocol;
mod proxy;
mod resume;
mod rights;
mod serving;
mod subscribed;
mod tls;
