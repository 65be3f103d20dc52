//! Values, owned: for programs that keep them, for the text notation, the model and the tests.

mod array;
mod big_int;
mod containers;
mod decimal;
mod error;
mod from;
mod map;
mod timestamp;

pub(crate) use array::data_offset;
pub use array::{Array, ArrayView, DIMENSIONS_MAX, DType, array_head};
pub(crate) use big_int::BigIntRef;
pub use big_int::{BIG_INT_BYTES_MAX, BigInt};
pub use containers::{Entry, Opaque};
pub(crate) use decimal::DecimalRef;
pub use decimal::{DECIMAL_DIGITS_MAX, DECIMAL_EXPONENT_MAX, Decimal};
pub use error::ValueError;
pub use map::Map;
pub use timestamp::Timestamp;

use crate::field::folded_bits;
use crate::{DecodeError, EncodeError, Encoded, Field, Kind};

/// One value of any kind (rule V1), owning its bytes.
///
/// `==` compares representations: floats by their bits, decimals with their exponent. So equal values have equal
/// encodings, up to the order of maps, which it does not look at (rule V4). Whether a template calls two values the
/// same is [`Value::same`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// The value `null`.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer that fits in 64 bits.
    Int(i64),
    /// An integer that does not.
    BigInt(BigInt),
    /// A binary64 number; its bits are kept.
    Float(f64),
    /// Text.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A decimal number that keeps its exponent.
    Decimal(Decimal),
    /// A moment in UTC.
    Timestamp(Timestamp),
    /// A 128-bit identifier, in the order it is printed in.
    Uuid([u8; 16]),
    /// A contiguous array.
    Array(Array),
    /// A nested list.
    List(Vec<Value>),
    /// A nested tuple.
    Tuple(Vec<Value>),
    /// A nested map.
    Map(Map),
    /// A named record.
    Entry(Entry),
    /// An object of one language.
    Opaque(Opaque),
}

impl Value {
    /// The kind of the value.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) | Self::BigInt(_) => Kind::Int,
            Self::Float(_) => Kind::Float,
            Self::Str(_) => Kind::Str,
            Self::Bytes(_) => Kind::Bytes,
            Self::Decimal(_) => Kind::Decimal,
            Self::Timestamp(_) => Kind::Timestamp,
            Self::Uuid(_) => Kind::Uuid,
            Self::Array(_) => Kind::Array,
            Self::List(_) => Kind::List,
            Self::Tuple(_) => Kind::Tuple,
            Self::Map(_) => Kind::Map,
            Self::Entry(_) => Kind::Entry,
            Self::Opaque(_) => Kind::Opaque,
        }
    }

    /// Whether the value is a field as it is, without an encoding.
    const fn is_plain(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Bool(_)
                | Self::Int(_)
                | Self::Float(_)
                | Self::Str(_)
                | Self::Bytes(_)
        )
    }

    /// What [`Value::as_field`] needs beside the value: its encoding, or nothing for plain values.
    pub(crate) fn side_encoding(&self) -> Result<Vec<u8>, EncodeError> {
        if self.is_plain() { Ok(Vec::new()) } else { self.encode() }
    }

    /// The value as a field, given its [`Value::side_encoding`].
    pub(crate) fn as_field<'a>(&'a self, side_encoding: &'a [u8]) -> Field<'a> {
        match self {
            Self::Null => Field::Null,
            Self::Bool(value) => Field::Bool(*value),
            Self::Int(value) => Field::Int(*value),
            Self::Float(value) => Field::Float(*value),
            Self::Str(text) => Field::Str(text),
            Self::Bytes(bytes) => Field::Bytes(bytes),
            _ => Field::Encoded(Encoded::whole(self.kind(), side_encoding)),
        }
    }

    /// Gives `use_field` the value as a field, encoding it if its kind calls for that.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if the value cannot be encoded; `use_field` was not called.
    pub fn with_field<R>(&self, use_field: impl FnOnce(Field<'_>) -> R) -> Result<R, EncodeError> {
        let encoding = self.side_encoding()?;
        Ok(use_field(self.as_field(&encoding)))
    }

    /// The value of a field.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if an encoded field is damaged, or not of the kind it is said to be.
    pub fn from_field(field: &Field<'_>) -> Result<Self, DecodeError> {
        Ok(match field {
            Field::Null => Self::Null,
            Field::Bool(value) => Self::Bool(*value),
            Field::Int(value) => Self::Int(*value),
            Field::Float(value) => Self::Float(*value),
            Field::Str(text) => Self::from(*text),
            Field::Bytes(bytes) => Self::from(*bytes),
            Field::Encoded(encoded) => {
                let value = Self::decode(&encoded.contiguous())?;
                if value.kind() != encoded.kind || value.is_plain() {
                    let reason =
                        "the value is of another kind than its field, or needs no encoding";
                    return Err(DecodeError::new(0, reason));
                }
                value
            }
        })
    }

    /// Whether a template that asks for one of the two matches the other: same kind and same value, also inside
    /// containers (rule M2). NaN is itself, -0.0 is 0.0, and decimals are compared as numbers.
    ///
    /// A value that cannot be encoded cannot be in a space, and is the same as none.
    pub fn same(&self, other: &Self) -> bool {
        let same = self.with_field(|a| other.with_field(|b| a.same(&b)));
        matches!(same, Ok(Ok(true)))
    }

    /// As [`Value::same`], of two values that can be encoded, but without encoding them. It stops at the first
    /// difference, where an encoding takes as long as the larger value is. For code that compares one value with many.
    pub(crate) fn same_decoded(&self, other: &Self) -> bool {
        let all_same = |a: &[Self], b: &[Self]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_decoded(b))
        };
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => folded_bits(*a) == folded_bits(*b),
            (Self::Decimal(a), Self::Decimal(b)) => a.as_ref().compare(b.as_ref()).is_eq(),
            (Self::List(a), Self::List(b)) | (Self::Tuple(a), Self::Tuple(b)) => all_same(a, b),
            (Self::Map(a), Self::Map(b)) => {
                let mut pairs = a.pairs().iter().zip(b.pairs());
                // The keys are folded and sorted, so equal keys are at equal places.
                a.pairs().len() == b.pairs().len()
                    && pairs.all(|((key, a), (other, b))| key == other && a.same_decoded(b))
            }
            (Self::Entry(a), Self::Entry(b)) => {
                let mut fields = a.fields().iter().zip(b.fields());
                (a.name(), a.bases(), a.fields().len()) == (b.name(), b.bases(), b.fields().len())
                    && fields.all(|((name, a), (other, b))| name == other && a.same_decoded(b))
            }
            _ => self == other,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::BigInt(a), Self::BigInt(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Decimal(a), Self::Decimal(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::Uuid(a), Self::Uuid(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::List(a), Self::List(b)) | (Self::Tuple(a), Self::Tuple(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            (Self::Entry(a), Self::Entry(b)) => a == b,
            (Self::Opaque(a), Self::Opaque(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}
