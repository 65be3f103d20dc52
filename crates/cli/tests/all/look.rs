//! `tupelo ls`, `stat`, `top`, `rm`, `doctor`, `explain`, `completion`, `demo`: looking and tidying up.

use std::env;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{TestSpace, command, run, run_with_input};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::Termios;
use tupelo::{ConnectOptions, Error, Field, Kind, Order, Space, WhenFull, fields, template};

/// A space with three tuples of two shapes.
fn filled(test: &str) -> TestSpace {
    let space = TestSpace::new(test);
    run(&["put", &space.url, "job", "1"]);
    run(&["put", &space.url, "job", "2"]);
    run(&["put", &space.url, "result", "2.5"]);
    space
}

#[test]
fn ls_lists_the_spaces_of_the_machine() {
    let space = filled("ls");
    let listed = run(&["ls", "--json"]).objects();
    let own: Vec<_> = listed.iter().filter(|object| object["url"] == *space.url).collect();
    assert_eq!(own.len(), 1);
    assert!(own[0]["bytes"].as_u64().unwrap() > 0);
    assert!(own[0]["modified"].as_f64().unwrap() > 0.0);
    assert!(run(&["ls"]).out.contains(&space.url));
}

#[test]
fn ls_of_a_space_counts_its_shapes_and_names() {
    let space = filled("ls-space");
    let mut shapes = run(&["ls", &space.url, "--json"]).objects();
    shapes.sort_by_key(|shape| shape["shape"].to_string());
    let told: Vec<_> = shapes.iter().map(|shape| (&shape["shape"], &shape["count"])).collect();
    let (float, int) = (serde_json::json!(["str", "float"]), serde_json::json!(["str", "int"]));
    assert_eq!(told, [(&float, &1.into()), (&int, &2.into())]);
    for key in ["bytes", "waiting", "puts", "takes", "indexes"] {
        assert!(!shapes[0][key].is_null(), "no {key}");
    }
    let table = run(&["ls", &space.url]).out;
    assert!(table.starts_with("FIRST FIELD "), "{table}");
    assert!(table.contains("\"job\" "), "{table}");
    let job = shapes[1]["names"][0].clone();
    assert_eq!((&job["first"], &job["count"]), (&"job".into(), &2.into()));
}

#[test]
fn stat_is_one_page_or_one_object() {
    let space = filled("stat");
    let object = &run(&["stat", &space.url, "--json"]).objects()[0];
    assert_eq!(object["tuples"], 3);
    assert_eq!(object["url"], *space.url);
    assert_eq!(object["bytes_max"], 256 << 20);
    for key in ["bytes_used", "bytes_committed", "waiters"] {
        assert!(object[key].is_u64(), "no {key}");
    }
    assert_eq!(object["shapes"].as_array().unwrap().len(), 2);
    assert!(object["pids"].is_array());
    let page = run(&["stat", &space.url]).out;
    assert!(page.contains("tuples      3\n"));
    assert!(page.contains("when full   a put is refused\n"), "{page}");
}

#[test]
fn stat_shows_the_limits_of_a_space_and_what_became_of_them_b1() {
    let space = filled("bounded");
    let options = ConnectOptions {
        fresh: true,
        tuples_max: Some(2),
        when_full: WhenFull::DropOldest,
        ..ConnectOptions::default()
    };
    let bounded = Space::connect(&space.url, &options).unwrap();
    (0..5_i64).for_each(|number| bounded.put(&fields!["job", number]).unwrap());
    let page = run(&["stat", &space.url]).out;
    assert!(page.contains("tuples      2 of 2\n"), "{page}");
    assert!(page.contains("when full   the oldest go, 3 so far\n"), "{page}");
    let object = &run(&["stat", &space.url, "--json"]).objects()[0];
    assert_eq!((&object["tuples_max"], &object["dropped"]), (&2.into(), &3.into()));
    assert_eq!(object["when_full"], "drop-oldest");
}

#[test]
fn stat_and_top_show_open_transactions_x3() {
    let space = filled("transactions");
    let open = Space::connect(&space.url, &ConnectOptions::default()).unwrap();
    (0..3_i64).for_each(|number| open.put(&fields!["held", number]).unwrap());
    let held = [template!["held", Kind::Int]];
    let hour = Duration::from_secs(3600);
    let transaction = open.transaction(&[], hour).unwrap();
    let other = open.transaction(&[], hour).unwrap();
    let nothing = |_: tupelo::TupleView<'_>| Ok::<_, Error>(());
    assert!(transaction.at(0).try_take(&held, Order::Fifo, nothing).unwrap().is_some());
    assert_eq!(transaction.at(0).read_all(&held, None, nothing).unwrap().len(), 2);
    assert!(other.at(0).try_read(&held, Order::Fifo, nothing).unwrap().is_some());
    let page = run(&["stat", &space.url]).out;
    let pid = std::process::id();
    for line in ["taken 1 tuple and read 2, for", "taken 0 tuples and read 1, for"] {
        assert!(page.contains(&format!("  transaction process {pid} has {line} ")), "{page}");
    }
    let object = &run(&["stat", &space.url, "--json"]).objects()[0];
    let one = &object["transactions"][0];
    assert_eq!((&one["pid"], &one["taken"], &one["read"]), (&pid.into(), &1.into(), &2.into()));
    assert!((3590.0..=3600.0).contains(&one["expires_in_s"].as_f64().unwrap()), "{one}");
    let shapes = object["shapes"].as_array().unwrap();
    let counts = shapes
        .iter()
        .map(|shape| (shape["in_transactions"].as_u64(), shape["read_locks"].as_u64()));
    assert!(counts.into_iter().any(|counts| counts == (Some(1), Some(3))), "{shapes:?}");
    let top = run(&["top", &space.url, "--count", "1"]).out;
    assert!(top.contains("2 transactions with 1 taken"), "{top}");
    drop((transaction, other));
    assert!(!run(&["stat", &space.url]).out.contains("  transaction "));
}

#[test]
fn a_put_with_a_timeout_waits_for_room_b1() {
    let space = filled("waits-for-room");
    let options = ConnectOptions { fresh: true, tuples_max: Some(1), ..ConnectOptions::default() };
    let bounded = Space::connect(&space.url, &options).unwrap();
    bounded.put(&fields!["job", 1]).unwrap();
    let refused = run(&["put", &space.url, "job", "2", "--timeout", "10ms"]);
    assert!(refused.err.starts_with("tupelo: TUP-005"), "{}", refused.err);
    let put = command(&["put", &space.url, "job", "2", "--timeout", "60s"]).spawn().unwrap();
    while bounded.stat().unwrap().waiting_for_room == 0 {
        std::thread::yield_now();
    }
    assert!(run(&["stat", &space.url]).out.contains("waiting     1 call, 1 of them for room"));
    run(&["take", &space.url, "job", "1"]);
    assert!(put.wait_with_output().unwrap().status.success());
    assert_eq!(run(&["take", &space.url, "job", ":int", "--json"]).objects().len(), 1);
}

#[test]
fn top_counts_per_second_from_the_second_look_on() {
    let space = filled("top");
    let looks = run(&["top", &space.url, "--count", "2", "--interval", "50ms", "--json"]).objects();
    assert_eq!(looks.len(), 4, "two shapes, two looks");
    assert!(looks[0]["puts_per_s"].is_null());
    assert_eq!(looks[3]["puts_per_s"], 0.0);
    assert_eq!(looks[3]["takes_per_s"], 0.0);
    let tables = run(&["top", &space.url, "--count", "2", "--interval", "50ms"]).out;
    let heads: Vec<&str> = tables.lines().filter(|line| line.contains("FIRST FIELD")).collect();
    assert_eq!(heads.len(), 2, "{tables}");
    assert!(heads[0].find("take/s").unwrap() < 60, "what changes is seen on any screen: {tables}");
}

/// Both ends of a terminal: what a person sees and types, and what a program has.
pub(crate) fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(ours), theirs)
}

#[test]
fn who_watches_a_command_that_waits_is_told_for_what() {
    let space = filled("waits");
    let (mut ours, theirs) = terminal();
    let mut take = command(&["take", &space.url, "job", ":str"]).stderr(theirs).spawn().unwrap();
    let mut shown = String::new();
    let mut bytes = [0; 4096];
    while !shown.contains("field 1 is int there") {
        let count = ours.read(&mut bytes).unwrap();
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(shown.starts_with("tupelo: waiting for (\"job\", :str) in shm://"), "{shown}");
    run(&["put", &space.url, "job", "s:9"]);
    assert!(take.wait().unwrap().success());
}

/// `top` on a terminal that shows the space by now.
fn top_on((ours, theirs): &mut (File, File), space: &TestSpace) -> Child {
    let top = command(&["top", &space.url])
        .stdin(theirs.try_clone().unwrap())
        .stdout(theirs.try_clone().unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut shown = Vec::new();
    let mut bytes = [0; 4096];
    while !String::from_utf8_lossy(&shown).contains("\"result\"") {
        let count = ours.read(&mut bytes).unwrap();
        shown.extend_from_slice(&bytes[..count]);
    }
    top
}

/// Checks what a program has left on a terminal that it had for itself.
fn assert_given_back((ours, theirs): &mut (File, File), before: &Termios) {
    const END: &str = "end";
    // The program has ended: what it has written comes before this, in any number of parts.
    theirs.write_all(END.as_bytes()).unwrap();
    let (mut last, mut bytes) = (String::new(), [0; 4096]);
    while !last.ends_with(END) {
        let count = ours.read(&mut bytes).unwrap();
        last.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(last.ends_with("\x1b[?25h\x1b[?1049lend"), "{last:?}");
    let after = rustix::termios::tcgetattr(theirs).unwrap();
    assert_eq!(before.local_modes, after.local_modes);
}

#[test]
fn top_gives_the_terminal_back() {
    let space = filled("terminal");
    let mut terminal = terminal();
    let before = rustix::termios::tcgetattr(&terminal.1).unwrap();
    let mut top = top_on(&mut terminal, &space);
    terminal.0.write_all(b"q").unwrap();
    assert!(top.wait().unwrap().success());
    assert_given_back(&mut terminal, &before);
}

#[test]
fn top_gives_the_terminal_back_when_a_signal_ends_it() {
    let space = filled("terminal-signal");
    let mut terminal = terminal();
    let before = rustix::termios::tcgetattr(&terminal.1).unwrap();
    let mut top = top_on(&mut terminal, &space);
    let pid = top.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(top.wait().unwrap().signal(), Some(15), "it is the signal that ends it");
    assert_given_back(&mut terminal, &before);
}

#[test]
fn rm_removes_what_matches() {
    let space = filled("rm-some");
    let removed = run(&["rm", &space.url, "job", ":int", "--yes"]);
    assert_eq!(removed.out, format!("2 tuples removed from {}\n", space.url));
    assert_eq!(run(&["read", &space.url, "...", "--all"]).out, "(\"result\", 2.5)\n");
}

#[test]
fn rm_removes_a_space_and_names_it() {
    let space = filled("rm-all");
    let removed = &run(&["rm", &space.url, "--yes", "--json"]).objects()[0];
    assert_eq!((&removed["url"], &removed["removed"]), (&space.url.as_str().into(), &3.into()));
    assert_eq!(run(&["stat", &space.url]).code, 5);
    let again = filled("rm-all-told");
    let removed = run(&["rm", &again.url, "--yes"]);
    assert_eq!(removed.out, format!("space removed: {}, with 3 tuples\n", again.url));
}

#[test]
fn rm_removes_more_tuples_than_one_step_can() {
    const PUT_AT_ONCE: i64 = 10_000;
    let space = TestSpace::new("rm-many");
    let shared = Space::connect(&space.url, &ConnectOptions::default()).unwrap();
    // A step changes 4 194 304 words at most: some 700 000 tuples.
    for _ in 0..80 {
        let fields: Vec<_> = (0..PUT_AT_ONCE).map(|number| fields!["job", number]).collect();
        let tuples: Vec<_> = fields.iter().map(<[Field<'_>; 2]>::as_slice).collect();
        shared.put_all(&tuples).unwrap();
    }
    let removed = run(&["rm", &space.url, "job", "_", "--yes"]);
    assert_eq!(
        removed.out,
        format!("800 000 tuples removed from {}\n", space.url),
        "{}",
        removed.err
    );
}

#[test]
fn rm_of_a_damaged_space_does_not_count_what_was_in_it() {
    for json in [&[][..], &["--json"]] {
        let space = filled("rm-damaged");
        space.damage();
        let removed = run(&[&["rm", &space.url, "--yes"][..], json].concat());
        assert_eq!(removed.code, 0, "{}", removed.err);
        if json.is_empty() {
            assert_eq!(removed.out, format!("space removed: {}\n", space.url));
        } else {
            let told = serde_json::json!({ "url": space.url, "removed": null });
            assert_eq!(removed.objects(), [told]);
        }
    }
}

#[test]
fn rm_removes_several_spaces() {
    let (one, other) = (filled("rm-one"), filled("rm-other"));
    let removed = run(&["rm", "--yes", &one.url, &other.url]);
    let line = |url: &str| format!("space removed: {url}, with 3 tuples\n");
    assert_eq!(removed.out, line(&one.url) + &line(&other.url));
    for space in [&one, &other] {
        assert_eq!(run(&["stat", &space.url]).code, 5);
    }
}

#[test]
fn rm_without_a_terminal_asks_for_yes() {
    let space = filled("rm-asks");
    let refused = run_with_input(&["rm", &space.url], "y\n");
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("--yes"), "{}", refused.err);
    assert_eq!(run(&["stat", &space.url]).code, 0);
}

#[test]
fn doctor_names_every_space() {
    let space = filled("doctor");
    let report = run(&["doctor", "--json"]).objects();
    let subjects: Vec<_> = report.iter().filter_map(|line| line["subject"].as_str()).collect();
    for subject in
        ["shared memory", "address space", "open files", "cores", "clock", "pid namespace"]
    {
        assert!(subjects.contains(&subject), "no {subject}");
    }
    let own: Vec<_> =
        report.iter().filter(|line| line["text"].as_str().unwrap().contains(&space.url)).collect();
    assert_eq!(own.len(), 1);
    assert_eq!((&own[0]["level"], &own[0]["subject"]), (&"ok".into(), &"space".into()));
}

#[test]
fn doctor_tells_of_tasks_that_no_worker_serves() {
    let space = filled("unserved");
    for queue in ["film:render", "film:render", "17-abc"] {
        let end = ["tuple(7)", "map()", "\"box\"", "0", "0", "1"];
        let begin = ["put", &space.url, "tupelo.task", queue, "film:render"];
        assert_eq!(run(&[&begin[..], &end].concat()).code, 0);
    }
    let told = || -> Vec<String> {
        let report = run(&["doctor", &space.url, "--json"]).objects();
        let tasks = report.iter().filter(|line| line["subject"] == "tasks");
        tasks.map(|line| format!("{} {}", line["level"], line["text"])).collect()
    };
    let expected = format!(
        "\"warn\" \"{0}: 2 tasks wait for film:render, which no worker serves: tupelo worker film:render -u {0}\"",
        space.url
    );
    assert_eq!(told(), [expected]);
    let opened = Space::connect(&space.url, &ConnectOptions::default()).unwrap();
    let served = opened.announce("film:render").unwrap();
    assert!(served.is_some());
    assert_eq!(told(), Vec::<String>::new());
}

#[test]
fn doctor_of_a_space_tells_who_is_stopped_and_who_waits_for_another_kind() {
    let (space, other) = (filled("in-vain"), filled("not-asked"));
    let mut taker = command(&["take", &space.url, "job", ":str"]).spawn().unwrap();
    let waits = || run(&["stat", &space.url, "--json"]).objects()[0]["waiters"] == 1;
    while !waits() {}
    let report = run(&["doctor", &space.url, "--json"]).objects();
    let texts = |subject: &str| -> Vec<(String, String)> {
        let of_it = report.iter().filter(|line| line["subject"] == subject);
        let text = |line: &serde_json::Value, key: &str| line[key].as_str().unwrap().to_owned();
        of_it.map(|line| (text(line, "level"), text(line, "text"))).collect()
    };
    assert_eq!(texts("space").len(), 1, "{other:?} is not looked at", other = other.url);
    let waiting = texts("waiting taker");
    assert_eq!((waiting.len(), waiting[0].0.as_str()), (1, "warn"));
    let told = format!(
        "process {} waits for (\"job\", :str); nearest: there are tuples (str, int)",
        taker.id()
    );
    assert!(waiting[0].1.contains(&told), "{waiting:?}");
    assert!(waiting[0].1.contains("field 1 is int there, :str in the template"), "{waiting:?}");
    assert_eq!(texts("stopped"), []);

    let pid = taker.id().to_string();
    assert!(std::process::Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
    let stopped = || run(&["doctor", &space.url]).out.contains(&format!("kill -CONT {pid}"));
    while !stopped() {}
    taker.kill().unwrap();
    taker.wait().unwrap();
}

#[test]
fn doctor_ends_with_1_if_there_is_something_to_fix() {
    let doctor = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 1000; exec \"$0\" doctor", env!("CARGO_BIN_EXE_tupelo")])
        .output()
        .unwrap();
    assert_eq!(doctor.status.code(), Some(1));
    let report = String::from_utf8(doctor.stdout).unwrap();
    assert!(report.contains("fix   file size"), "{report}");
}

#[test]
fn explain_tells_which_field_differs() {
    let space = filled("explain");
    let told = run(&["explain", &space.url, "job", ":str"]);
    assert_eq!(told.code, 0);
    assert!(told.out.contains("int"), "{}", told.out);
}

#[test]
fn explain_has_a_page_for_an_error() {
    let page = run(&["explain", "tup-3"]);
    assert!(page.out.starts_with("# TUP-003 Timeout"), "{}", page.out);
    assert_eq!(run(&["explain", "TUP-999"]).code, 2);
    assert!(run(&["explain"]).out.contains("TUP-003 Timeout"));
}

#[test]
fn pages_and_help_say_that_each_user_has_spaces_of_their_own() {
    for code in ["TUP-006", "TUP-013"] {
        let page = run(&["explain", code]).out;
        assert!(page.contains("Each user has spaces of their own"), "{page}");
    }
    for verb in ["ls", "top", "doctor"] {
        let help = run(&[verb, "--help"]).out;
        assert!(help.contains("of this user"), "{help}");
    }
}

#[test]
fn completion_knows_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = run(&["completion", shell]);
        assert_eq!(script.code, 0);
        assert!(script.out.contains("doctor"), "{shell}");
    }
    let quiet = run(&["completion", "bash", "--quiet"]);
    assert_eq!((quiet.code, quiet.out.as_str()), (0, ""), "{}", quiet.err);
}

#[test]
fn the_examples_of_completion_can_be_typed_where_there_is_no_folder_yet() {
    let home = env::temp_dir().join(format!("tupelo-cli-test-{}-home", std::process::id()));
    fs::create_dir(&home).unwrap();
    let help = run(&["completion", "--help"]).out;
    let (_, examples) = help.split_once("Examples:\n").unwrap();
    let (examples, _) = examples.split_once("Usage:").unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_tupelo")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    let typed = shell.args(["-ec", examples]).env("HOME", &home).env("PATH", path).status();
    assert!(typed.unwrap().success());
    for script in [
        ".local/share/bash-completion/completions/tupelo",
        ".zfunc/_tupelo",
        ".config/fish/completions/tupelo.fish",
    ] {
        assert!(fs::read_to_string(home.join(script)).unwrap().contains("doctor"), "{script}");
    }
    fs::remove_dir_all(home).unwrap();
}

#[test]
fn demo_without_its_python_says_what_to_do() {
    let demo = command(&["demo", "password"]).env("PATH", "/nonexistent").output().unwrap();
    assert_eq!(demo.status.code(), Some(1));
    let told = String::from_utf8(demo.stderr).unwrap();
    assert!(told.contains("`pip install .` in a checkout of Tupelo"), "{told}");
}

/// An environment whose Python has the package, and not the evaluation suite.
const WITHOUT_SUITE: &str = r#"
    mkdir -p "$0" && cd "$0" && cp "$1" tupelo &&
    printf '#!/bin/sh\ncase "$2" in *tupelo_bench*) exit 1;; esac\necho "$@"\n' > python3 &&
    chmod +x python3
"#;

#[test]
fn bench_without_the_suite_says_how_to_install_it() {
    let folder = env::temp_dir().join(format!("tupelo-cli-test-{}-suite", std::process::id()));
    let made = Command::new("sh")
        .args(["-c", WITHOUT_SUITE])
        .args([folder.as_os_str(), env!("CARGO_BIN_EXE_tupelo").as_ref()])
        .status();
    assert!(made.unwrap().success());
    let program = folder.join("tupelo");
    let of_tupelo = Command::new(&program).args(["check", "run.jsonl"]).output().unwrap();
    assert_eq!(String::from_utf8(of_tupelo.stdout).unwrap(), "-m tupelo.check run.jsonl\n");
    let bench = Command::new(&program).args(["bench", "mem"]).output().unwrap();
    assert_eq!(bench.status.code(), Some(1));
    let told = String::from_utf8(bench.stderr).unwrap();
    assert!(told.contains("has no package tupelo_bench\n"), "{told}");
    assert!(told.contains("`pip install . ./bench` in a checkout of Tupelo"), "{told}");
    fs::remove_dir_all(folder).unwrap();
}

/// An environment with a Python that has the package, and a link to its program beside a Python that has not, as in
/// /usr/local/bin. Made by a shell: what this program had open for writing, no thread of it could run meanwhile.
const ENVIRONMENT: &str = r#"
    mkdir -p "$0/environment" "$0/bin" && cd "$0" &&
    cp "$1" environment/tupelo && ln -s ../environment/tupelo bin/tupelo &&
    printf '#!/bin/sh\necho "$@"\n' > environment/python3 &&
    printf '#!/bin/sh\nexit 1\n' > bin/python3 &&
    chmod +x environment/python3 bin/python3
"#;

#[test]
fn a_program_behind_a_link_is_run_by_the_python_of_its_environment() {
    let folder = env::temp_dir().join(format!("tupelo-cli-test-{}-link", std::process::id()));
    let made = Command::new("sh")
        .args(["-c", ENVIRONMENT])
        .args([folder.as_os_str(), env!("CARGO_BIN_EXE_tupelo").as_ref()])
        .status();
    assert!(made.unwrap().success());
    for verb in ["demo", "bench", "worker", "record", "check"] {
        let mut linked = Command::new(folder.join("bin/tupelo"));
        // The options of every command go with it.
        linked.args(["--quiet", verb, "--no-color", "a word"]).env("PATH", "/nonexistent");
        let ran = linked.output().unwrap();
        let (out, err) = (String::from_utf8(ran.stdout), String::from_utf8(ran.stderr));
        let module = if verb == "bench" { "tupelo_bench" } else { &format!("tupelo.{verb}") };
        let passed = format!("-m {module} --quiet --no-color a word\n");
        assert_eq!(out.unwrap(), passed, "{}", err.unwrap());
    }
    // By how a Python ends it is known whether it has the package; a parent may have the system forget that.
    let mut forgetful = Command::new("env");
    forgetful.args(["--ignore-signal=CHLD", "PATH=/nonexistent"]).arg(folder.join("bin/tupelo"));
    let ran = forgetful.args(["demo", "a word"]).output().unwrap();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), "-m tupelo.demo a word\n");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn help_begins_with_examples() {
    for verb in
        ["put", "read", "take", "ls", "stat", "top", "rm", "doctor", "explain", "completion"]
    {
        let help = run(&[verb, "--help"]).out;
        let (examples, usage) = (help.find("Examples:"), help.find("Usage:"));
        assert!(examples.is_some() && examples < usage, "{verb}: {help}");
    }
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let space = filled("pipe");
    let mut reader = command(&["read", &space.url, "...", "--all"]).spawn().unwrap();
    drop(reader.stdout.take());
    let mut told = String::new();
    reader.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    reader.wait().unwrap();
    assert_eq!(told, "");
}
