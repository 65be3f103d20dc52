//! The intersection of templates: what matches both.

use std::collections::BTreeMap;

use crate::{
    ALTERNATIVES_MAX, Alternative, Condition, Form, Named, ParseError, Pattern, PatternError,
    Template, ValueError,
};

/// Why there is no template for what matches two others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IntersectError {
    /// It would have more than [`ALTERNATIVES_MAX`] alternatives.
    TooManyAlternatives,
    /// Two patterns for one field are nested too deeply together.
    Pattern(PatternError),
    /// Two conditions are too long together.
    Condition(ParseError),
}

impl std::error::Error for IntersectError {}

impl std::fmt::Display for IntersectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooManyAlternatives => {
                write!(f, "both templates together have more than {ALTERNATIVES_MAX} alternatives")
            }
            Self::Pattern(error) => error.fmt(f),
            Self::Condition(error) => error.fmt(f),
        }
    }
}

impl Template {
    /// The template for what matches this one and `other`; `None` if that is nothing.
    ///
    /// Of two different classes of entries, one may be a base of the other, which only the entries themselves know. No
    /// pattern is taken to match both. So the result may match less, and never more.
    ///
    /// # Errors
    ///
    /// [`IntersectError`] if both are too large together.
    ///
    /// ```
    /// use tupelo_tuple::{Template, Tuple};
    ///
    /// let allowed: Template = "\"job\", \"gpu\", _".parse()?;
    /// let asked: Template = "\"job\", :str, :int".parse()?;
    /// let both = asked.intersect(&allowed).unwrap().unwrap();
    /// assert!(both.matches(&"(\"job\", \"gpu\", 7)".parse()?));
    /// assert!(!both.matches(&"(\"job\", \"cpu\", 7)".parse()?));
    /// assert_eq!("\"task\", ...".parse::<Template>()?.intersect(&allowed), Ok(None));
    /// # Ok::<(), tupelo_tuple::ParseError>(())
    /// ```
    pub fn intersect(&self, other: &Self) -> Result<Option<Self>, IntersectError> {
        let mut both: Option<Self> = None;
        let mut count = 0;
        for one in self.alternatives() {
            for other in other.alternatives() {
                let Some(alternative) = of_alternatives(one, other)? else { continue };
                count += 1;
                if count > ALTERNATIVES_MAX {
                    return Err(IntersectError::TooManyAlternatives);
                }
                let template = Self::from(alternative);
                both = Some(match both {
                    Some(first) => first.or(template),
                    None => template,
                });
            }
        }
        Ok(both)
    }
}

fn of_alternatives(
    one: &Alternative,
    other: &Alternative,
) -> Result<Option<Alternative>, IntersectError> {
    let Some((patterns, form)) = of_forms(one, other)? else { return Ok(None) };
    if patterns.iter().any(Pattern::is_impossible) {
        return Ok(None);
    }
    let condition = of_conditions(one.condition.as_ref(), other.condition.as_ref())?;
    Ok(Some(Alternative { patterns, form, condition }))
}

type Patterns = Option<(Vec<Pattern>, Form<Named>)>;

fn of_forms(one: &Alternative, other: &Alternative) -> Result<Patterns, IntersectError> {
    let (ours, theirs) = (&one.patterns, &other.patterns);
    match (&one.form, &other.form) {
        // Everything, entries too.
        (Form::Rest, _) if ours.is_empty() => Ok(Some((theirs.clone(), other.form.clone()))),
        (_, Form::Rest) if theirs.is_empty() => Ok(Some((ours.clone(), one.form.clone()))),
        (Form::Entry(our_names), Form::Entry(their_names)) => {
            of_entries((our_names, ours), (their_names, theirs))
        }
        (Form::Entry(_), _) | (_, Form::Entry(_)) => Ok(None),
        (Form::Exact, Form::Exact) if ours.len() != theirs.len() => Ok(None),
        (Form::Exact, Form::Rest) if ours.len() < theirs.len() => Ok(None),
        (Form::Rest, Form::Exact) if theirs.len() < ours.len() => Ok(None),
        (Form::Rest, Form::Rest) => Ok(Some((of_places(ours, theirs)?, Form::Rest))),
        _ => Ok(Some((of_places(ours, theirs)?, Form::Exact))),
    }
}

/// The patterns for the first fields, as many as the longer one has.
fn of_places(one: &[Pattern], other: &[Pattern]) -> Result<Vec<Pattern>, IntersectError> {
    let (shorter, longer) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let rest = longer[shorter.len()..].iter().cloned().map(Ok);
    let both = shorter.iter().zip(longer).map(|(one, other)| of_patterns(one, other));
    both.chain(rest).collect()
}

fn of_entries(
    (our_names, ours): (&Named, &[Pattern]),
    (their_names, theirs): (&Named, &[Pattern]),
) -> Result<Patterns, IntersectError> {
    if our_names.class() != their_names.class() {
        return Ok(None);
    }
    let mut fields: BTreeMap<&String, Pattern> =
        our_names.fields().iter().zip(ours.iter().cloned()).collect();
    for (name, pattern) in their_names.fields().iter().zip(theirs) {
        let both = match fields.get(name) {
            Some(ours) => of_patterns(ours, pattern)?,
            None => pattern.clone(),
        };
        fields.insert(name, both);
    }
    let fields = fields.into_iter().map(|(name, pattern)| (name.clone(), pattern));
    match Alternative::entry(our_names.class(), fields) {
        Ok(Alternative { patterns, form, .. }) => Ok(Some((patterns, form))),
        Err(ValueError::Duplicate { .. }) => unreachable!("each name is a key of a map"),
        Err(error) => unreachable!("the names were those of templates: {error}"),
    }
}

fn of_patterns(one: &Pattern, other: &Pattern) -> Result<Pattern, IntersectError> {
    match (one, other) {
        (Pattern::Kinds(one), Pattern::Kinds(other)) => Ok(Pattern::Kinds(one.and(*other))),
        (Pattern::Actual(value), pattern) | (pattern, Pattern::Actual(value)) => {
            let none = || Pattern::Kinds(crate::KindSet::EMPTY);
            Ok(if pattern.matches(value) { Pattern::Actual(value.clone()) } else { none() })
        }
        (one, other) => Pattern::all([one.clone(), other.clone()]).map_err(IntersectError::Pattern),
    }
}

fn of_conditions(
    one: Option<&Condition>,
    other: Option<&Condition>,
) -> Result<Option<Condition>, IntersectError> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => {
            one.and(other).map(Some).map_err(IntersectError::Condition)
        }
        (one, other) => Ok(one.or(other).cloned()),
    }
}

#[cfg(test)]
mod tests {
    use crate::Template;

    fn template(text: &str) -> Template {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn what_matches_both_is_said_as_shortly_as_either() {
        for (one, other, both) in [
            ("\"job\", :int", "...", "\"job\", :int"),
            ("\"job\", ...", "_, :int", "\"job\", :int"),
            ("\"job\", ...", "_, :int, ...", "\"job\", :int, ..."),
            ("\"job\", :int|:str", ":str, :str|:float", "\"job\", :str"),
            ("\"job\", :int", "\"job\", 7", "\"job\", 7"),
            ("Job{id: :int}", "Job{id: 7, name: :str}", "Job{id: 7, name: :str}"),
            ("Job{}", "...", "Job{}"),
        ] {
            for (one, other) in [(one, other), (other, one)] {
                let found = template(one).intersect(&template(other));
                assert_eq!(found, Ok(Some(template(both))), "{one} and {other}");
            }
        }
    }

    #[test]
    fn nothing_matches_both_of_templates_that_exclude_each_other() {
        for (one, other) in [
            ("\"job\", :int", "\"task\", ..."),
            ("\"job\", :int", "\"job\", :str"),
            ("\"job\"", "\"job\", _, ..."),
            ("\"job\", 7", "\"job\", 8"),
            ("\"job\", >9", "\"job\", 7"),
            ("Job{}", "Task{}"),
            ("Job{}", "\"job\""),
            ("Job{}", "_, ..."),
        ] {
            assert_eq!(template(one).intersect(&template(other)), Ok(None), "{one} and {other}");
        }
    }
}
