//! Where a text could not be parsed, and what was expected there.

use std::fmt;

/// Why a text is not in the notation. Nothing was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Offset into the text, in bytes: decides which of two readings of it got further.
    at: usize,
    column: usize,
    expected: String,
    found: String,
}

impl ParseError {
    /// An error at the byte offset `at` of `text`, where `expected` would have been right.
    pub(crate) fn new(text: &str, at: usize, expected: impl Into<String>) -> Self {
        /// Characters shown of what was found: enough to recognize the place.
        const SHOWN_MAX: usize = 24;
        let (before, rest) = text.split_at(at);
        let mut shown = rest.chars();
        let start: String = shown.by_ref().take(SHOWN_MAX).collect();
        let found = match (rest.is_empty(), shown.next()) {
            (true, _) => "the end".to_owned(),
            (false, None) => format!("`{}`", start.escape_debug()),
            (false, Some(_)) => format!("`{}…`", start.escape_debug()),
        };
        Self { at, column: before.chars().count() + 1, expected: expected.into(), found }
    }

    /// Where the text stops making sense, in characters from 1.
    pub const fn column(&self) -> usize {
        self.column
    }

    /// What would have been right there.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "expected {} at character {}, found {}", self.expected, self.column, self.found)
    }
}

impl std::error::Error for ParseError {}
