//! A segment in use: its mapping, and the right of this process's threads to work in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::access::{GRANULE, View};
use crate::error::Error;
use crate::mapping::Mapping;
use crate::table::{COMMITTED, ENGINE_BASE};
use crate::thread::{self, Thread};

const PAGE_BYTES: usize = 4096;

/// Shared (or private) memory with participants, thread slots, locks and logs.
#[derive(Clone)]
pub struct Memory {
    mapping: Arc<Mapping>,
}

impl Memory {
    /// Memory over a mapping whose fixed part is initialised.
    ///
    /// # Panics
    ///
    /// If the mapping is too short to have one.
    pub fn new(mapping: Arc<Mapping>) -> Self {
        assert!(mapping.reserved_bytes() >= ENGINE_BASE, "a mapping without a fixed part");
        Self { mapping }
    }

    /// Prepares a new segment: the fixed part and the first `engine_bytes` of the engine's part are there,
    /// and views reach up to `end`. Returns a view for filling the rest.
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
        // The last page makes a file as long as views reach; what lies between is sparse.
        mapping.commit(end - PAGE_BYTES..end)?;
        // SAFETY: the pages that are touched now were committed above; nobody else knows the segment.
        let view = unsafe { View::new(mapping.base(), end) };
        view.span::<8>(COMMITTED).init(0, granules(end));
        Ok(view)
    }

    /// Where the engine's part begins.
    pub const fn engine_base() -> usize {
        ENGINE_BASE
    }

    /// The address space behind.
    #[inline(always)]
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// A view of what is committed now.
    #[inline(always)]
    pub fn view(&self) -> View<'_> {
        let base = self.mapping.base();
        // SAFETY: the fixed part is always committed and holds this word.
        let committed = unsafe { &*base.wrapping_add(COMMITTED).cast::<AtomicU32>() };
        // Acquire pairs with the Release in `raise_committed`: the pages behind are there.
        let committed = committed.load(Ordering::Acquire) as usize * GRANULE;
        let limit = committed.min(self.mapping.reserved_bytes()).max(thread::fixed_bytes());
        // SAFETY: mappings are never unmapped while the process lives; the size is clamped to what is
        // always committed and to the mapping, since the word is another process's to write.
        unsafe { View::new(base, limit) }
    }

    /// Lets views reach up to `end`, which the caller has committed. Never lowers the mark.
    pub fn raise_committed(&self, end: usize) {
        let word = self.view().span::<8>(COMMITTED);
        // Release pairs with the Acquire in `view`.
        word.word(0).fetch_max(granules(end), Ordering::Release);
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
