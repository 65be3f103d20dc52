//! The put side of waiting: who gets a new tuple, and who is woken (rules T3, T4).

use tupelo_shm::{GRANULE, Section, View};
use tupelo_tuple::{Field, Kind};

use super::stored::{self, Candidate};
use super::{RECORD, TICKET, WANT, WaitNode, chain, hand_off, node};
use crate::base::error::Error;
use crate::base::layout::head;
use crate::base::want::Want;
use crate::index::links;
use crate::store::incoming::Incoming;
use crate::store::partition::{self, HELD, Partition, WAITING};
use crate::store::record::{self, HOLDER, IMAGE_BYTES, SEQUENCE, SHAPE};
use crate::store::{self, Store, blocks, key, multi_shape, registry, step};
use crate::waiters::events::publish::{self, Listeners};
use crate::waiters::events::{EventKind, Happening};
use crate::waiters::{grants, wake};

/// What became of a tuple on its way in: as a rule nothing, since nobody waits.
#[derive(Default)]
pub(crate) enum Delivery {
    /// Nobody is to be woken, and the tuple is where it was to go.
    #[default]
    Nobody,
    /// A waiting take has it, by the number of its wait node, and it concerns nobody else. It is in no list.
    Taker(u32),
    /// It concerns several, or who does not take it.
    Served(Box<Served>),
}

/// The waiters that a tuple found.
#[derive(Default)]
pub(crate) struct Served {
    /// The wait node of the waiting take that has it; it is in no list then.
    taker: Option<u32>,
    /// All others.
    wakes: Vec<u32>,
}

impl Delivery {
    fn new(served: Served) -> Self {
        match (served.taker, served.wakes.is_empty()) {
            (None, true) => Self::Nobody,
            (Some(taker), true) => Self::Taker(taker),
            _ => Self::Served(Box::new(served)),
        }
    }

    /// What is known of it, to add to that.
    fn served(self) -> Served {
        match self {
            Self::Nobody => Served::default(),
            Self::Taker(taker) => Served { taker: Some(taker), wakes: Vec::new() },
            Self::Served(served) => *served,
        }
    }

    /// Whether a waiting take has the tuple; it is in no list then.
    #[inline]
    pub(crate) fn taken(&self) -> bool {
        match self {
            Self::Nobody => false,
            Self::Taker(_) => true,
            Self::Served(served) => served.taker.is_some(),
        }
    }

    /// Wakes those who got something. Called after the section, so that they find its lock free.
    #[inline]
    pub(crate) fn wake(self, store: &Store) {
        match self {
            Self::Nobody => {}
            Self::Taker(taker) => wake::notify(store, taker),
            Self::Served(served) => wake_all(store, &served),
        }
    }

    /// Wakes the owner of one more wait node.
    pub(crate) fn also_wake(&mut self, number: u32) {
        let mut served = std::mem::take(self).served();
        served.wakes.push(number);
        *self = Self::new(served);
    }

    /// Both deliveries' wake-ups in one: what the other has taken is not what this one has.
    #[inline]
    pub(crate) fn join(&mut self, other: Self) {
        if matches!(other, Self::Nobody) {
            return;
        }
        let (mut both, other) = (std::mem::take(self).served(), other.served());
        both.wakes.extend(other.wakes.into_iter().chain(other.taker));
        *self = Self::new(both);
    }
}

#[cold]
fn wake_all(store: &Store, served: &Served) {
    served.wakes.iter().chain(&served.taker).for_each(|number| wake::notify(store, *number));
}

/// The wait nodes that match a tuple: everyone to be told, and the first in the wait queue to take it.
#[derive(Default)]
struct Matching {
    readers: Vec<u32>,
    woken: Vec<u32>,
    listeners: Listeners,
    /// Ticket and wait node.
    taker: Option<(u64, u32)>,
}

/// What happens to a tuple, as a number of those who may care.
#[derive(Clone, Copy)]
struct Occasion {
    /// It comes, and does not go.
    is_arrival: bool,
    /// The bit of the event, 0 if it is none.
    bit: u32,
}

impl Occasion {
    /// Whether the owner of a wait node cares, wherever it comes to tuples that match.
    fn concerns(self, node: WaitNode<'_>) -> bool {
        let want = node.load(WANT);
        if want == Want::Events.number() {
            return publish::wants(node, self.bit);
        }
        self.is_arrival != (want == Want::Removal.number())
    }
}

impl Matching {
    fn add(&mut self, view: &View<'_>, number: u32) {
        let node = node(view, number);
        let want = node.load(WANT);
        if want == Want::Read.number() {
            self.readers.push(number);
        } else if want == Want::Put.number() || want == Want::Removal.number() {
            self.woken.push(number);
        } else if want == Want::Events.number() {
            self.listeners.add(number);
        } else if want == Want::Take.number() {
            let candidate = (node.load64(TICKET), number);
            self.taker = Some(self.taker.map_or(candidate, |first| first.min(candidate)));
        }
    }
}

/// Words that serving a waiter in the wait queue changes.
const SERVE_WORDS: usize = step::HAND_WORDS + chain::UNFILE_WORDS;
/// Words that a copy for a reader changes.
const COPY_WORDS: usize = blocks::ALLOCATE_WORDS;

/// Whether a wait node of a chain is filed under this mask and tag: others share the chain.
#[inline]
fn is_filed(node: WaitNode<'_>, (mask, tag): (u32, u32)) -> bool {
    node.load(super::MASK) == mask && node.load(super::TAG) == tag
}

/// Makes a record, linked nowhere, a waiter's.
pub(crate) fn hand_over<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    number: u32,
    reference: u32,
) {
    links::hold(section, reference, record::HANDED);
    let header = record::header(section.view(), reference);
    section.set(header, HOLDER, number);
    let node = node(section.view(), number);
    if node.load(WANT) == Want::Take.number() {
        // A reader holds a copy, which is no tuple of the space.
        section.add(partition.page(), HELD, 1);
        hand_off::begin(store, partition, node);
    }
    // The words of a linked wait node belong to the lock that its links name: the multi-shape waiters', or this one.
    let before = section.focused();
    if node.load(super::STATE) == super::LINKED {
        let scope = node.load(super::SCOPE);
        if !section.holds(scope) {
            // It was found in a chain of another lock than it says.
            section.view().violate();
            return;
        }
        section.focus(scope);
        chain::unfile(section, number);
    }
    section.set(node, RECORD, reference);
    section.focus(before);
}

/// As [`deliver`], for a tuple that is new in the space: it is refused if the room that it takes is
/// another's, who waited for it.
#[inline(always)]
pub(crate) fn deliver_new<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    incoming: &Incoming<'_>,
) -> Result<Delivery, Error> {
    if partition.page().load(WAITING) == 0 && !multi_shape::concerns_multi_shape(section, partition)
    {
        return Ok(Delivery::default());
    }
    if incoming.takes_room {
        grants::require_grant(store, section.view())?;
    }
    let (fields, kinds) = (incoming.fields, incoming.kinds.as_slice());
    let put = (reference, EventKind::Put.into());
    deliver_to_some(store, section, partition, put, fields, kinds)
}

/// Gives a filled record that is in no list to the waiters that match it, and tells those who hear of what
/// happens with it.
#[inline(always)]
pub(crate) fn deliver<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    (reference, happening): (u32, Happening),
    fields: &[Field<'_>],
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    if partition.page().load(WAITING) == 0 && !multi_shape::concerns_multi_shape(section, partition)
    {
        return Ok(Delivery::default());
    }
    deliver_to_some(store, section, partition, (reference, happening), fields, kinds)
}

#[inline(never)]
fn deliver_to_some<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    (reference, happening): (u32, Happening),
    fields: &[Field<'_>],
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    let occasion = Occasion { is_arrival: true, bit: happening.bit() };
    let matching = matching(store, section, partition, (reference, occasion), fields, kinds)?;
    let mut served = Served { taker: None, wakes: matching.woken };
    if let Happening::Published(kind) = happening {
        let event = (reference, kind);
        publish::append(store, section, &matching.listeners, event, &mut served.wakes)?;
    }
    serve_readers(store, section, partition, reference, (matching.readers, &mut served))?;
    if let Some((_, number)) = matching.taker {
        serve_taker(store, section, partition, reference, (number, &mut served))?;
    }
    Ok(Delivery::new(served))
}

/// A wait node that was found in a chain is in the wait queue. In a damaged one it may be one that has been served: what is taken back
/// from it would be handed to it again, for ever.
pub(crate) fn require_queued(store: &Store, view: &View<'_>, number: u32) -> Result<(), Error> {
    if node(view, number).load(super::STATE) == super::LINKED {
        return Ok(());
    }
    Err(store::damaged(store, "a chain of waiters leads to one that is not in it"))
}

/// Gives a record that is in no list to the first in the wait queue to take it.
fn serve_taker<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    (number, served): (u32, &mut Served),
) -> Result<(), Error> {
    step::beyond(section, SERVE_WORDS)?;
    require_queued(store, section.view(), number)?;
    hand_over(store, section, partition, number, reference);
    served.taker = Some(number);
    Ok(())
}

/// Gives each of the waiting readers a copy of a record.
fn serve_readers<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    (readers, served): (Vec<u32>, &mut Served),
) -> Result<(), Error> {
    for number in readers {
        step::beyond(section, COPY_WORDS + SERVE_WORDS)?;
        require_queued(store, section.view(), number)?;
        let copy = copy_record(store, section, partition, reference)?;
        hand_over(store, section, partition, number, copy);
        served.wakes.push(number);
    }
    Ok(())
}

/// Shows a record that is in no list, and that nobody may take, to those who wait to read it, and tells those who
/// watch.
pub(crate) fn show<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    let Some(matching) = matching_filled(store, section, partition, reference, kinds)? else {
        return Ok(Delivery::default());
    };
    let mut served = Served { taker: None, wakes: matching.woken };
    serve_readers(store, section, partition, reference, (matching.readers, &mut served))?;
    Ok(Delivery::new(served))
}

/// Whether a wait node of a partition may match, by the tags alone.
#[inline(never)]
pub(crate) fn may_be_awaited(
    store: &Store,
    view: &View<'_>,
    partition: Partition<'_>,
    fields: &[Field<'_>],
) -> bool {
    chain::masks_in_use(partition).any(|mask| {
        let tag = key::tag_of_fields(fields, mask, store.seed);
        chain::filed(view, partition, tag).any(|(_, node)| is_filed(node, (mask, tag)))
    })
}

/// Shows `found` the wait nodes of a partition that match and care: one chain per mask in use is looked at.
#[inline(always)]
pub(crate) fn each_filed(
    store: &Store,
    view: &View<'_>,
    partition: Partition<'_>,
    (record, fields): (Candidate<'_>, &[Field<'_>]),
    cares: impl Fn(WaitNode<'_>) -> bool,
    mut found: impl FnMut(u32),
) {
    for mask in chain::masks_in_use(partition) {
        let tag = key::tag_of_fields(fields, mask, store.seed);
        for (number, node) in chain::filed(view, partition, tag) {
            if is_filed(node, (mask, tag)) && cares(node) && stored::matches(view, node, record) {
                found(number);
            }
        }
    }
}

/// Shows `found` the wait nodes of multi-shape waiters that match and care, in a section that holds their lock and that of the partition.
#[inline(always)]
pub(crate) fn each_multi_shape(
    store: &Store,
    view: &View<'_>,
    partition: Partition<'_>,
    record: Candidate<'_>,
    cares: impl Fn(WaitNode<'_>) -> bool,
    mut found: impl FnMut(u32),
) {
    for (number, node) in chain::multi_shape(view) {
        if cares(node) && stored::matches(view, node, record) {
            found(number);
        }
    }
    if chain::can_note_multi_shape(view, partition) {
        note_multi_shape(store, view, partition);
    }
}

/// Notes in a partition whether one of the multi-shape waiters could match its tuples.
#[cold]
#[inline(never)]
fn note_multi_shape(store: &Store, view: &View<'_>, partition: Partition<'_>) {
    if let Some(kinds) = registry::kinds_of(store, view, partition.page().load(partition::SHAPE)) {
        chain::note_multi_shape(view, partition, &kinds);
    }
}

/// The wait nodes that match and care: those of the partition, and those of multi-shape waiters.
fn matching<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    (reference, occasion): (u32, Occasion),
    fields: &[Field<'_>],
    kinds: &[Kind],
) -> Result<Matching, Error> {
    let class = registry::class_of(store, section.view(), partition.page().load(partition::SHAPE));
    let record = Candidate { reference, kinds, class };
    let mut matching = Matching::default();
    let view = section.view();
    let cares = |node: WaitNode<'_>| occasion.concerns(node);
    each_filed(store, view, partition, (record, fields), cares, |number| {
        matching.add(view, number);
    });
    if multi_shape::concerns_multi_shape(section, partition) {
        multi_shape::enter_multi_shape(section)?;
        let view = section.view();
        each_multi_shape(store, view, partition, record, cares, |number| {
            matching.add(view, number);
        });
    }
    Ok(matching)
}

/// A copy of a record, for a reader that waited.
pub(crate) fn copy_record<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
) -> Result<u32, Error> {
    let header = record::header(section.view(), reference);
    let bytes = record::HEADER_BYTES + record::image_bytes(header);
    if !section.view().reaches(reference as usize * GRANULE, bytes) {
        return Err(store::damaged(store, "a tuple is longer than its space"));
    }
    let copy = blocks::allocate_beyond(section, &store.layout, partition, bytes)?;
    let target = record::header(section.view(), copy);
    target.init(IMAGE_BYTES, header.load(IMAGE_BYTES));
    target.init(SHAPE, header.load(SHAPE) & !record::EXTENDED_INSIDE);
    target.init64(SEQUENCE, header.load64(SEQUENCE));
    target.init(record::EXTENSION, 0);
    record::copy_image(section.view(), reference, copy);
    Ok(copy)
}

/// Tells those who watch for such a tuple, which is there: it may be had by one of them now.
pub(crate) fn wake_watchers<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    let Some(matching) = matching_filled(store, section, partition, reference, kinds)? else {
        return Ok(Delivery::default());
    };
    Ok(Delivery::new(Served { taker: None, wakes: matching.woken }))
}

/// Gives a record that is in its lists to the first in the wait queue to take it, if anybody is, and tells those who watch. Who
/// wants to read it has it already. It leaves the lists only if it is taken: its links must not be filled anew in a
/// section that has found them in use (R2).
pub(crate) fn offer<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    let Some(matching) = matching_filled(store, section, partition, reference, kinds)? else {
        return Ok(Delivery::default());
    };
    let mut served = Served { taker: None, wakes: matching.woken };
    if let Some((_, number)) = matching.taker {
        step::begin(section)?;
        links::unlink(section, partition, reference);
        serve_taker(store, section, partition, reference, (number, &mut served))?;
    }
    Ok(Delivery::new(served))
}

/// The waiters that match a filled record; `None` if nobody waits.
fn matching_filled<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    kinds: &[Kind],
) -> Result<Option<Matching>, Error> {
    if partition.page().load(WAITING) == 0 && !multi_shape::concerns_multi_shape(section, partition)
    {
        return Ok(None);
    }
    let mut copy = record::ImageBuffer::new();
    let fields: Vec<Field<'_>> = copy.copy(section.view(), reference, kinds).fields().collect();
    let occasion = Occasion { is_arrival: true, bit: Happening::Unpublished.bit() };
    let matching = matching(store, section, partition, (reference, occasion), &fields, kinds)?;
    Ok(Some(matching))
}

/// Tells those who wait for the removal of such a tuple, and those who hear of what happens with it. Called inside
/// the section that removes it; the wake-ups follow after the section.
#[inline]
pub(crate) fn publish_removal<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    (reference, kind): (u32, EventKind),
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    if !chain::watching_removals(section, partition) {
        return Ok(Delivery::default());
    }
    publish_removal_to(store, section, partition, (reference, kind), kinds)
}

#[cold]
fn publish_removal_to<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    (reference, kind): (u32, EventKind),
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    let mut copy = record::ImageBuffer::new();
    let fields: Vec<Field<'_>> = copy.copy(section.view(), reference, kinds).fields().collect();
    let occasion = Occasion { is_arrival: false, bit: Happening::from(kind).bit() };
    let matching = matching(store, section, partition, (reference, occasion), &fields, kinds)?;
    let mut wakes = matching.woken;
    if section.holds(head::MULTI_SHAPE_SCOPE) {
        wakes.extend(grants::grant(section.view()));
    }
    publish::append(store, section, &matching.listeners, (reference, kind), &mut wakes)?;
    Ok(Delivery::new(Served { taker: None, wakes }))
}
