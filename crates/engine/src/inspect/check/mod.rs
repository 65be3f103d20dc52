//! A full check of a space: whether everything in it agrees with everything else (rules C1, C5).
//!
//! For tests, which run it after every kill: it is compiled with the feature `full-check` alone.
//! It holds every lock of the space meanwhile, so others wait; it changes nothing, except that locking
//! undoes what dead processes left half done. What the dead left *between* two steps (a tuple in their
//! hands, a place in the wait queue) is no contradiction: the sweep returns it.
//!
//! The parts: who owns each extent and block ([`memory`]), the records and their order ([`records`]), the indexes
//! ([`indexes`]), the waiters ([`waiting`]), the subscriptions ([`events`]), and the timers ([`timers`]).

mod events;
mod indexes;
mod locks;
mod memory;
mod records;
mod timers;
mod waiting;

use memory::Blocks;
use tupelo_shm::View;
use tupelo_tuple::Shape;

use crate::base::error::Error;
use crate::base::layout::SHAPES_MAX;
use crate::inspect::lock_everything;
use crate::journal;
use crate::store::Store;
use crate::store::partition::{self, Partition};
use crate::store::registry::{self, Kinds};

/// What a sound space holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The shapes, in the order of their first use.
    pub shapes: Vec<ShapeReport>,
    /// Callers in the wait queue, those who were served but have not picked up yet not counted.
    pub waiters: u64,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Extents of 64 KiB that are in use, or a part of which is.
    pub extents_owned: u64,
    /// Extents that are free.
    pub extents_free: u64,
}

/// What a sound space holds of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeReport {
    /// The shape itself.
    pub shape: Shape,
    /// Tuples that can be found.
    pub tuples: u64,
    /// Tuples in somebody's hands: handed to a waiter, being taken, or claimed.
    pub held: u64,
    /// Tuples whose last attempt has failed.
    pub dead: u64,
    /// Callers in the wait queue whose template selects this shape alone.
    pub waiting: u64,
    /// Indexes that are ready, over how many fields each.
    pub indexes: Vec<u32>,
}

impl Report {
    /// Tuples that can be found, of all shapes.
    pub fn tuples(&self) -> u64 {
        self.shapes.iter().map(|shape| shape.tuples).sum()
    }

    /// Tuples in somebody's hands, of all shapes.
    pub fn held(&self) -> u64 {
        self.shapes.iter().map(|shape| shape.held).sum()
    }
}

/// A space of which the checker holds all locks.
struct Check<'c, 'm> {
    engine: &'m Store,
    view: &'c View<'m>,
    shapes: u32,
}

/// As [`crate::Engine::check`] says.
pub(crate) fn check(store: &Store) -> Result<Report, Error> {
    let section = lock_everything(store)?;
    let view = section.view();
    let check = Check { engine: store, view, shapes: registry::count(view) };
    let report = check.run();
    // An offset that leads nowhere contradicts everything found by it, so it is told first.
    require(!view.violated(), || "a reference leads out of the segment".into())?;
    report
}

impl Check<'_, '_> {
    fn run(&self) -> Result<Report, Error> {
        self.check_registry()?;
        require(journal::is_sound(self.engine, self.view), || {
            "the ring of the journal begins behind its end, or is longer than its memory".into()
        })?;
        let mut blocks = Blocks::survey(self)?;
        let held = self.check_held(&mut blocks)?;
        let filed = self.check_nodes()?;
        self.claim_templates(&mut blocks)?;
        self.check_events(&mut blocks)?;
        let (mut shapes, mut subscriptions) = (Vec::new(), 0);
        for shape in 0..self.shapes {
            let kinds = self.kinds(shape)?;
            let partition = Partition::of_shape(self.view, shape);
            let records = self.check_records(&mut blocks, shape, &kinds)?;
            let indexes = self.check_indexes(&mut blocks, shape, &kinds, &records)?;
            let in_hands = held.get(&shape).copied().unwrap_or_default();
            let dead = self.check_timers(&mut blocks, shape, &kinds, (&records, in_hands))?;
            let waiting = self.check_waiting(&mut blocks, shape, &filed)?;
            subscriptions += u64::from(waiting.subscribed);
            let counted = partition.page().load(partition::HELD);
            require(in_hands.records == counted, || {
                let named = in_hands.records;
                format!("shape {shape} counts {counted} tuples in hands, but {named} are named")
            })?;
            shapes.push(ShapeReport {
                shape: kinds.to_shape(),
                tuples: records.len() as u64,
                held: u64::from(in_hands.records),
                dead,
                waiting: u64::from(waiting.waiting()),
                indexes,
            });
        }
        self.check_spares(&mut blocks)?;
        let multi_shape = self.check_multi_shape(&filed)?;
        blocks.check_all_claimed()?;
        let waiters = shapes.iter().map(|shape| shape.waiting).sum::<u64>()
            + u64::from(multi_shape.waiting());
        subscriptions += u64::from(multi_shape.subscribed);
        let (extents_owned, extents_free) = blocks.extents();
        Ok(Report { shapes, waiters, subscriptions, extents_owned, extents_free })
    }

    fn kinds(&self, shape: u32) -> Result<Kinds, Error> {
        let kinds = registry::kinds_of(self.engine, self.view, shape);
        kinds.ok_or_else(|| {
            contradiction(format!("shape {shape} has kinds that do not exist, or no class"))
        })
    }

    /// Every shape is found by its kinds, and nothing else is. The last one may not be yet: a process was
    /// killed while it added it.
    fn check_registry(&self) -> Result<(), Error> {
        for shape in 0..self.shapes {
            let found = registry::listed_as(self.engine, self.view, &self.kinds(shape)?);
            let unfinished = found.is_none() && shape + 1 == self.shapes;
            require(found == Some(shape) || unfinished, || {
                format!("shape {shape} of {} is found as {found:?}", self.shapes)
            })?;
        }
        let listed = registry::listed(self.view);
        require(listed <= self.shapes && listed + 1 >= self.shapes, || {
            format!("{listed} shapes are listed, {} exist", self.shapes)
        })?;
        require(self.shapes as usize <= SHAPES_MAX, || "there are too many shapes".into())
    }
}

/// The error of two things that contradict each other.
fn contradiction(what: String) -> Error {
    tupelo_shm::Error::corrupted(what).into()
}

/// An error unless `holds`.
fn require(holds: bool, what: impl FnOnce() -> String) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(contradiction(what())) }
}
