//! The canonical encoding: the examples of its documentation, and what is refused.

use std::fmt::Debug;
use std::str::FromStr;

use tupelo_tuple::{
    ALTERNATIVES_MAX, Array, ArrayView, DType, DecodeError, EncodeError, Encoded, Field, Kind,
    Pattern, Template, Tuple, Value, array_head, hash, tuple,
};

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// Checks every example in one section of the documentation, both ways.
fn check_section<T>(
    heading: &str,
    encode: fn(&T) -> Result<Vec<u8>, EncodeError>,
    decode: fn(&[u8]) -> Result<T, DecodeError>,
) where
    T: FromStr<Err: Debug> + PartialEq + Debug,
{
    let document = include_str!("../../../../docs/encoding.md");
    let section = document.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let mut examples = 0;
    for (text, bytes) in section.lines().filter_map(|line| line.split_once(" -> ")) {
        let value: T = text.trim().parse().unwrap();
        assert_eq!(encode(&value).unwrap(), hex(bytes), "{text}");
        assert_eq!(decode(&hex(bytes)).unwrap(), value, "{text}");
        examples += 1;
    }
    assert!(examples > 1, "no examples under {heading}");
}

#[test]
fn the_documented_examples_are_true_v4() {
    check_section("Values", Value::encode, Value::decode);
    check_section("Tuples", Tuple::encode, Tuple::decode);
    check_section("Templates", Template::encode, Template::decode);
}

#[test]
fn every_form_but_the_canonical_one_is_refused_with_place_and_reason_v4() {
    for (bytes, reason) in [
        ("cc 7f", "byte 0: an integer is not in its shortest form"),
        ("cd 00 ff", "byte 0: an integer is not in its shortest form"),
        ("cf 00 00 00 00 ff ff ff ff", "byte 0: an integer is not in its shortest form"),
        ("d0 07", "byte 0: an integer is not in its shortest form"),
        ("d3 ff ff ff ff 80 00 00 00", "byte 0: an integer is not in its shortest form"),
        ("c7 09 01 00 ff ff ff ff ff ff ff ff", "byte 0: an integer is not in its shortest form"),
        ("c7 09 01 01 80 00 00 00 00 00 00 00", "byte 0: an integer is not in its shortest form"),
        ("91 ca 3f 80 00 00", "byte 1: a float has 64 bits here, not 32"),
        ("d9 01 61", "byte 0: a length is not in its shortest form"),
        ("c5 00 01 61", "byte 0: a length is not in its shortest form"),
        ("dc 00 01 c0", "byte 0: a length is not in its shortest form"),
        ("c7 01 05 90", "byte 0: a length is not in its shortest form"),
        ("c8 00 03 02 31 45 32", "byte 0: a length is not in its shortest form"),
        ("82 a1 62 01 a1 61 02", "byte 4: keys or members are not in ascending order"),
        ("82 a1 61 01 a1 61 02", "byte 4: keys or members are not in ascending order"),
        ("81 cb 80 00 00 00 00 00 00 00 01", "byte 1: a key of a map is not folded"),
        ("81 91 cb ff f8 00 00 00 00 00 00 01", "byte 2: a key of a map is not folded"),
        ("81 d6 02 31 2e 30 30 01", "byte 1: a decimal is not in canonical form"),
        ("81 d5 02 31 30 01", "byte 1: a key of a map is not folded"),
        ("d7 ff 00 00 00 00 00 00 00 01", "byte 0: a timestamp is not in its shortest form"),
        ("c1", "byte 0: 0xc1 is no MessagePack item"),
        ("a2 c3 28", "byte 1: text is not UTF-8"),
        ("01 01", "byte 1: the value ends before here"),
        ("93 01 02", "byte 1: a list has more elements than bytes remain"),
        ("a3 61", "byte 2: the encoding ends inside a value"),
        ("", "byte 0: the encoding ends inside a value"),
        ("d5 10 00 04", "byte 0: a pattern stands where a value must"),
        ("d4 63 00", "byte 0: an extension type that is not known here"),
        ("d5 04 0b 01", "byte 0: the shape of an array is cut off"),
        ("d6 05 93 01 02 03", ""),
    ] {
        match Value::decode(&hex(bytes)) {
            Ok(value) => assert!(reason.is_empty(), "{bytes} is {value}"),
            Err(error) => {
                let said = error.to_string();
                assert!(
                    said.starts_with(&format!("encoding is not valid at {reason}")),
                    "{bytes}: {said}"
                );
            }
        }
    }
}

#[test]
fn templates_have_one_encoding_each() {
    for (bytes, reason) in [
        ("90", "a template is an array of 1 to 256 alternatives"),
        ("91 91 d5 10 80 00", "a set of kinds is 16 bits"),
        ("91 92 c7 00 11 c0", "the rest of a template stands at its end"),
        ("91 91 c7 05 12 94 c0 c2 c0 c2", "a predicate that can not be made"),
        ("91 91 c7 05 12 94 c3 c3 c0 c2", "a predicate that can not be made"),
        ("91 91 d6 13 92 02 01 00", "keys or members are not in ascending order"),
        ("91 91 d5 17 91 01", "a combination is of two patterns or more"),
        ("91 91 c7 06 17 92 01 d5 17 92 02 03", ""),
        ("91 91 c7 09 18 92 d5 10 00 01 d5 10 00 02", "a combination is not flat"),
        ("91 91 c7 06 18 92 01 d5 10 00 02", "a combination is not flat"),
    ] {
        let error = Template::decode(&hex(bytes)).unwrap_err().to_string();
        assert!(error.contains(reason), "{bytes}: {error}");
    }
}

#[test]
fn nesting_has_a_limit_that_hostile_bytes_can_not_pass() {
    let nested = |levels| (0..levels).fold(Value::Null, |inner, _| Value::List(vec![inner]));
    let encoding = nested(128).encode().unwrap();
    assert_eq!(Value::decode(&encoding), Ok(nested(128)));
    assert_eq!(nested(129).encode(), Err(EncodeError::TooDeep));
    let hostile = [vec![0x91; 100_000], vec![0xc0]].concat();
    let error = Value::decode(&hostile).unwrap_err();
    assert_eq!((error.at(), error.to_string().contains("128 levels")), (128, true));
    // Comparing and hashing walk the same bytes, also when they were never decoded.
    let list = |bytes| Field::Encoded(Encoded::whole(Kind::List, bytes));
    let other = [vec![0x91; 100_000], vec![0xc2]].concat();
    assert!(!list(&hostile).same(&list(&other)));
    hash::field(&list(&hostile));

    let deep = (0..127).fold(Pattern::ANY, |inner, _| Pattern::not(inner).unwrap());
    let template = Template::new(vec![deep.clone()]);
    assert_eq!(Template::decode(&template.encode().unwrap()), Ok(template));
    assert!(Pattern::not(deep).is_err());
}

#[test]
fn nested_tuples_and_entries_as_deep_as_allowed_are_the_same_as_themselves_m2() {
    let nested = |leaf| (0..128).fold(leaf, |inner, _| Value::Tuple(vec![inner]));
    let (zero, minus_zero) = (nested(Value::Float(0.0)), nested(Value::Float(-0.0)));
    assert!(zero.same(&minus_zero));
    let entry =
        |inner| Value::Entry(tupelo_tuple::Entry::new("E", [], [("f".to_owned(), inner)]).unwrap());
    let nested = |leaf| (0..128).fold(leaf, |inner, _| entry(inner));
    assert!(nested(Value::Float(0.0)).same(&nested(Value::Float(-0.0))));
}

#[test]
fn fields_and_alternatives_have_limits_b2() {
    let fields: Tuple = (0..65).map(Value::from).collect();
    assert_eq!(fields.encode(), Err(EncodeError::TooManyFields { arity: 65 }));
    let template = Template::of_actuals(&fields);
    assert_eq!(template.encode(), Err(EncodeError::TooManyFields { arity: 65 }));
    assert_eq!(template.require_limits(), Err(EncodeError::TooManyFields { arity: 65 }));
    let many = (0..ALTERNATIVES_MAX)
        .fold(Template::new(vec![]), |template, _| template.or(Template::new(vec![])));
    assert!(
        many.encode().unwrap_err().to_string().starts_with("257 alternatives are over the limit")
    );
    let alternatives = 257;
    assert_eq!(many.require_limits(), Err(EncodeError::TooManyAlternatives { alternatives }));
    let largest: Tuple = (0..64).map(Value::from).collect();
    let largest = (1..ALTERNATIVES_MAX).fold(Template::of_actuals(&largest), |template, _| {
        template.or(Template::of_actuals(&largest))
    });
    assert_eq!(largest.require_limits(), Ok(()));
}

#[test]
fn an_array_is_its_head_followed_by_its_data() {
    let data: Vec<u8> = (0..24).collect();
    let head = array_head(DType::F32, [2, 3].into_iter()).unwrap();
    let in_two = Field::Encoded(Encoded { kind: Kind::Array, head: &head, body: &data });
    let value = Value::from_field(&in_two).unwrap();
    let encoding = value.encode().unwrap();
    assert_eq!(encoding, [head.clone(), data.clone()].concat());
    let view = ArrayView::parse(&encoding).unwrap();
    assert_eq!((view.dtype(), view.data()), (DType::F32, &data[..]));
    assert_eq!(view.shape().collect::<Vec<_>>(), [2, 3]);
    assert!(in_two.same(&Field::Encoded(Encoded::whole(Kind::Array, &encoding))));
    assert!(ArrayView::parse(&encoding[..encoding.len() - 1]).is_none());
    assert!(array_head(DType::F64, [u64::MAX, u64::MAX].into_iter()).is_err());
    assert_eq!(
        array_head(DType::F64, [1; 33].into_iter()),
        Err(EncodeError::ArrayDimensions { dimensions: 33 })
    );
    // Without elements there is no data; but what has no place in any language's memory is no array.
    let empty = |size: u64| array_head(DType::F64, [size, 0, 2].into_iter());
    assert!(ArrayView::parse(&empty(1 << 58).unwrap()).is_some());
    assert!(empty(1 << 59).is_err());
    assert!(Array::new(DType::F64, &[1 << 59, 0, 2], vec![]).is_err());
}

#[test]
fn a_field_that_is_not_of_its_kind_is_refused_c5() {
    let encoding = Value::List(vec![]).encode().unwrap();
    assert!(Value::from_field(&Field::Encoded(Encoded::whole(Kind::Map, &encoding))).is_err());
    let small = Value::from(7).encode().unwrap();
    assert!(Value::from_field(&Field::Encoded(Encoded::whole(Kind::Int, &small))).is_err());
    assert!(Value::from_field(&Field::Encoded(Encoded::whole(Kind::List, &[]))).is_err());
}

#[test]
fn the_order_of_a_map_comes_back_and_is_no_part_of_its_value_v3_v4() {
    use tupelo_tuple::Map;
    let pairs = |keys: [&str; 3]| keys.map(|key| (Value::from(key), Value::from(key.len())));
    let given = Value::Map(Map::in_order(pairs(["z", "a", "mm"])).unwrap());
    let sorted = Value::Map(Map::new(pairs(["z", "a", "mm"])).unwrap());
    assert_eq!(given, sorted);
    assert!(given.same(&sorted) && sorted.same(&given));
    let hash_of = |value: &Value| value.with_field(|field| hash::field(&field));
    assert_eq!(hash_of(&given), hash_of(&sorted));
    assert!(Template::of_actuals(&tuple![sorted.clone()]).matches(&tuple![given.clone()]));
    let Value::Map(back) = Value::decode(&given.encode().unwrap()).unwrap() else {
        panic!("a map")
    };
    let keys: Vec<_> = back.ordered().map(|(key, _)| key.to_string()).collect();
    assert_eq!(keys, [r#""z""#, r#""a""#, r#""mm""#]);
    assert_eq!(tuple![given].to_string(), r#"(map("z": 1, "a": 1, "mm": 2))"#);
    assert_eq!(tuple![sorted].to_string(), r#"(map("a": 1, "z": 1, "mm": 2))"#);
    // In a key a map has no order, or equal keys had different bytes.
    let key = |keys| {
        Value::Map(
            Map::in_order([(Value::Map(Map::in_order(pairs(keys)).unwrap()), 1.into())]).unwrap(),
        )
    };
    assert_eq!(key(["z", "a", "mm"]).encode(), key(["a", "mm", "z"]).encode());
}

#[test]
fn the_order_of_many_pairs_comes_back_v3() {
    use tupelo_tuple::Map;
    for count in [2_i64, 256, 257, 65_536, 65_537] {
        let pairs = (0..count).rev().map(|key| (Value::from(key), Value::Null));
        let map = Value::Map(Map::in_order(pairs).unwrap());
        let bytes = map.encode().unwrap();
        let Value::Map(back) = Value::decode(&bytes).unwrap() else { panic!("a map") };
        let keys: Vec<_> = back.ordered().map(|(key, _)| key.clone()).collect();
        assert_eq!(keys, (0..count).rev().map(Value::from).collect::<Vec<_>>());
    }
}

#[test]
fn an_order_of_a_map_that_is_none_is_refused_c5() {
    // {1: 2, 3: 4}, the second pair first.
    let valid = "c7 0a 08 92 82 01 02 03 04 c4 02 01 00";
    assert!(Value::decode(&hex(valid)).is_ok());
    for (wrong, why) in [
        ("c7 0a 08 92 82 01 02 03 04 c4 02 00 01", "each of them once"),
        ("c7 0a 08 92 82 01 02 03 04 c4 02 01 01", "each of them once"),
        ("c7 0a 08 92 82 01 02 03 04 c4 02 02 00", "each of them once"),
        ("d7 08 92 82 01 02 03 04 c4 00", "each of them once"),
        ("c7 0a 08 92 82 01 02 03 04 c4 01 00 00", "ends before here"),
        ("c7 06 08 91 82 01 02 03 04", "is an array of the map"),
        ("c7 05 08 92 07 c4 01 00", "is an array of the map"),
        ("c7 0b 08 92 82 01 02 03 04 c4 02 01 00 00", "ends before here"),
        ("81 c7 0a 08 92 82 01 02 03 04 c4 02 01 00 07", "no order of its own"),
    ] {
        let error = Value::decode(&hex(wrong)).unwrap_err().to_string();
        assert!(error.contains(why), "{wrong}: {error}");
    }
}

#[test]
fn keys_that_match_are_one_key_m2() {
    use tupelo_tuple::Map;
    let zeros = [(0.0.into(), 1.into()), ((-0.0).into(), 2.into())];
    assert!(Map::new(zeros).unwrap_err().to_string().starts_with("0.0 is there twice"));
    let folded = Map::new([((-0.0).into(), 1.into())]).unwrap();
    assert_eq!(folded, Map::new([(0.0.into(), 1.into())]).unwrap());
    assert_eq!(tuple![folded].to_string(), "(map(0.0: 1))");
}
