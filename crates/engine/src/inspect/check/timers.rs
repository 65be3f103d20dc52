//! What waits for its time: every timer stands in the wheel where it belongs, and what should have one does.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::error::Error;
use crate::inspect::check::memory::Blocks;
use crate::inspect::check::records::InHands;
use crate::inspect::check::{Check, contradiction, require};
use crate::store::extension::{self, LEASE_END_MS};
use crate::store::partition::{self, DEAD_COUNT, DELAYED_COUNT, LEASED_COUNT, Partition, WHEEL};
use crate::store::record;
use crate::store::registry::Kinds;
use crate::time::list::{self, List};
use crate::time::{holds, wheel};
use crate::waiters::hand_off;

impl Check<'_, '_> {
    /// The claimed, the dead and the delayed records of `shape`, and its wheel. `live` are those in the base list, and
    /// others are in hands. Returns how many are dead.
    pub(super) fn check_timers(
        &self,
        blocks: &mut Blocks,
        shape: u32,
        kinds: &Kinds,
        (live, in_hands): (&[u32], InHands),
    ) -> Result<u64, Error> {
        let partition = Partition::of_shape(self.view, shape);
        let wheel_block = partition.page().load(WHEEL);
        if wheel_block != 0 {
            let user = || format!("the timing wheel of shape {shape}");
            blocks.claim(wheel_block, partition.scope(), wheel::WHEEL_BYTES, user)?;
        }
        let armed = wheel::armed(self.view, partition).map_err(contradiction)?;
        self.check_delayed(blocks, shape, kinds, &armed)?;
        let leased = live.iter().copied().filter(|reference| self.lease_ends(*reference));
        let claimed = self.list_of(partition, List::Claimed)?;
        let enlisted = self.list_of(partition, List::Enlisted)?;
        let locks = self.check_locks(blocks, shape, live)?;
        let dead = self.list_of(partition, List::Dead)?;
        let leased_dead = dead.iter().copied().filter(|reference| self.lease_ends(*reference));
        let expected: BTreeSet<u32> =
            leased.chain(claimed).chain(enlisted).chain(locks).chain(leased_dead).collect();
        let others: BTreeSet<u32> = armed
            .keys()
            .copied()
            .filter(|reference| self.state(*reference) != record::DELAYED)
            .collect();
        let overlooked = hand_off::is_overlooked(self.view, partition);
        require(overlooked.is_none(), || overlooked.clone().unwrap_or_default())?;
        let not_armed = holds::not_armed(self.view, partition).map_err(contradiction)?;
        let others = others.into_iter().chain(not_armed).collect::<BTreeSet<u32>>();
        require(others == expected, || {
            format!("shape {shape} has armed timers for {others:?}, not for {expected:?}")
        })?;
        for reference in &dead {
            self.claim_record(blocks, *reference, shape, kinds, "a dead record")?;
        }
        self.check_leased(partition, in_hands, live.iter().chain(&dead).chain(armed.keys()))?;
        let counted = partition.page().load(DEAD_COUNT);
        require(dead.len() == counted as usize, || {
            format!("shape {shape} counts {counted} dead records, its list has {}", dead.len())
        })?;
        Ok(dead.len() as u64)
    }

    fn check_delayed(
        &self,
        blocks: &mut Blocks,
        shape: u32,
        kinds: &Kinds,
        armed: &BTreeMap<u32, u64>,
    ) -> Result<(), Error> {
        let mut delayed = 0;
        for reference in armed.keys() {
            if self.state(*reference) == record::DELAYED {
                self.claim_record(blocks, *reference, shape, kinds, "a delayed record")?;
                delayed += 1;
            }
        }
        let counted = Partition::of_shape(self.view, shape).page().load(DELAYED_COUNT);
        require(delayed == counted, || {
            format!("shape {shape} counts {counted} delayed records, its wheel has {delayed}")
        })
    }

    /// The shape counts those in hands and those among `others` whose lease ends, which may come twice.
    fn check_leased<'r>(
        &self,
        partition: Partition<'_>,
        in_hands: InHands,
        others: impl Iterator<Item = &'r u32>,
    ) -> Result<(), Error> {
        let is_elsewhere = |reference: u32| {
            matches!(self.state(reference), record::LIVE | record::DEAD | record::DELAYED)
        };
        let others: BTreeSet<u32> = others
            .copied()
            .filter(|reference| is_elsewhere(*reference) && self.lease_ends(*reference))
            .collect();
        let (leased, counted) =
            (others.len() + in_hands.leased as usize, partition.page().load(LEASED_COUNT));
        require(leased == counted as usize, || {
            let shape = partition::shape_of(partition.scope());
            format!("shape {shape} counts {counted} tuples with a lease, and has {leased}")
        })
    }

    fn state(&self, reference: u32) -> u32 {
        record::header(self.view, reference).load(record::STATE)
    }

    pub(super) fn lease_ends(&self, reference: u32) -> bool {
        extension::of(self.view, record::header(self.view, reference))
            .is_some_and(|extension| extension.load64(LEASE_END_MS) != 0)
    }

    /// The records of a list, each once, in the state that the list is for, doubly linked.
    pub(super) fn list_of(
        &self,
        partition: Partition<'_>,
        list: List,
    ) -> Result<BTreeSet<u32>, Error> {
        let mut found = BTreeSet::new();
        let mut previous = 0;
        for (reference, extension) in list::records(self.view, partition, list) {
            let back = extension.load(extension::LIST_PREVIOUS);
            let own = self.state(reference);
            require(own == list.state() && back == previous && found.insert(reference), || {
                format!(
                    "the list of {list:?} comes from record {previous} to {reference} in state {own}"
                )
            })?;
            previous = reference;
        }
        Ok(found)
    }
}
