//! Printing values, tuples, patterns and templates, such that they are parsed back to the same.

use std::fmt::{self, Display, Formatter};
use std::ops::Bound;

use super::quote::{write_bytes, write_text};
use super::value::KIND_WORDS;
use crate::template::Alternative;
use crate::test::Node;
use crate::{
    Array, Condition, Entry, Field, Form, KindSet, Named, Opaque, Pattern, PatternRef, Shape,
    Template, TemplateRef, Test, Tuple, TupleView, Value,
};

/// What stands in for a field whose encoding is damaged. It is not parsed back.
const DAMAGED: &str = "<damaged>";

/// Writes the items with ", " between them.
fn write_joined<T>(
    out: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write(out, item)?;
    }
    Ok(())
}

impl Display for Value {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Int(value) => write!(out, "{value}"),
            Self::BigInt(value) => write!(out, "{value}"),
            Self::Float(value) => write_float(out, *value),
            Self::Str(text) => write_text(out, text),
            Self::Bytes(bytes) => write_bytes(out, bytes),
            Self::Decimal(value) => write!(out, "decimal(\"{value}\")"),
            Self::Timestamp(value) => write!(out, "timestamp(\"{value}\")"),
            Self::Uuid(value) => write_uuid(out, value),
            Self::Array(array) => write_array(out, array),
            Self::List(items) => write_call(out, "list", items),
            Self::Tuple(items) => write_call(out, "tuple", items),
            Self::Map(map) => {
                out.write_str("map(")?;
                write_joined(out, map.ordered(), |out, (key, value)| {
                    write!(out, "{key}: {value}")
                })?;
                out.write_str(")")
            }
            Self::Entry(entry) => write_entry(out, entry),
            Self::Opaque(object) => write_opaque(out, object),
        }
    }
}

fn write_call(out: &mut Formatter<'_>, name: &str, items: &[Value]) -> fmt::Result {
    write!(out, "{name}(")?;
    write_joined(out, items, |out, item| item.fmt(out))?;
    out.write_str(")")
}

fn write_float(out: &mut Formatter<'_>, value: f64) -> fmt::Result {
    if value.is_nan() && value.to_bits() == f64::NAN.to_bits() {
        out.write_str("float(\"nan\")")
    } else if value.is_nan() {
        write!(out, "float(\"nan:{:016x}\")", value.to_bits())
    } else if value.is_infinite() {
        write!(out, "float(\"{value}\")")
    } else {
        // The shortest digits that give the same float, always with a point or an exponent.
        write!(out, "{value:?}")
    }
}

fn write_uuid(out: &mut Formatter<'_>, value: &[u8; 16]) -> fmt::Result {
    out.write_str("uuid(\"")?;
    for (index, byte) in value.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.write_str("-")?;
        }
        write!(out, "{byte:02x}")?;
    }
    out.write_str("\")")
}

fn write_array(out: &mut Formatter<'_>, array: &Array) -> fmt::Result {
    write!(out, "array(\"{}\", list(", array.dtype().name())?;
    write_joined(out, array.shape(), |out, size| size.fmt(out))?;
    out.write_str("), ")?;
    write_bytes(out, array.data())?;
    out.write_str(")")
}

fn write_entry(out: &mut Formatter<'_>, entry: &Entry) -> fmt::Result {
    let bases = entry.bases().iter().map(String::as_str);
    let fields = entry.fields().iter().map(|(name, value)| (name.as_str(), value));
    write_class(out, entry.name(), bases)?;
    write_named(out, fields)
}

/// Writes the name of a class, and its bases in parentheses, if it has any.
fn write_class<'a>(
    out: &mut Formatter<'_>,
    name: &str,
    bases: impl ExactSizeIterator<Item = &'a str>,
) -> fmt::Result {
    write_name(out, name)?;
    if bases.len() == 0 {
        return Ok(());
    }
    out.write_str("(")?;
    write_joined(out, bases, write_name)?;
    out.write_str(")")
}

/// Writes fields by their names, in braces.
fn write_named<'a, T: Display>(
    out: &mut Formatter<'_>,
    fields: impl IntoIterator<Item = (&'a str, T)>,
) -> fmt::Result {
    out.write_str("{")?;
    write_joined(out, fields, |out, (name, value)| {
        write_name(out, name)?;
        write!(out, ": {value}")
    })?;
    out.write_str("}")
}

/// Writes a name: a word if it can be one and means nothing else, or else in quotes.
fn write_name(out: &mut Formatter<'_>, name: &str) -> fmt::Result {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let is_word = name.chars().all(|one| one.is_ascii_alphanumeric() || matches!(one, '_' | '.'));
    let means_more = KIND_WORDS.contains(&name) || matches!(name, "in" | "true" | "false" | "null");
    if begins && is_word && !means_more { out.write_str(name) } else { write_text(out, name) }
}

fn write_opaque(out: &mut Formatter<'_>, object: &Opaque) -> fmt::Result {
    out.write_str("opaque(")?;
    write_text(out, &object.codec)?;
    out.write_str(", ")?;
    write_text(out, &object.type_name)?;
    out.write_str(", ")?;
    write_bytes(out, &object.bytes)?;
    out.write_str(")")
}

impl Display for Field<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match Value::from_field(self) {
            Ok(value) => value.fmt(out),
            Err(_) => out.write_str(DAMAGED),
        }
    }
}

impl Display for Tuple {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Some(class) = self.class() else { return write_call(out, "", self) };
        write_class(out, class.name(), class.bases())?;
        write_named(out, class.fields().zip(self.iter()))
    }
}

impl Display for Shape {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let kinds = self.kinds.iter().map(|kind| kind.name());
        if let Some(class) = self.class {
            write_name(out, class.name())?;
            return write_named(out, class.fields().zip(kinds));
        }
        write!(out, "({})", kinds.collect::<Vec<_>>().join(", "))
    }
}

/// A field, or that it is damaged.
struct Seen<'a>(Option<Field<'a>>);

impl Display for Seen<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(field) => field.fmt(out),
            None => out.write_str(DAMAGED),
        }
    }
}

impl Display for TupleView<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let fields = (0..self.len()).map(|index| Seen(self.field(index)));
        if let Some(class) = self.class() {
            write_class(out, class.name(), class.bases())?;
            return write_named(out, class.fields().zip(fields));
        }
        out.write_str("(")?;
        write_joined(out, fields, |out, field| field.fmt(out))?;
        out.write_str(")")
    }
}

/// How tightly a printed part holds together: a part that holds less tightly than its place is put in parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tightness {
    Any,
    All,
    Unary,
}

fn write_kinds(out: &mut Formatter<'_>, kinds: KindSet, place: Tightness) -> fmt::Result {
    if kinds == KindSet::ALL {
        return out.write_str("_");
    }
    if kinds == KindSet::EMPTY {
        return out.write_str(":none");
    }
    let enclosed = kinds.single().is_none() && place > Tightness::Any;
    out.write_str(if enclosed { "(" } else { "" })?;
    for (index, kind) in kinds.iter().enumerate() {
        write!(out, "{}:{}", if index > 0 { "|" } else { "" }, kind.name())?;
    }
    out.write_str(if enclosed { ")" } else { "" })
}

fn write_test(out: &mut Formatter<'_>, test: &Test, place: Tightness) -> fmt::Result {
    match test.node() {
        Node::Actual(actual) => actual.value().fmt(out),
        Node::Kinds(kinds) => write_kinds(out, *kinds, place),
        Node::Range(range) => write_range(out, range.low(), range.high()),
        Node::In(members) => {
            out.write_str("in {")?;
            write_joined(out, members.by_bytes(), |out, (_, member)| member.fmt(out))?;
            out.write_str("}")
        }
        Node::Prefix(prefix) => write!(out, "prefix:{}", prefix.value()),
        Node::Glob(glob) => {
            out.write_str("glob:")?;
            write_text(out, glob.source())
        }
        Node::Class(name) => {
            out.write_str(":entry(")?;
            write_name(out, name)?;
            out.write_str(")")
        }
        Node::Not(inner) => {
            if let Node::Actual(actual) = inner.node() {
                return write!(out, "!= {}", actual.value());
            }
            out.write_str("!")?;
            write_test(out, inner, Tightness::Unary)
        }
        Node::All(tests) => write_tests(out, tests, Tightness::All, place),
        Node::Any(tests) => write_tests(out, tests, Tightness::Any, place),
    }
}

/// Writes a combination that holds together as tightly as `own`, at a place that asks for `place`.
fn write_tests(
    out: &mut Formatter<'_>,
    tests: &[Test],
    own: Tightness,
    place: Tightness,
) -> fmt::Result {
    let enclosed = own < place;
    out.write_str(if enclosed { "(" } else { "" })?;
    for (index, test) in tests.iter().enumerate() {
        if index > 0 {
            out.write_str(if own == Tightness::All { " & " } else { " | " })?;
        }
        // Formals in an OR merge with it; everything else in a combination holds more tightly.
        write_test(out, test, own)?;
    }
    out.write_str(if enclosed { ")" } else { "" })
}

fn write_range(out: &mut Formatter<'_>, low: &Bound<Value>, high: &Bound<Value>) -> fmt::Result {
    use Bound::{Excluded, Included, Unbounded};
    match (low, high) {
        (Included(low), Included(high)) => write!(out, "{low}..{high}"),
        (Excluded(low), Included(high)) => write!(out, "{low}<..{high}"),
        (Included(low), Excluded(high)) => write!(out, "{low}..<{high}"),
        (Excluded(low), Excluded(high)) => write!(out, "{low}<..<{high}"),
        (Included(low), Unbounded) => write!(out, ">= {low}"),
        (Excluded(low), Unbounded) => write!(out, "> {low}"),
        (Unbounded, Included(high)) => write!(out, "<= {high}"),
        (Unbounded, Excluded(high)) => write!(out, "< {high}"),
        (Unbounded, Unbounded) => out.write_str("_"),
    }
}

impl Display for Test {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write_test(out, self, Tightness::Any)
    }
}

impl Display for Pattern {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Actual(value) => value.fmt(out),
            Self::Kinds(kinds) => write_kinds(out, *kinds, Tightness::Any),
            Self::Test(test) => test.fmt(out),
        }
    }
}

impl Display for PatternRef<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Actual(field) => field.fmt(out),
            Self::Kinds(kinds) => write_kinds(out, *kinds, Tightness::Any),
            Self::Test(test) => test.fmt(out),
        }
    }
}

fn write_template<T: Display>(
    out: &mut Formatter<'_>,
    patterns: &[T],
    form: Form<&Named>,
    condition: Option<&Condition>,
) -> fmt::Result {
    write_alternative(out, patterns, form)?;
    let Some(condition) = condition else { return Ok(()) };
    out.write_str(" where ")?;
    write_text(out, condition.text())
}

fn write_alternative<T: Display>(
    out: &mut Formatter<'_>,
    patterns: &[T],
    form: Form<&Named>,
) -> fmt::Result {
    if let Form::Entry(named) = form {
        write_name(out, named.class())?;
        return write_named(out, named.fields().iter().map(String::as_str).zip(patterns));
    }
    out.write_str("(")?;
    write_joined(out, patterns, |out, pattern| pattern.fmt(out))?;
    out.write_str(match (form, patterns.is_empty()) {
        (Form::Rest, true) => "...)",
        (Form::Rest, false) => ", ...)",
        _ => ")",
    })
}

impl Display for Alternative {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write_template(out, &self.patterns, self.form.as_ref(), self.condition.as_ref())
    }
}

impl Display for TemplateRef<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write_template(out, self.patterns, self.form, self.condition)
    }
}

impl Display for Template {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for (index, alternative) in self.alternatives().iter().enumerate() {
            write!(out, "{}{alternative}", if index > 0 { " | " } else { "" })?;
        }
        Ok(())
    }
}
