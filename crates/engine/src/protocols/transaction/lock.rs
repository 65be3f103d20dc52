//! A transaction's lock on a tuple that it has read: others may read the tuple, and not take it (rule X3).
//!
//! The tuple stays in its lists, with a mark that takers pass over, and counts its locks in its extension. Each lock
//! is a block of its own that looks like a record, so that the list of its partition, the timer and the sweep treat it
//! like one: it is found when its transaction's process has died, and ends with the transaction's lease. Its image
//! names the tuple by place and number. A tuple whose own lease ends goes, locked or not: time is no transaction.

use std::collections::HashMap;

use tupelo_shm::{Section, View};

use crate::base::clock;
use crate::base::error::Error;
use crate::index::find::Hit;
use crate::index::links;
use crate::journal;
use crate::protocols::claim::{self, kinds_of, settle};
use crate::protocols::transaction::Term;
use crate::protocols::transaction::hold::{self, Enlisted};
use crate::recovery::{enter, provide};
use crate::store::extension::{self, LOCKS, TRANSACTION, lease_end_ms};
use crate::store::partition::Partition;
use crate::store::record::{
    self, EXTENSION, HEADER_BYTES, HOLDER, Header, IMAGE, IMAGE_BYTES, READ_MARK, Record, SEQUENCE,
    SHAPE, STATE,
};
use crate::store::{Store, blocks, step};
use crate::time::list::{self, List, Place};
use crate::time::wheel;
use crate::waiters::deliver::{self, Delivery};
use crate::waiters::timer_leader;

/// Bytes of a lock's image: the tuple's place (a word of its own), and its number.
const IMAGE_LEN: u32 = 16;
const TUPLE: usize = IMAGE;
const NUMBER: usize = IMAGE + 8;

/// Words that getting a lock changes.
const LOCK_WORDS: usize = 4 * blocks::ALLOCATE_WORDS // two extensions, the lock, and the wheel
    + 4 // two extensions' places, the count, the mark
    + list::LINK_WORDS
    + 3
    + wheel::ARM_WORDS;
const _: () = assert!(LOCK_WORDS <= step::STEP_WORDS);

/// A lock, as its transaction knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lock {
    /// Where the lock is.
    pub(crate) place: Place,
    /// The tuple.
    pub(crate) reference: u32,
    sequence: u64,
}

impl Lock {
    /// What the tuples of a shape are sorted by: the oldest first.
    pub(super) fn age(&self) -> (u32, u64) {
        (self.place.scope, self.sequence)
    }

    /// What it is known by: the place of the tuple.
    pub(super) fn key(&self) -> (u32, u32) {
        (self.place.scope, self.reference)
    }
}

/// The locks of a transaction in one space.
#[derive(Default)]
pub(super) struct Locks(HashMap<(u32, u32), Lock>);

impl Locks {
    /// Notes a lock. Returns the one on a tuple that has gone, and whose place the other one's has taken.
    #[must_use = "it is to be released"]
    pub(super) fn add(&mut self, lock: Lock) -> Option<Lock> {
        self.0.insert(lock.key(), lock)
    }

    pub(super) fn remove(&mut self, lock: &Lock) {
        self.0.remove(&lock.key());
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Lock> {
        self.0.values()
    }

    /// The oldest of each shape first.
    pub(super) fn oldest_first(&self) -> Vec<&Lock> {
        let mut locks: Vec<&Lock> = self.all().collect();
        locks.sort_by_key(|lock| lock.age());
        locks
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lock on this very tuple, if there is one.
    pub(super) fn on(&self, scope: u32, record: Record<'_>) -> Option<&Lock> {
        let lock = self.0.get(&(scope, record.reference))?;
        (lock.sequence == record.header.load64(SEQUENCE)).then_some(lock)
    }
}

/// Locks a record for a transaction.
pub(crate) fn lock<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    term: Term,
) -> Result<Lock, Error> {
    let Record { reference, header } = record;
    let extension = extension::ensure_beyond(section, &store.layout, partition, header)?;
    section.add(extension, LOCKS, 1);
    section.set(header, SHAPE, header.load(SHAPE) | READ_MARK);
    let bytes = HEADER_BYTES + IMAGE_LEN as usize;
    let block = blocks::allocate_beyond(section, &store.layout, partition, bytes)?;
    let lock = record::at(section.view(), block);
    let (shape, _) = record::shape_of(header);
    let sequence = header.load64(SEQUENCE);
    lock.header.init(IMAGE_BYTES, IMAGE_LEN);
    lock.header.init(SHAPE, shape);
    lock.header.init(EXTENSION, 0);
    lock.header.init(HOLDER, 0);
    lock.header.init64(SEQUENCE, 0);
    lock.header.init64(TUPLE, u64::from(reference));
    lock.header.init64(NUMBER, sequence);
    let (fence, extension) =
        claim::hold_until(store, section, partition, lock, List::Locks, term.tenure())?;
    // Means nothing to anybody until the section is over (R2).
    extension.init(TRANSACTION, term.number);
    let place = Place { scope: partition.scope(), reference: block, fence };
    Ok(Lock { place, reference, sequence })
}

/// Ends a lock: whoever waits to take the tuple may have it now. Frees the lock last.
pub(crate) fn unlock<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    lock: Record<'m>,
) -> Result<Delivery, Error> {
    let delivery = take_off(store, section, partition, lock)?;
    links::free_record_at(store, section, partition, lock)?;
    Ok(delivery)
}

/// Takes a lock off its tuple, and leaves the lock's block to the caller, who frees it at the end of the section.
pub(crate) fn take_off<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    lock: Record<'m>,
) -> Result<Delivery, Error> {
    settle::end_hold(store, section, partition, lock, List::Locks)?;
    let Some(record) = locked(store, section.view(), partition, lock) else {
        return Ok(Delivery::default());
    };
    let kinds = kinds_of(store, section.view(), record.header)?;
    if count_down(section, record) != 0 {
        // One whose own lock is the last one left may take it now: it watches.
        return deliver::wake_watchers(
            store,
            section,
            partition,
            record.reference,
            kinds.as_slice(),
        );
    }
    section.set(record.header, SHAPE, record.header.load(SHAPE) & !READ_MARK);
    if clock::is_past(lease_end_ms(section.view(), record)) {
        // It is there no more (rule L1), and goes when somebody next enters its partition on time.
        return Ok(Delivery::default());
    }
    deliver::offer(store, section, partition, record.reference, kinds.as_slice())
}

/// Frees the block of a lock that was taken off its tuple.
pub(crate) fn free_lock(
    store: &Store,
    section: &mut Section<'_>,
    place: Place,
) -> Result<(), Error> {
    step::begin(section)?;
    section.focus(place.scope);
    let partition = Partition::of_scope(section.view(), place.scope);
    links::free_record(store, section, partition, place.reference)
}

/// The tuple that a lock is on; `None` if its lease has ended, or was cancelled.
pub(crate) fn locked<'m>(
    store: &Store,
    view: &View<'m>,
    partition: Partition<'m>,
    lock: Record<'m>,
) -> Option<Record<'m>> {
    let reference = u32::try_from(lock.header.load64(TUPLE)).ok()?;
    if !blocks::begins_at(view, &store.layout, partition, reference) {
        return None;
    }
    let block = blocks::start(view, reference);
    let is_it =
        block.load(STATE) == record::LIVE && block.load64(SEQUENCE) == lock.header.load64(NUMBER);
    is_it.then(|| record::at(view, reference))
}

/// Ends the lock at `place`, if it stands still.
pub(crate) fn release_lock(store: &Store, place: Place) -> Result<(), Error> {
    timer_leader::catch_up_for_multi_shape(store)?;
    let delivery = provide::retry(store, || {
        let mut section = enter::enter(store, place.scope)?;
        let partition = Partition::of_scope(section.view(), place.scope);
        let delivery = match settle::held_at(store, section.view(), place, List::Locks) {
            Some((lock, fence)) if fence == place.fence => {
                unlock(store, &mut section, partition, lock)?
            }
            _ => Delivery::default(),
        };
        journal::finish(store, section)?;
        Ok(delivery)
    })?;
    delivery.wake(store);
    Ok(())
}

/// Lets takers of this section see the records on which `locks` are the only ones. Returns those of which this is
/// so; [`hide_again`] ends it.
pub(crate) fn show_own<'l, 'm>(
    store: &Store,
    section: &mut Section<'m>,
    locks: impl Iterator<Item = &'l Lock>,
) -> Result<Vec<&'l Lock>, Error> {
    let mut shown = Vec::new();
    for lock in locks {
        step::begin(section)?;
        section.focus(lock.place.scope);
        let Some(record) = only_locked(store, section.view(), lock) else { continue };
        section.set(record.header, SHAPE, record.header.load(SHAPE) & !READ_MARK);
        shown.push(lock);
    }
    Ok(shown)
}

/// The tuple that an own lock is on, if it is the only one there.
pub(crate) fn only_locked<'m>(store: &Store, view: &View<'m>, lock: &Lock) -> Option<Record<'m>> {
    let record = own_locked(store, view, lock)?;
    let extension = extension::of(view, record.header)?;
    (extension.load(LOCKS) == 1).then_some(record)
}

/// Takes a record with an own lock, the only one, for its transaction: nobody else is offered it. Leaves the lock's
/// block to the caller, who frees it at the end of the section.
pub(crate) fn take_locked<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    lock: &Lock,
    record: Record<'m>,
    term: Term,
) -> Result<Enlisted, Error> {
    let block = record::at(section.view(), lock.place.reference);
    settle::end_hold(store, section, partition, block, List::Locks)?;
    count_down(section, record);
    section.set(record.header, SHAPE, record.header.load(SHAPE) & !READ_MARK);
    step::begin(section)?;
    let taken = hold::enlist(store, section, partition, Hit { record, place: None }, term)?;
    Ok(Enlisted { was_locked: true, ..taken })
}

/// Hides them from takers again, but for those that were taken.
pub(crate) fn hide_again(
    store: &Store,
    section: &mut Section<'_>,
    shown: &[&Lock],
) -> Result<(), Error> {
    for lock in shown {
        step::begin(section)?;
        section.focus(lock.place.scope);
        if let Some(record) = own_locked(store, section.view(), lock) {
            section.set(record.header, SHAPE, record.header.load(SHAPE) | READ_MARK);
        }
    }
    Ok(())
}

/// The tuple that an own lock is on, if both are there.
fn own_locked<'m>(store: &Store, view: &View<'m>, lock: &Lock) -> Option<Record<'m>> {
    let (block, fence) = settle::held_at(store, view, lock.place, List::Locks)?;
    let partition = Partition::of_scope(view, lock.place.scope);
    if fence == lock.place.fence { locked(store, view, partition, block) } else { None }
}

/// The number of the tuple that a lock is on: how old it is.
pub(crate) fn sequence_of_tuple(lock: Header<'_>) -> u64 {
    lock.load64(NUMBER)
}

/// One lock less on a record. Returns how many are left.
fn count_down<'m>(section: &mut Section<'m>, record: Record<'m>) -> u32 {
    let Some(extension) = extension::of(section.view(), record.header) else {
        // A locked record without the words for it.
        section.view().violate();
        return 0;
    };
    let left = extension.load(LOCKS).saturating_sub(1);
    section.set(extension, LOCKS, left);
    left
}
