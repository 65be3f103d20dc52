//! Encoding and decoding patterns and templates: a waiter leaves them in shared memory, and a client sends them.

use std::ops::Bound;

use super::decode::{ascending, value};
use super::{DEPTH_MAX, DecodeError, EncodeError, Item, Reader, extension, write};
use crate::image::ARITY_MAX;
use crate::template::{ALTERNATIVES_MAX, Alternative};
use crate::test::Node;
use crate::{
    Condition, Field, Form, KindSet, Named, Pattern, PatternError, PatternRef, Template,
    TemplateRef, Test, Value,
};

impl Template {
    /// The canonical encoding of the template: an array of its alternatives, each an array of patterns.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if there are too many alternatives or patterns, or a value cannot be encoded.
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        self.with_refs(encode_template_refs)?
    }

    /// The template that `bytes` encode.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if they are not exactly one template in its canonical encoding.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let error = reader.error("a template is an array of 1 to 256 alternatives");
        let Item::List(count) = reader.item()? else { return Err(error) };
        if count > ALTERNATIVES_MAX {
            return Err(error);
        }
        let alternatives: Result<Vec<_>, _> =
            (0..count).map(|_| alternative(&mut reader)).collect();
        let alternatives = alternatives?;
        reader.finish()?;
        Self::from_alternatives(alternatives).ok_or(error)
    }
}

/// The canonical encoding of a template in its borrowed form: [`Template::decode`] reads it.
///
/// # Errors
///
/// [`EncodeError`] if there are too many alternatives or patterns, or a length is over 4 GiB.
pub fn encode_template_refs(templates: &[TemplateRef<'_>]) -> Result<Vec<u8>, EncodeError> {
    if templates.len() > ALTERNATIVES_MAX {
        return Err(EncodeError::TooManyAlternatives { alternatives: templates.len() });
    }
    let mut out = Vec::new();
    write::array_header(&mut out, templates.len())?;
    for template in templates {
        match template.condition {
            None => write_alternative(&mut out, template)?,
            Some(condition) => write::extension(&mut out, extension::WHERE, |out| {
                write::array_header(out, 2)?;
                write_alternative(out, template)?;
                write::str(out, condition.text())
            })?,
        }
    }
    Ok(out)
}

/// Writes an alternative without its condition.
fn write_alternative(out: &mut Vec<u8>, template: &TemplateRef<'_>) -> Result<(), EncodeError> {
    let arity = template.patterns.len();
    if arity > ARITY_MAX {
        return Err(EncodeError::TooManyFields { arity });
    }
    if let Form::Entry(named) = template.form {
        return write::extension(out, extension::ENTRIES, |out| {
            write_entries(out, named, template.patterns)
        });
    }
    let has_rest = template.form == Form::Rest;
    write::array_header(out, arity + usize::from(has_rest))?;
    template.patterns.iter().try_for_each(|pattern| write_pattern(out, pattern))?;
    if has_rest {
        write::extension_header(out, extension::REST, 0)?;
    }
    Ok(())
}

fn write_entries(
    out: &mut Vec<u8>,
    named: &Named,
    patterns: &[PatternRef<'_>],
) -> Result<(), EncodeError> {
    write::array_header(out, 2)?;
    write::str(out, named.class())?;
    write::map_header(out, patterns.len())?;
    for (name, pattern) in named.fields().iter().zip(patterns) {
        write::str(out, name)?;
        write_pattern(out, pattern)?;
    }
    Ok(())
}

fn write_pattern(out: &mut Vec<u8>, pattern: &PatternRef<'_>) -> Result<(), EncodeError> {
    match pattern {
        PatternRef::Actual(actual) => write_field(out, actual),
        PatternRef::Kinds(kinds) => write_kinds(out, *kinds),
        PatternRef::Test(test) => write_test(out, test),
    }
}

fn write_field(out: &mut Vec<u8>, field: &Field<'_>) -> Result<(), EncodeError> {
    match field {
        Field::Null => write::null(out),
        Field::Bool(value) => write::bool(out, *value),
        Field::Int(value) => write::int(out, *value),
        Field::Float(value) => write::float(out, *value),
        Field::Str(text) => write::str(out, text)?,
        Field::Bytes(bytes) => write::bytes(out, bytes)?,
        Field::Encoded(encoded) => {
            out.extend(encoded.head);
            out.extend(encoded.body);
        }
    }
    Ok(())
}

fn write_kinds(out: &mut Vec<u8>, kinds: KindSet) -> Result<(), EncodeError> {
    write::extension_header(out, extension::KINDS, 2)?;
    out.extend(kinds.bits().to_be_bytes());
    Ok(())
}

fn write_test(out: &mut Vec<u8>, test: &Test) -> Result<(), EncodeError> {
    match test.node() {
        Node::Actual(actual) => actual.value().encode_to(out),
        Node::Kinds(kinds) => write_kinds(out, *kinds),
        Node::Range(range) => write::extension(out, extension::RANGE, |out| {
            write::array_header(out, 4)?;
            write_bound(out, range.low())?;
            write_bound(out, range.high())
        }),
        Node::In(members) => write::extension(out, extension::IN, |out| {
            let members = members.by_bytes();
            write::array_header(out, members.len())?;
            for (encoding, _) in members {
                out.extend(encoding);
            }
            Ok(())
        }),
        Node::Prefix(prefix) => {
            write::extension(out, extension::PREFIX, |out| prefix.value().encode_to(out))
        }
        Node::Glob(glob) => {
            write::extension(out, extension::GLOB, |out| write::str(out, glob.source()))
        }
        Node::Class(name) => write::extension(out, extension::CLASS, |out| write::str(out, name)),
        Node::Not(test) => write::extension(out, extension::NOT, |out| write_test(out, test)),
        Node::All(tests) => write::extension(out, extension::ALL, |out| write_tests(out, tests)),
        Node::Any(tests) => write::extension(out, extension::ANY, |out| write_tests(out, tests)),
    }
}

fn write_tests(out: &mut Vec<u8>, tests: &[Test]) -> Result<(), EncodeError> {
    write::array_header(out, tests.len())?;
    tests.iter().try_for_each(|test| write_test(out, test))
}

fn write_bound(out: &mut Vec<u8>, bound: &Bound<Value>) -> Result<(), EncodeError> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => value.encode_to(out)?,
        Bound::Unbounded => write::null(out),
    }
    write::bool(out, matches!(bound, Bound::Included(_)));
    Ok(())
}

fn alternative(reader: &mut Reader<'_>) -> Result<Alternative, DecodeError> {
    const SHAPE: &str = "a condition is an array of an alternative without one and of CEL text";
    let error = reader.error(SHAPE);
    let mut ahead = *reader;
    let Item::Pattern(extension::WHERE, mut payload) = ahead.item()? else {
        return unconditional(reader);
    };
    *reader = ahead;
    if payload.expect_list(SHAPE)? != 2 {
        return Err(error);
    }
    let alternative = unconditional(&mut payload)?;
    let condition = Condition::new(payload.expect_str(SHAPE)?).map_err(|_| error)?;
    payload.finish()?;
    alternative.with_condition(&condition).map_err(|_| error)
}

/// Reads an alternative without a condition.
fn unconditional(reader: &mut Reader<'_>) -> Result<Alternative, DecodeError> {
    let start = reader.at();
    let mut ahead = *reader;
    if let Item::Pattern(extension::ENTRIES, payload) = ahead.item()? {
        *reader = ahead;
        return entries(payload);
    }
    let count = reader.expect_list("an alternative is an array of patterns, or for entries")?;
    let mut alternative = Alternative::default();
    for index in 0..count {
        let mut ahead = *reader;
        if let Item::Pattern(extension::REST, payload) = ahead.item()? {
            payload.finish()?;
            if index + 1 < count {
                return Err(reader.error("the rest of a template stands at its end"));
            }
            *reader = ahead;
            alternative.form = Form::Rest;
        } else {
            alternative.patterns.push(pattern(reader, DEPTH_MAX)?);
        }
    }
    if alternative.patterns.len() > ARITY_MAX {
        return Err(DecodeError::new(start, "a template has at most 64 patterns"));
    }
    Ok(alternative)
}

/// Reads what follows the head of a template of entries.
fn entries(mut payload: Reader<'_>) -> Result<Alternative, DecodeError> {
    const SHAPE: &str =
        "a template of entries is an array of the class and a map of up to 64 patterns";
    let error = payload.error(SHAPE);
    if payload.expect_list(SHAPE)? != 2 {
        return Err(error);
    }
    let class = payload.expect_str(SHAPE)?;
    let Item::Map(count) = payload.item()? else { return Err(error) };
    if count > ARITY_MAX {
        return Err(error);
    }
    let (mut names, mut patterns) = (Vec::new(), Vec::new());
    let mut previous: &[u8] = &[];
    for _ in 0..count {
        let at = payload.at();
        names.push(payload.expect_str("the name of a field is text")?.to_owned());
        previous = ascending(previous, payload.since(at), at)?;
        patterns.push(pattern(&mut payload, DEPTH_MAX)?);
    }
    payload.finish()?;
    Ok(Alternative { patterns, form: Form::Entry(Named::new(class, names)), condition: None })
}

/// Reads one pattern; patterns inside it may be nested `levels` deep.
fn pattern(reader: &mut Reader<'_>, levels: usize) -> Result<Pattern, DecodeError> {
    let start = reader.at();
    let mut ahead = *reader;
    let Item::Pattern(code, mut payload) = ahead.item()? else {
        return value(reader).map(Pattern::Actual);
    };
    *reader = ahead;
    let levels = levels
        .checked_sub(1)
        .ok_or(DecodeError::new(start, "patterns are nested over 128 levels"))?;
    let pattern = match code {
        extension::KINDS => Ok(Pattern::Kinds(kinds(&mut payload)?)),
        extension::RANGE => range(&mut payload)?,
        extension::IN => is_in(&mut payload)?,
        extension::PREFIX => Pattern::prefix(value(&mut payload)?),
        extension::GLOB => Pattern::glob(payload.expect_str("a glob is text")?),
        extension::CLASS => Ok(Pattern::class(payload.expect_str("the name of a class is text")?)),
        extension::NOT => Pattern::not(self::pattern(&mut payload, levels)?),
        extension::ALL | extension::ANY => combination(&mut payload, code, levels)?,
        _ => return Err(DecodeError::new(start, "a rest stands where a pattern must")),
    };
    payload.finish()?;
    pattern.map_err(|_| {
        DecodeError::new(start, "a predicate that can not be made, such as a range without bounds")
    })
}

fn kinds(payload: &mut Reader<'_>) -> Result<KindSet, DecodeError> {
    let error = payload.error("a set of kinds is 16 bits, one for each kind that there is");
    let bits = payload.rest().try_into().map_err(|_| error)?;
    let bits = u16::from_be_bytes(bits);
    let kinds = KindSet::from_bits(bits);
    if kinds.bits() == bits { Ok(kinds) } else { Err(error) }
}

/// A predicate, or why it cannot be made; the outer error is of the bytes.
type Made = Result<Result<Pattern, PatternError>, DecodeError>;

fn range(payload: &mut Reader<'_>) -> Made {
    let error = payload.error("a range is an array of bound, included, bound, included");
    if payload.expect_list("a range is an array")? != 4 {
        return Err(error);
    }
    let mut bound = || {
        let value = value(payload)?;
        match (payload.item()?, value) {
            (Item::Bool(false), Value::Null) => Ok(Bound::Unbounded),
            (Item::Bool(false), value) => Ok(Bound::Excluded(value)),
            (Item::Bool(true), value) => Ok(Bound::Included(value)),
            _ => Err(error),
        }
    };
    let (low, high) = (bound()?, bound()?);
    Ok(Pattern::range(low, high))
}

fn is_in(payload: &mut Reader<'_>) -> Made {
    let count = payload.expect_list("a set of members is an array")?;
    let mut members = Vec::new();
    let mut previous: &[u8] = &[];
    for _ in 0..count {
        let start = payload.at();
        members.push(value(payload)?);
        previous = ascending(previous, payload.since(start), start)?;
    }
    let error = payload.error("two members of a set match each other");
    let pattern = Pattern::is_in(members);
    match &pattern {
        Ok(Pattern::Test(test)) if test.members_count() < count => Err(error),
        _ => Ok(pattern),
    }
}

fn combination(payload: &mut Reader<'_>, code: i8, levels: usize) -> Made {
    let count = payload.expect_list("a combination is an array of patterns")?;
    if count < 2 {
        return Err(payload.error("a combination is of two patterns or more"));
    }
    let mut patterns = Vec::new();
    for index in 0..count {
        let error =
            payload.error("a combination is not flat, or its formals are not one, in front");
        let pattern = pattern(payload, levels)?;
        let canonical = match &pattern {
            Pattern::Actual(_) => true,
            Pattern::Kinds(kinds) => {
                code == extension::ALL || (index == 0 && *kinds != KindSet::EMPTY)
            }
            Pattern::Test(test) => match test.node() {
                Node::All(_) => code != extension::ALL,
                Node::Any(_) => code != extension::ANY,
                _ => true,
            },
        };
        if !canonical {
            return Err(error);
        }
        patterns.push(pattern);
    }
    Ok(if code == extension::ALL { Pattern::all(patterns) } else { Pattern::any_of(patterns) })
}
