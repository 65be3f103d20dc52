//! The possible kinds of a part of a condition, for any tuple: so a part that can never have an answer is refused
//! early.
//!
//! It errs on one side only: [`mod@super::evaluate`] never makes a kind of a part that this excludes.

use super::compile::{Arithmetic, Node};
use crate::Value;

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const TRUTH: Self = Self(1);
    pub(super) const INT: Self = Self(1 << 1);
    pub(super) const FLOAT: Self = Self(1 << 2);
    pub(super) const TEXT: Self = Self(1 << 3);
    pub(super) const BYTES: Self = Self(1 << 4);
    pub(super) const NULL: Self = Self(1 << 5);
    pub(super) const LIST: Self = Self(1 << 6);
    /// Kinds that no literal has: a map, an entry, a decimal, a timestamp, an int of more than 64 bits.
    pub(super) const OTHER: Self = Self(1 << 7);
    /// A field, or a value inside of one.
    pub(super) const ANY: Self = Self(u8::MAX);
    /// What can be calculated with.
    pub(super) const NUMBER: Self = Self::INT.or(Self::FLOAT);
    /// What has a place in an order (rule M5): no `bool`, no null and no list has.
    pub(super) const ORDERED: Self = Self::NUMBER.or(Self::TEXT).or(Self::BYTES).or(Self::OTHER);
    /// What has items.
    pub(super) const CONTAINER: Self = Self::LIST.or(Self::OTHER);
    /// What has a size.
    pub(super) const SIZED: Self = Self::CONTAINER.or(Self::TEXT).or(Self::BYTES);

    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) const fn meets(self, other: Self) -> bool {
        self.and(other).0 != 0
    }

    /// Whether one of these has an order with one of the others.
    pub(super) const fn has_order_with(self, other: Self) -> bool {
        self.with_numbers().and(Self::ORDERED).meets(other.with_numbers())
    }

    /// These, and with a number every number: they have an order among themselves, of whatever size they are.
    const fn with_numbers(self) -> Self {
        if self.meets(Self::NUMBER) { self.or(Self::NUMBER).or(Self::OTHER) } else { self }
    }
}

impl Node {
    /// The kinds that it can be of, if it has an answer.
    pub(super) fn kinds(&self) -> Kinds {
        match self {
            Self::Constant(value) => match value {
                Value::Bool(_) => Kinds::TRUTH,
                Value::Int(_) => Kinds::INT,
                Value::Float(_) => Kinds::FLOAT,
                Value::Str(_) => Kinds::TEXT,
                Value::Bytes(_) => Kinds::BYTES,
                Value::Null => Kinds::NULL,
                _ => Kinds::ANY,
            },
            Self::Name(_) | Self::Index(_) | Self::Select(..) => Kinds::ANY,
            Self::List(_) => Kinds::LIST,
            Self::Not(_)
            | Self::And(_)
            | Self::Or(_)
            | Self::Equal(_)
            | Self::Order(..)
            | Self::In(_)
            | Self::Text(..) => Kinds::TRUTH,
            Self::Negate(inner) => inner.kinds().and(Kinds::NUMBER),
            Self::Arithmetic(Arithmetic::Remainder, _) | Self::Size(_) | Self::Int(_) => Kinds::INT,
            Self::Arithmetic(_, parts) => parts[0].kinds().and(parts[1].kinds()).and(Kinds::NUMBER),
            Self::Double(_) => Kinds::FLOAT,
            Self::If(parts) => parts[1].kinds().or(parts[2].kinds()),
        }
    }

    /// Its name, in the words of an error.
    pub(super) fn described(&self) -> &'static str {
        match self {
            Self::Constant(value) => value.kind().name(),
            Self::If(parts) => parts[2].described(),
            Self::List(_) => "a list",
            _ if self.kinds() == Kinds::TRUTH => "what is true or false",
            _ if Kinds::NUMBER.and(self.kinds()) == self.kinds() => "a number",
            _ => "a field",
        }
    }

    /// Its value, if it is an int that stands in the text.
    pub(super) fn constant_int(&self) -> Option<i64> {
        match self {
            Self::Constant(Value::Int(value)) => Some(*value),
            Self::Negate(inner) => inner.constant_int()?.checked_neg(),
            _ => None,
        }
    }
}

/// What stands in a place of a condition.
pub(super) struct Place {
    pub(super) kinds: Kinds,
    /// The expected value, in words.
    pub(super) expected: &'static str,
    /// An example, behind the words.
    pub(super) example: &'static str,
    /// The way out.
    pub(super) hint: &'static str,
}

impl Place {
    pub(super) const TRUTH: Self = Self {
        example: ", such as a comparison with ==",
        ..Self::of(Kinds::TRUTH, "what is true or false")
    };
    pub(super) const NUMBER: Self = Self::of(Kinds::NUMBER, "a number");
    pub(super) const INT: Self = Self::of(Kinds::INT, "an int");
    pub(super) const TEXT: Self =
        Self { example: ", as in text.startsWith(\"x\")", ..Self::of(Kinds::TEXT, "text") };
    pub(super) const SIZED: Self = Self::of(Kinds::SIZED, "text, bytes, a list or a map");
    pub(super) const CONTAINER: Self = Self::of(Kinds::CONTAINER, "a list, a tuple or a map");
    pub(super) const KEYED: Self = Self::of(Kinds::OTHER, "a map or an entry");
    pub(super) const ORDERED: Self = Self {
        example: ", such as a number or text",
        hint: "== and != are for all kinds",
        ..Self::of(Kinds::ORDERED, "what has an order")
    };

    const fn of(kinds: Kinds, expected: &'static str) -> Self {
        Self { kinds, expected, example: "", hint: "" }
    }
}

#[cfg(test)]
mod tests {
    use super::Kinds;

    #[test]
    fn kinds_have_an_order_where_their_values_may_m5() {
        let all = [
            Kinds::TRUTH,
            Kinds::INT,
            Kinds::FLOAT,
            Kinds::TEXT,
            Kinds::BYTES,
            Kinds::NULL,
            Kinds::LIST,
            Kinds::OTHER,
        ];
        let numbers = [Kinds::INT, Kinds::FLOAT, Kinds::OTHER];
        for a in all {
            for b in all {
                let is_same = a == b && Kinds::ORDERED.meets(a);
                let expected = is_same || numbers.contains(&a) && numbers.contains(&b);
                assert_eq!(a.has_order_with(b), expected, "{a:?} {b:?}");
            }
            assert_eq!(a.has_order_with(Kinds::ANY), Kinds::ORDERED.meets(a), "{a:?}");
            assert_eq!(Kinds::ANY.has_order_with(a), Kinds::ORDERED.meets(a), "{a:?}");
        }
    }
}
