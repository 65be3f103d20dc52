//! The image of a tuple inside a record: eight bytes per field at fixed places, then the heap.
//!
//! Field `i` is the eight bytes at `8 * i`. A scalar is there by value. Any other value is there as the offset and
//! length of its bytes in the heap (32 bits each, from the start of the image). These bytes begin at a multiple of
//! eight and are padded with zeros, so that text is compared by words. The kinds are not in the image but in the shape,
//! so reading a field is one load. An image with an integer beyond 64 bits has the flag *wide*: its heap begins with a
//! 64-bit set of the integer fields that are stored as encodings.
//!
//! All code here may read bytes that another process wrote. So offsets and lengths are checked, text is validated, and
//! invalid bytes give `None` (rule C5).

use crate::{Class, Encoded, Field, Kind};

/// Most fields of a tuple: bounds every loop over fields, and the set of wide integers is 64 bits.
pub const ARITY_MAX: usize = 64;

/// The data of an array begins at a multiple of this, so that vector instructions may read it in place.
const ARRAY_ALIGN: usize = 64;

/// How large the image of a tuple will be, and whether it is wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Bytes of the image. Arrays may add padding that depends on `origin`.
    pub bytes: usize,
    /// Whether some integer is stored as its encoding.
    pub wide: bool,
}

/// The size of the image of `fields` when it begins `origin` bytes after a 64-byte boundary.
#[inline]
pub fn size(fields: &[Field<'_>], origin: usize) -> Size {
    let mut sizer = Sizer::new();
    for field in fields {
        sizer.add(field);
    }
    sizer.size(fields, origin)
}

/// Adds up the size of an image field by field, for code that looks at each field anyway.
#[derive(Clone, Copy, Debug)]
pub struct Sizer {
    bytes: usize,
    encoded: bool,
}

impl Default for Sizer {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(
    clippy::inline_always,
    reason = "once per field of each put, beside a look at the same kind"
)]
impl Sizer {
    /// The size of no fields.
    #[inline(always)]
    pub const fn new() -> Self {
        Self { bytes: 0, encoded: false }
    }

    /// Adds the next field.
    #[inline(always)]
    pub const fn add(&mut self, field: &Field<'_>) {
        let heap_bytes = match field {
            Field::Str(text) => padded(text.len()),
            Field::Bytes(data) => padded(data.len()),
            Field::Encoded(_) => {
                self.encoded = true;
                0
            }
            _ => 0,
        };
        self.bytes += 8 + heap_bytes;
    }

    /// The size of the image of `fields`, the fields that were added.
    #[inline(always)]
    pub fn size(self, fields: &[Field<'_>], origin: usize) -> Size {
        if self.encoded {
            size_with_encoded(fields, origin)
        } else {
            Size { bytes: self.bytes, wide: false }
        }
    }
}

/// As [`size`], for fields of which some are encoded: one of them may make the image wide, which moves all later ones.
#[inline(never)]
fn size_with_encoded(fields: &[Field<'_>], origin: usize) -> Size {
    let wide = fields.iter().any(is_wide);
    let start = 8 * fields.len() + if wide { 8 } else { 0 };
    let bytes = fields.iter().fold(start, |bytes, field| match field {
        Field::Str(text) => padded(bytes + text.len()),
        Field::Bytes(data) => padded(bytes + data.len()),
        Field::Encoded(encoded) => padded(heap_start(encoded, bytes, origin) + encoded.len()),
        _ => bytes,
    });
    Size { bytes, wide }
}

/// The next multiple of eight: where the next item of the heap may begin.
#[inline]
const fn padded(bytes: usize) -> usize {
    // Not `next_multiple_of`, which branches. Lengths of slices are far from the end of the numbers.
    (bytes + 7) & !7
}

/// The beginning of an encoding in the heap, if `at` is the first free byte. Arrays are placed such that their data,
/// not their head, is aligned.
#[inline]
fn heap_start(encoded: &Encoded<'_>, at: usize, origin: usize) -> usize {
    if encoded.kind == Kind::Array && !encoded.body.is_empty() {
        let body = (at + encoded.head.len() + origin).next_multiple_of(ARRAY_ALIGN) - origin;
        body - encoded.head.len()
    } else {
        at
    }
}

#[inline]
fn is_wide(field: &Field<'_>) -> bool {
    matches!(field, Field::Encoded(encoded) if encoded.kind == Kind::Int)
}

/// Receives the pieces of an image, each at its place. Pieces do not overlap; gaps are padding.
pub trait Write {
    /// Writes the word of eight bytes with number `index`.
    fn word(&mut self, index: usize, word: u64);
    /// Writes `bytes` at the byte offset `at`, and zeros up to the next multiple of eight. The offset is a multiple of
    /// eight except after the first piece of an encoding.
    fn bytes(&mut self, at: usize, bytes: &[u8]);
}

/// Writes the image of `fields`, whose size is `size(fields, origin)`, into `out`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the caller mostly knows the kinds of the fields")]
pub fn write(fields: &[Field<'_>], origin: usize, wide: bool, out: &mut impl Write) {
    let mut heap = 8 * fields.len();
    if wide {
        let set = fields.iter().enumerate().filter(|(_, field)| is_wide(field));
        out.word(heap / 8, set.fold(0, |set, (index, _)| set | 1 << index));
        heap += 8;
    }
    for (index, field) in fields.iter().enumerate() {
        // What there is most of first: a few comparisons, not a jump through a table.
        let slot = match field {
            Field::Int(value) => value.cast_unsigned(),
            Field::Float(value) => value.to_bits(),
            Field::Str(text) => write_bytes(&mut heap, text.as_bytes(), out),
            // A copy, so that the caller keeps its field (see `few`).
            other => write_rarer(&mut heap, &{ *other }, origin, out),
        };
        out.word(index, slot);
    }
}

/// Writes what goes into the heap for a field of a kind that is rarer. Returns its word.
#[inline(never)]
fn write_rarer(heap: &mut usize, field: &Field<'_>, origin: usize, out: &mut impl Write) -> u64 {
    match field {
        Field::Null => 0,
        Field::Bool(value) => u64::from(*value),
        Field::Int(value) => value.cast_unsigned(),
        Field::Float(value) => value.to_bits(),
        Field::Str(text) => write_bytes(heap, text.as_bytes(), out),
        Field::Bytes(data) => write_bytes(heap, data, out),
        Field::Encoded(encoded) => {
            let start = heap_start(encoded, *heap, origin);
            out.bytes(start, encoded.head);
            out.bytes(start + encoded.head.len(), encoded.body);
            *heap = padded(start + encoded.len());
            start as u64 | (encoded.len() as u64) << 32
        }
    }
}

/// Writes bytes into the heap. Returns the word of their field.
#[inline(always)]
#[expect(clippy::inline_always, reason = "part of writing an image")]
fn write_bytes(heap: &mut usize, bytes: &[u8], out: &mut impl Write) -> u64 {
    let start = *heap;
    out.bytes(start, bytes);
    *heap = padded(start + bytes.len());
    start as u64 | (bytes.len() as u64) << 32
}

/// A tuple in a buffer: its kinds, and the image that they explain.
#[derive(Clone, Copy, Debug)]
pub struct TupleView<'a> {
    kinds: &'a [Kind],
    image: &'a [u8],
    wide: bool,
    class: Option<&'static Class>,
}

impl<'a> TupleView<'a> {
    /// A view of `image` as a tuple with these kinds.
    #[inline]
    pub const fn new(kinds: &'a [Kind], image: &'a [u8], wide: bool) -> Self {
        Self { kinds, image, wide, class: None }
    }

    /// The same fields as an entry of `class`, which names them; `None` if it is no entry.
    #[inline]
    #[must_use]
    pub const fn of_class(mut self, class: Option<&'static Class>) -> Self {
        self.class = class;
        self
    }

    /// The class, if this is an entry (rule M7).
    #[inline]
    pub const fn class(&self) -> Option<&'static Class> {
        self.class
    }

    /// The number of fields: the arity.
    #[inline]
    pub const fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether this is the empty tuple.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The kinds of the fields.
    #[inline]
    pub const fn kinds(&self) -> &'a [Kind] {
        self.kinds
    }

    /// The image itself, without the kinds.
    #[inline]
    pub const fn image(&self) -> &'a [u8] {
        self.image
    }

    /// Field number `index`, or `None` if there is none or the image is damaged.
    #[inline]
    pub fn field(&self, index: usize) -> Option<Field<'a>> {
        let kind = *self.kinds.get(index)?;
        let slot = self.word(8 * index)?;
        Some(match kind {
            Kind::Null => Field::Null,
            Kind::Bool => Field::Bool(slot != 0),
            Kind::Int if !self.is_wide(index) => Field::Int(slot.cast_signed()),
            Kind::Float => Field::Float(f64::from_bits(slot)),
            Kind::Str => Field::Str(std::str::from_utf8(self.heap(slot)?).ok()?),
            Kind::Bytes => Field::Bytes(self.heap(slot)?),
            kind => Field::Encoded(Encoded::whole(kind, self.heap(slot)?)),
        })
    }

    /// The fields in order; stops at the first that is damaged.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let view = *self;
        (0..view.len()).map_while(move |index| view.field(index))
    }

    #[inline]
    fn is_wide(&self, index: usize) -> bool {
        self.wide && self.word(8 * self.kinds.len()).is_some_and(|set| set >> index & 1 == 1)
    }

    #[inline]
    fn word(&self, at: usize) -> Option<u64> {
        let bytes = self.image.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half of the slot is the offset")]
    fn heap(&self, slot: u64) -> Option<&'a [u8]> {
        let start = slot as u32 as usize;
        self.image.get(start..start.checked_add((slot >> 32) as usize)?)
    }
}
