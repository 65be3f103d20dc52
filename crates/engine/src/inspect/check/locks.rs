//! The locks of open transactions: each is on a tuple that is there, or was until its lease ended, and every tuple
//! counts its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::error::Error;
use crate::inspect::check::memory::Blocks;
use crate::inspect::check::{Check, require};
use crate::protocols::transaction::lock;
use crate::store::extension::{self, EXTENSION_BYTES, LOCKS};
use crate::store::partition::{self, Partition};
use crate::store::record::{self, HEADER_BYTES, READ_MARK, SHAPE};
use crate::time::list::List;

impl Check<'_, '_> {
    /// The locks of `shape`, whose `live` records are in the base list. Returns them.
    pub(super) fn check_locks(
        &self,
        blocks: &mut Blocks,
        shape: u32,
        live: &[u32],
    ) -> Result<BTreeSet<u32>, Error> {
        let partition = Partition::of_shape(self.view, shape);
        let locks = self.list_of(partition, List::Locks)?;
        let mut counts = BTreeMap::<u32, u32>::new();
        for reference in &locks {
            let block = record::at(self.view, *reference);
            let (scope, user) = (partition::scope_of(shape), || format!("a lock of shape {shape}"));
            let bytes = HEADER_BYTES + record::image_bytes(block.header);
            blocks.claim(*reference, scope, bytes, user)?;
            let extension = block.header.load(record::EXTENSION);
            blocks.claim(extension, scope, EXTENSION_BYTES, user)?;
            if let Some(record) = lock::locked(self.engine, self.view, partition, block) {
                *counts.entry(record.reference).or_default() += 1;
            }
        }
        for reference in live {
            let header = record::header(self.view, *reference);
            let counted = extension::of(self.view, header).map_or(0, |one| one.load(LOCKS));
            let is_marked = header.load(SHAPE) & READ_MARK != 0;
            let locked = counts.remove(reference).unwrap_or(0);
            require(counted == locked && is_marked == (locked != 0), || {
                format!(
                    "record {reference} of shape {shape} counts {counted} locks (marked: {is_marked}), {locked} name it"
                )
            })?;
        }
        require(counts.is_empty(), || {
            format!("locks of shape {shape} are on records outside of the base list: {counts:?}")
        })?;
        Ok(locks)
    }
}
