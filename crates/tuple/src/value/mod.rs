//! Values, owned: for programs that keep them, for the text notation, the model and the tests.

use crate::{Field, Kind};

/// One value of any kind (rule V1), owning its bytes.
///
/// `==` compares representations: floats by their bits, so that a round trip can be checked. Whether
/// a template would call two values the same is [`Field::same`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// The value `null`.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer that fits in 64 bits.
    Int(i64),
    /// A binary64 number; its bits are kept.
    Float(f64),
    /// Text.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Value {
    /// The kind of the value.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Float(_) => Kind::Float,
            Self::Str(_) => Kind::Str,
            Self::Bytes(_) => Kind::Bytes,
        }
    }

    /// The value as a field, if it is of a kind that needs no encoding.
    pub(crate) fn as_plain_field(&self) -> Option<Field<'_>> {
        Some(match self {
            Self::Null => Field::Null,
            Self::Bool(value) => Field::Bool(*value),
            Self::Int(value) => Field::Int(*value),
            Self::Float(value) => Field::Float(*value),
            Self::Str(text) => Field::Str(text),
            Self::Bytes(bytes) => Field::Bytes(bytes),
        })
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.to_owned())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}
