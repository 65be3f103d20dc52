//! What the cell of a waiter has outside of itself: a long template, the ring of a subscription; and the cell itself.

use tupelo_shm::{GRANULE, Section};
use tupelo_tuple::{TemplateRef, encode_template_refs};

use crate::base::error::Error;
use crate::base::layout::{CELL_BYTES, EXTENT_BYTES, head};
use crate::recovery::{abandoned, provide};
use crate::store::{Store, arena};
use crate::waiters::cells::{claim_free_cell, spare_cell};
use crate::waiters::events::ring::Ring;
use crate::waiters::stored::{self, ACTUALS, ENCODED, ENCODED_APART, EXTENT_LEN, store_actuals};
use crate::waiters::{Cell, FORM, RING, TEMPLATE, TEMPLATE_BYTES, TEMPLATE_INLINE, cell, turns};

/// Stores a template in a cell that only this caller knows.
///
/// # Errors
///
/// [`Error::SpaceFull`] if a long template finds no room; what cannot be encoded.
pub(crate) fn store_template(
    store: &Store,
    cell: Cell<'_>,
    template: &[TemplateRef<'_>],
) -> Result<(), Error> {
    let view = store.memory.view();
    if let [one] = template
        && (store_actuals(&view, cell, one) || stored::sets::store(&view, cell, one))
    {
        return Ok(());
    }
    let encoded = encode_template_refs(template)
        .map_err(|error| Error::Template(error.to_string().into()))?;
    cell.init(TEMPLATE_BYTES, u32::try_from(encoded.len()).unwrap_or(u32::MAX));
    if encoded.len() <= TEMPLATE_INLINE {
        view.copy_in(view.offset_of(cell) + TEMPLATE, &encoded);
        cell.init(FORM, ENCODED);
        return Ok(());
    }
    provide::retry(store, || store_apart(store, cell, &encoded))
}

pub(crate) fn store_apart(store: &Store, cell: Cell<'_>, encoded: &[u8]) -> Result<(), Error> {
    let count = u32::try_from(encoded.len().div_ceil(EXTENT_BYTES)).unwrap_or(u32::MAX);
    let mut section = Section::enter(&store.memory, head::ARENA_SCOPE)?;
    let cell = section.view().span(section.view().offset_of(cell));
    let first = arena::take_beyond(&mut section, &store.layout, count)?;
    arena::mark_run(&section, &store.layout, first, count, head::CELLS_SCOPE);
    let granule = store.layout.extent_granule(first);
    section.view().copy_in(granule as usize * GRANULE, encoded);
    section.set::<CELL_BYTES>(cell, TEMPLATE, granule);
    section.set(cell, FORM, ENCODED_APART);
    section.commit()?;
    Ok(())
}

/// Frees what a cell's template has outside of the cell.
pub(crate) fn drop_template(store: &Store, cell: Cell<'_>) -> Result<(), Error> {
    if cell.load(FORM) != ENCODED_APART {
        return Ok(());
    }
    provide::retry(store, || {
        let mut section = Section::enter(&store.memory, head::ARENA_SCOPE)?;
        let cell = section.view().span::<CELL_BYTES>(section.view().offset_of(cell));
        let count = cell.load(TEMPLATE_BYTES).div_ceil(EXTENT_LEN);
        let first = store.layout.extent_of(cell.load(TEMPLATE));
        section.set(cell, FORM, ACTUALS);
        section.set(cell, TEMPLATE_BYTES, 0);
        arena::give_back(&mut section, &store.layout, first, count)?;
        section.commit()?;
        Ok(())
    })?;
    turns::tell_first_for_room(store)
}

/// Frees the ring of a cell that is in line no more, if it has one.
pub(crate) fn drop_ring(store: &Store, number: u32) -> Result<(), Error> {
    let view = store.memory.view();
    if Ring::of(&view, cell(&view, number)).is_none() {
        return Ok(());
    }
    provide::retry(store, || {
        let mut section = Section::enter(&store.memory, head::ARENA_SCOPE)?;
        let cell: Cell<'_> = cell(section.view(), number);
        let first = store.layout.extent_of(cell.load(RING));
        let count = arena::entry(section.view(), &store.layout, first).load(arena::LIVE);
        section.set::<CELL_BYTES>(cell, RING, 0);
        arena::give_back(&mut section, &store.layout, first, count)?;
        Ok(section.commit()?)
    })?;
    turns::tell_first_for_room(store)
}

/// Gets a cell for this process.
///
/// # Errors
///
/// [`Error::LimitExceeded`] if the space has its maximum of waiters.
pub(crate) fn claim_cell(store: &Store) -> Result<u32, Error> {
    if let Some(number) = spare_cell(store) {
        return Ok(number);
    }
    abandoned::leave_abandoned(store);
    claim_free_cell(store)
}
