//! Words of a command line: each is one value or one pattern, and plain words need no quotes.

use super::pattern::opens_set;
use super::scan::Scanner;
use super::value::{KIND_WORDS, literal, name, opens_entry};
use super::{ParseError, quote};
use crate::template::Alternative;
use crate::{Form, Pattern, Template, Tuple, Value};

/// What a word must begin with to be nothing but notation, so that an error in it is reported; without
/// these a word that is not well-formed is text.
const PATTERN_SIGNS: [&str; 6] = [":", "<", ">", "!", "==", "("];

impl Value {
    /// The value that one word of a command line stands for: a number, `true`, `false`, `null`, a quoted
    /// text, `b"…"` or `kind(…)`; anything else is text as it stands. `s:` makes the rest text: `s:7`.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if the word begins with a quote, or the name of a kind and `(`, and is not well-formed.
    pub fn parse_word(word: &str) -> Result<Self, ParseError> {
        if let Some(text) = word.strip_prefix("s:") {
            return Ok(Self::from(text));
        }
        let parsed = word.parse();
        if begins_as_value(word) {
            return parsed.map_err(|error| with_way_out(word, &error));
        }
        Ok(parsed.unwrap_or_else(|_| Self::from(word)))
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
                word.parse().map_err(|error| with_way_out(word, &error))
            }
            _ => words.into_iter().map(Value::parse_word).collect(),
        }
    }
}

impl Pattern {
    /// The pattern that one word of a command line stands for: `_`, `:int`, `3..9`, `>3`, `glob:img/*`, or
    /// any other pattern of the notation; what does not begin like one is text as it stands, and `s:`
    /// makes the rest text: `s:7`.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if the word begins with a sign of the notation and is not well-formed.
    pub fn parse_word(word: &str) -> Result<Self, ParseError> {
        if let Some(text) = word.strip_prefix("s:") {
            return Ok(Self::from(text));
        }
        for (name, make) in
            [("glob:", Self::glob as fn(&str) -> _), ("prefix:", |text: &str| Self::prefix(text))]
        {
            match word.strip_prefix(name) {
                Some(text) if !text.starts_with(['"', '\'']) && !text.starts_with("b\"") => {
                    let expected = |error| format!("another pattern ({error})");
                    return make(text)
                        .map_err(|error| ParseError::new(word, name.len(), expected(error)));
                }
                Some(_) => return word.parse(),
                None => {}
            }
        }
        let mut scanner = Scanner::new(word)?;
        let begins_as_pattern = PATTERN_SIGNS.iter().any(|sign| word.starts_with(sign));
        if begins_as_pattern || begins_as_value(word) || opens_set(&scanner) {
            return word.parse().map_err(|error| with_way_out(word, &error));
        }
        match literal(&mut scanner) {
            // A number, or what begins with one and can be read to its end: `3..9`.
            Ok(first) if !first.bare => Ok(word.parse().unwrap_or_else(|_| Self::from(word))),
            _ if word == "_" => Ok(Self::ANY),
            _ => Ok(Self::from(word)),
        }
    }
}

impl Template {
    /// The template whose patterns are the words of a command line, by [`Pattern::parse_word`]; `...` as
    /// the last stands for any number of further fields (rule M1). A sole word such as `Job{id: :int}` is the
    /// template of those entries (rule M7).
    ///
    /// # Errors
    ///
    /// [`ParseError`] of the first word that is not well-formed.
    pub fn parse_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, ParseError> {
        let words: Vec<&str> = words.into_iter().collect();
        if let [word] = words[..]
            && begins_as_entry(word)
        {
            return word.parse().map_err(|error| with_way_out(word, &error));
        }
        let mut alternative = Alternative::default();
        for word in words {
            if alternative.form == Form::Rest {
                return Err(ParseError::new(word, 0, "no word after `...`, which stands last"));
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
    let quoted = Scanner::new(word)
        .is_ok_and(|scanner| quote::is_quote(&scanner) || quote::is_bytes(&scanner));
    let name = word.split('(').next().unwrap_or_default();
    quoted || (name.len() < word.len() && KIND_WORDS.contains(&name)) || begins_as_entry(word)
}

/// The error, with how to write the word if it was meant as text.
fn with_way_out(word: &str, error: &ParseError) -> ParseError {
    ParseError::new(word, error.at(), format!("{} (as plain text: s:{word})", error.expected()))
}
