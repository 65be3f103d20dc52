//! Takes for somebody elsewhere, whose tuple is still this process's until the other side has it: they outlive this process.
//!
//! A server holds what it has taken for a client by a claim, until the client has acknowledged it. If the server is killed, the client
//! may have the tuple, or may ask the next server for it. So the tuple does not go back: it stays claimed, by nobody. Whoever has the
//! key of the take [adopts](Claim::adopt) it. If nobody comes for it in time, the tuple counts as delivered (rule C3).

use std::time::Duration;

use tupelo_shm::{Section, View};
use tupelo_tuple::TupleView;

use crate::base::clock;
use crate::base::error::Error;
use crate::journal;
use crate::operations::keys as noted;
use crate::operations::targets::TupleBuffer;
use crate::protocols::claim::settle::{end_claim, free_claimed, held_at};
use crate::protocols::claim::{Begun, Claim, Handle, kinds_of};
use crate::protocols::holders_gone::Gone;
use crate::recovery::{enter, provide};
use crate::store::extension::{self, ATTEMPTS_MAX, Extension, OUTLIVES};
use crate::store::keys::{self, Noted, TakenAt};
use crate::store::partition::{self, Partition};
use crate::store::record::{HOLDER, Record};
use crate::store::{Store, registry};
use crate::time::holds;
use crate::time::list::{List, Place};
use crate::waiters::deliver::Delivery;

/// How long a tuple waits for whoever has its key: twice as long as clients try to connect again, unless they are told otherwise.
const LEFT_FOR: Duration = Duration::from_secs(120);
/// How long its holder has it, which has no end of its own.
const HELD_FOR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Notes the key of a take for what it has just claimed, if this thread works for one.
pub(super) fn note(
    store: &Store,
    section: &mut Section<'_>,
    place: Place,
    extension: Extension<'_>,
) -> Result<(), Error> {
    if !store.keys.is_on() {
        return Ok(());
    }
    let Some(request) = keys::take_under_way() else { return Ok(()) };
    let Place { scope, reference, fence } = place;
    // Means nothing to anybody until the section is over (R2).
    extension.init(ATTEMPTS_MAX, OUTLIVES);
    keys::append(&store.keys, section, (request, Some(TakenAt { scope, reference, fence })))
}

/// Whether a claimed record is what such a take has.
pub(crate) fn is_one(view: &View<'_>, record: Record<'_>) -> bool {
    let extension = extension::of(view, record.header);
    extension.is_some_and(|extension| extension.load(ATTEMPTS_MAX) == OUTLIVES)
}

/// The holder is gone: the tuple stays where it is, for whoever has its key.
pub(super) fn leave<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    gone: Gone,
) -> Result<Delivery, Error> {
    let own = section.thread().participant();
    let extension = extension::of(section.view(), record.header);
    if let Some(extension) = extension
        && gone.has(own, record.header, extension)
    {
        let until_ms = clock::moment_in(LEFT_FOR);
        let place = (record.reference, extension);
        holds::move_hold_end(store, section, partition, place, until_ms)?;
        section.set(record.header, HOLDER, 0);
    }
    Ok(Delivery::default())
}

/// Nobody has come for it in time.
pub(crate) fn deliver<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
) -> Result<Delivery, Error> {
    end_claim(store, section, partition, record)?;
    free_claimed(store, section, partition, record)
}

impl<H: Handle + Clone> Claim<H> {
    /// What a process that has died had taken for this request ([`crate::keyed_take`]), shown to `visitor`, as a claim of this process.
    /// `None` if there is no such thing, or not any more.
    ///
    /// # Errors
    ///
    /// What the memory says. The error of `visitor`: the tuple is back.
    pub fn adopt<R, E: From<Error>>(
        handle: &H,
        request: (u128, u64),
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<(Self, R)>, E> {
        let store: &Store = handle.kept();
        let Some(Noted::Taken(taken)) = noted::noted(store, request)? else { return Ok(None) };
        let mut copy = TupleBuffer::new();
        let begun = provide::retry(store, || adopt_once(store, taken, &mut copy))?;
        begun.map(|begun| Self::visit(handle, begun, &mut copy, visitor)).transpose()
    }
}

fn adopt_once(
    store: &Store,
    TakenAt { scope, reference, fence }: TakenAt,
    copy: &mut TupleBuffer,
) -> Result<Option<Begun>, Error> {
    let view = store.memory.view();
    // Another process's word.
    let shape = (0..registry::count(&view)).find(|shape| partition::scope_of(*shape) == scope);
    if shape.is_none() {
        return Ok(None);
    }
    let is_dead = |holder: u32| {
        let participants = store.memory.participants();
        let its = participants.iter().find(|one| one.number + 1 == holder);
        !its.is_some_and(|one| one.alive)
    };
    let place = Place { scope, reference, fence };
    let mut section = enter::enter(store, scope)?;
    let partition = Partition::of_scope(section.view(), scope);
    let held = held_at(store, section.view(), place, List::Claimed);
    let held = held.filter(|(record, own)| {
        let holder = record.header.load(HOLDER);
        *own == fence && is_one(section.view(), *record) && (holder == 0 || is_dead(holder))
    });
    let Some((record, _)) = held else { return Ok(None) };
    let Some(extension) = extension::of(section.view(), record.header) else { return Ok(None) };
    let end_ms = clock::moment_in(HELD_FOR);
    holds::move_hold_end(store, &mut section, partition, (reference, extension), end_ms)?;
    let holder = section.thread().participant() + 1;
    section.set(record.header, HOLDER, holder);
    let kinds = kinds_of(store, section.view(), record.header)?;
    let is_copied = copy.fill_short(section.view(), record, &kinds);
    journal::finish(store, section)?;
    Ok(Some(Begun { place, attempt: 1, is_copied }))
}
