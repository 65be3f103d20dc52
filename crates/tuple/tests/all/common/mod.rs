//! Random values, patterns and tuples. Those that break naive code come up by name: chance alone
//! rarely draws a NaN.

use std::ops::Bound;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use tupelo_tuple::{
    Alternative, Array, Condition, DType, Decimal, Entry, Form, Kind, KindSet, Map, Opaque,
    Pattern, Template, Timestamp, Tuple, Value,
};

fn int() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-40_i64..140).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i128>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (0_u32..127, -1_i128..2).prop_map(|(shift, by)| Value::from((1_i128 << shift) + by)),
        (0_u32..127, -1_i128..2).prop_map(|(shift, by)| Value::from(-(1_i128 << shift) + by)),
        ("-?[1-9][0-9]{0,60}").prop_map(|digits| Value::parse_int(&digits).unwrap()),
    ]
}

fn float() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<f64>(),
        any::<u64>().prop_map(f64::from_bits),
        (-3_i32..4).prop_map(f64::from),
        Just(f64::NAN),
        Just(-f64::NAN),
        Just(f64::INFINITY),
        Just(-0.0),
        Just(9_007_199_254_740_993.0),
    ]
    .prop_map(Value::Float)
}

fn decimal() -> impl Strategy<Value = Value> {
    (any::<bool>(), "[0-9]{1,6}", -6_i64..6).prop_map(|(negative, digits, exponent)| {
        Value::Decimal(Decimal::new(negative, &digits, exponent).unwrap())
    })
}

fn timestamp() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-62_135_596_800_i128..253_402_300_800, 0..1_000_000_000_i128)
            .prop_map(|(seconds, ns)| seconds * 1_000_000_000 + ns),
        (-2_i128..1 << 35).prop_map(|seconds| seconds * 1_000_000_000),
    ]
    .prop_map(|ns| Value::Timestamp(Timestamp::from_ns(ns).unwrap()))
}

fn array() -> impl Strategy<Value = Value> {
    (prop::sample::select(DType::ALL), vec(0_u64..4, 0..4)).prop_flat_map(|(dtype, shape)| {
        let elements: u64 = shape.iter().product();
        let bytes = usize::try_from(elements).unwrap() * dtype.item_bytes();
        vec(any::<u8>(), bytes)
            .prop_map(move |data| Value::Array(Array::new(dtype, &shape, data).unwrap()))
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{0,2}", "\\PC{0,40}", any::<String>()]
}

/// A value without parts.
fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        int(),
        float(),
        text().prop_map(Value::Str),
        vec(any::<u8>(), 0..300).prop_map(Value::Bytes),
        decimal(),
        timestamp(),
        any::<[u8; 16]>().prop_map(Value::Uuid),
        array(),
        (text(), text(), vec(any::<u8>(), 0..8)).prop_map(|(codec, type_name, bytes)| {
            Value::Opaque(Opaque { codec, type_name, bytes })
        }),
    ]
}

/// A value of any kind, containers nested a few levels deep.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..20).prop_map(Value::List),
            vec(inner.clone(), 0..5).prop_map(Value::Tuple),
            vec((inner.clone(), inner.clone()), 0..5).prop_map(|pairs| Value::Map(map(pairs))),
            (text(), vec(text(), 0..3), vec((text(), inner), 0..5)).prop_map(
                |(name, bases, mut fields)| {
                    fields.sort_by(|(a, _), (b, _)| a.cmp(b));
                    fields.dedup_by(|(a, _), (b, _)| a == b);
                    Value::Entry(Entry::new(name, bases, fields).unwrap())
                }
            ),
        ]
    })
}

/// A map of those pairs whose key is not there yet.
fn map(pairs: Vec<(Value, Value)>) -> Map {
    let mut distinct: Vec<(Value, Value)> = Vec::new();
    for (key, value) in pairs {
        if !distinct.iter().any(|(other, _)| other.same(&key)) {
            distinct.push((key, value));
        }
    }
    Map::in_order(distinct).unwrap()
}

pub(crate) fn tuple() -> impl Strategy<Value = Tuple> {
    prop_oneof![
        4 => vec(value(), 0..6).prop_map(Tuple::from),
        1 => (class(), select(BASES), btree_map(select(FIELDS), value(), 0..4)).prop_map(
            |(name, bases, fields)| {
                let bases = bases.iter().map(|base| (*base).to_owned());
                let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
                Tuple::from_entry(Entry::new(name, bases, fields).unwrap()).unwrap()
            }
        ),
    ]
}

/// Few names, so that templates and entries meet; some of them mean something else without quotes.
const CLASSES: &[&str] = &["Job", "Task", "list", "in", "a b", "\"", ""];
const BASES: &[&[&str]] = &[&[], &["Task"], &["Task", "my base"]];
const FIELDS: &[&str] = &["id", "status", "a", "b", "null", "7", "(", ""];

fn class() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just("Job"), 1 => select(CLASSES)]
}

fn kinds() -> impl Strategy<Value = KindSet> {
    prop_oneof![
        prop::sample::select(&Kind::ALL[..]).prop_map(KindSet::of),
        any::<u16>().prop_map(KindSet::from_bits),
    ]
}

/// Two values that a range can go between, and whether each is included, open or absent.
fn range() -> impl Strategy<Value = Pattern> {
    let number = || prop_oneof![int(), float()];
    let family = |values: BoxedStrategy<Value>| (values.clone(), values);
    let pairs = Union::new([
        family(number().boxed()).boxed(),
        family(decimal().boxed()).boxed(),
        family(timestamp().boxed()).boxed(),
        family(text().prop_map(Value::Str).boxed()).boxed(),
        family(vec(any::<u8>(), 0..4).prop_map(Value::Bytes).boxed()).boxed(),
    ]);
    let bound = |how, value| match how {
        0 => Bound::Included(value),
        1 => Bound::Excluded(value),
        _ => Bound::Unbounded,
    };
    (pairs, 0..3_u8, 0..3_u8).prop_map(move |((a, b), low, high)| {
        Pattern::range(bound(low, a), bound(high, b)).unwrap_or(Pattern::ANY)
    })
}

/// A pattern of any form, combinations nested a few levels deep.
pub(crate) fn pattern() -> impl Strategy<Value = Pattern> {
    let leaf = prop_oneof![
        value().prop_map(Pattern::Actual),
        kinds().prop_map(Pattern::Kinds),
        range(),
        vec(value(), 0..5).prop_map(|members| Pattern::is_in(members).unwrap()),
        text().prop_map(|text| Pattern::prefix(text).unwrap()),
        vec(any::<u8>(), 0..4).prop_map(|bytes| Pattern::prefix(bytes).unwrap()),
        "([a-z*?]|\\[[a-z]-z\\]){0,6}".prop_map(|glob| Pattern::glob(&glob).unwrap()),
        prop_oneof![class().prop_map(str::to_owned), text()].prop_map(Pattern::class),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|pattern| Pattern::not(pattern).unwrap()),
            vec(inner.clone(), 0..4).prop_map(|patterns| Pattern::all(patterns).unwrap()),
            vec(inner, 0..4).prop_map(|patterns| Pattern::any_of(patterns).unwrap()),
        ]
    })
}

/// Conditions: one that always holds, one that never can be told, and some that it depends for.
const CONDITIONS: &[&str] = &[
    "size(f) >= 0",
    "f[63] == 1",
    "f[0] == 1 || size(f) > 1",
    "f[0] != \"\\\"\" \n && f[0] != null",
];

pub(crate) fn template() -> impl Strategy<Value = Template> {
    let of_fields = || {
        (vec(pattern(), 0..4), any::<bool>()).prop_map(|(patterns, rest)| {
            let form = if rest { Form::Rest } else { Form::Exact };
            Template::from(Alternative { patterns, form, condition: None })
        })
    };
    let of_entries = || {
        (class(), btree_map(select(FIELDS), pattern(), 0..3)).prop_map(|(name, fields)| {
            let fields = fields.into_iter().map(|(name, pattern)| (name.to_owned(), pattern));
            Template::from(Alternative::entry(name, fields).unwrap())
        })
    };
    let with_condition = (of_fields(), select(CONDITIONS)).prop_map(|(template, text)| {
        template.with_condition(&Condition::new(text).unwrap()).unwrap()
    });
    let with_condition = with_condition.boxed();
    let alternative =
        || prop_oneof![2 => of_fields(), 1 => of_entries(), 1 => with_condition.clone()];
    (alternative(), vec(alternative(), 0..3))
        .prop_map(|(first, others)| others.into_iter().fold(first, Template::or))
}
