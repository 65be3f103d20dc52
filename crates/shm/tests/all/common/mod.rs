//! What the tests of segments share: a directory of their own, and a layout.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tupelo_shm::{CreateOptions, Directory, Error, Layout, Mapping, Segment};

pub(crate) const LAYOUT: Layout =
    Layout { minor: 3, abi_hash: 0x1234, features_incompatible: 0b11, features_compatible: 0 };

pub(crate) const OPTIONS: CreateOptions = CreateOptions {
    reserve_bytes: 64 << 20,
    initial_commit_bytes: 1 << 20,
    create: true,
    fresh: false,
    mode: 0o600,
};

/// A directory in shared memory that ends with the test.
pub(crate) struct Scratch {
    path: PathBuf,
    creator: u32,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let creator = std::process::id();
        let path = PathBuf::from(format!("/dev/shm/tupelo-test-{creator}-{number}"));
        fs::create_dir(&path).unwrap();
        Self { path, creator }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn directory(&self) -> Directory {
        Directory::new(&self.path)
    }

    /// All names in it, also those that are no segments.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Not in a child that was forked with it.
        if std::process::id() == self.creator {
            fs::remove_dir_all(&self.path).unwrap();
        }
    }
}

/// Opens a segment with the usual options, filled with `value` if it is new.
pub(crate) fn open(directory: &Directory, name: &str, value: u64) -> Result<Segment, Error> {
    open_with(directory, name, &OPTIONS, value)
}

pub(crate) fn open_with(
    directory: &Directory,
    name: &str,
    options: &CreateOptions,
    value: u64,
) -> Result<Segment, Error> {
    Segment::create_or_attach(directory, name, options, &LAYOUT, |mapping| fill(mapping, value))
}

/// Where a segment says how much of it is committed, in granules of 64 bytes.
pub(crate) const COMMITTED: usize = 256;

/// Fills a new segment as far as strangers look at it, and puts `value` at the second page.
#[expect(clippy::unnecessary_wraps, reason = "this is what a segment is initialised with")]
pub(crate) fn fill(mapping: &Mapping, value: u64) -> Result<(), Error> {
    word(mapping, COMMITTED).store((1 << 20) / 64, Ordering::Relaxed);
    word(mapping, 4096).store(value, Ordering::Relaxed);
    Ok(())
}

/// A word of a mapping, which the test has committed.
pub(crate) fn word(mapping: &Mapping, offset: usize) -> &AtomicU64 {
    assert!(offset.is_multiple_of(8) && offset < mapping.reserved_bytes());
    // SAFETY: inside the mapping, as was just checked.
    let word = unsafe { mapping.base().add(offset) };
    // SAFETY: aligned, mapped as long as `mapping` is borrowed, and accessed by atomics only.
    unsafe { AtomicU64::from_ptr(word.cast()) }
}

/// What [`fill`] left.
pub(crate) fn value(segment: &Segment) -> u64 {
    word(segment.mapping(), 4096).load(Ordering::Relaxed)
}
