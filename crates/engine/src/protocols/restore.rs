//! Filling the segment of a durable space from where it was kept (rule C4). Nobody else uses it yet: each tuple is a section or
//! two, and whoever dies in the middle leaves a segment that is only good to be removed.

use std::sync::atomic::Ordering;

use tupelo_shm::Section;
use tupelo_tuple::TupleRef;

use crate::base::error::Error;
use crate::base::terms::LeaseTerms;
use crate::index::links;
use crate::journal;
use crate::operations::put;
use crate::protocols::claim::settle;
use crate::recovery::provide;
use crate::store::change::{Attempts, Kept};
use crate::store::extension::{self, ATTEMPTS};
use crate::store::incoming;
use crate::store::journal as words;
use crate::store::partition::{self, Partition};
use crate::store::record;
use crate::store::{NEXT_FENCE, Store, history, registry, space_line, step};

/// As [`crate::Engine::restore`] says.
pub(crate) fn restore(store: &Store, kept: &Kept, tuple: TupleRef<'_>) -> Result<bool, Error> {
    let Some(terms) = kept.terms.left() else { return Ok(false) };
    let mut incoming = put::incoming(store, tuple)?;
    if terms != LeaseTerms::default() {
        incoming.terms = Some(incoming::numbered(store, &terms));
    }
    let shape = registry::shape(store, &incoming.kinds, incoming.fields.first())?;
    let reference = provide::retry(store, || {
        words::set_next_id(words::line(&store.memory.view()), kept.id);
        let mut section = Section::enter(&store.memory, partition::scope_of(shape))?;
        step::begin(&section)?;
        let (_, reference) = put::store_tuple(store, &mut section, &incoming, shape)?;
        journal::forget(&mut section);
        section.commit()?;
        Ok(reference)
    })?;
    if kept.attempts != Attempts::default() {
        provide::retry(store, || restore_attempts(store, shape, reference, &kept.attempts))?;
    }
    Ok(true)
}

/// Tells a tuple what became of the attempts at it.
fn restore_attempts(
    store: &Store,
    shape: u32,
    reference: u32,
    attempts: &Attempts,
) -> Result<(), Error> {
    let mut section = Section::enter(&store.memory, partition::scope_of(shape))?;
    let partition = Partition::of_shape(section.view(), shape);
    let record = record::at(section.view(), reference);
    let extension = extension::ensure(&mut section, &store.layout, partition, record.header)?;
    section.set(extension, ATTEMPTS, attempts.failed);
    history::write(&mut section, &store.layout, partition, extension, &attempts.reasons)?;
    if attempts.is_dead && record.header.load(record::STATE) == record::LIVE {
        links::unlink(&mut section, partition, reference);
        links::hold(&mut section, reference, record::DEAD);
        settle::list_dead(store, &mut section, partition, record, extension)?;
    }
    section.commit()?;
    Ok(())
}

/// As [`crate::Engine::restored`] says.
pub(crate) fn restored(store: &Store, next_id: u64, last_fence: u64) {
    let view = store.memory.view();
    let line = words::line(&view);
    words::set_next_id(line, next_id.max(words::next_id(line)));
    space_line(&view).double(NEXT_FENCE).fetch_max(last_fence, Ordering::Relaxed);
}

/// As [`crate::Engine::next_numbers`] says.
pub(crate) fn next_numbers(store: &Store) -> (u64, u64) {
    let view = store.memory.view();
    let fence = space_line(&view).double(NEXT_FENCE).load(Ordering::Relaxed);
    (words::next_id(words::line(&view)), fence)
}
