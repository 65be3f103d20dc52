//! Subscriptions: each has a ring of its own, with events in the order of their numbers.

use tupelo_shm::CopyBuffer;
use tupelo_tuple::TupleView;

use crate::base::error::Error;
use crate::base::layout::head;
use crate::inspect::check::memory::Blocks;
use crate::inspect::check::{Check, require};
use crate::waiters::events::ring::Ring;
use crate::waiters::{self, FREE, RING, STATE, chain, nodes};

impl Check<'_, '_> {
    /// Checks the rings of all subscriptions, also of those that are not in the wait queue yet, or any more.
    pub(super) fn check_events(&self, blocks: &mut Blocks) -> Result<(), Error> {
        for number in 1..=nodes::used(self.view) {
            let node = waiters::node(self.view, number);
            if node.load(STATE) == FREE || !chain::is_subscription(node) {
                continue;
            }
            if let Some(ring) = Ring::of(self.view, node) {
                let user = || format!("the ring of subscription {number}");
                let block = node.load(RING).wrapping_sub(1);
                blocks.claim(block, head::NODE_MEMORY_SCOPE, ring.bytes(), user)?;
                self.check_ring_of(number, ring)?;
            }
        }
        Ok(())
    }

    fn check_ring_of(&self, number: u32, ring: Ring<'_>) -> Result<(), Error> {
        let (count, most) = (ring.count(), ring.events_max());
        require(count <= most, || {
            format!("subscription {number} has {count} events where {most} may be")
        })?;
        let events = ring.all(self.view);
        require(events.len() == count as usize, || {
            format!("subscription {number} counts {count} events, {} are sound", events.len())
        })?;
        let mut before = 0;
        for (event, _) in &events {
            let sequence = event.sequence;
            require(before < sequence && sequence < ring.next(), || {
                format!("subscription {number} has event {sequence} after {before}")
            })?;
            before = sequence;
            let kinds = self.kinds(event.shape)?;
            let mut buffer = CopyBuffer::new();
            let image = event.copy(&mut buffer, self.view);
            let tuple = TupleView::new(kinds.as_slice(), image, event.wide);
            let readable = (0..kinds.as_slice().len()).all(|index| tuple.field(index).is_some());
            require(readable, || {
                format!("event {sequence} of subscription {number} has a damaged image")
            })?;
        }
        Ok(())
    }
}
