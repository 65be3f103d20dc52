//! Glob patterns over text: `*`, `?` and `[...]`, as in `fnmatch`.
//!
//! `*` matches any run of characters, also `/`; `?` any one character; `[a-z0]` one of those, `[!a-z]`
//! one of the others. A special character is itself inside brackets: `[*]`. Matching is iterative and
//! remembers one star at most, so it takes at most (length of text) x (length of glob) steps.

use super::PatternError;

/// A glob, taken apart once so that each match is a walk over its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    source: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Exactly this character.
    Literal(char),
    /// Any one character.
    One,
    /// Any number of characters.
    Star,
    /// One character within the ranges, or outside all of them.
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Part {
    fn matches(&self, character: char) -> bool {
        match self {
            Self::Literal(literal) => *literal == character,
            Self::One => true,
            Self::Star => false,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
            }
        }
    }
}

impl Glob {
    /// Takes the glob apart.
    ///
    /// # Errors
    ///
    /// [`PatternError::Glob`] if a `[` is never closed.
    pub(crate) fn new(source: &str) -> Result<Self, PatternError> {
        let mut parts = Vec::new();
        let mut rest = source.chars();
        while let Some(character) = rest.next() {
            parts.push(match character {
                '*' if parts.last() == Some(&Part::Star) => continue,
                '*' => Part::Star,
                '?' => Part::One,
                '[' => class(&mut rest)
                    .ok_or_else(|| PatternError::Glob { glob: source.to_owned() })?,
                literal => Part::Literal(literal),
            });
        }
        Ok(Self { source: source.to_owned(), parts })
    }

    /// The text the glob was made from.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether the whole of `text` matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let mut rest = text.chars();
        let mut part = 0;
        // Where to go on when a part does not match: after the last star, with one character more
        // inside it. An earlier star never needs another try, since the last one can absorb as much.
        let mut retry = None;
        loop {
            if self.parts.get(part) == Some(&Part::Star) {
                part += 1;
                retry = Some((part, rest.clone()));
                continue;
            }
            let mut ahead = rest.clone();
            match (self.parts.get(part), ahead.next()) {
                (None, None) => return true,
                (Some(expected), Some(character)) if expected.matches(character) => {
                    part += 1;
                    rest = ahead;
                }
                _ => {
                    let Some((after_star, from)) = &mut retry else { return false };
                    if from.next().is_none() {
                        return false;
                    }
                    part = *after_star;
                    rest = from.clone();
                }
            }
        }
    }
}

/// The rest of a bracket expression, after its `[`; `None` if it is not closed.
fn class(rest: &mut std::str::Chars<'_>) -> Option<Part> {
    let negated = rest.as_str().starts_with(['!', '^']);
    if negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        let low = rest.next()?;
        // As the first member, `]` is itself.
        if low == ']' && !ranges.is_empty() {
            return Some(Part::Class { negated, ranges });
        }
        let mut ahead = rest.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                *rest = ahead;
                high
            }
            _ => low,
        };
        ranges.push((low, high));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(glob: &str, text: &str) -> bool {
        Glob::new(glob).unwrap().matches(text)
    }

    #[test]
    fn a_glob_matches_the_whole_text_m5() {
        assert!(matches("img/*.png", "img/a/b.png"));
        assert!(!matches("img/*.png", "img/a.png.bak"));
        assert!(matches("", ""));
        assert!(!matches("", "a"));
        assert!(matches("*", ""));
        assert!(matches("a*b*c", "a-b-b-c"));
        assert!(!matches("a*b*c", "a-b-b"));
        assert!(matches("gr?n", "grün"));
        assert!(!matches("gr?n", "grn"));
    }

    #[test]
    fn brackets_hold_ranges_negations_and_special_characters() {
        assert!(matches("[a-c]1", "b1"));
        assert!(!matches("[!a-c]1", "b1"));
        assert!(matches("[^a-c]1", "d1"));
        assert!(matches("[*]", "*"));
        assert!(!matches("[*]", "x"));
        assert!(matches("[]]", "]"));
        assert!(matches("[a-]", "-"));
        assert!(Glob::new("[abc").is_err());
        assert!(Glob::new("[]").is_err());
    }

    /// A matcher that retries every star would need about 30^15 steps here.
    #[test]
    fn many_stars_do_not_explode() {
        let glob = "a*".repeat(30) + "b";
        assert!(!matches(&glob, &"a".repeat(10_000)));
    }
}
