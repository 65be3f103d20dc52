//! What the wait node of a waiter has outside of itself: a long template, the ring of a subscription; and the wait node itself.
//!
//! Both are blocks of a partition that has no tuples, with a lock of its own. Extents of their own would be more than most
//! of them need.

use tupelo_shm::{GRANULE, Section};
use tupelo_tuple::{TemplateRef, encode_template_refs};

use crate::base::error::Error;
use crate::base::layout::{NODE_BYTES, head};
use crate::recovery::{abandoned, provide};
use crate::store::partition::Partition;
use crate::store::{Store, blocks, record, sizes};
use crate::waiters::events::ring::{self, Ring};
use crate::waiters::nodes::{cached_node, claim_free_node};
use crate::waiters::stored::{self, ACTUALS, ENCODED, ENCODED_APART, store_actuals};
use crate::waiters::{
    FORM, RING, TEMPLATE, TEMPLATE_BYTES, TEMPLATE_INLINE, WaitNode, grants, node,
};

/// Granules of a block before what is kept in it: the first has the words of the allocator.
const HEADER_GRANULES: u32 = 1;

/// Locks the partition that these blocks belong to.
fn enter(store: &Store) -> Result<(Section<'_>, Partition<'_>), Error> {
    let section = Section::enter(&store.memory, head::NODE_MEMORY_SCOPE)?;
    let partition = Partition::of_scope(section.view(), head::NODE_MEMORY_SCOPE);
    Ok((section, partition))
}

/// Marks a block, just allocated, as one of these. Returns the granule behind its header.
fn inside(section: &mut Section<'_>, block: u32) -> u32 {
    let first = blocks::start(section.view(), block);
    section.set(first, record::STATE, record::NODE_MEMORY);
    block + HEADER_GRANULES
}

/// Frees the block that has `granule` behind its header.
fn free<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    granule: u32,
) -> Result<(), Error> {
    blocks::free(section, &store.layout, partition, granule.wrapping_sub(HEADER_GRANULES))
}

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

fn store_apart(store: &Store, node: WaitNode<'_>, encoded: &[u8]) -> Result<(), Error> {
    let (mut section, partition) = enter(store)?;
    let node = section.view().span(section.view().offset_of(node));
    let bytes = HEADER_GRANULES as usize * GRANULE + encoded.len();
    let block = blocks::allocate_beyond(&mut section, &store.layout, partition, bytes)?;
    let granule = inside(&mut section, block);
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
        let (mut section, partition) = enter(store)?;
        let node = section.view().span::<NODE_BYTES>(section.view().offset_of(node));
        let granule = node.load(TEMPLATE);
        section.set(node, FORM, ACTUALS);
        section.set(node, TEMPLATE_BYTES, 0);
        free(store, &mut section, partition, granule)?;
        section.commit()?;
        Ok(())
    })?;
    grants::grant_to_first(store)
}

/// Gets a ring of so many bytes, or some more, for a wait node that is not in the wait queue yet.
///
/// # Errors
///
/// [`Error::SpaceFull`] if there is no room.
pub(crate) fn add_ring(
    store: &Store,
    number: u32,
    events_max: u32,
    bytes: usize,
) -> Result<(), Error> {
    let bytes = sizes::whole_bytes(bytes);
    provide::retry(store, || {
        let (mut section, partition) = enter(store)?;
        let block = blocks::allocate(&mut section, &store.layout, partition, bytes)?;
        let granule = inside(&mut section, block);
        ring::fill(section.view(), granule, bytes, events_max);
        let node: WaitNode<'_> = node(section.view(), number);
        section.set::<NODE_BYTES>(node, RING, granule);
        Ok(section.commit()?)
    })
}

/// Frees the ring of a wait node that is in the wait queue no more, if it has one.
pub(crate) fn drop_ring(store: &Store, number: u32) -> Result<(), Error> {
    let view = store.memory.view();
    if Ring::of(&view, node(&view, number)).is_none() {
        return Ok(());
    }
    provide::retry(store, || {
        let (mut section, partition) = enter(store)?;
        let node: WaitNode<'_> = node(section.view(), number);
        let granule = node.load(RING);
        section.set::<NODE_BYTES>(node, RING, 0);
        free(store, &mut section, partition, granule)?;
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
