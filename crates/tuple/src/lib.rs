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
mod pattern;

pub use field::{Encoded, Field};
pub use image::TupleView;
pub use kind::{Kind, KindSet};
pub use pattern::{PatternRef, TemplateRef};
