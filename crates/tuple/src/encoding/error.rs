//! Why something could not be encoded or decoded.

use std::fmt;

use super::DEPTH_MAX;
use crate::image::ARITY_MAX;
use crate::template::ALTERNATIVES_MAX;
use crate::value::DIMENSIONS_MAX;

/// Why a value, tuple or template cannot be encoded. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// Values are nested too deeply.
    TooDeep,
    /// One text, run of bytes or container is too long for its length to be written.
    TooLong {
        /// Its length, in bytes or in elements.
        length: usize,
    },
    /// A tuple or template has too many fields.
    TooManyFields {
        /// How many it has.
        arity: usize,
    },
    /// A template has too many alternatives.
    TooManyAlternatives {
        /// How many it has.
        alternatives: usize,
    },
    /// The shape of an array has too many dimensions.
    ArrayDimensions {
        /// How many it has.
        dimensions: usize,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooDeep => write!(
                out,
                "values are nested over {DEPTH_MAX} levels: flatten them, or store the parts as tuples"
            ),
            Self::TooLong { length } => {
                write!(
                    out,
                    "a value of length {length} is over the limit of {}: split it",
                    u32::MAX
                )
            }
            Self::TooManyFields { arity } => write!(
                out,
                "{arity} fields are over the limit of {ARITY_MAX}: put some of them into a list"
            ),
            Self::TooManyAlternatives { alternatives } => write!(
                out,
                "{alternatives} alternatives are over the limit of {ALTERNATIVES_MAX}: use a predicate on one field"
            ),
            Self::ArrayDimensions { dimensions } => write!(
                out,
                "an array of {dimensions} dimensions is over the limit of {DIMENSIONS_MAX}: reshape it"
            ),
        }
    }
}

impl std::error::Error for EncodeError {}

/// Why bytes are not a canonical encoding, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    at: usize,
    reason: &'static str,
}

impl DecodeError {
    pub(crate) const fn new(at: usize, reason: &'static str) -> Self {
        Self { at, reason }
    }

    /// The offset of the offending item, in bytes from the start of the encoding.
    pub const fn at(&self) -> usize {
        self.at
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "encoding is not valid at byte {}: {}", self.at, self.reason)
    }
}

impl std::error::Error for DecodeError {}
