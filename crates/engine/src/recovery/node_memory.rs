//! What the wait node of a waiter has outside of itself: a long template, the ring of a subscription; and the wait node itself.

use tupelo_shm::{GRANULE, Section};
use tupelo_tuple::{TemplateRef, encode_template_refs};

use crate::base::error::Error;
use crate::base::layout::{EXTENT_BYTES, NODE_BYTES, head};
use crate::recovery::{abandoned, provide};
use crate::store::{Store, arena};
use crate::waiters::events::ring::Ring;
use crate::waiters::nodes::{cached_node, claim_free_node};
use crate::waiters::stored::{self, ACTUALS, ENCODED, ENCODED_APART, EXTENT_LEN, store_actuals};
use crate::waiters::{
    FORM, RING, TEMPLATE, TEMPLATE_BYTES, TEMPLATE_INLINE, WaitNode, grants, node,
};

/// Stores a template in a wait node that only this caller knows.
///
/// # Errors
///
/// [`Error::SpaceFull`] if a long template finds no room; what cannot be encoded.
pub(crate) fn store_template(
    store: &Store,
    node: WaitNode<'_>,
    template: &[TemplateRef<'_>],
) -> Result<(), Error> {
    let view = store.memory.view();
    if let [one] = template
        && (store_actuals(&view, node, one) || stored::sets::store(&view, node, one))
    {
        return Ok(());
    }
    let encoded = encode_template_refs(template)
        .map_err(|error| Error::Template(error.to_string().into()))?;
    node.init(TEMPLATE_BYTES, u32::try_from(encoded.len()).unwrap_or(u32::MAX));
    if encoded.len() <= TEMPLATE_INLINE {
        view.copy_in(view.offset_of(node) + TEMPLATE, &encoded);
        node.init(FORM, ENCODED);
        return Ok(());
    }
    provide::retry(store, || store_apart(store, node, &encoded))
}

pub(crate) fn store_apart(store: &Store, node: WaitNode<'_>, encoded: &[u8]) -> Result<(), Error> {
    let count = u32::try_from(encoded.len().div_ceil(EXTENT_BYTES)).unwrap_or(u32::MAX);
    let mut section = Section::enter(&store.memory, head::ARENA_SCOPE)?;
    let node = section.view().span(section.view().offset_of(node));
    let first = arena::take_beyond(&mut section, &store.layout, count)?;
    arena::mark_run(&section, &store.layout, first, count, head::NODES_SCOPE);
    let granule = store.layout.extent_granule(first);
    section.view().copy_in(granule as usize * GRANULE, encoded);
    section.set::<NODE_BYTES>(node, TEMPLATE, granule);
    section.set(node, FORM, ENCODED_APART);
    section.commit()?;
    Ok(())
}

/// Frees what a wait node's template has outside of the wait node.
pub(crate) fn drop_template(store: &Store, node: WaitNode<'_>) -> Result<(), Error> {
    if node.load(FORM) != ENCODED_APART {
        return Ok(());
    }
    provide::retry(store, || {
        let mut section = Section::enter(&store.memory, head::ARENA_SCOPE)?;
        let node = section.view().span::<NODE_BYTES>(section.view().offset_of(node));
        let count = node.load(TEMPLATE_BYTES).div_ceil(EXTENT_LEN);
        let first = store.layout.extent_of(node.load(TEMPLATE));
        section.set(node, FORM, ACTUALS);
        section.set(node, TEMPLATE_BYTES, 0);
        arena::give_back(&mut section, &store.layout, first, count)?;
        section.commit()?;
        Ok(())
    })?;
    grants::grant_to_first(store)
}

/// Frees the ring of a wait node that is in the wait queue no more, if it has one.
pub(crate) fn drop_ring(store: &Store, number: u32) -> Result<(), Error> {
    let view = store.memory.view();
    if Ring::of(&view, node(&view, number)).is_none() {
        return Ok(());
    }
    provide::retry(store, || {
        let mut section = Section::enter(&store.memory, head::ARENA_SCOPE)?;
        let node: WaitNode<'_> = node(section.view(), number);
        let first = store.layout.extent_of(node.load(RING));
        let count = arena::entry(section.view(), &store.layout, first).load(arena::LIVE);
        section.set::<NODE_BYTES>(node, RING, 0);
        arena::give_back(&mut section, &store.layout, first, count)?;
        Ok(section.commit()?)
    })?;
    grants::grant_to_first(store)
}

/// Gets a wait node for this process.
///
/// # Errors
///
/// [`Error::LimitExceeded`] if the space has its maximum of waiters.
pub(crate) fn claim_node(store: &Store) -> Result<u32, Error> {
    if let Some(number) = cached_node(store) {
        return Ok(number);
    }
    abandoned::leave_abandoned(store);
    claim_free_node(store)
}
