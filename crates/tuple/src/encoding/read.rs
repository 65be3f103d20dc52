//! Reading single items, and refusing every form but the canonical one.
//!
//! The only code that looks at encoded bytes: decoding, comparing and hashing are walks over the items
//! that a [`Reader`] returns.

use super::{DecodeError, extension};
use crate::value::{ArrayView, BigIntRef, DecimalRef, Timestamp};

/// A place in an encoding, and the end of the part that may be read from there.
///
/// A format around values and tuples, such as the frames of a protocol, is read with it too. So there is one reader,
/// and one definition of canonical.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

/// One item. Scalars are complete; of a container it is the beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item<'a> {
    Null,
    Bool(bool),
    Int(i64),
    BigInt(BigIntRef<'a>),
    Float(f64),
    Str(&'a str),
    Bytes(&'a [u8]),
    Decimal(DecimalRef<'a>),
    Timestamp(Timestamp),
    Uuid([u8; 16]),
    Array(ArrayView<'a>),
    /// As many items follow.
    List(usize),
    /// As many pairs of items follow.
    Map(usize),
    /// A nested tuple: its payload, one list.
    Tuple(Reader<'a>),
    /// A named record: its payload, one list of three.
    Entry(Reader<'a>),
    /// A language's own object: its payload, one list of three.
    Opaque(Reader<'a>),
    /// A map with an order of its own: its payload, one list of two.
    OrderedMap(Reader<'a>),
    /// An extension type that occurs in templates only, and its payload.
    Pattern(i8, Reader<'a>),
}

impl<'a> Reader<'a> {
    /// At the beginning of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, end: bytes.len() }
    }

    /// Where the next item begins.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// An error at the beginning of the next item.
    pub const fn error(&self, reason: &'static str) -> DecodeError {
        DecodeError::new(self.at, reason)
    }

    /// The bytes from `start`, where an item began, to here.
    ///
    /// # Panics
    ///
    /// If no item before this place began at `start`.
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    /// Everything that has not been read.
    pub(crate) fn remaining(&self) -> &'a [u8] {
        &self.bytes[self.at..self.end]
    }

    /// Reads the rest.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = self.remaining();
        self.at = self.end;
        rest
    }

    /// Succeeds at the end of the readable part.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if there is more.
    pub fn finish(&self) -> Result<(), DecodeError> {
        if self.at == self.end { Ok(()) } else { Err(self.error("the value ends before here")) }
    }

    /// Reads the next item.
    pub(crate) fn item(&mut self) -> Result<Item<'a>, DecodeError> {
        let start = self.at;
        let marker = self.array::<1>()?[0];
        Ok(match marker {
            0x00..0x80 => Item::Int(i64::from(marker)),
            0x80..0x90 => self.map(usize::from(marker & 0x0f))?,
            0x90..0xa0 => self.list(usize::from(marker & 0x0f))?,
            0xa0..0xc0 => self.str(usize::from(marker & 0x1f))?,
            0xc0 => Item::Null,
            0xc2 => Item::Bool(false),
            0xc3 => Item::Bool(true),
            0xc4 => self.length::<1>(0).and_then(|length| self.bytes(length))?,
            0xc5 => self.length::<2>(0x100).and_then(|length| self.bytes(length))?,
            0xc6 => self.length::<4>(0x1_0000).and_then(|length| self.bytes(length))?,
            0xc7..=0xc9 | 0xd4..=0xd8 => self.extension(marker, start)?,
            0xcb => Item::Float(f64::from_be_bytes(self.array()?)),
            0xcc..=0xcf => self.unsigned(marker, start)?,
            0xd0..=0xd3 => self.negative(marker, start)?,
            0xd9 => self.length::<1>(32).and_then(|length| self.str(length))?,
            0xda => self.length::<2>(0x100).and_then(|length| self.str(length))?,
            0xdb => self.length::<4>(0x1_0000).and_then(|length| self.str(length))?,
            0xdc => self.length::<2>(16).and_then(|count| self.list(count))?,
            0xdd => self.length::<4>(0x1_0000).and_then(|count| self.list(count))?,
            0xde => self.length::<2>(16).and_then(|count| self.map(count))?,
            0xdf => self.length::<4>(0x1_0000).and_then(|count| self.map(count))?,
            0xe0.. => Item::Int(i64::from(marker.cast_signed())),
            0xca => return Err(DecodeError::new(start, "a float has 64 bits here, not 32")),
            0xc1 => return Err(DecodeError::new(start, "0xc1 is no MessagePack item")),
        })
    }

    /// Reads past one value, with all its parts. Its items are checked to be canonical; whether it is a value, a tuple
    /// or a template is not looked at.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if no such thing stands here.
    pub fn skip(&mut self) -> Result<(), DecodeError> {
        let mut left = 1_usize;
        while left > 0 {
            left -= 1;
            // Each of them takes a byte at least, which `item` has looked for: this does not overflow.
            left += match self.item()? {
                Item::List(count) => count,
                Item::Map(count) => 2 * count,
                _ => 0,
            };
        }
        Ok(())
    }

    /// Reads an item that must be a list, and returns its count.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] with this reason if it is none.
    pub fn expect_list(&mut self, reason: &'static str) -> Result<usize, DecodeError> {
        let error = self.error(reason);
        if let Item::List(count) = self.item()? { Ok(count) } else { Err(error) }
    }

    /// Reads past the head of the payload of a map with an order of its own. Returns how many pairs of items follow.
    pub(super) fn expect_ordered_pairs(&mut self) -> Result<usize, DecodeError> {
        const SHAPE: &str =
            "a map with an order is an array of the map and the places of its pairs";
        let error = self.error(SHAPE);
        if self.expect_list(SHAPE)? != 2 {
            return Err(error);
        }
        if let Item::Map(count) = self.item()? { Ok(count) } else { Err(error) }
    }

    /// Reads an item that must be text.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] with this reason if it is none.
    pub fn expect_str(&mut self, reason: &'static str) -> Result<&'a str, DecodeError> {
        let error = self.error(reason);
        if let Item::Str(text) = self.item()? { Ok(text) } else { Err(error) }
    }

    /// Reads an item that must be an integer from 0 to 2^63 - 1.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] with this reason if it is none.
    pub fn expect_count(&mut self, reason: &'static str) -> Result<u64, DecodeError> {
        let error = self.error(reason);
        let Item::Int(number) = self.item()? else { return Err(error) };
        u64::try_from(number).map_err(|_| error)
    }

    /// Reads an item that must be a truth value.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] with this reason if it is none.
    pub fn expect_bool(&mut self, reason: &'static str) -> Result<bool, DecodeError> {
        let error = self.error(reason);
        if let Item::Bool(value) = self.item()? { Ok(value) } else { Err(error) }
    }

    /// Reads an item that must be a UUID.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] with this reason if it is none.
    pub fn expect_uuid(&mut self, reason: &'static str) -> Result<[u8; 16], DecodeError> {
        let error = self.error(reason);
        if let Item::Uuid(value) = self.item()? { Ok(value) } else { Err(error) }
    }

    /// Reads nil, if that is what stands here. Returns whether it did.
    pub fn skip_null(&mut self) -> bool {
        let is_null = self.remaining().first() == Some(&0xc0);
        self.at += usize::from(is_null);
        is_null
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let rest = self.remaining();
        let taken = rest.get(..length).ok_or_else(|| {
            DecodeError::new(self.end, "the encoding ends inside a value: bytes are missing")
        })?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// A length of `N` bytes; below `least` a shorter form was due.
    fn length<const N: usize>(&mut self, least: usize) -> Result<usize, DecodeError> {
        let start = self.at - 1;
        let length =
            self.array::<N>()?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        if length < least {
            return Err(DecodeError::new(start, "a length is not in its shortest form"));
        }
        Ok(length)
    }

    fn str(&mut self, length: usize) -> Result<Item<'a>, DecodeError> {
        let start = self.at;
        std::str::from_utf8(self.take(length)?)
            .map(Item::Str)
            .map_err(|error| DecodeError::new(start + error.valid_up_to(), "text is not UTF-8"))
    }

    fn bytes(&mut self, length: usize) -> Result<Item<'a>, DecodeError> {
        self.take(length).map(Item::Bytes)
    }

    /// Every element takes a byte at least, so a count beyond the remaining bytes is refused before
    /// anyone reserves room for it.
    fn list(&mut self, count: usize) -> Result<Item<'a>, DecodeError> {
        if count > self.end - self.at {
            return Err(self.error("a list has more elements than bytes remain"));
        }
        Ok(Item::List(count))
    }

    fn map(&mut self, count: usize) -> Result<Item<'a>, DecodeError> {
        if count > (self.end - self.at) / 2 {
            return Err(self.error("a map has more pairs than bytes remain"));
        }
        Ok(Item::Map(count))
    }

    fn unsigned(&mut self, marker: u8, start: usize) -> Result<Item<'a>, DecodeError> {
        let width = 1 << (marker - 0xcc);
        let bytes = self.take(width)?;
        let value = bytes.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        let least = [0x80, 0x100, 0x1_0000, 0x1_0000_0000][usize::from(marker - 0xcc)];
        if value < least {
            return Err(DecodeError::new(start, "an integer is not in its shortest form"));
        }
        Ok(i64::try_from(value)
            .map_or(Item::BigInt(BigIntRef { negative: false, magnitude: bytes }), Item::Int))
    }

    fn negative(&mut self, marker: u8, start: usize) -> Result<Item<'a>, DecodeError> {
        let (value, above) = match marker {
            0xd0 => (i64::from(i8::from_be_bytes(self.array()?)), -32),
            0xd1 => (i64::from(i16::from_be_bytes(self.array()?)), -0x80),
            0xd2 => (i64::from(i32::from_be_bytes(self.array()?)), -0x8000),
            _ => (i64::from_be_bytes(self.array()?), -0x8000_0000),
        };
        if value >= above {
            return Err(DecodeError::new(start, "an integer is not in its shortest form"));
        }
        Ok(Item::Int(value))
    }

    /// The extension type and payload behind a marker.
    #[inline]
    fn payload(&mut self, marker: u8, start: usize) -> Result<(i8, &'a [u8]), DecodeError> {
        let length = match marker {
            0xd4..=0xd8 => 1 << (marker - 0xd4),
            0xc7 => self.length::<1>(0)?,
            0xc8 => self.length::<2>(0x100)?,
            0xc9 => self.length::<4>(0x1_0000)?,
            _ => return Err(DecodeError::new(start, "no extension type stands here")),
        };
        if marker < 0xd4 && matches!(length, 1 | 2 | 4 | 8 | 16) {
            return Err(DecodeError::new(start, "a length is not in its shortest form"));
        }
        Ok((self.array::<1>()?[0].cast_signed(), self.take(length)?))
    }

    /// The payload of the extension type `code`, if that is all there is; without the way through all other items.
    #[inline]
    pub(crate) fn sole_payload(mut self, code: i8) -> Option<&'a [u8]> {
        let marker = self.array::<1>().ok()?[0];
        let (found, payload) = self.payload(marker, 0).ok()?;
        (found == code && self.finish().is_ok()).then_some(payload)
    }

    fn extension(&mut self, marker: u8, start: usize) -> Result<Item<'a>, DecodeError> {
        let error = |reason| DecodeError::new(start, reason);
        let (code, payload) = self.payload(marker, start)?;
        let inner = Self { bytes: self.bytes, at: self.at - payload.len(), end: self.at };
        Ok(match code {
            extension::TIMESTAMP => Item::Timestamp(timestamp(payload).map_err(error)?),
            extension::WIDE_INT => Item::BigInt(big_int(payload).map_err(error)?),
            extension::DECIMAL => Item::Decimal(
                DecimalRef::from_canonical(payload)
                    .ok_or_else(|| error("a decimal is not in canonical form"))?,
            ),
            extension::UUID => Item::Uuid(
                payload.try_into().map_err(|_| error("a uuid has 16 bytes, this one has not"))?,
            ),
            extension::ARRAY => Item::Array(ArrayView::from_payload(payload).map_err(error)?),
            extension::TUPLE => Item::Tuple(inner),
            extension::ENTRY => Item::Entry(inner),
            extension::OPAQUE => Item::Opaque(inner),
            extension::ORDERED_MAP => Item::OrderedMap(inner),
            extension::KINDS..=extension::CLASS => Item::Pattern(code, inner),
            _ => return Err(error("an extension type that is not known here")),
        })
    }
}

fn big_int(payload: &[u8]) -> Result<BigIntRef<'_>, &'static str> {
    let value = match payload {
        [sign @ (0 | 1), magnitude @ ..] => BigIntRef { negative: *sign == 1, magnitude },
        _ => return Err("the sign byte of an integer is 0 or 1"),
    };
    let has_shorter_form = match value.magnitude {
        [] | [0, ..] => true,
        magnitude if magnitude.len() < 8 => true,
        magnitude if magnitude.len() == 8 => !value.negative || value.fits_i64(),
        _ => false,
    };
    if has_shorter_form {
        return Err("an integer is not in its shortest form");
    }
    if value.magnitude.len() > crate::value::BIG_INT_BYTES_MAX {
        return Err("an integer has over 65536 bytes");
    }
    Ok(value)
}

fn timestamp(payload: &[u8]) -> Result<Timestamp, &'static str> {
    let (seconds, nanoseconds) = if let Ok(bytes) = <[u8; 4]>::try_from(payload) {
        (i64::from(u32::from_be_bytes(bytes)), 0)
    } else if let Ok(bytes) = <[u8; 8]>::try_from(payload) {
        let both = u64::from_be_bytes(bytes);
        let (nanoseconds, seconds) = (both >> 34, both & ((1 << 34) - 1));
        if nanoseconds == 0 && seconds >> 32 == 0 {
            return Err("a timestamp is not in its shortest form");
        }
        (seconds.cast_signed(), nanoseconds)
    } else if let [n0, n1, n2, n3, seconds @ ..] = payload
        && let Ok(seconds) = <[u8; 8]>::try_from(seconds)
    {
        let seconds = i64::from_be_bytes(seconds);
        if (0..1 << 34).contains(&seconds) {
            return Err("a timestamp is not in its shortest form");
        }
        (seconds, u64::from(u32::from_be_bytes([*n0, *n1, *n2, *n3])))
    } else {
        return Err("a timestamp has 4, 8 or 12 bytes");
    };
    let nanoseconds = u32::try_from(nanoseconds).map_err(|_| "a second has 10^9 nanoseconds")?;
    Timestamp::from_parts(seconds, nanoseconds)
        .ok_or("a timestamp is outside the years 1 to 9999, or has over 10^9 nanoseconds")
}
