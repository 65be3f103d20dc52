//! What happens by itself when its time has come (rules L1, L3, L4, K2): a lease ends, a tuple becomes visible, a claim runs out.

use tupelo_shm::{Section, View};

use crate::base::clock::now_ms;
use crate::base::error::Error;
use crate::base::layout::head;
use crate::index::links;
use crate::journal;
use crate::protocols::claim::{self, Failure, dead, outliving, settle};
use crate::protocols::lease;
use crate::protocols::transaction::{hold, lock};
use crate::recovery::handed;
use crate::recovery::provide::{self, Gathering};
use crate::store::extension::{self, Extension, FENCE, HOLD_END_MS, TRANSACTION};
use crate::store::partition::Partition;
use crate::store::record::{self, HOLDER, Header, SEQUENCE, STATE};
use crate::store::{self, Store, registry, step};
use crate::time::list::{self, List, Place};
use crate::time::{holds, wheel};
use crate::waiters::deliver::Delivery;
use crate::waiters::{chain, grants, hand_off};

/// How much later something is tried again that found no room, in milliseconds.
pub(crate) const POSTPONED_MS: u64 = 100;

/// What there is room for when something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// For everything.
    Enough,
    /// Not for the reasons of failed attempts.
    ForTuples,
    /// Not even for making a tuple findable.
    None,
}

/// Lets everything happen that is due in the partition of `scope`.
///
/// # Errors
///
/// What the memory says; what has happened stays.
#[cold]
pub(crate) fn catch_up(store: &Store, scope: u32) -> Result<(), Error> {
    let mut room = Room::Enough;
    loop {
        let mut wakes = Delivery::default();
        let done = catch_up_once(store, scope, room, &mut wakes);
        wakes.wake(store);
        match done {
            Err(Error::Need(need)) => {
                match (provide::provide_late(store, need, Gathering::PassesOver), room) {
                    (Err(Error::SpaceFull(_)), Room::Enough) => room = Room::ForTuples,
                    // What needs room comes later; what gives room must not wait for it.
                    (Err(Error::SpaceFull(_)), Room::ForTuples) => room = Room::None,
                    (provided, _) => provided?,
                }
            }
            done => return done,
        }
    }
}

pub(crate) fn catch_up_once(
    store: &Store,
    scope: u32,
    room: Room,
    wakes: &mut Delivery,
) -> Result<(), Error> {
    let now_ms = now_ms();
    let mut section = Section::enter(&store.memory, scope)?;
    let partition = Partition::of_scope(section.view(), scope);
    hand_off::make_certain(&mut section, partition, now_ms)?;
    holds::arm_holds(store, &mut section, partition)?;
    // What a transaction still has whose lease has ended.
    let mut lost = Vec::new().into_iter();
    loop {
        let happened = if let Some(one) = lost.next() {
            lose(store, &mut section, partition, one)?
        } else if let Some(reference) =
            wheel::pop(&mut section, partition, now_ms, step::commit_if_full)?
        {
            if room != Room::None && holds::is_of_transaction(section.view(), reference) {
                lost = lost_with(store, &mut section, partition, reference)?.into_iter();
                continue;
            }
            fire(store, &mut section, partition, reference, now_ms, room)?
        } else if let Some(number) = hand_off::first_late(section.view(), partition, now_ms) {
            recall_late(store, &mut section, partition, number, now_ms, room)?
        } else {
            break;
        };
        journal::commit(store, &mut section)?;
        wakes.join(happened);
        if chain::is_published(&section, partition) || section.holds(head::ARENA_SCOPE) {
            // A section that appends events commits once. And what comes next may need the lock of the multi-shape waiters, which
            // comes before that of the arena.
            section.finish()?;
            section = Section::enter(&store.memory, scope)?;
            hand_off::make_certain(&mut section, partition, now_ms)?;
            // Somebody may have begun a claim meanwhile, whose timer is not armed yet.
            holds::arm_holds(store, &mut section, partition)?;
        }
    }
    section.commit()?;
    let handed_ms = hand_off::note_next(&section, partition);
    wheel::note_next(section.view(), partition, handed_ms);
    Ok(section.finish()?)
}

/// Gives back what a wait node was handed and has not picked up in time.
pub(crate) fn recall_late<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    number: u32,
    now_ms: u64,
    room: Room,
) -> Result<Delivery, Error> {
    if room == Room::None {
        hand_off::postpone(section.view(), number, now_ms + POSTPONED_MS);
        return Ok(Delivery::default());
    }
    handed::recall_handed(store, section, partition, number)
}

/// Does what the timer of a record was set for.
pub(crate) fn fire<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    now_ms: u64,
    room: Room,
) -> Result<Delivery, Error> {
    let header = record::header(section.view(), reference);
    let (shape, _) = record::shape_of(header);
    let state = header.load(STATE);
    let kinds = registry::kinds_of(store, section.view(), shape).ok_or_else(|| {
        store::damaged(store, "a timer's record names a shape that does not exist")
    })?;
    if state == record::LIVE {
        return lease::expire(store, section, partition, reference, kinds.as_slice());
    }
    if state == record::DEAD {
        let delivery = grants::grant_room(section)?;
        dead::bury(store, section, partition, reference)?;
        links::free_tuple(store, section, partition, record::at(section.view(), reference))?;
        return Ok(delivery);
    }
    if room == Room::None {
        wheel::arm(store, section, partition, reference, now_ms + POSTPONED_MS)?;
        return Ok(Delivery::default());
    }
    match state {
        record::DELAYED => {
            let visible_ms = wheel::due_ms(section.view(), reference);
            lease::reveal(store, section, partition, reference, visible_ms, kinds.as_slice())
        }
        record::CLAIMED
            if outliving::is_one(section.view(), record::at(section.view(), reference)) =>
        {
            outliving::deliver(store, section, partition, record::at(section.view(), reference))
        }
        record::CLAIMED => {
            let failure = Failure::Silence { pid: claim::holder_pid(store, header) };
            let failure = (room == Room::Enough).then_some(&failure);
            let record = record::at(section.view(), reference);
            settle::fail_claim(store, section, partition, record, kinds.as_slice(), failure)
        }
        _ => Err(store::damaged(store, "a timer's record is in no state that ends")),
    }
}

/// Something that its holder loses, with the age of its tuple.
#[derive(Clone, Copy)]
pub(crate) struct Lost {
    pub(crate) list: List,
    pub(crate) place: Place,
    sequence: u64,
}

/// All that a transaction has in the partition whose lease has ended, the oldest first; by the record at `reference`, whose timer
/// has fired and is armed anew: that of the one which is let go first may be another. Commits the section.
pub(crate) fn lost_with<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
) -> Result<Vec<Lost>, Error> {
    let view = section.view();
    let whose = |header: Header<'_>, extension: Extension<'_>| {
        let transaction = (header.load(HOLDER), extension.load(TRANSACTION));
        (transaction, extension.load64(HOLD_END_MS))
    };
    let header = record::header(view, reference);
    let Some(extension) = extension::of(view, header) else {
        return Err(store::damaged(store, "a record in somebody's hands has no extension"));
    };
    let its = whose(header, extension);
    let lists = [List::Enlisted, List::Locks];
    let lost =
        oldest_first(view, partition, &lists, |header, extension| whose(header, extension) == its);
    let fired = lost.iter().find(|one| one.place.reference == reference);
    let is_there = fired.is_some_and(|one| {
        let held = settle::held_at(store, view, one.place, one.list);
        held.is_some_and(|(_, fence)| fence == one.place.fence)
    });
    if !is_there {
        // It would fire again and again.
        return Err(store::damaged(store, "a transaction has a record that is on no list"));
    }
    wheel::arm(store, section, partition, reference, extension.load64(HOLD_END_MS))?;
    section.commit()?;
    Ok(lost)
}

/// Lets go of what a transaction has lost, if it is still there.
pub(crate) fn lose<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    Lost { list, place, .. }: Lost,
) -> Result<Delivery, Error> {
    match settle::held_at(store, section.view(), place, list) {
        Some((record, fence)) if fence == place.fence => {
            hold::let_go_of(store, section, partition, record, list)
        }
        _ => Ok(Delivery::default()),
    }
}

/// What is meant of what is on `lists` of a partition: that of the oldest tuple first, so that it goes to who waits (rule T2).
pub(crate) fn oldest_first<'m>(
    view: &View<'m>,
    partition: Partition<'m>,
    lists: &[List],
    is_meant: impl Fn(Header<'m>, Extension<'m>) -> bool,
) -> Vec<Lost> {
    let mut all = Vec::new();
    for list in lists {
        for (reference, extension) in list::records(view, partition, *list) {
            let header = record::header(view, reference);
            if is_meant(header, extension) {
                let sequence = if *list == List::Locks {
                    lock::sequence_of_tuple(header)
                } else {
                    header.load64(SEQUENCE)
                };
                let fence = extension.load64(FENCE);
                let place = Place { scope: partition.scope(), reference, fence };
                all.push(Lost { list: *list, place, sequence });
            }
        }
    }
    all.sort_unstable_by_key(|one| one.sequence);
    all
}
