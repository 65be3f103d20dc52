//! The engine as others see it: how a space is made and attached to, and its verbs, each a function of a lower layer.

mod holding;
mod journal;
mod keys;
mod looking;
mod many;
mod single;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tupelo_shm::{HowRemoved, Memory, Segment};
use tupelo_tuple::hash;

use crate::base::error::Error;
use crate::base::layout::{self, EXTENT_BYTES, Layout, PAGE, PARTITION_BYTES};
use crate::protocols::{due, holders_gone};
use crate::recovery::full::{Limits, WhenFull};
use crate::recovery::sweep;
use crate::store::cached_node::CachedNode;
use crate::store::callbacks::Callbacks;
use crate::store::classes::Classes;
use crate::store::journal::Journal;
use crate::store::keys::Keys;
use crate::store::left::Abandoned;
use crate::store::registry::ShapeCache;
use crate::store::{self, EXTENTS_MAX, Engine, Store, TUPLES_MAX, WHEN_FULL, record, space_line};
use crate::waiters::{nodes, timer_leader};

/// How large a new space may grow, and how it is found.
pub use tupelo_shm::CreateOptions;

/// Smallest arena: one chunk.
const ARENA_BYTES_MIN: u64 = 2 << 20;

/// Who does what the store asks for.
const CALLBACKS: Callbacks = Callbacks {
    catch_up: due::catch_up,
    notify_leader: timer_leader::notify_leader,
    free_holds_of: holders_gone::free_holds_of,
};

impl Engine {
    /// What strangers must know of this build's layout: any difference in it is another format.
    pub fn segment_layout() -> tupelo_shm::Layout {
        let sizes =
            [PARTITION_BYTES as u64, record::HEADER_BYTES as u64, EXTENT_BYTES as u64, FORMAT];
        tupelo_shm::Layout {
            minor: 0,
            abi_hash: sizes.into_iter().fold(0, hash::combine),
            features_incompatible: 0,
            features_compatible: 0,
        }
    }

    /// What a space for `size_bytes` is made for: so much can be had, and not a little less.
    pub fn rounded_size_bytes(size_bytes: u64) -> u64 {
        u64::from(layout_for(size_bytes).extents_max) * EXTENT_BYTES as u64
    }

    /// The address space that a space of up to `size_bytes` needs.
    pub fn reserve_bytes(size_bytes: u64) -> usize {
        layout_for(size_bytes).reserve_bytes()
    }

    /// Fills a new segment.
    ///
    /// # Errors
    ///
    /// [`tupelo_shm::Error::Full`] if the first pages cannot be had.
    pub fn initialise(
        mapping: &tupelo_shm::Mapping,
        limits: &Limits,
    ) -> Result<(), tupelo_shm::Error> {
        Self::initialise_with(mapping, limits, 0)
    }

    /// As [`Engine::initialise`], with a journal of so many bytes; 0 for none.
    fn initialise_with(
        mapping: &tupelo_shm::Mapping,
        limits: &Limits,
        journal_bytes: usize,
    ) -> Result<(), tupelo_shm::Error> {
        let layout = Layout::new(extents_for(limits.size_bytes), journal_bytes);
        let view = Memory::initialise(mapping, layout.arena, layout::INITIAL_BYTES)?;
        // Places to wait at, for the first who wait when the system gives no more memory.
        mapping.commit(layout::node(0)..layout::node(0) + PAGE)?;
        mapping.commit(layout::raised(0)..layout::raised(0) + layout::RAISED_BYTES)?;
        if journal_bytes != 0 {
            mapping.commit(layout.journal..layout.journal + layout.journal_bytes)?;
            store::journal::line(&view).init64(store::journal::BYTES, journal_bytes as u64);
            store::journal::set_next_id(store::journal::line(&view), 1);
        }
        space_line(&view).init(EXTENTS_MAX, layout.extents_max);
        space_line(&view).init64(TUPLES_MAX, limits.tuples_max.unwrap_or(0));
        space_line(&view).init(WHEN_FULL, limits.when_full.number());
        Ok(())
    }

    /// The engine over a segment that [`Engine::initialise`] filled.
    ///
    /// # Errors
    ///
    /// [`tupelo_shm::Error::Corrupted`] if the sizes in it contradict each other; [`tupelo_shm::Error::Removed`] if it was
    /// removed since it was attached to.
    pub fn new(segment: Segment) -> Result<Self, Error> {
        let memory = Memory::new(Arc::clone(segment.mapping()));
        memory.require_sound()?;
        let journal_bytes = store::journal::line(&memory.view()).load64(store::journal::BYTES);
        if journal_bytes > store::journal::JOURNAL_BYTES_MAX {
            let what = "the journal is larger than it can be";
            return Err(tupelo_shm::Error::corrupted(what).into());
        }
        let extents_max = space_line(&memory.view()).load(EXTENTS_MAX);
        let layout = Layout::new(extents_max, usize::try_from(journal_bytes).unwrap_or(0));
        if layout.reserve_bytes() > segment.mapping().reserved_bytes() {
            let what = "the arena is larger than the segment";
            return Err(tupelo_shm::Error::corrupted(what).into());
        }
        let seed = segment.identity().hash_seed;
        let random = AtomicU64::new(seed ^ u64::from(std::process::id()));
        let tuples_max = space_line(&memory.view()).load64(TUPLES_MAX);
        let Some(when_full) = WhenFull::of_number(space_line(&memory.view()).load(WHEN_FULL))
        else {
            let what = "no such policy for a full space";
            return Err(tupelo_shm::Error::corrupted(what).into());
        };
        let store = Store {
            memory,
            layout,
            tuples_max,
            is_plain: tuples_max == 0 && journal_bytes == 0,
            notes_puts: journal_bytes != 0,
            journal: Journal::new(journal_bytes),
            keys: Keys::default(),
            when_full,
            seed,
            shape_cache: ShapeCache::new(),
            cached_node: CachedNode::default(),
            abandoned: Abandoned::default(),
            classes: Classes::default(),
            random,
            segment,
            callbacks: &CALLBACKS,
            name: "the space".into(),
        };
        store.memory.watch(store.segment.created().then_some(layout.arena));
        let engine = Self { store };
        sweep::sweep_at_attach(&engine)?;
        Ok(engine)
    }

    /// The same engine, whose errors call the space `name`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.store.name = name.into();
        self
    }

    /// Tells every process attached that the space was removed: every later call in it ends with
    /// [`tupelo_shm::Error::Removed`].
    pub fn retire(&self, how: HowRemoved) {
        self.store.memory.retire(how);
    }

    /// Refuses if nothing of the space can be had any more: it was removed, or damage was found in it. It is one load.
    ///
    /// # Errors
    ///
    /// [`tupelo_shm::Error::Removed`], [`tupelo_shm::Error::Corrupted`].
    pub fn require_sound(&self) -> Result<(), Error> {
        store::require_sound(&self.store)
    }

    /// Whether [`Engine::require_sound`] refuses.
    pub fn is_over(&self) -> bool {
        self.require_sound().is_err()
    }

    /// The segment behind.
    pub fn segment(&self) -> &Segment {
        &self.store.segment
    }
}

/// Distinguishes layouts whose sizes happen to agree. Counted up with every change of the format.
const FORMAT: u64 = 30;

fn layout_for(size_bytes: u64) -> Layout {
    Layout::new(extents_for(size_bytes), 0)
}

/// Extents of a space of so many bytes.
fn extents_for(size_bytes: u64) -> u32 {
    let extents = size_bytes.max(ARENA_BYTES_MIN).div_ceil(EXTENT_BYTES as u64);
    u32::try_from(extents).unwrap_or(u32::MAX >> 12)
}

impl Drop for Engine {
    fn drop(&mut self) {
        nodes::free_cached(self);
    }
}
