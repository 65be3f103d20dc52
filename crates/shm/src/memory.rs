//! A segment in use: its mapping, and the right of this process's threads to work in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::access::{GRANULE, View};
use crate::clock;
use crate::deaths::Deaths;
use crate::error::Error;
use crate::liveness;
use crate::mapping::Mapping;
use crate::process;
use crate::removal::{self, HowRemoved};
use crate::table::{COMMITTED, ENGINE_BASE, PARTICIPANTS_MAX, THREADS_MAX};
use crate::thread::{self, Thread};

/// Shared (or private) memory with participants, thread slots, locks and logs.
pub struct Memory {
    mapping: Arc<Mapping>,
    /// How far views reach, as this handle last looked.
    known_bytes: AtomicUsize,
    /// This process's number among the participants + 1, below the fork generation that it belongs to.
    participant: AtomicU64,
    /// Whether a thread of this process found most places taken when it came.
    is_crowded: AtomicBool,
    /// When this handle was made, as forks are counted.
    fork_generation: u32,
    deaths: Deaths,
}

impl Clone for Memory {
    /// Another handle of the same memory, by the same process.
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.mapping))
    }
}

impl Memory {
    /// Memory over a mapping whose fixed part is initialised.
    ///
    /// # Panics
    ///
    /// If the mapping is too short to have one.
    pub fn new(mapping: Arc<Mapping>) -> Self {
        assert!(mapping.reserved_bytes() >= ENGINE_BASE, "a mapping without a fixed part");
        clock::learn();
        let memory = Self {
            mapping,
            known_bytes: AtomicUsize::new(thread::fixed_bytes()),
            participant: AtomicU64::new(0),
            is_crowded: AtomicBool::new(false),
            fork_generation: process::fork_generation(),
            deaths: Deaths::default(),
        };
        let _ = memory.view();
        memory
    }

    /// Prepares a new segment: the fixed part and the first `engine_bytes` of the engine's part exist, and views reach
    /// up to `end`. Returns a view for filling the rest.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if the first pages cannot be had.
    ///
    /// # Panics
    ///
    /// If `end` is not inside the mapping, behind the fixed part.
    pub fn initialise(
        mapping: &Mapping,
        end: usize,
        engine_bytes: usize,
    ) -> Result<View<'_>, Error> {
        let ends = ENGINE_BASE..=mapping.reserved_bytes();
        assert!(
            ends.contains(&end),
            "views reach from {ENGINE_BASE} to the mapping's end, not {end}"
        );
        mapping.commit(0..thread::fixed_bytes())?;
        mapping.commit(ENGINE_BASE..ENGINE_BASE + engine_bytes)?;
        // SAFETY: the pages that are touched now were committed above; nobody else knows the segment.
        let view = unsafe { View::new(mapping.base(), end) };
        view.span::<8>(COMMITTED).init(0, granules(end));
        Ok(view)
    }

    /// Where the engine's part begins.
    pub const fn engine_base() -> usize {
        ENGINE_BASE
    }

    /// Lets tests with the feature `checked` panic at accesses from offset `start` on to blocks that are not in use;
    /// nothing is in use by now. `None` ends that. Without the feature it does nothing.
    pub fn watch(&self, start: Option<usize>) {
        liveness::watch(self.mapping.base(), start);
    }

    /// The address space behind.
    #[inline(always)]
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Whether more than half of the places for processes or threads were taken when a thread of this process came.
    /// Without a sweep the dead would fill them up. Until [`Memory::crowd_is_seen_to`].
    #[inline(always)]
    pub fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
    }

    /// A thread sweeps.
    pub fn crowd_is_seen_to(&self) {
        self.is_crowded.store(false, Ordering::Relaxed);
    }

    /// A thread has come, and has the slot with this index.
    pub(crate) fn note_arrival(&self, index: usize) {
        if 2 * self.participants_count() > PARTICIPANTS_MAX || 2 * (index + 1) > THREADS_MAX {
            self.is_crowded.store(true, Ordering::Relaxed);
        }
    }

    /// A view of the memory that is committed now.
    #[inline(always)]
    pub fn view(&self) -> View<'_> {
        // Relaxed: the thread that stored it had seen the pages behind, and they stay.
        let limit = self.limit(self.known_bytes.load(Ordering::Relaxed));
        // SAFETY: the view borrows this memory, which keeps the mapping; `look` clamps the size.
        unsafe { View::new(self.mapping.base(), limit) }
    }

    /// Whether `view` reaches as far as views made now do.
    #[inline(always)]
    pub(crate) fn sees_all(view: &View<'_>) -> bool {
        // By the view's base, which is at hand where sections begin.
        committed(view.base()) == view.limit()
    }

    /// Lets `view` reach memory that was committed since it was made; none, if damage was found since.
    pub(crate) fn refresh(&self, view: &mut View<'_>) {
        let limit = self.limit(view.limit());
        // SAFETY: as in `view`.
        unsafe { view.reach(limit) };
    }

    /// How far views may reach now, if they reached up to `known` before. By value: what has no address can
    /// stay in registers.
    #[inline(always)]
    fn limit(&self, known: usize) -> usize {
        if self.committed() == known { known } else { self.look() }
    }

    #[cold]
    #[inline(never)]
    fn look(&self) -> usize {
        // Clamped to the memory that is always committed and to the mapping: the word is another process's to write.
        let limit = self.committed().min(self.mapping.reserved_bytes()).max(thread::fixed_bytes());
        self.known_bytes.store(limit, Ordering::Relaxed);
        limit
    }

    /// The bytes that are committed, as the segment says.
    #[inline(always)]
    fn committed(&self) -> usize {
        committed(self.mapping.base())
    }

    /// Lets views reach up to `end`, which the caller has committed. Never lowers the mark, nor lifts that of
    /// a segment in which damage was found.
    pub fn raise_committed(&self, end: usize) {
        let word = self.view().span::<8>(COMMITTED);
        let raise = |old: u32| (old != 0).then(|| old.max(granules(end)));
        // Release pairs with the Acquire in `view`.
        let _ = word.word(0).fetch_update(Ordering::Release, Ordering::Relaxed, raise);
    }

    /// Notes for all processes, for good, that damage was found (rule C5). No view that is made from here on reaches
    /// the engine's data, so every operation ends with an error. Operations on sound segments cost nothing more.
    pub fn poison(&self) {
        self.view().poison();
    }

    /// Tells every process attached, for good, that the segment was removed: every later operation ends with
    /// [`Error::Removed`]. It costs those on segments in use nothing.
    pub fn retire(&self, how: HowRemoved) {
        removal::publish(&self.view(), how);
    }

    /// An error if damage was found in the segment, or if it was removed.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupted`], [`Error::Removed`].
    pub fn require_sound(&self) -> Result<(), Error> {
        if self.committed() == 0 { Err(removal::refusal(&self.view())) } else { Ok(()) }
    }

    /// Whether this is private memory that a fork has copied: what one process stores there, the other never
    /// sees.
    pub(crate) fn is_a_copy(&self, fork_generation: u32) -> bool {
        !self.mapping.is_shared() && self.fork_generation != fork_generation
    }

    /// Closes the descriptors that are kept for later operations. An operation that needs them opens them anew.
    pub fn close_descriptors(&self) {
        self.deaths.close_descriptors();
    }

    /// The other processes, as this one watches them.
    pub(crate) fn deaths(&self) -> &Deaths {
        &self.deaths
    }

    /// This process's number among the participants, if it is known.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are meant")]
    pub(crate) fn known_participant(&self, fork_generation: u32) -> Option<u32> {
        let word = self.participant.load(Ordering::Relaxed);
        ((word >> 32) as u32 == fork_generation)
            .then_some(word as u32)
            .and_then(|word| word.checked_sub(1))
    }

    pub(crate) fn remember_participant(&self, fork_generation: u32, number: u32) {
        let word = u64::from(fork_generation) << 32 | u64::from(number + 1);
        self.participant.store(word, Ordering::Relaxed);
    }

    /// The calling thread's slot in this segment; taken at its first use.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] if 4 096 threads or 1 024 processes use the segment already.
    #[inline(always)]
    pub fn thread(&self) -> Result<Thread<'_>, Error> {
        thread::current(self)
    }
}

fn granules(end: usize) -> u32 {
    u32::try_from(end.div_ceil(GRANULE)).unwrap_or(u32::MAX)
}

/// The bytes that are committed, as the segment at `base` says, the base of a mapping.
#[inline(always)]
fn committed(base: *const u8) -> usize {
    // SAFETY: the fixed part of a mapping is always committed and holds this word.
    let word = unsafe { &*base.wrapping_add(COMMITTED).cast::<AtomicU32>() };
    // Acquire pairs with the Release in `raise_committed`: the pages behind exist.
    word.load(Ordering::Acquire) as usize * GRANULE
}
