//! Values, tuples, templates and their matching (rules V and M of `docs/semantics.md`).
//!
//! Pure: no clock, no input or output, no shared memory, no `unsafe`. The types come in two forms.
//! The *borrowed* form ([`Field`], [`PatternRef`], [`TemplateRef`]) is what crosses into the engine: it
//! points at the caller's own strings and buffers, so a put copies each byte once. The *owned* form
//! ([`Value`], [`Pattern`], [`Template`]) is for programs that keep values, for the text notation, the
//! model and the tests.
#![forbid(unsafe_code)]

mod field;
pub mod hash;
pub mod image;
mod kind;
mod number;
mod pattern;
mod template;
mod test;
mod value;

pub use field::{Encoded, Field};
pub use image::TupleView;
pub use kind::{Kind, KindSet};
pub use pattern::{PatternRef, TemplateRef};
pub use template::Pattern;
pub use test::{PatternError, Test};
pub use value::Value;

/// Deepest nesting of values in a value, and of patterns in a pattern, that is accepted anywhere: 128
/// levels, as in common JSON decoders, fit on every thread's stack.
pub const DEPTH_MAX: usize = 128;
