//! One commit for sections over several segments, whichever process is killed at whichever moment (rules C1, O7, X1).
//!
//! Each segment has a log of its own, so that a recoverer needs no other segment; but for this moment:
//!
//! ```text
//! link:    the first log notes the others, then each of them notes the first
//! decide:  n = 0 in the first: everything is committed, everywhere
//! finish:  n = 0 in the others, one after the other, and all notes are gone
//! ```
//!
//! | killed | found | result |
//! |---|---|---|
//! | before all are linked | logs with entries, some with notes | each is rolled back: the first has not decided |
//! | before the decision | as above, all with notes | as above |
//! | after it, before a log is finished | its entries, and a note | its recoverer asks the first log: they stay |
//! | while finishing a log | no entries, and a note | nothing to do |
//! | after all are finished | no entries, and a note in the first | nothing to do |
//!
//! What notes are and how a log is asked is in [`crate::link`]. A section over one segment does none of this, and
//! no private memory does: the process that could see it half done dies as a whole. So private memory commits
//! before the decision.

use std::sync::atomic::{Ordering, compiler_fence};

use crate::error::Error;
use crate::link::{Note, Peer};
use crate::log;
use crate::memory::Memory;
use crate::section::Section;
use crate::table;

/// Most segments in one commit (rule B2).
pub const GROUP_MAX: u32 = 16;

/// Makes the changes of all `sections`, each over a memory of its own, final at once, and leaves their scopes
/// locked for more.
///
/// # Errors
///
/// The first section that cannot commit, by its index, and why: as [`Section::commit`], or [`Error::LogFull`] if its
/// log has no room for a note on the others. Nothing is committed then, and the sections can only be dropped.
/// [`Error::LimitExceeded`] for more than [`GROUP_MAX`].
///
/// # Panics
///
/// If shared segments are in different directories, where the recoverers of one would not find the other.
pub fn commit_together(sections: &mut [Section<'_>]) -> Result<(), (usize, Error)> {
    for (index, section) in sections.iter_mut().enumerate() {
        section.check().map_err(|error| (index, error))?;
    }
    let is_shared = |section: &Section<'_>| section.memory().mapping().is_shared();
    let changed: Vec<usize> = (0..sections.len())
        .filter(|index| is_shared(&sections[*index]) && sections[*index].changes() > 0)
        .collect();
    if let [first, others @ ..] = &changed[..]
        && !others.is_empty()
    {
        link(sections, *first, others)?;
    }
    sections.iter_mut().filter(|section| !is_shared(section)).for_each(Section::seal);
    for index in &changed {
        sections[*index].seal();
    }
    // The first one's note goes last: as long as another stands, it may be asked.
    for index in changed.iter().rev() {
        unlink(&sections[*index]);
    }
    Ok(())
}

/// Has the logs name each other: the first one first, so that its slot stays as long as another names it.
fn link(sections: &[Section<'_>], first: usize, others: &[usize]) -> Result<(), (usize, Error)> {
    let count = u32::try_from(others.len()).unwrap_or(u32::MAX);
    if count >= GROUP_MAX {
        let limit = GROUP_MAX as usize;
        return Err((first, Error::LimitExceeded { what: "spaces in one commit", limit }));
    }
    let has_room = |index: usize, peers: u32| {
        let has_room = sections[index].room() >= Note::entries(peers) as usize;
        if has_room { Ok(()) } else { Err((index, Error::LogFull)) }
    };
    has_room(first, count)?;
    others.iter().try_for_each(|index| has_room(*index, 1))?;
    let directory =
        |index: usize| sections[index].memory().mapping().home().map(|home| &home.directory);
    let is_beside = |index: &usize| directory(*index) == directory(first);
    assert!(others.iter().all(is_beside), "one commit over segments of several directories");
    let commit = sections[first].memory().next_group();
    let peers = others.iter().map(|index| Peer::of(&sections[*index])).collect();
    Note { commit, decides: true, peers }.write(&sections[first]);
    compiler_fence(Ordering::SeqCst);
    let peers = vec![Peer::of(&sections[first])];
    let note = Note { commit, decides: false, peers };
    for index in others {
        note.write(&sections[*index]);
    }
    compiler_fence(Ordering::SeqCst);
    Ok(())
}

/// The log of a section names no other any more.
fn unlink(section: &Section<'_>) {
    compiler_fence(Ordering::SeqCst);
    log::set_link(section.thread().slot(), 0);
    compiler_fence(Ordering::SeqCst);
}

impl Memory {
    /// The number of the next commit over several segments that begins in this one. May be skipped.
    fn next_group(&self) -> u64 {
        self.view().span::<8>(table::GROUPS).double(0).fetch_add(1, Ordering::Relaxed) + 1
    }
}
