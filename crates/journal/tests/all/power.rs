//! The machine loses its power: what was not synced is gone, and may be torn.

use std::fs;
use std::path::Path;

use tupelo_journal::Journal;
use tupelo_tuple::{fields, template};

use crate::{Place, contents};

/// The log beside the file.
fn log_of(path: &Path) -> std::path::PathBuf {
    format!("{}-wal", path.display()).into()
}

#[test]
fn a_log_that_ends_anywhere_behind_the_last_sync_has_all_that_was_acknowledged_c4() {
    let place = Place::new();
    let journal = place.open();
    for number in 1..=3 {
        journal.engine().put(&fields!["job", number]).unwrap();
        journal.settle().unwrap();
    }
    let (file, synced) =
        (fs::read(place.file()).unwrap(), fs::read(log_of(&place.file())).unwrap());
    journal.engine().put(&fields!["job", 4]).unwrap();
    journal.settle().unwrap();
    let whole = fs::read(log_of(&place.file())).unwrap();
    assert_eq!(fs::read(place.file()).unwrap(), file, "no checkpoint came between");
    assert!(whole.len() > synced.len() && whole.starts_with(&synced));
    // What was on its way when the power went: any part of it, and the last sector torn.
    let ends = (synced.len()..whole.len()).step_by(97).chain([whole.len()]);
    for (number, end) in ends.enumerate() {
        let lost = place.directory.join(format!("lost-{number}.tupelo"));
        let mut log = whole[..end].to_vec();
        if number % 2 == 1 && end > synced.len() + 16 {
            log[end - 16..].fill(0);
        }
        fs::write(&lost, &file).unwrap();
        fs::write(log_of(&lost), log).unwrap();
        let reopened = Journal::open(&lost, &place.options()).unwrap();
        let found = contents(reopened.engine());
        assert!(found.len() >= 3, "cut at {end} of {}: {found:?}", whole.len());
        assert_eq!(found[..3], [r#"("job", 1)"#, r#"("job", 2)"#, r#"("job", 3)"#]);
        assert!(found.len() < 4 || found[3] == r#"("job", 4)"#);
        reopened.engine().put(&fields!["job", 5]).unwrap();
        reopened.settle().unwrap();
        assert_eq!(reopened.engine().count(&[template![..]]), Ok(found.len() as u64 + 1));
    }
}
