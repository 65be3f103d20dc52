//! Why something is not a value.

use std::fmt;

use super::{BIG_INT_BYTES_MAX, DECIMAL_DIGITS_MAX, DECIMAL_EXPONENT_MAX, DIMENSIONS_MAX};
use crate::image::ARITY_MAX;
use crate::{CLASS_BYTES_MAX, CLASSES_MAX, EncodeError};

/// Why a value cannot be made. Nothing was built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueError {
    /// An integer is larger than any that is stored.
    IntegerTooLong {
        /// The size of its magnitude, in bytes.
        bytes: usize,
    },
    /// A text is not a number of the kind it should be.
    Syntax {
        /// The correct form, with an example.
        expected: &'static str,
        /// The text.
        found: String,
    },
    /// A decimal has too many digits, or an exponent out of range.
    DecimalRange,
    /// A moment is outside the years 1 to 9999.
    TimestampRange,
    /// The shape of an array has too many dimensions.
    ArrayDimensions {
        /// How many it has.
        dimensions: usize,
    },
    /// The data of an array is not as long as its element type and shape say.
    ArrayLength {
        /// The size of the data, in bytes.
        bytes: usize,
        /// The size of the shape, in bytes; `None` if it is beyond counting.
        expected: Option<usize>,
    },
    /// Two keys of a map, or two fields of an entry, are the same (rule M2).
    Duplicate {
        /// The key, in the text notation.
        key: String,
    },
    /// The names of a class take too many bytes, or there are too many fields.
    ClassTooLarge {
        /// The size of the names, in encoded bytes.
        bytes: usize,
        /// The number of fields.
        fields: usize,
    },
    /// The process knows as many classes of entries as it may.
    TooManyClasses,
    /// A key cannot be encoded.
    Key(EncodeError),
}

impl fmt::Display for ValueError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IntegerTooLong { bytes } => write!(
                out,
                "an integer of {bytes} bytes is over the limit of {BIG_INT_BYTES_MAX}: put it as bytes"
            ),
            Self::Syntax { expected, found } => {
                let shown: String = found.chars().take(80).collect();
                write!(out, "{shown:?} is not {expected}")
            }
            Self::DecimalRange => write!(
                out,
                "a decimal has at most {DECIMAL_DIGITS_MAX} digits and an exponent within {DECIMAL_EXPONENT_MAX} of zero: round it"
            ),
            Self::TimestampRange => {
                write!(out, "a timestamp lies in the years 1 to 9999 UTC: put another as an int")
            }
            Self::ArrayDimensions { dimensions } => write!(
                out,
                "an array of {dimensions} dimensions is over the limit of {DIMENSIONS_MAX}: reshape it"
            ),
            Self::ArrayLength { bytes, expected: Some(expected) } => write!(
                out,
                "the array has {bytes} bytes of data, its element type and shape call for {expected}"
            ),
            Self::ArrayLength { expected: None, .. } => {
                write!(out, "the shape of the array calls for more bytes than can be counted")
            }
            Self::Duplicate { key } => {
                write!(out, "{key} is there twice: keys are the same when they match each other")
            }
            Self::ClassTooLarge { bytes, fields } => write!(
                out,
                "a class has at most {ARITY_MAX} fields, and {CLASS_BYTES_MAX} bytes of names with those of its bases; this one has {fields} and {bytes}: put some of the fields into a list"
            ),
            Self::TooManyClasses => write!(
                out,
                "this process knows {CLASSES_MAX} classes of entries, and can know no more: use fewer names"
            ),
            Self::Key(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for ValueError {}
