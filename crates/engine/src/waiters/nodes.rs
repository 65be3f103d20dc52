//! Which wait nodes are free, and the one that a process keeps at hand.

use tupelo_shm::{Section, Span, View, headroom};

use super::{
    FREE, FREE_NEXT, HAND_OFF_MS, OWNED, OWNER, PICK_UP_MS, RECORD, RING, SCOPE, SIGNAL, STATE,
    WAKES, WaitNode, node, wake,
};
use crate::base::error::Error;
use crate::base::layout::{self, NODE_BYTES, PAGE, WAITERS_COUNT_MAX, WAITERS_MAX, head};
use crate::store::Store;

/// Words of the wait nodes' line: wait nodes ever used, first free one.
type WaitNodesLine<'m> = Span<'m, 64>;
pub(crate) const USED: usize = 0;
pub(crate) const FIRST_FREE: usize = 4;

pub(crate) fn line<'m>(section: &Section<'m>) -> WaitNodesLine<'m> {
    section.view().span(head::NODES)
}

/// How many wait nodes were ever used.
pub(crate) fn used(view: &View<'_>) -> u32 {
    let line: WaitNodesLine<'_> = view.span(head::NODES);
    line.load(USED).min(WAITERS_COUNT_MAX)
}

/// Whether who wants a wait node needs a page more: there is none that is free, and the next is the first of its page. A hint, unless the
/// wait nodes are locked.
fn lacks_page(view: &View<'_>) -> bool {
    let line: WaitNodesLine<'_> = view.span(head::NODES);
    line.load(FIRST_FREE) == 0 && layout::node(line.load(USED)).is_multiple_of(PAGE)
}

/// The wait node that is at hand, cleared for its next use.
pub(crate) fn cached_node(store: &Store) -> Option<u32> {
    let number = store.cached_node.take()?;
    clear(node(&store.memory.view(), number));
    Some(number)
}

/// As [`crate::recovery::node_memory::claim_node`], of those that are free.
pub(crate) fn claim_free_node(store: &Store) -> Result<u32, Error> {
    if lacks_page(&store.memory.view()) {
        // Before the lock: it reads files.
        headroom::refresh();
    }
    let mut section = Section::enter(&store.memory, head::NODES_SCOPE)?;
    let line = line(&section);
    let free = line.load(FIRST_FREE);
    let number = if free == 0 {
        add_node(store, &mut section)?
    } else {
        let after = node(section.view(), free).load(FREE_NEXT);
        section.set(line, FIRST_FREE, after);
        free
    };
    let node = node(section.view(), number);
    // A free wait node means nothing but its link: no log (R2).
    clear(node);
    let owner = section.thread().participant() + 1;
    section.set(node, OWNER, owner);
    section.set(node, STATE, OWNED);
    section.commit()?;
    Ok(number)
}

fn add_node(store: &Store, section: &mut Section<'_>) -> Result<u32, Error> {
    let line = line(section);
    let used = line.load(USED);
    if used as usize >= WAITERS_MAX {
        return Err(Error::LimitExceeded {
            what: "blocked callers in one space",
            limit: WAITERS_MAX,
        });
    }
    let offset = layout::node(used);
    if offset.is_multiple_of(PAGE) {
        // The first wait node of a page: the page may not be there yet. With the next one, for who comes when the system gives no
        // more memory.
        let mapping = store.memory.mapping();
        let with_next = mapping.commit(offset..offset + 2 * PAGE);
        with_next.or_else(|_| mapping.commit_few(offset..offset + PAGE))?;
    }
    section.set(line, USED, used + 1);
    Ok(used + 1)
}

/// Gives a wait node of this process back, or keeps it for its next wait. It is linked nowhere and holds no record.
pub(crate) fn release_node(store: &Store, number: u32) -> Result<(), Error> {
    if store.cached_node.keep(number) { Ok(()) } else { free_node(store, number) }
}

/// Gives a wait node back that is linked nowhere and holds no record.
pub(crate) fn free_node(store: &Store, number: u32) -> Result<(), Error> {
    let mut section = Section::enter(&store.memory, head::NODES_SCOPE)?;
    let line = line(&section);
    let node = node(section.view(), number);
    node.init(FREE_NEXT, line.load(FIRST_FREE));
    section.set(node, OWNER, 0);
    section.set(node, STATE, FREE);
    section.set(line, FIRST_FREE, number);
    section.commit()?;
    Ok(())
}

/// Raises the signal of every wait node of this process.
pub(crate) fn rouse_own(store: &Store) -> Result<(), Error> {
    let section = Section::enter(&store.memory, head::NODES_SCOPE)?;
    let owner = section.thread().participant() + 1;
    let is_own = |number: &u32| node(section.view(), *number).load(OWNER) == owner;
    let own: Vec<u32> = (1..=used(section.view())).filter(is_own).collect();
    section.finish()?;
    for number in own {
        wake::notify(store, number);
    }
    Ok(())
}

/// Forgets what a wait node was last used for.
fn clear(node: WaitNode<'_>) {
    node.init(RECORD, 0);
    node.init(SIGNAL, crate::base::signal::AWAKE);
    node.init(WAKES, 0);
    node.init(SCOPE, 0);
    node.init(RING, 0);
    node.init64(HAND_OFF_MS, 0);
    node.init64(PICK_UP_MS, 0);
}

/// Gives back the wait node that the process keeps at hand.
pub(crate) fn free_cached(store: &Store) {
    if let Some(number) = store.cached_node.take() {
        // A failure means that the space is damaged or stalled. The wait node is free when this process ends.
        let _ = free_node(store, number);
    }
}

const _: () = assert!(PAGE.is_multiple_of(NODE_BYTES));
