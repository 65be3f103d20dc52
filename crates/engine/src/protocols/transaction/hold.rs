//! What a transaction has taken: in no list that a search goes through, until it commits, gives it back, or its lease
//! ends (rules X3, X5).

use tupelo_shm::Section;
use tupelo_tuple::Kind;

use crate::base::clock;
use crate::base::error::Error;
use crate::index::find::Hit;
use crate::index::links;
use crate::journal;
use crate::operations::targets::TupleBuffer;
use crate::protocols::claim::{self, kinds_of, settle};
use crate::protocols::holders_gone::Gone;
use crate::protocols::transaction::Term;
use crate::protocols::transaction::lock::{self, Lock};
use crate::recovery::{enter, held, provide};
use crate::store::extension::{TRANSACTION, lease_end_ms};
use crate::store::partition::{HELD, Partition};
use crate::store::record::{self, Record, SEQUENCE};
use crate::store::{Store, step};
use crate::time::list::{List, Place};
use crate::time::wheel;
use crate::waiters::deliver::{self, Delivery};
use crate::waiters::events::{EventKind, Happening};
use crate::waiters::timer_leader;

/// A tuple that a transaction has taken, as the transaction knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    pub(crate) place: Place,
    sequence: u64,
}

impl Hold {
    /// What the tuples of a shape are sorted by: the oldest first.
    pub(super) fn age(&self) -> (u32, u64) {
        (self.place.scope, self.sequence)
    }
}

/// A tuple that was taken for a transaction, and is not yet noted as held by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enlisted {
    pub(super) hold: Hold,
    /// Whether the transaction had a lock on it before: who gives it back gives that back, too.
    pub(super) was_locked: bool,
}

/// Takes what was found out of its lists, for a transaction.
pub(crate) fn enlist<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    hit: Hit<'m>,
    term: Term,
) -> Result<Enlisted, Error> {
    section.add(partition.page(), HELD, 1);
    links::unlink_found(section, partition, hit);
    enlist_held(store, section, partition, hit.record, term)
}

/// As [`enlist`], for a record that is in no list, and counted as held.
pub(crate) fn enlist_held<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    term: Term,
) -> Result<Enlisted, Error> {
    let (fence, extension) =
        claim::hold_until(store, section, partition, record, List::Enlisted, term.tenure())?;
    // Means nothing to anybody until the section is over (R2).
    extension.init(TRANSACTION, term.number);
    let place = Place { scope: partition.scope(), reference: record.reference, fence };
    let hold = Hold { place, sequence: record.header.load64(SEQUENCE) };
    Ok(Enlisted { hold, was_locked: false })
}

/// Copies a large tuple that was taken, without the lock. Returns whether it still is then; else it was lost before all
/// of it was copied.
#[cold]
pub(crate) fn copy_enlisted(
    store: &Store,
    Hold { place, .. }: Hold,
    copy: &mut TupleBuffer,
) -> Result<bool, Error> {
    let view = store.memory.view();
    let record = record::at(&view, place.reference);
    let is_copied = claim::fill_held(store, &view, record, copy);
    let section = Section::enter(&store.memory, place.scope)?;
    let is_held = is_held(store, &section, place, List::Enlisted);
    if is_held && !is_copied {
        // It says so if there is none.
        kinds_of(store, section.view(), record.header)?;
    }
    journal::finish(store, section)?;
    Ok(is_held)
}

/// Whether `place` is still its holder's.
pub(crate) fn is_held(store: &Store, section: &Section<'_>, place: Place, list: List) -> bool {
    let held = settle::held_at(store, section.view(), place, list);
    held.is_some_and(|(_, fence)| fence == place.fence)
}

/// Gives back what a transaction has taken, as if it had never been (rule X5). What is heard of it is said by the
/// caller.
pub(crate) fn delist<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    happening: Happening,
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    settle::end_hold(store, section, partition, record, List::Enlisted)?;
    held::give_back(store, section, partition, (record.reference, happening), kinds)
}

/// Gives back what is at `place`, if it is still its holder's.
pub(crate) fn release_hold(store: &Store, place: Place, happening: Happening) -> Result<(), Error> {
    timer_leader::catch_up_for_multi_shape(store)?;
    let delivery = provide::retry(store, || {
        let mut section = enter::enter(store, place.scope)?;
        let partition = Partition::of_scope(section.view(), place.scope);
        let delivery = match settle::held_at(store, section.view(), place, List::Enlisted) {
            Some((record, fence)) if fence == place.fence => {
                let kinds = kinds_of(store, section.view(), record.header)?;
                delist(store, &mut section, partition, record, happening, kinds.as_slice())?
            }
            _ => Delivery::default(),
        };
        journal::finish(store, section)?;
        Ok(delivery)
    })?;
    delivery.wake(store);
    Ok(())
}

/// Gives back what is at `place`, if it is still its holder's, who has read it before: nobody takes it until the
/// holder's lease ends (rule X3). Returns the lock; `None` if there is nothing to lock any more.
pub(crate) fn release_to_lock(
    store: &Store,
    place: Place,
    term: Term,
) -> Result<Option<Lock>, Error> {
    timer_leader::catch_up_for_multi_shape(store)?;
    let (delivery, lock) = provide::retry(store, || {
        let mut section = enter::enter(store, place.scope)?;
        let partition = Partition::of_scope(section.view(), place.scope);
        let released = match settle::held_at(store, section.view(), place, List::Enlisted) {
            Some((record, fence)) if fence == place.fence => {
                delist_locked(store, &mut section, partition, record, term)?
            }
            _ => (Delivery::default(), None),
        };
        journal::finish(store, section)?;
        Ok(released)
    })?;
    delivery.wake(store);
    Ok(lock)
}

/// As [`delist`], with a lock on it from the first moment.
fn delist_locked<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    term: Term,
) -> Result<(Delivery, Option<Lock>), Error> {
    let kinds = kinds_of(store, section.view(), record.header)?;
    if clock::is_past(lease_end_ms(section.view(), record)) {
        let back = Happening::Unpublished;
        let delivery = delist(store, section, partition, record, back, kinds.as_slice())?;
        return Ok((delivery, None));
    }
    settle::end_hold(store, section, partition, record, List::Enlisted)?;
    section.add(partition.page(), HELD, -1);
    let shown = deliver::show(store, section, partition, record.reference, kinds.as_slice())?;
    links::link_back(store, section, partition, record.reference, kinds.as_slice())?;
    wheel::arm_lease(store, section, partition, record)?;
    step::begin(section)?;
    let lock = lock::lock(store, section, partition, record, term)?;
    Ok((shown, Some(lock)))
}

/// Gives back what the transactions of a holder that is gone held in the partition of `scope`: what they took, and locks
/// (rules X5, L5).
pub(crate) fn free_enlisted_of(store: &Store, gone: Gone, scope: u32) -> Result<(), Error> {
    for lost in settle::lost_by(store, gone, scope, &[List::Enlisted, List::Locks])? {
        settle::lose_one(store, lost, |section, partition, record| {
            let_go_of(store, section, partition, record, lost.list)
        })?;
    }
    Ok(())
}

/// Gives back what a transaction held that has ended without a word of its owner: what it took, or a lock.
pub(crate) fn let_go_of<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    list: List,
) -> Result<Delivery, Error> {
    if list == List::Locks {
        return lock::unlock(store, section, partition, record);
    }
    let kinds = kinds_of(store, section.view(), record.header)?;
    let happening = EventKind::Return.into();
    delist(store, section, partition, record, happening, kinds.as_slice())
}
