//! From text to the tree of the `cel` crate, and from its errors to ours.

use cel::common::ast::{IdedExpr, SourceInfo};
use cel::parser::{ParseError as CelError, Parser};

use super::{CONDITION_BYTES_MAX, CONDITION_DEPTH_MAX, words};
use crate::ParseError;

/// Mistakes that the parser tries to go on behind: only the first is shown.
const RECOVERIES_MAX: u32 = 4;

/// An expression, and where its parts stand.
pub(super) struct Parsed {
    pub(super) expression: IdedExpr,
    info: SourceInfo,
}

impl Parsed {
    /// Where the part with this number begins, in bytes of `text`.
    pub(super) fn place(&self, text: &str, id: u64) -> usize {
        let characters = self.info.offset_for(id).map_or(0, |(start, _)| start as usize);
        byte_offset(text, characters)
    }
}

/// Parses `text`.
pub(super) fn parse(text: &str) -> Result<Parsed, ParseError> {
    if text.len() > CONDITION_BYTES_MAX {
        let expected = format!("at most {CONDITION_BYTES_MAX} bytes instead of {}", text.len());
        return Err(ParseError::new(text, 0, expected));
    }
    let depth_max = u16::try_from(CONDITION_DEPTH_MAX).unwrap_or(u16::MAX);
    let parser = Parser::new().max_recursion_depth(depth_max).error_recovery_limit(RECOVERIES_MAX);
    match parser.parse_with_source_info(text) {
        Ok((expression, info)) => Ok(Parsed { expression, info }),
        Err(errors) => Err(errors.errors.first().map_or_else(
            || ParseError::new(text, 0, "a CEL expression"),
            |first| translated(text, first),
        )),
    }
}

/// The parser's message, in the words of the other notations.
fn translated(text: &str, error: &CelError) -> ParseError {
    let at = offset_of(text, error.pos);
    let says = |part: &str| error.msg.contains(part);
    let expected = if says("Recursion limit") {
        return ParseError::new(
            text,
            0,
            format!("at most {CONDITION_DEPTH_MAX} levels of nesting"),
        );
    } else if let Some((at, expected)) = words::operator_at(text, at) {
        return ParseError::new(text, at, expected);
    } else if says("expecting <EOF>") {
        "an operator or the end of the expression"
    } else if says("IDENTIFIER}") {
        "a value, such as f[0], 7 or \"text\""
    } else if says("reserved identifier") {
        "another name: this is a reserved word of CEL; ask about such a field by a pattern"
    } else if says("int literal") {
        "an int of at most 64 bits"
    } else if says("double literal") {
        "a float of at most 64 bits"
    } else if says("'==', '!='") {
        "an operator, such as == != < && || in"
    } else {
        "a CEL expression, such as f[1] % 2 == 0 && f[2] != \"x\""
    };
    ParseError::new(text, at, expected)
}

/// How to write a chain of comparisons, such as `0 < f[1] < 10`, whose operators stand at these two places.
pub(super) fn without_chain(text: &str, first: usize, second: usize) -> String {
    /// Longest text that is repeated, in bytes: about a line.
    const SHOWN_BYTES_MAX: usize = 80;
    let (before, after) = text.split_at(second);
    let middle = before.get(first..).unwrap_or("").trim_start_matches(['<', '>', '=']).trim();
    let written = format!("{} && {middle} {after}", before.trim_end());
    // A bracket around the first comparison, or a comment, would change the meaning.
    let is_clear = !text.contains("//") && text.len() <= SHOWN_BYTES_MAX && parse(&written).is_ok();
    if is_clear { format!("write `{written}`") } else { "write `a < b && b < c`".to_owned() }
}

/// The byte at a line and a column, both from 1, in characters.
fn offset_of(text: &str, (line, column): (isize, isize)) -> usize {
    let line = usize::try_from(line - 1).unwrap_or(0);
    let column = usize::try_from(column - 1).unwrap_or(0);
    let before: usize =
        text.split_inclusive('\n').take(line).map(|line| line.chars().count()).sum();
    byte_offset(text, before + column)
}

/// Where the character with this number begins; the end if there are fewer.
fn byte_offset(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}
