//! `tupelo put`, `read` and `take`: what they print, and how they end.

use crate::support::{TestSpace, command, finish, run, run_with_input};
use serde_json::json;

#[test]
fn a_tuple_that_was_put_is_read_and_then_taken() {
    let space = TestSpace::new("put-take");
    let url = space.url.as_str();
    let put = run(&["put", url, "job", "7", "-3.5", "true", "null", "s:8"]);
    assert_eq!((put.code, put.out.as_str(), put.err.as_str()), (0, "", ""));

    let template = ["job", ":int", "_", ":bool", "_", ":str"];
    let words = |verb| [&[verb, url][..], &template].concat();
    let printed = "(\"job\", 7, -3.5, true, null, \"8\")\n";
    assert_eq!(run(&words("read")).out, printed);
    assert_eq!(run(&words("take")).out, printed);
    assert_eq!(run(&[&words("take")[..], &["--try"]].concat()).code, 3);
}

#[test]
fn a_negative_number_is_a_word_in_every_form_that_the_notation_has() {
    let space = TestSpace::new("negative");
    let url = space.url.as_str();
    let numbers = ["-7", "-3.5", "-1e3", "-1e-3", "-2.5E+3"];
    assert_eq!(run(&[&["put", url][..], &numbers].concat()).code, 0);
    let read = run(&[&["read", url, "--try"][..], &numbers].concat());
    assert_eq!(read.out, "(-7, -3.5, -1000.0, -0.001, -2500.0)\n", "{}", read.err);
    let patterns = ["-9..-5", "-1e+1..0.0", "_", "-1|-1e-3", ":float"];
    let taken = run(&[&["take", url][..], &patterns, &["--try", "--quiet"]].concat());
    assert_eq!((taken.code, taken.out.as_str()), (0, ""), "{}", taken.err);
    for word in ["-1e-3x", "-x", "--leese"] {
        let refused = run(&["put", url, word]);
        assert_eq!(refused.code, 2, "{word}");
        assert!(refused.err.contains("unexpected argument"), "{}", refused.err);
        assert_eq!(run(&["put", url, "--", word]).code, 0, "{word}");
    }
    for wrong in [["--limit", "-1"], ["--limit", "-1e-3"], ["--timeout", "-5"]] {
        let refused = run(&["read", url, "--all", "_", wrong[0], wrong[1], "-1e-3"]);
        assert_eq!(refused.code, 2, "{wrong:?}");
        let told = format!("invalid value '{}' for '{}", wrong[1], wrong[0]);
        assert!(refused.err.contains(&told), "{:?}", refused.err);
    }
}

#[test]
fn a_condition_over_the_whole_tuple_chooses_m9() {
    let space = TestSpace::new("where");
    let url = space.url.as_str();
    for stock in [["3", "9"], ["7", "2"], ["x", "1"]] {
        run(&["put", url, "stock", stock[0], stock[1]]);
    }
    let found = run(&["read", url, "stock", "_", "_", "--where", "f[2] < f[1]", "--try"]);
    assert_eq!((found.code, found.out.as_str()), (0, "(\"stock\", 7, 2)\n"));
    // The oldest match of all shapes: also of the one whose field is a text, which has no order with a number.
    assert_eq!(run(&["stat", url, "--json"]).objects()[0]["where_errors"], 1);
    let all = run(&["take", url, "stock", "...", "--where", "f[1] > f[2]", "--all", "--json"]);
    assert_eq!(all.objects(), [json!({ "tuple": ["stock", 7, 2] })]);
    assert_eq!(run(&["stat", url, "--json"]).objects()[0]["where_errors"], 2);

    let wrong = run(&["take", url, "stock", "...", "--where", "f[1] >", "--try"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("expected a value"), "{}", wrong.err);
    let careless = run(&["rm", url, "--where", "f[1] == 3", "--yes"]);
    assert_eq!(careless.code, 2, "the space would have gone");
    assert_eq!(run(&["rm", url, "stock", "...", "--where", "f[1] == 3", "--yes"]).code, 0);
    assert_eq!(run(&["read", url, "...", "--all"]).out, "(\"stock\", \"x\", 1)\n");
}

#[test]
fn json_has_one_object_per_line() {
    let space = TestSpace::new("json");
    let url = space.url.as_str();
    run(&["put", url, "job", "7", "b\"\\x00\\xff\""]);
    let read = run(&["read", url, "job", "...", "--json"]);
    assert_eq!(read.objects(), [json!({ "tuple": ["job", 7, { "$bytes": "00ff" }] })]);
}

#[test]
fn quiet_prints_nothing_and_the_exit_code_tells() {
    let space = TestSpace::new("quiet");
    let url = space.url.as_str();
    run(&["put", url, "job"]);
    let found = run(&["read", url, "job", "--try", "--quiet"]);
    assert_eq!((found.code, found.out.as_str()), (0, ""));
    let missed = run(&["read", url, "nothing", "--try", "--quiet"]);
    assert_eq!((missed.code, missed.out.as_str(), missed.err.as_str()), (3, "", ""));
}

#[test]
fn what_read_prints_as_json_put_reads() {
    let (from, to) = (TestSpace::new("json-from"), TestSpace::new("json-to"));
    run(&["put", &from.url, "a", "1", "1.0", "decimal(\"1.50\")", "map(\"k\": list(1, null))"]);
    run(&["put", &from.url, "tuple(1, \"x\")", "uuid(\"00000000-0000-0000-0000-000000000007\")"]);
    let read = run(&["read", &from.url, "...", "--all", "--json"]);
    assert_eq!(read.out.lines().count(), 2, "{read:?}");

    let put = run_with_input(&["put", &to.url, "-"], &read.out);
    assert_eq!((put.code, put.out.as_str()), (0, "2 tuples put\n"));
    assert_eq!(run(&["read", &to.url, "...", "--all", "--json"]).out, read.out);
}

#[test]
fn a_bad_line_is_named_and_those_before_it_are_put() {
    let space = TestSpace::new("bad-line");
    let put = run_with_input(&["put", &space.url, "-"], "[\"a\"]\n\n{\"job\": 1}\n[\"b\"]\n");
    assert_eq!(put.code, 1);
    assert!(put.err.starts_with("tupelo: line 3: a tuple is a list"), "{}", put.err);
    assert!(put.err.ends_with("Put before it: 1 tuple.\n"), "{}", put.err);
    assert_eq!(run(&["read", &space.url, "_", "--all"]).out, "(\"a\")\n");
}

#[test]
fn all_of_nothing_is_nothing() {
    let space = TestSpace::new("all");
    let url = space.url.as_str();
    for number in ["1", "2", "3"] {
        run(&["put", url, "n", number]);
    }
    assert_eq!(
        run(&["take", url, "n", ":int", "--all", "--limit", "2"]).out,
        "(\"n\", 1)\n(\"n\", 2)\n"
    );
    assert_eq!(run(&["take", url, "n", ":int", "--all"]).out, "(\"n\", 3)\n");
    let none = run(&["take", url, "n", ":int", "--all"]);
    assert_eq!((none.code, none.out.as_str()), (0, ""));
}

#[test]
fn the_order_chooses_among_several() {
    let space = TestSpace::new("order");
    let url = space.url.as_str();
    for number in ["2", "3", "1"] {
        run(&["put", url, "n", number]);
    }
    let read = |order| run(&["read", url, "n", ":int", "--order", order]).out;
    assert_eq!(read("fifo"), "(\"n\", 2)\n");
    assert_eq!(read("lifo"), "(\"n\", 1)\n");
    assert_eq!(read("max:1"), "(\"n\", 3)\n");
    assert_eq!(read("min:1"), "(\"n\", 1)\n");
}

#[test]
fn a_timeout_ends_with_3_and_says_what_is_there() {
    let space = TestSpace::new("timeout");
    let url = space.url.as_str();
    run(&["put", url, "job", "7"]);
    let missed = run(&["take", url, "job", ":str", "--timeout", "10ms"]);
    assert_eq!((missed.code, missed.out.as_str()), (3, ""));
    assert!(
        missed.err.starts_with("tupelo: TUP-003: nothing matched (\"job\", :str) within "),
        "{missed:?}"
    );
    assert!(missed.err.lines().count() > 1, "no hint: {}", missed.err);
}

#[test]
fn a_take_that_nobody_watches_does_not_look_why_it_waits() {
    let space = TestSpace::new("unwatched");
    let url = space.url.as_str();
    run(&["put", url, "n", "x"]);
    // Each look at the tuple is an error of the condition.
    let looks = |timeout| {
        let errors =
            || run(&["stat", url, "--json"]).objects()[0]["where_errors"].as_u64().unwrap();
        let before = errors();
        let words = ["take", url, "n", "_", "--where", "f[1] > 3", "--timeout", timeout];
        assert_eq!(run(&words).code, 3);
        errors() - before
    };
    // After a second it would say so on a terminal.
    assert_eq!(looks("1100ms"), looks("10ms"));
}

#[test]
fn a_waiting_take_is_served_by_a_put_of_another_process() {
    let space = TestSpace::new("waiting");
    let url = space.url.as_str();
    let waiting = command(&["take", url, "job", ":int"]).spawn().unwrap();
    run(&["put", url, "job", "7"]);
    assert_eq!(finish(waiting).out, "(\"job\", 7)\n");
}

#[test]
fn a_killed_take_takes_nothing() {
    let space = TestSpace::new("killed");
    let url = space.url.as_str();
    run(&["put", url, "other"]);
    let mut waiting = command(&["take", url, "job"]).spawn().unwrap();
    let stat = loop {
        let stat = run(&["stat", url, "--json"]).objects().remove(0);
        if stat["waiters"] == 1 {
            break stat;
        }
    };
    assert_eq!(stat["pids"], json!([waiting.id()]));
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    run(&["put", url, "job"]);
    assert_eq!(run(&["take", url, "job", "--timeout", "10s"]).out, "(\"job\")\n"); // T5, C3
}

#[test]
fn the_space_may_come_from_an_option_or_the_environment() {
    let space = TestSpace::new("from-where");
    let url = space.url.as_str();
    assert_eq!(run(&["put", "--url", url, "shm://is-a-field-here"]).code, 0);
    let read = command(&["read", "_", "--try"]).env("TUPELO_URL", url).output().unwrap();
    assert_eq!(String::from_utf8(read.stdout).unwrap(), "(\"shm://is-a-field-here\")\n");
    assert_eq!(run(&["read", "_", "--try"]).code, 2);
}

#[test]
fn to_look_does_not_make_a_space() {
    let space = TestSpace::new("missing");
    for words in
        [&["read", &space.url, "_", "--try"][..], &["ls", &space.url], &["stat", &space.url]]
    {
        let run = run(words);
        assert_eq!(run.code, 5, "{words:?}: {run:?}");
    }
}

#[test]
fn words_that_make_no_sense_end_with_2() {
    let space = TestSpace::new("usage");
    let url = space.url.as_str();
    let read = run(&["read", url, "job", ":integer"]);
    assert_eq!(read.code, 2);
    assert!(read.err.starts_with("tupelo: \":integer\": "), "{}", read.err);
    let refused = run(&["read", url, "job", "--timeout", "-1s"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("a time is 0 or more"), "{}", refused.err);
    assert_eq!(run(&["reed", url]).code, 2);
    let forgotten = run(&["read", url]);
    assert_eq!(forgotten.code, 2);
    assert!(forgotten.err.contains("which tuple"), "{}", forgotten.err);
    assert_eq!(run(&["read", "smh://typo", "_", "--try"]).code, 2);
}

#[test]
fn a_size_behind_the_name_is_that_of_a_new_space_and_a_full_one_says_how_to_get_more() {
    let space = TestSpace::new("size");
    let sized = format!("{}?size=64K", space.url);
    let long = "x".repeat(50_000);
    let codes: Vec<i32> = (0..100).map(|_| run(&["put", &sized, &long]).code).collect();
    assert!(codes.contains(&0) && codes.contains(&1), "{codes:?}");
    let full = run(&["put", &space.url, &long]);
    assert!(full.err.contains("?size=1G"), "{}", full.err);
}

#[test]
fn a_space_that_is_not_there_is_made_by_put_says_the_message() {
    let absent = run(&["take", "shm://cli-test-never-made", "job", "--try"]);
    assert_eq!(absent.code, 5);
    assert!(absent.err.contains("`tupelo put` makes it"), "{}", absent.err);
}
