//! One field, borrowed from the owner of its bytes.

use std::borrow::Cow;

use crate::{Kind, encoding};

/// One field of a tuple, borrowed.
///
/// Scalars, text and bytes are themselves; every other kind, and an integer beyond 64 bits, is its
/// canonical encoding (`docs/encoding.md`).
#[derive(Clone, Copy, Debug)]
// A tag of its own, in the order of the kinds' numbers. The compiler would hide it in the unused values of
// `Encoded::kind`. That costs six instructions more at each look, and a put looks four times.
#[repr(u8)]
pub enum Field<'a> {
    /// The value `null`.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer that fits in 64 bits.
    Int(i64),
    /// A binary64 number; its bits are kept.
    Float(f64),
    /// Text.
    Str(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Any other value, encoded.
    Encoded(Encoded<'a>),
}

/// A field in its canonical encoding, in up to two pieces.
///
/// Two pieces so that an array's data can stay in the caller's buffer: `head` is the part of the encoding before the
/// data, `body` the data itself. The encoding is `head` followed by `body`. The engine aligns the beginning of `body`
/// to 64 bytes when it stores an array.
#[derive(Clone, Copy, Debug)]
pub struct Encoded<'a> {
    /// The kind of the encoded value; [`Kind::Int`] stands for an integer beyond 64 bits.
    pub kind: Kind,
    /// The encoding, or its beginning.
    pub head: &'a [u8],
    /// The rest of the encoding; usually empty.
    pub body: &'a [u8],
}

impl<'a> Encoded<'a> {
    /// An encoding in one piece.
    #[inline]
    pub const fn whole(kind: Kind, bytes: &'a [u8]) -> Self {
        Self { kind, head: bytes, body: &[] }
    }

    /// The size of the encoding, in bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Whether the encoding has no bytes; a valid one always has some.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The encoding in one piece; copied only if it is in two.
    pub fn contiguous(&self) -> Cow<'a, [u8]> {
        match (self.head, self.body) {
            (head, []) => Cow::Borrowed(head),
            ([], body) => Cow::Borrowed(body),
            (head, body) => Cow::Owned([head, body].concat()),
        }
    }

    /// Whether the bytes of the two encodings are equal, wherever each of them is split.
    fn same_bytes(&self, other: &Self) -> bool {
        let (short, long) =
            if self.head.len() <= other.head.len() { (self, other) } else { (other, self) };
        let (start, middle) = long.head.split_at(short.head.len());
        short.len() == long.len()
            && short.head == start
            && short.body[..middle.len()] == *middle
            && short.body[middle.len()..] == *long.body
    }

    /// The bytes of the encoding, one after the other.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.head.iter().chain(self.body).copied()
    }
}

impl Field<'_> {
    /// The kind of the field.
    #[inline]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Float(_) => Kind::Float,
            Self::Str(_) => Kind::Str,
            Self::Bytes(_) => Kind::Bytes,
            Self::Encoded(encoded) => encoded.kind,
        }
    }

    /// How the two fields order, as ranges do (rule M5): numbers numerically, text by code point, bytes by byte. `None`
    /// if their kinds do not compare.
    pub fn order(&self, other: &Field<'_>) -> Option<std::cmp::Ordering> {
        crate::test::compare(self, &crate::Value::from_field(other).ok()?)
    }

    /// How the two fields stand in an order by a field (rule T2): as [`Field::order`] has them. Kinds that do not compare
    /// come one after the other: numbers, decimals, text, bytes, timestamps.
    ///
    /// So the order of all fields that have an order, each with itself, is total. Each step of a search for the greatest
    /// may then forget what is beaten.
    pub fn order_across_kinds(&self, other: &Field<'_>) -> Option<std::cmp::Ordering> {
        let families = crate::test::compare_families(self.kind(), other.kind());
        families.or_else(|| self.order(other))
    }

    /// Whether the two fields are the same to a template: same kind, same value (rule M2).
    ///
    /// Not `==`: IEEE equality would make a stored NaN impossible to take. NaN matches NaN, and -0.0
    /// matches 0.0.
    #[inline]
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => folded_bits(*a) == folded_bits(*b),
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Encoded(a), Self::Encoded(b)) => same_encoded(a, b),
            _ => false,
        }
    }
}

/// The bits of a float with all NaNs made one and -0.0 made 0.0: what matching and hashing see (M2).
#[inline]
pub(crate) fn folded_bits(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else if value == 0.0 {
        0
    } else {
        value.to_bits()
    }
}

/// Whether two encodings are of the same value by M2. Encodings are canonical, so equal bytes decide for every kind.
/// Unequal bytes decide for every kind that holds no floats or decimals.
fn same_encoded(a: &Encoded<'_>, b: &Encoded<'_>) -> bool {
    if a.kind != b.kind {
        return false;
    }
    if a.same_bytes(b) {
        return true;
    }
    let by_value =
        matches!(a.kind, Kind::Decimal | Kind::List | Kind::Tuple | Kind::Map | Kind::Entry);
    by_value && encoding::same(&a.contiguous(), &b.contiguous())
}

macro_rules! field_from {
    ($($from:ty => $variant:ident as $to:ty),* $(,)?) => {$(
        impl From<$from> for Field<'_> {
            fn from(value: $from) -> Self {
                Self::$variant(<$to>::from(value))
            }
        }
    )*};
}
field_from!(
    bool => Bool as bool, f32 => Float as f64, f64 => Float as f64,
    i8 => Int as i64, i16 => Int as i64, i32 => Int as i64, i64 => Int as i64,
    u8 => Int as i64, u16 => Int as i64, u32 => Int as i64,
);

macro_rules! field_from_borrowed {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl<'a> From<&'a $from> for Field<'a> {
            fn from(value: &'a $from) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}
field_from_borrowed!(str => Str, String => Str, [u8] => Bytes, Vec<u8> => Bytes);

impl<'a, const N: usize> From<&'a [u8; N]> for Field<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<Encoded<'a>> for Field<'a> {
    fn from(encoded: Encoded<'a>) -> Self {
        Self::Encoded(encoded)
    }
}
