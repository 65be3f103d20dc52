//! How the logs of one commit over several segments know of each other ([`crate::group`]).
//!
//! One of them decides: its entries stop counting with the one store that commits all. Behind its entries it notes the
//! others, and they note it; the slot's word `LINK` says where. A recoverer of a dead thread's entries in one of the others
//! asks the deciding log. That log may be in a segment that this process never used: it is asked by a look into its
//! file, that takes no mapping and no lock.
//!
//! | entry of a note | what |
//! |---:|---|
//! | 0 | number of the commit in the deciding segment (8 bytes); how many logs are named, 0 for the decider's |
//! | 1 | uuid of the segment of the log that is named |
//! | 2 to 9 | its thread slot and the length of its name (4 bytes each); the name |
//!
//! A log is asked only while its answer stands. It says *committed* as long as one of the others has changes
//! that are not settled: until then its slot is not given away ([`Memory::still_decides`]). Any other slot,
//! and a segment that is gone, says *not committed*: an undecided commit leaves no trace to wait for.
//!
//! A segment may lose its name at the very moment in which a thread dies between the decision and its end. Processes
//! that do not use the segment take it for gone. They undo: for later processes the segment with the other half no
//! longer exists.

use std::fs::File;
use std::sync::Arc;

use rustix::io::retry_on_intr;

use crate::access::{GRANULE, View};
use crate::addresses;
use crate::error::Error;
use crate::home::Home;
use crate::log::{self, ENTRY_BYTES, INLINE_ENTRIES, RESTORED};
use crate::mapping::Mapping;
use crate::memory::Memory;
use crate::names::NAME_BYTES_MAX;
use crate::section::Section;
use crate::superblock::UUID;
use crate::table::{self, THREADS_MAX};
use crate::thread::{COUNT, ENTRIES, LINK, RUN, RUN_ENTRIES, Slot};

/// Entries that name a log.
pub(crate) const PEER_ENTRIES: u32 = 9;
const NAME_WORDS: usize = 14;
const _: () = assert!(NAME_BYTES_MAX <= 8 * NAME_WORDS);
const _: () = assert!(2 + 2 + NAME_WORDS == 2 * PEER_ENTRIES as usize);

/// A log, as another segment names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The segment.
    uuid: [u8; 16],
    name: String,
    /// The number of the thread slot in it.
    slot: u32,
}

/// The note of a log about a commit over several segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The number of the commit in the segment of the deciding log.
    pub(crate) commit: u64,
    /// Whether this log decides; then `peers` are the others, else the deciding log.
    pub(crate) decides: bool,
    pub(crate) peers: Vec<Peer>,
}

impl Note {
    /// How many entries of a log it takes, if it names so many.
    pub(crate) const fn entries(peers: u32) -> u32 {
        1 + peers * PEER_ENTRIES
    }

    /// Writes it behind the entries of a section's log, which has room, and says there that it stands.
    pub(crate) fn write(&self, section: &Section<'_>) {
        let (view, slot) = (section.view(), section.thread().slot());
        let start = section.changes();
        let named = if self.decides { self.peers.len() as u64 } else { 0 };
        log::write_beyond(view, slot, start, [self.commit, named]);
        let mut index = start + 1;
        for peer in &self.peers {
            for pair in peer.words().chunks_exact(2) {
                log::write_beyond(view, slot, index, [pair[0], pair[1]]);
                index += 1;
            }
        }
        log::set_link(slot, start + 1);
    }
}

impl Peer {
    /// The log of an open section.
    ///
    /// # Panics
    ///
    /// If its segment never had a name.
    pub(crate) fn of(section: &Section<'_>) -> Self {
        let mapping = section.memory().mapping();
        let Some(name) = mapping.home().and_then(Home::name) else {
            panic!("a commit over several segments needs the names of all that are shared");
        };
        let start = section.view().span::<16>(UUID);
        let uuid = [start.load64(0), start.load64(8)].map(u64::to_ne_bytes).concat();
        let Ok(uuid) = uuid.try_into() else { unreachable!("two words have 16 bytes") };
        Self { uuid, name: name.to_owned(), slot: section.thread().slot_number() }
    }

    fn words(&self) -> [u64; 2 * PEER_ENTRIES as usize] {
        let mut bytes = [0; 8 * 2 * PEER_ENTRIES as usize];
        bytes[..16].copy_from_slice(&self.uuid);
        bytes[16..20].copy_from_slice(&self.slot.to_ne_bytes());
        let length = u32::try_from(self.name.len()).unwrap_or(0);
        bytes[20..24].copy_from_slice(&length.to_ne_bytes());
        // A name has at most NAME_BYTES_MAX bytes, and so room.
        bytes[32..32 + self.name.len()].copy_from_slice(self.name.as_bytes());
        std::array::from_fn(|index| u64::from_ne_bytes(part(&bytes, 8 * index)))
    }

    /// Reads what [`Peer::words`] gave; `None` if nothing can have that name or slot.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let slot = u32::from_ne_bytes(part(bytes, 16));
        let length = u32::from_ne_bytes(part(bytes, 20)) as usize;
        let name = std::str::from_utf8(bytes.get(32..32 + length)?).ok()?;
        let is_one =
            crate::names::check(name).is_ok() && (1..=THREADS_MAX).contains(&(slot as usize));
        is_one.then(|| Self { uuid: part(bytes, 0), name: name.to_owned(), slot })
    }

    /// Finds the log; `None` if its segment is gone.
    fn find(&self, home: &Home) -> Result<Option<Log>, Error> {
        let path = home.directory.path_of(&self.name)?;
        let opened = match home.directory.open(&path) {
            Ok(file) => Some(Source::Opened(file)),
            Err(Error::NotFound { .. } | Error::Corrupted { .. }) => None,
            Err(Error::AccessDenied { owner, user, .. }) if owner != user => None,
            Err(error) => return Err(error),
        };
        let log = |source| Log { source, slot: table::slot(self.slot as usize - 1) };
        if let Some(log) = opened.map(log)
            && log.source.uuid()? == self.uuid
        {
            return Ok(Some(log));
        }
        // Its name is gone or another's, but this process may still use it.
        let is_it =
            |mapping: &Mapping| mapping.is_shared() && mapping.read::<16>(UUID) == Ok(self.uuid);
        let mapped = addresses::held().find_by(is_it);
        Ok(mapped.map(|mapping| log(Source::Mapped(mapping))))
    }
}

/// The `N` bytes from `start`.
fn part<const N: usize>(bytes: &[u8], start: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[start + index])
}

/// A segment that is looked at.
enum Source {
    Opened(File),
    Mapped(Arc<Mapping>),
}

impl Source {
    fn uuid(&self) -> Result<[u8; 16], Error> {
        self.read(UUID)
    }

    /// `N` bytes at `offset`, zeros behind the end.
    fn read<const N: usize>(&self, offset: usize) -> Result<[u8; N], Error> {
        match self {
            Self::Opened(file) => read_at(file, offset),
            Self::Mapped(mapping) => mapping.read(offset),
        }
    }

    /// How long the segment is.
    fn bytes(&self) -> Result<u64, Error> {
        let file = match self {
            Self::Opened(file) => file,
            Self::Mapped(mapping) => return Ok(mapping.reserved_bytes() as u64),
        };
        let found = rustix::fs::fstat(file);
        let found = found.map_err(|errno| Error::system("look at another space", None, errno))?;
        Ok(u64::try_from(found.st_size).unwrap_or(0))
    }
}

/// `N` bytes of a file at `offset`, zeros behind its end.
fn read_at<const N: usize>(file: &File, offset: usize) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let mut read_bytes = 0;
    while read_bytes < N {
        let rest = &mut bytes[read_bytes..];
        let at = (offset + read_bytes) as u64;
        let read = retry_on_intr(|| rustix::io::pread(file, &mut *rest, at));
        match read.map_err(|errno| Error::system("read what another space decided", None, errno))? {
            0 => break,
            count => read_bytes += count,
        }
    }
    Ok(bytes)
}

/// The log in a thread slot, by its segment's file. Others may change it meanwhile.
struct Log {
    source: Source,
    /// Offset of the slot.
    slot: usize,
}

impl Log {
    fn word(&self, at: usize) -> Result<u32, Error> {
        Ok(u32::from_ne_bytes(self.source.read(self.slot + at)?))
    }

    /// Entry number `index`, whether it counts or not.
    fn entry(&self, index: u32) -> Result<[u8; ENTRY_BYTES], Error> {
        let offset = if index < INLINE_ENTRIES {
            self.slot + ENTRIES + index as usize * ENTRY_BYTES
        } else {
            let run = self.word(RUN)? as usize * GRANULE;
            run + (index - INLINE_ENTRIES) as usize * ENTRY_BYTES
        };
        self.source.read(offset)
    }

    /// The commit that the log notes, and how many others it names: 0 if it does not decide.
    fn commit(&self) -> Result<Option<(u64, u32)>, Error> {
        let Some(start) = self.word(LINK)?.checked_sub(1) else { return Ok(None) };
        let entry = self.entry(start)?;
        Ok(Some((u64::from_ne_bytes(part(&entry, 0)), u32::from_ne_bytes(part(&entry, 8)))))
    }

    /// The note of the log, if it has one.
    fn note(&self) -> Result<Option<Note>, Error> {
        let Some((commit, named)) = self.commit()? else { return Ok(None) };
        let start = self.word(LINK)?;
        let mut peers = Vec::new();
        for number in 0..named.clamp(1, crate::group::GROUP_MAX) {
            let entries = (0..PEER_ENTRIES).map(|part| {
                let index = start.checked_add(number * PEER_ENTRIES + part);
                self.entry(index.ok_or_else(|| Error::corrupted("a log names one beyond its end"))?)
            });
            let bytes = entries.collect::<Result<Vec<_>, _>>()?.concat();
            let peer = Peer::from_bytes(&bytes);
            peers.push(peer.ok_or_else(|| Error::corrupted("a log names one that can not be"))?);
        }
        Ok(Some(Note { commit, decides: named != 0, peers }))
    }

    /// Whether the log decided commit number `commit`, and for it.
    fn has_committed(&self, commit: u64) -> Result<bool, Error> {
        let is_about_it =
            || Ok(self.commit()?.is_some_and(|(number, named)| number == commit && named != 0));
        // Once more afterwards: else the count may be that of a slot that was given away meanwhile.
        Ok(is_about_it()? && self.word(COUNT)? == 0 && is_about_it()?)
    }

    /// Whether nothing that commit number `commit` changed under this log waits for the decision.
    fn is_settled(&self, commit: u64) -> Result<bool, Error> {
        if self.commit()?.is_none_or(|(number, named)| number != commit || named != 0) {
            return Ok(true);
        }
        let (count, run_entries) = (self.word(COUNT)?, self.word(RUN_ENTRIES)?);
        if count > INLINE_ENTRIES.saturating_add(run_entries)
            || u64::from(count) * ENTRY_BYTES as u64 > self.source.bytes()?
        {
            // That space is damaged, and nothing will be settled there: it must not be in the way of this one.
            return Ok(true);
        }
        for index in 0..count {
            let scope = u32::from_ne_bytes(part(&self.entry(index)?, 12));
            if scope & RESTORED == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The mapping whose memory begins at `base`.
fn mapping_at(base: *const u8) -> Option<Arc<Mapping>> {
    addresses::held().find_by(|mapping| mapping.base().cast_const() == base)
}

/// Whether the log of another segment committed the entries of the log in slot number `number`. Its thread is dead.
pub(crate) fn is_committed_elsewhere(view: &View<'_>, number: u32) -> Result<bool, Error> {
    let Some(mapping) = mapping_at(view.base()) else { return Ok(false) };
    let slot = table::slot(number as usize - 1);
    let log = Log { source: Source::Mapped(Arc::clone(&mapping)), slot };
    let (Some(home), Some(note)) = (mapping.home(), log.note()?) else { return Ok(false) };
    // The deciding log has nothing to ask: its entries count, so they are not committed.
    let [decider] = &note.peers[..] else { return Ok(false) };
    if note.decides {
        return Ok(false);
    }
    decider.find(home)?.map_or(Ok(false), |log| log.has_committed(note.commit))
}

impl Memory {
    /// Whether the dead thread of `slot` has committed changes of other segments that were not settled there
    /// yet: until then the slot must stay as it is.
    ///
    /// # Errors
    ///
    /// The system's error if one of the other segments cannot be looked at.
    pub fn still_decides(&self, slot: Slot<'_>) -> Result<bool, Error> {
        if slot.load(LINK) == 0 || slot.load(COUNT) != 0 {
            return Ok(false);
        }
        let view = self.view();
        let Some(mapping) = mapping_at(view.base()) else { return Ok(false) };
        let log = Log { source: Source::Mapped(Arc::clone(&mapping)), slot: view.offset_of(slot) };
        let (Some(home), Some(note)) = (mapping.home(), log.note()?) else { return Ok(false) };
        if !note.decides {
            return Ok(false);
        }
        for peer in &note.peers {
            let log = peer.find(home)?;
            if !log.map_or(Ok(true), |log| log.is_settled(note.commit))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
