//! `tupelo top` follows the names: spaces come and go, and some are damaged.

use std::io::{BufRead, BufReader};

use crate::support::{TestSpace, command, run};
use serde_json::{Value as Json, json};

#[test]
fn a_space_that_is_made_anew_is_the_one_that_is_shown() {
    let space = TestSpace::new("top-anew");
    let url = space.url.as_str();
    run(&["put", url, "old", "1"]);
    let words = ["top", url, "--json", "--interval", "50ms"];
    let mut top = command(&words).spawn().unwrap();
    let lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut shown = lines.map(|line| serde_json::from_str::<Json>(&line.unwrap()).unwrap());
    let of_old = |object: &Json| object["shape"] == json!(["str", "int"]);
    assert!(shown.by_ref().take(3).all(|object| of_old(&object)));

    run(&["rm", url, "--yes"]);
    run(&["put", url, "new", "x"]);
    let new = shown.find(|object| !of_old(object)).unwrap();
    assert_eq!(new["shape"], json!(["str", "str"]));
    assert_eq!(new["puts_per_s"], Json::Null, "compared with those of the old one");
    assert_eq!(shown.next().unwrap()["puts_per_s"], 0.0);
    top.kill().unwrap();
    top.wait().unwrap();
}

#[test]
fn a_space_that_was_removed_is_told_until_it_is_there_again() {
    let space = TestSpace::new("top-removed");
    let url = space.url.as_str();
    run(&["put", url, "job", "1"]);
    let mut top = command(&["top", url, "--interval", "50ms"]).spawn().unwrap();
    let lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut shown = lines.map(|line| line.unwrap());
    assert!(shown.next().unwrap().starts_with(&format!("{url}   1 tuple ")));

    run(&["rm", url, "--yes"]);
    let removed = format!("{url}   TUP-013: there is no space {url}");
    assert!(shown.any(|line| line == removed));
    run(&["put", url, "job", "2"]);
    assert!(shown.any(|line| line.starts_with(&format!("{url}   1 tuple "))));
    top.kill().unwrap();
    top.wait().unwrap();
}

#[test]
fn a_space_that_turns_out_to_be_damaged_is_told_among_all_and_ends_nothing() {
    let (sound, damaged) = (TestSpace::new("top-sound"), TestSpace::new("top-damaged"));
    run(&["put", &sound.url, "job", "1"]);
    run(&["put", &damaged.url, "job", "1"]);
    let mut top = command(&["top", "--interval", "50ms"]).spawn().unwrap();
    let lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut shown = lines.map(|line| line.unwrap());
    assert!(shown.any(|line| line.starts_with(&format!("{}   1 tuple ", damaged.url))));

    damaged.damage();
    let told = format!("{}   TUP-015: the space is damaged: ", damaged.url);
    assert!(shown.any(|line| line.starts_with(&told)));
    assert!(shown.any(|line| line.starts_with(&format!("{}   1 tuple ", sound.url))));
    top.kill().unwrap();
    top.wait().unwrap();
    assert_eq!(run(&["top", &damaged.url, "--count", "1"]).code, 1);
}

#[test]
fn without_looks_and_events_there_is_nothing_to_count() {
    let space = TestSpace::new("top-count");
    run(&["put", &space.url, "job", "1"]);
    for words in
        [&["top", &space.url, "--count", "0"][..], &["watch", &space.url, "_", "--count", "0"]]
    {
        let refused = run(words);
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{words:?}");
        assert!(refused.err.contains("give 1 or more"), "{}", refused.err);
    }
}
