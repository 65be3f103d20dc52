//! What is refused, and what is said of it: how much was done, and what to type next.

use crate::support::{TestSpace, run, run_with_input};
use serde_json::json;
use tupelo::{ConnectOptions, Space};

/// A space for so many tuples.
fn limited(test: &str, tuples_max: u64) -> TestSpace {
    let space = TestSpace::new(test);
    let options = ConnectOptions { tuples_max: Some(tuples_max), ..ConnectOptions::default() };
    Space::connect(&space.url, &options).unwrap();
    space
}

/// A line of JSON with a text of so many bytes.
fn long(bytes: usize) -> String {
    json!(["job", "x".repeat(bytes)]).to_string()
}

#[test]
fn a_line_that_the_space_refuses_is_named_with_what_was_put_before() {
    let space = limited("refused-line", 2);
    let put = run_with_input(&["put", &space.url, "-"], "[\"a\"]\n\n[\"b\"]\n[\"c\"]\n[\"d\"]\n");
    assert_eq!((put.code, put.out.as_str()), (1, ""));
    assert!(put.err.starts_with("tupelo: line 4: TUP-005: "), "{}", put.err);
    assert!(put.err.ends_with("\n  Put before it: 2 tuples.\n"), "{}", put.err);
    assert!(put.err.contains("`tupelo take` makes room"), "{}", put.err);
}

#[test]
fn a_line_that_can_not_be_encoded_is_no_wrong_usage() {
    let space = TestSpace::new("refused-depth");
    let deep = format!("[\"a\"]\n{}1{}\n", "[".repeat(200), "]".repeat(200));
    let put = run_with_input(&["put", &space.url, "-"], &deep);
    assert_eq!(put.code, 1, "{}", put.err);
    assert!(put.err.starts_with("tupelo: line 2: values are nested over 128 "), "{}", put.err);
    assert!(put.err.ends_with("\n  Put before it: 1 tuple.\n"), "{}", put.err);
}

#[test]
fn what_never_fits_is_not_told_to_wait() {
    let space = TestSpace::new("never-fits");
    let sized = format!("{}?size=2M", space.url);
    let put = run_with_input(&["put", &sized, "-"], &long(4 << 20));
    assert_eq!(put.code, 1);
    assert!(put.err.contains("put it in smaller parts"), "{}", put.err);
    assert!(!put.err.contains("makes room"), "{}", put.err);
}

#[test]
fn a_space_of_the_process_itself_is_refused() {
    for words in [
        &["put", "mem://jobs", "job", "7"][..],
        &["put", "mem://jobs", "-"],
        &["read", "mem://jobs", "job", "_", "--timeout", "10ms"],
        &["take", "mem://jobs", "job", "_", "--try"],
        &["take", "mem://jobs", "job", "_", "--exec", "true", "--timeout", "10ms"],
        &["watch", "--url", "mem://jobs", "job", "--timeout", "10ms"],
        &["top", "mem://jobs", "--count", "1"],
        &["ls", "mem://jobs"],
        &["rm", "mem://jobs", "--yes"],
    ] {
        let refused = run(words);
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{words:?}");
        assert!(refused.err.contains("Write shm://jobs, "), "{}", refused.err);
    }
}

#[test]
fn words_that_make_no_sense_make_no_space() {
    let space = TestSpace::new("no-space");
    let url = space.url.as_str();
    for words in [
        &["put", url, "uuid(\"x\")"][..],
        &["watch", url, "job", "--buffer", "0"],
        &["watch", url, "job", "--count", "0"],
        &["take", url, "job", ":integer"],
        &["take", url, "job", "--where", "f[0] >"],
    ] {
        assert_eq!(run(words).code, 2, "{words:?}");
        assert_eq!(run(&["stat", url]).code, 5, "{words:?}");
    }
}

#[test]
fn entries_have_no_numbers_to_be_ordered_by() {
    let space = TestSpace::new("no-numbers");
    let url = space.url.as_str();
    for words in [
        &["take", url, "Job{}", "--order", "max:0"][..],
        &["take", url, "Job{id: :int}", "--order", "min:1", "--exec", "true"],
        &["read", url, "Job{}", "--order", "max:0", "--try"],
    ] {
        let refused = run(words);
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{words:?}");
        assert!(refused.err.contains("entries have no field numbers"), "{}", refused.err);
        assert_eq!(run(&["stat", url]).code, 5, "{words:?}");
    }
}

#[test]
fn entries_are_ordered_by_the_name_of_a_field_and_tuples_by_its_number() {
    let space = TestSpace::new("by-name");
    let url = space.url.as_str();
    for entry in ["Job{id: 1, priority: 3}", "Job{id: 2, priority: 9}"] {
        assert_eq!(run(&["put", url, entry]).code, 0);
    }
    let taken = run(&["take", url, "Job{}", "--order", "max:priority"]).out;
    assert_eq!(taken, "Job{id: 2, priority: 9}\n");
    let refused = run(&["take", url, "job", ":int", "--order", "max:priority"]);
    assert!(refused.err.contains("only fields of entries have names"), "{}", refused.err);
}

#[test]
fn tuples_have_no_more_fields_to_be_ordered_by_than_are_asked_for() {
    let space = TestSpace::new("no-such-field");
    let url = space.url.as_str();
    assert_eq!(run(&["put", url, "job", "7"]).code, 0);
    for order in ["max:2", "min:7"] {
        let refused = run(&["take", url, "job", ":int", "--order", order, "--try"]);
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{order}");
        let (_, field) = order.split_once(':').unwrap();
        let said = format!("goes by field {field}, and what is asked for has 2 fields");
        assert!(refused.err.contains(&said), "{}", refused.err);
    }
    assert_eq!(run(&["read", url, "job", "...", "--order", "max:7", "--try"]).code, 0);
    assert_eq!(run(&["take", url, "job", ":int", "--order", "max:1", "--try"]).code, 0);
}

#[test]
fn help_says_which_commands_do_not_look_at_the_environment() {
    let help = run(&["--help"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        help.contains("By default `$TUPELO_URL`, but ls, top and doctor then look at all spaces"),
        "{help}"
    );
}

#[test]
fn what_is_not_there_is_not_asked_about_and_what_is_no_space_is_not_looked_at() {
    let space = TestSpace::new("not-there");
    assert_eq!(run(&["rm", &space.url]).code, 5);
    for no_space in ["jobs", "mem://x"] {
        assert_eq!(run(&["rm", no_space]).code, 2, "{no_space}");
        let looked = run(&["doctor", no_space]);
        assert_eq!((looked.code, looked.out.as_str()), (2, ""), "{no_space}");
    }
    run(&["put", &space.url, "TUP-003"]);
    let explained = run(&["explain", "--url", &space.url, "TUP-003"]).out;
    assert_eq!(
        explained, "1 tuple matches (\"TUP-003\") now\n",
        "with --url every word is a field"
    );
}
