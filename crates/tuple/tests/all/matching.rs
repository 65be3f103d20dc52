//! The rules of matching, one sentence each.

use std::ops::Bound::{Excluded, Included, Unbounded};

use tupelo_tuple::{
    Decimal, Kind, KindSet, Pattern, PatternRef, Template, TemplateRef, Timestamp, Tuple, Value,
    fields, template, tuple,
};

fn matches(pattern: &str, value: &str) -> bool {
    pattern.parse::<Pattern>().unwrap().matches(&value.parse().unwrap())
}

#[test]
fn a_template_matches_only_its_arity_unless_it_ends_in_rest_m1() {
    assert!(!template!["job", _].matches_fields(&fields!["job"]));
    assert!(!template!["job", _].matches_fields(&fields!["job", 1, 2]));
    for further in 0..5 {
        let tuple: Tuple = std::iter::repeat_n(Value::from("job"), 1 + further).collect();
        assert!("job, ...".parse::<Template>().unwrap().matches(&tuple));
    }
    assert!(!"job, ...".parse::<Template>().unwrap().matches(&tuple![]));
}

#[test]
fn one_and_one_point_zero_and_true_are_three_different_fields_m2() {
    let all = ["1", "1.0", "true", "decimal(\"1\")"];
    for a in all {
        for b in all {
            assert_eq!(matches(a, b), a == b, "{a} {b}");
        }
    }
}

#[test]
fn nan_matches_nan_and_minus_zero_matches_zero_also_in_containers_m2() {
    assert!(matches("float(\"nan\")", "float(\"nan:fff8000000000001\")"));
    assert!(matches("0.0", "-0.0"));
    assert!(matches(
        "list(tuple(-0.0, float(\"nan\")))",
        "list(tuple(0.0, float(\"nan:fff8000000000001\")))"
    ));
    assert!(matches("map(1: decimal(\"1.0\"))", "map(1: decimal(\"1.00\"))"));
    assert!(!matches("list(1)", "list(1.0)"));
    assert!(!matches("list(1)", "tuple(1)"));
}

#[test]
fn null_is_a_value_and_no_wildcard_m2() {
    assert!(matches("null", "null"));
    assert!(!matches("null", "0"));
    assert!(!matches("7", "null"));
}

#[test]
fn a_formal_matches_a_field_of_exactly_its_kind_m3() {
    assert!(!matches(":int", "true"));
    assert!(!matches(":float", "3"));
    assert!(matches(":int", "123456789012345678901234567890"));
    assert!(matches(":int|:str", "x"));
    assert!(!matches(":int|:str", "1.5"));
    let number = KindSet::of(Kind::Int).or(KindSet::of(Kind::Float));
    assert!(template![number].matches_fields(&fields![1.5]));
}

#[test]
fn any_matches_any_one_field_m4() {
    for value in ["null", "1", "\"\"", "list()", "opaque(\"c\", \"t\", b\"\")"] {
        assert!(matches("_", value));
    }
}

#[test]
fn a_formal_finds_values_and_what_looks_like_one_in_a_tuple_is_a_text_m6() {
    assert!(matches(":int", "1"));
    assert!(!matches(":int", "\":int\""));
    assert!(matches(":str", "\":int\""));
    assert!(":int".parse::<Tuple>().is_err() && "\"job\", :int".parse::<Tuple>().is_err());
    assert_eq!("_".parse::<Tuple>().unwrap(), tuple!["_"]);
}

#[test]
fn a_range_compares_numbers_numerically_and_never_booleans_m5() {
    assert!(matches("> 3", "3.5"));
    assert!(!matches("> 3", "3"));
    assert!(matches("3..9", "9.0"));
    assert!(!matches("3..<9", "9.0"));
    assert!(!matches("0..1", "true"));
    assert!(!matches("> 0", "float(\"nan\")"));
    assert!(!matches("< 0", "float(\"nan\")"));
    assert!(matches("> 9007199254740992.0", "9007199254740993"));
    assert!(matches("< 18446744073709555000.0", "18446744073709551616"));
    assert!(matches("> -1", "99999999999999999999999999"));
    assert!(!matches("> 3", "decimal(\"4\")"));
}

#[test]
fn a_range_compares_text_by_code_point_and_bytes_by_byte_m5() {
    assert!(matches("\"a\"..\"c\"", "bzzz"));
    assert!(!matches("\"a\"..\"c\"", "ca"));
    // U+FFFF is before U+10000, other than in UTF-16.
    assert!(matches("< \"\u{10000}\"", "\"\u{ffff}\""));
    assert!(matches("> b\"\\x7f\"", "b\"\\x80\""));
    assert!(!matches("> \"a\"", "b\"b\""));
}

#[test]
fn a_range_compares_decimals_and_timestamps_by_value_m5() {
    assert!(matches("decimal(\"1.0\")..decimal(\"2\")", "decimal(\"1.00\")"));
    assert!(!matches("decimal(\"1.0\")<..decimal(\"2\")", "decimal(\"1.00\")"));
    let noon = Value::Timestamp(Timestamp::parse("2031-05-04T12:00:00Z").unwrap());
    let later = Value::Timestamp(Timestamp::parse("2031-05-04T14:00:00.1+02:00").unwrap());
    assert!(Pattern::range(Excluded(noon), Unbounded).unwrap().matches(&later));
}

#[test]
fn what_can_not_be_a_range_says_why() {
    let error = |low: Value, high: Value| {
        Pattern::range(Included(low), Included(high)).unwrap_err().to_string()
    };
    assert!(error(1.into(), "a".into()).starts_with("a range from int to str can not match"));
    assert!(error(true.into(), true.into()).starts_with("bool has no order"));
    assert!(error(f64::NAN.into(), 1.into()).starts_with("a bound can not be nan"));
    assert!(
        error(1.into(), Value::Decimal(Decimal::parse("2").unwrap())).contains("int to decimal")
    );
    assert!(
        Pattern::range(Unbounded, Unbounded)
            .unwrap_err()
            .to_string()
            .contains("at least one bound")
    );
    assert!(Pattern::prefix(7).unwrap_err().to_string().contains("text or bytes, not int"));
    assert!(Pattern::glob("[a").unwrap_err().to_string().contains("never closed"));
}

#[test]
fn a_prefix_is_of_text_or_of_bytes_m5() {
    assert!(matches("prefix:img/", "img/a.png"));
    assert!(!matches("prefix:img/", "b\"img/a.png\""));
    assert!(matches("prefix:b\"\\x00\"", "b\"\\x00\\x01\""));
}

#[test]
fn a_test_knows_the_kinds_it_can_match() {
    let kinds = |text: &str| match text.parse::<Pattern>().unwrap() {
        Pattern::Test(test) => PatternRef::Test(&test).kinds(),
        other => panic!("{other} is no test"),
    };
    let number = KindSet::of(Kind::Int).or(KindSet::of(Kind::Float));
    assert_eq!(kinds("> 3"), number);
    assert_eq!(kinds("in {1, \"x\"}"), KindSet::of(Kind::Int).or(KindSet::of(Kind::Str)));
    assert_eq!(kinds("> 3 & != 7"), number);
    assert_eq!(kinds("> 3 | :null"), number.or(KindSet::of(Kind::Null)));
    assert_eq!(kinds("!:int"), KindSet::of(Kind::Int).complement());
    assert_eq!(kinds("!= 7"), KindSet::ALL);
    assert_eq!(kinds("glob:*"), KindSet::of(Kind::Str));
}

#[test]
fn a_template_may_be_an_or_of_templates_of_different_arities_m8() {
    let template: Template = "(\"job\", :int) | (\"stop\")".parse().unwrap();
    assert!(template.matches(&tuple!["stop"]));
    assert!(template.matches(&tuple!["job", 1]));
    assert!(!template.matches(&tuple!["stop", 1]));
    let matched = template.with_refs(|refs: &[TemplateRef<'_>]| refs.len()).unwrap();
    assert_eq!(matched, 2);
}

#[test]
fn a_large_set_is_searched_by_hash_and_holds_each_value_once_m5() {
    let many =
        Pattern::is_in((0..10_000).map(Value::from).chain([5.into(), (-0.0).into(), 0.0.into()]));
    let many = many.unwrap();
    assert!(many.matches(&9_999.into()) && many.matches(&0.0.into()));
    assert!(!many.matches(&10_000.into()) && !many.matches(&5.0.into()));
    assert_eq!(Pattern::is_in([0.0.into(), (-0.0).into()]).unwrap().to_string(), "in {0.0}");
}
