//! The kinds of fields (rule V1) and sets of them (formals, rule M3).

/// The kind of a field. Two fields of different kinds are never equal (rule M2): `1`, `1.0` and
/// `true` are three different fields.
///
/// The numbers are part of the segment format and of the wire encoding: append, never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The value `null`; a value like any other, not a wildcard.
    Null = 0,
    /// `true` or `false`.
    Bool = 1,
    /// An integer of any size; 64 bits are stored inline.
    Int = 2,
    /// IEEE 754 binary64.
    Float = 3,
    /// UTF-8 text.
    Str = 4,
    /// Uninterpreted bytes.
    Bytes = 5,
    /// A decimal number that keeps its exponent.
    Decimal = 6,
    /// A moment in UTC, in nanoseconds since 1970-01-01.
    Timestamp = 7,
    /// A 128-bit identifier.
    Uuid = 8,
    /// A contiguous little-endian array with an element type and a shape.
    Array = 9,
    /// A nested list.
    List = 10,
    /// A nested tuple.
    Tuple = 11,
    /// A nested map, its keys sorted by their encoded bytes.
    Map = 12,
    /// A named record.
    Entry = 13,
    /// An object of one language, tagged with its codec and type name; matched by kind only.
    Opaque = 14,
}

impl Kind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::Null,
        Self::Bool,
        Self::Int,
        Self::Float,
        Self::Str,
        Self::Bytes,
        Self::Decimal,
        Self::Timestamp,
        Self::Uuid,
        Self::Array,
        Self::List,
        Self::Tuple,
        Self::Map,
        Self::Entry,
        Self::Opaque,
    ];

    /// The kind with this number, or `None`: the number may come from another process.
    #[inline]
    pub const fn from_number(number: u8) -> Option<Self> {
        if (number as usize) < Self::ALL.len() { Some(Self::ALL[number as usize]) } else { None }
    }

    /// The name in the text notation, as in `:int`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float",
            Self::Str => "str",
            Self::Bytes => "bytes",
            Self::Decimal => "decimal",
            Self::Timestamp => "timestamp",
            Self::Uuid => "uuid",
            Self::Array => "array",
            Self::List => "list",
            Self::Tuple => "tuple",
            Self::Map => "map",
            Self::Entry => "entry",
            Self::Opaque => "opaque",
        }
    }
}

/// A set of kinds, as a formal accepts it. `any` is the full set (rule M4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KindSet(u16);

impl KindSet {
    /// Every kind: the pattern `any` (rule M4).
    pub const ALL: Self = Self((1 << Kind::ALL.len()) - 1);
    /// No kind at all; a pattern with it matches nothing.
    pub const EMPTY: Self = Self(0);

    /// The set of one kind.
    #[inline]
    pub const fn of(kind: Kind) -> Self {
        Self(1 << kind as u8)
    }

    /// Both sets together: the union of formals (rule M3).
    #[inline]
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The kinds that are in both sets.
    #[inline]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The kinds that are not in the set.
    #[inline]
    #[must_use]
    pub const fn complement(self) -> Self {
        Self(!self.0 & Self::ALL.0)
    }

    /// Whether `kind` is in the set.
    #[inline]
    pub const fn contains(self, kind: Kind) -> bool {
        self.0 >> kind as u8 & 1 == 1
    }

    /// The only kind in the set, or `None` if there are several or none.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a bit of 16 has a number below 16")]
    pub const fn single(self) -> Option<Kind> {
        if self.0.is_power_of_two() {
            Kind::from_number(self.0.trailing_zeros() as u8)
        } else {
            None
        }
    }

    /// The set as bits, bit `n` for kind number `n`.
    #[inline]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The set with these bits; bits that name no kind are dropped.
    #[inline]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The kinds in the set, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }
}
