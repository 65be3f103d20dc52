//! Spaces against the model and the conformance cases, one thread at a time. With the feature `checked`, too, every access to a
//! block that is not in use panics: so this is a program of its own, which is built both ways.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod against_model;
mod bulk;
#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod exhaustive;
