//! Segments are created whole or not at all, and there is one of each name.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use crate::common::{LAYOUT, OPTIONS, Scratch, fill, open, open_with, value, word};
use tupelo_crashtest::{Exit, fork, shared_words};
use tupelo_shm::process::fork_generation;
use tupelo_shm::{CreateOptions, Directory, Error, HowRemoved, Memory, Removal, Segment, State};

/// C1: one wins, and nobody ever meets a half-made segment. C4: when all of them have ended, what they made is there.
#[test]
fn of_twenty_processes_that_create_at_once_one_wins_and_all_see_its_work() {
    const PROCESSES: u32 = 20;
    let scratch = Scratch::new();
    let directory = scratch.directory();
    for round in 0..10 {
        let name = format!("race{round}");
        // 0: the starting gun; 1: how many created; 2: sum of what they saw.
        let words = shared_words(3);
        let racers: Vec<_> = (1..=PROCESSES)
            .map(|number| {
                fork(|| {
                    while words[0].load(Ordering::Acquire) == 0 {
                        std::hint::spin_loop();
                    }
                    let segment = open(&directory, &name, u64::from(number)).unwrap();
                    words[1].fetch_add(u32::from(segment.created()), Ordering::Relaxed);
                    let seen = u32::try_from(value(&segment)).unwrap();
                    assert!((1..=PROCESSES).contains(&seen));
                    words[2].fetch_add(seen, Ordering::Relaxed);
                })
            })
            .collect();
        words[0].store(1, Ordering::Release);
        for racer in racers {
            assert_eq!(racer.wait(), Exit::Done);
        }
        assert_eq!(words[1].load(Ordering::Relaxed), 1, "creators");
        assert_eq!(words[2].load(Ordering::Relaxed) % PROCESSES, 0, "all saw the same");
    }
    assert_eq!(scratch.files().len(), 10);
}

/// C1: creators killed at any moment leave a whole segment or none, and no litter.
#[test]
fn a_creator_killed_at_a_random_moment_leaves_a_whole_segment_or_none() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let fresh = CreateOptions { fresh: true, ..OPTIONS };
    open(&directory, "victim", 1).unwrap();
    for delay_us in (0..2000).step_by(40) {
        let creator = fork(|| {
            loop {
                open_with(&directory, "victim", &fresh, 1).unwrap();
            }
        });
        std::thread::sleep(Duration::from_micros(delay_us));
        assert_eq!(creator.kill(), Exit::Killed(9));
        let segment = open(&directory, "victim", 2).unwrap();
        assert_eq!((segment.created(), value(&segment)), (false, 1));
    }
    // What a killed one left under a temporary name, the next replacement clears away.
    open_with(&directory, "victim", &fresh, 3).unwrap();
    assert_eq!(scratch.files().len(), 1);
}

#[test]
fn all_attachments_in_one_process_are_the_same_mapping() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let first = open(&directory, "a", 7).unwrap();
    let second = open(&directory, "a", 8).unwrap();
    let base = first.mapping().base();
    assert!(Arc::ptr_eq(first.mapping(), second.mapping()));
    assert!(first.created() && !second.created());
    drop((first, second));
    let third = open(&directory, "a", 9).unwrap();
    assert_eq!((third.mapping().base(), value(&third)), (base, 7));
}

/// Other tests of this program map segments of their own meanwhile: it runs in a process by itself.
#[test]
fn a_process_that_opens_and_removes_segments_all_day_keeps_no_memory_of_them() {
    let scratch = Scratch::new();
    let child = fork(|| {
        let directory = scratch.directory();
        let maps = || fs::read_to_string("/proc/self/maps").unwrap();
        let mappings = || maps().lines().count();
        let removed = || maps().lines().filter(|line| line.ends_with("(deleted)")).count();
        open(&directory, "kept", 1).unwrap();
        let (mappings_before, removed_before) = (mappings(), removed());
        drop(open(&directory, "b", 1).unwrap());
        directory.remove("b").unwrap();
        assert_eq!(removed(), removed_before, "nobody uses it");
        for number in 0..500 {
            let segment = open(&directory, "a", number).unwrap();
            assert!(segment.created());
            directory.remove("a").unwrap();
        }
        assert!(removed() <= removed_before + 1, "memory of removed files stays");
        for _ in 0..500 {
            Segment::private(&OPTIONS, &LAYOUT, |mapping| fill(mapping, 1)).unwrap();
        }
        assert!(mappings() < mappings_before + 10, "{} mappings", mappings());
        let files = fs::read_dir("/proc/self/fd").unwrap().count();
        assert!(files < 30, "{files} open files");
    });
    assert_eq!(child.wait(), Exit::Done);
}

#[test]
fn idle_mappings_are_kept_up_to_a_limit() {
    let scratch = Scratch::new();
    let child = fork(|| {
        for number in 0..200 {
            open(&scratch.directory(), &format!("s{number}"), number).unwrap();
        }
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let directory = scratch.path().to_str().unwrap();
        let kept = maps.lines().filter(|line| line.contains(directory)).count();
        assert!((64..100).contains(&kept), "{kept} mappings");
        let files = fs::read_dir("/proc/self/fd").unwrap().count();
        assert!(files < 30, "{files} open files");
        for number in 0..200 {
            assert_eq!(
                value(&open(&scratch.directory(), &format!("s{number}"), 0).unwrap()),
                number
            );
        }
    });
    assert_eq!(child.wait(), Exit::Done);
}

/// Who is attached to a segment is told how it lost its name.
fn removal(segment: &Segment) -> Option<Removal> {
    match Memory::new(Arc::clone(segment.mapping())).require_sound() {
        Err(Error::Removed { removal }) => Some(removal),
        sound => {
            sound.unwrap();
            None
        }
    }
}

#[test]
fn those_attached_are_told_by_whom_their_segment_was_removed_or_replaced_c4() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let removed = open(&directory, "a", 1).unwrap();
    assert_eq!(removal(&removed), None);
    let pid = &shared_words(1)[0];
    let child = fork(|| {
        pid.store(std::process::id(), Ordering::Relaxed);
        directory.remove("a").unwrap();
    });
    assert_eq!(child.wait(), Exit::Done);
    let told = removal(&removed).unwrap();
    assert_eq!((told.how, told.pid), (HowRemoved::Removed, pid.load(Ordering::Relaxed)));
    let replaced = open(&directory, "b", 1).unwrap();
    let fresh = open_with(&directory, "b", &CreateOptions { fresh: true, ..OPTIONS }, 1).unwrap();
    let told = removal(&replaced).unwrap();
    assert_eq!((told.how, told.pid), (HowRemoved::Replaced, std::process::id()));
    assert_eq!(removal(&fresh), None);
}

#[test]
fn a_segment_whose_file_is_gone_is_missing_and_one_whose_directory_is_another_is_not_c4() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let segment = open(&directory, "a", 1).unwrap();
    assert!(!segment.is_missing());
    let elsewhere = scratch.path().with_extension("moved");
    fs::rename(scratch.path(), &elsewhere).unwrap();
    assert!(!segment.is_missing(), "nobody can tell");
    fs::create_dir(scratch.path()).unwrap();
    assert!(!segment.is_missing(), "it is another directory");
    fs::remove_dir(scratch.path()).unwrap();
    fs::rename(&elsewhere, scratch.path()).unwrap();
    fs::remove_file(directory.path_of("a").unwrap()).unwrap();
    assert!(segment.is_missing());
    let private = Segment::private(&OPTIONS, &LAYOUT, |mapping| fill(mapping, 1)).unwrap();
    assert!(!private.is_missing());
}

#[test]
fn a_fresh_segment_takes_the_place_of_an_old_one_whose_users_keep_its_memory() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let old = open(&directory, "a", 1).unwrap();
    let fresh = CreateOptions { fresh: true, ..OPTIONS };
    let new = open_with(&directory, "a", &fresh, 2).unwrap();
    assert!(new.created() && new.identity().uuid != old.identity().uuid);
    assert_eq!((value(&old), value(&new)), (1, 2));
    assert_eq!(value(&open(&directory, "a", 3).unwrap()), 2);
    let none_before = open_with(&directory, "b", &fresh, 4).unwrap();
    assert!(none_before.created());
    assert_eq!(scratch.files().len(), 2);
}

#[test]
fn the_memory_of_a_removed_segment_stays_with_those_attached_and_is_new_to_others_c4() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let old = open(&directory, "a", 1).unwrap();
    directory.remove("a").unwrap();
    old.mapping().commit(1 << 20..2 << 20).unwrap();
    word(old.mapping(), (2 << 20) - 8).store(1, Ordering::Relaxed);
    assert!(matches!(directory.remove("a"), Err(Error::NotFound { .. })));
    let new = open(&directory, "a", 2).unwrap();
    assert!(new.created());
    assert_eq!((value(&old), value(&new)), (1, 2));
}

#[test]
fn a_segment_that_must_exist_is_not_created() {
    let scratch = Scratch::new();
    let options = CreateOptions { create: false, ..OPTIONS };
    let error = open_with(&scratch.directory(), "none", &options, 1).unwrap_err();
    let path = scratch.directory().path_of("none").unwrap();
    assert_eq!(error, Error::NotFound { path: path.clone() });
    assert_eq!(error.to_string(), format!("there is no space at {}", path.display()));
    assert!(scratch.files().is_empty());
    let nowhere = Directory::new(scratch.path().join("nowhere"));
    assert!(matches!(open(&nowhere, "a", 1), Err(Error::NotFound { .. })));
}

#[test]
fn a_failed_initialisation_leaves_nothing() {
    let scratch = Scratch::new();
    let refusal = Error::LimitExceeded { what: "things", limit: 1 };
    for fresh in [false, true] {
        let options = CreateOptions { fresh, ..OPTIONS };
        let refused =
            Segment::create_or_attach(&scratch.directory(), "a", &options, &LAYOUT, |_| {
                Err(refusal.clone())
            });
        assert_eq!(refused.unwrap_err(), refusal);
        assert!(scratch.files().is_empty());
    }
}

#[test]
fn segments_are_listed_with_the_memory_they_take() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    #[expect(clippy::disallowed_methods, reason = "files have dates")]
    let begin = SystemTime::now() - Duration::from_secs(1);
    for name in ["b", "a", "x.v1"] {
        open(&directory, name, 1).unwrap();
    }
    fs::write(scratch.path().join("other"), "no segment").unwrap();
    fs::write(scratch.path().join("tupelo.4000000000.theirs.v1"), "another user's").unwrap();
    let entries = directory.list().unwrap();
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "x.v1"]);
    assert!(entries.iter().all(|entry| entry.bytes == 1 << 20 && entry.modified > begin));
    let gone = Directory::new(scratch.path().join("nowhere")).list();
    assert!(matches!(gone, Err(Error::NotFound { .. })));
}

#[test]
fn the_file_has_exactly_the_mode_that_was_asked_for() {
    let scratch = Scratch::new();
    for mode in [0o600, 0o660, 0o666] {
        let name = format!("m{mode:o}");
        let options = CreateOptions { mode, ..OPTIONS };
        let segment = open_with(&scratch.directory(), &name, &options, 1).unwrap();
        let metadata = File::open(segment.path().unwrap()).unwrap().metadata().unwrap();
        assert_eq!(metadata.mode() & 0o7777, mode);
    }
}

#[test]
fn a_private_segment_has_an_identity_and_no_file_that_could_outlive_it_c4() {
    let segment = Segment::private(&OPTIONS, &LAYOUT, |mapping| fill(mapping, 5)).unwrap();
    assert!(segment.path().is_none() && segment.created());
    assert_eq!((value(&segment), segment.state()), (5, Some(State::Good)));
    let other = Segment::private(&OPTIONS, &LAYOUT, |mapping| fill(mapping, 6)).unwrap();
    assert_ne!(segment.identity().uuid, other.identity().uuid);
    assert_ne!(segment.identity().hash_seed, other.identity().hash_seed);
    let mapping = segment.mapping();
    word(mapping, 8192).store(1, Ordering::Relaxed);
    mapping.release(8192..12288).unwrap();
    assert_eq!(word(mapping, 8192).load(Ordering::Relaxed), 0);
}

#[test]
fn released_memory_goes_back_and_reads_as_zero_when_committed_again() {
    let scratch = Scratch::new();
    let segment = open(&scratch.directory(), "a", 1).unwrap();
    let mapping = segment.mapping();
    mapping.commit(1 << 20..3 << 20).unwrap();
    word(mapping, 2 << 20).store(1, Ordering::Relaxed);
    let memory = || fs::metadata(segment.path().unwrap()).unwrap().blocks() * 512;
    assert_eq!(memory(), 3 << 20);
    mapping.release(1 << 20..3 << 20).unwrap();
    assert_eq!(memory(), 1 << 20);
    mapping.commit(1 << 20..3 << 20).unwrap();
    assert_eq!(word(mapping, 2 << 20).load(Ordering::Relaxed), 0);
}

/// C5: a verdict reaches everybody attached.
#[test]
fn a_poisoned_segment_is_poisoned_for_all() {
    let scratch = Scratch::new();
    let segment = open(&scratch.directory(), "a", 1).unwrap();
    let child = fork(|| {
        let segment = open(&scratch.directory(), "a", 1).unwrap();
        segment.set_state(State::Poisoned);
    });
    assert_eq!(child.wait(), Exit::Done);
    assert_eq!(segment.state(), Some(State::Poisoned));
    let error = open(&scratch.directory(), "a", 1).unwrap_err();
    assert!(matches!(error, Error::Corrupted { .. }), "{error}");
}

/// A fork while another thread is opening segments must not leave the child with a lock that nobody
/// holds.
#[test]
fn a_child_forked_while_segments_are_opened_can_open_them_too() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    open(&directory, "busy", 1).unwrap();
    let stop = shared_words(1);
    let exits: Vec<Exit> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while stop[0].load(Ordering::Relaxed) == 0 {
                open(&directory, "busy", 1).unwrap();
            }
        });
        let fork_one = |_| {
            let generation = fork_generation();
            let child = fork(|| {
                assert_eq!(fork_generation(), generation + 1);
                assert_eq!(value(&open(&directory, "busy", 1).unwrap()), 1);
            });
            child.wait()
        };
        let exits = (0..100).map(fork_one).collect();
        stop[0].store(1, Ordering::Relaxed);
        exits
    });
    assert!(exits.iter().all(|exit| *exit == Exit::Done), "{exits:?}");
}

/// What a program prints that was started without standard streams goes nowhere, and not into a segment.
#[test]
fn no_segment_is_a_standard_stream() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    // By another process: what this one has mapped already, its forks open no more.
    let maker = fork(|| drop(open(&directory, "there", 7).unwrap()));
    assert_eq!(maker.wait(), Exit::Done);
    let child = fork(|| {
        for stream in 0..3 {
            // SAFETY: no memory is involved, and nobody else uses the streams of this process.
            unsafe { libc::close(stream) };
        }
        let there = open(&directory, "there", 1).unwrap();
        let made = open(&directory, "made", 2).unwrap();
        for stream in 0..3 {
            // SAFETY: reads from a text of that length.
            assert_eq!(unsafe { libc::write(stream, c"printed".as_ptr().cast(), 7) }, -1);
        }
        assert_eq!((value(&there), value(&made)), (7, 2));
    });
    assert_eq!(child.wait(), Exit::Done);
    assert_eq!(value(&open(&directory, "there", 1).unwrap()), 7);
}

/// A program may close numbers that are not its own, as daemons do, and have files of its own under them.
#[test]
fn growth_and_release_never_touch_a_file_of_the_program() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let child = fork(|| {
        let segment = open(&directory, "a", 7).unwrap();
        let mapping = segment.mapping();
        mapping.commit(1 << 20..4 << 20).unwrap();
        for number in 3..64 {
            // SAFETY: no memory is involved, and this process has no other threads.
            unsafe { libc::close(number) };
        }
        let text = vec![b'x'; 3 << 20];
        let own: Vec<_> =
            (0..8).map(|number| directory.path().join(format!("own{number}"))).collect();
        for path in &own {
            fs::write(path, &text).unwrap();
        }
        let still_open: Vec<File> =
            own.iter().map(|path| File::options().write(true).open(path).unwrap()).collect();
        mapping.release(1 << 20..2 << 20).unwrap();
        mapping.commit(4 << 20..32 << 20).unwrap();
        word(mapping, 31 << 20).store(1, Ordering::Relaxed);
        // Another one finds this one, and goes.
        assert_eq!(value(&open(&directory, "a", 1).unwrap()), 7);
        drop(segment);
        directory.remove("a").unwrap();
        open(&directory, "b", 1).unwrap();
        for (path, file) in own.iter().zip(still_open) {
            assert!(fs::read(path).unwrap() == text, "{}", path.display());
            file.sync_all().unwrap();
        }
    });
    assert_eq!(child.wait(), Exit::Done);
}
