//! What holds for all values, tuples and templates.

use std::cmp::Ordering;
use std::ops::Bound::{Excluded, Included, Unbounded};

use crate::common::{pattern, template, tuple, value};
use proptest::prelude::*;
use tupelo_tuple::encoding::{Decoded, Reader, encode_tuple_ref, encode_tuple_view};
use tupelo_tuple::{
    Alternative, Condition, Decimal, Encoded, Entry, Field, Form, Kind, Map, Pattern, Template,
    Tuple, TupleView, Value, encode_template_refs, hash, image,
};

/// M2, as slowly as possible: on the values themselves, without encodings.
fn naive_same(a: &Value, b: &Value) -> bool {
    let all_same = |a: &[Value], b: &[Value]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| naive_same(a, b))
    };
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => {
            a.partial_cmp(b) == Some(Ordering::Equal) || (a.is_nan() && b.is_nan())
        }
        (Value::Decimal(a), Value::Decimal(b)) => scaled(a) == scaled(b),
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => all_same(a, b),
        (Value::Map(a), Value::Map(b)) => {
            a.pairs().len() == b.pairs().len()
                && a.pairs().iter().all(|(key, value)| {
                    b.pairs().iter().any(|(other_key, other_value)| {
                        naive_same(key, other_key) && naive_same(value, other_value)
                    })
                })
        }
        (Value::Entry(a), Value::Entry(b)) => {
            a.name() == b.name()
                && a.bases() == b.bases()
                && a.fields().len() == b.fields().len()
                && a.fields().iter().zip(b.fields()).all(|((name, value), (other_name, other))| {
                    name == other_name && naive_same(value, other)
                })
        }
        (a, b) => a == b,
    }
}

/// The number as a multiple of 10^-20, which all decimals of these tests are.
fn scaled(decimal: &Decimal) -> i128 {
    let digits: i128 = decimal.digits().parse().unwrap();
    let power = u32::try_from(decimal.exponent() + 20).unwrap();
    digits * 10_i128.pow(power) * if decimal.is_negative() { -1 } else { 1 }
}

/// Another value that is the same by M2, but not the same bytes where there is a choice.
fn twin(value: &Value) -> Value {
    let twins = |items: &[Value]| items.iter().map(twin).collect();
    match value {
        Value::Float(value) if *value == 0.0 || value.is_nan() => Value::Float(-value),
        Value::Decimal(value) => {
            let digits = format!("{}0", value.digits());
            let negative = value.is_negative() != (value.digits() == "0");
            Value::Decimal(Decimal::new(negative, &digits, value.exponent() - 1).unwrap())
        }
        Value::List(items) => Value::List(twins(items)),
        Value::Tuple(items) => Value::Tuple(twins(items)),
        Value::Map(map) => {
            let pairs = map.pairs().iter().map(|(key, value)| (twin(key), twin(value)));
            Value::Map(Map::new(pairs).unwrap())
        }
        Value::Entry(entry) => {
            let bases = entry.bases().iter().cloned();
            let fields = entry.fields().iter().map(|(name, value)| (name.clone(), twin(value)));
            Value::Entry(Entry::new(entry.name(), bases, fields).unwrap())
        }
        other => other.clone(),
    }
}

/// The same value, without the order of the maps in it: the part of it that its equality sees (V4).
fn unordered(value: &Value) -> Value {
    let all = |items: &[Value]| items.iter().map(unordered).collect();
    match value {
        Value::List(items) => Value::List(all(items)),
        Value::Tuple(items) => Value::Tuple(all(items)),
        Value::Map(map) => {
            let pairs = map.pairs().iter().map(|(key, value)| (key.clone(), unordered(value)));
            Value::Map(Map::new(pairs).unwrap())
        }
        Value::Entry(entry) => {
            let bases = entry.bases().iter().cloned();
            let fields =
                entry.fields().iter().map(|(name, value)| (name.clone(), unordered(value)));
            Value::Entry(Entry::new(entry.name(), bases, fields).unwrap())
        }
        other => other.clone(),
    }
}

/// The image of a tuple, as the engine writes it.
#[derive(Default)]
struct Image(Vec<u8>);

impl image::Write for Image {
    fn word(&mut self, index: usize, word: u64) {
        self.0[8 * index..8 * index + 8].copy_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// Gives `use_view` the tuple as the engine stores it.
fn with_view<R>(tuple: &Tuple, use_view: impl FnOnce(TupleView<'_>) -> R) -> R {
    tuple
        .with_fields(|fields| {
            let size = image::size(fields, 0);
            let mut bytes = Image(vec![0; size.bytes]);
            image::write(fields, 0, size.wide, &mut bytes);
            let kinds: Vec<_> = fields.iter().map(Field::kind).collect();
            use_view(TupleView::new(&kinds, &bytes.0, size.wide).of_class(tuple.class()))
        })
        .unwrap()
}

fn hash_of(value: &Value) -> u64 {
    value.with_field(|field| hash::field(&field)).unwrap()
}

proptest! {
    #[test]
    fn a_tuple_is_the_same_read_in_place_and_as_values_v3_v4(tuple in tuple()) {
        let bytes = tuple.encode().unwrap();
        let mut written = Vec::new();
        tuple.with_ref(|tuple| encode_tuple_ref(&mut written, tuple)).unwrap().unwrap();
        prop_assert_eq!(&written, &bytes);
        written.clear();
        with_view(&tuple, |view| encode_tuple_view(&mut written, view)).unwrap();
        prop_assert_eq!(&written, &bytes);
        // Something follows it, as in a frame.
        written.push(0xc0);
        let mut reader = Reader::new(&written);
        let decoded = Decoded::read(&mut reader).unwrap();
        prop_assert_eq!(reader.at(), bytes.len());
        prop_assert_eq!(decoded.as_ref().to_tuple(), Ok(tuple.clone()));
        prop_assert_eq!(decoded.to_image().view().to_tuple(), Ok(tuple));
        let mut skipped = Reader::new(&written);
        skipped.skip().unwrap();
        prop_assert_eq!(skipped.at(), bytes.len());
    }

    #[test]
    fn what_is_read_in_place_is_what_decodes_and_nothing_else(
        tuple in tuple(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = tuple.encode().unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut reader = Reader::new(&bytes);
        let in_place = Decoded::read(&mut reader).and_then(|decoded| {
            reader.finish()?;
            decoded.as_ref().to_tuple()
        });
        prop_assert_eq!(in_place.ok(), Tuple::decode(&bytes).ok());
    }

    #[test]
    fn a_value_comes_back_from_its_encoding_and_from_its_text_v3_v4(value in value()) {
        let encoding = value.encode().unwrap();
        prop_assert_eq!(Value::decode(&encoding), Ok(value.clone()));
        // With the order of its maps, which equality does not see.
        prop_assert_eq!(Value::decode(&encoding).unwrap().encode().unwrap(), encoding.clone());
        prop_assert_eq!(value.to_string().parse::<Value>().unwrap().encode().unwrap(), encoding);
        prop_assert_eq!(value.to_string().parse(), Ok(value.clone()));
        prop_assert_eq!(value.with_field(|field| Value::from_field(&field)).unwrap(), Ok(value));
    }

    #[test]
    fn equal_values_have_equal_bytes_and_no_others_v4(a in value(), b in value()) {
        prop_assert_eq!(a == b, unordered(&a).encode() == unordered(&b).encode());
        prop_assert_eq!(twin(&a) == a, unordered(&twin(&a)).encode() == unordered(&a).encode());
        prop_assert_eq!(unordered(&a), a);
    }

    #[test]
    fn a_tuple_comes_back_from_encoding_text_and_image_v3(tuple in tuple()) {
        prop_assert_eq!(Tuple::decode(&tuple.encode().unwrap()), Ok(tuple.clone()));
        prop_assert_eq!(tuple.to_string().parse(), Ok(tuple.clone()));
        prop_assert_eq!(with_view(&tuple, |view| view.to_tuple()), Ok(tuple.clone()));
        prop_assert_eq!(with_view(&tuple, |view| view.to_string()), tuple.to_string());
    }

    #[test]
    fn a_template_comes_back_from_encoding_and_text(template in template()) {
        let encoding = template.encode().unwrap();
        prop_assert_eq!(template.with_refs(encode_template_refs).unwrap(), Ok(encoding.clone()));
        prop_assert_eq!(Template::decode(&encoding), Ok(template.clone()));
        let text = template.to_string();
        prop_assert_eq!(text.parse(), Ok(template), "{}", text);
    }

    #[test]
    fn encoded_values_are_the_same_when_the_values_are_m2(a in value(), b in value()) {
        prop_assert_eq!(a.same(&b), naive_same(&a, &b));
        prop_assert!(a.same(&a));
    }

    #[test]
    fn a_condition_compares_what_is_in_maps_and_entries_as_a_template_does_m2_m9(
        a in value(),
        b in value(),
    ) {
        let equal = Condition::new("f[0] == f[1] && f[0] in [f[1]] && f[0] in f[2]").unwrap();
        let in_map = |value: &Value| {
            Value::Map(Map::new([("key".into(), value.clone())]).unwrap())
        };
        let in_entry = |value: &Value| {
            Value::Entry(Entry::new("Job", [], [("id".to_owned(), value.clone())]).unwrap())
        };
        for within in [&in_map as &dyn Fn(&Value) -> Value, &in_entry] {
            for other in [&a, &twin(&a), &b] {
                let (left, right) = (within(&a), within(other));
                let list = Value::List(vec![Value::Null, right.clone()]);
                let tuple = Tuple::from(vec![left, right, list]);
                let found = tuple.with_ref(|tuple| equal.holds_ref(&tuple)).unwrap();
                prop_assert_eq!(found, Ok(naive_same(&a, other)));
            }
        }
    }

    #[test]
    fn twins_are_the_same_and_hash_alike_m2(a in value()) {
        let b = twin(&a);
        prop_assert!(naive_same(&a, &b));
        prop_assert!(a.same(&b) && b.same(&a), "{} {}", a, b);
        prop_assert_eq!(hash_of(&a), hash_of(&b));
    }

    #[test]
    fn where_an_encoding_is_split_makes_no_difference(value in value(), at in any::<prop::sample::Index>()) {
        prop_assume!(value.with_field(|field| matches!(field, Field::Encoded(_))).unwrap());
        let bytes = value.encode().unwrap();
        let (head, body) = bytes.split_at(at.index(bytes.len() + 1));
        let split = Field::Encoded(Encoded { kind: value.kind(), head, body });
        let whole = Field::Encoded(Encoded::whole(value.kind(), &bytes));
        prop_assert!(split.same(&whole) && whole.same(&split));
        prop_assert_eq!(hash::field(&split), hash::field(&whole));
        prop_assert_eq!(Value::from_field(&split), Ok(value));
    }

    #[test]
    fn one_other_byte_is_another_value_wherever_the_encodings_are_split(
        uuid in any::<[u8; 16]>(),
        other in 2..18_usize,
        splits in (0..=18_usize, 0..=18_usize),
    ) {
        let bytes = Value::Uuid(uuid).encode().unwrap();
        let mut changed = bytes.clone();
        changed[other] ^= 1;
        let (head, body) = bytes.split_at(splits.0);
        let a = Field::Encoded(Encoded { kind: Kind::Uuid, head, body });
        let (head, body) = changed.split_at(splits.1);
        let b = Field::Encoded(Encoded { kind: Kind::Uuid, head, body });
        prop_assert!(!a.same(&b) && !b.same(&a));
    }

    /// Start from the strictest template that matches (all actuals) and weaken random fields; each
    /// weaker template must still match.
    #[test]
    fn a_weaker_template_still_matches_m5(
        tuple in tuple(),
        weaken in prop::collection::vec(0..5_u8, 6),
        others in prop::collection::vec(pattern(), 6),
    ) {
        let patterns = tuple.iter().zip(&weaken).zip(others).map(|((value, how), other)| match how {
            0 => Pattern::Actual(value.clone()),
            1 => Pattern::Actual(twin(value)),
            2 => value.kind().into(),
            3 => Pattern::any_of([Pattern::Actual(value.clone()), other]).unwrap(),
            _ => Pattern::ANY,
        });
        let patterns = patterns.collect();
        let template = match tuple.class() {
            None => Template::new(patterns),
            Some(class) => {
                let fields = class.fields().map(str::to_owned).zip(patterns);
                Alternative::entry(class.name(), fields).unwrap().into()
            }
        };
        prop_assert!(template.matches(&tuple));
    }

    #[test]
    fn what_matches_the_intersection_of_two_templates_matches_both(
        one in template(),
        other in template(),
        tuple in tuple(),
    ) {
        // Of templates that are too large together, and of entries, less may match.
        let Ok(both) = one.intersect(&other) else { return Ok(()) };
        let matches = both.is_some_and(|both| both.matches(&tuple));
        let matches_both = one.matches(&tuple) && other.matches(&tuple);
        if tuple.class().is_none() {
            prop_assert_eq!(matches, matches_both);
        }
        prop_assert!(!matches || matches_both);
    }

    #[test]
    fn a_tuple_that_matches_two_templates_matches_their_intersection(
        tuple in tuple(),
        how in prop::collection::vec((0..4_u8, 0..4_u8), 6),
    ) {
        let weakened = |value: &Value, how| match how {
            0 => Pattern::Actual(value.clone()),
            1 => Pattern::any_of([Pattern::Actual(value.clone()), Pattern::Actual(Value::Null)]).unwrap(),
            2 => value.kind().into(),
            _ => Pattern::ANY,
        };
        let template = |which: fn(&(u8, u8)) -> u8| {
            let patterns = tuple.iter().zip(&how).map(|(value, how)| weakened(value, which(how)));
            match tuple.class() {
                None => Template::new(patterns.collect()),
                Some(class) => {
                    let fields = class.fields().map(str::to_owned).zip(patterns);
                    Alternative::entry(class.name(), fields).unwrap().into()
                }
            }
        };
        let both = template(|how| how.0).intersect(&template(|how| how.1)).unwrap();
        prop_assert!(both.is_some_and(|both| both.matches(&tuple)));
    }

    #[test]
    fn owned_and_borrowed_forms_match_alike(template in template(), tuple in tuple()) {
        let owned = template.matches(&tuple);
        let stored = with_view(&tuple, |view| {
            template.with_refs(|templates| templates.iter().any(|template| template.matches(&view)))
        });
        prop_assert_eq!(stored, Ok(owned));
        let by_fields = (template.alternatives().iter()).any(|alternative| {
            let (patterns, arity) = (&alternative.patterns, alternative.patterns.len());
            let by_place = || patterns.iter().zip(tuple.iter()).all(|(one, value)| one.matches(value));
            let holds = alternative.condition.as_ref().is_none_or(|condition| {
                tuple.with_ref(|tuple| condition.holds_ref(&tuple)) == Ok(Ok(true))
            });
            holds && match (&alternative.form, tuple.class()) {
                (Form::Exact, None) => tuple.len() == arity && by_place(),
                (Form::Rest, None) => tuple.len() >= arity && by_place(),
                (Form::Entry(named), Some(class)) => class.is(named.class())
                    && named.fields().iter().zip(patterns).all(|(name, pattern)| {
                        let mut fields = class.fields().zip(tuple.iter());
                        fields.any(|(field, value)| field == name && pattern.matches(value))
                    }),
                (form, _) => *form == Form::Rest && arity == 0,
            }
        });
        prop_assert_eq!(by_fields, owned);
    }

    #[test]
    fn a_matching_field_has_one_of_the_kinds_the_pattern_says(pattern in pattern(), value in value()) {
        if let Pattern::Test(test) = &pattern {
            prop_assert!(!pattern.matches(&value) || test.kinds().contains(value.kind()));
        }
    }

    #[test]
    fn combinations_are_those_of_logic_m5(a in pattern(), b in pattern(), value in value()) {
        let (in_a, in_b) = (a.matches(&value), b.matches(&value));
        prop_assert_eq!(Pattern::not(a.clone()).unwrap().matches(&value), !in_a);
        prop_assert_eq!(Pattern::all([a.clone(), b.clone()]).unwrap().matches(&value), in_a && in_b);
        prop_assert_eq!(Pattern::any_of([a, b]).unwrap().matches(&value), in_a || in_b);
    }

    #[test]
    fn membership_is_being_the_same_as_a_member_m5(
        members in prop::collection::vec(value(), 0..6),
        value in value(),
    ) {
        let set = Pattern::is_in(members.clone()).unwrap();
        prop_assert_eq!(set.matches(&value), members.iter().any(|member| member.same(&value)));
        for member in &members {
            prop_assert!(set.matches(&twin(member)));
        }
    }

    /// `F != v` matches every field that `F == v` does not, of any kind.
    #[test]
    fn not_equal_is_all_that_equal_is_not_m5(actual in value(), value in value()) {
        let not_equal = Pattern::not(Pattern::Actual(actual.clone())).unwrap();
        prop_assert_eq!(not_equal.matches(&value), !actual.same(&value));
        prop_assert!(!not_equal.matches(&twin(&actual)));
    }

    /// A float is `significand / 2^shift`, so 128-bit integers compare it with an integer exactly.
    #[test]
    fn ranges_compare_integers_and_floats_exactly_m5(
        int in prop_oneof![any::<i64>(), -100_i64..100, (1_i64 << 53) - 2..(1 << 53) + 2],
        significand in prop_oneof![-(1_i64 << 53)..1 << 53, -1000_i64..1000],
        shift in 0_u32..60,
    ) {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let float = significand as f64 / 2.0_f64.powi(shift.cast_signed());
        let expected = (i128::from(int) << shift).cmp(&i128::from(significand));
        let below = Pattern::range(Unbounded, Excluded(float.into())).unwrap();
        prop_assert_eq!(below.matches(&int.into()), expected == Ordering::Less);
        let from = Pattern::range(Included(int.into()), Unbounded).unwrap();
        prop_assert_eq!(from.matches(&float.into()), expected != Ordering::Greater);
    }

    #[test]
    fn ranges_compare_integers_of_any_size_m5(a in any::<i128>(), b in any::<i128>()) {
        let above = Pattern::range(Excluded(a.into()), Unbounded).unwrap();
        prop_assert_eq!(above.matches(&b.into()), b > a);
    }
}
