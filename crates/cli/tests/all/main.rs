//! The program `tupelo`, run as a shell runs it: one program of tests, so that it is linked once.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "../../../server/tests/all/authority.rs"]
mod authority;
mod claim;
mod copies;
mod look;
mod put_and_find;
mod refusals;
mod rows;
mod serve;
mod serve_files;
mod serve_tls;
mod support;
mod take;
mod token;
mod top;
mod watch;
