//! The machine loses its power: what was not synced may be gone, torn, or there before what was written earlier.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};

use tupelo_crashtest::{FileCall, TracedCalls};
use tupelo_tuple::fields;

use crate::Place;
use crate::disk::{self, Disk, Image};
use crate::script::{self, Progress, State, jobs};

/// Opens what a disk has when the power is back.
fn require_legal(image: &Image, progress: &Progress, when: &str) {
    let place = Place::new();
    disk::restore(image, &place.directory);
    let found = State::of(&place);
    progress.require_legal(&found, when);
    // And it goes on.
    let mut expected = found.jobs;
    let journal = place.open();
    journal.engine().put(&fields!["job", 99, b"".as_slice()]).unwrap();
    journal.settle().unwrap();
    drop(journal);
    place.forget_memory();
    expected.push(99);
    assert_eq!(jobs(place.open().engine()), expected, "{when}");
}

#[test]
fn when_the_power_goes_at_any_call_the_disk_has_all_that_was_acknowledged_c4() {
    let (place, progress) = (Place::new(), Progress::new());
    let mut files = place.files();
    files.push(place.directory.clone());
    let calls = TracedCalls::start(|| (), |()| script::run(&place, &progress));
    let (mut disk, mut seen) = (Disk::default(), BTreeSet::new());
    let mut look = |disk: &Disk, when: &str| {
        for image in disk.images() {
            let mut hasher = DefaultHasher::new();
            (&image, progress.acknowledged()).hash(&mut hasher);
            if seen.insert(hasher.finish()) {
                require_legal(&image, &progress, when);
            }
        }
    };
    while let Some(call) = calls.next_call() {
        let file_call =
            calls.file_call(&call).filter(|call| files.iter().any(|file| file == call.path()));
        let changes = file_call.as_ref().is_some_and(FileCall::changes);
        if changes {
            look(&disk, &format!("before {:?} of {file_call:?}", call.number));
        }
        let result = calls.allow();
        if let Some(file_call) = file_call.filter(|_| result >= 0) {
            disk.note(file_call);
        }
    }
    look(&disk, "at the end");
    assert_eq!(progress.acknowledged(), script::steps());
    assert!(seen.len() > 100, "{} states of the disk were looked at", seen.len());
    assert!(fs::exists(place.file()).unwrap());
}
