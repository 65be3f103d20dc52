//! Ranges: fields between two bounds of comparable kinds (rule M5).

use std::cmp::Ordering::{self, Greater, Less};
use std::ops::Bound;

use super::PatternError;
use crate::encoding::{Item, Reader};
use crate::{Field, Kind, KindSet, Value, number};

/// The kinds that are compared with each other. Never `bool`, although it orders: `true` is no number.
///
/// An order by a field has the families one after the other as they stand here (rule T2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    Number,
    Decimal,
    Str,
    Bytes,
    Timestamp,
}

impl Family {
    const fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Int | Kind::Float => Some(Self::Number),
            Kind::Decimal => Some(Self::Decimal),
            Kind::Str => Some(Self::Str),
            Kind::Bytes => Some(Self::Bytes),
            Kind::Timestamp => Some(Self::Timestamp),
            _ => None,
        }
    }

    const fn kinds(self) -> KindSet {
        match self {
            Self::Number => KindSet::of(Kind::Int).or(KindSet::of(Kind::Float)),
            Self::Decimal => KindSet::of(Kind::Decimal),
            Self::Str => KindSet::of(Kind::Str),
            Self::Bytes => KindSet::of(Kind::Bytes),
            Self::Timestamp => KindSet::of(Kind::Timestamp),
        }
    }
}

/// Two bounds of one family, at least one of them present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    low: Bound<Value>,
    high: Bound<Value>,
    kinds: KindSet,
}

impl Range {
    /// The range between two bounds.
    ///
    /// # Errors
    ///
    /// If there is no bound, if a bound has no order (its kind, or NaN), or if the two cannot be compared.
    pub(crate) fn new(low: Bound<Value>, high: Bound<Value>) -> Result<Self, PatternError> {
        let family = match (family(&low)?, family(&high)?) {
            (Some((low, low_kind)), Some((high, high_kind))) if low != high => {
                return Err(PatternError::RangeMixed { low: low_kind, high: high_kind });
            }
            (Some((family, _)), _) | (None, Some((family, _))) => family,
            (None, None) => return Err(PatternError::RangeUnbounded),
        };
        Ok(Self { low, high, kinds: family.kinds() })
    }

    pub(crate) const fn low(&self) -> &Bound<Value> {
        &self.low
    }

    pub(crate) const fn high(&self) -> &Bound<Value> {
        &self.high
    }

    pub(crate) const fn kinds(&self) -> KindSet {
        self.kinds
    }

    pub(crate) fn matches(&self, field: &Field<'_>) -> bool {
        let above = match &self.low {
            Bound::Included(low) => compare(field, low).is_some_and(Ordering::is_ge),
            Bound::Excluded(low) => compare(field, low).is_some_and(Ordering::is_gt),
            Bound::Unbounded => true,
        };
        above
            && match &self.high {
                Bound::Included(high) => compare(field, high).is_some_and(Ordering::is_le),
                Bound::Excluded(high) => compare(field, high).is_some_and(Ordering::is_lt),
                Bound::Unbounded => true,
            }
    }
}

/// The family and the kind of a bound, if there is one.
fn family(bound: &Bound<Value>) -> Result<Option<(Family, Kind)>, PatternError> {
    let (Bound::Included(value) | Bound::Excluded(value)) = bound else { return Ok(None) };
    let kind = value.kind();
    match (Family::of(kind), value) {
        (None, _) => Err(PatternError::RangeKind { kind }),
        (_, Value::Float(number)) if number.is_nan() => Err(PatternError::RangeNan),
        (Some(family), _) => Ok(Some((family, kind))),
    }
}

/// How fields of two kinds order that no range compares: by their families. `None` if they are of one family, or one of
/// the kinds has no order.
pub(crate) fn compare_families(a: Kind, b: Kind) -> Option<Ordering> {
    let (a, b) = (Family::of(a)?, Family::of(b)?);
    (a != b).then(|| a.cmp(&b))
}

/// How `field` orders against a bound: `None` if they are of different families, or for NaN, which
/// lies in no range.
pub(crate) fn compare(field: &Field<'_>, bound: &Value) -> Option<Ordering> {
    match (field, bound) {
        (Field::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Field::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Field::Int(a), Value::Float(b)) => number::compare_int_float(*a, *b),
        (Field::Float(a), Value::Int(b)) => {
            number::compare_int_float(*b, *a).map(Ordering::reverse)
        }
        // UTF-8 orders as its code points do.
        (Field::Str(a), Value::Str(b)) => Some((*a).cmp(b.as_str())),
        (Field::Bytes(a), Value::Bytes(b)) => Some((*a).cmp(b.as_slice())),
        (Field::Int(_), Value::BigInt(b)) => Some(if b.is_negative() { Greater } else { Less }),
        (Field::Float(a), Value::BigInt(b)) => b.as_ref().compare_float(*a).map(Ordering::reverse),
        (Field::Encoded(encoded), _) => compare_encoded(&encoded.contiguous(), bound),
        _ => None,
    }
}

fn compare_encoded(encoding: &[u8], bound: &Value) -> Option<Ordering> {
    match (Reader::new(encoding).item().ok()?, bound) {
        (Item::BigInt(a), Value::BigInt(b)) => Some(a.compare(b.as_ref())),
        (Item::BigInt(a), Value::Int(_)) => Some(if a.negative { Less } else { Greater }),
        (Item::BigInt(a), Value::Float(b)) => a.compare_float(*b),
        (Item::Decimal(a), Value::Decimal(b)) => Some(a.compare(b.as_ref())),
        (Item::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
        _ => None,
    }
}
