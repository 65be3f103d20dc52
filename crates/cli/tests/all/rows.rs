//! Tables by the first field: who waits for what, what is busy, what is folded, and the keys of `top`.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use crate::look::terminal;
use crate::support::{TestSpace, command, run};
use tupelo::{ConnectOptions, Error, Kind, Space, Want, fields, template};

fn space(test: &str) -> (TestSpace, Space) {
    let named = TestSpace::new(test);
    let space = Space::connect(&named.url, &ConnectOptions::default()).unwrap();
    (named, space)
}

#[test]
fn a_row_is_a_first_field_and_busy_ones_come_first() {
    let (named, space) = space("rows");
    for fields in [fields!["job", 1], fields!["job", 2], fields!["gone", 1]] {
        space.put(&fields).unwrap();
    }
    space.put(&fields!["tupelo.task", "film:render", 7]).unwrap();
    space.put(&fields!["old"]).unwrap();
    let taken = space.try_take(&[template!["old"]], tupelo::Order::Fifo, |_| Ok::<_, Error>(()));
    assert!(taken.unwrap().is_some());
    let waiter = space.waiter(&[template!["result", Kind::Float]], Want::Take).unwrap();
    assert!(!waiter.wait(Some(std::time::Duration::ZERO)).unwrap());
    let table = run(&["ls", &named.url]).out;
    let rows: Vec<&str> = table.lines().map(|line| line.split("   ").next().unwrap()).collect();
    let expected = [
        "FIRST FIELD",
        "all (str, int)",
        "\"job\"",
        "\"gone\"",
        "task film:render",
        "\"result\"",
        "idle: (str), (str, float)",
    ];
    assert_eq!(rows, expected, "{table}");
    let page = run(&["stat", &named.url]).out;
    let pid = std::process::id();
    assert!(page.contains(&format!(" process {pid} waits for (\"result\", :float)\n")), "{page}");
}

#[test]
fn doctor_folds_what_is_well_unless_it_is_asked_for() {
    let (named, _space) = space("folds");
    let report = run(&["doctor"]).out;
    assert!(!report.contains(&named.url) && report.contains("all well"), "{report}");
    for words in [&["doctor", "--all"][..], &["doctor", &named.url]] {
        assert!(run(words).out.contains(&format!("{}: 0 tuples", named.url)), "{words:?}");
    }
}

#[test]
fn rm_of_the_idle_ones_takes_no_names() {
    let (named, _space) = space("rm-idle");
    let refused = run(&["rm", &named.url, "--idle", "1h", "--yes"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("--idle finds the spaces itself"), "{}", refused.err);
    assert_eq!(run(&["stat", &named.url]).code, 0);
}

/// Reads from a terminal until a program has shown this.
fn read_until(ours: &mut File, text: &str) -> String {
    let (mut shown, mut bytes) = (Vec::new(), [0; 4096]);
    loop {
        let read = String::from_utf8_lossy(&shown).into_owned();
        if read.contains(text) {
            return read;
        }
        let count = ours.read(&mut bytes).unwrap();
        shown.extend_from_slice(&bytes[..count]);
    }
}

#[test]
fn top_sorts_and_scrolls_by_keys() {
    let (named, space) = space("top-keys");
    for number in 0..40 {
        space.put(&fields![format!("name-{number:02}").as_str()]).unwrap();
    }
    let (mut ours, theirs) = terminal();
    let mut top = command(&["top", &named.url, "--interval", "1h"])
        .stdin(theirs.try_clone().unwrap())
        .stdout(theirs.try_clone().unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let first = read_until(&mut ours, " below");
    assert!(first.contains("by rate") && first.contains("name-00"), "{first}");
    assert!(!first.contains("name-39"), "{first}");
    ours.write_all(b"G").unwrap();
    read_until(&mut ours, "name-39");
    ours.write_all(b"gs").unwrap();
    read_until(&mut ours, "by count");
    ours.write_all(b"q").unwrap();
    assert!(top.wait().unwrap().success());
}
