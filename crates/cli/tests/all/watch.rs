//! `tupelo watch`, and how subscriptions are shown.

use crate::support::{TestSpace, command, finish, run};
use serde_json::json;
use tupelo::{ConnectOptions, Space};

/// Waits until somebody listens: it is another process that begins.
fn until_it_listens(space: &TestSpace) {
    let space = Space::connect(&space.url, &ConnectOptions::default()).unwrap();
    while space.stat().unwrap().subscriptions.is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn what_happens_is_printed_as_it_happens_n1() {
    let space = TestSpace::new("watch");
    let url = space.url.as_str();
    let on = "put,take,return";
    let watch =
        command(&["watch", url, "job", ":int", "--on", on, "--count", "4"]).spawn().unwrap();
    until_it_listens(&space);
    run(&["put", url, "job", "7"]);
    run(&["put", url, "other", "7"]);
    run(&["take", url, "job", "_", "--exec", "exit 1"]);
    run(&["take", url, "job", "_"]);
    run(&["put", url, "job", "8"]);
    let watched = finish(watch);
    let lines: Vec<Vec<&str>> =
        watched.out.lines().map(|line| line.splitn(3, char::is_whitespace).collect()).collect();
    let kinds: Vec<&str> = watched.out.lines().map(|line| line[6..13].trim()).collect();
    assert_eq!((watched.code, kinds), (0, vec!["put", "return", "take", "put"]), "{lines:?}");
    assert!(watched.out.ends_with("(\"job\", 8)\n"), "{}", watched.out);
}

#[test]
fn events_are_json_objects_with_their_numbers_n2() {
    let space = TestSpace::new("watch-json");
    let url = space.url.as_str();
    let words = ["watch", url, "job", "_", "--json", "--count", "2", "--buffer", "8"];
    let watch = command(&words).spawn().unwrap();
    until_it_listens(&space);
    let stat = run(&["stat", url, "--json"]).objects().remove(0);
    let listed = &stat["subscriptions"][0];
    assert_eq!((&listed["buffer"], &listed["dropped"]), (&json!(8), &json!(0)));
    assert_eq!(listed["pid"], json!(watch.id()));
    assert!(run(&["stat", url]).out.contains(" listening   process "));
    run(&["put", url, "job", "7"]);
    run(&["put", url, "job", "x"]);
    let events = finish(watch).objects();
    assert_eq!(
        events,
        [
            json!({"event": "put", "seq": 1, "missed": 0, "tuple": ["job", 7]}),
            json!({"event": "put", "seq": 2, "missed": 0, "tuple": ["job", "x"]}),
        ]
    );
}

#[test]
fn a_tuple_that_is_larger_than_the_buffer_is_missed_and_the_watch_goes_on_n2() {
    let space = TestSpace::new("watch-large");
    let url = space.url.as_str();
    let words = ["watch", url, "job", "_", "--json", "--count", "1", "--buffer-bytes", "65536"];
    let watch = command(&words).spawn().unwrap();
    until_it_listens(&space);
    run(&["put", url, "job", &"x".repeat(100_000)]);
    run(&["put", url, "job", "7"]);
    let events = finish(watch).objects();
    assert_eq!(events, [json!({"event": "put", "seq": 2, "missed": 1, "tuple": ["job", 7]})]);
}

#[test]
fn a_watch_that_sees_nothing_ends_with_3_and_wrong_words_with_2() {
    let space = TestSpace::new("watch-timeout");
    let url = space.url.as_str();
    let silent = run(&["watch", url, "job", "_", "--timeout", "10ms"]);
    assert_eq!((silent.code, silent.out.as_str()), (3, ""));
    let wrong = run(&["watch", url, "job", "--on", "puts"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("one of put, take, expire, return"), "{}", wrong.err);
    let none = run(&["watch", url, "job", "--buffer", "0"]);
    assert_eq!(none.code, 2);
    assert!(none.err.contains("give 1 or more"), "{}", none.err);
}

#[test]
fn a_watch_with_a_name_goes_on_behind_what_it_has_printed_n1_c4() {
    let file = std::env::temp_dir().join(format!("cli-test-{}-watch.tupelo", std::process::id()));
    let url = format!("file://{}", file.display());
    let watch = |words: &[&str]| {
        let begin = ["watch", &url, "job", ":int", "--resume", "mailer", "--json"];
        run(&[&begin, words].concat())
    };
    let puts = |numbers: &[&str]| {
        for number in numbers {
            run(&["put", &url, "job", number]);
        }
    };
    let event = |number: i64, missed: i64| json!({"event": "put", "seq": number, "missed": missed, "tuple": ["job", number]});
    assert_eq!(watch(&["--timeout", "10ms"]).code, 3, "nothing yet");
    puts(&["1", "2"]);
    assert_eq!(watch(&["--count", "1"]).objects(), [event(1, 0)]);
    puts(&["3"]);
    assert_eq!(watch(&["--count", "2"]).objects(), [event(2, 0), event(3, 0)]);
    assert_eq!(watch(&["--timeout", "10ms", "--keep", "1"]).code, 3, "all was printed");
    puts(&["4", "5", "6"]);
    assert_eq!(watch(&["--count", "1", "--keep", "1"]).objects(), [event(6, 2)]);
    let other = run(&["watch", &url, "job", ":str", "--resume", "mailer", "--timeout", "10ms"]);
    assert!(other.err.contains("asks for other tuples"), "{other:?}");
    tupelo::remove(&url).unwrap();
}
