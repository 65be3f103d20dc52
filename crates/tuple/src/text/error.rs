//! The place where a text could not be parsed, and the expected form.
//!
//! A parser that tries one reading after the other makes mistakes that are never reported. So a [`Mistake`] takes no
//! longer the further it is, and only a reported one is looked up in its text.

use std::borrow::Cow;
use std::fmt;

/// A rule's expectation that the text did not meet, and the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// Offset into the text, in bytes: decides which of two readings of it got further.
    pub(super) at: usize,
    pub(super) expected: Cow<'static, str>,
}

impl Mistake {
    pub(super) fn new(at: usize, expected: impl Into<Cow<'static, str>>) -> Self {
        Self { at, expected: expected.into() }
    }

    /// The mistake as the writer of `text` is told of it.
    pub(super) fn in_text(self, text: &str) -> ParseError {
        ParseError::new(text, self.at, self.expected)
    }
}

/// Why a text is not in the notation. Nothing was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    column: usize,
    expected: String,
    found: String,
    hint: String,
}

impl ParseError {
    /// An error at the byte offset `at` of `text`, where `expected` would have been right.
    pub(crate) fn new(text: &str, at: usize, expected: impl Into<String>) -> Self {
        /// Characters shown of the text at the place: enough to recognize it.
        const SHOWN_MAX: usize = 24;
        #[cfg(test)]
        tests::MADE.set(tests::MADE.get() + 1);
        let (before, rest) = text.split_at(at);
        let mut shown = rest.chars();
        let start: String = shown.by_ref().take(SHOWN_MAX).collect();
        let found = match (rest.is_empty(), shown.next()) {
            (true, _) => "the end".to_owned(),
            (false, None) => format!("`{}`", start.escape_debug()),
            (false, Some(_)) => format!("`{}…`", start.escape_debug()),
        };
        Self {
            column: before.chars().count() + 1,
            expected: expected.into(),
            found,
            hint: String::new(),
        }
    }

    /// The error, which ends with the way out.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Where the text stops making sense, in characters from 1.
    pub const fn column(&self) -> usize {
        self.column
    }

    /// What would have been right there.
    pub fn expected(&self) -> &str {
        &self.expected
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, expected, found, hint } = self;
        write!(out, "expected {expected} at character {column}, found {found}")?;
        if hint.is_empty() { Ok(()) } else { write!(out, "; {hint}") }
    }
}

impl std::error::Error for ParseError {}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::{Template, Tuple, Value};

    thread_local! {
        /// Errors that this thread has made: each is a walk over the text.
        pub(super) static MADE: Cell<usize> = const { Cell::new(0) };
    }

    /// How many errors `parse` makes.
    fn errors_of<T>(parse: impl FnOnce() -> T) -> usize {
        let before = MADE.get();
        parse();
        MADE.get() - before
    }

    /// Texts of so many entries, each of which may be read in more than one way.
    fn texts(entries: usize) -> [String; 5] {
        let joined = |entry: &str| vec![entry; entries].join(", ");
        [
            joined("1"),
            format!("list({})", joined("list()")),
            format!("list({})", joined("map('a': 1)")),
            format!("list({})", joined("A(b){}")),
            format!("list({})", joined("decimal('1')")),
        ]
    }

    #[test]
    fn a_text_without_a_mistake_makes_no_error_however_long_it_is() {
        for text in texts(10_000) {
            assert_eq!(errors_of(|| text.parse::<Tuple>().unwrap()), 0, "{}", &text[..20]);
            assert_eq!(errors_of(|| text.parse::<Template>().unwrap()), 0, "{}", &text[..20]);
        }
    }

    #[test]
    fn a_text_with_a_mistake_makes_one_error_however_far_it_was_read() {
        for text in texts(10_000) {
            let text = text + ", !";
            assert_eq!(errors_of(|| text.parse::<Tuple>().unwrap_err()), 1, "{}", &text[..20]);
            assert_eq!(errors_of(|| text.parse::<Template>().unwrap_err()), 1, "{}", &text[..20]);
        }
    }

    #[test]
    fn a_column_is_counted_in_characters() {
        let error = "list('\u{e9}\u{1f600}', )!".parse::<Value>().unwrap_err();
        assert_eq!((error.column(), error.expected()), (13, "the end of the text"));
    }
}
