//! The text notation of values, tuples, patterns and templates: parser and printer.
//!
//! ```text
//! template     = list [ where ] | several { "|" several }         several: an OR of templates (M8)
//! where        = "where" text                                     a condition in CEL (M9)
//! several      = ( "(" list ")" | name "{" [ field { "," field } ] "}" ) [ where ]     the latter: entries (M7)
//! field        = name ":" pattern | name comparison
//! tuple        = value { "," value } | "(" [ value { "," value } ] ")" | entry
//! list         = [ pattern { "," pattern } [ "," "..." ] ]        "..." last: any further fields (M1)
//! pattern      = both { "|" both }                                OR
//! both         = unary { "&" unary }                              AND
//! unary        = "!" unary | "(" pattern ")" | "_" | ":" kind
//!              | value | "==" value | "!=" value
//!              | ("<" | "<=" | ">" | ">=") value | value range value
//!              | "in" "{" [ value { "," value } ] "}" | "glob:" text | "prefix:" (text | bytes)
//! range        = ".." | "<.." | "..<" | "<..<"                    "<": that end is excluded
//! kind         = the name of a kind | "number" (int or float) | "any" | "none"
//! value        = text | word | bytes | number | "true" | "false" | "null"
//!              | "decimal" "(" text ")" | "timestamp" "(" text ")" | "uuid" "(" text ")"
//!              | "float" "(" "\"nan\"" | "\"inf\"" | "\"-inf\"" ")" | "list" "(" values ")"
//!              | "tuple" "(" values ")" | "map" "(" [ value ":" value { "," value ":" value } ] ")"
//!              | "array" "(" dtype "," shape as a list "," bytes ")"
//!              | entry
//!              | "opaque" "(" codec "," type name "," bytes ")"
//! entry        = name [ "(" name { "," name } ")" ] "{" [ name ":" value { "," name ":" value } ] "}"
//!                the class, its bases, its fields. Without parentheses around, the entry itself; else a field
//! name         = word | text, nothing between it and a bracket
//! text         = "…" or '…' with \n \r \t \0 \\ \" \' \u{hex}     bytes = b"…", with \xhh too
//! word         = characters other than blanks and , ( ) [ ] { } | & ! < > = : and quotes
//! ```
//!
//! A number is as in JSON; with a point or an exponent it is a float. A word that is no number and no
//! name of the above is text: `job` is `"job"`. The printer always quotes. Its output is parsed back to the same, as
//! long as patterns and values together are nested no deeper than [`DEPTH_MAX`](crate::DEPTH_MAX).
//!
//! On a command line each word is one pattern ([`Pattern::parse_word`]) or one value. A word that does not begin like
//! one of the forms above is text as it stands. `s:` before a word makes it text.

mod error;
mod pattern;
mod print;
mod quote;
mod scan;
mod value;
mod word;

pub use error::ParseError;

use std::str::FromStr;

use crate::{Pattern, Template, Tuple, Value};
use error::Mistake;
use scan::Scanner;

/// Longest text that is parsed, in bytes: 1 MiB, far more than a command line or a rule has.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Parses all of `text` by `rule`.
fn whole<'a, T>(
    text: &'a str,
    rule: impl FnOnce(&mut Scanner<'a>) -> Result<T, Mistake>,
) -> Result<T, Mistake> {
    let mut scanner = Scanner::new(text)?;
    let parsed = rule(&mut scanner)?;
    scanner.finish()?;
    Ok(parsed)
}

impl FromStr for Value {
    type Err = ParseError;

    /// Parses one value: `Value::from_str("list(1, \"two\")")`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        whole(text, value::value).map_err(|mistake| mistake.in_text(text))
    }
}

impl FromStr for Tuple {
    type Err = ParseError;

    /// Parses values joined by commas, with or without parentheses around them; `()` is the empty tuple.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        whole(text, value::tuple).map_err(|mistake| mistake.in_text(text))
    }
}

impl FromStr for Pattern {
    type Err = ParseError;

    /// Parses one pattern.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        whole(text, pattern::pattern).map_err(|mistake| mistake.in_text(text))
    }
}

impl FromStr for Template {
    type Err = ParseError;

    /// Parses a template: patterns joined by commas, with or without parentheses around them, or an OR of
    /// templates in parentheses (rule M8).
    ///
    /// ```
    /// use tupelo_tuple::{Template, tuple};
    ///
    /// let template: Template = "job, :int, 0..<10 | null".parse()?;
    /// assert!(template.matches(&tuple!["job", 7, 9.5]));
    /// assert_eq!(template.to_string(), r#"("job", :int, 0..<10 | null)"#);
    /// # Ok::<(), tupelo_tuple::ParseError>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, ParseError> {
        pattern::template(text).map_err(|mistake| mistake.in_text(text))
    }
}
