//! What is in a space: figures for people and programs.

use tupelo_shm::ParticipantInfo;
use tupelo_tuple::Kind;

use crate::Engine;
use crate::arena;
use crate::error::Error;
use crate::index;
use crate::layout::EXTENT_BYTES;
use crate::registry;
use crate::stripe::{self, LIVE, NEXT_SEQUENCE, Stripe, TAKES, WAITING};
use crate::waiters::chain;

/// Figures of a space. Each is right at some moment of the call; together they belong to no one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Tuples in the space.
    pub tuples: u64,
    /// Bytes of the arena that belong to shapes.
    pub bytes_used: u64,
    /// Bytes of memory that the arena has.
    pub bytes_committed: u64,
    /// Bytes that the arena may have.
    pub bytes_max: u64,
    /// Blocked callers.
    pub waiters: u64,
    /// Living processes that use the space.
    pub pids: Vec<u32>,
    /// Dead ones that nobody has cleaned up after yet.
    pub pids_dead: Vec<u32>,
    /// One entry per shape, in the order of their first use.
    pub shapes: Vec<ShapeStat>,
}

/// Figures of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeStat {
    /// The kinds of the fields.
    pub kinds: Vec<Kind>,
    /// Tuples of this shape.
    pub count: u64,
    /// Bytes of memory that its tuples and indexes have.
    pub bytes: u64,
    /// Blocked callers whose template selects this shape alone.
    pub waiting: u64,
    /// Tuples put so far.
    pub puts: u64,
    /// Tuples taken so far.
    pub takes: u64,
    /// The fields of each learned index.
    pub indexes: Vec<Vec<usize>>,
}

impl Engine {
    /// What is in the space.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`] if the space is damaged.
    pub fn stat(&self) -> Result<Stat, Error> {
        let view = self.memory.view();
        let line = arena::line(&view);
        let committed = line.load(arena::COMMITTED);
        let bytes = |extents: u32| u64::from(extents) * EXTENT_BYTES as u64;
        let mut bytes_by_owner = std::collections::HashMap::<u32, u64>::new();
        let mut extent = 0;
        while extent < committed.min(self.layout.extents_max) {
            let (owner, extents) = arena::owner(&view, &self.layout, extent).unwrap_or((0, 1));
            *bytes_by_owner.entry(owner).or_default() += bytes(extents);
            extent += extents.max(1);
        }
        let shape = |number| {
            let bytes = bytes_by_owner.get(&stripe::scope_of(number)).copied().unwrap_or(0);
            self.shape_stat(number, bytes)
        };
        let shapes: Vec<ShapeStat> = (0..registry::count(&view)).filter_map(shape).collect();
        let (alive, dead): (Vec<_>, Vec<_>) =
            self.memory.participants().into_iter().partition(|one| one.alive);
        if view.violated() {
            return Err(tupelo_shm::Error::corrupted("the tables contradict each other").into());
        }
        Ok(Stat {
            tuples: shapes.iter().map(|shape| shape.count).sum(),
            bytes_used: bytes(committed.saturating_sub(line.load(arena::FREE))),
            bytes_committed: bytes(committed),
            bytes_max: bytes(self.layout.extents_max),
            waiters: u64::from(chain::wide_counts(&view).0)
                + shapes.iter().map(|shape| shape.waiting).sum::<u64>(),
            pids: pids(&alive),
            pids_dead: pids(&dead),
            shapes,
        })
    }

    fn shape_stat(&self, number: u32, bytes: u64) -> Option<ShapeStat> {
        let view = self.memory.view();
        let kinds = registry::kinds_of(&view, number)?;
        let stripe = Stripe::of_shape(&view, number);
        let fields = |index: index::Index<'_>| {
            let mask = index.words.load(index::MASK);
            (0..32).filter(|field| mask >> field & 1 == 1).collect()
        };
        Some(ShapeStat {
            kinds: kinds.as_slice().to_vec(),
            count: u64::from(stripe.page().load(LIVE)),
            bytes,
            waiting: u64::from(stripe.page().load(WAITING)),
            puts: stripe.page().load64(NEXT_SEQUENCE),
            takes: stripe.page().load64(TAKES),
            indexes: index::ready(stripe).map(fields).collect(),
        })
    }

    /// Kinds of all shapes that have tuples, with their counts: what a template that matched nothing is
    /// compared with.
    ///
    /// # Errors
    ///
    /// As [`Engine::stat`].
    pub fn shapes_present(&self) -> Result<Vec<(Vec<Kind>, u64)>, Error> {
        let stat = self.stat()?;
        let present = stat.shapes.into_iter().filter(|shape| shape.count > 0);
        Ok(present.map(|shape| (shape.kinds, shape.count)).collect())
    }
}

/// The process ids, each once: a process may have registered twice.
fn pids(participants: &[ParticipantInfo]) -> Vec<u32> {
    let mut pids: Vec<u32> = participants.iter().map(|one| one.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}
