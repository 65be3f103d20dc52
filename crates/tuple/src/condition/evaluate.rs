//! Asking a condition about a tuple.
//!
//! Where CEL gives an answer, this gives the same one, but for the order of `bool`s, which there is none of here (rule M5).
//! As there, `&&` and `||` have an answer when one side alone decides it, whatever the other side is.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ptr;
use std::rc::Rc;

use super::compile::{self, Arithmetic, Node, Order, TextTest};
use crate::number::compare_int_float;
use crate::{Class, Encoded, Field, Kind, TupleRef, TupleView, Value};

/// Why a condition cannot be decided for a tuple. The tuple is no match then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// There is no such field, index or key.
    Missing,
    /// An operator or function was given a wrong kind of value.
    Kind,
    /// A result is no number of 64 bits, or a divisor is zero.
    Range,
    /// A field is damaged.
    Damaged,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Missing => "there is no such field, index or key",
            Self::Kind => "an operator or function is not for values of this kind",
            Self::Range => "a result is no number of 64 bits, or a divisor is zero",
            Self::Damaged => "a field is damaged",
        })
    }
}

impl std::error::Error for Fault {}

/// A tuple, wherever it is.
pub(super) trait Fields {
    fn arity(&self) -> usize;
    fn at(&self, index: usize) -> Option<Field<'_>>;
    fn class(&self) -> Option<&'static Class>;
}

impl Fields for TupleView<'_> {
    fn arity(&self) -> usize {
        self.len()
    }

    fn at(&self, index: usize) -> Option<Field<'_>> {
        self.field(index)
    }

    fn class(&self) -> Option<&'static Class> {
        TupleView::class(self)
    }
}

impl Fields for TupleRef<'_> {
    fn arity(&self) -> usize {
        self.fields.len()
    }

    fn at(&self, index: usize) -> Option<Field<'_>> {
        self.fields.get(index).copied()
    }

    fn class(&self) -> Option<&'static Class> {
        self.class
    }
}

/// The result of a part of a condition.
enum Datum<'a> {
    /// A field as it stands in the tuple; one with an encoding is decoded when it is looked into.
    Field(Field<'a>),
    /// A value of a literal, or from inside a field.
    Value(Cow<'a, Value>),
    /// The value of a field, which a list may name many times.
    Shared(Rc<Value>),
    /// A list of the condition.
    List(Vec<Datum<'a>>),
    /// All fields.
    Tuple,
}

use Datum::{List, Tuple};

/// The answer of a condition.
pub(super) fn evaluate(
    root: &Node,
    names: &[(Box<str>, usize)],
    tuple: &dyn Fields,
) -> Result<bool, Fault> {
    Evaluation { names, tuple }.truth(root)
}

struct Evaluation<'a> {
    names: &'a [(Box<str>, usize)],
    tuple: &'a dyn Fields,
}

impl<'a> Evaluation<'a> {
    fn truth(&self, node: &'a Node) -> Result<bool, Fault> {
        match self.value(node)?.plain() {
            Some(Field::Bool(value)) => Ok(value),
            _ => Err(Fault::Kind),
        }
    }

    fn value(&self, node: &'a Node) -> Result<Datum<'a>, Fault> {
        Ok(match node {
            Node::Constant(value) => Datum::Value(Cow::Borrowed(value)),
            Node::Name(number) => self.named(*number)?,
            Node::Index(parts) => self.index(self.value(&parts[0])?, &self.value(&parts[1])?)?,
            Node::Select(inner, key) => select(&self.value(inner)?, key)?,
            Node::List(items) => {
                List(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?)
            }
            Node::If(parts) => {
                self.value(if self.truth(&parts[0])? { &parts[1] } else { &parts[2] })?
            }
            Node::Negate(inner) => match self.value(inner)?.plain() {
                Some(Field::Int(value)) => int(value.checked_neg())?,
                Some(Field::Float(value)) => Datum::Field(Field::Float(-value)),
                _ => return Err(Fault::Kind),
            },
            Node::Arithmetic(operator, parts) => {
                arithmetic(*operator, &self.value(&parts[0])?, &self.value(&parts[1])?)?
            }
            Node::Size(inner) => int(i64::try_from(self.size(&self.value(inner)?)?).ok())?,
            Node::Int(inner) => to_int(&self.value(inner)?)?,
            Node::Double(inner) => to_double(&self.value(inner)?)?,
            _ => Datum::Field(Field::Bool(self.test(node)?)),
        })
    }

    /// The parts that are true or false.
    fn test(&self, node: &'a Node) -> Result<bool, Fault> {
        let both = |parts: &'a [Node; 2]| Ok((self.value(&parts[0])?, self.value(&parts[1])?));
        match node {
            Node::Not(inner) => self.truth(inner).map(|value| !value),
            Node::And(parts) => self.either(parts, false),
            Node::Or(parts) => self.either(parts, true),
            Node::Equal(parts) => {
                let (left, right) = both(parts)?;
                self.equal(&left, &right)
            }
            Node::Order(order, parts) => {
                let (left, right) = both(parts)?;
                compare(&left, &right).map(|found| order.accepts(found))
            }
            Node::In(parts) => {
                let (item, list) = both(parts)?;
                // Once, and not for each item of the list.
                self.contains(&list, &self.decoded_once(item, &mut Vec::new())?)
            }
            Node::Text(look, parts) => {
                let (whole, part) = both(parts)?;
                look.finds(&whole, &part)
            }
            _ => Err(Fault::Kind),
        }
    }

    /// The value that `decides`, if either side has it; else the other one, if both sides have an answer.
    fn either(&self, parts: &'a [Node; 2], decides: bool) -> Result<bool, Fault> {
        let left = self.truth(&parts[0]);
        if left == Ok(decides) {
            return left;
        }
        match (left, self.truth(&parts[1])) {
            (_, Ok(right)) if right == decides => Ok(right),
            (Err(fault), _) | (_, Err(fault)) => Err(fault),
            (Ok(_), Ok(_)) => Ok(!decides),
        }
    }

    fn named(&self, number: usize) -> Result<Datum<'a>, Fault> {
        let name = self.names.get(number).map_or("", |(name, _)| name);
        match self.tuple.class() {
            None if compile::is_tuple(name) => Ok(Tuple),
            None => Err(Fault::Missing),
            Some(class) => {
                let index = class.index_of(name).ok_or(Fault::Missing)?;
                self.tuple.at(index).map(Datum::Field).ok_or(Fault::Damaged)
            }
        }
    }

    fn index(&self, list: Datum<'a>, key: &Datum<'a>) -> Result<Datum<'a>, Fault> {
        let place = || match key.plain() {
            Some(Field::Int(index)) => usize::try_from(index).map_err(|_| Fault::Missing),
            _ => Err(Fault::Kind),
        };
        match list {
            Tuple => self.tuple.at(place()?).map(Datum::Field).ok_or(Fault::Missing),
            List(mut items) => {
                let place = place()?;
                if place < items.len() { Ok(items.swap_remove(place)) } else { Err(Fault::Missing) }
            }
            other => match other.decoded()?.into_owned() {
                Value::List(items) | Value::Tuple(items) => {
                    let item = items.into_iter().nth(place()?).ok_or(Fault::Missing)?;
                    Ok(Datum::Value(Cow::Owned(item)))
                }
                Value::Map(map) => {
                    let key = key.decoded()?;
                    let pair = map.into_pairs().into_iter().find(|(known, _)| equal(known, &key));
                    pair.map(|(_, value)| Datum::Value(Cow::Owned(value))).ok_or(Fault::Missing)
                }
                _ => Err(Fault::Kind),
            },
        }
    }

    fn size(&self, datum: &Datum<'a>) -> Result<usize, Fault> {
        match datum {
            Tuple => return Ok(self.tuple.arity()),
            List(items) => return Ok(items.len()),
            _ => {}
        }
        match datum.plain() {
            Some(Field::Str(text)) => Ok(text.chars().count()),
            Some(Field::Bytes(bytes)) => Ok(bytes.len()),
            Some(_) => Err(Fault::Kind),
            None => match &*datum.decoded()? {
                Value::List(items) | Value::Tuple(items) => Ok(items.len()),
                Value::Map(map) => Ok(map.pairs().len()),
                _ => Err(Fault::Kind),
            },
        }
    }

    fn contains(&self, list: &Datum<'_>, item: &Datum<'_>) -> Result<bool, Fault> {
        match list {
            Tuple => self.any(&self.all()?, item),
            List(items) => self.any(items, item),
            other => {
                if other.plain().is_some() {
                    return Err(Fault::Kind);
                }
                let is_item = |one: &Value| self.equal(&Datum::Value(Cow::Borrowed(one)), item);
                match &*other.decoded()? {
                    Value::List(items) | Value::Tuple(items) => any(items.iter(), is_item),
                    Value::Map(map) => any(map.pairs().iter().map(|(key, _)| key), is_item),
                    _ => Err(Fault::Kind),
                }
            }
        }
    }

    fn any(&self, items: &[Datum<'_>], item: &Datum<'_>) -> Result<bool, Fault> {
        any(items.iter(), |one| self.equal(one, item))
    }

    /// The same, with the values of the fields in it that have an encoding. However often a list names a field, it is decoded
    /// once, and there is one value of it.
    fn decoded_once(
        &self,
        datum: Datum<'a>,
        known: &mut Vec<(Encoded<'a>, Rc<Value>)>,
    ) -> Result<Datum<'a>, Fault> {
        let items = match datum {
            Datum::Field(Field::Encoded(encoded)) => {
                return shared(encoded, known).map(Datum::Shared);
            }
            List(items) => items,
            Tuple => self.all()?,
            other => return Ok(other),
        };
        let items = items.into_iter().map(|item| self.decoded_once(item, known));
        Ok(List(items.collect::<Result<_, _>>()?))
    }

    /// All fields, as a list.
    fn all(&self) -> Result<Vec<Datum<'a>>, Fault> {
        let field = |index| self.tuple.at(index).map(Datum::Field).ok_or(Fault::Damaged);
        (0..self.tuple.arity()).map(field).collect()
    }

    /// Lists of the condition are compared item by item: they may name a long field many times, and are never made into one
    /// value.
    fn equal(&self, left: &Datum<'_>, right: &Datum<'_>) -> Result<bool, Fault> {
        match (left, right) {
            (Tuple, other) | (other, Tuple) => self.equal_items(&self.all()?, other),
            (List(items), other) | (other, List(items)) => self.equal_items(items, other),
            _ => match (left.plain(), right.plain()) {
                (Some(left), Some(right)) => Ok(equal_plain(&left, &right)),
                _ => Ok(equal(&*left.decoded()?, &*right.decoded()?)),
            },
        }
    }

    /// Whether these are the items of `other`.
    fn equal_items(&self, items: &[Datum<'_>], other: &Datum<'_>) -> Result<bool, Fault> {
        match other {
            Tuple => all_equal(items, &self.all()?, |a, b| self.equal(a, b)),
            List(others) => all_equal(items, others, |a, b| self.equal(a, b)),
            other if other.plain().is_some() => Ok(false),
            other => match &*other.decoded()? {
                Value::List(others) | Value::Tuple(others) => {
                    all_equal(items, others, |a, b| self.equal(a, &Datum::Value(Cow::Borrowed(b))))
                }
                _ => Ok(false),
            },
        }
    }
}

/// Whether one of `items` is the sought value.
fn any<T>(
    items: impl Iterator<Item = T>,
    is_it: impl Fn(T) -> Result<bool, Fault>,
) -> Result<bool, Fault> {
    for item in items {
        if is_it(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether both have the same number of items, and items at the same places are equal.
fn all_equal<A, B>(
    left: &[A],
    right: &[B],
    equal: impl Fn(&A, &B) -> Result<bool, Fault>,
) -> Result<bool, Fault> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (a, b) in left.iter().zip(right) {
        if !equal(a, b)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Datum<'_> {
    /// The field, unless it has an encoding or is no field.
    fn plain(&self) -> Option<Field<'_>> {
        match self {
            Self::Field(Field::Encoded(_)) | Self::Shared(_) | List(_) | Tuple => None,
            Self::Field(field) => Some(*field),
            Self::Value(value) => match value.as_field(&[]) {
                Field::Encoded(_) => None,
                field => Some(field),
            },
        }
    }

    /// The value of a field.
    fn decoded(&self) -> Result<Cow<'_, Value>, Fault> {
        match self {
            Self::Field(field) => decode(field).map(Cow::Owned),
            Self::Value(value) => Ok(Cow::Borrowed(value)),
            Self::Shared(value) => Ok(Cow::Borrowed(value)),
            List(_) | Tuple => Err(Fault::Kind),
        }
    }
}

/// The value of a field.
fn decode(field: &Field<'_>) -> Result<Value, Fault> {
    #[cfg(test)]
    tests::DECODED.set(tests::DECODED.get() + 1);
    Value::from_field(field).map_err(|_| Fault::Damaged)
}

/// The value of a field, which is `known` from then on.
fn shared<'a>(
    encoded: Encoded<'a>,
    known: &mut Vec<(Encoded<'a>, Rc<Value>)>,
) -> Result<Rc<Value>, Fault> {
    let is_it = |(other, _): &&(Encoded<'_>, Rc<Value>)| {
        ptr::eq(other.head, encoded.head) && ptr::eq(other.body, encoded.body)
    };
    if let Some((_, value)) = known.iter().find(is_it) {
        return Ok(Rc::clone(value));
    }
    let value = Rc::new(decode(&Field::Encoded(encoded))?);
    known.push((encoded, Rc::clone(&value)));
    Ok(value)
}

impl Order {
    /// Whether two that compare so are in this order; `None` is how NaN compares.
    fn accepts(self, found: Option<Ordering>) -> bool {
        found.is_some_and(|found| match self {
            Self::Less => found.is_lt(),
            Self::LessOrEqual => found.is_le(),
            Self::Greater => found.is_gt(),
            Self::GreaterOrEqual => found.is_ge(),
        })
    }
}

fn int<'a>(value: Option<i64>) -> Result<Datum<'a>, Fault> {
    value.map(|value| Datum::Field(Field::Int(value))).ok_or(Fault::Range)
}

/// How two values order (rule M5); `None` if one is NaN.
fn compare(left: &Datum<'_>, right: &Datum<'_>) -> Result<Option<Ordering>, Fault> {
    match (left.plain(), right.plain()) {
        (Some(Field::Int(a)), Some(Field::Int(b))) => Ok(Some(a.cmp(&b))),
        (Some(Field::Float(a)), Some(Field::Float(b))) => Ok(a.partial_cmp(&b)),
        (Some(Field::Int(a)), Some(Field::Float(b))) => Ok(compare_int_float(a, b)),
        (Some(Field::Float(a)), Some(Field::Int(b))) => {
            Ok(compare_int_float(b, a).map(Ordering::reverse))
        }
        (Some(Field::Str(a)), Some(Field::Str(b))) => Ok(Some(a.cmp(b))),
        (Some(Field::Bytes(a)), Some(Field::Bytes(b))) => Ok(Some(a.cmp(b))),
        (Some(_), Some(_)) => Err(Fault::Kind),
        _ => {
            let (left, right) = (left.decoded()?, right.decoded()?);
            if family(left.kind()).is_none() || family(left.kind()) != family(right.kind()) {
                return Err(Fault::Kind);
            }
            Ok(order(&left, &right))
        }
    }
}

/// The kind by which values of this kind are compared; none has no order.
fn family(kind: Kind) -> Option<Kind> {
    match kind {
        Kind::Int | Kind::Float => Some(Kind::Int),
        Kind::Str | Kind::Bytes | Kind::Decimal | Kind::Timestamp => Some(kind),
        _ => None,
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    left.with_field(|field| crate::test::compare(&field, right)).ok().flatten()
}

/// Whether two fields without an encoding are equal.
fn equal_plain(left: &Field<'_>, right: &Field<'_>) -> bool {
    match (left, right) {
        (Field::Int(a), Field::Float(b)) | (Field::Float(b), Field::Int(a)) => {
            compare_int_float(*a, *b) == Some(Ordering::Equal)
        }
        #[expect(clippy::float_cmp, reason = "this is what == means there: NaN equals nothing")]
        (Field::Float(a), Field::Float(b)) => a == b,
        _ => left.same(right),
    }
}

/// Whether two values are equal: numbers as numbers, lists and tuples item by item, all else as actuals (rule M2).
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Int(_) | Value::BigInt(_) | Value::Float(_), _) => {
            family(right.kind()) == Some(Kind::Int) && order(left, right) == Some(Ordering::Equal)
        }
        (Value::List(a) | Value::Tuple(a), Value::List(b) | Value::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        _ => left.same_decoded(right),
    }
}

fn arithmetic<'a>(
    operator: Arithmetic,
    left: &Datum<'_>,
    right: &Datum<'_>,
) -> Result<Datum<'a>, Fault> {
    match (left.plain(), right.plain()) {
        (Some(Field::Int(a)), Some(Field::Int(b))) => int(match operator {
            Arithmetic::Add => a.checked_add(b),
            Arithmetic::Subtract => a.checked_sub(b),
            Arithmetic::Multiply => a.checked_mul(b),
            Arithmetic::Divide => a.checked_div(b),
            Arithmetic::Remainder => a.checked_rem(b),
        }),
        (Some(Field::Float(a)), Some(Field::Float(b))) => {
            Ok(Datum::Field(Field::Float(match operator {
                Arithmetic::Add => a + b,
                Arithmetic::Subtract => a - b,
                Arithmetic::Multiply => a * b,
                Arithmetic::Divide => a / b,
                Arithmetic::Remainder => return Err(Fault::Kind),
            })))
        }
        _ => Err(Fault::Kind),
    }
}

fn to_int<'a>(datum: &Datum<'_>) -> Result<Datum<'a>, Fault> {
    /// 2^63: the floats below it, and from its negative on, have a whole part of 64 bits.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    match datum.plain() {
        Some(Field::Int(value)) => int(Some(value)),
        #[expect(clippy::cast_possible_truncation, reason = "the whole part is meant")]
        Some(Field::Float(value)) => {
            int((-BEYOND..BEYOND).contains(&value).then_some(value as i64))
        }
        _ => Err(Fault::Kind),
    }
}

fn to_double<'a>(datum: &Datum<'_>) -> Result<Datum<'a>, Fault> {
    match datum.plain() {
        #[expect(clippy::cast_precision_loss, reason = "the nearest float is meant")]
        Some(Field::Int(value)) => Ok(Datum::Field(Field::Float(value as f64))),
        Some(Field::Float(value)) => Ok(Datum::Field(Field::Float(value))),
        _ => Err(Fault::Kind),
    }
}

/// The value of a key in a map, or of a field in an entry.
fn select<'a>(datum: &Datum<'_>, key: &Value) -> Result<Datum<'a>, Fault> {
    let found = match datum.decoded()?.into_owned() {
        Value::Map(map) => {
            map.into_pairs().into_iter().find(|(known, _)| known == key).map(|(_, value)| value)
        }
        Value::Entry(entry) => {
            let (_, _, fields) = entry.into_parts();
            let is_key = |name: &String| matches!(key, Value::Str(key) if key == name);
            fields.into_iter().find(|(name, _)| is_key(name)).map(|(_, value)| value)
        }
        _ => return Err(Fault::Kind),
    };
    found.map(|value| Datum::Value(Cow::Owned(value))).ok_or(Fault::Missing)
}

impl TextTest {
    fn finds(self, whole: &Datum<'_>, part: &Datum<'_>) -> Result<bool, Fault> {
        let (Some(Field::Str(whole)), Some(Field::Str(part))) = (whole.plain(), part.plain())
        else {
            return Err(Fault::Kind);
        };
        Ok(match self {
            Self::StartsWith => whole.starts_with(part),
            Self::EndsWith => whole.ends_with(part),
            Self::Contains => whole.contains(part),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::{Condition, Tuple};

    thread_local! {
        /// Fields that this thread has decoded.
        pub(super) static DECODED: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn what_is_looked_for_in_a_list_is_decoded_once_however_long_the_list_is_b2_m9() {
        let ones = vec!["list(1)"; 1_000].join(", ");
        let tuple: Tuple = format!("list(1, 2), list({ones}), list(1, 2)").parse().unwrap();
        for (condition, fields) in [
            ("f[0] in f[1]", 2),
            ("[f[0]] in f[1]", 2),
            ("[f[0], [f[2], f[0]], f[0]] in f[1]", 3),
            ("f in f[1]", 4),
        ] {
            let (is_in, before) = (Condition::new(condition).unwrap(), DECODED.get());
            assert_eq!(tuple.with_ref(|tuple| is_in.holds_ref(&tuple)), Ok(Ok(false)));
            assert_eq!(DECODED.get() - before, fields, "{condition}");
        }
    }
}
