//! The text notation: what is read, what is printed, and what is said about mistakes.

use std::ops::Bound::{Excluded, Included, Unbounded};

use tupelo_tuple::{Kind, KindSet, Pattern, Template, Tuple, Value, tuple};

fn pattern(text: &str) -> Pattern {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn template(text: &str) -> Template {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error_of<T: std::fmt::Debug>(result: Result<T, tupelo_tuple::ParseError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn every_form_of_pattern_is_read_and_printed_m5() {
    let int_or_str = KindSet::of(Kind::Int).or(KindSet::of(Kind::Str));
    let below = |high: i64| Pattern::range(Unbounded, Excluded(high.into())).unwrap();
    for (text, expected) in [
        ("_", Pattern::ANY),
        ("7", 7.into()),
        ("-3.5", (-3.5).into()),
        ("1e3", 1000.0.into()),
        ("true", true.into()),
        ("null", Pattern::Actual(Value::Null)),
        ("job", "job".into()),
        ("'a\"b'", "a\"b".into()),
        (r#""\u{1f600}\n""#, "😀\n".into()),
        (r#"b"\x00a""#, b"\0a".into()),
        (":int", Kind::Int.into()),
        (":int | :str", int_or_str.into()),
        (":none", KindSet::EMPTY.into()),
        ("3..9", Pattern::range(Included(3.into()), Included(9.into())).unwrap()),
        ("3<..9.5", Pattern::range(Excluded(3.into()), Included(9.5.into())).unwrap()),
        ("'a' ..< 'b'", Pattern::range(Included("a".into()), Excluded("b".into())).unwrap()),
        ("> 3", Pattern::range(Excluded(3.into()), Unbounded).unwrap()),
        (">=3", Pattern::range(Included(3.into()), Unbounded).unwrap()),
        ("== 3", 3.into()),
        ("!= 3", Pattern::not(3.into()).unwrap()),
        ("!:int", Pattern::not(Kind::Int.into()).unwrap()),
        ("in {1, two}", Pattern::is_in([1.into(), "two".into()]).unwrap()),
        ("in", "in".into()),
        ("glob:img/*", Pattern::glob("img/*").unwrap()),
        ("prefix:\"a b\"", Pattern::prefix("a b").unwrap()),
        (
            "> 3 & < 9 | x",
            Pattern::any_of([
                Pattern::all([Pattern::range(Excluded(3.into()), Unbounded).unwrap(), below(9)])
                    .unwrap(),
                "x".into(),
            ])
            .unwrap(),
        ),
        ("!(< 3 | < 4)", Pattern::not(Pattern::any_of([below(3), below(4)]).unwrap()).unwrap()),
    ] {
        let read = pattern(text);
        assert_eq!(read, expected, "{text}");
        assert_eq!(pattern(&read.to_string()), expected, "{text} printed as {read}");
    }
}

#[test]
fn every_kind_of_value_has_a_literal_v1() {
    for text in [
        "null",
        "true",
        "-7",
        "123456789012345678901234567890",
        "3.0",
        "-0.0",
        "float(\"nan\")",
        "float(\"nan:7ff0000000000001\")",
        "float(\"-inf\")",
        r#""a \"quoted\" \\ text""#,
        r#"b"\x00\xff""#,
        "decimal(\"12.50\")",
        "timestamp(\"2031-05-04T16:20:00.5Z\")",
        "uuid(\"0f8fad5b-d9cb-469f-a165-70867728950e\")",
        r#"array("i2", list(2, 1), b"\x01\x00\x02\x00")"#,
        "list(1, list(), \"x\")",
        "tuple(1, tuple(2))",
        "map(1: \"a\", \"k\": list(null))",
        "Job(Base){id: 7, name: \"x\"}",
        "opaque(\"pickle\", \"torch.Tensor\", b\"\\x80\")",
    ] {
        let value: Value = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(value.to_string(), text);
    }
}

#[test]
fn a_template_is_patterns_with_or_without_parentheses_m1_m8() {
    assert_eq!(template("job, :int, _"), template("(\"job\", :int, _)"));
    assert_eq!(template("()").to_string(), "()");
    assert_eq!(template("(...)").to_string(), "(...)");
    assert_eq!(template("a, ...").to_string(), "(\"a\", ...)");
    assert_eq!(template("(a) | (b, 1)").alternatives().len(), 2);
    // A parenthesis at the beginning may belong to the first pattern.
    assert_eq!(template("(1 | 2), :int").to_string(), "(1 | 2, :int)");
    assert_eq!(template("(a | b)").alternatives().len(), 1);
    assert!(template("(stop) | (job, :int)").matches(&tuple!["job", 3]));
}

#[test]
fn tuples_are_values_with_or_without_parentheses() {
    assert_eq!("job, 7, 3.5".parse::<Tuple>().unwrap(), tuple!["job", 7, 3.5]);
    assert_eq!("(\"job\",)".parse::<Tuple>().unwrap(), tuple!["job"]);
    assert_eq!("()".parse::<Tuple>().unwrap(), tuple![]);
    assert_eq!(tuple!["job", 7, 3.0].to_string(), "(\"job\", 7, 3.0)");
}

#[test]
fn entries_are_written_by_the_names_of_their_fields_m7() {
    let job: Tuple = "Job(Base, Task){status: 'new', id: 7}".parse().unwrap();
    assert_eq!(job.to_string(), r#"Job(Base, Task){id: 7, status: "new"}"#);
    assert_eq!("Job{}".parse::<Tuple>().unwrap().to_string(), "Job{}");
    // In parentheses it is a field of a tuple, which is no entry.
    let holding: Tuple = "(Job{id: 7})".parse().unwrap();
    assert_eq!((holding.class(), holding.len()), (None, 1));
    assert_eq!("Job{id: 7}, 1".parse::<Tuple>().unwrap().len(), 2);
    for (text, printed) in [
        ("Job{status: :str, id > 3}", "Job{id: > 3, status: :str}"),
        ("Job{}", "Job{}"),
        ("'my job'{'a b': _}", r#""my job"{"a b": _}"#),
        ("(stop) | Job{id: 3..9 | null}", r#"("stop") | Job{id: 3..9 | null}"#),
    ] {
        assert_eq!(template(text).to_string(), printed);
    }
    assert!(template("Base{id: :int}").matches(&job) && !template("Base{other: _}").matches(&job));
    assert!(template("...").matches(&job) && !template("_, ...").matches(&job));
    for wrong in ["Job(Base){id: 7}", "Job{id: 7, id: 8}", "Job{id}", "Job{id: 7", "Job{7: }"] {
        assert!(wrong.parse::<Template>().is_err(), "{wrong}");
    }
}

#[test]
fn the_brace_of_an_entry_ends_a_glob_or_a_prefix_without_quotes_m5_m7() {
    for (text, printed) in [
        ("Job{name: glob:img/*}", r#"Job{name: glob:"img/*"}"#),
        ("Job{name: prefix:img/ }", r#"Job{name: prefix:"img/"}"#),
        ("(a) | Job{a: glob:*, b: !glob:?}", r#"("a") | Job{a: glob:"*", b: !glob:"?"}"#),
    ] {
        assert_eq!(template(text).to_string(), printed);
    }
    let words = Template::parse_words(["Job{name: glob:img/*}"]).unwrap();
    assert!(words.matches(&"Job{name: 'img/1'}".parse().unwrap()));
    // As a word of its own it still reaches to the end.
    assert_eq!(Pattern::parse_word("glob:{a}").unwrap(), Pattern::glob("{a}").unwrap());
}

#[test]
fn nothing_invisible_is_printed_as_it_is() {
    for character in [
        '\u{0}',
        '\u{7f}',
        '\u{ad}',
        '\u{61c}',
        '\u{180e}',
        '\u{200b}',
        '\u{200f}',
        '\u{2028}',
        '\u{202e}',
        '\u{2066}',
        '\u{feff}',
        '\u{fff9}',
        '\u{fffb}',
        '\u{e0001}',
        '\u{e007f}',
    ] {
        let value = Value::from(character);
        let printed = format!("\"\\u{{{:x}}}\"", u32::from(character));
        assert_eq!(value.to_string(), printed);
        assert_eq!(printed.parse::<Value>().unwrap(), value);
    }
}

#[test]
fn a_sole_word_of_a_command_line_may_be_an_entry_m7() {
    let job = Tuple::parse_words(["Job{id: 7, name: 'a b'}"]).unwrap();
    assert_eq!(job.to_string(), r#"Job{id: 7, name: "a b"}"#);
    assert!(Template::parse_words(["Job{id >= 7}"]).unwrap().matches(&job));
    assert!(Template::parse_words(["Job{id >}"]).is_err());
    // As one word of several it is a field.
    assert_eq!(Tuple::parse_words(["x", "Job{id: 7}"]).unwrap().class(), None);
    assert_eq!(Tuple::parse_words(["{id: 7}"]).unwrap(), tuple!["{id: 7}"]);
}

#[test]
fn a_word_that_is_no_number_is_text() {
    for word in ["7a", "10.0.0.1", "-", "-x", "007", ".5", "a.b", "img/cat.png", "2024-01-02"] {
        assert_eq!(pattern(word), word.into(), "{word}");
        assert_eq!(Value::parse_word(word).unwrap(), word.into(), "{word}");
        assert_eq!(Pattern::parse_word(word).unwrap(), word.into(), "{word}");
    }
}

#[test]
fn on_a_command_line_what_is_no_notation_is_text() {
    for word in
        ["hello, world", "a|b", "7 apples", "x=1", "http://host:80/", "", "in", "a b", "3..x"]
    {
        assert_eq!(Value::parse_word(word).unwrap(), word.into(), "{word}");
        assert_eq!(Pattern::parse_word(word).unwrap(), word.into(), "{word}");
    }
    assert_eq!(Value::parse_word("s:7").unwrap(), "7".into());
    assert_eq!(Pattern::parse_word("s:_").unwrap(), "_".into());
    assert_eq!(Value::parse_word("\"7\"").unwrap(), "7".into());
    assert_eq!(Value::parse_word(":int").unwrap(), ":int".into());
    assert_eq!(Pattern::parse_word(">3").unwrap(), pattern("> 3"));
    assert_eq!(Pattern::parse_word("3..9").unwrap(), pattern("3..9"));
    assert_eq!(Pattern::parse_word("glob:a b*").unwrap(), Pattern::glob("a b*").unwrap());
    assert_eq!(
        Pattern::parse_word("uuid(\"0f8fad5bd9cb469fa16570867728950e\")")
            .unwrap()
            .to_string()
            .len(),
        44
    );
    let words = Template::parse_words(["job", ":int", "..."]).unwrap();
    assert_eq!(words, template("job, :int, ..."));
    assert!(Template::parse_words(["...", "x"]).is_err());
}

#[test]
fn a_word_that_is_text_keeps_its_blanks_and_one_that_is_not_does_not_need_them() {
    for word in [" hello ", "hello\n", "\thello", " a b ", " ", " _ ", " in", "x = 1 ", " list(1"] {
        assert_eq!(Value::parse_word(word).unwrap(), word.into(), "{word:?}");
        assert_eq!(Pattern::parse_word(word).unwrap(), word.into(), "{word:?}");
    }
    for (word, value) in [
        (" 'hello' ", "hello".into()),
        ("'hello' ", "hello".into()),
        (" b'\\x00' ", Value::from(b"\0")),
        (" 7\n", 7.into()),
        (" true ", true.into()),
        (" tuple() ", Value::Tuple(Vec::new())),
    ] {
        assert_eq!(Value::parse_word(word).unwrap(), value, "{word:?}");
        assert_eq!(Pattern::parse_word(word).unwrap(), value.into(), "{word:?}");
    }
}

#[test]
fn a_prefix_of_bytes_is_one_as_a_word_of_its_own_too_m5() {
    let bytes = Pattern::prefix(Value::from(b"\0a")).unwrap();
    for word in [r#"prefix:b"\x00a""#, r"prefix:b'\x00a'"] {
        assert_eq!(Pattern::parse_word(word).unwrap(), bytes, "{word}");
        assert_eq!(pattern(word), bytes, "{word}");
    }
    for (word, text) in [("prefix:b", "b"), ("prefix:a b'", "a b'"), ("prefix:'a b'", "a b")] {
        assert_eq!(Pattern::parse_word(word).unwrap(), Pattern::prefix(text).unwrap(), "{word}");
    }
    // A glob is text only: there is nothing else that these could be.
    for word in [r#"glob:b"?""#, "glob:b'?'"] {
        let glob = Pattern::glob(&word["glob:".len()..]).unwrap();
        assert_eq!(Pattern::parse_word(word).unwrap(), glob, "{word}");
        assert_eq!(pattern(word), glob, "{word}");
    }
    assert_eq!(Pattern::parse_word("glob:b\" ?").unwrap(), Pattern::glob("b\" ?").unwrap());
    for wrong in [r"prefix:b'\xzz'", "prefix:b'a", "prefix:'a", "glob:'a"] {
        let error = error_of(Pattern::parse_word(wrong));
        assert!(error.contains(&format!("(as plain text: s:{wrong})")), "{error}");
    }
}

#[test]
fn a_mistake_is_told_with_its_place_and_what_was_expected() {
    assert_eq!(
        error_of("job, :integer".parse::<Template>()),
        "expected one of null, bool, int, float, str, bytes, decimal, timestamp, uuid, array, list, tuple, \
         map, entry, opaque, number, any at character 7, found `integer`"
    );
    assert_eq!(
        error_of("(\"job\", 7".parse::<Template>()),
        "expected `,` or `)` at character 10, found the end"
    );
    assert_eq!(
        error_of("a, , b".parse::<Template>()),
        "expected a pattern at character 4, found `, b`"
    );
    assert_eq!(
        error_of("".parse::<Template>()),
        "expected a pattern at character 1, found the end"
    );
    assert_eq!(
        error_of("3..x".parse::<Pattern>()),
        "expected a number, or text in quotes at character 4, found `x`"
    );
    assert_eq!(
        error_of("\"ö\\q\"".parse::<Value>()),
        r#"expected one of \n \r \t \0 \\ \" \' \u{…} at character 3, found `\\q\"`"#
    );
}

#[test]
fn a_mistake_in_meaning_is_told_with_the_way_out() {
    assert!(error_of(Pattern::parse_word("<html>")).contains("(as plain text: s:<html>)"));
    assert!(
        error_of("3..\"x\"".parse::<Pattern>()).contains("a range from int to str can not match")
    );
    assert!(error_of("1e999".parse::<Value>()).contains("a number that a float can hold"));
    assert!(error_of("set(1)".parse::<Value>()).contains("one of float, decimal"));
    assert!(error_of("map(1: 2, 1: 3)".parse::<Value>()).contains("1 is there twice"));
}

#[test]
fn depth_and_length_of_a_text_have_limits_b2() {
    let deep = "(".repeat(1000);
    assert!(error_of(deep.parse::<Template>()).contains("at most 128 levels"));
    assert!(error_of("list(".repeat(1000).parse::<Value>()).contains("at most 128 levels"));
    assert!(error_of("!".repeat(1000).parse::<Pattern>()).contains("at most 128 levels"));
    let long = "x".repeat(2 << 20);
    assert!(error_of(long.parse::<Value>()).contains("at most 1048576 bytes"));
    // In a tuple and in a template alike, or what was put would not be found.
    for word in [&long, &format!("'{long}'")] {
        let value = error_of(Value::parse_word(word).map(drop));
        assert!(value.contains("at most 1048576 bytes"), "{value}");
        assert_eq!(error_of(Pattern::parse_word(word).map(drop)), value);
    }
    let word = format!("s:{long}");
    assert_eq!(Value::parse_word(&word).unwrap(), long.as_str().into());
    assert_eq!(Pattern::parse_word(&word).unwrap(), long.as_str().into());
}
