//! The memory of a space: partitions and their records, shapes, the blocks and extents that they are made of.
//!
//! [`Store`] is what the functions of all layers work on. What a space does is not in it: that is in the layers above,
//! as functions that are given one.

pub(crate) mod arena;
pub(crate) mod blocks;
pub(crate) mod cached_node;
pub(crate) mod callbacks;
pub(crate) mod change;
pub(crate) mod changes;
pub(crate) mod classes;
pub(crate) mod count;
pub(crate) mod extension;
pub(crate) mod fullness;
pub(crate) mod history;
pub(crate) mod in_flight;
pub(crate) mod incoming;
pub(crate) mod journal;
pub(crate) mod key;
pub(crate) mod keys;
pub(crate) mod left;
pub(crate) mod multi_shape;
pub(crate) mod partition;
pub(crate) mod record;
pub(crate) mod registry;
pub(crate) mod sizes;
pub(crate) mod slab;
pub(crate) mod sparse;
pub(crate) mod stamps;
pub(crate) mod step;

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use tupelo_shm::{Memory, Segment, Span, View};
use tupelo_tuple::{Order, WhenFull, hash};

use crate::base::error::Error;
use crate::base::layout::{Layout, head};
use crate::store::cached_node::CachedNode;
use crate::store::callbacks::Callbacks;
use crate::store::classes::Classes;
use crate::store::journal::Journal;
use crate::store::keys::Keys;
use crate::store::left::Abandoned;
use crate::store::registry::ShapeCache;

/// Words of the head's line for the space.
pub(crate) type SpaceLine<'m> = Span<'m, 64>;
/// Extents that the arena may have; set at creation.
pub(crate) const EXTENTS_MAX: usize = 0;
/// When the next sweep is due, in coarse monotonic milliseconds modulo 2^32.
pub(crate) const NEXT_SWEEP_MS: usize = 4;
/// The ticket of the next waiter (two words).
const NEXT_TICKET: usize = 8;
/// Tuples that the space may hold (two words); 0: as many as fit. Set at creation.
pub(crate) const TUPLES_MAX: usize = 16;
/// The last number that was given to a claim or a lease (two words).
pub(crate) const NEXT_FENCE: usize = 24;
/// What becomes of a put for which there is no room. Set at creation.
pub(crate) const WHEN_FULL: usize = 32;
/// How often a condition could not be told of a tuple (two words). Statistics.
pub(crate) const WHERE_ERRORS: usize = 40;
/// Tuples that were dropped for others (two words). Statistics.
pub(crate) const DROPPED: usize = 48;

/// One space in use: its memory, and what this process keeps of it.
pub struct Store {
    pub(crate) memory: Memory,
    pub(crate) layout: Layout,
    /// Tuples that the space may hold; 0: as many as fit.
    pub(crate) tuples_max: u64,
    /// Whether a put of a small tuple has nothing to see to but its partition: no limit of tuples, no journal, and no keys
    /// of requests.
    pub(crate) is_plain: bool,
    /// Whether somebody is told of puts: a journal, or who keeps the keys of requests.
    pub(crate) notes_puts: bool,
    /// Who is told of changes.
    pub(crate) journal: Journal,
    /// Who keeps the keys of requests.
    pub(crate) keys: Keys,
    /// What becomes of a put for which there is no room.
    pub(crate) when_full: WhenFull,
    pub(crate) seed: u64,
    pub(crate) shape_cache: ShapeCache,
    pub(crate) cached_node: CachedNode,
    pub(crate) abandoned: Abandoned,
    pub(crate) classes: Classes,
    pub(crate) random: AtomicU64,
    pub(crate) segment: Segment,
    /// What this layer asks higher ones to do.
    pub(crate) callbacks: &'static Callbacks,
    /// What errors call the space.
    pub(crate) name: String,
}

/// The engine over one segment, shared by the threads of a process.
// In this layer it is only what keeps a [`Store`]: claims, waiters and the like hold one. Its verbs are in [`crate::face`].
pub struct Engine {
    pub(crate) store: Store,
}

impl Deref for Engine {
    type Target = Store;

    #[inline(always)]
    fn deref(&self) -> &Store {
        &self.store
    }
}

/// An error if damage was found, or the space was removed. For who finds nothing: there is nothing to be found then.
#[cold]
pub(crate) fn require_sound(store: &Store) -> Result<(), Error> {
    Ok(store.memory.require_sound()?)
}

/// The error of a space that contradicts itself, which every later operation on it ends with, too (C5).
#[cold]
pub(crate) fn damaged(store: &Store, what: &'static str) -> Error {
    // One that was removed meanwhile shows nothing, which is no contradiction.
    if let Err(error) = require_sound(store) {
        return error;
    }
    store.memory.poison();
    tupelo_shm::Error::corrupted(what).into()
}

/// The next number in the order of waiters' arrival. A number may be skipped.
pub(crate) fn next_ticket(store: &Store) -> u64 {
    space_line(&store.memory.view()).double(NEXT_TICKET).fetch_add(1, Ordering::Relaxed)
}

/// A number from this process's own stream (splitmix64); for `order="random"`, not for secrets.
pub(crate) fn random(store: &Store) -> u64 {
    let state = store.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    hash::fold(state ^ 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb)
}

/// The random number that a search in `order` needs, which is as a rule none.
#[inline]
pub(crate) fn random_for(store: &Store, order: Order) -> u64 {
    if order == Order::Random { random(store) } else { 0 }
}

pub(crate) fn space_line<'m>(view: &View<'m>) -> SpaceLine<'m> {
    view.span(head::SPACE)
}
