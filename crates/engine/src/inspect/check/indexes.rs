//! Indexes: each holds exactly the records that it should, each key's in one ring, oldest first.

use std::collections::BTreeMap;

use tupelo_shm::GRANULE;

use crate::base::error::Error;
use crate::index::links::{self, WALKING};
use crate::index::{
    self, BUCKETS, BUILDING, CURSOR, DROPPING, Index, KEYS, LEVEL, MASK, NONE, READY, SEGMENTS,
    SEGMENTS_MAX, STATE, ring, table,
};
use crate::inspect::check::memory::Blocks;
use crate::inspect::check::{Check, require};
use crate::store::partition::{INDEX_SET, INDEXES_MAX, Partition};
use crate::store::registry::Kinds;
use crate::store::{key, record};

impl<'m> Check<'_, 'm> {
    /// Checks the indexes of `shape`, whose base list holds `records`. Returns of each ready one over how
    /// many fields it is.
    pub(super) fn check_indexes(
        &self,
        blocks: &mut Blocks,
        shape: u32,
        kinds: &Kinds,
        records: &[u32],
    ) -> Result<Vec<u32>, Error> {
        let partition = Partition::of_shape(self.view, shape);
        let mut ready = Vec::new();
        let (mut ready_set, mut walking_set) = (0, 0);
        for slot in 0..INDEXES_MAX {
            let index = index::at(partition, slot);
            let state = index.words.load(STATE);
            match state {
                NONE => {}
                READY => {
                    ready_set |= 1 << slot;
                    ready.push(index.words.load(MASK).count_ones());
                }
                BUILDING | DROPPING => walking_set |= 1 << slot,
                _ => {
                    require(false, || {
                        format!("index {slot} of shape {shape} is in state {state}")
                    })?;
                }
            }
            let linked = self.check_marks(shape, index, records)?;
            if matches!(state, READY | BUILDING) {
                Self::claim_segments(blocks, shape, partition, index)?;
                self.check_rings(shape, kinds, index, &linked)?;
            }
        }
        let sets = (partition.page().load(INDEX_SET), partition.page().load(WALKING));
        require(sets == (ready_set, walking_set), || {
            format!(
                "shape {shape} says of its indexes {sets:?}, not {ready_set:b}, {walking_set:b}"
            )
        })?;
        Ok(ready)
    }

    /// The marks in the records say what the state and the cursor of the index say. Returns the records
    /// that are linked.
    fn check_marks(
        &self,
        shape: u32,
        index: Index<'m>,
        records: &[u32],
    ) -> Result<Vec<u32>, Error> {
        let state = index.words.load(STATE);
        let cursor = index.words.load(CURSOR);
        let position = match state {
            BUILDING | DROPPING if cursor != 0 => {
                let position = records.iter().position(|reference| *reference == cursor);
                require(position.is_some(), || {
                    format!("the cursor of index {} of shape {shape} is at no record", index.slot)
                })?;
                position.unwrap_or(0)
            }
            _ => records.len(),
        };
        let mut linked = Vec::new();
        for (number, reference) in records.iter().enumerate() {
            let marked = links::linked(self.view, *reference) >> index.slot & 1 == 1;
            let right = match state {
                READY => marked,
                BUILDING => marked == (number < position),
                // Behind the cursor old ones still carry the mark, later ones never had it.
                DROPPING => !marked || number >= position,
                _ => !marked,
            };
            require(right, || {
                format!(
                    "record {reference} of shape {shape} is marked {marked} for index {} in state \
                     {state}, number {number}, cursor at {position}",
                    index.slot
                )
            })?;
            if marked {
                linked.push(*reference);
            }
        }
        Ok(linked)
    }

    fn claim_segments(
        blocks: &mut Blocks,
        shape: u32,
        partition: Partition<'m>,
        index: Index<'m>,
    ) -> Result<(), Error> {
        let buckets = index.words.load(BUCKETS);
        require(buckets >= table::BUCKETS_MIN, || {
            format!("index {} of shape {shape} has {buckets} buckets", index.slot)
        })?;
        let level = index.words.load(LEVEL);
        require(level == table::level_of(buckets), || {
            format!(
                "index {} of shape {shape} has level {level:#x}, with {buckets} buckets",
                index.slot
            )
        })?;
        for segment in 0..SEGMENTS_MAX {
            let first_bucket = if segment == 0 { 0 } else { 1_u64 << (segment + 2) };
            let lines = if segment == 0 { table::BUCKETS_MIN as usize } else { 1 << (segment + 2) };
            let block = index.words.load(SEGMENTS + 4 * segment);
            require((block != 0) == (first_bucket < u64::from(buckets)), || {
                format!(
                    "index {} of shape {shape} has segment {segment} at {block} with {buckets} buckets",
                    index.slot
                )
            })?;
            if block != 0 {
                let user = || format!("segment {segment} of index {} of shape {shape}", index.slot);
                blocks.claim(block, partition.scope(), lines * GRANULE, user)?;
            }
        }
        Ok(())
    }

    /// Every linked record is in the one ring of its key, which the table leads to; nothing else is.
    fn check_rings(
        &self,
        shape: u32,
        kinds: &Kinds,
        index: Index<'m>,
        linked: &[u32],
    ) -> Result<(), Error> {
        let mask = index.words.load(MASK);
        let seed = self.engine.seed;
        let mut by_tag: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for reference in linked {
            let tag = key::tag_of_record(self.view, *reference, kinds.as_slice(), mask, seed);
            let stored = record::link(self.view, *reference, index.slot).load(record::TAG);
            require(tag == stored, || {
                format!("record {reference} of shape {shape} has tag {stored:#x}, not {tag:#x}")
            })?;
            by_tag.entry(tag).or_default().push(*reference);
        }
        for (tag, members) in &by_tag {
            self.check_ring(shape, index, *tag, members)?;
        }
        let mut leaders = 0;
        for bucket in 0..index.words.load(BUCKETS) {
            for (tag, leader) in table::entries_of(self.view, index, bucket) {
                leaders += 1;
                let leads = by_tag.get(&tag).is_some_and(|members| members[0] == leader);
                require(leads && table::is_in_bucket(index, tag, bucket), || {
                    format!(
                        "bucket {bucket} of index {} of shape {shape} leads to record {leader} by tag \
                         {tag:#x}, where it does not belong",
                        index.slot
                    )
                })?;
            }
        }
        let keys = index.words.load(KEYS) as usize;
        require(leaders == by_tag.len() && keys == leaders, || {
            format!(
                "index {} of shape {shape} counts {keys} keys, leads to {leaders}, should to {}",
                index.slot,
                by_tag.len()
            )
        })
    }

    fn check_ring(
        &self,
        shape: u32,
        index: Index<'m>,
        tag: u32,
        members: &[u32],
    ) -> Result<(), Error> {
        let leader = table::find(self.view, index, tag).map_or(0, table::Place::leader);
        require(leader == members[0], || {
            format!(
                "index {} of shape {shape} leads by tag {tag:#x} to {leader}, not to {}",
                index.slot, members[0]
            )
        })?;
        let after = members.iter().cycle().skip(1);
        for (member, next) in members.iter().zip(after) {
            let (forth, back) =
                (ring::next(self.view, index, *member), ring::previous(self.view, index, *next));
            require(forth == *next && back == *member, || {
                format!(
                    "in index {} of shape {shape}, record {member} is followed by {forth}, and {next} \
                     preceded by {back}",
                    index.slot
                )
            })?;
        }
        Ok(())
    }
}
