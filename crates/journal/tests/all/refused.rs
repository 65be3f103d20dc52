//! What is no file of a space, or not one that may be used.

use std::fs;

use rusqlite::Connection;
use tupelo_journal::{Error, Journal, OpenOptions, remove};
use tupelo_tuple::fields;

use crate::{Place, contents};

#[test]
fn a_file_that_is_not_there_is_made_only_if_it_should_be() {
    let place = Place::new();
    let options = OpenOptions { create: false, ..place.options() };
    let refused = Journal::open(&place.file(), "", &options);
    assert_eq!(refused.unwrap_err(), Error::NotFound { path: place.file() });
    assert!(!place.file().exists());
    drop(place.open());
    Journal::open(&place.file(), "", &options).unwrap();
    let nowhere = place.directory.join("nowhere/jobs.tupelo");
    let refused = Journal::open(&nowhere, "", &place.options()).unwrap_err().to_string();
    assert!(refused.contains("its directory does not exist"), "{refused}");
}

#[test]
fn a_file_of_a_newer_layout_is_refused_with_both_versions() {
    let place = Place::new();
    drop(place.open());
    let file = Connection::open(place.file()).unwrap();
    file.pragma_update(None, "user_version", 99).unwrap();
    drop(file);
    let refused = Journal::open(&place.file(), "", &place.options()).unwrap_err();
    assert_eq!(refused, Error::Newer { path: place.file(), found: 99, known: 4 });
}

#[test]
fn a_file_of_something_else_is_refused_and_stays_as_it_is_c5() {
    let place = Place::new();
    fs::write(place.file(), "no database, but a text of some length, for which there is a reason")
        .unwrap();
    let before = fs::read(place.file()).unwrap();
    let refused = Journal::open(&place.file(), "", &place.options()).unwrap_err();
    assert!(matches!(refused, Error::Corrupted { .. }), "{refused:?}");
    assert_eq!(fs::read(place.file()).unwrap(), before);
    fs::remove_file(place.file()).unwrap();
    let other = Connection::open(place.file()).unwrap();
    other.execute_batch("CREATE TABLE theirs (a)").unwrap();
    drop(other);
    let refused = Journal::open(&place.file(), "", &place.options()).unwrap_err().to_string();
    assert!(refused.contains("not that of a space"), "{refused}");
    let mode = Connection::open(place.file()).unwrap();
    let mode = mode.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
    assert_eq!(mode.unwrap(), "delete");
    let refused = Journal::open(&place.directory, "", &place.options()).unwrap_err().to_string();
    assert!(refused.contains("not a regular file"), "{refused}");
}

#[test]
fn a_damaged_file_is_told_with_its_name_c5() {
    let place = Place::new();
    let journal = place.open();
    for number in 0..2_000 {
        journal.engine().put(&fields!["job", number]).unwrap();
    }
    drop(journal);
    place.forget_memory();
    let log = Connection::open(place.file()).unwrap();
    log.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).unwrap();
    drop(log);
    let mut bytes = fs::read(place.file()).unwrap();
    let length = bytes.len();
    bytes[length / 2..length / 2 + 4096].fill(0xa5);
    fs::write(place.file(), bytes).unwrap();
    let refused = Journal::open(&place.file(), "", &place.options()).unwrap_err();
    assert!(matches!(refused, Error::Corrupted { .. }), "{refused:?}");
    assert!(refused.to_string().contains("jobs.tupelo"), "{refused}");
}

#[test]
fn who_has_a_memory_that_is_not_the_files_any_more_is_told_and_changes_nothing() {
    let place = Place::new();
    let old = place.open();
    old.engine().put(&fields!["job", 1]).unwrap();
    old.settle().unwrap();
    place.forget_memory();
    let new = place.open();
    assert_eq!(contents(new.engine()), [r#"("job", 1)"#]);
    old.engine().put(&fields!["job", 2]).unwrap();
    let refused = old.settle().unwrap_err();
    assert_eq!(refused, Error::TakenOver { path: place.file(), own: 1, found: 2 });
    new.engine().put(&fields!["job", 3]).unwrap();
    new.settle().unwrap();
    drop((old, new));
    place.forget_memory();
    assert_eq!(contents(place.open().engine()), [r#"("job", 1)"#, r#"("job", 3)"#]);
}

#[test]
fn a_file_that_was_removed_while_it_was_open_takes_nothing_any_more() {
    let place = Place::new();
    let journal = place.open();
    journal.engine().put(&fields!["job", 1]).unwrap();
    journal.settle().unwrap();
    remove(&place.file(), &place.options().directory).unwrap();
    assert!(place.options().directory.list().unwrap().is_empty());
    let left: Vec<_> =
        fs::read_dir(&place.directory).unwrap().map(|one| one.unwrap().path()).collect();
    assert_eq!(left, [place.directory.join("memory")]);
    let removed = journal.engine().put(&fields!["job", 2]).unwrap_err().to_string();
    assert!(removed.contains("the space was removed"), "{removed}");
    assert_eq!(
        remove(&place.file(), &place.options().directory),
        Err(Error::NotFound { path: place.file() })
    );
    assert_eq!(contents(place.open().engine()), [""; 0]);
    assert!(journal.engine().put(&fields!["job", 3]).is_err());
}
