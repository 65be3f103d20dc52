//! Patterns and templates, borrowed: what an operation of the engine is asked with.

use crate::{Field, Kind, KindSet, Test, TupleView};

/// What one field must look like.
#[derive(Clone, Copy, Debug)]
pub enum PatternRef<'a> {
    /// Exactly this value (rule M2).
    Actual(Field<'a>),
    /// Any value of one of these kinds: a formal, a union of formals, or `any` (rules M3, M4).
    Kinds(KindSet),
    /// A predicate: a range, membership, a glob, or a combination of patterns (rule M5).
    Test(&'a Test),
}

impl<'a> PatternRef<'a> {
    /// Any one field (rule M4).
    pub const ANY: Self = Self::Kinds(KindSet::ALL);

    /// Whether `field` is what the pattern asks for.
    #[inline]
    pub fn matches(&self, field: &Field<'_>) -> bool {
        match self {
            Self::Actual(actual) => actual.same(field),
            Self::Kinds(kinds) => kinds.contains(field.kind()),
            Self::Test(test) => test.matches(field),
        }
    }

    /// The kinds that a matching field can have. What the engine selects shapes with.
    #[inline]
    pub fn kinds(&self) -> KindSet {
        match self {
            Self::Actual(actual) => KindSet::of(actual.kind()),
            Self::Kinds(kinds) => *kinds,
            Self::Test(test) => test.kinds(),
        }
    }

    /// The kind that every matching field has, if there is only one. The same as `kinds().single()`, cheaper
    /// for an actual.
    #[inline]
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Actual(actual) => Some(actual.kind()),
            Self::Kinds(kinds) => kinds.single(),
            Self::Test(test) => test.kinds().single(),
        }
    }

    /// The value, if the pattern is an actual.
    #[inline]
    pub fn actual(&self) -> Option<&Field<'a>> {
        match self {
            Self::Actual(field) => Some(field),
            Self::Kinds(_) | Self::Test(_) => None,
        }
    }
}

/// One alternative of a template: a pattern per field.
///
/// The engine takes a slice of them: a template is an OR of alternatives (rule M8), nearly always one.
#[derive(Clone, Copy, Debug)]
pub struct TemplateRef<'a> {
    /// One pattern per field, from the first.
    pub patterns: &'a [PatternRef<'a>],
    /// Whether any number of further fields may follow (rule M1).
    pub rest: bool,
}

impl<'a> TemplateRef<'a> {
    /// A template for tuples of exactly as many fields as there are patterns.
    #[inline]
    pub const fn new(patterns: &'a [PatternRef<'a>]) -> Self {
        Self { patterns, rest: false }
    }

    /// Whether a tuple of `arity` fields can match (rule M1).
    #[inline]
    pub const fn accepts_arity(&self, arity: usize) -> bool {
        arity == self.patterns.len() || (self.rest && arity > self.patterns.len())
    }

    /// Whether the tuple is what the template asks for. One whose fields are damaged is not.
    pub fn matches(&self, tuple: &TupleView<'_>) -> bool {
        self.accepts_arity(tuple.len())
            && self.patterns.iter().enumerate().all(|(index, pattern)| {
                tuple.field(index).is_some_and(|field| pattern.matches(&field))
            })
    }

    /// Whether a tuple of these fields is what the template asks for.
    pub fn matches_fields(&self, fields: &[Field<'_>]) -> bool {
        self.accepts_arity(fields.len())
            && self.patterns.iter().zip(fields).all(|(pattern, field)| pattern.matches(field))
    }
}

impl<'a, T: Into<Field<'a>>> From<T> for PatternRef<'a> {
    fn from(actual: T) -> Self {
        Self::Actual(actual.into())
    }
}

impl From<Kind> for PatternRef<'_> {
    fn from(kind: Kind) -> Self {
        Self::Kinds(KindSet::of(kind))
    }
}

impl From<KindSet> for PatternRef<'_> {
    fn from(kinds: KindSet) -> Self {
        Self::Kinds(kinds)
    }
}

impl<'a> From<&'a Test> for PatternRef<'a> {
    fn from(test: &'a Test) -> Self {
        Self::Test(test)
    }
}
