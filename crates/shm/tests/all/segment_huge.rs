//! Large growth gets huge pages where the system gives them, and is what it was in every other respect.

use std::fs::{OpenOptions, metadata, read_to_string};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::{Scratch, word};
use tupelo_shm::{Directory, Mapping};

const MIB: usize = 1 << 20;

fn mapped(path: &Path, bytes: usize) -> Arc<Mapping> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
    file.set_len(bytes as u64).unwrap();
    Mapping::shared(&file, &Directory::new(path.parent().unwrap()), bytes).unwrap()
}

/// How much of the area that begins at `offset` of a mapping the process sees by huge pages, in bytes.
fn huge_bytes(mapping: &Mapping, offset: usize, what: &str) -> usize {
    let begin = format!("{:x}-", mapping.base() as usize + offset);
    let smaps = read_to_string("/proc/self/smaps").unwrap();
    let of_area = smaps.lines().skip_while(|line| !line.starts_with(&begin)).skip(1);
    let line = of_area.into_iter().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// How much memory the file has.
fn held_bytes(path: &Path) -> usize {
    usize::try_from(metadata(path).unwrap().blocks()).unwrap() * 512
}

/// Whether the system gives huge pages to memory that has a page in it and asks for them.
fn are_given(path: &Path) -> bool {
    let mapping = mapped(path, 2 * MIB);
    mapping.commit(0..4096).unwrap();
    word(&mapping, 0).store(1, Ordering::Relaxed);
    // SAFETY: the mapping is as long as that, and keeps its contents.
    unsafe { libc::madvise(mapping.base().cast(), 2 * MIB, libc::MADV_COLLAPSE) == 0 }
}

#[test]
fn whole_blocks_are_huge_pages_where_there_are_any_and_all_contents_stay() {
    let scratch = Scratch::new();
    let mapping = mapped(&scratch.path().join("file"), 16 * MIB);
    mapping.commit(0..3 * MIB).unwrap();
    for at in (0..3 * MIB).step_by(4096) {
        assert_eq!(word(&mapping, at).swap(at as u64 + 1, Ordering::Relaxed), 0);
    }
    // Once more, over what is in use, and beyond it.
    mapping.commit(0..9 * MIB).unwrap();
    for at in (0..9 * MIB).step_by(4096) {
        let expected = if at < 3 * MIB { at as u64 + 1 } else { 0 };
        assert_eq!(word(&mapping, at).load(Ordering::Relaxed), expected, "at {at}");
    }
    let given = are_given(&scratch.path().join("probe"));
    let huge_bytes = huge_bytes(&mapping, 0, "ShmemPmdMapped:");
    assert_eq!(huge_bytes, if given { 8 * MIB } else { 0 });
}

#[test]
fn a_part_of_a_huge_page_that_is_released_reads_as_zero_and_its_neighbours_stay() {
    let scratch = Scratch::new();
    let path = scratch.path().join("file");
    let mapping = mapped(&path, 4 * MIB);
    mapping.commit(0..4 * MIB).unwrap();
    for at in (0..4 * MIB).step_by(4096) {
        word(&mapping, at).store(7, Ordering::Relaxed);
    }
    let before_bytes = held_bytes(&path);
    mapping.release(MIB..2 * MIB).unwrap();
    assert_eq!(held_bytes(&path), before_bytes - MIB, "the memory is the system's again");
    mapping.commit(MIB..2 * MIB).unwrap();
    for at in (0..4 * MIB).step_by(4096) {
        let expected = if (MIB..2 * MIB).contains(&at) { 0 } else { 7 };
        assert_eq!(word(&mapping, at).load(Ordering::Relaxed), expected, "at {at}");
    }
}

#[test]
fn a_commit_of_less_takes_no_more() {
    let scratch = Scratch::new();
    let path = scratch.path().join("file");
    let mapping = mapped(&path, 4 * MIB);
    mapping.commit(4096..2 * MIB + 4096).unwrap();
    assert_eq!(held_bytes(&path), 2 * MIB);
}

#[test]
fn private_memory_that_grows_by_several_blocks_has_huge_pages_and_all_contents_stay() {
    let mapping = Mapping::private(16 * MIB).unwrap();
    mapping.commit(0..2 * MIB).unwrap();
    mapping.commit(2 * MIB..4 * MIB).unwrap();
    mapping.commit(4 * MIB..12 * MIB).unwrap();
    for at in (0..12 * MIB).step_by(4096) {
        assert_eq!(word(&mapping, at).swap(7, Ordering::Relaxed), 0, "at {at}");
    }
    let modes = read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if modes.contains("[madvise]") {
        // An area of its own, since the single blocks before it are not advised.
        let huge_bytes = huge_bytes(&mapping, 4 * MIB, "AnonHugePages:");
        assert!((2 * MIB..=8 * MIB).contains(&huge_bytes), "{huge_bytes}");
    }
    mapping.release(5 * MIB..6 * MIB).unwrap();
    for at in (0..12 * MIB).step_by(4096) {
        let expected = if (5 * MIB..6 * MIB).contains(&at) { 0 } else { 7 };
        assert_eq!(word(&mapping, at).load(Ordering::Relaxed), expected, "at {at}");
    }
}
