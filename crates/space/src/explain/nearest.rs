//! The tuple that comes nearest to a template, and its differences.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt::{self, Write};

use tupelo_engine::Error as EngineError;
use tupelo_tuple::{Field, Form, Kind, KindSet, Named, PatternRef, Shape, TemplateRef, TupleView};

use crate::connect::Space;
use crate::error::Error;

/// Shapes whose tuples are looked at for the nearest one, and tuples of each: a program may time out often.
const SHAPES_MAX: usize = 8;
const LOOKS_MAX: usize = 100;
/// Bytes of tuples of one shape after which no more are looked at; larger ones are not looked at at all.
const LOOK_BYTES_MAX: usize = 1 << 20;
/// Bytes of an int above which its size is told: to find its first digit is to find all, a second's work for the longest.
const INT_BYTES_MAX: usize = 256;

/// The message about a shape of another arity.
const OTHER_ARITY: &str = "the template has another number of fields";

/// The shape that comes nearest to a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// The shape itself.
    pub shape: Shape,
    /// How many tuples it has.
    pub count: u64,
    /// The differences, one line per field.
    pub differences: Vec<Difference>,
    /// What to say if that is nothing.
    pub(crate) otherwise: Cow<'static, str>,
}

/// A field that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of the field, from 0.
    pub field: usize,
    /// Its name, if it is one of an entry.
    pub name: Option<String>,
    /// The present kind or value.
    pub found: String,
    /// The pattern of the template.
    pub wanted: String,
}

impl Space {
    /// The shape with the tuple that comes nearest, by how many fields differ. Of several the shape that differs
    /// last: the first field is a name nearly always, and a wrong name is another matter.
    pub(super) fn nearest(
        &self,
        template: &[TemplateRef<'_>],
        shapes: &[(Shape, u64)],
    ) -> Result<Option<Nearest>, Error> {
        let mut candidates: Vec<_> = template
            .iter()
            .flat_map(|one| shapes.iter().map(move |(shape, count)| (one, shape, *count)))
            .collect();
        candidates.sort_by_key(|(one, shape, _)| distance(one, shape));
        if let Some((one, shape, count)) = candidates.first()
            && patterns_for(one, shape).is_none()
        {
            let (shape, count) = ((*shape).clone(), *count);
            let differences = by_kind(one, &shape);
            let otherwise = match (one.form, shape.class) {
                (Form::Entry(_), None) => "the template is for entries",
                (_, Some(_)) => "the template is for others",
                _ => OTHER_ARITY,
            };
            let otherwise = Cow::Borrowed(otherwise);
            let nearest = Nearest { shape, count, differences, otherwise };
            return Ok(Some(self.namesake(&candidates)?.unwrap_or(nearest)));
        }
        let fitting =
            candidates.iter().filter(|(one, shape, _)| patterns_for(one, shape).is_some());
        let looked_at = fitting.take(SHAPES_MAX).map(|(one, shape, count)| {
            let compared = self.differences(one, shape)?;
            // All may have been taken since the shapes were counted.
            let is_known = compared.is_some();
            let differences = compared.unwrap_or_else(|| by_kind(one, shape));
            let otherwise =
                "too large to be compared, or changed meanwhile, or somebody stays there".into();
            let nearest =
                Nearest { shape: (*shape).clone(), count: *count, differences, otherwise };
            Ok((is_known, nearest))
        });
        let looked_at = looked_at.collect::<Result<Vec<_>, Error>>()?;
        // What could not be compared at all is nearer than nothing only.
        let nearest = looked_at.into_iter().min_by_key(|(is_known, nearest)| {
            (!is_known && nearest.differences.is_empty(), remoteness(&nearest.differences))
        });
        let nearest = nearest.map(|(_, nearest)| nearest);
        let has_name =
            |nearest: &Nearest| nearest.differences.first().is_none_or(|one| one.field > 0);
        if nearest.as_ref().is_some_and(has_name) {
            return Ok(nearest);
        }
        Ok(self.namesake(&candidates)?.or(nearest))
    }

    /// A shape of another arity that has tuples with the first field of the template. That field is nearly always a
    /// name. Then the template has a field too many or too few, and a tuple with another name is farther away.
    fn namesake(
        &self,
        candidates: &[(&TemplateRef<'_>, &Shape, u64)],
    ) -> Result<Option<Nearest>, Error> {
        let others = candidates.iter().filter(|(one, shape, _)| {
            let is_plain = shape.class.is_none() && !matches!(one.form, Form::Entry(_));
            is_plain && patterns_for(one, shape).is_none()
        });
        for (one, shape, count) in others.take(SHAPES_MAX) {
            let Some(first @ PatternRef::Actual(_)) = one.patterns.first() else { continue };
            if self.has_first(first, shape)? {
                let (shape, differences) = ((*shape).clone(), Vec::new());
                let (count, otherwise) = (*count, Cow::Borrowed(OTHER_ARITY));
                return Ok(Some(Nearest { shape, count, differences, otherwise }));
            }
        }
        Ok(None)
    }

    /// Whether one of the first tuples of `shape`, which are no entries, has such a first field.
    fn has_first(&self, first: &PatternRef<'_>, shape: &Shape) -> Result<bool, Error> {
        let any: Vec<PatternRef<'_>> =
            shape.kinds.iter().map(|kind| PatternRef::Kinds(KindSet::of(*kind))).collect();
        let of_shape = TemplateRef { patterns: &any, form: Form::Exact, condition: None };
        let mut scan =
            self.engine()?.scan(of_shape.to_template()?).for_comparison(None, LOOK_BYTES_MAX);
        let (mut is_there, mut looks, mut bytes) = (false, 0, 0);
        while !is_there && looks < LOOKS_MAX && bytes < LOOK_BYTES_MAX {
            let seen = scan.next_batch(1, |tuple| {
                bytes += tuple.image().len();
                is_there = tuple.field(0).is_some_and(|field| first.matches(&field));
                Ok::<_, EngineError>(())
            })?;
            if seen.is_empty() {
                break;
            }
            looks += 1;
        }
        Ok(is_there)
    }

    /// The differences between `template` and the nearest tuple of `shape`, which has as many fields; `None` if no
    /// tuple could be compared.
    fn differences(
        &self,
        template: &TemplateRef<'_>,
        shape: &Shape,
    ) -> Result<Option<Vec<Difference>>, Error> {
        let patterns = patterns_for(template, shape).unwrap_or_default();
        let any: Vec<PatternRef<'_>> =
            shape.kinds.iter().map(|kind| PatternRef::Kinds(KindSet::of(*kind))).collect();
        let named = shape
            .class
            .map(|class| Named::new(class.name(), class.fields().map(str::to_owned).collect()));
        let form = named.as_ref().map_or(Form::Exact, Form::Entry);
        let of_shape = TemplateRef { patterns: &any, form, condition: None }.to_template()?;
        let mut scan = self.engine()?.scan(of_shape).for_comparison(shape.class, LOOK_BYTES_MAX);
        let mut nearest: Option<Vec<Difference>> = None;
        let (mut looks, mut bytes) = (0, 0);
        // One at a time: a step copies all its tuples under the lock of the shape.
        while looks < LOOKS_MAX && bytes < LOOK_BYTES_MAX {
            let seen = scan.next_batch(1, |tuple| {
                bytes += tuple.image().len();
                let far = nearest.as_deref().map(remoteness);
                if far.is_none_or(|far| how_far(&patterns, &tuple) < far) {
                    nearest = Some(compared(&patterns, &tuple, shape));
                }
                Ok::<_, EngineError>(())
            })?;
            if seen.is_empty() {
                break;
            }
            looks += 1;
        }
        Ok(nearest)
    }
}

/// The fields in which a tuple is no match, and their numbers.
fn differing<'p, 't>(
    patterns: &'p [PatternRef<'p>],
    tuple: &'t TupleView<'t>,
) -> impl Iterator<Item = (usize, &'p PatternRef<'p>, Field<'t>)> {
    let fields = patterns.iter().zip(tuple.fields()).enumerate();
    let differing = fields.filter(|(_, (pattern, found))| !pattern.matches(found));
    differing.map(|(field, (pattern, found))| (field, pattern, found))
}

/// As [`remoteness`], of a tuple of which no text is made.
fn how_far(patterns: &[PatternRef<'_>], tuple: &TupleView<'_>) -> (usize, Reverse<usize>) {
    let first = differing(patterns, tuple).next().map_or(0, |(field, ..)| field);
    (differing(patterns, tuple).count(), Reverse(first))
}

/// The differences of a tuple of `shape`.
fn compared(patterns: &[PatternRef<'_>], tuple: &TupleView<'_>, shape: &Shape) -> Vec<Difference> {
    let differences = differing(patterns, tuple);
    differences
        .map(|(field, pattern, found)| difference(field, name_of(shape, field), pattern, &found))
        .collect()
}

/// The patterns of `template` for the fields of `shape`. `None` if the template is not for tuples of that arity, or for
/// entries of that class with those names.
fn patterns_for<'t>(template: &TemplateRef<'t>, shape: &Shape) -> Option<Vec<PatternRef<'t>>> {
    match shape.class {
        Some(class) => template.resolved(class),
        None => template.accepts_arity(shape.kinds.len()).then(|| template.patterns.to_vec()),
    }
}

fn name_of(shape: &Shape, field: usize) -> Option<String> {
    shape.class?.fields().nth(field).map(str::to_owned)
}

/// How far a tuple is from a template, by its differences.
fn remoteness(differences: &[Difference]) -> (usize, Reverse<usize>) {
    (differences.len(), Reverse(differences.first().map_or(0, |first| first.field)))
}

/// The fields that cannot fit, whatever their values are, and the missing fields. None, if the one is of entries and
/// the
/// other is not: to which field belongs what?
fn by_kind(template: &TemplateRef<'_>, shape: &Shape) -> Vec<Difference> {
    if matches!(template.form, Form::Entry(_)) != shape.class.is_some() {
        return Vec::new();
    }
    if let (Form::Entry(named), Some(class)) = (template.form, shape.class) {
        let fields = named.fields().iter().zip(template.patterns).enumerate();
        let differences = fields.filter_map(|(field, (name, pattern))| {
            let kind = class.index_of(name).map(|index| shape.kinds[index]);
            let fits = kind.is_some_and(|kind| pattern.kinds().contains(kind));
            (!fits).then(|| Difference {
                field,
                name: Some(name.clone()),
                found: kind.map_or("not", Kind::name).into(),
                wanted: shown(pattern),
            })
        });
        return differences.collect();
    }
    let fields = template.patterns.iter().zip(&shape.kinds).enumerate();
    fields
        .filter(|(_, (pattern, kind))| !pattern.kinds().contains(**kind))
        .map(|(field, (pattern, kind))| Difference {
            field,
            name: None,
            found: kind.name().into(),
            wanted: shown(pattern),
        })
        .collect()
}

/// The present kind instead of another, or the present value instead of another of that kind.
fn difference(
    field: usize,
    name: Option<String>,
    pattern: &PatternRef<'_>,
    found: &Field<'_>,
) -> Difference {
    let found = match found {
        _ if !pattern.kinds().contains(found.kind()) => found.kind().name().into(),
        Field::Encoded(int) if int.kind == Kind::Int && int.len() > INT_BYTES_MAX => {
            format!("an int of {} bytes", int.len())
        }
        _ => shown(found),
    };
    Difference { field, name, found, wanted: shown(pattern) }
}

/// Characters of a field in an explanation.
const FIELD_CHARACTERS_MAX: usize = 60;

/// The displayed text, cut to the number of characters of a field in an explanation. More characters are not kept: a
/// field may have millions.
fn shown(one: &dyn fmt::Display) -> String {
    let mut begin = Begin { text: String::new(), left: FIELD_CHARACTERS_MAX };
    // It is an error that there is more.
    let _ = write!(begin, "{one}");
    begin.text
}

/// The begin of a text, and how many characters may follow.
struct Begin {
    text: String,
    left: usize,
}

impl Write for Begin {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        for character in more.chars() {
            if self.left == 0 {
                self.text.pop();
                self.text.push('…');
                return Err(fmt::Error);
            }
            self.text.push(character);
            self.left -= 1;
        }
        Ok(())
    }
}

/// How far tuples of `shape` are from `template`. First whether one is of entries and the other is not, or of another
/// class. Then the difference in length, or the number of missing names. Then the fields that cannot fit.
fn distance(template: &TemplateRef<'_>, shape: &Shape) -> (u8, usize, usize) {
    let unfit = |patterns: &[PatternRef<'_>]| {
        let fields = patterns.iter().zip(&shape.kinds);
        fields.filter(|(pattern, kind)| !pattern.kinds().contains(**kind)).count()
    };
    match (template.form, shape.class) {
        (Form::Entry(named), Some(class)) => {
            let absent = named.fields().iter().filter(|name| class.index_of(name).is_none());
            let other = u8::from(!class.is(named.class()));
            let resolved = template.resolved(class);
            (other, absent.count(), resolved.map_or(usize::MAX, |patterns| unfit(&patterns)))
        }
        (Form::Entry(_), None) | (_, Some(_)) => (2, 0, 0),
        (form, None) => {
            let (patterns, fields) = (template.patterns.len(), shape.kinds.len());
            let fits = patterns == fields || (form == Form::Rest && patterns < fields);
            (0, if fits { 0 } else { patterns.abs_diff(fields) }, unfit(template.patterns))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::{FIELD_CHARACTERS_MAX, shown};

    /// As long as anybody wants more of it.
    struct Endless;

    impl fmt::Display for Endless {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            loop {
                f.write_str("no end")?;
            }
        }
    }

    #[test]
    fn of_a_field_no_more_is_made_than_is_shown() {
        let text = shown(&Endless);
        assert_eq!(text.chars().count(), FIELD_CHARACTERS_MAX);
        assert!(text.starts_with("no end") && text.ends_with('…'), "{text}");
        let whole = "x".repeat(FIELD_CHARACTERS_MAX);
        assert_eq!(shown(&whole), whole);
    }
}
