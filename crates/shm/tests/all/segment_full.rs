//! When there is no room, the answer is an error with figures: never a signal, never a killed process
//! (rule B1).

use std::fs::OpenOptions;
use std::os::unix::fs::MetadataExt;
use std::ptr;
use std::sync::atomic::Ordering;

use crate::common::{LAYOUT, OPTIONS, Scratch, fill, open, open_with, value, word};
use rustix::process::{Resource, Rlimit, setrlimit};
use tupelo_crashtest::{Exit, fork, with_tiny_file_system};
use tupelo_shm::{AddressLimit, CreateOptions, Error, Limit, Mapping, Segment};

#[test]
fn growth_beyond_the_file_system_is_refused_with_figures_and_changes_nothing() {
    let scratch = Scratch::new();
    with_tiny_file_system(scratch.path(), 4 << 20, || {
        let segment = open(&scratch.directory(), "a", 7).unwrap();
        let mapping = segment.mapping();
        mapping.commit(1 << 20..3 << 20).unwrap();
        let error = mapping.commit(3 << 20..64 << 20).unwrap_err();
        let Error::Full { wanted_bytes, available_bytes, limit_bytes, limit } = error else {
            panic!("{error:?}");
        };
        assert_eq!((wanted_bytes, limit_bytes, limit), (61 << 20, 4 << 20, Limit::Filesystem));
        assert!(available_bytes <= 1 << 20);
        let message = error.to_string();
        assert!(message.starts_with("no room for 61 MiB more: "), "{message}");
        assert!(message.contains("left of 4 MiB on the file system") && message.contains("Docker"));
        // Every committed page can be written, and the next one that fits can be had.
        for page in (8192..3 << 20).step_by(4096) {
            word(mapping, page).store(1, Ordering::Relaxed);
        }
        mapping.commit(3 << 20..(3 << 20) + 4096).unwrap();
        assert_eq!(value(&segment), 7);
    });
}

/// Nothing is taken before the refusal: this test would need all memory of the machine.
#[test]
fn growth_by_more_than_the_whole_file_system_is_refused_at_once() {
    let scratch = Scratch::new();
    let status = rustix::fs::statvfs(scratch.path()).unwrap();
    let total_bytes = status.f_blocks * status.f_frsize;
    let path = scratch.path().join("file");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
    let range = 0..usize::try_from(total_bytes).unwrap() + (1 << 20);
    file.set_len(range.end as u64).unwrap();
    let mapping = Mapping::shared(&file, &scratch.directory(), range.end).unwrap();
    let error = mapping.commit(range).unwrap_err();
    assert!(matches!(error, Error::Full { limit: Limit::Filesystem, .. }), "{error:?}");
    assert_eq!(file.metadata().unwrap().blocks(), 0);
}

/// A profiler's timer interrupts every long call; growth goes on in smaller steps.
#[test]
fn growth_gets_done_between_signals() {
    extern "C" fn ignore(_: libc::c_int) {}
    let scratch = Scratch::new();
    let child = fork(|| {
        // SAFETY: the handler does nothing, which is safe at any moment.
        unsafe { libc::signal(libc::SIGALRM, ignore as *const () as libc::sighandler_t) };
        let period = libc::timeval { tv_sec: 0, tv_usec: 1000 };
        let timer = libc::itimerval { it_interval: period, it_value: period };
        // SAFETY: the timer is a local variable, and the old one is not asked for.
        unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
        let segment = open(&scratch.directory(), "a", 7).unwrap();
        segment.mapping().commit(1 << 20..64 << 20).unwrap();
        let metadata = std::fs::metadata(segment.path().unwrap()).unwrap();
        assert_eq!(metadata.blocks() * 512, 64 << 20);
    });
    assert_eq!(child.wait(), Exit::Done);
}

#[test]
fn a_segment_that_does_not_fit_is_not_created() {
    let scratch = Scratch::new();
    with_tiny_file_system(scratch.path(), 512 << 10, || {
        let error = open(&scratch.directory(), "a", 7).unwrap_err();
        assert!(matches!(error, Error::Full { limit: Limit::Filesystem, .. }), "{error:?}");
        assert!(scratch.files().is_empty());
        let status = rustix::fs::statvfs(scratch.path()).unwrap();
        assert_eq!(status.f_bavail, status.f_blocks, "its memory went back");
    });
}

#[test]
fn a_file_size_limit_is_an_error_and_no_signal() {
    let scratch = Scratch::new();
    let child = fork(|| {
        let there = open(&scratch.directory(), "there", 7).unwrap();
        let limit = Rlimit { current: Some(2 << 20), maximum: None };
        setrlimit(Resource::Fsize, limit).unwrap();
        let error = open(&scratch.directory(), "a", 7).unwrap_err();
        let refused = Error::Full {
            wanted_bytes: 64 << 20,
            available_bytes: 2 << 20,
            limit_bytes: 2 << 20,
            limit: Limit::FileSize,
        };
        assert_eq!(error, refused);
        let message =
            "of 2 MiB per file: raise `ulimit -f`, or create the space with a smaller size";
        assert!(error.to_string().ends_with(message), "{error}");
        assert_eq!(scratch.files().len(), 1);
        // A file that has its length has room as before.
        there.mapping().commit(1 << 20..4 << 20).unwrap();
        word(there.mapping(), 3 << 20).store(1, Ordering::Relaxed);
    });
    assert_eq!(child.wait(), Exit::Done);
}

#[test]
fn too_little_address_space_is_an_error_with_figures() {
    let child = fork(|| {
        let limit = Rlimit { current: Some(2 << 30), maximum: None };
        setrlimit(Resource::As, limit).unwrap();
        let scratch = Scratch::new();
        let options = CreateOptions { reserve_bytes: 64 << 30, ..OPTIONS };
        let refusals = [
            Mapping::private(64 << 30).unwrap_err(),
            open_with(&scratch.directory(), "a", &options, 1).unwrap_err(),
        ];
        for error in refusals {
            let Error::AddressSpace { wanted_bytes, limit } = &error else { panic!("{error:?}") };
            let AddressLimit::Process { used_bytes, limit_bytes } = limit else {
                panic!("{limit:?}")
            };
            assert_eq!((*wanted_bytes, *limit_bytes), (64 << 30, 2 << 30));
            assert!((1..2 << 30).contains(used_bytes), "{used_bytes}");
            let message = error.to_string();
            assert!(message.starts_with("can not reserve 64 GiB of address space: "), "{message}");
            let way_out = "of 2 GiB are used; close and remove spaces, raise `ulimit -v`, or create the space with \
                           a smaller size";
            assert!(message.ends_with(way_out), "{message}");
        }
        assert!(scratch.files().is_empty());
    });
    assert_eq!(child.wait(), Exit::Done);
}

#[test]
fn a_process_with_few_addresses_opens_and_closes_segments_for_ever() {
    let scratch = Scratch::new();
    let child = fork(|| {
        // Room for some of 64 MiB, not for many.
        let limit = Rlimit { current: Some(1 << 30), maximum: None };
        setrlimit(Resource::As, limit).unwrap();
        let directory = scratch.directory();
        for number in 0..200 {
            let segment = open(&directory, "fresh", number).unwrap();
            assert_eq!(value(&segment), number);
            directory.remove("fresh").unwrap();
            // One that others may come back to is kept, until its addresses are needed.
            assert_eq!(value(&open(&directory, &format!("s{number}"), number).unwrap()), number);
            let private = Segment::private(&OPTIONS, &LAYOUT, |mapping| fill(mapping, number));
            assert_eq!(value(&private.unwrap()), number);
        }
    });
    assert_eq!(child.wait(), Exit::Done);
}
