//! Patterns and templates, owned.

use crate::class::compare_names;
use crate::image::ARITY_MAX;
use crate::{
    Class, Condition, DecodeError, EncodeError, Form, Kind, KindSet, Named, ParseError, PatternRef,
    TemplateRef, Test, Tuple, TupleRef, Value, ValueError,
};

/// Most alternatives of a template: each is asked for by itself, so more would hide a loop.
pub const ALTERNATIVES_MAX: usize = 256;

/// What one field must look like, owned. Predicates are made by [`Pattern::range`] and its neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Exactly this value (rule M2).
    Actual(Value),
    /// Any value of one of these kinds: a formal, a union of formals, or `any` (rules M3, M4).
    Kinds(KindSet),
    /// A predicate (rule M5).
    Test(Test),
}

impl Pattern {
    /// Any one field (rule M4).
    pub const ANY: Self = Self::Kinds(KindSet::ALL);

    /// Whether the pattern matches `value`. It never matches a value that cannot be encoded.
    pub fn matches(&self, value: &Value) -> bool {
        let Ok(encoding) = self.side_encoding() else { return false };
        let pattern = self.as_ref(&encoding);
        value.with_field(|field| pattern.matches(&field)).unwrap_or(false)
    }

    /// Whether the pattern matches no value at all, as far as [`Test::is_impossible`] looks.
    pub fn is_impossible(&self) -> bool {
        match self {
            Self::Actual(_) => false,
            Self::Kinds(kinds) => *kinds == KindSet::EMPTY,
            Self::Test(test) => test.is_impossible(),
        }
    }

    /// What [`Pattern::as_ref`] needs beside the pattern.
    fn side_encoding(&self) -> Result<Vec<u8>, EncodeError> {
        match self {
            Self::Actual(value) => value.side_encoding(),
            Self::Kinds(_) | Self::Test(_) => Ok(Vec::new()),
        }
    }

    /// The borrowed form, given the pattern's side encoding.
    fn as_ref<'a>(&'a self, side_encoding: &'a [u8]) -> PatternRef<'a> {
        match self {
            Self::Actual(value) => PatternRef::Actual(value.as_field(side_encoding)),
            Self::Kinds(kinds) => PatternRef::Kinds(*kinds),
            Self::Test(test) => PatternRef::Test(test),
        }
    }
}

impl<T: Into<Value>> From<T> for Pattern {
    fn from(value: T) -> Self {
        Self::Actual(value.into())
    }
}

impl From<Kind> for Pattern {
    fn from(kind: Kind) -> Self {
        Self::Kinds(KindSet::of(kind))
    }
}

impl From<KindSet> for Pattern {
    fn from(kinds: KindSet) -> Self {
        Self::Kinds(kinds)
    }
}

impl PatternRef<'_> {
    /// The pattern, owning its value.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is an encoded actual that is damaged.
    pub fn to_pattern(&self) -> Result<Pattern, DecodeError> {
        Ok(match self {
            Self::Actual(field) => Pattern::Actual(Value::from_field(field)?),
            Self::Kinds(kinds) => Pattern::Kinds(*kinds),
            Self::Test(test) => Pattern::Test((*test).clone()),
        })
    }
}

/// One alternative of a template, owned: a pattern per field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alternative {
    /// One pattern per field, from the first; of an entry, one for each name.
    pub patterns: Vec<Pattern>,
    /// What of the tuple they stand for.
    pub form: Form<Named>,
    /// What holds of the whole tuple, too (rule M9).
    pub condition: Option<Condition>,
}

impl Alternative {
    /// Entries of the class `name`, or of a class derived from it, whose named fields look like this. The other fields
    /// are any (rule M7).
    ///
    /// # Errors
    ///
    /// [`ValueError::Duplicate`] if a field is named twice.
    pub fn entry(
        name: impl Into<String>,
        fields: impl IntoIterator<Item = (String, Pattern)>,
    ) -> Result<Self, ValueError> {
        let mut fields: Vec<_> = fields.into_iter().collect();
        fields.sort_by(|(a, _), (b, _)| compare_names(a, b));
        if let Some(twice) = fields.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ValueError::Duplicate { key: twice[0].0.clone() });
        }
        let (names, patterns) = fields.into_iter().unzip();
        Ok(Self { patterns, form: Form::Entry(Named::new(name, names)), condition: None })
    }

    /// The alternative, for the matches that also fulfil `condition` (rule M9).
    ///
    /// # Errors
    ///
    /// [`ParseError`] if the condition has a name other than `f`, the tuple, and the alternative is not for entries.
    /// Also if it has a condition already, and both together are too long.
    pub fn with_condition(mut self, condition: &Condition) -> Result<Self, ParseError> {
        if !matches!(self.form, Form::Entry(_)) {
            condition.require_tuple()?;
        }
        self.condition = Some(match self.condition {
            Some(first) => first.and(condition)?,
            None => condition.clone(),
        });
        Ok(self)
    }
}

/// A template, owned: one alternative, or an OR of several (rule M8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Never empty.
    alternatives: Vec<Alternative>,
}

impl Template {
    /// A template for tuples of exactly as many fields as there are patterns.
    pub fn new(patterns: Vec<Pattern>) -> Self {
        Alternative { patterns, form: Form::Exact, condition: None }.into()
    }

    /// A template that looks exactly like `tuple`; for an entry, it names all fields.
    pub fn of_actuals(tuple: &Tuple) -> Self {
        let patterns = tuple.iter().cloned().map(Pattern::Actual).collect();
        let named =
            |class: &Class| Named::new(class.name(), class.fields().map(Into::into).collect());
        let form = tuple.class().map_or(Form::Exact, |class| Form::Entry(named(class)));
        Alternative { patterns, form, condition: None }.into()
    }

    /// The pattern that keeps the template from matching anything, and which field it is for; `None` if there may be
    /// matches. With several alternatives, that of the first one, if none of them can match.
    ///
    /// ```
    /// let template: tupelo_tuple::Template = "job, 9..3".parse()?;
    /// assert_eq!(template.impossible().unwrap().0, 1);
    /// # Ok::<(), tupelo_tuple::ParseError>(())
    /// ```
    pub fn impossible(&self) -> Option<(usize, &Pattern)> {
        let impossible = |alternative: &Alternative| {
            alternative.patterns.iter().position(Pattern::is_impossible)
        };
        let places = self.alternatives.iter().map(impossible).collect::<Option<Vec<_>>>()?;
        let (first, place) = (self.alternatives.first()?, *places.first()?);
        Some((place, &first.patterns[place]))
    }

    /// A template that matches what either matches (rule M8). The first that matches counts.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.alternatives.extend(other.alternatives);
        self
    }

    /// The template, for the matches that also fulfil `condition` (rule M9).
    ///
    /// ```
    /// use tupelo_tuple::{Condition, Template, tuple};
    ///
    /// let jobs: Template = "job, :int".parse()?;
    /// let even = jobs.with_condition(&Condition::new("f[1] % 2 == 0")?)?;
    /// assert!(even.matches(&tuple!["job", 4]) && !even.matches(&tuple!["job", 7]));
    /// assert_eq!(even.to_string(), r#"("job", :int) where "f[1] % 2 == 0""#);
    /// # Ok::<(), tupelo_tuple::ParseError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Alternative::with_condition`].
    pub fn with_condition(self, condition: &Condition) -> Result<Self, ParseError> {
        let alternatives = self.alternatives.into_iter().map(|one| one.with_condition(condition));
        Ok(Self { alternatives: alternatives.collect::<Result<_, _>>()? })
    }

    /// The alternatives; at least one.
    pub fn alternatives(&self) -> &[Alternative] {
        &self.alternatives
    }

    /// Fails if the template is beyond the limits (rule B2), so that a call could not wait with it. The limits are
    /// [`ALTERNATIVES_MAX`] alternatives, each of at most [`ARITY_MAX`] patterns.
    ///
    /// # Errors
    ///
    /// [`EncodeError::TooManyAlternatives`], [`EncodeError::TooManyFields`].
    pub fn require_limits(&self) -> Result<(), EncodeError> {
        let alternatives = self.alternatives.len();
        if alternatives > ALTERNATIVES_MAX {
            return Err(EncodeError::TooManyAlternatives { alternatives });
        }
        let arities = self.alternatives.iter().map(|one| one.patterns.len());
        match arities.max() {
            Some(arity) if arity > ARITY_MAX => Err(EncodeError::TooManyFields { arity }),
            _ => Ok(()),
        }
    }

    /// Whether the template matches `tuple`. It never matches a tuple that cannot be encoded.
    pub fn matches(&self, tuple: &Tuple) -> bool {
        let matches = |tuple: TupleRef<'_>| {
            self.with_refs(|templates| templates.iter().any(|one| one.matches_ref(&tuple)))
        };
        matches!(tuple.with_ref(matches), Ok(Ok(true)))
    }

    /// Gives `use_refs` the alternatives in their borrowed form, as a take takes them.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if an actual cannot be encoded; `use_refs` was not called.
    pub fn with_refs<R>(
        &self,
        use_refs: impl FnOnce(&[TemplateRef<'_>]) -> R,
    ) -> Result<R, EncodeError> {
        let side_encodings = |alternative: &Alternative| {
            alternative.patterns.iter().map(Pattern::side_encoding).collect()
        };
        let encodings: Result<Vec<Vec<_>>, _> =
            self.alternatives.iter().map(side_encodings).collect();
        let encodings = encodings?;
        let patterns: Vec<Vec<_>> = (self.alternatives.iter().zip(&encodings))
            .map(|(alternative, encodings)| {
                let patterns = alternative.patterns.iter().zip(encodings);
                patterns.map(|(pattern, encoding)| pattern.as_ref(encoding)).collect()
            })
            .collect();
        let refs: Vec<_> = (self.alternatives.iter().zip(&patterns))
            .map(|(alternative, patterns)| TemplateRef {
                patterns,
                form: alternative.form.as_ref(),
                condition: alternative.condition.as_ref(),
            })
            .collect();
        Ok(use_refs(&refs))
    }

    /// The template with these alternatives, if there are any.
    pub(crate) fn from_alternatives(alternatives: Vec<Alternative>) -> Option<Self> {
        (!alternatives.is_empty()).then_some(Self { alternatives })
    }
}

impl From<Alternative> for Template {
    fn from(alternative: Alternative) -> Self {
        Self { alternatives: vec![alternative] }
    }
}

impl TemplateRef<'_> {
    /// The template, owning its values.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if an encoded actual is damaged.
    pub fn to_template(&self) -> Result<Template, DecodeError> {
        let patterns: Result<Vec<_>, _> =
            self.patterns.iter().map(PatternRef::to_pattern).collect();
        let form = match self.form {
            Form::Exact => Form::Exact,
            Form::Rest => Form::Rest,
            Form::Entry(named) => Form::Entry(named.clone()),
        };
        Ok(Alternative { patterns: patterns?, form, condition: self.condition.cloned() }.into())
    }
}
