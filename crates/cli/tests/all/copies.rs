//! `tupelo dump`, `load`, `compact`, and what is told of files: `ls DIRECTORY`, `doctor`, `stat`.

use std::fs;
use std::path::PathBuf;

use crate::support::{TestSpace, run, run_with_input};

/// A directory for one test, removed at the end.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cli-test-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn url(&self, name: &str) -> String {
        format!("file://{}", self.0.join(name).display())
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        for file in tupelo::files_in(&self.0).unwrap_or_default() {
            // A damaged one is not removed as a space.
            let _ = tupelo::remove(&format!("file://{}", file.path.display()));
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Lines with so many jobs.
fn jobs(count: usize, text: &str) -> String {
    let lines: Vec<String> =
        (0..count).map(|number| format!("[\"job\", {number}, \"{text}\"]")).collect();
    lines.join("\n")
}

#[test]
fn what_dump_prints_load_puts_with_what_is_left_of_leases_l1_l3() {
    let (from, to) = (TestSpace::new("dumped"), TestDirectory::new("loaded"));
    let loaded = to.url("loaded.tupelo");
    run(&["put", &from.url, "job", "7", "cat.png"]);
    run(&["put", &from.url, "host", "node-a", "--lease", "1h"]);
    run(&["put", &from.url, "later", "1", "--after", "2h", "--lease", "1h"]);
    let dumped = run(&["dump", &from.url]);
    let mut lines = dumped.objects();
    assert_eq!(lines.len(), 3, "{dumped:?}");
    lines.sort_by_key(|line| line["tuple"][0].as_str().unwrap().to_owned());
    assert!((3590.0..=3600.0).contains(&lines[0]["lease_s"].as_f64().unwrap()), "{lines:?}");
    assert_eq!(lines[1], serde_json::json!({ "tuple": ["job", 7, "cat.png"] }));
    assert!((7190.0..=7200.0).contains(&lines[2]["after_s"].as_f64().unwrap()), "{lines:?}");
    let load = run_with_input(&["load", &loaded], &dumped.out);
    assert_eq!(load.out, format!("3 tuples loaded into {loaded}\n"), "{load:?}");
    let stat = &run(&["stat", &loaded, "--json"]).objects()[0];
    let sum = |key: &str| -> u64 {
        stat["shapes"].as_array().unwrap().iter().map(|shape| shape[key].as_u64().unwrap()).sum()
    };
    assert_eq!((sum("count"), sum("leased"), sum("delayed")), (2, 2, 1), "{stat}");
}

#[test]
fn dead_letters_are_dumped_if_asked_for_k5() {
    let space = TestSpace::new("dumped-dead");
    run(&["put", &space.url, "job", "7"]);
    run(&["take", &space.url, "job", ":int", "--exec", "false", "--max-attempts", "1"]);
    let without = run(&["dump", &space.url]);
    assert_eq!(without.out, "");
    assert!(without.err.contains("1 dead letter is left out; --dead"), "{without:?}");
    let with = run(&["dump", &space.url, "--dead"]);
    assert_eq!((with.objects().len(), with.err.as_str()), (1, ""));
}

#[test]
fn load_says_which_line_is_wrong_and_what_was_put_before_it() {
    let space = TestSpace::new("load-wrong");
    let lines = "{\"tuple\": [\"job\", 1]}\n{\"tuple\": [\"job\", 2], \"lease_s\": -1}\n";
    let load = run_with_input(&["load", &space.url], lines);
    assert_eq!(load.code, 1);
    assert!(load.err.contains("line 2: \"lease_s\" is -1"), "{load:?}");
    assert!(load.err.contains("Put before it: 1 tuple."), "{load:?}");
    assert_eq!(run(&["read", &space.url, "job", ":int", "--all"]).out, "(\"job\", 1)\n");
}

#[test]
fn compact_gives_room_back_to_the_disk() {
    let directory = TestDirectory::new("compact");
    let url = directory.url("jobs.tupelo");
    run_with_input(&["load", &url], &jobs(2_000, &"x".repeat(500)));
    run(&["rm", &url, "job", "...", "--yes"]);
    run(&["put", &url, "job", "7"]);
    let compacted = &run(&["compact", &url, "--json"]).objects()[0];
    let bytes = |key: &str| compacted[key].as_u64().unwrap();
    assert!(bytes("bytes_before") > 1_000_000 && bytes("bytes") < 100_000, "{compacted}");
    let file = fs::metadata(directory.0.join("jobs.tupelo")).unwrap();
    assert_eq!(file.len(), bytes("bytes"), "nothing is left in the log");
    assert_eq!(run(&["take", &url, "job", "7"]).out, "(\"job\", 7)\n");
    let memory = TestSpace::new("compact-memory");
    run(&["put", &memory.url, "job", "7"]);
    let refused = run(&["compact", &memory.url]);
    assert!(refused.err.contains("is kept in no file that could be compacted"), "{refused:?}");
}

#[test]
fn ls_of_a_directory_lists_the_spaces_in_its_files() {
    let directory = TestDirectory::new("ls-files");
    let word = directory.0.to_str().unwrap();
    let none = run(&["ls", word]);
    assert!(none.out.starts_with("no files of spaces here; `tupelo put file:///"), "{none:?}");
    fs::write(directory.0.join("notes.txt"), "no space").unwrap();
    run(&["put", &directory.url("jobs.tupelo"), "job", "7"]);
    run(&["put", &directory.url("other.db"), "job", "7"]);
    let listed = run(&["ls", word, "--json"]).objects();
    let urls: Vec<_> = listed.iter().map(|line| line["url"].as_str().unwrap()).collect();
    assert_eq!(urls, [directory.url("jobs.tupelo"), directory.url("other.db")]);
    let table = run(&["ls", word]).out;
    assert!(table.starts_with("FILE ") && table.contains("BYTES  "), "{table}");
    assert!(table.contains(&format!("\n{word}/jobs.tupelo ")), "{table}");
    let missing = run(&["ls", &format!("{word}/none.tupelo")]);
    let told = format!("there is no file {word}/none.tupelo\n  `tupelo ls {word}` lists the files");
    assert!(missing.code == 2 && missing.err.contains(&told), "{missing:?}");
    let mistyped = run(&["ls", "shm:/jobs"]);
    assert!(mistyped.err.contains("is no URL of a space"), "{mistyped:?}");
}

#[test]
fn ls_of_a_file_lists_its_spaces_and_commands_take_one_of_them() {
    let directory = TestDirectory::new("ls-file");
    let file = directory.0.join("shop.tupelo");
    let (plain, orders) =
        (directory.url("shop.tupelo"), format!("{}?space=orders", directory.url("shop.tupelo")));
    for (url, number) in [(&plain, "1"), (&orders, "2"), (&orders, "3")] {
        run(&["put", url, "job", number]);
    }
    let listed = run(&["ls", file.to_str().unwrap(), "--json"]).objects();
    let shown = |line: &serde_json::Value| {
        (line["url"].as_str().unwrap().to_owned(), line["tuples"].as_u64().unwrap())
    };
    let listed: Vec<_> = listed.iter().map(shown).collect();
    assert_eq!(listed, [(plain.clone(), 1), (orders.clone(), 2)]);
    let table = run(&["ls", file.to_str().unwrap()]).out;
    assert!(table.contains(&orders) && table.contains("TUPLES ON DISK"), "{table}");
    assert!(run(&["doctor", &orders, "--all"]).out.contains("for 2 tuples"));
    assert!(run(&["doctor", &plain, "--all"]).out.contains("for 3 tuples"));
    assert!(run(&["rm", &orders, "--yes"]).out.contains("with 2 tuples"));
    assert_eq!(run(&["take", &plain, "job", ":int"]).out, "(\"job\", 1)\n");
    let gone = run(&["stat", &orders]);
    let list = format!("`tupelo ls {}` lists the spaces in the file", file.display());
    assert!(gone.err.contains("TUP-013") && gone.err.contains(&list), "{gone:?}");
}

#[test]
fn commands_take_a_file_that_has_named_spaces_alone() {
    let directory = TestDirectory::new("named-alone");
    let (file, copy) = (directory.0.join("shop.tupelo"), directory.0.join("copy.tupelo"));
    let whole = directory.url("shop.tupelo");
    for (name, number) in [("orders", "1"), ("orders", "2"), ("parcels", "3")] {
        run(&["put", &format!("{whole}?space={name}"), "job", number]);
    }
    let checked = run(&["doctor", &whole, "--json"]);
    let of_file = |line: &serde_json::Value| {
        let text = line["text"].as_str().unwrap();
        text.contains(&whole).then(|| text.to_owned())
    };
    let told: Vec<_> = checked.objects().iter().filter_map(of_file).collect();
    assert!(told[0].ends_with(" for 3 tuples, and whole"), "{checked:?}");
    assert!(!checked.out.contains("\"fix\"") && !checked.out.contains("TUP-013"), "{checked:?}");
    let compacted = run(&["compact", &whole]);
    assert!(compacted.code == 0 && compacted.out.contains(" now"), "{compacted:?}");
    let copied = run(&["backup", &whole, copy.to_str().unwrap()]);
    assert_eq!(copied.out, format!("{whole} is copied to {}\n", copy.display()), "{copied:?}");
    let parcels = format!("{}?space=parcels", directory.url("copy.tupelo"));
    assert_eq!(run(&["take", &parcels, "job", ":int"]).out, "(\"job\", 3)\n");
    // What would open the space without a name is refused.
    assert_eq!(run(&["stat", &whole]).code, 5);
    let asked = run(&["rm", &whole]);
    let with = "with its 2 spaces and 3 tuples (orders, parcels)";
    assert!(
        asked.err.contains(&format!("remove the file {} {with}?", file.display())),
        "{asked:?}"
    );
    let removed = run(&["rm", &whole, "--yes"]);
    let told = format!("file removed: {}, with 2 spaces and 3 tuples\n", file.display());
    assert_eq!(removed.out, told, "{removed:?}");
    assert!(!file.exists());
    let gone = run(&["rm", &whole, "--yes"]);
    assert!(gone.code == 5 && gone.err.contains("TUP-013"), "{gone:?}");
}

#[test]
fn copies_of_a_named_space_say_how_to_open_them() {
    let directory = TestDirectory::new("named-copies");
    let whole = directory.url("my shop.tupelo");
    let orders = format!("{whole}?space=orders");
    for (url, number) in [(&whole, "1"), (&orders, "2")] {
        run(&["put", url, "job", number]);
    }
    let path = |name: &str| directory.0.join(name).display().to_string();
    let copied = run(&["backup", &orders, &path("copy.tupelo")]).out;
    let copy = format!("{}?space=orders", directory.url("copy.tupelo"));
    assert!(copied.ends_with(&format!("; open it as '{copy}'\n")), "{copied}");
    assert_eq!(run(&["take", &copy, "job", ":int"]).out, "(\"job\", 2)\n");
    let saved = run(&["doctor", &orders, "--save", &path("saved.tupelo")]).out;
    let save = format!("{}?space=orders", directory.url("saved.tupelo"));
    assert!(saved.contains(&format!("/saved.tupelo: open it as '{save}'\n")), "{saved}");
    assert_eq!(run(&["take", &save, "job", ":int"]).out, "(\"job\", 2)\n");
    let saved = run(&["doctor", &whole, "--save", &path("all.tupelo")]).out;
    assert!(saved.contains("/all.tupelo, with 2 spaces\n"), "{saved}");
    // What is to be typed next stands in quotes.
    let which = run(&["backup", &orders]).err;
    assert!(which.contains(&format!("`tupelo backup '{orders}' /backup/jobs.tupelo`")), "{which}");
    let missing = run(&["stat", &format!("{whole}?space=none")]).err;
    assert!(missing.contains(&format!("`tupelo ls '{}'`", path("my shop.tupelo"))), "{missing}");
}

#[test]
fn rm_of_a_file_counts_all_that_goes_with_it() {
    let directory = TestDirectory::new("rm-file");
    let url = directory.url("shop.tupelo");
    for (url, number) in [(&url, "1"), (&format!("{url}?space=orders"), "2")] {
        run(&["put", url, "job", number]);
    }
    let asked = run(&["rm", &url]);
    assert!(
        asked.code == 2 && asked.err.contains("its 2 spaces and 2 tuples (orders)?"),
        "{asked:?}"
    );
    let removed = &run(&["rm", &url, "--yes", "--json"]).objects()[0];
    assert_eq!(*removed, serde_json::json!({ "url": url, "removed": 2, "spaces": 2 }));
    // A damaged one goes without a count.
    fs::write(directory.0.join("shop.tupelo"), "no file of a space").unwrap();
    let refused = run(&["rm", &url, "--yes"]);
    assert!(refused.code == 1 && refused.err.contains("TUP-015"), "{refused:?}");
}

#[test]
fn stat_of_a_space_in_a_file_has_its_journal() {
    let directory = TestDirectory::new("stat-journal");
    let url = directory.url("jobs.tupelo");
    run(&["put", &url, "job", "7"]);
    let stat = &run(&["stat", &url, "--json"]).objects()[0];
    assert_eq!(stat["journal"]["lag_bytes"], 0, "{stat}");
    assert!(stat["journal"]["position"].as_u64().unwrap() > 0, "{stat}");
    assert!(stat["journal"]["batches"].as_u64().unwrap() > 0, "{stat}");
    let page = run(&["stat", &url]).out;
    assert!(page.contains("on disk     everything; "), "{page}");
    let memory = TestSpace::new("stat-no-journal");
    run(&["put", &memory.url, "job", "7"]);
    assert!(run(&["stat", &memory.url, "--json"]).objects()[0]["journal"].is_null());
}

#[test]
fn doctor_tells_what_is_wrong_with_a_file_and_saves_what_can_be_read_c5() {
    let directory = TestDirectory::new("doctor-file");
    let (url, path) = (directory.url("jobs.tupelo"), directory.0.join("jobs.tupelo"));
    run_with_input(&["load", &url], &jobs(3_000, ""));
    run(&["compact", &url]);
    let finding = |words: &[&str], subject: &str| {
        let report = run(words).objects();
        let found = report.iter().find(|line| line["subject"] == subject);
        let found = found.unwrap_or_else(|| panic!("no {subject} in {report:?}"));
        format!("{} {}", found["level"].as_str().unwrap(), found["text"].as_str().unwrap())
    };
    let whole = finding(&["doctor", &url, "--json"], "file");
    assert!(whole.starts_with("ok ") && whole.ends_with(" for 3 000 tuples, and whole"), "{whole}");
    let disk = finding(&["doctor", &url, "--json"], "disk");
    assert!(disk.contains("a sync of the disk takes "), "{disk}");
    // A page in the middle.
    let copy = directory.0.join("damaged.tupelo");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xa5);
    fs::write(&copy, bytes).unwrap();
    let damaged = directory.url("damaged.tupelo");
    let told = finding(&["doctor", &damaged, "--json"], "file");
    assert!(told.starts_with("fix ") && told.contains("1 place that can not"), "{told}");
    assert!(told.ends_with(&format!("tupelo doctor {damaged} --save NEW_FILE")), "{told}");
    let saved = directory.0.join("saved.tupelo");
    let words = ["doctor", &damaged, "--save", saved.to_str().unwrap(), "--json"];
    assert!(
        finding(&words, "saved").ends_with(&format!(": open it as file://{}", saved.display()))
    );
    let count = &run(&["stat", &directory.url("saved.tupelo"), "--json"]).objects()[0]["tuples"];
    let count = count.as_u64().unwrap();
    assert!((2_700..3_000).contains(&count), "{count} of 3000 saved: a page has some 150");
    // What is there already stays.
    let again = run(&words);
    assert!(again.code == 1 && again.err.contains("it exists already"), "{again:?}");
    let no_file = run(&["doctor", "shm://jobs", "--save", "saved.tupelo"]);
    assert_eq!(no_file.code, 2, "{no_file:?}");
}
