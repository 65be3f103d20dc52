//! Text and bytes in quotes: reading and writing them.

use std::fmt::{self, Write};

use super::Mistake;
use super::scan::Scanner;

/// Whether a quoted text comes next.
pub(super) fn is_quote(scanner: &Scanner<'_>) -> bool {
    scanner.rest().starts_with(['"', '\''])
}

/// Whether quoted bytes come next.
pub(super) fn is_bytes(scanner: &Scanner<'_>) -> bool {
    scanner.rest().starts_with("b\"") || scanner.rest().starts_with("b'")
}

/// Reads a text in quotes, double or single.
pub(super) fn text(scanner: &mut Scanner<'_>) -> Result<String, Mistake> {
    scanner.skip_blanks();
    if !is_quote(scanner) {
        return Err(scanner.mistake("text in quotes"));
    }
    let quote = scanner.next();
    let mut text = String::new();
    loop {
        let start = scanner.at();
        match scanner.next() {
            None => return Err(scanner.mistake("a closing quote")),
            end if end == quote => return Ok(text),
            Some('\\') => text.push(match scanner.next() {
                Some('u') => unicode_escape(scanner, start)?,
                Some(escape) if simple_escape(escape).is_some() => {
                    simple_escape(escape).unwrap_or(escape)
                }
                _ => return Err(Mistake::new(start, r#"one of \n \r \t \0 \\ \" \' \u{…}"#)),
            }),
            Some(character) => text.push(character),
        }
    }
}

/// Reads bytes in quotes, after a `b`.
pub(super) fn bytes(scanner: &mut Scanner<'_>) -> Result<Vec<u8>, Mistake> {
    scanner.skip_blanks();
    if !is_bytes(scanner) {
        return Err(scanner.mistake("bytes such as b\"\\x00\""));
    }
    scanner.next();
    let quote = scanner.next();
    let mut bytes = Vec::new();
    loop {
        let start = scanner.at();
        let character = match scanner.next() {
            None => return Err(scanner.mistake("a closing quote")),
            end if end == quote => return Ok(bytes),
            Some('\\') => match scanner.next() {
                Some('x') => {
                    bytes.push(hex_escape(scanner, start)?);
                    continue;
                }
                escape => escape.and_then(simple_escape),
            },
            character => character,
        };
        let byte = character.filter(char::is_ascii).and_then(|ascii| u8::try_from(ascii).ok());
        bytes.push(byte.ok_or_else(|| {
            Mistake::new(start, r#"an ASCII character, or one of \xhh \n \r \t \0 \\ \" \'"#)
        })?);
    }
}

fn simple_escape(escape: char) -> Option<char> {
    Some(match escape {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '0' => '\0',
        '\\' | '"' | '\'' => escape,
        _ => return None,
    })
}

fn hex_escape(scanner: &mut Scanner<'_>, start: usize) -> Result<u8, Mistake> {
    let mut digit = || scanner.next().and_then(|digit| digit.to_digit(16));
    let byte = digit().zip(digit()).map(|(high, low)| high << 4 | low);
    byte.and_then(|byte| u8::try_from(byte).ok())
        .ok_or_else(|| Mistake::new(start, r"two hexadecimal digits after \x"))
}

fn unicode_escape(scanner: &mut Scanner<'_>, start: usize) -> Result<char, Mistake> {
    let opened = scanner.next() == Some('{');
    let digits = scanner.take_while(|character| character.is_ascii_hexdigit());
    let closed = scanner.next() == Some('}');
    let character = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
    character
        .filter(|_| opened && closed && digits.len() <= 6)
        .ok_or_else(|| Mistake::new(start, r"a character such as \u{1f600}"))
}

/// Writes a text in quotes. Characters that would not be visible, or would turn the direction of visible ones, are
/// escaped: the notation appears in logs and access rules.
pub(super) fn write_text(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            unseen if is_unseen(unseen) => write!(out, "\\u{{{:x}}}", u32::from(unseen))?,
            other => out.write_char(other)?,
        }
    }
    out.write_char('"')
}

/// Whether a character is a control, or one of Unicode's invisible format characters. Format characters of single
/// scripts that belong to the visible character beside them (prefixes of Arabic numbers, say) are not among them.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0001}'..='\u{e007f}'
        )
}

/// Writes bytes in quotes, after a `b`.
pub(super) fn write_bytes(out: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    out.write_str("b\"")?;
    for byte in bytes {
        match byte {
            b'"' => out.write_str("\\\"")?,
            b'\\' => out.write_str("\\\\")?,
            b' '..=b'~' => out.write_char(char::from(*byte))?,
            _ => write!(out, "\\x{byte:02x}")?,
        }
    }
    out.write_char('"')
}
