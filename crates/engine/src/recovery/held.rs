//! Records that are out of the lists but not gone: back into the lists, or freed (rule T5).

use tupelo_shm::{Section, View};
use tupelo_tuple::{Field, Kind};

use crate::base::clock;
use crate::base::error::Error;
use crate::index::links;
use crate::recovery::enter;
use crate::store::extension::lease_end_ms;
use crate::store::partition::{self, HELD, Partition, count_take};
use crate::store::record::{self, ImageBuffer, Record};
use crate::store::registry::{self, Kinds};
use crate::store::{self, Store};
use crate::time::wheel;
use crate::waiters::deliver::{self, Delivery};
use crate::waiters::events::{EventKind, Happening};

/// A record that somebody holds, and the lock of its partition.
pub(crate) struct Held<'m> {
    pub(crate) section: Section<'m>,
    pub(crate) partition: Partition<'m>,
    pub(crate) reference: u32,
    pub(crate) kinds: Kinds,
}

fn shape_of(view: &View<'_>, reference: u32) -> u32 {
    record::shape_of(record::header(view, reference)).0
}

/// What is wrong with a record whose shape is none.
const NO_SHAPE: &str = "a record names a shape that does not exist";

/// Locks the partition of the record that somebody holds. `held` tells which it is, by the word that names it; `None` if it
/// is none. If the lock is to be had `on_time`, what was due there has happened before.
pub(crate) fn lock_held(
    store: &Store,
    held: impl Fn() -> u32,
    on_time: bool,
) -> Result<Option<Held<'_>>, Error> {
    while let Some(shape) = shape_of_held(store, &held)? {
        let scope = partition::scope_of(shape);
        let section = if on_time {
            enter::enter(store, scope)?
        } else {
            Section::enter(&store.memory, scope)?
        };
        let reference = held();
        // It may be none any more, or another, of another shape: what was handed over without a commit was undone.
        if reference != 0 && shape_of(section.view(), reference) == shape {
            let kinds = registry::kinds_of(store, section.view(), shape)
                .ok_or_else(|| store::damaged(store, NO_SHAPE))?;
            let partition = Partition::of_shape(section.view(), shape);
            return Ok(Some(Held { section, partition, reference, kinds }));
        }
    }
    Ok(None)
}

/// The shape of the record that somebody holds, before it is locked; `None` if it is none.
pub(crate) fn shape_of_held(store: &Store, held: impl Fn() -> u32) -> Result<Option<u32>, Error> {
    let view = store.memory.view();
    let mut reference = held();
    while reference != 0 {
        let shape = shape_of(&view, reference);
        if shape < registry::count(&view) {
            return Ok(Some(shape));
        }
        // If that was undone, the block may be anything by now.
        let before = std::mem::replace(&mut reference, held());
        if before == reference {
            return Err(store::damaged(store, NO_SHAPE));
        }
    }
    Ok(None)
}

/// Puts a held record back to its place, or hands it to a waiter that matches it; or frees it, if its lease has
/// ended meanwhile: nothing may be filled in the section after that. What is heard of it is
/// said by the caller.
pub(crate) fn give_back<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    (reference, happening): (u32, Happening),
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    let record = record::at(section.view(), reference);
    if clock::is_past(lease_end_ms(section.view(), record)) {
        // It is there no more (rule L1).
        let gone = (reference, EventKind::Expire);
        let delivery = deliver::publish_removal(store, section, partition, gone, kinds)?;
        links::free_tuple(store, section, partition, record)?;
        section.add(partition.page(), HELD, -1);
        return Ok(delivery);
    }
    let delivery = put_back(store, section, partition, (record, happening), kinds)?;
    // It has left one hand; a waiter's hand has counted anew. Before that it was counted twice, and never not at all.
    section.add(partition.page(), HELD, -1);
    Ok(delivery)
}

/// Puts a record that nobody holds and that is in no list to its place, or hands it to a waiter that matches it.
pub(crate) fn put_back<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    (record, happening): (Record<'m>, Happening),
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    let reference = record.reference;
    let mut copy = ImageBuffer::new();
    let fields: Vec<Field<'_>> = copy.copy(section.view(), reference, kinds).fields().collect();
    let delivery =
        deliver::deliver(store, section, partition, (reference, happening), &fields, kinds)?;
    if !delivery.taken() {
        links::link_back(store, section, partition, reference, kinds)?;
        wheel::arm_lease(store, section, partition, record)?;
    }
    Ok(delivery)
}

/// Frees a held record: it was delivered (`taken`), or was a copy.
pub(crate) fn free_held<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    kinds: &[Kind],
    taken: bool,
) -> Result<Delivery, Error> {
    let mut delivery = Delivery::default();
    if taken {
        delivery = deliver::publish_removal(
            store,
            section,
            partition,
            (reference, EventKind::Take),
            kinds,
        )?;
        count_take(partition);
        section.add(partition.page(), HELD, -1);
        let record = record::at(section.view(), reference);
        links::free_tuple(store, section, partition, record)?;
    } else {
        links::free_record(store, section, partition, reference)?;
    }
    Ok(delivery)
}
