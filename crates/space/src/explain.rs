//! Why nothing matches: the template beside the shapes and tuples that are there.

use std::cmp::Reverse;
use std::fmt::{self, Write};

use tupelo_engine::{HeldBy, Holding};
use tupelo_tuple::{Field, Form, Kind, KindSet, Named, PatternRef, Shape, TemplateRef, TupleView};

use crate::connect::Space;
use crate::error::Error;

/// Shapes whose tuples are looked at for the nearest one, and tuples of each: a program may time out often.
const SHAPES_MAX: usize = 8;
const LOOKS_MAX: usize = 100;
/// Bytes of tuples of one shape after which no more are looked at; larger ones are not looked at at all.
const LOOK_BYTES_MAX: usize = 1 << 20;
/// Shapes that the text lists.
const LISTED_MAX: usize = 4;

/// What stands between a template and a match.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    template: String,
    /// Matches that are there now.
    pub matches: u64,
    /// Those of them that an open transaction has read: nobody else may take them (rule X3).
    pub read: u64,
    /// Tuples that match but for the condition (rule M9).
    pub unfulfilled: u64,
    /// Matches that are not there, since somebody holds them and may give them back (rule O9).
    pub held: Vec<Holding>,
    /// Matches whose last attempt has failed (rule K5).
    pub dead: u64,
    /// If no tuple is there: how many are claimed, dead, in the hands of a transaction or a call, or not visible yet, whatever
    /// they are.
    pub unseen: u64,
    /// The shapes that have tuples, most first, and their counts.
    pub shapes: Vec<(Shape, u64)>,
    /// The shape that comes nearest, and what is different there.
    pub nearest: Option<Nearest>,
    /// Why nothing of all this is known, if that is so: the space could not be looked at.
    pub unknown: Option<String>,
}

/// The shape that comes nearest to a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// The shape itself.
    pub shape: Shape,
    /// How many tuples it has.
    pub count: u64,
    /// What is different, one line per field.
    pub differences: Vec<Difference>,
    /// What to say if that is nothing.
    otherwise: &'static str,
}

/// A field that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of the field, from 0.
    pub field: usize,
    /// Its name, if it is one of an entry.
    pub name: Option<String>,
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
        let (matches, read) = engine.count_with_read(template)?;
        let mut shapes = engine.shapes_present()?;
        shapes.sort_by_key(|(_, count)| Reverse(*count));
        let fitting = if matches == 0 { self.count_fitting(template)? } else { 0 };
        let held = if matches == 0 { engine.holdings(template)? } else { Vec::new() };
        let dead = if matches == 0 { engine.count_dead(template)? } else { 0 };
        let is_there = matches > 0 || fitting > 0 || dead > 0 || !held.is_empty();
        let unseen = if shapes.is_empty() { engine.count_unseen()? } else { 0 };
        let nearest = if is_there { None } else { self.nearest(template, &shapes)? };
        Ok(Explanation {
            template: text(template),
            matches,
            read,
            unfulfilled: fitting,
            held,
            dead,
            unseen,
            shapes,
            nearest,
            unknown: None,
        })
    }

    /// As [`Space::explain`], for an error that is about something else: where looking fails, it says so.
    #[cold]
    pub fn explain_if_possible(&self, template: &[TemplateRef<'_>]) -> Explanation {
        self.explain(template).unwrap_or_else(|error| Explanation::unknown(template, &error))
    }

    /// How many tuples match the fields of the templates that have a condition.
    fn count_fitting(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        let conditional = template.iter().filter(|one| one.condition.is_some());
        let fields: Vec<_> = conditional.map(|one| one.without_condition()).collect();
        if fields.is_empty() { Ok(0) } else { self.count(&fields) }
    }

    /// The shape with the tuple that comes nearest, by how many fields differ. Of several the one that differs
    /// last: the first field is a name nearly always, and a wrong name is another matter.
    fn nearest(
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
                _ => "the template has another number of fields",
            };
            return Ok(Some(Nearest { shape, count, differences, otherwise }));
        }
        let fitting =
            candidates.iter().filter(|(one, shape, _)| patterns_for(one, shape).is_some());
        let looked_at = fitting.take(SHAPES_MAX).map(|(one, shape, count)| {
            let differences = self.differences(one, shape)?;
            let otherwise =
                "too large to be compared, or changed meanwhile, or somebody stays there";
            Ok(Nearest { shape: (*shape).clone(), count: *count, differences, otherwise })
        });
        let looked_at = looked_at.collect::<Result<Vec<_>, Error>>()?;
        Ok(looked_at.into_iter().min_by_key(|nearest| remoteness(&nearest.differences)))
    }

    /// What is different between `template` and the nearest tuple of `shape`, which has as many fields.
    fn differences(
        &self,
        template: &TemplateRef<'_>,
        shape: &Shape,
    ) -> Result<Vec<Difference>, Error> {
        let any: Vec<PatternRef<'_>> =
            shape.kinds.iter().map(|kind| PatternRef::Kinds(KindSet::of(*kind))).collect();
        let named = shape
            .class
            .map(|class| Named::new(class.name(), class.fields().map(str::to_owned).collect()));
        let form = named.as_ref().map_or(Form::Exact, Form::Entry);
        let of_shape = TemplateRef { patterns: &any, form, condition: None };
        let patterns = patterns_for(template, shape).unwrap_or_default();
        let compared = |tuple: &TupleView<'_>| {
            let fields = patterns.iter().zip(tuple.fields()).enumerate();
            let different = fields.filter_map(|(field, (pattern, found))| {
                difference(field, name_of(shape, field), pattern, &found)
            });
            (tuple.class() == shape.class).then(|| different.collect::<Vec<_>>())
        };
        let mut scan = self.engine()?.scan(of_shape.to_template()?).for_comparison(LOOK_BYTES_MAX);
        let (mut looked_at, mut bytes) = (Vec::new(), 0);
        // One at a time: all that a step copies, it copies under the lock of the shape.
        while looked_at.len() < LOOKS_MAX && bytes < LOOK_BYTES_MAX {
            let one = scan.next_batch(1, |tuple| {
                bytes += tuple.image().len();
                Ok::<_, tupelo_engine::Error>(compared(&tuple))
            })?;
            if one.is_empty() {
                break;
            }
            looked_at.extend(one);
        }
        let nearest = looked_at.into_iter().flatten().min_by_key(|one| remoteness(one));
        // All may have been taken since the shapes were counted, or are too large.
        Ok(nearest.unwrap_or_else(|| by_kind(template, shape)))
    }
}

/// The patterns of `template` for the fields of `shape`; `None` if it is not for tuples of that arity, or for
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

/// How far a tuple is from a template, by what is different.
fn remoteness(differences: &[Difference]) -> (usize, Reverse<usize>) {
    (differences.len(), Reverse(differences.first().map_or(0, |first| first.field)))
}

/// The fields that can not fit, whatever their values are, and those that are not there. None, if the one is of entries and the
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

/// The kind that is there instead of another, or the value instead of another of that kind.
fn difference(
    field: usize,
    name: Option<String>,
    pattern: &PatternRef<'_>,
    found: &Field<'_>,
) -> Option<Difference> {
    let fits = pattern.kinds().contains(found.kind());
    (!pattern.matches(found)).then(|| Difference {
        field,
        name,
        found: if fits { shown(found) } else { found.kind().name().into() },
        wanted: shown(pattern),
    })
}

/// A template in the text notation.
fn text(template: &[TemplateRef<'_>]) -> String {
    template.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
}

/// Characters of a field in an explanation.
const FIELD_CHARACTERS_MAX: usize = 60;

/// Text of at most so many characters.
pub(crate) fn shortened(text: &str, characters_max: usize) -> String {
    if text.chars().count() <= characters_max {
        return text.into();
    }
    text.chars().take(characters_max - 1).chain(['…']).collect()
}

/// What is displayed, of at most so many characters as a field in an explanation has. No more than those is made: a field
/// may have millions.
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

/// How far tuples of `shape` are from `template`: whether one is of entries and the other is not, or of another
/// class; the difference in length, or how many names are not there; then the fields that can not fit.
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

impl Explanation {
    /// What is said of a template where looking at the space came to `error`.
    fn unknown(template: &[TemplateRef<'_>], error: &Error) -> Self {
        Self {
            template: text(template),
            matches: 0,
            read: 0,
            unfulfilled: 0,
            held: Vec::new(),
            dead: 0,
            unseen: 0,
            shapes: Vec::new(),
            nearest: None,
            unknown: Some(error.to_string()),
        }
    }

    /// The template, in the text notation.
    pub fn template(&self) -> &str {
        &self.template
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.unknown {
            return write!(f, "what is there instead could not be found out: {why}");
        }
        if self.matches > 0 {
            let tuples_match = if self.matches == 1 { "tuple matches" } else { "tuples match" };
            write!(f, "{} {tuples_match} {} now", self.matches, self.template)?;
            return if self.read > 0 { f.write_str(&read_by_others(self)) } else { Ok(()) };
        }
        if let [first, others @ ..] = &self.held[..] {
            let held =
                if others.is_empty() { "tuple matches, and is" } else { "tuples match, and are" };
            return write!(f, "{} {held} {}", self.held.len(), hands(first, others));
        }
        if self.unfulfilled > 0 {
            let (count, are) =
                (self.unfulfilled, if self.unfulfilled == 1 { "tuple fits" } else { "tuples fit" });
            return write!(
                f,
                "{count} {are} the fields, of which the condition (where) is not true"
            );
        }
        if self.dead > 0 {
            let are =
                if self.dead == 1 { "tuple matches, and is" } else { "tuples match, and are" };
            return write!(f, "{} {are} dead, since the last attempt has failed", self.dead);
        }
        let Some(nearest) = &self.nearest else {
            return match self.unseen {
                0 => f.write_str("the space is empty"),
                unseen => write!(
                    f,
                    "what the space has ({unseen}) is claimed, dead, in the hands of a transaction or a call, or there later"
                ),
            };
        };
        let tuples = if nearest.count == 1 { "is 1 tuple" } else { "are tuples" };
        write!(f, "nearest: there {tuples} {}", nearest.shape)?;
        if nearest.count > 1 {
            write!(f, ", {} of them", nearest.count)?;
        }
        for difference in &nearest.differences {
            let Difference { field, name, found, wanted } = difference;
            let field = name.clone().unwrap_or_else(|| field.to_string());
            write!(f, "; field {field} is {found} there, {wanted} in the template")?;
        }
        if nearest.differences.is_empty() {
            write!(f, "; {}", nearest.otherwise)?;
        }
        if self.shapes.len() > 1 {
            let listed = self.shapes.iter().take(LISTED_MAX);
            let listed: Vec<String> =
                listed.map(|(shape, count)| format!("{shape} {count}")).collect();
            write!(f, "\n{} shapes are there: {}", self.shapes.len(), listed.join(", "))?;
        }
        Ok(())
    }
}

/// How many of the matches nobody may take now.
fn read_by_others(of: &Explanation) -> String {
    let were = match (of.read, of.matches) {
        (1, 1) => "which was".to_owned(),
        (1, _) => "1 of which was".to_owned(),
        (read, matches) if read == matches => "which were".to_owned(),
        (read, _) => format!("{read} of which were"),
    };
    format!(
        ", {were} read by an open transaction: until it ends nobody else may take what it has read"
    )
}

/// In whose hands tuples are.
fn hands(first: &Holding, others: &[Holding]) -> String {
    let by = match first.by {
        HeldBy::Claim => "claimed by",
        HeldBy::Transaction => "taken by a transaction of",
        HeldBy::Call => return "in the hands of a call just now".into(),
    };
    let process = match first.pid {
        0 => "a process that is not known any more".into(),
        pid => format!("process {pid}"),
    };
    let until = first.expires_in.map_or(String::new(), |left| {
        format!(", for {:.3} s more unless that is extended", left.as_secs_f64())
    });
    let among = if others.is_empty() { "" } else { "in somebody's hands: one is " };
    format!("{among}{by} {process}{until}")
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
