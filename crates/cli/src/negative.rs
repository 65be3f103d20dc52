//! Negative numbers among the words of a command line.
//!
//! `clap` knows `-7` and `-1e3` for numbers, and takes `-1e-3` and `-9..-5` for options. If it knows no such option,
//! the words are read once more. Then a mark stands before each word that the text notation reads as a number, or as a
//! form that begins with one. A field loses its mark again. Rejected: `allow_hyphen_values`, by which a mistyped option
//! would be a field.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use tupelo::Pattern;

/// Stands in no word that was typed: the system ends words with it.
const MARK: char = '\0';

/// The words, each negative number among the options with a mark before it. Behind `--` there are no options.
pub(crate) fn marked(words: &[OsString]) -> Vec<OsString> {
    let options_end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (among_options, behind) = words.split_at(options_end);
    let marked = among_options.iter().map(|word| match word.to_str() {
        Some(text) if is_negative(text) => OsString::from(format!("{MARK}{text}")),
        _ => word.clone(),
    });
    marked.chain(behind.iter().cloned()).collect()
}

/// A message without the marks: it may be about a word that is the value of an option.
pub(crate) fn without_marks(mut message: clap::Error) -> clap::Error {
    let words: Vec<(ContextKind, String)> = message
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(word) if word.contains(MARK) => {
                Some((kind, word.replace(MARK, "")))
            }
            _ => None,
        })
        .collect();
    for (kind, typed) in words {
        message.insert(kind, ContextValue::String(typed));
    }
    message
}

/// A word as it was typed.
pub(crate) fn unmarked(word: String) -> String {
    match word.strip_prefix(MARK) {
        Some(typed) => typed.to_owned(),
        None => word,
    }
}

/// Whether a word is a negative number in the text notation, or a pattern that begins with one. Any other with a dash is text.
fn is_negative(word: &str) -> bool {
    let is_no_text = |pattern: Pattern| pattern != Pattern::from(word);
    word.starts_with('-') && Pattern::parse_word(word).is_ok_and(is_no_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(typed: &[&str]) -> Vec<OsString> {
        typed.iter().map(OsString::from).collect()
    }

    #[test]
    fn numbers_are_marked_and_options_are_not() {
        let typed = words(&["-7", "-1e-3", "-9..-5", "--lease", "-q", "-x", "-", "--", "-1e-3"]);
        let marks = |word: &OsString| word.to_str().unwrap().starts_with(MARK);
        let are_marked: Vec<bool> = marked(&typed).iter().map(marks).collect();
        assert_eq!(are_marked, [true, true, true, false, false, false, false, false, false]);
    }

    #[test]
    fn a_field_is_what_was_typed() {
        for typed in ["-1e-3", "-9..-5", "job", ""] {
            let word = marked(&words(&[typed])).remove(0).into_string().unwrap();
            assert_eq!(unmarked(word), typed);
        }
    }
}
