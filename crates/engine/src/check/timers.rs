//! What waits for its time: every timer stands in the wheel where it belongs, and what should have one does.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, memory::Blocks, require};
use crate::claim::list::{self, List};
use crate::error::Error;
use crate::extension::{self, LEASE_END_MS};
use crate::record;
use crate::registry::Kinds;
use crate::stripe::{DEAD_COUNT, DELAYED_COUNT, Stripe, WHEEL};
use crate::timers::{holds, wheel};
use crate::waiters::patience;

impl Check<'_, '_> {
    /// The claimed, the dead and the delayed records of `shape`, and its wheel. `live` are those in the base list.
    /// Returns how many are dead.
    pub(super) fn check_timers(
        &self,
        blocks: &mut Blocks,
        shape: u32,
        kinds: &Kinds,
        live: &[u32],
    ) -> Result<u64, Error> {
        let stripe = Stripe::of_shape(self.view, shape);
        let wheel_block = stripe.page().load(WHEEL);
        if wheel_block != 0 {
            let user = || format!("the timing wheel of shape {shape}");
            blocks.claim(wheel_block, stripe.scope(), wheel::WHEEL_BYTES, user)?;
        }
        let armed = wheel::armed(self.view, stripe).map_err(super::contradiction)?;
        self.check_delayed(blocks, shape, kinds, &armed)?;
        let leased = live.iter().copied().filter(|reference| self.lease_ends(*reference));
        let claimed = self.list_of(stripe, List::Claimed)?;
        let enlisted = self.list_of(stripe, List::Enlisted)?;
        let locks = self.check_locks(blocks, shape, live)?;
        let dead = self.list_of(stripe, List::Dead)?;
        let leased_dead = dead.iter().copied().filter(|reference| self.lease_ends(*reference));
        let expected: BTreeSet<u32> =
            leased.chain(claimed).chain(enlisted).chain(locks).chain(leased_dead).collect();
        let others: BTreeSet<u32> = armed
            .keys()
            .copied()
            .filter(|reference| self.state(*reference) != record::DELAYED)
            .collect();
        let overlooked = patience::is_overlooked(self.view, stripe);
        require(overlooked.is_none(), || overlooked.clone().unwrap_or_default())?;
        let not_armed = holds::not_armed(self.view, stripe).map_err(super::contradiction)?;
        let others = others.into_iter().chain(not_armed).collect::<BTreeSet<u32>>();
        require(others == expected, || {
            format!("shape {shape} has armed timers for {others:?}, not for {expected:?}")
        })?;
        for reference in &dead {
            self.claim_record(blocks, *reference, shape, kinds, "a dead record")?;
        }
        let counted = stripe.page().load(DEAD_COUNT);
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
        let counted = Stripe::of_shape(self.view, shape).page().load(DELAYED_COUNT);
        require(delayed == counted, || {
            format!("shape {shape} counts {counted} delayed records, its wheel has {delayed}")
        })
    }

    fn state(&self, reference: u32) -> u32 {
        record::header(self.view, reference).load(record::STATE)
    }

    fn lease_ends(&self, reference: u32) -> bool {
        extension::of(self.view, record::header(self.view, reference))
            .is_some_and(|extension| extension.load64(LEASE_END_MS) != 0)
    }

    /// The records of a list, each once, in the state that the list is for, doubly linked.
    pub(super) fn list_of(&self, stripe: Stripe<'_>, list: List) -> Result<BTreeSet<u32>, Error> {
        let mut found = BTreeSet::new();
        let mut previous = 0;
        for (reference, extension) in list::records(self.view, stripe, list) {
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
