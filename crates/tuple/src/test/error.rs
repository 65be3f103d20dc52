//! Why a predicate was refused.

use std::fmt;

use crate::{DEPTH_MAX, EncodeError, Kind};

/// Why a predicate cannot be made. Nothing was built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// A bound of a range is of a kind that has no order here.
    RangeKind {
        /// The kind of the bound.
        kind: Kind,
    },
    /// The bounds of a range cannot be compared with each other.
    RangeMixed {
        /// The kind of the lower bound.
        low: Kind,
        /// The kind of the upper bound.
        high: Kind,
    },
    /// A range without bounds.
    RangeUnbounded,
    /// A bound of a range is NaN.
    RangeNan,
    /// A prefix is neither text nor bytes.
    PrefixKind {
        /// The kind of the prefix.
        kind: Kind,
    },
    /// A `[` in a glob is never closed.
    Glob {
        /// The glob.
        glob: String,
    },
    /// Combinations are nested too deeply.
    TooDeep,
    /// A value cannot be encoded.
    Value(EncodeError),
}

impl fmt::Display for PatternError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RangeKind { kind } => write!(
                out,
                "{} has no order here: a range is between numbers, texts, bytes, decimals or timestamps",
                kind.name()
            ),
            Self::RangeMixed { low, high } => write!(
                out,
                "a range from {} to {} can not match: give both bounds the same kind, or int and float",
                low.name(),
                high.name()
            ),
            Self::RangeUnbounded => {
                write!(
                    out,
                    "a range needs at least one bound: for any value of a kind, write its type"
                )
            }
            Self::RangeNan => {
                write!(
                    out,
                    "a bound can not be nan, which has no order: to match nan, give it as the value"
                )
            }
            Self::PrefixKind { kind } => {
                write!(out, "a prefix is text or bytes, not {}", kind.name())
            }
            Self::Glob { glob } => {
                write!(
                    out,
                    "glob {glob:?} has a `[` that is never closed: write [[] for the character itself"
                )
            }
            Self::Value(error) => error.fmt(out),
            Self::TooDeep => write!(
                out,
                "patterns are nested over {DEPTH_MAX} levels: combine them side by side, in one `all` or `any`"
            ),
        }
    }
}

impl std::error::Error for PatternError {}
