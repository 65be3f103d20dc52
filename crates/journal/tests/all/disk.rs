//! A disk as POSIX has it: what was written since the last sync of a file may be there or not, in any order, and torn.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tupelo_crashtest::FileCall;

/// What a disk writes at once, in bytes.
const SECTOR: usize = 512;
/// Of so many changes that are not synced, all subsets are looked at; of more, some.
const ALL_SUBSETS: usize = 4;

/// What was asked of the files of a space.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// What is there for certain, by the number of a file.
    contents: Vec<Vec<u8>>,
    names: BTreeMap<PathBuf, usize>,
    /// What may be there, in the order in which it was asked for.
    pending: Vec<Change>,
    /// What programs see.
    names_seen: BTreeMap<PathBuf, usize>,
}

#[derive(Clone, Debug)]
enum Change {
    Name { path: PathBuf, file: Option<usize> },
    Write { file: usize, offset: usize, bytes: Vec<u8> },
    Truncate { file: usize, length: usize },
}

impl Change {
    fn concerns(&self, which: usize) -> bool {
        match self {
            Self::Name { .. } => false,
            Self::Write { file, .. } | Self::Truncate { file, .. } => *file == which,
        }
    }
}

/// What is on the disk when the power is back: the files, by their names.
pub(crate) type Image = BTreeMap<PathBuf, Vec<u8>>;

impl Disk {
    /// Takes note of a call that has happened.
    pub(crate) fn note(&mut self, call: FileCall) {
        match call {
            FileCall::Open { path, creates: true } if !self.names_seen.contains_key(&path) => {
                let file = self.contents.len();
                self.contents.push(Vec::new());
                self.names_seen.insert(path.clone(), file);
                self.pending.push(Change::Name { path, file: Some(file) });
            }
            FileCall::Write { path, offset, bytes } => {
                let offset = usize::try_from(offset).unwrap();
                self.pending.push(Change::Write { file: self.names_seen[&path], offset, bytes });
            }
            FileCall::Truncate { path, length } => {
                let (file, length) = (self.names_seen[&path], usize::try_from(length).unwrap());
                self.pending.push(Change::Truncate { file, length });
            }
            FileCall::Remove { path } => {
                if self.names_seen.remove(&path).is_some() {
                    self.pending.push(Change::Name { path, file: None });
                }
            }
            FileCall::Sync { path } => self.sync(&path),
            FileCall::Open { .. } | FileCall::Read { .. } | FileCall::Lock { .. } => {}
        }
    }

    /// What was asked of this file, or of the names of this directory, is there for certain.
    fn sync(&mut self, path: &Path) {
        let file = self.names_seen.get(path).copied();
        let is_synced = |change: &Change| match change {
            Change::Name { path: name, .. } => name.parent() == Some(path),
            change => file.is_some_and(|file| change.concerns(file)),
        };
        let (synced, pending): (Vec<_>, Vec<_>) = self.pending.drain(..).partition(is_synced);
        self.pending = pending;
        for change in &synced {
            apply(&mut self.contents, &mut self.names, change);
        }
    }

    /// What may be there if the power goes now.
    pub(crate) fn images(&self) -> Vec<Image> {
        let count = self.pending.len();
        let chosen: Vec<Vec<bool>> = if count <= ALL_SUBSETS {
            (0..1_usize << count).map(|bits| bits_of(bits, count)).collect()
        } else {
            let alone = |one: usize| (0..count).map(|other| other == one).collect::<Vec<_>>();
            let without = |one: usize| (0..count).map(|other| other != one).collect();
            let until = |end: usize| (0..count).map(|other| other < end).collect();
            let every_other = (0..2).map(|odd| (0..count).map(|one| one % 2 == odd).collect());
            [alone(0), alone(count - 1)]
                .into_iter()
                .chain((0..=count).map(until))
                .chain([without(0), without(count / 2), without(count - 1)])
                .chain(every_other)
                .collect()
        };
        let mut images: Vec<Image> = Vec::new();
        for chosen in &chosen {
            images.extend([false, true].map(|is_torn| self.image(chosen, is_torn)));
        }
        images.sort();
        images.dedup();
        images
    }

    /// The disk with the chosen ones of the pending changes, the last write among them being torn, or not.
    fn image(&self, chosen: &[bool], is_torn: bool) -> Image {
        let (mut contents, mut names) = (self.contents.clone(), self.names.clone());
        let there = self.pending.iter().zip(chosen).filter(|(_, is_there)| **is_there);
        let mut there: Vec<Change> = there.map(|(change, _)| change.clone()).collect();
        if is_torn && let Some(Change::Write { bytes, .. }) = there.last_mut() {
            // Half of its sectors; of less than two sectors, nothing.
            bytes.truncate(bytes.len() / SECTOR / 2 * SECTOR);
        }
        for change in &there {
            apply(&mut contents, &mut names, change);
        }
        names.into_iter().map(|(path, file)| (path, contents[file].clone())).collect()
    }
}

fn bits_of(bits: usize, count: usize) -> Vec<bool> {
    (0..count).map(|bit| bits >> bit & 1 == 1).collect()
}

fn apply(contents: &mut [Vec<u8>], names: &mut BTreeMap<PathBuf, usize>, change: &Change) {
    match change {
        Change::Name { path, file: Some(file) } => drop(names.insert(path.clone(), *file)),
        Change::Name { path, file: None } => drop(names.remove(path)),
        Change::Write { file, offset, bytes } => {
            let content = &mut contents[*file];
            let end = offset + bytes.len();
            content.resize(content.len().max(end), 0);
            content[*offset..end].copy_from_slice(bytes);
        }
        Change::Truncate { file, length } => contents[*file].resize(*length, 0),
    }
}

/// Writes the files of an image into another directory.
pub(crate) fn restore(image: &Image, directory: &Path) {
    for (path, bytes) in image {
        fs::write(directory.join(path.file_name().unwrap()), bytes).unwrap();
    }
}
