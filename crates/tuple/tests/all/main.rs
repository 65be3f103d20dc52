//! Values, templates, conditions and their encoding, by example and by property: one program, so that it is linked once.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;
mod condition;
mod encoding;
mod matching;
mod properties;
mod text;
