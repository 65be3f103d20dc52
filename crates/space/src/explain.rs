//! Why nothing matches: the template beside the shapes and tuples that are there.

use std::cmp::Reverse;
use std::fmt;

use tupelo_tuple::{Field, Kind, KindSet, PatternRef, TemplateRef};

use crate::connect::Space;
use crate::error::Error;

/// Shapes whose tuples are looked at for the nearest one, and tuples of each: a program may time out often.
const SHAPES_MAX: usize = 8;
const LOOKS_MAX: usize = 100;
/// Shapes that the text lists.
const LISTED_MAX: usize = 4;

/// What stands between a template and a match.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    template: String,
    /// Matches that are there now.
    pub matches: u64,
    /// The shapes that have tuples, most first: their kinds and counts.
    pub shapes: Vec<(Vec<Kind>, u64)>,
    /// The shape that comes nearest, and what is different there.
    pub nearest: Option<Nearest>,
}

/// The shape that comes nearest to a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// Its kinds.
    pub kinds: Vec<Kind>,
    /// How many tuples it has.
    pub count: u64,
    /// What is different, one line per field.
    pub differences: Vec<Difference>,
}

/// A field that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of the field, from 0.
    pub field: usize,
    /// What is there: a kind, or a value.
    pub found: String,
    /// What the template asks for.
    pub wanted: String,
}

impl Space {
    /// Why `template` matches nothing, or how much it matches.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn explain(&self, template: &[TemplateRef<'_>]) -> Result<Explanation, Error> {
        let engine = self.engine()?;
        let matches = engine.count(template)?;
        let mut shapes = engine.shapes_present()?;
        shapes.sort_by_key(|(_, count)| Reverse(*count));
        let nearest = if matches == 0 { self.nearest(template, &shapes)? } else { None };
        let template: Vec<String> = template.iter().map(ToString::to_string).collect();
        Ok(Explanation { template: template.join(" | "), matches, shapes, nearest })
    }

    /// The shape with the tuple that comes nearest, by how many fields differ. Of several the one that differs
    /// last: the first field is a name nearly always, and a wrong name is another matter.
    fn nearest(
        &self,
        template: &[TemplateRef<'_>],
        shapes: &[(Vec<Kind>, u64)],
    ) -> Result<Option<Nearest>, Error> {
        let mut candidates: Vec<_> = template
            .iter()
            .flat_map(|one| shapes.iter().map(move |(kinds, count)| (one, kinds, *count)))
            .collect();
        candidates.sort_by_key(|(one, kinds, _)| distance(one, kinds));
        if let Some((one, kinds, count)) = candidates.first()
            && !fits_arity(one, kinds)
        {
            let differences = by_kind(one, kinds);
            return Ok(Some(Nearest { kinds: (*kinds).clone(), count: *count, differences }));
        }
        let fitting = candidates.iter().filter(|(one, kinds, _)| fits_arity(one, kinds));
        let looked_at = fitting.take(SHAPES_MAX).map(|(one, kinds, count)| {
            let differences = self.differences(one, kinds)?;
            Ok(Nearest { kinds: (*kinds).clone(), count: *count, differences })
        });
        let looked_at = looked_at.collect::<Result<Vec<_>, Error>>()?;
        Ok(looked_at.into_iter().min_by_key(|nearest| remoteness(&nearest.differences)))
    }

    /// What is different between `template` and the nearest tuple of `kinds`, which have as many fields.
    fn differences(
        &self,
        template: &TemplateRef<'_>,
        kinds: &[Kind],
    ) -> Result<Vec<Difference>, Error> {
        let any: Vec<PatternRef<'_>> =
            kinds.iter().map(|kind| PatternRef::Kinds(KindSet::of(*kind))).collect();
        let differing =
            self.read_all::<_, Error>(&[TemplateRef::new(&any)], Some(LOOKS_MAX), |tuple| {
                let fields = template.patterns.iter().zip(tuple.fields()).enumerate();
                Ok(fields
                    .filter_map(|(field, (pattern, found))| difference(field, pattern, &found))
                    .collect::<Vec<_>>())
            })?;
        let nearest = differing.into_iter().min_by_key(|differences| remoteness(differences));
        // All may have been taken since the shapes were counted.
        Ok(nearest.unwrap_or_else(|| by_kind(template, kinds)))
    }
}

/// How far a tuple is from a template, by what is different.
fn remoteness(differences: &[Difference]) -> (usize, Reverse<usize>) {
    (differences.len(), Reverse(differences.first().map_or(0, |first| first.field)))
}

/// The fields that can not fit, whatever their values are.
fn by_kind(template: &TemplateRef<'_>, kinds: &[Kind]) -> Vec<Difference> {
    let fields = template.patterns.iter().zip(kinds).enumerate();
    fields
        .filter(|(_, (pattern, kind))| !pattern.kinds().contains(**kind))
        .map(|(field, (pattern, kind))| Difference {
            field,
            found: kind.name().into(),
            wanted: pattern.to_string(),
        })
        .collect()
}

/// The kind that is there instead of another, or the value instead of another of that kind.
fn difference(field: usize, pattern: &PatternRef<'_>, found: &Field<'_>) -> Option<Difference> {
    let fits = pattern.kinds().contains(found.kind());
    (!pattern.matches(found)).then(|| Difference {
        field,
        found: if fits { shortened(&found.to_string()) } else { found.kind().name().into() },
        wanted: pattern.to_string(),
    })
}

/// Text of at most 60 characters.
fn shortened(text: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    if text.chars().count() <= CHARACTERS_MAX {
        return text.into();
    }
    text.chars().take(CHARACTERS_MAX - 1).chain(['…']).collect()
}

/// How far tuples of `kinds` are from `template`: the difference in length first, then the fields that
/// can not fit.
fn distance(template: &TemplateRef<'_>, kinds: &[Kind]) -> (usize, usize) {
    let length =
        if fits_arity(template, kinds) { 0 } else { template.patterns.len().abs_diff(kinds.len()) };
    let fields = template.patterns.iter().zip(kinds);
    (length, fields.filter(|(pattern, kind)| !pattern.kinds().contains(**kind)).count())
}

fn fits_arity(template: &TemplateRef<'_>, kinds: &[Kind]) -> bool {
    template.accepts_arity(kinds.len())
}

/// A shape as people read it: `(str, int)`.
fn shape_text(kinds: &[Kind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    format!("({})", names.join(", "))
}

impl Explanation {
    /// The template, in the text notation.
    pub fn template(&self) -> &str {
        &self.template
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.matches > 0 {
            return write!(f, "{} tuples match {} now", self.matches, self.template);
        }
        let Some(nearest) = &self.nearest else { return f.write_str("the space is empty") };
        let tuples = if nearest.count == 1 { "is 1 tuple" } else { "are tuples" };
        write!(f, "nearest: there {tuples} {}", shape_text(&nearest.kinds))?;
        if nearest.count > 1 {
            write!(f, ", {} of them", nearest.count)?;
        }
        for difference in &nearest.differences {
            let Difference { field, found, wanted } = difference;
            write!(f, "; field {field} is {found} there, {wanted} in the template")?;
        }
        if nearest.differences.is_empty() {
            write!(f, "; the template has another number of fields")?;
        }
        if self.shapes.len() > 1 {
            let listed = self.shapes.iter().take(LISTED_MAX);
            let listed: Vec<String> =
                listed.map(|(kinds, count)| format!("{} {count}", shape_text(kinds))).collect();
            write!(f, "\n{} shapes are there: {}", self.shapes.len(), listed.join(", "))?;
        }
        Ok(())
    }
}
