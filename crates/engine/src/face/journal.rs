//! The journal of a space: what a durable space is built upon (rule C4).

use std::time::Instant;

use tupelo_shm::Directory;
use tupelo_tuple::{TupleRef, TupleView};

use crate::Engine;
use crate::base::error::Error;
use crate::base::layout::{self, Layout};
use crate::face::extents_for;
use crate::inspect::kept;
use crate::journal;
use crate::journal::drain::{self, Drain};
use crate::protocols::restore;
use crate::recovery::full::Limits;
use crate::store::change::{JournalStat, Kept};
use crate::store::journal as words;

/// Bytes of a ring for so many: whole pages, and not fewer nor more than there can be.
fn ring_bytes(journal_bytes: u64) -> usize {
    let bytes = journal_bytes.clamp(words::JOURNAL_BYTES_MIN, words::JOURNAL_BYTES_MAX);
    usize::try_from(bytes).unwrap_or(usize::MAX).next_multiple_of(layout::PAGE)
}

impl Engine {
    /// The address space that a space of up to `size_bytes` needs that has a journal of `journal_bytes`.
    pub fn reserve_bytes_journalled(size_bytes: u64, journal_bytes: u64) -> usize {
        Layout::new(extents_for(size_bytes), ring_bytes(journal_bytes)).reserve_bytes()
    }

    /// As [`Engine::initialise`], for a space with a journal whose ring has `journal_bytes`: 1 MiB at least, 1 GiB at
    /// most. All of the ring's memory is had at once. The segment has
    /// [as many bytes](Engine::reserve_bytes_journalled) of addresses.
    ///
    /// # Errors
    ///
    /// As [`Engine::initialise`].
    pub fn initialise_journalled(
        mapping: &tupelo_shm::Mapping,
        limits: &Limits,
        journal_bytes: u64,
    ) -> Result<(), tupelo_shm::Error> {
        Self::initialise_with(mapping, limits, ring_bytes(journal_bytes))
    }

    /// Up to which position segment `name` has appended to its journal, also if another build has made it. `None` if it has
    /// no journal that makes sense.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn journal_end_of(
        directory: &Directory,
        name: &str,
    ) -> Result<Option<u64>, tupelo_shm::Error> {
        words::end_of(directory, name)
    }

    /// Whether the space tells a journal of its changes.
    pub fn is_journalled(&self) -> bool {
        self.store.journal.is_on()
    }

    /// How far the journal is; `None` if there is none.
    pub fn journal_stat(&self) -> Option<JournalStat> {
        drain::stat(self)
    }

    /// Where the record of the last change stands that the calling thread has made in this space, after which it is
    /// [drained](Engine::wait_drained); 0 if it has made none. An operation that changes nothing leaves it as it is. What
    /// was due and happened on the way is among the changes of the thread that came by.
    pub fn journal_position(&self) -> u64 {
        journal::of_this_thread(self)
    }

    /// The right to read the journal, and to free what was read; `None` if a thread has it that lives, or if there is no
    /// journal. Does not wait. Of a thread that dies with it, the next one gets it; it goes on from what was released last.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn try_drain(&self) -> Result<Option<Drain<'_>>, Error> {
        drain::try_drain(self)
    }

    /// As [`Engine::try_drain`], but `None` also if a thread was killed that had the right: costs no look whether it lives. For a caller
    /// that asks often, and at times by [`Engine::try_drain`].
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn try_drain_if_free(&self) -> Result<Option<Drain<'_>>, Error> {
        drain::try_drain_if_free(self)
    }

    /// A number that changes with each release of the journal, and each time that the right to drain is given up. A thread
    /// reads it before it asks for the right: then it sleeps through no such change.
    pub fn releases(&self) -> u32 {
        drain::releases(self)
    }

    /// Waits until the journal was released up to `position`. Returns whether it was. Ends without that at the given moment,
    /// and as soon as [`Engine::releases`] is another number than `before`: the right to drain may be free. If the thread
    /// that drains may have died, another one has to try: this does not drain.
    pub fn wait_drained(&self, position: u64, before: u32, until: Instant) -> bool {
        drain::wait_drained(self, position, before, until)
    }

    /// Says what an operation of this process does that finds the ring full. It calls `drainer`, outside of all locks,
    /// with the number of bytes that must be free. The function returns when some bytes were released, by it or by
    /// another drain, and the operation tries again. An error of `drainer` is the error of the operation, which has
    /// done nothing then. Only the first call counts: returns whether this is the first.
    pub fn set_drainer(
        &self,
        drainer: impl Fn(u64) -> Result<(), Error> + Send + Sync + 'static,
    ) -> bool {
        self.store.journal.drainer.set(Box::new(drainer)).is_ok()
    }

    /// Puts a tuple into a new journalled space that was in another one before, as the same tuple. It keeps its id, its
    /// terms by the wall clock, and what is known of attempts at it. The journal is not told. Returns `false`, and
    /// nothing is put, if its lease has ended by now.
    ///
    /// Before anybody else uses the space, in ascending order of ids; [`Engine::restored`] comes last. If this process dies
    /// before that, or an error comes, the space is only good to be removed.
    ///
    /// # Errors
    ///
    /// As [`Engine::put`].
    pub fn restore<'f>(&self, kept: &Kept, tuple: impl Into<TupleRef<'f>>) -> Result<bool, Error> {
        restore::restore(self, kept, tuple.into())
    }

    /// Says that all tuples were restored. The next tuple gets an id that is not less than `next_id`, nor than any
    /// restored id. The next claim or lease gets a number (a fence, rule K3) larger than `last_fence`.
    pub fn restored(&self, next_id: u64, last_fence: u64) {
        restore::restored(self, next_id, last_fence);
    }

    /// Shows `visit` every tuple that is there at one moment, wherever it is: also in somebody's hands, dead, or not visible
    /// yet; shape by shape, in ascending order of ids. Nobody can change the space meanwhile.
    ///
    /// # Errors
    ///
    /// What the memory says, and what `visit` says.
    pub fn each_kept<E: From<Error>>(
        &self,
        visit: impl FnMut(Kept, TupleView<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        kept::each_kept(self, visit)
    }

    /// The ids and fences that the next tuple and the next claim will have at least, for [`Engine::restored`] of a later
    /// generation.
    pub fn next_numbers(&self) -> (u64, u64) {
        restore::next_numbers(self)
    }
}
