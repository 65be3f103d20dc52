//! Records: the ones in the base list, in the order of their puts, and the ones in somebody's hands.

use std::collections::BTreeMap;

use tupelo_shm::log_run;

use crate::base::error::Error;
use crate::base::layout::head;
use crate::base::want::Want;
use crate::inspect::check::memory::Blocks;
use crate::inspect::check::{Check, contradiction, require};
use crate::store::extension::{self, Extension};
use crate::store::journal;
use crate::store::partition::{self, FIRST, LAST, LAST_STAMP, NEXT_SEQUENCE, Partition};
use crate::store::record::{self, HEADER_BYTES, ImageBuffer};
use crate::store::registry::Kinds;
use crate::store::stamps::STAMPED;
use crate::store::{history, in_flight};
use crate::time::list::{self, List};
use crate::waiters::{self, nodes};

/// Tuples of a shape that somebody has in hands.
#[derive(Clone, Copy, Default)]
pub(super) struct InHands {
    pub(super) records: u32,
    /// Those whose lease ends.
    pub(super) leased: u32,
}

impl Check<'_, '_> {
    /// Walks the base list of `shape`. Returns its records, oldest first.
    pub(super) fn check_records(
        &self,
        blocks: &mut Blocks,
        shape: u32,
        kinds: &Kinds,
    ) -> Result<Vec<u32>, Error> {
        let partition = Partition::of_shape(self.view, shape);
        let next = if self.engine.journal.is_on() {
            journal::next_id(journal::line(self.view))
        } else {
            partition.page().load64(NEXT_SEQUENCE)
        };
        let mut records = Vec::new();
        let (mut previous, mut at, mut sequence) = (0, partition.page().load(FIRST), None);
        while at != 0 {
            // Claiming each block once also ends a list that leads back into itself.
            self.claim_record(blocks, at, shape, kinds, "a record")?;
            let header = record::header(self.view, at);
            let state = header.load(record::STATE);
            require(state == record::LIVE, || {
                format!("record {at} of shape {shape} is in the base list in state {state}")
            })?;
            require(header.load(record::PREVIOUS) == previous, || {
                format!("record {at} of shape {shape} does not lead back to {previous}")
            })?;
            let own = header.load64(record::SEQUENCE);
            let is_given =
                own < next || own & STAMPED != 0 && own <= partition.page().load64(LAST_STAMP);
            require(Some(own) > sequence && is_given, || {
                format!("record {at} of shape {shape} has number {own} after {sequence:?}")
            })?;
            records.push(at);
            (previous, at, sequence) = (at, header.load(record::NEXT), Some(own));
        }
        require(partition.page().load(LAST) == previous, || {
            format!("the base list of shape {shape} ends at {previous}, not where it says")
        })?;
        let live = partition.page().load(partition::LIVE);
        require(live as usize == records.len(), || {
            format!("shape {shape} counts {live} records, its base list has {}", records.len())
        })?;
        Ok(records)
    }

    /// A record's block, extension and image are sound.
    pub(super) fn claim_record(
        &self,
        blocks: &mut Blocks,
        reference: u32,
        shape: u32,
        kinds: &Kinds,
        what: &str,
    ) -> Result<(), Error> {
        let header = record::header(self.view, reference);
        let scope = partition::scope_of(shape);
        let bytes = HEADER_BYTES + record::image_bytes(header);
        let is_inside = record::is_extended_inside(header);
        let block_bytes = if is_inside { extension::bytes_with(bytes) } else { bytes };
        blocks.claim(reference, scope, block_bytes, || format!("{what} of shape {shape}"))?;
        let (own, _) = record::shape_of(header);
        require(own == shape, || format!("record {reference} of shape {shape} says shape {own}"))?;
        let extension = header.load(record::EXTENSION);
        if extension != 0 {
            let user = || format!("the extension of record {reference}");
            if !is_inside {
                blocks.claim(extension, scope, extension::EXTENSION_BYTES, user)?;
            }
            let extension: Extension<'_> = self.view.at(extension);
            let history = extension.load(extension::HISTORY);
            if history != 0 {
                let user = || format!("the history of record {reference}");
                blocks.claim(history, scope, history::block_bytes(self.view, history), user)?;
            }
        }
        if header.load(record::STATE) == record::RESERVED {
            return Ok(()); // Its image is not written yet.
        }
        let mut copy = ImageBuffer::new();
        let tuple = copy.copy(self.view, reference, kinds.as_slice());
        let readable = (0..kinds.as_slice().len()).all(|index| tuple.field(index).is_some());
        require(readable, || format!("record {reference} of shape {shape} has a damaged image"))
    }

    /// Records in the hands of waiters and threads, and what else threads have. Returns how many per shape
    /// count as held.
    pub(super) fn check_held(&self, blocks: &mut Blocks) -> Result<BTreeMap<u32, InHands>, Error> {
        let mut held = BTreeMap::new();
        for number in 1..=nodes::used(self.view) {
            let node = waiters::node(self.view, number);
            let reference = node.load(waiters::RECORD);
            if node.load(waiters::STATE) == waiters::FREE || reference == 0 {
                continue;
            }
            let state = record::header(self.view, reference).load(record::STATE);
            require(state == record::HANDED, || {
                format!("waiter {number} was handed record {reference} in state {state}")
            })?;
            // A reader has a copy, which is no tuple of the space.
            let is_reader = node.load(waiters::WANT) == Want::Read.number();
            let mut copies = BTreeMap::new();
            self.claim_held(blocks, reference, if is_reader { &mut copies } else { &mut held })?;
        }
        for slot in self.engine.memory.slots() {
            for word in in_flight::words() {
                match in_flight::named(slot, word) {
                    0 => {}
                    reference => self.check_in_flight(blocks, reference, &mut held)?,
                }
            }
            if let Some(granule) = log_run(slot) {
                blocks.claim(granule, head::ARENA_SCOPE, 0, || "a thread's log".into())?;
            }
        }
        for shape in 0..self.shapes {
            let partition = Partition::of_shape(self.view, shape);
            for list in [List::Claimed, List::Enlisted] {
                for (reference, _) in list::records(self.view, partition, list) {
                    self.claim_held(blocks, reference, &mut held)?;
                }
            }
        }
        Ok(held)
    }

    fn check_in_flight(
        &self,
        blocks: &mut Blocks,
        reference: u32,
        held: &mut BTreeMap<u32, InHands>,
    ) -> Result<(), Error> {
        match record::header(self.view, reference).load(record::STATE) {
            record::TAKEN => self.claim_held(blocks, reference, held),
            // On its way in, or a copy: no tuple of the space.
            record::RESERVED | record::COPIED => {
                self.claim_held(blocks, reference, &mut BTreeMap::new())
            }
            state => Err(contradiction(format!(
                "a thread has record {reference} in its hands in state {state}"
            ))),
        }
    }

    fn claim_held(
        &self,
        blocks: &mut Blocks,
        reference: u32,
        held: &mut BTreeMap<u32, InHands>,
    ) -> Result<(), Error> {
        let (shape, _) = record::shape_of(record::header(self.view, reference));
        require(shape < self.shapes, || {
            format!("record {reference} in somebody's hands says shape {shape}")
        })?;
        let marks = crate::index::links::linked(self.view, reference);
        require(marks == 0, || {
            format!("record {reference} in somebody's hands is marked as indexed: {marks:#b}")
        })?;
        self.claim_record(blocks, reference, shape, &self.kinds(shape)?, "a held record")?;
        let in_hands = held.entry(shape).or_default();
        in_hands.records += 1;
        in_hands.leased += u32::from(self.lease_ends(reference));
        Ok(())
    }
}
