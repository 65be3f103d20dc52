//! `tupelo take` loses nothing: a tuple that could not be printed is still there.

use std::fs::File;
use std::io::{pipe, read_to_string};
use std::process::Child;

use crate::support::{TestSpace, command, finish, run};
use tupelo::{ConnectOptions, Kind, Space, template};

/// A space with the jobs 1 to 3.
fn with_jobs(test: &str) -> TestSpace {
    let space = TestSpace::new(test);
    for number in ["1", "2", "3"] {
        run(&["put", &space.url, "job", number]);
    }
    space
}

fn connect(space: &TestSpace) -> Space {
    Space::connect(&space.url, &ConnectOptions::default()).unwrap()
}

/// Starts `tupelo WORDS…` with all its output on a disk that is full.
fn on_a_full_disk(words: &[&str]) -> Child {
    command(words).stdout(File::options().write(true).open("/dev/full").unwrap()).spawn().unwrap()
}

/// Starts `tupelo WORDS…` with its output in a pipe that nobody reads any more.
fn into_a_closed_pipe(words: &[&str]) -> Child {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    command(words).stdout(writer).spawn().unwrap()
}

#[test]
fn what_can_not_be_printed_is_back_at_its_place_x5() {
    let space = with_jobs("take-full-disk");
    let url = space.url.as_str();
    let one = ["take", url, "job", ":int"];
    for options in [&["--try"][..], &["--timeout", "10ms"], &["--all"], &["--all", "--limit", "2"]]
    {
        let words = [&one[..], options].concat();
        let failed = finish(on_a_full_disk(&words));
        assert_eq!(failed.code, 1, "{options:?}");
        assert!(failed.err.starts_with("tupelo: cannot print: "), "{}", failed.err);
        let unread = finish(into_a_closed_pipe(&words));
        assert_eq!((unread.code, unread.err.as_str()), (1, ""), "{options:?}");
    }
    assert_eq!(run(&["stat", url, "--json"]).objects()[0]["transactions"], serde_json::json!([]));
    let left = run(&["take", url, "job", ":int", "--all"]).out;
    assert_eq!(left, "(\"job\", 1)\n(\"job\", 2)\n(\"job\", 3)\n");
}

#[test]
fn a_tuple_that_was_waited_for_and_can_not_be_printed_is_back_x5() {
    let space = TestSpace::new("take-waits");
    let url = space.url.as_str();
    let shared = connect(&space);
    let waiting = on_a_full_disk(&["take", url, "job", ":int"]);
    while shared.stat().unwrap().waiters == 0 {
        std::thread::yield_now();
    }
    run(&["put", url, "job", "7"]);
    assert_eq!(finish(waiting).code, 1);
    assert_eq!(run(&["take", url, "job", ":int", "--try"]).out, "(\"job\", 7)\n");
}

#[test]
fn a_take_that_is_killed_while_it_prints_has_taken_nothing_x5() {
    let space = TestSpace::new("take-killed");
    let (url, long) = (space.url.as_str(), "x".repeat(100_000));
    for _ in 0..3 {
        run(&["put", url, "job", &long]);
    }
    let shared = connect(&space);
    // More than a pipe holds, and nobody reads it: the command can not end.
    let (reader, writer) = pipe().unwrap();
    let mut printing = command(&["take", url, "job", "_", "--all"]).stdout(writer).spawn().unwrap();
    let jobs = [template!["job", Kind::Str]];
    while shared.count(&jobs) != Ok(0) {
        std::thread::yield_now();
    }
    printing.kill().unwrap();
    printing.wait().unwrap();
    assert!(read_to_string(reader).unwrap().len() < 300_000, "all of it was printed");
    assert_eq!(shared.count(&jobs), Ok(3));
}

#[test]
fn quiet_takes_without_printing() {
    let space = with_jobs("take-quiet");
    let url = space.url.as_str();
    assert_eq!(finish(on_a_full_disk(&["take", url, "job", "1", "--quiet"])).code, 0);
    assert_eq!(connect(&space).count(&[template!["job", Kind::Int]]), Ok(2));
}
