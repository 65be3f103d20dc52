//! Walking through a text.

use std::borrow::Cow;

use super::{Mistake, TEXT_BYTES_MAX};
use crate::DEPTH_MAX;

/// A place in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// How deep parentheses may still be nested.
    levels: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, Mistake> {
        if text.len() > TEXT_BYTES_MAX {
            let expected =
                format!("at most {TEXT_BYTES_MAX} bytes of text instead of {}", text.len());
            return Err(Mistake::new(0, expected));
        }
        Ok(Self { text, at: 0, levels: DEPTH_MAX })
    }

    /// What has not been read.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// A mistake here.
    pub(super) fn mistake(&self, expected: impl Into<Cow<'static, str>>) -> Mistake {
        Mistake::new(self.at, expected)
    }

    pub(super) fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Reads one character.
    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Reads `token` if it is what comes next, after blanks.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        let mut ahead = *self;
        ahead.skip_blanks();
        if !ahead.rest().starts_with(token) {
            return false;
        }
        ahead.at += token.len();
        *self = ahead;
        true
    }

    /// Reads `token`, which must come next.
    pub(super) fn expect(&mut self, token: &str) -> Result<(), Mistake> {
        if self.eat(token) {
            return Ok(());
        }
        self.skip_blanks();
        Err(self.mistake(format!("`{token}`")))
    }

    /// Reads characters as long as `wanted` holds.
    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|character| !wanted(character)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Succeeds at the end of the text, blanks aside.
    pub(super) fn finish(&mut self) -> Result<(), Mistake> {
        self.skip_blanks();
        if self.rest().is_empty() { Ok(()) } else { Err(self.mistake("the end of the text")) }
    }

    /// Parses by `rule` one level of parentheses deeper.
    pub(super) fn nested<T>(
        &mut self,
        rule: impl FnOnce(&mut Self) -> Result<T, Mistake>,
    ) -> Result<T, Mistake> {
        if self.levels == 0 {
            return Err(self.mistake(format!("at most {DEPTH_MAX} levels of nesting")));
        }
        self.levels -= 1;
        let parsed = rule(self);
        self.levels += 1;
        parsed
    }

    /// Parses items joined by commas up to `close`; a comma may follow the last.
    pub(super) fn separated<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, Mistake>,
    ) -> Result<Vec<T>, Mistake> {
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(item(self)?);
            if !self.eat(",") {
                if self.eat(close) {
                    break;
                }
                self.skip_blanks();
                return Err(self.mistake(format!("`,` or `{close}`")));
            }
        }
        Ok(items)
    }
}

/// Whether a character can be part of a word without quotes.
pub(super) fn is_word(character: char) -> bool {
    !character.is_whitespace()
        && !character.is_control()
        && !matches!(
            character,
            ',' | '('
                | ')'
                | '['
                | ']'
                | '{'
                | '}'
                | '|'
                | '&'
                | '!'
                | '<'
                | '>'
                | '='
                | ':'
                | '"'
                | '\''
        )
}
