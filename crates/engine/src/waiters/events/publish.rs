//! Writing down what happens, in the section in which it happens (rule N1).

use tupelo_shm::Section;
use tupelo_tuple::TupleRef;

use crate::base::error::Error;
use crate::base::layout::head;
use crate::store::partition::Partition;
use crate::store::registry::Kinds;
use crate::store::{self, Store, record, step};
use crate::waiters::events::EventKind;
use crate::waiters::events::ring::{APPEND_WORDS, Appended, Ring, scope_of};
use crate::waiters::stored::Candidate;
use crate::waiters::{EVENT_KINDS, LINKED, STATE, WaitNode, deliver, node, wake};

/// Subscriptions that match a tuple: as a rule one, for which nothing is allocated.
#[derive(Default)]
pub(crate) struct Listeners {
    first: u32,
    others: Vec<u32>,
}

impl Listeners {
    pub(crate) fn add(&mut self, number: u32) {
        if self.first == 0 {
            self.first = number;
        } else {
            self.others.push(number);
        }
    }

    fn all(&self) -> impl Iterator<Item = u32> {
        (self.first != 0).then_some(self.first).into_iter().chain(self.others.iter().copied())
    }
}

/// Whether a subscription hears of this.
#[inline]
pub(crate) fn wants(node: WaitNode<'_>, bit: u32) -> bool {
    node.load(EVENT_KINDS) & bit != 0
}

/// Appends an event of the record at `reference` to the rings of `listeners`. Adds to `wakes` those who may sleep.
///
/// # Errors
///
/// [`crate::base::error::Need`] if the section has to begin anew.
pub(crate) fn append(
    store: &Store,
    section: &mut Section<'_>,
    listeners: &Listeners,
    (reference, kind): (u32, EventKind),
    wakes: &mut Vec<u32>,
) -> Result<(), Error> {
    let record = record::at(section.view(), reference);
    for number in listeners.all() {
        step::beyond(section, APPEND_WORDS)?;
        // Else room that it lacks could not be made, and this would begin anew for ever.
        deliver::require_queued(store, section.view(), number)?;
        let node = node(section.view(), number);
        let Some(ring) = Ring::of(section.view(), node) else { continue };
        let scope = scope_of(node);
        if !section.holds(scope) {
            return Err(store::damaged(
                store,
                "a subscription is in the wait queue elsewhere than it says",
            ));
        }
        let before = section.focus(scope);
        let appended = ring.append(section, number, record, kind);
        section.focus(before);
        if appended? == Appended::First {
            wakes.push(number);
        }
    }
    Ok(())
}

/// Ends a section that has put a tuple where nobody but subscriptions waits, and tells those that match: also multi-shape ones,
/// if it holds their lock.
#[inline(never)]
pub(crate) fn finish_published<'m>(
    store: &'m Store,
    mut section: Section<'m>,
    (partition, reference): (Partition<'m>, u32),
    TupleRef { fields, class }: TupleRef<'_>,
) -> Result<(), Error> {
    let mut kinds = Kinds::new();
    kinds.read(fields, |_| ());
    let record = Candidate { reference, kinds: kinds.as_slice(), class };
    let (mut listeners, mut wakes) = (Listeners::default(), Vec::new());
    let cares = |node: WaitNode<'_>| wants(node, EventKind::Put.bit());
    let view = section.view();
    deliver::each_filed(store, view, partition, (record, fields), cares, |number| {
        listeners.add(number);
    });
    if section.holds(head::MULTI_SHAPE_SCOPE) {
        deliver::each_multi_shape(store, view, partition, record, cares, |number| {
            listeners.add(number);
        });
    }
    append(store, &mut section, &listeners, (reference, EventKind::Put), &mut wakes)?;
    section.finish()?;
    for number in wakes {
        wake::notify(store, number);
    }
    Ok(())
}

/// Drops the oldest events of a subscription, for a section that found no room for another one. In a section of
/// its own: what it overwrites must be nothing that an undo brings back.
#[cold]
pub(crate) fn make_event_room(store: &Store, number: u32, bytes: u32) -> Result<(), Error> {
    let scope = scope_of(node(&store.memory.view(), number));
    if scope == 0 {
        return Ok(());
    }
    let mut section = Section::enter(&store.memory, scope)?;
    let node = node(section.view(), number);
    // It may have ended meanwhile, and be another's.
    if node.load(STATE) == LINKED
        && scope_of(node) == scope
        && let Some(ring) = Ring::of(section.view(), node)
    {
        ring.make_room(&mut section, bytes)?;
    }
    Ok(section.commit()?)
}
