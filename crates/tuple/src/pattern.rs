//! Patterns and templates, borrowed: what an operation of the engine is asked with.

use crate::class::compare_names;
use crate::{Class, Condition, Fault, Field, Kind, KindSet, Test, TupleRef, TupleView};

/// What one field must look like.
#[derive(Clone, Copy, Debug)]
// A tag of its own, as that of `Field`: hidden in the field's, it costs five instructions more at each look.
#[repr(u8)]
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

    /// Whether the pattern matches `field`.
    #[inline]
    pub fn matches(&self, field: &Field<'_>) -> bool {
        match self {
            Self::Actual(actual) => actual.same(field),
            Self::Kinds(kinds) => kinds.contains(field.kind()),
            Self::Test(test) => test.matches(field),
        }
    }

    /// The kinds that a matching field can have. The engine selects shapes with them.
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

/// What of a tuple the patterns of a template stand for.
///
/// `N` holds the names that an entry's patterns go by: owned, or a reference to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Form<N> {
    /// All of its fields.
    #[default]
    Exact,
    /// Its first fields; any number of further fields may follow (rule M1). No pattern at all: everything, also
    /// entries.
    Rest,
    /// The named fields of an entry; the other fields are any (rule M7).
    Entry(N),
}

impl<N> Form<N> {
    /// The same, with a reference to the names.
    pub const fn as_ref(&self) -> Form<&N> {
        match self {
            Self::Exact => Form::Exact,
            Self::Rest => Form::Rest,
            Self::Entry(names) => Form::Entry(names),
        }
    }
}

/// The names in a template of entries: the class, and the field of each pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    class: String,
    fields: Vec<String>,
}

impl Named {
    /// Patterns of `class` for `fields`, in the order of their names' encodings: shorter ones first.
    ///
    /// # Panics
    ///
    /// If the fields are not in that order, or one appears twice. [`Alternative::entry`](crate::Alternative::entry)
    /// sorts them.
    pub fn new(class: impl Into<String>, fields: Vec<String>) -> Self {
        let ascending = fields.windows(2).all(|pair| compare_names(&pair[0], &pair[1]).is_lt());
        assert!(ascending, "the names of fields are in the order of their encodings");
        Self { class: class.into(), fields }
    }

    /// The name of the class, or of a base of the entries' class.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// The names of the fields, one for each pattern.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// The place of the pattern for each field of `class`, as far as there is one. The result is `None` if the template
    /// is not for entries of the class, or names a field that the class has not.
    fn resolve(&self, class: &Class, mut place: impl FnMut(usize, usize)) -> Option<()> {
        if !class.is(&self.class) {
            return None;
        }
        for (number, name) in self.fields.iter().enumerate() {
            place(class.index_of(name)?, number);
        }
        Some(())
    }
}

/// One alternative of a template: a pattern per field.
#[derive(Clone, Copy, Debug)]
pub struct TemplateRef<'a> {
    /// The patterns, from the first field; of an entry, one for each name.
    pub patterns: &'a [PatternRef<'a>],
    /// What of the tuple they stand for.
    pub form: Form<&'a Named>,
    /// What holds of the whole tuple, too (rule M9).
    pub condition: Option<&'a Condition>,
}

impl<'a> TemplateRef<'a> {
    /// A template for tuples of exactly as many fields as there are patterns.
    #[inline]
    pub const fn new(patterns: &'a [PatternRef<'a>]) -> Self {
        Self { patterns, form: Form::Exact, condition: None }
    }

    /// A template for tuples that begin like `patterns`; any number of further fields may follow (rule M1).
    #[inline]
    pub const fn beginning(patterns: &'a [PatternRef<'a>]) -> Self {
        Self { patterns, form: Form::Rest, condition: None }
    }

    /// Whether a tuple of `arity` fields, which is no entry, can match (rule M1).
    #[inline]
    pub const fn accepts_arity(&self, arity: usize) -> bool {
        match self.form {
            Form::Exact => arity == self.patterns.len(),
            Form::Rest => arity >= self.patterns.len(),
            Form::Entry(_) => false,
        }
    }

    /// Whether the template is for everything, tuples and entries: `...` and no pattern.
    pub(crate) const fn is_for_everything(&self) -> bool {
        matches!(self.form, Form::Rest) && self.patterns.is_empty()
    }

    /// The patterns for the fields of entries of `class` in their order; `None` if the template is not for
    /// them (rule M7).
    pub fn resolved(&self, class: &Class) -> Option<Vec<PatternRef<'a>>> {
        let Form::Entry(named) = self.form else {
            return self.is_for_everything().then(|| vec![PatternRef::ANY; class.arity()]);
        };
        let mut patterns = vec![PatternRef::ANY; class.arity()];
        named.resolve(class, |index, number| patterns[index] = self.patterns[number])?;
        Some(patterns)
    }

    /// The template without its condition: what of it concerns single fields.
    #[inline]
    #[must_use]
    pub const fn without_condition(self) -> Self {
        Self { condition: None, ..self }
    }

    /// Whether the template matches the tuple. It does not if the fields are damaged, or the condition cannot be
    /// decided.
    pub fn matches(&self, tuple: &TupleView<'_>) -> bool {
        self.filter(tuple) == Ok(true)
    }

    /// As [`TemplateRef::matches`], for code that counts the tuples for which the condition cannot be decided.
    ///
    /// # Errors
    ///
    /// [`Fault`], of a tuple whose fields match.
    pub fn filter(&self, tuple: &TupleView<'_>) -> Result<bool, Fault> {
        let fits = self.matches_by(tuple.class(), tuple.len(), |index, pattern| {
            tuple.field(index).is_some_and(|field| pattern.matches(&field))
        });
        match self.condition {
            Some(condition) if fits => condition.holds(tuple),
            _ => Ok(fits),
        }
    }

    /// Whether the template matches a tuple of these fields.
    pub fn matches_fields(&self, fields: &[Field<'_>]) -> bool {
        self.matches_ref(&fields.into())
    }

    /// Whether the template matches the tuple.
    pub fn matches_ref(&self, tuple: &TupleRef<'_>) -> bool {
        let fits = self.matches_by(tuple.class, tuple.fields.len(), |index, pattern| {
            tuple.fields.get(index).is_some_and(|field| pattern.matches(field))
        });
        fits && self.condition.is_none_or(|condition| condition.holds_ref(tuple) == Ok(true))
    }

    /// Whether each pattern matches its field, by `matches`, in a tuple of this class and arity.
    fn matches_by(
        &self,
        class: Option<&Class>,
        arity: usize,
        matches: impl Fn(usize, &PatternRef<'_>) -> bool,
    ) -> bool {
        match (self.form, class) {
            (Form::Entry(named), Some(class)) => {
                let mut all = true;
                let fits = named
                    .resolve(class, |index, number| all &= matches(index, &self.patterns[number]));
                fits.is_some() && all
            }
            (Form::Exact | Form::Rest, None) => {
                let mut patterns = self.patterns.iter().enumerate();
                self.accepts_arity(arity) && patterns.all(|(index, one)| matches(index, one))
            }
            _ => self.is_for_everything(),
        }
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
