//! Why nothing matches: the template beside the shapes and tuples that are there.

use std::fmt;

use tupelo_tuple::{Field, Kind, KindSet, PatternRef, TemplateRef};

use crate::connect::Space;
use crate::error::Error;

/// Tuples of a shape that are looked at for the nearest one.
const LOOKS_MAX: usize = 1000;
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
        shapes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let candidates =
            template.iter().flat_map(|one| shapes.iter().map(move |shape| (one, shape)));
        let nearest = candidates.min_by_key(|(one, (kinds, _))| distance(one, kinds));
        let nearest = match nearest {
            Some((one, (kinds, count))) if matches == 0 => {
                let differences = self.differences(one, kinds)?;
                Some(Nearest { kinds: kinds.clone(), count: *count, differences })
            }
            _ => None,
        };
        let template: Vec<String> = template.iter().map(ToString::to_string).collect();
        Ok(Explanation { template: template.join(" | "), matches, shapes, nearest })
    }

    /// What is different between `template` and tuples of `kinds`.
    fn differences(
        &self,
        template: &TemplateRef<'_>,
        kinds: &[Kind],
    ) -> Result<Vec<Difference>, Error> {
        let by_kind: Vec<Difference> = (template.patterns.iter().zip(kinds).enumerate())
            .filter(|(_, (pattern, kind))| !pattern.kinds().contains(**kind))
            .map(|(field, (pattern, kind))| Difference {
                field,
                found: kind.name().into(),
                wanted: pattern.to_string(),
            })
            .collect();
        if !by_kind.is_empty() || !fits_arity(template, kinds) {
            return Ok(by_kind);
        }
        // The kinds fit, so values differ: show the tuple in which the fewest do.
        let any: Vec<PatternRef<'_>> =
            kinds.iter().map(|kind| PatternRef::Kinds(KindSet::of(*kind))).collect();
        let differing =
            self.read_all::<_, Error>(&[TemplateRef::new(&any)], Some(LOOKS_MAX), |tuple| {
                let fields = template.patterns.iter().zip(tuple.fields()).enumerate();
                Ok(fields
                    .filter_map(|(field, (pattern, found))| difference(field, pattern, &found))
                    .collect::<Vec<_>>())
            })?;
        Ok(differing.into_iter().min_by_key(Vec::len).unwrap_or_default())
    }
}

fn difference(field: usize, pattern: &PatternRef<'_>, found: &Field<'_>) -> Option<Difference> {
    let differs = !pattern.matches(found);
    differs.then(|| Difference {
        field,
        found: shortened(&found.to_string()),
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
