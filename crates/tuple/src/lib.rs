//! Values, tuples, templates and their matching (rules V and M of `docs/semantics.md`).
//!
//! Pure: no clock, no input or output, no shared memory, no `unsafe`. The types come in two forms. The *borrowed* form
//! ([`Field`], [`PatternRef`], [`TemplateRef`]) crosses into the engine. It points at the caller's own strings and
//! buffers, so a put copies each byte once. The *owned* form ([`Value`], [`Pattern`], [`Template`]) is for programs
//! that keep values, for the text notation, the model and the tests.
#![forbid(unsafe_code)]

mod asked;
mod class;
mod condition;
pub mod encoding;
pub mod few;
mod field;
mod fork;
pub mod fuzz;
pub mod hash;
pub mod image;
mod intersect;
mod kind;
mod macros;
mod nearest;
mod number;
mod pattern;
mod shape;
mod template;
mod test;
mod text;
mod tuple;
mod value;

pub use asked::{FieldName, Order, WhenFull};
pub use class::{CLASS_BYTES_MAX, CLASSES_MAX, Class};
pub use condition::{CONDITION_BYTES_MAX, CONDITION_DEPTH_MAX, Condition, Fault};
pub use encoding::{DEPTH_MAX, DecodeError, EncodeError, encode_template_refs};
pub use field::{Encoded, Field};
pub use fork::before_fork;
pub use image::TupleView;
pub use intersect::IntersectError;
pub use kind::{Kind, KindSet};
pub use nearest::nearest;
pub use pattern::{Form, Named, PatternRef, TemplateRef};
pub use shape::Shape;
pub use template::{ALTERNATIVES_MAX, Alternative, Pattern, Template};
pub use test::{PatternError, Test};
pub use text::{ParseError, TEXT_BYTES_MAX};
pub use tuple::{Tuple, TupleRef, with_all_tuples};
pub use value::{
    Array, ArrayView, BIG_INT_BYTES_MAX, BigInt, DECIMAL_DIGITS_MAX, DECIMAL_EXPONENT_MAX,
    DIMENSIONS_MAX, DType, Decimal, Entry, Map, Opaque, Timestamp, Value, ValueError, array_head,
};
