//! Who reads a journal: one at a time, and if it is killed there, the next one goes on from what was released last.

use std::num::NonZeroU32;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tupelo_shm::{Section, futex};

use crate::base::error::Error;
use crate::base::layout::head;
use crate::journal::record;
use crate::journal::ring::Ring;
use crate::store::change::{Change, JournalStat};
use crate::store::journal::{self, BATCHES, BEGIN, RELEASES};
use crate::store::{self, Store};

/// Longest sleep of who waits for what it can not be told of: that the one who drains has died.
const SLICE: Duration = Duration::from_millis(20);

/// The right to drain the journal of a space, as long as it is not dropped. If its thread dies, the next one gets it.
pub struct Drain<'e> {
    store: &'e Store,
    /// Until it is dropped.
    right: Option<Section<'e>>,
}

/// As [`crate::Engine::try_drain`] says.
pub(crate) fn try_drain(store: &Store) -> Result<Option<Drain<'_>>, Error> {
    if !store.journal.is_on() {
        return Ok(None);
    }
    let right = Section::try_enter(&store.memory, head::DRAIN_SCOPE)?;
    Ok(right.map(|right| Drain { store, right: Some(right) }))
}

/// As [`crate::Engine::try_drain_if_free`] says.
pub(crate) fn try_drain_if_free(store: &Store) -> Result<Option<Drain<'_>>, Error> {
    if !store.journal.is_on() {
        return Ok(None);
    }
    let right = Section::try_enter_if_free(&store.memory, head::DRAIN_SCOPE)?;
    Ok(right.map(|right| Drain { store, right: Some(right) }))
}

impl Drain<'_> {
    /// Where the journals end of which these are the rights, of what is committed, at one moment. A step over several of the spaces is
    /// before the ends in all of them, or in none.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn ends(all: &[&Self]) -> Result<Vec<u64>, Error> {
        let mut stores: Vec<(usize, &Store)> =
            all.iter().map(|drain| drain.store).enumerate().collect();
        // In the order in which a commit over several spaces locks them.
        stores.sort_by_key(|(_, store)| store.segment.identity().uuid);
        let mut sections = Vec::with_capacity(stores.len());
        let mut ends = vec![0; stores.len()];
        for (index, store) in stores {
            let section = Section::enter(&store.memory, head::JOURNAL_SCOPE)?;
            ends[index] = Ring::of(store, section.view()).end();
            sections.push(section);
        }
        sections.into_iter().try_for_each(Section::finish)?;
        Ok(ends)
    }

    /// As [`Drain::each`], up to an end that [`Drain::ends`] has named.
    ///
    /// # Errors
    ///
    /// As [`Drain::each`].
    pub fn each_before<E: From<Error>>(
        &self,
        end: u64,
        visit: impl FnMut(u64, Change<'_>) -> Result<(), E>,
    ) -> Result<u64, E> {
        self.each_within(end, u64::MAX, visit)
    }

    /// Tells `visit` of all changes that are not released, up to a moment of this call: the position of the record that
    /// each stands in, and the change. Changes of one record follow each other, and happened at one moment. Releases nothing: what was
    /// visited is visited again by whoever drains next, until it is released. Not more records than have `bytes_max`
    /// bytes in the ring, but one at least. Returns the position of the last one; without any, what was released last.
    ///
    /// No lock is held meanwhile that operations need. The space must not be used by this thread inside of `visit`.
    ///
    /// # Errors
    ///
    /// What the memory says, and what `visit` says.
    pub fn each<E: From<Error>>(
        &self,
        bytes_max: u64,
        visit: impl FnMut(u64, Change<'_>) -> Result<(), E>,
    ) -> Result<u64, E> {
        self.each_within(certain_end(self.store)?, bytes_max, visit)
    }

    fn each_within<E: From<Error>>(
        &self,
        end: u64,
        bytes_max: u64,
        mut visit: impl FnMut(u64, Change<'_>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let view = self.store.memory.view();
        let ring = Ring::of(self.store, &view);
        let begin = ring.begin();
        let mut at = begin;
        let mut bytes = Vec::new();
        while at < end && (at == begin || at - begin < bytes_max) {
            let mut first = [0; 8];
            ring.read(&view, at, &mut first);
            let length = record::bytes_of(first).filter(|length| *length <= end - at);
            let length = length.ok_or_else(|| {
                store::damaged(self.store, "a record of the journal is longer than the journal")
            })?;
            bytes.resize(usize::try_from(length).unwrap_or(0), 0);
            ring.read(&view, at, &mut bytes);
            at += length;
            record::read(self.store, &view, &bytes, |change| visit(at, change))?;
        }
        Ok(at)
    }

    /// Frees the ring up to `position`, which [`Drain::each`] has named, and wakes who waits for that: what was visited is kept
    /// elsewhere. Nothing happens if it was released already.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] for a position that is not there yet.
    pub fn release(&self, position: u64) -> Result<(), Error> {
        let view = self.store.memory.view();
        let ring = Ring::of(self.store, &view);
        if position <= ring.begin() {
            return Ok(());
        }
        let end = certain_end(self.store)?;
        if position > end {
            let limit = usize::try_from(end).unwrap_or(usize::MAX);
            return Err(Error::LimitExceeded {
                what: "bytes of the journal can be released",
                limit,
            });
        }
        let line = journal::line(&view);
        let covered = covered_by(ring.begin(), position);
        // Release pairs with the Acquire of who appends: what it overwrites was read before.
        line.double(BEGIN).store(position, Ordering::Release);
        // Relaxed: a figure, which orders nothing.
        line.double(BATCHES).fetch_add(1, Ordering::Relaxed);
        // Before the wake, so that a thread that finds the old number sleeps and is woken, or does not sleep.
        let releases = line.word(RELEASES);
        releases.fetch_add(1, Ordering::Release);
        futex::wake_of(releases, u32::MAX, covered);
        Ok(())
    }
}

impl Drop for Drain<'_> {
    /// Gives up the right, and then wakes one of those whose records came too late: it drains next. If that one is stopped, the time of
    /// another one ends.
    fn drop(&mut self) {
        drop(self.right.take());
        let view = self.store.memory.view();
        let releases = journal::line(&view).word(RELEASES);
        releases.fetch_add(1, Ordering::Release);
        futex::wake(releases, 1);
    }
}

/// Who waits for a position sleeps with one bit, by where that is: a release wakes those that it covers, and not all. Measured with 64
/// threads, each of which waits for the disk at each put: 45 000 puts per second, and 22 700 if a release wakes all.
const BIT_BYTES: u64 = 512;

/// The bit of who waits for a position; all of them for the end of time, as of who waits for the right.
fn bit_of(position: u64) -> NonZeroU32 {
    if position == u64::MAX {
        return NonZeroU32::MAX;
    }
    covered_by(position.saturating_sub(1), position)
}

/// The bits of all positions behind the first one, up to the second.
fn covered_by(behind: u64, up_to: u64) -> NonZeroU32 {
    let (first, last) = ((behind + 1) / BIT_BYTES, up_to / BIT_BYTES);
    let bits = (first..=last).take(32).fold(0, |bits, at| bits | 1 << (at % 32));
    NonZeroU32::new(bits).unwrap_or(NonZeroU32::MAX)
}

/// Where the ring ends, of what is committed.
fn certain_end(store: &Store) -> Result<u64, Error> {
    let section = Section::enter(&store.memory, head::JOURNAL_SCOPE)?;
    let end = Ring::of(store, section.view()).end();
    section.finish()?;
    Ok(end)
}

/// As [`crate::Engine::releases`] says.
pub(crate) fn releases(store: &Store) -> u32 {
    // Acquire pairs with the Release before a wake.
    journal::line(&store.memory.view()).word(RELEASES).load(Ordering::Acquire)
}

/// As [`crate::Engine::wait_drained`] says.
pub(crate) fn wait_drained(store: &Store, position: u64, before: u32, until: Instant) -> bool {
    let view = store.memory.view();
    let (ring, line) = (Ring::of(store, &view), journal::line(&view));
    loop {
        // Acquire pairs with the Release before a wake.
        let releases = line.word(RELEASES).load(Ordering::Acquire);
        if ring.begin() >= position {
            return true;
        }
        // The right may be free again.
        if releases != before {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        futex::wait_of(line.word(RELEASES), releases, left.min(SLICE), bit_of(position));
    }
}

/// As [`crate::Engine::journal_stat`] says.
pub(crate) fn stat(store: &Store) -> Option<JournalStat> {
    if !store.journal.is_on() {
        return None;
    }
    let view = store.memory.view();
    let ring = Ring::of(store, &view);
    // In this order: it never seems to have released more than there is.
    let drained = ring.begin();
    Some(JournalStat {
        appended: ring.end().max(drained),
        drained,
        bytes: store.layout.journal_bytes as u64,
        batches: journal::line(&view).double(BATCHES).load(Ordering::Relaxed),
    })
}

/// Has room made for so many bytes, by what [`crate::Engine::set_drainer`] was given.
///
/// # Errors
///
/// [`Error::JournalFull`] if nobody drains; what that says.
pub(crate) fn make_room(store: &Store, bytes: u64) -> Result<(), Error> {
    let full = || -> Error {
        let journal_bytes = store.layout.journal_bytes as u64;
        Error::JournalFull { bytes, journal_bytes }
    };
    if Ring::of(store, &store.memory.view()).is_free(bytes) {
        return Ok(());
    }
    store.journal.drainer.get().ok_or_else(full)?(bytes)
}

#[cfg(test)]
mod tests {
    use super::{BIT_BYTES, bit_of, covered_by};

    #[test]
    fn a_release_wakes_whom_it_covers_and_none_of_those_that_come_soon_after() {
        for (behind, up_to) in [(0, 8), (0, 5_000), (4_088, 4_104), (70_000, 74_000)] {
            let covered = covered_by(behind, up_to).get();
            for position in (behind + 8..=up_to).step_by(8) {
                assert_ne!(covered & bit_of(position).get(), 0, "{behind} {position} {up_to}");
            }
            // Those in the same piece as the last one are woken, too.
            for position in (up_to + BIT_BYTES..up_to + 8 * BIT_BYTES).step_by(8) {
                assert_eq!(covered & bit_of(position).get(), 0, "{behind} {position} {up_to}");
            }
        }
        assert_eq!(covered_by(0, 1 << 30).get(), u32::MAX);
        assert_eq!(bit_of(u64::MAX).get(), u32::MAX);
    }
}
