//! Waiters: every wait node is free or somebody's, and in the wait queue at most once.

use std::collections::{BTreeMap, BTreeSet};

use tupelo_shm::GRANULE;

use crate::base::error::Error;
use crate::base::layout::{WAITERS_MAX, head};
use crate::inspect::check::memory::Blocks;
use crate::inspect::check::{Check, require};
use crate::store::partition::{Partition, WAITER_MASKS_MAX, WAITER_TABLE};
use crate::waiters::chain::{self, Counts};
use crate::waiters::{
    self, FREE, FREE_NEXT, LINKED, MASK, OWNED, OWNER, PREVIOUS, RECORD, SCOPE, STATE, TAG,
    WaitNode, nodes, stored,
};

/// The wait nodes that say they are in the wait queue, by the scope of their lock.
pub(super) type Filed = BTreeMap<u32, BTreeSet<u32>>;

impl<'m> Check<'_, 'm> {
    /// Checks every wait node for itself.
    pub(super) fn check_nodes(&self) -> Result<Filed, Error> {
        let line = self.view.span::<64>(head::NODES);
        let used = line.load(nodes::USED);
        require(used as usize <= WAITERS_MAX, || format!("{used} nodes are in use"))?;
        let mut free = BTreeSet::new();
        let mut at = line.load(nodes::FIRST_FREE);
        while at != 0 {
            let node = waiters::node(self.view, at);
            let sound = at <= used && node.load(STATE) == FREE && node.load(OWNER) == 0;
            require(sound && free.insert(at), || {
                format!("the free list of the nodes comes to node {at}, or again")
            })?;
            at = node.load(FREE_NEXT);
        }
        let mut filed = Filed::new();
        for number in 1..=used {
            let node = waiters::node(self.view, number);
            let (state, owner) = (node.load(STATE), node.load(OWNER));
            let sound = match state {
                FREE => free.contains(&number),
                OWNED => owner != 0,
                LINKED => owner != 0 && node.load(RECORD) == 0,
                _ => false,
            };
            require(sound, || {
                format!("node {number} of participant {owner} - 1 is in state {state}")
            })?;
            if state == LINKED {
                filed.entry(node.load(SCOPE)).or_default().insert(number);
            }
        }
        let scopes: BTreeSet<u32> = (0..self.shapes)
            .map(crate::store::partition::scope_of)
            .chain([head::MULTI_SHAPE_SCOPE])
            .collect();
        let stray = filed.keys().find(|scope| !scopes.contains(scope));
        require(stray.is_none(), || format!("a node is in the wait queue under scope {stray:?}"))?;
        Ok(filed)
    }

    /// The waiters in the wait queue at one shape are in the chains of their tags, and counted.
    pub(super) fn check_waiting(
        &self,
        blocks: &mut Blocks,
        shape: u32,
        filed: &Filed,
    ) -> Result<Counts, Error> {
        let partition = Partition::of_shape(self.view, shape);
        let table = partition.page().load(WAITER_TABLE);
        let mut found = BTreeSet::new();
        let mut by_mask: BTreeMap<u32, u32> = BTreeMap::new();
        if table != 0 {
            let user = || format!("the waiters' table of shape {shape}");
            blocks.claim(table, partition.scope(), chain::TABLE_BYTES, user)?;
            for number in 0..chain::CHAINS {
                let nodes = chain::filed(self.view, partition, number);
                for (_, node) in Self::check_chain(nodes, partition.scope(), &mut found)? {
                    *by_mask.entry(node.load(MASK)).or_default() += 1;
                    require(node.load(TAG) % chain::CHAINS == number, || {
                        format!("a node of shape {shape} stands in chain {number} of another tag")
                    })?;
                }
            }
        }
        let expected = filed.get(&partition.scope()).cloned().unwrap_or_default();
        require(found == expected, || {
            format!("shape {shape} has the nodes {found:?} in the wait queue, not {expected:?}")
        })?;
        Self::check_masks(shape, partition, &by_mask)?;
        let kinds = self.kinds(shape)?;
        require(chain::knows_the_multi_shape(self.view, partition, &kinds), || {
            format!("shape {shape} passes over a multi-shape waiter that could match")
        })?;
        self.check_counts(&found, chain::counts(partition), &format!("shape {shape}"))
    }

    /// The waiters in the wait queue for several shapes are in their one chain, and counted.
    pub(super) fn check_multi_shape(&self, filed: &Filed) -> Result<Counts, Error> {
        let mut found = BTreeSet::new();
        Self::check_chain(chain::multi_shape(self.view), head::MULTI_SHAPE_SCOPE, &mut found)?;
        let for_room =
            Self::check_chain(chain::for_room(self.view), head::MULTI_SHAPE_SCOPE, &mut found)?;
        let counted = chain::waiting_for_room(self.view) as usize;
        require(counted == for_room.len(), || {
            format!(
                "{counted} are counted in the wait queue for room, {} are there",
                for_room.len()
            )
        })?;
        let expected = filed.get(&head::MULTI_SHAPE_SCOPE).cloned().unwrap_or_default();
        require(found == expected, || {
            format!(
                "the nodes {found:?} are in the wait queue for several shapes, not {expected:?}"
            )
        })?;
        self.check_counts(&found, chain::multi_shape_counts(self.view), "several shapes")
    }

    /// A chain is doubly linked and holds wait nodes in the wait queue under `scope`, each once.
    fn check_chain(
        nodes: impl Iterator<Item = (u32, WaitNode<'m>)>,
        scope: u32,
        found: &mut BTreeSet<u32>,
    ) -> Result<Vec<(u32, WaitNode<'m>)>, Error> {
        let mut all = Vec::new();
        let mut previous = 0;
        for (number, node) in nodes {
            let sound = node.load(STATE) == LINKED
                && node.load(SCOPE) == scope
                && node.load(PREVIOUS) == previous
                && found.insert(number);
            require(sound, || {
                format!("the chain of scope {scope} comes from node {previous} to {number} wrongly")
            })?;
            previous = number;
            all.push((number, node));
        }
        Ok(all)
    }

    fn check_masks(
        shape: u32,
        partition: Partition<'m>,
        by_mask: &BTreeMap<u32, u32>,
    ) -> Result<(), Error> {
        let mut counted: BTreeMap<u32, u32> = BTreeMap::new();
        for number in 0..WAITER_MASKS_MAX {
            let (mask, count) = chain::mask_entry(number);
            let (mask, count) = (partition.page().load(mask), partition.page().load(count));
            if count != 0 {
                require(counted.insert(mask, count).is_none(), || {
                    format!("shape {shape} counts waiters by mask {mask:#x} twice")
                })?;
            }
        }
        require(counted == *by_mask, || {
            format!("shape {shape} counts waiters by mask {counted:?}, they are {by_mask:?}")
        })
    }

    fn check_counts(
        &self,
        found: &BTreeSet<u32>,
        counted: Counts,
        whose: &str,
    ) -> Result<Counts, Error> {
        let number = |which: fn(WaitNode<'m>) -> bool| {
            let those = found.iter().filter(|number| which(waiters::node(self.view, **number)));
            u32::try_from(those.count()).unwrap_or(u32::MAX)
        };
        let there_are = Counts {
            all: number(|_| true),
            watching_removals: number(chain::watches_removals),
            subscribed: number(chain::is_subscription),
        };
        require(counted == there_are, || {
            format!("{whose} counts in the wait queue {counted:?}, there are {there_are:?}")
        })?;
        Ok(there_are)
    }

    /// Templates that are too long for their wait nodes lie in blocks of their own.
    pub(super) fn claim_templates(&self, blocks: &mut Blocks) -> Result<(), Error> {
        for number in 1..=nodes::used(self.view) {
            let node = waiters::node(self.view, number);
            if let Some((granule, bytes)) = stored::apart(node)
                && node.load(STATE) != FREE
            {
                let user = || format!("the template of waiter {number}");
                let (block, bytes) = (granule.wrapping_sub(1), bytes + GRANULE);
                blocks.claim(block, head::NODE_MEMORY_SCOPE, bytes, user)?;
            }
        }
        Ok(())
    }
}
