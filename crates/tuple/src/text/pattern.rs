//! Parsing patterns and templates.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use super::scan::{Scanner, is_word};
use super::value::{Literal, literal, name, value};
use super::{Mistake, quote, whole};
use crate::template::{ALTERNATIVES_MAX, Alternative};
use crate::{Condition, Form, Kind, KindSet, Pattern, PatternError, Template, Value};

/// Parses a template. A text that begins with `(` is read as templates in parentheses if it can be; if
/// not, the parenthesis belongs to the first pattern. Both readings are tried once, at the top only.
pub(super) fn template(text: &str) -> Result<Template, Mistake> {
    let in_parentheses = match whole(text, alternatives) {
        Ok(alternatives) => {
            let template = Template::from_alternatives(alternatives);
            return template.ok_or_else(|| Mistake::new(0, "a pattern"));
        }
        Err(error) => error,
    };
    match whole(text, |scanner| list(scanner, None).and_then(|list| condition(scanner, list))) {
        Ok(alternative) if is_whole_entry(&alternative) => Err(Mistake::new(
            0,
            "an entry without bases, as in Job{id: 7}; or in parentheses, (Job(Base){id: 7}), as a field",
        )),
        Ok(alternative) => Ok(alternative.into()),
        // The reading that got further is the meant one.
        Err(error) if error.at > in_parentheses.at => Err(error),
        Err(error) if !text.trim_start().starts_with('(') => Err(error),
        Err(_) => Err(in_parentheses),
    }
}

/// Whether a sole pattern is an entry with its bases. As a template on its own it would be read as a tuple with an
/// entry in it, which is never meant.
fn is_whole_entry(alternative: &Alternative) -> bool {
    alternative.form == Form::Exact
        && matches!(alternative.patterns[..], [Pattern::Actual(Value::Entry(_))])
}

fn alternatives(scanner: &mut Scanner<'_>) -> Result<Vec<Alternative>, Mistake> {
    let mut alternatives = Vec::new();
    loop {
        scanner.skip_blanks();
        let alternative = if scanner.peek() != Some('(') && !alternatives_end_here(scanner) {
            entries(scanner)?
        } else {
            scanner.expect("(")?;
            list(scanner, Some(")"))?
        };
        alternatives.push(condition(scanner, alternative)?);
        if !scanner.eat("|") {
            return Ok(alternatives);
        }
        if alternatives.len() == ALTERNATIVES_MAX {
            return Err(scanner.mistake(format!("at most {ALTERNATIVES_MAX} alternatives")));
        }
    }
}

/// Whether a condition comes next: without text in quotes behind it, `where` is a word.
fn opens_condition(scanner: &Scanner<'_>) -> bool {
    let mut ahead = *scanner;
    ahead.skip_blanks();
    let is_where = ahead.take_while(is_word) == "where";
    ahead.skip_blanks();
    is_where && quote::is_quote(&ahead)
}

/// Parses the condition of an alternative, if it has one.
fn condition(scanner: &mut Scanner<'_>, alternative: Alternative) -> Result<Alternative, Mistake> {
    if !opens_condition(scanner) {
        return Ok(alternative);
    }
    scanner.expect("where")?;
    scanner.skip_blanks();
    let start = scanner.at();
    let text = quote::text(scanner)?;
    let made = Condition::new(&text).and_then(|condition| alternative.with_condition(&condition));
    made.map_err(|error| Mistake::new(start, format!("another condition ({error})")))
}

/// Whether there is no name of a class here.
fn alternatives_end_here(scanner: &Scanner<'_>) -> bool {
    let mut ahead = *scanner;
    name(&mut ahead).is_err() || ahead.peek() != Some('{') || opens_set(scanner)
}

/// Parses a template of entries: the class, and patterns by the names of their fields.
fn entries(scanner: &mut Scanner<'_>) -> Result<Alternative, Mistake> {
    let start = scanner.at();
    let class = name(scanner)?;
    scanner.expect("{")?;
    let fields = scanner.separated("}", |scanner| {
        let name = name(scanner)?;
        scanner.skip_blanks();
        // A comparison needs no colon: `priority >= 3`.
        if !scanner.rest().starts_with(['<', '>', '=', '!']) {
            scanner.expect(":")?;
        }
        Ok((name, pattern(scanner)?))
    })?;
    Alternative::entry(class, fields)
        .map_err(|error| Mistake::new(start, format!("other fields ({error})")))
}

/// Parses patterns joined by commas, up to `close` or to the end of the text.
fn list(scanner: &mut Scanner<'_>, close: Option<&str>) -> Result<Alternative, Mistake> {
    let ends = |scanner: &mut Scanner<'_>| match close {
        Some(close) => scanner.eat(close),
        None => scanner.finish().is_ok() || opens_condition(scanner),
    };
    let mut alternative = Alternative::default();
    loop {
        // Only in parentheses can there be nothing, or nothing after a comma.
        if close.is_some() && ends(scanner) {
            return Ok(alternative);
        }
        if scanner.eat("...") {
            alternative.form = Form::Rest;
        } else {
            alternative.patterns.push(pattern(scanner)?);
        }
        if ends(scanner) {
            return Ok(alternative);
        }
        let end = close.map_or_else(|| "the end".to_owned(), |close| format!("`{close}`"));
        if alternative.form == Form::Rest {
            return Err(scanner.mistake(format!(
                "{end} after `...`, which stands for any further fields (`_` is one field)"
            )));
        }
        if !scanner.eat(",") {
            scanner.skip_blanks();
            return Err(scanner.mistake(format!("`,` or {end}")));
        }
    }
}

/// Parses one pattern: alternatives of combinations.
pub(super) fn pattern(scanner: &mut Scanner<'_>) -> Result<Pattern, Mistake> {
    joined(scanner, "|", both, Pattern::any_of)
}

fn both(scanner: &mut Scanner<'_>) -> Result<Pattern, Mistake> {
    joined(scanner, "&", unary, Pattern::all)
}

/// Parses one or more of `part` with `operator` between them, and combines them.
fn joined(
    scanner: &mut Scanner<'_>,
    operator: &str,
    part: fn(&mut Scanner<'_>) -> Result<Pattern, Mistake>,
    combine: fn(Vec<Pattern>) -> Result<Pattern, PatternError>,
) -> Result<Pattern, Mistake> {
    scanner.skip_blanks();
    let start = scanner.at();
    let mut parts = vec![part(scanner)?];
    while scanner.eat(operator) {
        parts.push(part(scanner)?);
    }
    match parts.pop() {
        Some(only) if parts.is_empty() => Ok(only),
        last => {
            parts.extend(last);
            made(start, combine(parts))
        }
    }
}

/// A pattern that was made, or a mistake where it began.
fn made(start: usize, pattern: Result<Pattern, PatternError>) -> Result<Pattern, Mistake> {
    pattern.map_err(|error| Mistake::new(start, format!("another pattern ({error})")))
}

fn unary(scanner: &mut Scanner<'_>) -> Result<Pattern, Mistake> {
    scanner.skip_blanks();
    let start = scanner.at();
    if scanner.eat("(") {
        return scanner.nested(|scanner| {
            let inner = pattern(scanner)?;
            scanner.expect(")")?;
            Ok(inner)
        });
    }
    if scanner.eat("!=") {
        let actual = Pattern::Actual(value(scanner)?);
        return made(start, Pattern::not(actual));
    }
    if scanner.eat("!") {
        let inner = scanner.nested(unary)?;
        return made(start, Pattern::not(inner));
    }
    if scanner.eat("==") {
        return Ok(Pattern::Actual(value(scanner)?));
    }
    if scanner.eat(":") {
        return formal(scanner);
    }
    for (operator, range) in COMPARISONS {
        if scanner.eat(operator) {
            let (low, high) = range(value(scanner)?);
            return made(start, Pattern::range(low, high));
        }
    }
    if scanner.eat("glob:") {
        let glob = text_or_run(scanner)?;
        return made(start, Pattern::glob(&glob));
    }
    if scanner.eat("prefix:") {
        let prefix = if quote::is_bytes(scanner) {
            Value::Bytes(quote::bytes(scanner)?)
        } else {
            Value::Str(text_or_run(scanner)?)
        };
        return made(start, Pattern::prefix(prefix));
    }
    if opens_set(scanner) {
        scanner.expect("in")?;
        scanner.expect("{")?;
        let members = scanner.separated("}", value)?;
        return made(start, Pattern::is_in(members));
    }
    value_or_range(scanner, start)
}

type Comparison = fn(Value) -> (Bound<Value>, Bound<Value>);

/// The comparisons; a longer one comes before its beginning.
const COMPARISONS: [(&str, Comparison); 4] = [
    ("<=", |value| (Unbounded, Included(value))),
    ("<", |value| (Unbounded, Excluded(value))),
    (">=", |value| (Included(value), Unbounded)),
    (">", |value| (Excluded(value), Unbounded)),
];

/// The ends of a range, between its bounds: whether the lower, and whether the upper is included. A longer one comes
/// before its beginning.
const RANGES: [(&str, bool, bool); 4] =
    [("<..<", false, false), ("<..", false, true), ("..<", true, false), ("..", true, true)];

/// Parses an actual, `any`, or a range between two values.
fn value_or_range(scanner: &mut Scanner<'_>, start: usize) -> Result<Pattern, Mistake> {
    let low = match literal(scanner) {
        Ok(Literal { value: Value::Str(word), bare: true }) if word == "_" => {
            return Ok(Pattern::ANY);
        }
        Ok(Literal { value, bare: true }) => return Ok(Pattern::Actual(value)),
        Ok(Literal { value, bare: false }) => value,
        Err(error) if error == scanner.mistake("a value") => {
            return Err(scanner.mistake("a pattern"));
        }
        Err(error) => return Err(error),
    };
    for (operator, low_included, high_included) in RANGES {
        if scanner.eat(operator) {
            scanner.skip_blanks();
            let high_start = scanner.at();
            let Literal { value: high, bare: false } = literal(scanner)? else {
                return Err(Mistake::new(high_start, "a number, or text in quotes"));
            };
            let low = if low_included { Included(low) } else { Excluded(low) };
            let high = if high_included { Included(high) } else { Excluded(high) };
            return made(start, Pattern::range(low, high));
        }
    }
    Ok(Pattern::Actual(low))
}

/// Parses what follows the colon of a formal: a kind, or `entry` with the name of a class.
fn formal(scanner: &mut Scanner<'_>) -> Result<Pattern, Mistake> {
    let kinds = kind(scanner)?;
    if kinds != KindSet::of(Kind::Entry) || !scanner.eat("(") {
        return Ok(Pattern::Kinds(kinds));
    }
    scanner.skip_blanks();
    let class = name(scanner)?;
    scanner.expect(")")?;
    Ok(Pattern::class(class))
}

/// Parses the name of a kind.
fn kind(scanner: &mut Scanner<'_>) -> Result<KindSet, Mistake> {
    let start = scanner.at();
    let name = scanner.take_while(|character| character.is_ascii_alphanumeric());
    match name {
        "any" => return Ok(KindSet::ALL),
        "none" => return Ok(KindSet::EMPTY),
        "number" => return Ok(KindSet::of(Kind::Int).or(KindSet::of(Kind::Float))),
        _ => {}
    }
    Kind::ALL.into_iter().find(|kind| kind.name() == name).map(KindSet::of).ok_or_else(|| {
        let names = Kind::ALL.map(Kind::name).join(", ");
        Mistake::new(start, format!("one of {names}, number, any"))
    })
}

/// Whether `in {` comes next: without the brace it is a word.
pub(super) fn opens_set(scanner: &Scanner<'_>) -> bool {
    let mut ahead = *scanner;
    ahead.skip_blanks();
    ahead.take_while(is_word) == "in" && ahead.eat("{")
}

/// Text in quotes, or everything up to a blank or a sign that ends a pattern.
fn text_or_run(scanner: &mut Scanner<'_>) -> Result<String, Mistake> {
    if quote::is_quote(scanner) {
        return quote::text(scanner);
    }
    let run = scanner.take_while(|character| {
        !character.is_whitespace() && !matches!(character, ',' | '(' | ')' | '}' | '|' | '&')
    });
    if run.is_empty() {
        Err(scanner.mistake("text, in quotes or without blanks"))
    } else {
        Ok(run.to_owned())
    }
}
