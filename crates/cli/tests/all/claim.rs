//! `tupelo take --exec`, `put --lease` and `--after`, and how claims are shown.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{TestSpace, command, finish, run};
use serde_json::json;
use tupelo::{ClaimTerms, ConnectOptions, Error, Kind, Order, Space, template};

fn connect(space: &TestSpace) -> Space {
    Space::connect(&space.url, &ConnectOptions::default()).unwrap()
}

/// A file for what a command writes.
fn scratch(test: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tupelo-cli-test-{}-{test}", std::process::id()))
}

/// A command that ends when somebody puts "go".
fn until_go(url: &str) -> String {
    format!("{} take {url} go --quiet", env!("CARGO_BIN_EXE_tupelo"))
}

/// Waits until `condition` holds: it is another process that makes it so.
fn eventually(mut condition: impl FnMut() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

#[test]
fn the_command_gets_the_tuple_and_a_good_end_consumes_it() {
    let (space, out) = (TestSpace::new("exec"), scratch("exec"));
    let url = space.url.as_str();
    run(&["put", url, "job", "7", "cat.png"]);
    let line = format!("cat > {}; echo $TUPELO_ATTEMPT $TUPELO_FENCE >> {0}", out.display());
    let taken = run(&["take", url, "job", ":int", "_", "--exec", &line]);
    assert_eq!((taken.code, taken.out.as_str(), taken.err.as_str()), (0, "", ""));
    let written = fs::read_to_string(&out).unwrap();
    fs::remove_file(&out).unwrap();
    let mut lines = written.lines();
    let tuple: serde_json::Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_eq!(tuple, json!({ "tuple": ["job", 7, "cat.png"] }));
    assert!(lines.next().unwrap().starts_with("1 "));
    let template = [template!["job", Kind::Int, Kind::Str]];
    assert_eq!(connect(&space).present(&template), Ok(false), "K2");
}

#[test]
fn a_command_that_fails_gives_the_tuple_back_and_is_the_reason() {
    let space = TestSpace::new("exec-fails");
    let url = space.url.as_str();
    run(&["put", url, "job", "7"]);
    let taken = run(&["take", url, "job", ":int", "--exec", "exit 3", "--max-attempts", "2"]);
    assert_eq!(taken.code, 1);
    assert_eq!(
        taken.err,
        "tupelo: `exit 3` ended with exit status: 3\n  The tuple is back: (\"job\", 7)\n"
    );
    assert_eq!(run(&["read", url, "job", ":int", "--try"]).out, "(\"job\", 7)\n");

    let taken = run(&["take", url, "job", ":int", "--exec", "kill -9 $$", "--max-attempts", "2"]);
    assert_eq!(taken.code, 1);
    let told = "  That was its last attempt, it is dead now: (\"job\", 7)\n  \
                `tupelo dead` lists those, `tupelo requeue` has them tried again\n";
    assert!(taken.err.ends_with(told), "{}", taken.err);
    let dead = connect(&space).dead(&[template!["job", Kind::Int]], |_, dead_letter| {
        Ok::<_, Error>((dead_letter.attempts, dead_letter.reasons.last().unwrap().reason.clone()))
    });
    let reason = "`kill -9 $$` ended with signal: 9 (SIGKILL)".to_owned();
    assert_eq!(dead.unwrap(), [(2, reason)], "K5");
}

#[test]
fn what_has_failed_too_often_is_listed_with_its_reasons_and_put_back() {
    let space = TestSpace::new("dead");
    let url = space.url.as_str();
    for number in ["7", "8", "9"] {
        run(&["put", url, "job", number]);
    }
    assert_eq!(run(&["dead", url]).out, "");
    for number in ["7", "8"] {
        run(&["take", url, "job", number, "--exec", "exit 3", "--max-attempts", "2"]);
        run(&["take", url, "job", number, "--exec", "exit 4", "--max-attempts", "2"]);
    }
    let both = "(\"job\", 7)   2 attempts\n  `exit 4` ended with exit status: 4\n\
                (\"job\", 8)   2 attempts\n  `exit 4` ended with exit status: 4\n";
    assert_eq!(run(&["dead", url]).out, both, "K5");
    let listed = run(&["dead", url, "job", "8", "--json"]).objects();
    let reasons = ["`exit 3` ended with exit status: 3", "`exit 4` ended with exit status: 4"];
    let letter = json!({ "tuple": ["job", 8], "attempts": 2, "reasons": reasons });
    assert_eq!(listed, [letter]);
    assert_eq!(run(&["dead", url, "job", ":int", "--where", "f[1] > 8"]).out, "");

    assert_eq!(run(&["requeue", url]).code, 2, "everything is said with ...");
    let back = run(&["requeue", url, "job", ":int", "--where", "f[1] < 8"]);
    assert_eq!(back.out, format!("1 tuple is back in {url}\n"));
    let again = run(&["take", url, "job", "7", "--exec", "test $TUPELO_ATTEMPT = 1"]);
    assert_eq!(again.code, 0, "all attempts are before it again: {}", again.err);
    let back = run(&["requeue", url, "...", "--json"]).objects();
    assert_eq!(back, [json!({ "url": url, "requeued": 1 })]);
    assert_eq!(run(&["dead", url, "--json"]).out, "");
    assert_eq!(run(&["dead", "shm://cli-test-none"]).code, 5, "to look makes no space");
}

#[test]
fn while_the_command_runs_nobody_else_sees_the_tuple() {
    let space = TestSpace::new("exec-holds");
    let url = space.url.as_str();
    run(&["put", url, "job", "7"]);
    let until_go = until_go(url);
    let worker = command(&["take", url, "job", ":int", "--exec", &until_go]).spawn().unwrap();
    let shared = connect(&space);
    eventually(|| shared.stat().unwrap().shapes[0].claims.len() == 1);
    assert_eq!(run(&["read", url, "job", ":int", "--try"]).code, 3, "K1");
    let stat = run(&["stat", url]).out;
    let told = format!("  claimed     one (str, int) by process {}, attempt 1, for ", worker.id());
    assert!(stat.contains(&told), "{stat}");
    assert!(run(&["ls", url]).out.contains("CLAIMED"));
    let shape = &run(&["ls", url, "--json"]).objects()[0];
    assert_eq!(shape["claims"][0]["pid"], json!(worker.id()));

    run(&["put", url, "go"]);
    assert_eq!(finish(worker).code, 0);
    assert_eq!(shared.present(&[template!["job", Kind::Int]]), Ok(false), "K2");
}

#[test]
fn a_killed_worker_gives_the_tuple_back_at_once() {
    let space = TestSpace::new("exec-killed");
    let url = space.url.as_str();
    run(&["put", url, "job", "7"]);
    let until_go = until_go(url);
    let words = ["take", url, "job", ":int", "--exec", &until_go, "--ttl", "1h"];
    let mut worker = command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let shared = connect(&space);
    // Its command runs, and waits: killed before, it has none.
    eventually(|| shared.stat().unwrap().waiters == 1);
    assert_eq!(shared.stat().unwrap().shapes[0].claims.len(), 1);
    worker.kill().unwrap();
    worker.wait().unwrap();
    let terms = ClaimTerms { ttl: std::time::Duration::from_secs(1), attempts_max: None };
    let again = shared
        .try_claim(&[template!["job", Kind::Int]], Order::Fifo, &terms, |_| Ok::<_, Error>(()));
    assert_eq!(again.unwrap().unwrap().0.attempt(), 2, "K2, L5");
    // Its command was not killed with it.
    run(&["put", url, "go"]);
    eventually(|| shared.count(&[template!["go"]]) == Ok(0));
}

#[test]
fn a_command_that_fails_when_the_claim_is_lost_is_told_all_the_same() {
    let space = TestSpace::new("exec-lost");
    let url = space.url.as_str();
    run(&["put", url, "job", "7"]);
    // It stops the program that ran it, whose claim runs out then.
    let line = format!("kill -STOP $PPID; {}; exit 3", until_go(url));
    let words = ["take", url, "job", ":int", "--exec", &line, "--ttl", "500ms"];
    let worker = command(&words).spawn().unwrap();
    let shared = connect(&space);
    eventually(|| shared.stat().unwrap().waiters == 1);
    assert_eq!(run(&["take", url, "job", ":int"]).out, "(\"job\", 7)\n", "K2");
    run(&["put", url, "go"]);
    eventually(|| shared.count(&[template!["go"]]) == Ok(0));
    let pid = worker.id().to_string();
    assert!(Command::new("kill").args(["-CONT", &pid]).status().unwrap().success());
    let lost = finish(worker);
    assert_eq!(lost.code, 1);
    assert!(lost.err.contains("` ended with exit status: 3\n  TUP-007: "), "{}", lost.err);
}

#[test]
fn without_a_match_it_waits_or_says_so() {
    let space = TestSpace::new("exec-none");
    let url = space.url.as_str();
    run(&["put", url, "other"]);
    assert_eq!(run(&["take", url, "job", "_", "--exec", "true", "--try"]).code, 3);
    let missed = run(&["take", url, "job", "_", "--exec", "true", "--timeout", "10ms"]);
    assert_eq!(missed.code, 3);
    assert!(missed.err.contains("within 0.01 s"), "{}", missed.err);
    let worker = command(&["take", url, "job", "_", "--exec", "grep -q 8"]).spawn().unwrap();
    let shared = connect(&space);
    eventually(|| shared.stat().unwrap().waiters == 1);
    run(&["put", url, "job", "8"]);
    assert_eq!(finish(worker).code, 0);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let url = "shm://cli-test-never-made";
    for words in [
        &["take", url, "job", "--ttl", "5s"][..],
        &["take", url, "job", "--exec", "true", "--all"],
        &["take", url, "job", "--exec", "true", "--ttl", "0s"],
        &["take", url, "job", "--exec", "true", "--max-attempts", "0"],
        &["read", url, "job", "--exec", "true"],
        &["put", url, "job", "--lease", "0"],
        &["put", url, "job", "--lease=-1"],
    ] {
        assert_eq!(run(words).code, 2, "{words:?}");
    }
}

#[test]
fn a_leased_tuple_disappears_and_a_delayed_one_appears() {
    let space = TestSpace::new("lease");
    let url = space.url.as_str();
    run(&["put", url, "host", "a", "--lease", "1h"]);
    run(&["put", url, "host", "b", "--lease", "10ms"]);
    run(&["put", url, "host", "c", "--after", "1h"]);
    assert!(run(&["stat", url]).out.contains("  for later   1 tuple\n"));
    let shared = connect(&space);
    eventually(|| shared.count(&[template!["host", "b"]]) == Ok(0)); // L1
    assert_eq!(run(&["read", url, "host", "_", "--all"]).out, "(\"host\", \"a\")\n", "L3");
    assert!(run(&["stat", url]).out.contains("  leased      1 tuple\n"));
    assert!(run(&["top", url, "--count", "1"]).out.contains("LEASED"));
    run(&["put", url, "later", "--after", "10ms"]);
    assert_eq!(run(&["take", url, "later"]).out, "(\"later\")\n");
}

#[test]
fn what_a_command_leaves_running_with_its_input_holds_nothing_up() {
    let space = TestSpace::new("exec-left");
    let url = space.url.as_str();
    run(&["put", url, "job", &"x".repeat(100_000)]); // more than a pipe has room for
    let leaves = "exec 3<&0; sleep 600 >/dev/null 2>&1 & echo $!";
    let worked = run(&["take", url, "job", "_", "--exec", leaves]);
    assert_eq!(worked.code, 0, "{worked:?}");
    assert!(Command::new("kill").arg(worked.out.trim()).status().unwrap().success());
    assert_eq!(run(&["read", url, "job", "_", "--try"]).code, 3, "it was consumed");
}

#[test]
fn how_a_command_ends_is_known_also_where_the_caller_has_the_system_forget_it() {
    let space = TestSpace::new("exec-forgets");
    let url = space.url.as_str();
    run(&["put", url, "job", "7"]);
    let tupelo = env!("CARGO_BIN_EXE_tupelo");
    let take = |command: &str| {
        let words = ["--ignore-signal=CHLD", tupelo, "take", url, "job", "_", "--exec", command];
        Command::new("env").args(words).output().unwrap()
    };
    let failed = take("exit 3");
    let why = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(failed.status.code(), Some(1), "{why}");
    assert!(why.contains("ended with exit status: 3\n  The tuple is back"), "{why}");
    assert_eq!(take("true").status.code(), Some(0));
    assert_eq!(run(&["read", url, "job", ":int", "--try"]).code, 3, "it was consumed");
}

#[test]
fn a_dead_tuple_is_explained_and_its_reason_moves_no_cursor() {
    let space = TestSpace::new("exec-dead");
    let url = space.url.as_str();
    run(&["put", url, "job", "7"]);
    // The reason has the words of the command in it.
    run(&["take", url, "job", "_", "--exec", "false # \x1b[2J", "--max-attempts", "1"]);
    let explained = run(&["explain", url, "job", ":int"]).out;
    assert!(explained.starts_with("1 tuple matches, and is dead"), "{explained}");
    let dead = run(&["dead", url]).out;
    assert!(dead.contains("u{1b}[2J") && !dead.contains('\x1b'), "{dead:?}");
    let other = run(&["explain", url, "other"]).out;
    assert!(other.starts_with("what the space has (1) is claimed, dead,"), "{other}");
}
