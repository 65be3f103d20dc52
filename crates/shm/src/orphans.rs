//! Processes that still use a segment whose name is gone, or another segment's: they wait in a space that nobody can reach.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::names;
use crate::superblock::MAGIC;

/// A process with a segment that has lost its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The process.
    pub pid: u32,
    /// What the segment was called; `None` if the process has made it, and nobody can tell.
    pub name: Option<String>,
}

/// The processes of this user that have such segments of `directory`, as far as `/proc` shows them.
pub(crate) fn of(directory: &Path, user: u32) -> Vec<Orphan> {
    let named: HashSet<u64> = entries(directory).filter_map(|entry| inode(&entry)).collect();
    let mut orphans = Vec::new();
    for process in entries(Path::new("/proc")) {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Of another user, or ended meanwhile: nobody can tell.
        let maps = fs::read_to_string(process.path().join("maps")).unwrap_or_default();
        let mappings = maps.lines().filter_map(|line| Mapped::read(line, directory));
        let lost = mappings.filter(|one| !named.contains(&one.inode) && one.is_segment(pid));
        let mut found: Vec<Orphan> = lost
            .map(|one| Orphan { pid, name: names::space_of(one.file, user).map(str::to_owned) })
            .collect();
        found.dedup();
        orphans.append(&mut found);
    }
    orphans
}

fn entries(directory: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(directory).into_iter().flatten().flatten()
}

fn inode(entry: &fs::DirEntry) -> Option<u64> {
    entry.metadata().ok().map(|file| file.ino())
}

/// The beginning of a file in the memory of a process.
struct Mapped<'l> {
    address: u64,
    inode: u64,
    file: &'l str,
}

impl<'l> Mapped<'l> {
    /// Reads a line of `/proc/PID/maps`: addresses, access, offset, device, inode, path.
    fn read(line: &'l str, directory: &Path) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?.split('-').next()?, 16).ok()?;
        let is_start = words.nth(1)?.bytes().all(|digit| digit == b'0');
        let inode = words.nth(1)?.parse().ok()?;
        let path = line.split_once('/')?.1.strip_suffix(" (deleted)")?;
        let file = path.strip_prefix(directory.to_str()?.trim_start_matches('/'))?;
        is_start.then_some(Self { address, inode, file: file.trim_start_matches('/') })
    }

    /// Whether it begins as a segment does.
    fn is_segment(&self, pid: u32) -> bool {
        let mut start = [0; MAGIC.len()];
        let memory = File::open(format!("/proc/{pid}/mem"));
        let read = memory.and_then(|memory| memory.read_exact_at(&mut start, self.address));
        read.is_ok() && start == MAGIC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_the_beginning_of_a_deleted_file_is_read() {
        let read = |line: &str| {
            Mapped::read(line, Path::new("/dev/shm"))
                .map(|one| (one.address, one.inode, one.file.to_owned()))
        };
        let deleted =
            "7f00a000-7f00b000 rw-s 00000000 00:18 42                /dev/shm/a b (deleted)";
        assert_eq!(read(deleted), Some((0x7f00_a000, 42, "a b".to_owned())));
        assert_eq!(read(&deleted.replace("00000000", "00001000")), None);
        assert_eq!(read(&deleted.replace(" (deleted)", "")), None);
        assert_eq!(read(&deleted.replace("/dev/shm", "/tmp")), None);
        assert_eq!(read("7f00a000-7f00b000 rw-p 00000000 00:00 0"), None);
    }
}
