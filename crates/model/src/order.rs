//! Which of several matches an operation gets (T2).
//!
//! A rule can leave a choice: ages compare across shapes only from the first such call on, and `any` means any. So the answer is a list of the
//! matches that an operation may get. The model's own operations take the first of them, and a checker that watches an
//! engine accepts each.

use std::cmp::Ordering;
use std::ops::Bound;

use tupelo_tuple::{Class, Kind, Pattern, Value};

use crate::space::Stored;
use crate::transactions::View;
use crate::{Space, Template, Tuple};

/// In which order matches are preferred (T2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The oldest.
    #[default]
    Fifo,
    /// The youngest.
    Lifo,
    /// One by chance.
    Random,
    /// Whichever is cheapest for the engine.
    Any,
    /// One with the greatest field of this number.
    Max(usize),
    /// One with the least field of this number.
    Min(usize),
    /// An entry with the greatest field of this name.
    MaxOf(&'static str),
    /// An entry with the least field of this name.
    MinOf(&'static str),
}

impl Space {
    /// The matches that an operation with this order may get.
    pub(crate) fn choices(&self, template: &Template, order: Order, view: View) -> Vec<&Stored> {
        let oldest_first: Vec<&Stored> = self.seen(template, view).collect();
        match order {
            Order::Random | Order::Any => oldest_first,
            Order::Fifo => {
                let firsts = first_of_each_shape(oldest_first);
                unpreceded(&firsts, |one, other| self.age(one).1 < self.age(other).0)
            }
            Order::Lifo => {
                let firsts = first_of_each_shape(oldest_first.into_iter().rev().collect());
                unpreceded(&firsts, |one, other| self.age(one).0 > self.age(other).1)
            }
            Order::Max(index) => furthest(oldest_first, &|_| Some(index), Ordering::Greater),
            Order::Min(index) => furthest(oldest_first, &|_| Some(index), Ordering::Less),
            Order::MaxOf(name) => furthest(oldest_first, &named(name), Ordering::Greater),
            Order::MinOf(name) => furthest(oldest_first, &named(name), Ordering::Less),
        }
    }
}

/// The age of the youngest tuple, whatever comes. What a transaction has put is younger, to itself (X2).
pub(crate) const YOUNGEST: u64 = 1 << 62;

impl Space {
    /// From now on, ages compare across shapes.
    pub(crate) fn compare_ages(&mut self) {
        self.ages_since.get_or_insert(self.arrivals);
    }

    /// The oldest and the youngest that a tuple may be among those of other shapes. Those from before ages compared have
    /// no order.
    fn age(&self, stored: &Stored) -> (u64, u64) {
        match self.ages_since {
            Some(since) if stored.place > since || stored.ages.0 > YOUNGEST => stored.ages,
            Some(since) => (0, since),
            None if stored.ages.0 > YOUNGEST => stored.ages,
            None => (0, YOUNGEST),
        }
    }
}

/// Those that no other precedes for sure.
fn unpreceded<'s>(
    firsts: &[&'s Stored],
    precedes: impl Fn(&Stored, &Stored) -> bool,
) -> Vec<&'s Stored> {
    let is_first = |one: &&&'s Stored| !firsts.iter().any(|other| precedes(other, one));
    firsts.iter().filter(is_first).copied().collect()
}

/// Which field of a tuple an order goes by.
type Place<'p> = &'p dyn Fn(&Tuple) -> Option<usize>;

/// The field of an entry that has this name.
fn named(name: &str) -> impl Fn(&Tuple) -> Option<usize> {
    move |tuple| tuple.class()?.index_of(name)
}

fn furthest<'s>(matches: Vec<&'s Stored>, place: Place<'_>, wanted: Ordering) -> Vec<&'s Stored> {
    first_of_each_shape(extreme(matches, place, wanted))
}

/// The shape of a tuple: its arity and the kinds of its fields, and the class of an entry with its names.
pub(crate) fn shape(tuple: &Tuple) -> (&[u8], Vec<Kind>) {
    (tuple.class().map_or(&[], Class::encoding), tuple.iter().map(Value::kind).collect())
}

fn first_of_each_shape(matches: Vec<&Stored>) -> Vec<&Stored> {
    let mut first: Vec<&Stored> = Vec::new();
    for stored in matches {
        if first.iter().all(|other| shape(&other.tuple) != shape(&stored.tuple)) {
            first.push(stored);
        }
    }
    first
}

/// The matches whose field at `place` is not preceded by another, the oldest first. Fields compare as
/// in ranges (M5): numbers with numbers, text with text, bytes with bytes. Fields that ranges do not compare
/// stand in the order of their kinds. A tuple whose field has no order (NaN, `null`, no such field) comes
/// after all that have one.
fn extreme<'s>(matches: Vec<&'s Stored>, place: Place<'_>, wanted: Ordering) -> Vec<&'s Stored> {
    let field = |stored: &&Stored| {
        let field = place(&stored.tuple).and_then(|index| stored.tuple.get(index));
        field.filter(|field| has_order(field)).cloned()
    };
    let ordered: Vec<Value> = matches.iter().filter_map(field).collect();
    if ordered.is_empty() {
        return matches;
    }
    let precedes = |other: &Value, own: &Value| match wanted {
        Ordering::Greater => is_less(own, other),
        _ => is_less(other, own),
    };
    let unpreceded = |stored: &&Stored| {
        field(stored).is_some_and(|own| !ordered.iter().any(|other| precedes(other, &own)))
    };
    matches.into_iter().filter(unpreceded).collect()
}

fn is_less(a: &Value, b: &Value) -> bool {
    let kinds = (place_of_kind(a), place_of_kind(b));
    if kinds.0 != kinds.1 {
        return kinds.0 < kinds.1;
    }
    let below = Pattern::range(Bound::Unbounded, Bound::Excluded(b.clone()));
    below.is_ok_and(|below| below.matches(a))
}

/// Numbers come before decimals, text, bytes and timestamps (T2).
const fn place_of_kind(value: &Value) -> u8 {
    match value {
        Value::Int(_) | Value::BigInt(_) | Value::Float(_) => 0,
        Value::Decimal(_) => 1,
        Value::Str(_) => 2,
        Value::Bytes(_) => 3,
        _ => 4,
    }
}

fn has_order(value: &Value) -> bool {
    Pattern::range(Bound::Included(value.clone()), Bound::Unbounded).is_ok()
}
