//! Functions for fuzzers: any bytes go in, and what must hold for all of them is asserted.
//!
//! The tests drive them with a seeded mutator; a coverage-guided fuzzer can call them as they are.

use std::fmt::{Debug, Display};
use std::ops::Bound::{Included, Unbounded};
use std::str::FromStr;

use crate::{
    Condition, Encoded, Field, Kind, KindSet, ParseError, Pattern, Template, TemplateRef, Tuple,
    TupleView, Value, hash,
};

/// Reads `bytes` as every kind of encoding. An accepted encoding is canonical (V4), is the same as itself (M2), and is
/// printed such that it can be parsed back.
///
/// # Panics
///
/// If one of that does not hold, and only then.
pub fn decode(bytes: &[u8]) {
    if let Ok(value) = Value::decode(bytes) {
        assert_eq!(value.encode().as_deref(), Ok(bytes), "{value:?} has two encodings");
        assert!(value.same(&value), "{value:?} is not the same as itself");
        survives_text(&value);
    }
    if let Ok(tuple) = Tuple::decode(bytes) {
        assert_eq!(tuple.encode().as_deref(), Ok(bytes), "{tuple:?} has two encodings");
        assert!(Template::of_actuals(&tuple).matches(&tuple), "{tuple:?} does not match itself");
        survives_text(&tuple);
    }
    if let Ok(template) = Template::decode(bytes) {
        assert_eq!(template.encode().as_deref(), Ok(bytes), "{template:?} has two encodings");
        survives_text(&template);
    }
    damaged_fields(bytes);
    damaged_image(bytes);
}

/// Reads `bytes`, if they are text, as every form of the notation. An accepted text is printed such that it is parsed
/// to the same again, and encoded such that it is decoded to the same.
///
/// # Panics
///
/// If one of that does not hold, and only then.
pub fn parse(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for value in [text.parse(), Value::parse_word(text)].into_iter().flatten() {
        let encoding = value.encode();
        assert_eq!(encoding.map(|bytes| Value::decode(&bytes)), Ok(Ok(value.clone())));
        survives_text(&value);
    }
    words_agree(text);
    if let Ok(tuple) = text.parse::<Tuple>() {
        survives_text(&tuple);
    }
    if let Ok(template) = text.parse::<Template>() {
        if let Ok(encoding) = template.encode() {
            assert_eq!(Template::decode(&encoding).as_ref(), Ok(&template), "{template}");
        }
        survives_text(&template);
    }
    for pattern in [text.parse(), Pattern::parse_word(text)].into_iter().flatten() {
        survives_text(&pattern);
        let itself = Value::from(text);
        assert!(!pattern.matches(&itself) || kinds(&pattern).contains(Kind::Str), "{pattern}");
    }
}

/// Reads `bytes`, if they are text, as a condition, and asks an accepted one about the tuple in `image`, which may be
/// damaged. The condition has one answer, and is a part of templates that survive their text and their encoding.
///
/// # Panics
///
/// If one of that does not hold, and only then.
pub fn condition(bytes: &[u8], image: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(condition) = Condition::new(text) else { return };
    let view = TupleView::new(&Kind::ALL, image, false);
    assert_eq!(condition.holds(&view), condition.holds(&view), "{condition}");
    if let Ok(template) = Template::new(Vec::new()).with_condition(&condition) {
        let encoding = template.encode();
        assert_eq!(encoding.map(|bytes| Template::decode(&bytes)), Ok(Ok(template.clone())));
        survives_text(&template);
    }
}

/// Asserts that a word that asks for one value, and has no sign of the notation before it, is that value in a tuple.
fn words_agree(word: &str) {
    let has_sign = word.starts_with(['=', '(']);
    if let (Ok(Pattern::Actual(sought)), false) = (Pattern::parse_word(word), has_sign) {
        assert_eq!(Value::parse_word(word), Ok(sought), "{word}");
    }
}

/// The kinds that a field can have that the pattern matches.
fn kinds(pattern: &Pattern) -> KindSet {
    match pattern {
        Pattern::Actual(value) => KindSet::of(value.kind()),
        Pattern::Kinds(kinds) => *kinds,
        Pattern::Test(test) => test.kinds(),
    }
}

/// Asserts that a printed template is parsed back, unless it is nested deeper than the notation goes.
fn survives_text<T>(value: &T)
where
    T: Debug + Display + FromStr<Err = ParseError> + PartialEq,
{
    let text = value.to_string();
    match text.parse::<T>() {
        Ok(again) => assert_eq!(again, *value, "printed as {text}"),
        Err(error) => assert!(error.expected().starts_with("at most"), "{text}: {error}"),
    }
}

/// Compares, hashes and tests fields whose encodings are damaged: another process may have written them
/// (C5).
fn damaged_fields(bytes: &[u8]) {
    let (head, body) = bytes.split_at(bytes.len() / 2);
    for kind in Kind::ALL {
        let whole = Field::Encoded(Encoded::whole(kind, bytes));
        let split = Field::Encoded(Encoded { kind, head, body });
        assert!(whole.same(&split), "equal bytes are the same");
        if Value::from_field(&whole).is_ok() {
            assert_eq!(hash::field(&whole), hash::field(&split), "the split shows in the hash");
        }
        hash::field(&whole);
        if let Ok(Pattern::Test(test)) = Pattern::range(Included(0.into()), Unbounded) {
            test.matches(&whole);
        }
    }
}

/// Reads the bytes as the image of a tuple of every kind of field.
fn damaged_image(bytes: &[u8]) {
    for wide in [false, true] {
        let view = TupleView::new(&Kind::ALL, bytes, wide);
        let _ = view.to_tuple();
        let _ = view.to_string();
        TemplateRef::beginning(&[]).matches(&view);
    }
}
