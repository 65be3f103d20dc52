//! Parsing values and tuples.

use super::Mistake;
use super::quote;
use super::scan::{Scanner, is_word};
use crate::{Array, DType, Decimal, Entry, Map, Opaque, Timestamp, Tuple, Value, ValueError};

/// A value as it was written.
pub(super) struct Literal {
    pub(super) value: Value,
    /// Whether it is text that stood there without quotes.
    pub(super) bare: bool,
}

/// Parses one value.
pub(super) fn value(scanner: &mut Scanner<'_>) -> Result<Value, Mistake> {
    Ok(literal(scanner)?.value)
}

/// Parses one value, and tells how it was written.
pub(super) fn literal(scanner: &mut Scanner<'_>) -> Result<Literal, Mistake> {
    scanner.skip_blanks();
    let written = |value| Ok(Literal { value, bare: false });
    if quote::is_quote(scanner) {
        let text = quote::text(scanner)?;
        if opens_entry(scanner) {
            return written(entry(scanner, text)?);
        }
        return written(Value::Str(text));
    }
    if quote::is_bytes(scanner) {
        return written(Value::Bytes(quote::bytes(scanner)?));
    }
    if let Some(number) = number(scanner)? {
        return written(number);
    }
    let start = scanner.at();
    let word = scanner.take_while(is_word);
    match word {
        "" => return Err(scanner.mistake("a value")),
        "true" => return written(Value::Bool(true)),
        "false" => return written(Value::Bool(false)),
        "null" => return written(Value::Null),
        _ => {}
    }
    if opens_entry(scanner) && !(word == "in" && scanner.peek() == Some('{')) {
        return written(entry(scanner, word.to_owned())?);
    }
    if scanner.peek() == Some('(') {
        return written(of_kind(scanner, word, start)?);
    }
    Ok(Literal { value: Value::from(word), bare: true })
}

/// Parses a tuple: values joined by commas, with or without parentheses.
pub(super) fn tuple(scanner: &mut Scanner<'_>) -> Result<Tuple, Mistake> {
    if scanner.eat("(") {
        return Ok(scanner.separated(")", value)?.into());
    }
    scanner.skip_blanks();
    let start = scanner.at();
    let first = value(scanner)?;
    let mut fields = match first {
        Value::Entry(entry) if scanner.finish().is_ok() => {
            return Tuple::from_entry(entry)
                .map_err(|error| Mistake::new(start, format!("a smaller entry ({error})")));
        }
        first => vec![first],
    };
    while scanner.eat(",") {
        fields.push(value(scanner)?);
    }
    Ok(fields.into())
}

/// Reads a number, if a whole one comes next: `7a` and `10.0.0.1` are words, `3..9` begins with 3.
fn number(scanner: &mut Scanner<'_>) -> Result<Option<Value>, Mistake> {
    let start = scanner.at();
    let (length, whole) = number_length(scanner.rest().as_bytes());
    let (digits, after) = scanner.rest().split_at(length);
    if length == 0 || (after.starts_with(is_word) && !after.starts_with("..")) {
        return Ok(None);
    }
    let number = if whole {
        Value::parse_int(digits)
            .map_err(|error| Mistake::new(start, format!("a shorter integer ({error})")))?
    } else {
        let float: f64 = digits.parse().unwrap_or(f64::INFINITY);
        if float.is_infinite() {
            return Err(Mistake::new(start, "a number that a float can hold, up to 1.79e308"));
        }
        Value::Float(float)
    };
    for _ in 0..length {
        scanner.next();
    }
    Ok(Some(number))
}

/// The length of the JSON number that the text begins with, 0 if none, and whether it is an integer.
fn number_length(text: &[u8]) -> (usize, bool) {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(text.first() == Some(&b'-'));
    let integer = digits(sign);
    if integer == 0 || (integer > 1 && text[sign] == b'0') {
        return (0, true);
    }
    let mut end = sign + integer;
    let mut whole = true;
    if text.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
        whole = false;
    }
    if let Some(b'e' | b'E') = text.get(end) {
        let exponent = end + 1 + usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        if exponent <= text.len() && digits(exponent) > 0 {
            end = exponent + digits(exponent);
            whole = false;
        }
    }
    (end, whole)
}

/// The names that begin a value in parentheses.
pub(super) const KIND_WORDS: [&str; 9] =
    ["float", "decimal", "timestamp", "uuid", "list", "tuple", "map", "array", "opaque"];

/// Reads the text in the parentheses after the name of a kind.
fn of_kind(scanner: &mut Scanner<'_>, kind: &str, start: usize) -> Result<Value, Mistake> {
    scanner.expect("(")?;
    let made = scanner.nested(|scanner| {
        let value = match kind {
            "list" => return Ok(Ok(Value::List(scanner.separated(")", value)?))),
            "tuple" => return Ok(Ok(Value::Tuple(scanner.separated(")", value)?))),
            "map" => return Ok(Map::in_order(scanner.separated(")", pair)?).map(Value::Map)),
            "float" => special_float(scanner)?,
            "decimal" => Decimal::parse(&quote::text(scanner)?).map(Value::Decimal),
            "timestamp" => Timestamp::parse(&quote::text(scanner)?).map(Value::Timestamp),
            "uuid" => uuid(&quote::text(scanner)?),
            "array" => array(scanner)?,
            "opaque" => opaque(scanner)?,
            _ => {
                let expected = format!("one of {} before `(`", KIND_WORDS.join(", "));
                return Err(Mistake::new(start, expected));
            }
        };
        scanner.expect(")")?;
        Ok(value)
    })?;
    made.map_err(|error| Mistake::new(start, format!("a valid {kind} ({error})")))
}

/// A value, or why it cannot be made; the outer error is of the text.
type Made = Result<Result<Value, ValueError>, Mistake>;

fn pair(scanner: &mut Scanner<'_>) -> Result<(Value, Value), Mistake> {
    let key = value(scanner)?;
    scanner.expect(":")?;
    Ok((key, value(scanner)?))
}

/// The floats that are no numbers; a NaN that is not the usual one is written with its bits.
fn special_float(scanner: &mut Scanner<'_>) -> Made {
    let start = scanner.at();
    let text = quote::text(scanner)?;
    let float = match text.as_str() {
        "nan" => Some(f64::NAN),
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        text => text
            .strip_prefix("nan:")
            .and_then(|bits| u64::from_str_radix(bits, 16).ok())
            .map(f64::from_bits)
            .filter(|float| float.is_nan()),
    };
    let float = float.ok_or_else(|| Mistake::new(start, r#""nan", "inf" or "-inf""#))?;
    Ok(Ok(Value::Float(float)))
}

fn uuid(text: &str) -> Result<Value, ValueError> {
    let syntax = || ValueError::Syntax {
        expected: "a uuid such as 0f8fad5b-d9cb-469f-a165-70867728950e",
        found: text.to_owned(),
    };
    let dashes: Vec<usize> = text.match_indices('-').map(|(at, _)| at).collect();
    let digits = text.replace('-', "");
    let in_place = dashes.is_empty() || dashes == [8, 13, 18, 23];
    let is_hex = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| in_place && is_hex);
    number.map(|number| Value::Uuid(number.to_be_bytes())).ok_or_else(syntax)
}

fn array(scanner: &mut Scanner<'_>) -> Made {
    scanner.skip_blanks();
    let start = scanner.at();
    let dtype = DType::from_name(&quote::text(scanner)?).ok_or_else(|| {
        let names: Vec<_> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
        Mistake::new(start, format!("one of {} in quotes", names.join(", ")))
    })?;
    scanner.expect(",")?;
    let shape = list_of(scanner, |scanner| {
        let start = scanner.at();
        let size = match value(scanner)? {
            Value::Int(size) => u64::try_from(size).ok(),
            Value::BigInt(size) if !size.is_negative() => {
                <[u8; 8]>::try_from(size.magnitude()).ok().map(u64::from_be_bytes)
            }
            _ => None,
        };
        size.ok_or_else(|| Mistake::new(start, "the size of a dimension"))
    })?;
    scanner.expect(",")?;
    let data = quote::bytes(scanner)?;
    Ok(Array::new(dtype, &shape, data).map(Value::Array))
}

/// Whether the rest of an entry follows its name at once: its fields in braces, or its bases before them.
pub(super) fn opens_entry(scanner: &Scanner<'_>) -> bool {
    match scanner.peek() {
        Some('{') => true,
        Some('(') => {
            let mut ahead = *scanner;
            bases(&mut ahead).is_ok() && ahead.peek() == Some('{')
        }
        _ => false,
    }
}

/// Reads the rest of an entry of the class `class`: its bases, if it has any, and its fields.
fn entry(scanner: &mut Scanner<'_>, class: String) -> Result<Value, Mistake> {
    let start = scanner.at();
    let bases = if scanner.peek() == Some('(') { bases(scanner)? } else { Vec::new() };
    scanner.expect("{")?;
    let fields = scanner.nested(|scanner| {
        scanner.separated("}", |scanner| {
            let name = name(scanner)?;
            scanner.expect(":")?;
            Ok((name, value(scanner)?))
        })
    })?;
    let made = Entry::new(class, bases, fields).map(Value::Entry);
    made.map_err(|error| Mistake::new(start, format!("a valid entry ({error})")))
}

fn bases(scanner: &mut Scanner<'_>) -> Result<Vec<String>, Mistake> {
    scanner.expect("(")?;
    let first = name(scanner)?;
    let mut bases = vec![first];
    while scanner.eat(",") {
        bases.push(name(scanner)?);
    }
    scanner.expect(")")?;
    Ok(bases)
}

/// Reads the name of a class or of a field: a word, or text in quotes.
pub(super) fn name(scanner: &mut Scanner<'_>) -> Result<String, Mistake> {
    scanner.skip_blanks();
    if quote::is_quote(scanner) {
        return quote::text(scanner);
    }
    match scanner.take_while(is_word) {
        "" => Err(scanner.mistake("a name")),
        word => Ok(word.to_owned()),
    }
}

fn opaque(scanner: &mut Scanner<'_>) -> Made {
    let codec = quote::text(scanner)?;
    scanner.expect(",")?;
    let type_name = quote::text(scanner)?;
    scanner.expect(",")?;
    let bytes = quote::bytes(scanner)?;
    Ok(Ok(Value::Opaque(Opaque { codec, type_name, bytes })))
}

fn list_of<'a, T>(
    scanner: &mut Scanner<'a>,
    item: impl FnMut(&mut Scanner<'a>) -> Result<T, Mistake>,
) -> Result<Vec<T>, Mistake> {
    scanner.expect("list")?;
    scanner.expect("(")?;
    scanner.separated(")", item)
}
