//! Conditions over a whole tuple (rule M9): what they understand, and what they refuse.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use tupelo_tuple::{
    CONDITION_BYTES_MAX, CONDITION_DEPTH_MAX, Class, Condition, Fault, Template, Tuple, TupleRef,
    fields,
};

/// What `condition` says of `tuple`.
fn asked(condition: &str, tuple: &str) -> Result<bool, Fault> {
    let condition =
        Condition::new(condition).unwrap_or_else(|error| panic!("{condition}: {error}"));
    let tuple: Tuple = tuple.parse().unwrap();
    tuple.with_ref(|tuple| condition.holds_ref(&tuple)).unwrap()
}

/// Why `condition` is refused.
fn refused(condition: &str) -> String {
    Condition::new(condition).expect_err(condition).to_string()
}

#[test]
fn a_tuple_is_the_list_f_m9() {
    assert_eq!(asked("f[0] == 'job' && f[1] % 2 == 0", "job, 4"), Ok(true));
    assert_eq!(asked("f[0] == 'job' && f[1] % 2 == 0", "job, 5"), Ok(false));
    assert_eq!(asked("size(f) == 2 && 'job' in f && f == ['job', 5]", "job, 5"), Ok(true));
    assert_eq!(asked("f[f[0]] == 'x'", "1, x"), Ok(true));
    assert_eq!(asked("f[2] == 1", "job, 4"), Err(Fault::Missing));
    assert_eq!(asked("f[-1] == 1", "job, 4"), Err(Fault::Missing));
    assert_eq!(asked("f['0'] == 1", "job, 4"), Err(Fault::Kind));
}

#[test]
fn numbers_compare_by_their_value_and_a_bool_is_no_number_m5_m9() {
    for (condition, tuple) in [
        ("f[0] == 1", "1.0"),
        ("f[0] == 1.0", "1"),
        ("f[0] < 1.5", "1"),
        ("f[0] > 9007199254740992.0", "9007199254740993"),
        ("f[0] > f[1]", "18446744073709551616, 9223372036854775807"),
        ("f[0] == f[1]", "18446744073709551616, 18446744073709551616.0"),
        ("f[0] != 1", "true"),
        ("f[0] != 1", "\"1\""),
        ("f[0] != f[0]", "float(\"nan\")"),
        ("!(f[0] < 1.0) && !(f[0] >= 1.0)", "float(\"nan\")"),
        ("f[0] == 0.0", "-0.0"),
    ] {
        assert_eq!(asked(condition, tuple), Ok(true), "{condition} of {tuple}");
    }
    assert_eq!(asked("f[0] < 2", "true"), Err(Fault::Kind));
    assert_eq!(asked("f[0] < true", "false"), Err(Fault::Kind));
    assert_eq!(asked("f[0] < 2", "\"1\""), Err(Fault::Kind));
}

#[test]
fn values_of_other_kinds_are_not_equal_and_those_of_one_kind_as_actuals_are_m2_m9() {
    for (condition, tuple) in [
        ("f[0] == null", "null"),
        ("f[0] != null", "0"),
        ("f[0] == b'\\x00\\xff'", r#"b"\x00\xff""#),
        ("f[0] == [1, 'a', [2.0]]", "tuple(1.0, \"a\", list(2))"),
        ("f[0] == f[1]", "decimal(\"1.0\"), decimal(\"1.00\")"),
        ("f[0] == f[1]", "map(\"a\": 1), map(\"a\": 1)"),
        ("f[0] < f[1]", "decimal(\"1.0\"), decimal(\"1.01\")"),
        ("f[0] < f[1]", "timestamp(\"2026-01-01T00:00:00Z\"), timestamp(\"2026-01-02T00:00:00Z\")"),
        ("f[0] < 'b' && f[0] >= 'a'", "\"a\u{e9}\""),
    ] {
        assert_eq!(asked(condition, tuple), Ok(true), "{condition} of {tuple}");
    }
    assert_eq!(asked("f[0] < f[1]", "decimal(\"1.0\"), 2"), Err(Fault::Kind));
    assert_eq!(asked("f[0] < f[1]", "list(1), list(2)"), Err(Fault::Kind));
}

#[test]
fn there_is_no_match_where_arithmetic_has_no_answer_m9() {
    assert_eq!(asked("f[0] / 2 == -3 && f[0] % 4 == -3 && -f[0] * 2 + 1 == 15", "-7"), Ok(true));
    assert_eq!(asked("f[0] / 2.0 == 3.5 && f[0] - 0.5 == 6.5", "7.0"), Ok(true));
    assert_eq!(asked("double(f[0]) / 2.0 == 3.5 && int(3.9) == 3", "7"), Ok(true));
    assert_eq!(asked("f[0] / 0 == 1", "7"), Err(Fault::Range));
    assert_eq!(asked("f[0] % 0 == 1", "7"), Err(Fault::Range));
    assert_eq!(asked("f[0] / 0.0 > 1.0", "7.0"), Ok(true));
    assert_eq!(asked("f[0] + 1 > 0", "9223372036854775807"), Err(Fault::Range));
    assert_eq!(asked("f[0] % -1 == 0", "-9223372036854775808"), Err(Fault::Range));
    assert_eq!(asked("-f[0] > 0", "-9223372036854775808"), Err(Fault::Range));
    assert_eq!(asked("f[0] + 1 > 0", "18446744073709551616"), Err(Fault::Kind));
    assert_eq!(asked("f[0] + 1 > 0", "1.5"), Err(Fault::Kind));
    assert_eq!(asked("int(f[0]) == 1", "1e300"), Err(Fault::Range));
    assert_eq!(asked("int(f[0]) == 1", "float(\"nan\")"), Err(Fault::Range));
}

#[test]
fn one_side_of_and_or_can_decide_whatever_the_other_is_m9() {
    for condition in ["f[0] == 1 || f[9] == 1", "f[9] == 1 || f[0] == 1", "f[0] == 1 ? true : f[9]"]
    {
        assert_eq!(asked(condition, "1"), Ok(true), "{condition}");
        assert_eq!(asked(condition, "2"), Err(Fault::Missing), "{condition}");
    }
    for condition in ["f[0] == 1 && f[9] == 1", "f[9] == 1 && f[0] == 1"] {
        assert_eq!(asked(condition, "2"), Ok(false), "{condition}");
        assert_eq!(asked(condition, "1"), Err(Fault::Missing), "{condition}");
    }
    assert_eq!(asked("f[0] && true", "1"), Err(Fault::Kind));
    assert_eq!(asked("f[0] || false", "true"), Ok(true));
    assert_eq!(asked("f[0]", "7"), Err(Fault::Kind));
}

#[test]
fn text_lists_and_maps_can_be_looked_into_m9() {
    let tuple =
        r#""caf\u{e9}", b"abc", list(1, 2.5, tuple("x")), map("a": 1, 2: list(3)), Job{id: 7}"#;
    for condition in [
        "size(f[0]) == 4 && f[0].startsWith('ca') && f[0].endsWith('\u{e9}') && f[0].contains('af')",
        "size(f[1]) == 3 && size(f[2]) == 3 && size(f[3]) == 2",
        "1.0 in f[2] && f[2][1] > 2 && f[2][2][0] == 'x' && !(7 in f[2])",
        "'a' in f[3] && f[3].a == 1 && f[3]['a'] == 1 && f[3][2][0] == 3 && !('b' in f[3])",
        "f[4].id == 7",
        "f[2][0] in [0, 1] && f[0] in ['caf\u{e9}', 'tea']",
    ] {
        assert_eq!(asked(condition, tuple), Ok(true), "{condition}");
    }
    for condition in ["f[3].b == 1", "f[3]['b'] == 1", "f[2][3] == 1", "f[4].no == 1"] {
        assert_eq!(asked(condition, tuple), Err(Fault::Missing), "{condition}");
    }
    for condition in ["f[0].a == 1", "size(f[4]) == 1", "1 in f[0]", "f[1].contains('a')"] {
        assert_eq!(asked(condition, tuple), Err(Fault::Kind), "{condition}");
    }
}

#[test]
fn a_list_of_the_condition_is_compared_item_by_item_m9() {
    let tuple = "1, list(1, 2), tuple(1.0, list(2)), list(list(1, 2), 1)";
    for holds in [
        "[1, 2] == f[1]",
        "f[1] == [f[0], 2]",
        "[1, [2]] == f[2]",
        "[f[1], f[0]] == f[3]",
        "f[3] == [[1, 2], 1.0]",
        "[f, f] == [f, f]",
        "f == [1, f[1], [1, [2]], [f[1], 1]]",
        "[1, f[1], f[2], f[3]] == f",
        "[1, 2] in f[3]",
        "f[1] in [f[0], f[1]]",
        "f[1] in f",
        "[1, 2] in [[1], f[1]]",
        "[f[0], 2] in f[3]",
        "[f[1], 1] in [f[1], f[3]]",
        "f in [f[0], f]",
    ] {
        assert_eq!(asked(holds, tuple), Ok(true), "{holds}");
    }
    for fails in [
        "[1] == f[1]",
        "[1, 3] == f[1]",
        "[1] == f[0]",
        "f[0] == [1]",
        "[2, 1] in f[3]",
        "f == f[1]",
    ] {
        assert_eq!(asked(fails, tuple), Ok(false), "{fails}");
    }
    assert_eq!(asked("[1] in f[0]", tuple), Err(Fault::Kind));
    assert_eq!(asked("[f[9]] == f[1]", tuple), Err(Fault::Missing));
}

#[test]
fn the_fields_of_an_entry_are_names_m7_m9() {
    let class = Class::new("Job", ["Base"], ["id", "status", "f"]).unwrap();
    let of_class = |text: &str, fields: &[_]| {
        Condition::new(text).unwrap().holds_ref(&TupleRef::entry(class, fields))
    };
    // In the order of the class: shorter names first.
    let job = fields![9, 7, "new"];
    assert_eq!(of_class("id > 3 && status == 'new' && f == 9", &job), Ok(true));
    assert_eq!(of_class("stauts == 'new'", &job), Err(Fault::Missing));
    assert_eq!(of_class("f[0] == 7", &job), Err(Fault::Kind));
    let misspelt = Condition::new("id > 3 && stauts == 'new'").unwrap();
    let error = misspelt.require_class(class).unwrap_err().to_string();
    assert_eq!(
        error,
        "expected a field of Job: f, id, status at character 11, found `stauts == \\'new\\'`"
    );
    assert_eq!(asked("f[0] == 1", "(Job{id: 1})"), Ok(false));
}

#[test]
fn a_comment_hides_nothing_of_the_other_condition_m9() {
    let hidden = Condition::new("f[0] == 1 // the first").unwrap();
    let other = Condition::new("f[1] == 2 // the second").unwrap();
    for (both, joined) in [(hidden.and(&other), "1, 2"), (other.and(&hidden), "1, 2")] {
        let both = both.unwrap();
        assert_eq!(asked(both.text(), joined), Ok(true), "{both}");
        assert_eq!(asked(both.text(), "1, 3"), Ok(false), "{both}");
        assert_eq!(asked(both.text(), "0, 2"), Ok(false), "{both}");
    }
    let third = Condition::new("f[2] == '//' // the third").unwrap();
    let all = hidden.and(&other).unwrap().and(&third).unwrap();
    assert_eq!(asked(all.text(), "1, 2, \"//\""), Ok(true));
    assert_eq!(asked(all.text(), "1, 2, \"/\""), Ok(false));
    // As a part of a template, too.
    let template: Template = r#"_, _ where "f[0] == 1 // the first""#.parse().unwrap();
    let template = template.with_condition(&other).unwrap();
    assert_eq!(template.to_string().parse::<Template>().unwrap(), template);
    assert!(template.matches(&"1, 2".parse().unwrap()));
    assert!(!template.matches(&"1, 3".parse().unwrap()));
}

#[test]
fn two_conditions_without_comments_are_one_line_of_at_most_the_longest_text_b2_m9() {
    let one = Condition::new("f[0] == 1").unwrap();
    assert_eq!(one.and(&one).unwrap().text(), "(f[0] == 1) && (f[0] == 1)");
    let frame = "f[0] == ''".len() + "(f[0] == 1) && ()".len();
    let of_bytes = |bytes: usize| Condition::new(&format!("f[0] == '{}'", "x".repeat(bytes)));
    let longest = of_bytes(CONDITION_BYTES_MAX - frame).unwrap();
    assert_eq!(one.and(&longest).unwrap().text().len(), CONDITION_BYTES_MAX);
    let longer = of_bytes(CONDITION_BYTES_MAX - frame + 1).unwrap();
    let error = one.and(&longer).unwrap_err().to_string();
    assert!(error.starts_with("expected at most 2048 bytes instead of 2049"), "{error}");
}

#[test]
fn what_is_refused_says_where_and_what_would_be_right_m9() {
    for (condition, why) in [
        ("", "expected a value, such as f[0], 7 or \"text\" at character 1, found the end"),
        ("f[1] +", "expected a value, such as f[0], 7 or \"text\" at character 7, found the end"),
        (
            "f[1] = 2",
            "expected a CEL expression, such as f[1] % 2 == 0 && f[2] != \"x\" at character 6, found `= 2`",
        ),
        (
            "f[0] and f[1]",
            "expected an operator, such as == != < && || in at character 6, found `and f[1]`",
        ),
        (
            "'\u{e9}' == f[0] x",
            "expected an operator or the end of the expression at character 13, found `x`",
        ),
        (
            "f[0] == \"open",
            "expected a CEL expression, such as f[1] % 2 == 0 && f[2] != \"x\" at character 9, found `\\\"open`",
        ),
        (
            "9223372036854775808 == f[0]",
            "expected an int of at most 64 bits at character 1, found `9223372036854775808 == f…`",
        ),
        ("f[0] == 7u", "expected an int, without the u at character 9, found `7u`"),
        (
            "f[1] + 1",
            "expected what is true or false instead of a number, such as a comparison with == at character 6, found `+ 1`",
        ),
        (
            "'x'",
            "expected what is true or false instead of str, such as a comparison with == at character 1, found `\\'x\\'`",
        ),
        (
            "true && 1",
            "expected what is true or false instead of int, such as a comparison with == at character 9, found `1`",
        ),
        (
            "f[0] + 'x' == 'yx'",
            "expected a number instead of str at character 8, found `\\'x\\' == \\'yx\\'`",
        ),
        (
            "f.exists(x, x > 1)",
            "expected no loop: all(), exists(), map() and filter() are not there; `x in list` is at character 9, found `(x, x > 1)`",
        ),
        ("has(f.a)", "expected `\"key\" in map` instead of has() at character 4, found `(f.a)`"),
        (
            "f[0].size() == 1",
            "expected size(value) instead of value.size() at character 10, found `() == 1`",
        ),
        (
            "id > 3 && package == 'a'",
            "expected another name: this is a reserved word of CEL; ask about such a field by a pattern at character 11, found `package == \\'a\\'`",
        ),
        (
            "{'a': 1} == f[0]",
            "expected a literal number, text, bytes, true, false, null or [list] at character 1, found `{\\'a\\': 1} == f[0]`",
        ),
    ] {
        assert_eq!(refused(condition), why, "{condition}");
    }
    for function in ["matches(f[0], 'a')", "f[0].matches('a')", "lower(f[0]) == 'a'", "size() == 1"]
    {
        assert!(refused(function).starts_with("expected one of the functions size, startsWith"));
    }
    assert!(refused("f[0].startsWith()").starts_with("expected one argument, as in text.starts"));
}

#[test]
fn a_plain_template_declares_the_name_f_only_m9() {
    let jobs: Template = "job, :int".parse().unwrap();
    let error = jobs.with_condition(&Condition::new("f[1] > 3 && id == 7").unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected `f`, the tuple, as in f[0]; only entries have fields with names at character 13, \
         found `id == 7`"
    );
    let entries: Template = "Job{id: :int}".parse().unwrap();
    assert!(entries.with_condition(&Condition::new("id == 7").unwrap()).is_ok());
}

#[test]
fn length_and_nesting_are_bounded_b2_m9() {
    let long = format!("f[0] == '{}'", "x".repeat(CONDITION_BYTES_MAX));
    assert!(refused(&long).starts_with("expected at most 2048 bytes instead of"));
    let nested = |levels: usize| format!("{}true{}", "(".repeat(levels), ")".repeat(levels));
    assert!(Condition::new(&nested(CONDITION_DEPTH_MAX / 2)).is_ok());
    assert!(refused(&nested(CONDITION_DEPTH_MAX + 2)).starts_with("expected at most 48 levels"));
    let chain = |terms: usize| format!("f[0] == {}1", "1 + ".repeat(terms));
    assert!(Condition::new(&chain(30)).is_ok());
    assert!(refused(&chain(60)).starts_with("expected at most 48 levels of nesting"));
    // Balanced by the parser, so not deep.
    assert!(Condition::new(&format!("{}true", "true && ".repeat(200))).is_ok());
}

#[test]
fn a_template_with_conditions_survives_its_text_and_its_encoding_m9() {
    let text =
        r#"("job", :int) where "f[1] % 2 == 0 && f[0] != \"x\"" | Job{id: > 3} where "id < 9""#;
    let template: Template = text.parse().unwrap();
    assert_eq!(template.to_string(), text);
    assert_eq!(Template::decode(&template.encode().unwrap()).unwrap(), template);
    assert_eq!(
        "job, :int where 'f[1] > 1'".parse::<Template>().unwrap().to_string(),
        r#"("job", :int) where "f[1] > 1""#
    );
    let error = r#"job where "f[1] >""#.parse::<Template>().unwrap_err().to_string();
    assert!(error.starts_with("expected another condition (expected a value"), "{error}");
    let error = "job where \"x\"".parse::<Template>().unwrap_err().to_string();
    assert!(error.contains("expected `f`, the tuple"), "{error}");
    assert!("job, where".parse::<Template>().unwrap().matches(&"job, where".parse().unwrap()));
    let both = template.with_condition(&Condition::new("true || f[0] == 1").unwrap());
    assert!(both.unwrap().to_string().contains("(f[1] % 2 == 0"));
}
