//! The canonical encoding of values, tuples and templates (rule V4): `docs/encoding.md`.
//!
//! A subset of `MessagePack` with extension types. Equal values have equal bytes: every number and every length has one
//! form, and map keys are sorted. The order of a map, where it has one, stands beside it. The decoder accepts nothing
//! else, so accepted encodings can be compared by their bytes, apart from such orders. It never panics, and never
//! recurses deeper than [`DEPTH_MAX`]. A small multiple of the input that it has already seen bounds its allocations.

mod decode;
mod decoded;
mod encode;
mod entry;
mod error;
mod read;
mod same;
mod template;
pub mod write;

pub use decoded::{Decoded, TupleImage};
pub use encode::{encode_tuple_ref, encode_tuple_view};
pub use error::{DecodeError, EncodeError};
pub use read::Reader;
pub use template::encode_template_refs;

pub(crate) use entry::is_of_class;
pub(crate) use read::Item;
pub(crate) use same::{hash, same};

/// Deepest nesting of values in a value, and of patterns in a pattern, that is accepted anywhere: 128
/// levels, as in common JSON decoders, fit on every thread's stack.
pub const DEPTH_MAX: usize = 128;

/// Numbers of the extension types. Part of the format: append, never renumber.
pub(crate) mod extension {
    /// Seconds and nanoseconds since 1970-01-01 UTC, as `MessagePack` itself defines it.
    pub(crate) const TIMESTAMP: i8 = -1;
    /// An integer beyond 64 bits: a sign byte, then the magnitude, most significant byte first.
    pub(crate) const WIDE_INT: i8 = 1;
    /// A decimal number, as ASCII text.
    pub(crate) const DECIMAL: i8 = 2;
    /// The 16 bytes of a UUID.
    pub(crate) const UUID: i8 = 3;
    /// Element type, number of dimensions, shape, data.
    pub(crate) const ARRAY: i8 = 4;
    /// A nested tuple: an array of its fields.
    pub(crate) const TUPLE: i8 = 5;
    /// A named record: an array of name, names of the bases, and map of the fields.
    pub(crate) const ENTRY: i8 = 6;
    /// A language's own object: an array of codec, type name and bytes.
    pub(crate) const OPAQUE: i8 = 7;
    /// A map whose order is not the sorted one: an array of the map, and of the places of its pairs in their order.
    pub(crate) const ORDERED_MAP: i8 = 8;

    /// A formal: the set of kinds, as 16 bits.
    pub(crate) const KINDS: i8 = 16;
    /// The end of a template that accepts any number of further fields; no payload.
    pub(crate) const REST: i8 = 17;
    /// An array of lower bound or nil, whether it is included, upper bound or nil, whether it is included.
    pub(crate) const RANGE: i8 = 18;
    /// An array of values, sorted by their bytes.
    pub(crate) const IN: i8 = 19;
    /// Text or bytes that a match begins with.
    pub(crate) const PREFIX: i8 = 20;
    /// The text of a glob.
    pub(crate) const GLOB: i8 = 21;
    /// The pattern that must not match.
    pub(crate) const NOT: i8 = 22;
    /// An array of two patterns or more that must all match.
    pub(crate) const ALL: i8 = 23;
    /// An array of two patterns or more of which one must match.
    pub(crate) const ANY: i8 = 24;
    /// Entries: an array of the name of the class and a map of patterns. Instead of an array of patterns.
    pub(crate) const ENTRIES: i8 = 25;
    /// An array of an alternative without a condition, and the text of its condition.
    pub(crate) const WHERE: i8 = 26;
    /// The name of a class whose entries match, as fields.
    pub(crate) const CLASS: i8 = 27;
}
