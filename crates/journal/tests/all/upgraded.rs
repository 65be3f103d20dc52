//! Files of older layouts.

use std::fs::{self, OpenOptions};
use std::mem;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tupelo_journal::{Error, Journal};
use tupelo_tuple::encoding::encode_template_refs;
use tupelo_tuple::{fields, template};

use crate::{Place, contents};

/// Makes the file one of layout 1, as builds of that time have made it: it had no subscriptions.
fn make_layout_1(path: &Path) {
    make_layout_2(path);
    let file = Connection::open(path).unwrap();
    let tables = "DROP TABLE subscription; DROP TABLE event; PRAGMA user_version = 1;";
    file.execute_batch(tables).unwrap();
}

/// The same of layout 3, which had one space.
fn make_layout_3(path: &Path) {
    let file = Connection::open(path).unwrap();
    file.execute_batch(
        "CREATE TABLE one_space (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            id BLOB NOT NULL,
            generation INTEGER NOT NULL,
            position INTEGER NOT NULL,
            next_id INTEGER NOT NULL,
            size_bytes INTEGER NOT NULL,
            tuples_max INTEGER,
            when_full INTEGER NOT NULL
        ) STRICT;
        INSERT INTO one_space SELECT number, id, generation, position, next_id, size_bytes, tuples_max,
            when_full FROM space;
        DROP TABLE space;
        ALTER TABLE one_space RENAME TO space;
        ALTER TABLE subscription DROP COLUMN session;
        PRAGMA user_version = 3;",
    )
    .unwrap();
}

/// The same of layout 2, which had no answers to requests.
fn make_layout_2(path: &Path) {
    make_layout_3(path);
    let file = Connection::open(path).unwrap();
    file.execute_batch("DROP TABLE answered; PRAGMA user_version = 2;").unwrap();
}

fn layout(path: &Path) -> i64 {
    let file = Connection::open(path).unwrap();
    file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn copies(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(&place.directory).unwrap().map(|entry| entry.unwrap().path());
    let is_copy = |path: &PathBuf| path.to_str().unwrap().contains(".layout-");
    let mut copies: Vec<_> = entries.filter(is_copy).collect();
    copies.sort();
    copies
}

#[test]
fn a_file_that_a_build_of_layout_1_has_written_is_upgraded_after_a_copy() {
    let place = Place::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/layout-1.tupelo");
    fs::copy(&fixture, place.file()).unwrap();
    let journal = place.open();
    let expected = [r#"("job", 1)"#, r#"("job", 2, "cat.png")"#, r#"("note", "ä")"#];
    assert_eq!(contents(journal.engine()), expected);
    let dead = journal.engine().dead(&[template![..]], |_, letter| {
        let reasons = letter.reasons.iter().map(|attempt| attempt.reason.clone());
        Ok::<_, tupelo_engine::Error>(reasons.collect::<Vec<_>>())
    });
    assert_eq!(dead.unwrap(), [["no paper"]]);
    journal.engine().put(&fields!["job", 4]).unwrap();
    drop(journal);
    assert_eq!(layout(&place.file()), 4);
    let copy = place.directory.join("jobs.tupelo.layout-1");
    assert_eq!(copies(&place), std::slice::from_ref(&copy));
    assert_eq!(layout(&copy), 1);
    // The copy is a space of its own.
    let old = Journal::open(&copy, "", &place.options()).unwrap();
    assert_eq!(contents(old.engine()), expected);
}

#[test]
fn what_was_in_memory_alone_comes_to_the_file_before_it_is_upgraded_c4() {
    let place = Place::new();
    let old = place.open();
    old.engine().put(&fields!["job", 1]).unwrap();
    old.settle().unwrap();
    make_layout_1(&place.file());
    old.engine().put(&fields!["job", 2]).unwrap();
    let new = place.open();
    assert_eq!(contents(new.engine()), [r#"("job", 1)"#, r#"("job", 2)"#]);
    // A program that has the old memory can change nothing any more.
    let refused = old.engine().put(&fields!["job", 3]).unwrap_err();
    assert!(refused.to_string().contains("removed"), "{refused:?}");
    drop((old, new));
    place.forget_memory();
    assert_eq!(contents(place.open().engine()), [r#"("job", 1)"#, r#"("job", 2)"#]);
    assert_eq!(copies(&place).len(), 1);
}

#[test]
fn a_file_of_layout_2_goes_on_with_its_subscriptions_n1_c4() {
    let place = Place::new();
    let any = encode_template_refs(&[template![..]]).unwrap();
    let journal = place.open();
    let subscribed = journal.subscribe("all", &any, 10).unwrap().unwrap();
    journal.engine().put(&fields!["job", 1]).unwrap();
    journal.settle().unwrap();
    drop(journal);
    make_layout_2(&place.file());
    let journal = place.open();
    assert_eq!((layout(&place.file()), copies(&place).len()), (4, 1));
    assert_eq!(journal.events_waiting(subscribed.id, 0), Ok(1));
    assert_eq!(journal.engine().keep_keys(), Ok(true));
    assert_eq!(contents(journal.engine()), [r#"("job", 1)"#]);
}

#[test]
fn a_file_of_layout_3_gets_more_spaces_c4() {
    let place = Place::new();
    let journal = place.open();
    journal.engine().put(&fields!["job", 1]).unwrap();
    drop(journal);
    make_layout_3(&place.file());
    let other = place.open_space("other");
    other.engine().put(&fields!["job", 2]).unwrap();
    drop(other);
    place.forget_memory();
    let there = ["", "other"].map(|name| contents(place.open_space(name).engine()));
    assert_eq!(there, [vec![r#"("job", 1)"#], vec![r#"("job", 2)"#]]);
}

/// The file of the memory, of which there is one.
fn memory_file(place: &Place) -> PathBuf {
    let files: Vec<_> = fs::read_dir(place.directory.join("memory")).unwrap().collect();
    assert_eq!(files.len(), 1);
    files.into_iter().next().unwrap().unwrap().path()
}

/// Turns the memory into one of another build, or back.
fn change_build(memory: &Path) {
    const STATE: usize = 12;
    const HASH: usize = 16;
    const CHECKSUM: usize = 128;
    let file = OpenOptions::new().read(true).write(true).open(memory).unwrap();
    let mut identity = [0; CHECKSUM];
    file.read_exact_at(&mut identity, 0).unwrap();
    identity[HASH] ^= 1;
    let counted = identity[..STATE].iter().chain(&identity[STATE + 4..]);
    let checksum = counted.fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    file.write_all_at(&identity[HASH..=HASH], HASH as u64).unwrap();
    file.write_all_at(&checksum.to_ne_bytes(), CHECKSUM as u64).unwrap();
}

/// Leaves a change in memory alone, as a program does that is killed.
fn leave_in_memory(place: &Place, number: i64) {
    let journal = place.open();
    journal.engine().put(&fields!["job", number]).unwrap();
    // Its end would bring the change to the file.
    mem::forget(journal);
}

#[test]
fn what_only_the_memory_of_another_build_has_is_not_given_up_c4() {
    let place = Place::new();
    leave_in_memory(&place, 1);
    let memory = memory_file(&place);
    change_build(&memory);
    let refused = Journal::open(&place.file(), "", &place.options()).unwrap_err();
    assert!(
        matches!(&refused, Error::OnlyInOldMemory { memory: named, bytes: 1.., .. } if *named == memory),
        "{refused:?}"
    );
    // The other build brings it to the file, by any command that opens that.
    change_build(&memory);
    place.open().compact().unwrap();
    change_build(&memory);
    assert_eq!(contents(place.open().engine()), [r#"("job", 1)"#]);
    assert!(!memory.exists(), "the file has a new memory");
}

#[test]
fn a_file_of_an_older_layout_is_not_upgraded_before_it_has_all_of_its_memory_c4() {
    let place = Place::new();
    leave_in_memory(&place, 1);
    make_layout_1(&place.file());
    let memory = memory_file(&place);
    change_build(&memory);
    let refused = Journal::open(&place.file(), "", &place.options()).unwrap_err();
    assert!(matches!(refused, Error::OnlyInOldMemory { .. }), "{refused:?}");
    assert_eq!((layout(&place.file()), copies(&place).len()), (1, 0));
    // Who does without these changes removes the memory.
    fs::remove_file(&memory).unwrap();
    assert_eq!(contents(place.open().engine()), [""; 0]);
}

#[test]
fn a_fresh_space_does_without_the_memory_of_another_build() {
    let place = Place::new();
    leave_in_memory(&place, 1);
    change_build(&memory_file(&place));
    let fresh = tupelo_journal::OpenOptions { fresh: true, ..place.options() };
    let journal = Journal::open(&place.file(), "", &fresh).unwrap();
    assert_eq!(contents(journal.engine()), [""; 0]);
}
