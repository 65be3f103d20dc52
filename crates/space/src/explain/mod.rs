//! Why nothing matches: the template beside the shapes and tuples of the space.

mod nearest;

use std::cmp::Reverse;
use std::fmt;
use std::time::{Duration, Instant};

use tupelo_engine::{HeldBy, Holding};
use tupelo_tuple::{Shape, TemplateRef};

pub use nearest::{Difference, Nearest};

use crate::connect::Space;
use crate::error::Error;

/// Longest look for a reason where a condition is asked of every tuple.
const LOOK: Duration = Duration::from_millis(100);
/// Shapes that the text lists.
const LISTED_MAX: usize = 4;

/// What stands between a template and a match.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    template: String,
    /// Matches that are in the space now.
    pub matches: u64,
    /// How many of the matches an open transaction has read: others may not take them (rule X3).
    pub read: u64,
    /// Tuples that match but for the condition (rule M9).
    pub unfulfilled: u64,
    /// Matches that are held and may be given back (rule O9).
    pub held: Vec<Holding>,
    /// Matches whose last attempt has failed (rule K5).
    pub dead: u64,
    /// If the space shows no tuple: how many are claimed, dead, held by a transaction or a call, or not visible yet, of
    /// any shape.
    pub unseen: u64,
    /// The shapes that have tuples, most first, and their counts.
    pub shapes: Vec<(Shape, u64)>,
    /// The shape that comes nearest, and its differences.
    pub nearest: Option<Nearest>,
    /// Why nothing of all this is known, if that is so: the space could not be looked at.
    pub unknown: Option<String>,
}

impl Space {
    /// Why `template` matches nothing, or how much it matches.
    ///
    /// # Errors
    ///
    /// The errors of the memory.
    pub fn explain(&self, template: &[TemplateRef<'_>]) -> Result<Explanation, Error> {
        let Some(engine) = self.local() else { return self.explain_remotely(template) };
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
        let until = Instant::now().checked_add(LOOK);
        let explain = || tupelo_engine::in_steps(until, || self.explain(template));
        tupelo_client::briefly(explain)
            .unwrap_or_else(|error| Explanation::unknown(template, &error))
    }

    /// How many tuples match the fields of the templates that have a condition.
    fn count_fitting(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        let conditional = template.iter().filter(|one| one.condition.is_some());
        let fields: Vec<_> = conditional.map(|one| one.without_condition()).collect();
        if fields.is_empty() { Ok(0) } else { self.count(&fields) }
    }
}

/// A template in the text notation.
pub(crate) fn text(template: &[TemplateRef<'_>]) -> String {
    template.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
}

/// Text of at most so many characters.
pub(crate) fn shortened(text: &str, characters_max: usize) -> String {
    if text.chars().count() <= characters_max {
        return text.into();
    }
    text.chars().take(characters_max - 1).chain(['…']).collect()
}

impl Explanation {
    /// The explanation of a template if looking at the space came to `error`.
    fn unknown(template: &[TemplateRef<'_>], error: &Error) -> Self {
        let unknown = Some(error.to_string());
        Self { unknown, ..Self::nothing(text(template)) }
    }

    /// Of a space in which there is nothing.
    pub(crate) fn nothing(template: String) -> Self {
        Self {
            template,
            matches: 0,
            read: 0,
            unfulfilled: 0,
            held: Vec::new(),
            dead: 0,
            unseen: 0,
            shapes: Vec::new(),
            nearest: None,
            unknown: None,
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
                "{count} {are} the fields, of which the condition (where) is not true, or has no answer (stat counts \
                 that: where_errors)"
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

/// How many of the matches cannot be taken now.
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
