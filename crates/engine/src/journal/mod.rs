//! The journal of a space (rule C4): a ring in its segment. A section that adds or removes tuples appends a record of
//! its changes to the ring, before the one store that commits both.
//!
//! Whoever commits such a section does so by [`commit`], [`finish`] or [`commit_together`]: the one place that tells of
//! changes. What they are was noted where it happened ([`crate::store::changes`]). The lock of the ring is the last of
//! all, and is held until the section is over, so the records stand in the order of commits.
//!
//! The bytes of a record are stored without the log behind the end of the ring, where they mean nothing (rule R2); where the
//! end is, is logged. So they are there if and only if the section has committed, whoever is killed when.
//!
//! Parts: where in the ring something goes ([`ring`]), what a record looks like ([`record`]), who reads it ([`drain`]).

pub(crate) mod drain;
mod position;
pub(crate) mod record;
mod ring;

use std::collections::BTreeSet;

use tupelo_shm::{Note, Section, View};

use crate::base::error::{Error, Need};
use crate::base::layout::head;
use crate::journal::ring::Ring;
use crate::store::Store;
use crate::store::changes::Kind;
use crate::store::keys::{self, RequestKey};

pub(crate) use position::of_this_thread;

/// Words that appending changes: where the ring ends.
const APPEND_WORDS: usize = 2;

/// Makes the changes of a section final, and tells the journal of them. The section goes on.
///
/// # Errors
///
/// As [`Section::commit`]; [`Need::JournalRoom`] if the ring is full, and [`Error::LimitExceeded`] if the record is larger
/// than it: nothing has changed then, if the section is dropped.
#[inline(always)]
pub(crate) fn commit(store: &Store, section: &mut Section<'_>) -> Result<(), Error> {
    if store.notes_puts && section.has_notes() {
        return commit_noted(store, section, false);
    }
    Ok(section.commit()?)
}

/// As [`commit`], and then the section is over.
///
/// # Errors
///
/// As [`commit`].
#[inline(always)]
pub(crate) fn finish(store: &Store, section: Section<'_>) -> Result<(), Error> {
    if store.notes_puts {
        return finish_noted(store, section);
    }
    Ok(section.finish()?)
}

/// As [`finish`], where somebody is told. By value: the section is in a register, and has no address.
#[cold]
#[inline(never)]
fn finish_noted(store: &Store, mut section: Section<'_>) -> Result<(), Error> {
    commit(store, &mut section)?;
    Ok(section.finish()?)
}

/// As [`commit`], of a take of one tuple in a journalled space that has [looked](has_room_for_take) in this section: there is room
/// for its record.
///
/// # Errors
///
/// As [`Section::commit`].
pub(crate) fn commit_take(store: &Store, section: &mut Section<'_>) -> Result<(), Error> {
    if section.has_notes() { commit_noted(store, section, true) } else { Ok(section.commit()?) }
}

/// As [`commit`], of sections over several spaces, the one of `stores[i]` being number `i`. An error comes with the number of
/// the space that it concerns.
///
/// # Errors
///
/// As [`commit`] and [`tupelo_shm::commit_together`].
pub(crate) fn commit_together(
    stores: &[&Store],
    sections: &mut [Section<'_>],
) -> Result<(), (usize, Error)> {
    let is_told =
        |store: &Store, section: &Section<'_>| store.journal.is_on() && section.has_notes();
    let told = stores.iter().zip(&*sections).filter(|(store, section)| is_told(store, section));
    let told: Vec<u128> = told.map(|(store, _)| number_of(store)).collect();
    let mut positions = Vec::new();
    for (index, (store, section)) in stores.iter().zip(&mut *sections).enumerate() {
        if !is_told(store, section) {
            forget(section);
            continue;
        }
        let others = told.iter().copied().filter(|number| *number != number_of(store));
        let beside = Beside { shared: &others.collect::<Vec<_>>(), ..Beside::default() };
        let position = append(store, section, beside).map_err(|error| (index, error))?;
        positions.push((*store, position));
    }
    tupelo_shm::commit_together(sections).map_err(|(index, error)| (index, error.into()))?;
    for (store, position) in positions {
        position::note(store, position);
    }
    Ok(())
}

/// The number of the segment of a space, which no other has.
pub(crate) fn number_of(store: &Store) -> u128 {
    u128::from_be_bytes(store.segment.identity().uuid)
}

/// What a record has beside the changes of its section.
#[derive(Clone, Copy, Default)]
struct Beside<'a> {
    answered: Option<RequestKey>,
    shared: &'a [u128],
    /// Whether it is of a take that has looked for room.
    has_looked: bool,
}

#[cold]
#[inline(never)]
fn commit_noted(store: &Store, section: &mut Section<'_>, has_looked: bool) -> Result<(), Error> {
    let had_lock = section.holds(head::JOURNAL_SCOPE);
    let answered = note_key(store, section)?;
    let position = if store.journal.is_on() {
        Some(append(store, section, Beside { answered, has_looked, shared: &[] })?)
    } else {
        None
    };
    forget(section);
    section.commit()?;
    // What follows in the section may need locks that come before these.
    if position.is_some() && !had_lock {
        section.leave_last();
    }
    if answered.is_some() {
        section.leave_last();
        keys::end();
    }
    if let Some(position) = position {
        position::note(store, position);
    }
    Ok(())
}

/// Notes what the request is answered for which this thread works, if the section puts something. Returns it if so, and the lock of
/// the keys is held.
fn note_key(store: &Store, section: &mut Section<'_>) -> Result<Option<RequestKey>, Error> {
    let Some(request) = keys::put_under_way().filter(|_| store.keys.is_on()) else {
        return Ok(None);
    };
    if !section.notes().iter().any(|note| note.kind == Kind::Put.number()) {
        return Ok(None);
    }
    keys::append(&store.keys, section, (request, None))?;
    Ok(Some(request))
}

/// Appends what is noted, and what is to stand beside it. Returns where the ring ends then, if the section commits.
fn append(store: &Store, section: &mut Section<'_>, beside: Beside<'_>) -> Result<u64, Error> {
    let Beside { answered, shared, has_looked } = beside;
    if section.room() < APPEND_WORDS {
        return Err(Need::Log.into());
    }
    let mut notes = section.take_notes();
    leave_out_gone(&mut notes);
    let told = record::Told { notes: &notes, answered, shared };
    let size = record::Size::of(section.view(), told, has_looked);
    Ring::of(store, section.view()).require_fits(size)?;
    let focused = section.focused();
    if section.holds(head::JOURNAL_SCOPE) {
        section.focus(head::JOURNAL_SCOPE);
    } else {
        section.enter_also(head::JOURNAL_SCOPE)?;
    }
    let ring = Ring::of(store, section.view());
    ring.require_room(size)?;
    record::write(section.view(), ring, told, size);
    let end = ring.end() + size.bytes;
    ring::set_end(section, end);
    section.focus(focused);
    section.reuse_notes(notes);
    Ok(end)
}

/// Whether the ring has what it says, under all locks but those of the journal.
pub(crate) fn is_sound(store: &Store, view: &View<'_>) -> bool {
    !store.journal.is_on() || Ring::of(store, view).is_sound()
}

/// Leaves out what is noted of the lease and the attempts of tuples that are gone in the same section: their records may be
/// anything by now.
fn leave_out_gone(notes: &mut Vec<Note>) {
    let is = |note: &Note, kind: Kind| note.kind == kind.number();
    let tells = |note: &Note| is(note, Kind::Attempts) || is(note, Kind::Lease);
    if !notes.iter().any(tells) || !notes.iter().any(|note| is(note, Kind::Taken)) {
        return;
    }
    let gone = notes.iter().filter(|note| is(note, Kind::Taken)).map(|note| note.number);
    let gone: BTreeSet<u64> = gone.collect();
    notes.retain(|note| !tells(note) || !gone.contains(&note.number));
}

/// Forgets what a section has noted: the tuple comes from where the journal is kept.
pub(crate) fn forget(section: &mut Section<'_>) {
    let notes = section.take_notes();
    section.reuse_notes(notes);
}

/// Whether a take of one tuple will find room for its record. If this was true when each take looked, there is room for
/// all of them: the part of the ring that puts leave to others is enough for a take of every thread that there can be.
#[inline]
pub(crate) fn has_room_for_take(store: &Store, view: &View<'_>) -> bool {
    !store.journal.is_on() || Ring::of(store, view).has_room_for_take()
}
