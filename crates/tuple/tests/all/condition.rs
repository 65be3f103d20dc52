//! Conditions over a whole tuple (rule M9): what they understand, and what they refuse.

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
    assert_eq!(asked("f[0] < f[1]", "false, true"), Err(Fault::Kind));
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
    assert_eq!(asked("f[0] / f[1] == 1", "7, 0"), Err(Fault::Range));
    assert_eq!(asked("f[0] % f[1] == 1", "7, 0"), Err(Fault::Range));
    assert_eq!(asked("f[0] % f[1] == 1.0", "7.0, 2.0"), Err(Fault::Kind));
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
        "expected a field of Job (f, id, status) at character 11, found `stauts == \\'new\\'`; \
         did you mean \"status\"?"
    );
    let other = Condition::new("owner == 'me'").unwrap().require_class(class).unwrap_err();
    assert_eq!(
        other.to_string(),
        "expected a field of Job (f, id, status) at character 1, found `owner == \\'me\\'`"
    );
    let of_python = Condition::new("id > 3 && status == None").unwrap();
    let error = of_python.require_class(class).unwrap_err().to_string();
    assert_eq!(error, "expected `null` at character 21, found `None`");
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
        ("f[0] and f[1]", "expected `&&` at character 6, found `and f[1]`"),
        (
            "f[0] f[1]",
            "expected an operator, such as == != < && || in at character 6, found `f[1]`",
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
fn a_part_without_an_answer_for_any_tuple_is_refused_wherever_it_stands_m9() {
    for (condition, why) in [
        (
            "0 < f[1] < 10",
            "expected && between two comparisons at character 10, found `< 10`; write `0 < f[1] && f[1] < 10`",
        ),
        (
            "f[0] == 1 || (0 <= f[1] + 1 <= 10)",
            "expected && between two comparisons at character 29, found `<= 10)`; write `f[0] == 1 || (0 <= f[1] + 1 && f[1] + 1 <= 10)`",
        ),
        (
            "(0 < f[1]) < 10",
            "expected && between two comparisons at character 12, found `< 10`; write `a < b && b < c`",
        ),
        (
            "f[1] > true",
            "expected what has an order instead of bool, such as a number or text at character 8, found `true`; == and != are for all kinds",
        ),
        (
            "null > 1",
            "expected what has an order instead of null, such as a number or text at character 1, found `null > 1`; == and != are for all kinds",
        ),
        (
            "f[0] + 1 < 'a'",
            "expected what has an order with a number instead of str at character 12, found `\\'a\\'`",
        ),
        (
            "f[0].startsWith(1)",
            "expected text instead of int, as in text.startsWith(\"x\") at character 17, found `1)`",
        ),
        ("1/0 == 1", "expected a divisor other than 0 at character 3, found `0 == 1`"),
        (
            "f[0] == 1 || f[1] % 0 == 1",
            "expected a divisor other than 0 at character 21, found `0 == 1`",
        ),
        (
            "f[0] % 2.0 == 1.0",
            "expected an int instead of float at character 8, found `2.0 == 1.0`",
        ),
        (
            "f[0] * 1.5 + 1 == 2",
            "expected floats on both sides at character 14, found `1 == 2`; double(x) makes a float of an int, int(x) an int of a float",
        ),
        ("[1][-1] == 1", "expected an index from 0 instead of -1 at character 5, found `-1] == 1`"),
        (
            "'abc'[0] == 'a'",
            "expected a list, a tuple or a map instead of str at character 1, found `\\'abc\\'[0] == \\'a\\'`",
        ),
        (
            "1 in 'abc'",
            "expected a list, a tuple or a map instead of str at character 6, found `\\'abc\\'`",
        ),
        (
            "size(1) == 1",
            "expected text, bytes, a list or a map instead of int at character 6, found `1) == 1`",
        ),
    ] {
        assert_eq!(refused(condition), why, "{condition}");
    }
    // What some tuple has an answer to.
    for (condition, tuple) in [
        ("f[0] / 0.0 > 1.0", "1.0"),
        ("f[0] < f[1] == true", "1, 2"),
        ("f[0] < 0x10 && f[0] < 2.5", "1"),
        ("f[63 - f[0]] == 'x'", "62, x"),
        ("(f[0] ? 1 : 'x') == 1", "true"),
        ("(f[0] ? 1 : 2.5) + 1 == 2", "true"),
    ] {
        assert_eq!(asked(condition, tuple), Ok(true), "{condition}");
    }
}

#[test]
fn what_no_plain_tuple_has_is_refused_of_it_and_may_be_asked_of_an_entry_m7_m9() {
    let with = |template: &str, condition: &str| {
        let template: Template = template.parse().unwrap();
        template.with_condition(&Condition::new(condition).unwrap())
    };
    for (condition, why) in [
        (
            "f[-1] == 1",
            "expected an index from 0 instead of -1 at character 3, found `-1] == 1`; the last field is f[size(f) - 1]",
        ),
        (
            "f[0] == 1 || f[-2] == 1",
            "expected an index from 0 instead of -2 at character 16, found `-2] == 1`; from the end it is f[size(f) - 2]",
        ),
        (
            "f['1'] == 4",
            "expected an index, such as 0, instead of str at character 3, found `\\'1\\'] == 4`; write f[1]",
        ),
        (
            "f['x'] == 4",
            "expected an index, such as 0, instead of str at character 3, found `\\'x\\'] == 4`; only entries have fields with names",
        ),
        (
            "f['70'] == 4",
            "expected an index, such as 0, instead of str at character 3, found `\\'70\\'] == 4`; only entries have fields with names",
        ),
        (
            "f[-70] == 4",
            "expected an index from 0 instead of -70 at character 3, found `-70] == 4`",
        ),
        (
            "f.x == 1",
            "expected an index, as in f[0] at character 2, found `.x == 1`; only entries have fields with names",
        ),
        (
            "f[64] == 1",
            "expected an index of at most 63 at character 3, found `64] == 1`; a tuple has at most 64 fields",
        ),
        (
            "f > 1",
            "expected what has an order instead of the tuple, such as a number or text at character 1, found `f > 1`; its first field is f[0]",
        ),
        (
            "f.startsWith('x')",
            "expected text instead of the tuple, as in text.startsWith(\"x\") at character 1, found `f.startsWith(\\'x\\')`; its first field is f[0]",
        ),
    ] {
        assert_eq!(with("job, ...", condition).unwrap_err().to_string(), why, "{condition}");
        assert!(with("Job{}", condition).is_ok(), "{condition}");
    }
    for (template, condition, matched) in [
        ("_", "f[0].x == 1", "map('x': 1)"),
        ("_", "f[0]['x'] == 1 && f[0][-1] == 2 && f[0][70] == 3", "map('x': 1, -1: 2, 70: 3)"),
        ("_, ...", "f[size(f) - 1] == 1 && f[63] != 1 || f[size(f) - 1] == 2", "0, 2"),
        ("Job{}", "f.x == 1 && f[-1] == 2", "Job{f: map('x': 1, -1: 2)}"),
        ("Job{}", "f > 1 && f + 1 == 3", "Job{f: 2}"),
    ] {
        let template = with(template, condition).unwrap();
        assert!(template.matches(&matched.parse().unwrap()), "{condition}");
    }
}

#[test]
fn words_of_other_languages_are_answered_with_those_of_cel_m9() {
    for (condition, why) in [
        (
            "len(f[0]) > 1",
            "expected size(value) instead of len(value) at character 4, found `(f[0]) > 1`",
        ),
        (
            "f[0].len() > 1",
            "expected size(value) instead of value.len() at character 9, found `() > 1`",
        ),
        ("f[0] == 1 or f[1] == 1", "expected `||` at character 11, found `or f[1] == 1`"),
        ("f[0] == 1 and", "expected `&&` at character 11, found `and`"),
        ("not f[0]", "expected `!`, as in !(x in list), at character 1, found `not f[0]`"),
        (
            "not (f[0] == 1)",
            "expected `!`, as in !(x in list), at character 5, found `(f[0] == 1)`",
        ),
        ("1 not in f", "expected `!`, as in !(x in list), at character 3, found `not in f`"),
        (
            "f[0] == 1 && not f[1]",
            "expected `!`, as in !(x in list), at character 14, found `not f[1]`",
        ),
    ] {
        assert_eq!(refused(condition), why, "{condition}");
    }
}

#[test]
fn a_plain_template_declares_the_name_f_only_m9() {
    let jobs_with = |text: &str| {
        let jobs: Template = "job, :int".parse().unwrap();
        jobs.with_condition(&Condition::new(text).unwrap())
    };
    let error = jobs_with("f[1] > 3 && id == 7").unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected `f`, the tuple, as in f[0] at character 13, found `id == 7`; only entries have \
         fields with names"
    );
    let none = jobs_with("f[1] == None").unwrap_err().to_string();
    assert_eq!(none, "expected `null` at character 9, found `None`");
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
