//! What a transaction has done in one space.

use std::sync::Arc;

use tupelo_tuple::{Template, TemplateRef, TupleRef};

use crate::Engine;
use crate::base::error::Error;
use crate::index::find::{Order, Purpose};
use crate::operations::at_match::{self, Clock};
use crate::operations::bulk::{self, Found, Together};
use crate::operations::targets::TupleCopy;
use crate::protocols::transaction::hold::{self, Enlisted, Hold};
use crate::protocols::transaction::lock::{self, Lock, Locks};
use crate::protocols::transaction::write_set::WriteSet;
use crate::protocols::transaction::{Few, Term};
use crate::store::partition::Partition;
use crate::store::{record, step};
use crate::time::list::{List, Place};
use crate::waiters::events::{EventKind, Happening};

/// The part of a transaction that is in one space.
pub(super) struct Part {
    pub(super) engine: Arc<Engine>,
    /// The number of the handle through which it is done.
    pub(super) handle: u32,
    /// What it has taken there.
    pub(super) holds: Few<Hold>,
    /// Its locks on what it has read.
    pub(super) locks: Locks,
    /// What it is going to put.
    pub(super) writes: WriteSet,
    /// What nothing may match when it commits: what it has put for want of a match.
    pub(super) absent: Option<Template>,
}

impl Part {
    pub(super) fn new(engine: Arc<Engine>, handle: u32) -> Self {
        let writes = WriteSet::new(engine.seed);
        Self { engine, handle, holds: Few::new(), locks: Locks::default(), writes, absent: None }
    }

    pub(super) fn takes(&self) -> usize {
        self.holds.len()
    }

    pub(super) fn puts(&self) -> usize {
        self.writes.len()
    }

    /// Where what it has taken is.
    pub(super) fn held(&self) -> impl Iterator<Item = &Place> {
        self.holds.iter().map(|hold| &hold.place)
    }

    /// Adds to `all` what it is going to put, `refs`, checked and with the shapes.
    pub(super) fn incoming<'f>(
        &self,
        refs: &[TupleRef<'f>],
        all: &mut Together<'f>,
    ) -> Result<(), Error> {
        bulk::all_incoming(&self.engine, refs, all)?;
        bulk::set_terms(&self.engine, all, &self.writes.terms());
        for (one, _) in all.iter_mut().take(self.holds.len()) {
            // It comes for one that goes.
            one.takes_room = false;
        }
        Ok(())
    }

    pub(super) fn is_idle(&self) -> bool {
        self.holds.is_empty() && self.locks.is_empty() && self.writes.len() == 0
    }

    /// Gives back what was taken and unlocks what was read; all of it, whatever goes wrong with some. The oldest of each
    /// shape comes first, so that it goes to whoever waits (rule T2).
    pub(super) fn release(&mut self) -> Result<(), Error> {
        self.writes = WriteSet::new(self.engine.seed);
        self.absent = None;
        let holds = std::mem::take(&mut self.holds);
        let locks = std::mem::take(&mut self.locks);
        let held = holds.iter().map(|hold| (hold.age(), (List::Enlisted, hold.place)));
        let locked = locks.all().map(|lock| (lock.age(), (List::Locks, lock.place)));
        let mut all: Vec<_> = held.chain(locked).collect();
        all.sort_by_key(|(age, _)| *age);
        let release = |(_, (list, place))| match list {
            List::Locks => lock::release_lock(&self.engine, place),
            _ => hold::release_hold(&self.engine, place, EventKind::Return.into()),
        };
        let released: Vec<_> = all.into_iter().map(release).collect();
        released.into_iter().collect()
    }

    /// Notes locks that it has got; or ends them again, if what was read was not wanted.
    pub(super) fn keep(&mut self, locks: Vec<Lock>, wanted: bool) -> Result<(), Error> {
        for lock in locks {
            let over = if wanted { self.locks.add(lock) } else { Some(lock) };
            if let Some(lock) = over {
                lock::release_lock(&self.engine, lock.place)?;
            }
        }
        Ok(())
    }

    /// Gives back one that was taken, as it was: with the lock, if there was one.
    pub(super) fn put_back(&mut self, taken: Enlisted, term: Term) -> Result<(), Error> {
        let Enlisted { hold, was_locked } = taken;
        if !was_locked {
            return hold::release_hold(&self.engine, hold.place, Happening::Unpublished);
        }
        if let Some(lock) = hold::release_to_lock(&self.engine, hold.place, term)? {
            let gone = self.locks.add(lock);
            return gone.map_or(Ok(()), |lock| lock::release_lock(&self.engine, lock.place));
        }
        Ok(())
    }

    /// Copies the match that `order` asks for, and locks it, if the transaction has not.
    pub(super) fn read(
        &mut self,
        template: &[TemplateRef<'_>],
        order: Order,
        term: Term,
    ) -> Result<Option<(TupleCopy, Option<Lock>)>, Error> {
        let (engine, locks) = (&self.engine, &self.locks);
        let how = (order, Purpose::Read, Clock::BeforeSearch);
        at_match::at_match(engine, template, how, |section, partition, hit, kinds| {
            let copy = TupleCopy::new(section.view(), hit.record.reference, *kinds);
            let lock = match locks.on(partition.scope(), hit.record) {
                Some(_) => None,
                None => Some(lock::lock(engine, section, partition, hit.record, term)?),
            };
            Ok((copy, lock))
        })
    }

    /// Copies and locks up to `limit` matches of one moment. Returns also the locks that it had not before, which are
    /// not yet noted.
    pub(super) fn read_all(
        &mut self,
        template: &[TemplateRef<'_>],
        limit: usize,
        term: Term,
    ) -> Result<(Vec<TupleCopy>, Vec<Lock>), Error> {
        let (engine, locks) = (&self.engine, &self.locks);
        let done = bulk::at_one_moment(engine, template, Purpose::Read, |section, targets| {
            let (mut copies, mut got) = (Vec::new(), Vec::new());
            let found: Vec<Found<'_>> = bulk::found(engine, section, targets, limit).collect();
            for found in found {
                copies.push(found.copy(section));
                step::begin(section)?;
                let partition = Partition::of_shape(section.view(), found.target.shape);
                section.focus(partition.scope());
                let record = record::at(section.view(), found.reference);
                if locks.on(partition.scope(), record).is_none() {
                    got.push(lock::lock(engine, section, partition, record, term)?);
                }
            }
            Ok((copies, got))
        })?;
        Ok(done.unwrap_or_default())
    }
}
