//! One space in use: its memory, and how operations get what they find missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tupelo_shm::{Memory, Segment, Span, View};
use tupelo_tuple::hash;

use crate::base::error::Error;
use crate::base::layout::{self, EXTENT_BYTES, Layout, PAGE, STRIPE_BYTES, head};
use crate::index::find::Order;
use crate::recovery::abandoned::Abandoned;
use crate::recovery::full::{Limits, WhenFull};
use crate::store::classes::Classes;
use crate::store::record;
use crate::store::registry::{self, ShapeCache};
use crate::store::stripe::{self, Stripe};
use crate::waiters::cells::SpareCell;

/// How large a new space may grow, and how it is found.
pub use tupelo_shm::CreateOptions;

/// Smallest arena: one chunk.
const ARENA_BYTES_MIN: u64 = 2 << 20;

/// Words of the head's line for the space.
type SpaceLine<'m> = Span<'m, 64>;
/// Extents that the arena may have; set at creation.
const EXTENTS_MAX: usize = 0;
/// When the next sweep is due, in coarse monotonic milliseconds modulo 2^32.
pub(crate) const NEXT_SWEEP_MS: usize = 4;
/// The ticket of the next waiter (two words).
const NEXT_TICKET: usize = 8;
/// Tuples that the space may hold (two words); 0: as many as fit. Set at creation.
const TUPLES_MAX: usize = 16;
/// The last number that was given to a claim or a lease (two words).
pub(crate) const NEXT_FENCE: usize = 24;
/// What becomes of a put for which there is no room. Set at creation.
const WHEN_FULL: usize = 32;
/// How often a condition could not be told of a tuple (two words). Statistics.
pub(crate) const WHERE_ERRORS: usize = 40;
/// Tuples that were dropped for others (two words). Statistics.
pub(crate) const DROPPED: usize = 48;

/// The engine over one segment, shared by the threads of a process.
pub struct Engine {
    pub(crate) memory: Memory,
    pub(crate) layout: Layout,
    /// Tuples that the space may hold; 0: as many as fit.
    pub(crate) tuples_max: u64,
    /// What becomes of a put for which there is no room.
    pub(crate) when_full: WhenFull,
    pub(crate) seed: u64,
    pub(crate) shape_cache: ShapeCache,
    pub(crate) spare_cell: SpareCell,
    pub(crate) abandoned: Abandoned,
    pub(crate) classes: Classes,
    random: AtomicU64,
    segment: Segment,
    /// What errors call the space.
    pub(crate) name: String,
}

impl Engine {
    /// What strangers must know of this build's layout: any difference in it is another format.
    pub fn segment_layout() -> tupelo_shm::Layout {
        let sizes = [STRIPE_BYTES as u64, record::HEADER_BYTES as u64, EXTENT_BYTES as u64, FORMAT];
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
        let layout = layout_for(limits.size_bytes);
        let view = Memory::initialise(mapping, layout.arena, layout::INITIAL_BYTES)?;
        // Places to wait at, for the first who wait when the system gives no more memory.
        mapping.commit(layout::cell(0)..layout::cell(0) + PAGE)?;
        mapping.commit(layout::raised(0)..layout::raised(0) + layout::RAISED_BYTES)?;
        space_line(&view).init(EXTENTS_MAX, layout.extents_max);
        space_line(&view).init64(TUPLES_MAX, limits.tuples_max.unwrap_or(0));
        space_line(&view).init(WHEN_FULL, limits.when_full.number());
        Ok(())
    }

    /// The engine over a segment that [`Engine::initialise`] filled.
    ///
    /// # Errors
    ///
    /// [`tupelo_shm::Error::Corrupted`] if the sizes in it contradict each other.
    pub fn new(segment: Segment) -> Result<Self, Error> {
        let memory = Memory::new(Arc::clone(segment.mapping()));
        let layout = Layout::new(space_line(&memory.view()).load(EXTENTS_MAX));
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
        let engine = Self {
            memory,
            layout,
            tuples_max,
            when_full,
            seed,
            shape_cache: ShapeCache::new(),
            spare_cell: SpareCell::default(),
            abandoned: Abandoned::default(),
            classes: Classes::default(),
            random,
            segment,
            name: "the space".into(),
        };
        engine.memory.watch(engine.segment.created().then_some(layout.arena));
        engine.sweep_at_attach()?;
        Ok(engine)
    }

    /// The same engine, whose errors call the space `name`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The segment behind.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// An error if damage was found. For who finds nothing: in a damaged space there is nothing to be found.
    #[cold]
    pub(crate) fn require_sound(&self) -> Result<(), Error> {
        Ok(self.memory.require_sound()?)
    }

    /// The error of a space that contradicts itself, which every later operation on it ends with, too (C5).
    #[cold]
    pub(crate) fn damaged(&self, what: &'static str) -> Error {
        self.memory.poison();
        tupelo_shm::Error::corrupted(what).into()
    }

    /// The next number in the order of waiters' arrival. A number may be skipped.
    pub(crate) fn next_ticket(&self) -> u64 {
        space_line(&self.memory.view()).double(NEXT_TICKET).fetch_add(1, Ordering::Relaxed)
    }

    /// A number from this process's own stream (splitmix64); for `order="random"`, not for secrets.
    pub(crate) fn random(&self) -> u64 {
        let state = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        hash::fold(state ^ 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb)
    }

    /// The random number that a search in `order` needs, which is as a rule none.
    #[inline]
    pub(crate) fn random_for(&self, order: Order) -> u64 {
        if order == Order::Random { self.random() } else { 0 }
    }
}

/// Distinguishes layouts whose sizes happen to agree. Counted up with every change of the format.
const FORMAT: u64 = 26;

fn layout_for(size_bytes: u64) -> Layout {
    let extents = size_bytes.max(ARENA_BYTES_MIN).div_ceil(EXTENT_BYTES as u64);
    Layout::new(u32::try_from(extents).unwrap_or(u32::MAX >> 12))
}

/// How often the tuples of a shape are counted anew while somebody changes them: for longer than a small section.
const COUNTS_MAX: usize = 200;

/// Tuples in the space: in the lists, held, dead, or not visible yet. As they stand, with what somebody is about to change,
/// or to undo.
pub(crate) fn tuples(view: &View<'_>) -> u64 {
    (0..registry::count(view)).map(|shape| tuples_of(view, shape)).sum()
}

/// As [`tuples`], for who must not be wrong. `None` if somebody is inside of a stripe for longer than a small section.
pub(crate) fn tuples_settled(view: &View<'_>) -> Option<u64> {
    (0..registry::count(view)).map(|shape| tuples_settled_of(view, shape)).sum()
}

/// The tuples of a shape. `None` if somebody is inside of its stripe for longer than a small section: it may be dead, and
/// what it did undone by the next.
pub(crate) fn tuples_settled_of(view: &View<'_>, shape: u32) -> Option<u64> {
    let scope = stripe::scope_of(shape);
    for _ in 0..COUNTS_MAX {
        if let Some(turn) = view.begin_read(scope) {
            let count = tuples_of(view, shape);
            if view.unchanged(scope, turn) {
                return Some(count);
            }
        }
        std::hint::spin_loop();
    }
    None
}

/// The tuples of a shape, as they stand.
pub(crate) fn tuples_of(view: &View<'_>, shape: u32) -> u64 {
    let page = Stripe::of_shape(view, shape).page();
    let counts = [stripe::LIVE, stripe::HELD, stripe::DEAD_COUNT, stripe::DELAYED_COUNT];
    counts.into_iter().map(|count| u64::from(page.load(count))).sum()
}

pub(crate) fn space_line<'m>(view: &View<'m>) -> SpaceLine<'m> {
    view.span(head::SPACE)
}
