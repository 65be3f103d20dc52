//! Words of a command line: each is one value or one pattern, and plain words need no quotes.

use super::pattern::{opens_set, pattern, template};
use super::scan::Scanner;
use super::value::{KIND_WORDS, Literal, literal, name, opens_entry, tuple, value};
use super::{Mistake, ParseError, quote, whole};
use crate::template::Alternative;
use crate::{Form, Pattern, PatternError, Template, Tuple, Value};

/// The beginnings of words that are nothing but notation, so that an error in such a word is reported. Without such a
/// beginning a word that is not well-formed is text.
const PATTERN_SIGNS: [&str; 6] = [":", "<", ">", "!", "==", "("];

/// Makes a pattern of text.
type Make = fn(&str) -> Result<Pattern, PatternError>;

/// The patterns of a text that, without quotes around it, reaches to the end of the word.
const RUNS: [(&str, Make); 2] =
    [("glob:", Pattern::glob), ("prefix:", |text| Pattern::prefix(text))];

impl Value {
    /// The value that one word of a command line stands for: a number, `true`, `false`, `null`, a quoted text, `b"…"`
    /// or `kind(…)`. Any other word is text as it stands, blanks at its ends too. `s:` makes the rest text: `s:7`.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if the word begins with a quote, or the name of a kind and `(`, and is not well-formed. Also if
    /// it is longer than [`TEXT_BYTES_MAX`](crate::TEXT_BYTES_MAX) and has no `s:`.
    pub fn parse_word(word: &str) -> Result<Self, ParseError> {
        if let Some(text) = word.strip_prefix("s:") {
            return Ok(Self::from(text));
        }
        let mut scanner = scanner_of(word)?;
        if begins_as_value(word) {
            return whole(word, value).map_err(|mistake| with_way_out(word, &mistake));
        }
        Ok(match literal(&mut scanner) {
            // Not what `FromStr` makes of text without quotes, which is without the blanks around it.
            Ok(Literal { value, bare: false }) if scanner.finish().is_ok() => value,
            _ => Self::from(word),
        })
    }
}

impl Tuple {
    /// The tuple whose fields are the words of a command line, by [`Value::parse_word`]. A sole word such as
    /// `Job{id: 7}` is that entry.
    ///
    /// # Errors
    ///
    /// [`ParseError`] of the first word that is not well-formed.
    pub fn parse_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, ParseError> {
        let words: Vec<&str> = words.into_iter().collect();
        match words[..] {
            [word] if begins_as_entry(word) => {
                whole(word, tuple).map_err(|mistake| with_way_out(word, &mistake))
            }
            _ => words.into_iter().map(Value::parse_word).collect(),
        }
    }
}

impl Pattern {
    /// The pattern that one word of a command line stands for: `_`, `:int`, `3..9`, `>3`, `glob:img/*`, or any other
    /// pattern of the notation. A word that does not begin like one is text as it stands. `s:` makes the rest text:
    /// `s:7`.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if the word begins with a sign of the notation and is not well-formed; or is longer than
    /// [`TEXT_BYTES_MAX`](crate::TEXT_BYTES_MAX) and has no `s:`.
    pub fn parse_word(word: &str) -> Result<Self, ParseError> {
        if let Some(text) = word.strip_prefix("s:") {
            return Ok(Self::from(text));
        }
        let mut scanner = scanner_of(word)?;
        if let Some(made) = run(word) {
            return made.map_err(|mistake| with_way_out(word, &mistake));
        }
        let begins_as_pattern = PATTERN_SIGNS.iter().any(|sign| word.starts_with(sign));
        if begins_as_pattern || begins_as_value(word) || opens_set(&scanner) {
            return whole(word, pattern).map_err(|mistake| with_way_out(word, &mistake));
        }
        Ok(match literal(&mut scanner) {
            // A number, or what begins with one and can be read to its end: `3..9`.
            Ok(first) if !first.bare => whole(word, pattern).unwrap_or_else(|_| Self::from(word)),
            _ if word == "_" => Self::ANY,
            _ => Self::from(word),
        })
    }
}

/// The pattern of the text behind `glob:` or `prefix:`, if the word begins with one of these.
fn run(word: &str) -> Option<Result<Pattern, Mistake>> {
    let (name, make) = RUNS.into_iter().find(|(name, _)| word.starts_with(name))?;
    let text = &word[name.len()..];
    // As in a pattern that is no word: a prefix may be of bytes, a glob is of text.
    let quoted = begins_as_text(text) || (name == "prefix:" && begins_as_bytes(text));
    Some(if quoted {
        whole(word, pattern)
    } else {
        let mistake = |error| Mistake::new(name.len(), format!("another pattern ({error})"));
        make(text).map_err(mistake)
    })
}

impl Template {
    /// The template whose patterns are the words of a command line, by [`Pattern::parse_word`]. `...` as the last word
    /// stands for any number of further fields (rule M1). A sole word such as `Job{id: :int}` is the template of those
    /// entries (rule M7).
    ///
    /// # Errors
    ///
    /// [`ParseError`] of the first word that is not well-formed.
    pub fn parse_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, ParseError> {
        let words: Vec<&str> = words.into_iter().collect();
        if let [word] = words[..]
            && begins_as_entry(word)
        {
            return template(word).map_err(|mistake| with_way_out(word, &mistake));
        }
        let mut alternative = Alternative::default();
        for word in words {
            if alternative.form == Form::Rest {
                let error = ParseError::new(word, 0, "no word after `...`, which stands last");
                return Err(error.with_hint("`...` is any further fields, `_` is one field"));
            }
            if word == "..." {
                alternative.form = Form::Rest;
            } else {
                alternative.patterns.push(Pattern::parse_word(word)?);
            }
        }
        Ok(alternative.into())
    }
}

/// Whether a word begins like an entry, and ends like one: the name of a class, bases perhaps, and braces.
fn begins_as_entry(word: &str) -> bool {
    let named = Scanner::new(word).is_ok_and(|mut scanner| {
        let begins = word.starts_with(|first: char| first.is_alphabetic() || first == '_');
        begins && name(&mut scanner).is_ok() && opens_entry(&scanner) && !opens_set_word(word)
    });
    named && word.trim_end().ends_with('}')
}

/// Whether a word is a set of members, not an entry of a class called `in`.
fn opens_set_word(word: &str) -> bool {
    Scanner::new(word).is_ok_and(|scanner| opens_set(&scanner))
}

/// Whether a word begins with a quote or with the name of a kind and a parenthesis.
fn begins_as_value(word: &str) -> bool {
    let name = word.split('(').next().unwrap_or_default();
    begins_as_text(word)
        || begins_as_bytes(word)
        || (name.len() < word.len() && KIND_WORDS.contains(&name))
        || begins_as_entry(word)
}

/// Whether a word begins with the quote of a text.
fn begins_as_text(word: &str) -> bool {
    Scanner::new(word).is_ok_and(|scanner| quote::is_quote(&scanner))
}

/// Whether a word begins with the quote of bytes.
fn begins_as_bytes(word: &str) -> bool {
    Scanner::new(word).is_ok_and(|scanner| quote::is_bytes(&scanner))
}

/// The beginning of a word, if it is not too long to be read.
fn scanner_of(word: &str) -> Result<Scanner<'_>, ParseError> {
    Scanner::new(word).map_err(|mistake| mistake.in_text(word))
}

/// The mistake, with how to write the word if it was meant as text.
fn with_way_out(word: &str, mistake: &Mistake) -> ParseError {
    let expected = format!("{} (as plain text: s:{word})", mistake.expected);
    ParseError::new(word, mistake.at, expected)
}
