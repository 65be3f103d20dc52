//! Membership in a set of values (rule M5).

use super::{Constant, PatternError};
use crate::{Field, KindSet, Value, hash};

/// A set of values, found by their hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Members {
    /// In ascending order of the hashes, so that a probe is a binary search.
    by_hash: Vec<(u64, Constant)>,
    kinds: KindSet,
}

impl Members {
    pub(crate) fn new(values: impl IntoIterator<Item = Value>) -> Result<Self, PatternError> {
        let mut by_hash = Vec::new();
        for value in values {
            let constant = Constant::new(value)?;
            by_hash.push((hash::field(&constant.field()), constant));
        }
        by_hash.sort_by_key(|(hash, _)| *hash);
        by_hash.dedup_by(|(_, a), (_, b)| a.field().same(&b.field()));
        let kinds = by_hash.iter().fold(KindSet::EMPTY, |kinds, (_, member)| {
            kinds.or(KindSet::of(member.field().kind()))
        });
        Ok(Self { by_hash, kinds })
    }

    pub(crate) const fn kinds(&self) -> KindSet {
        self.kinds
    }

    pub(crate) fn contains(&self, field: &Field<'_>) -> bool {
        let hash = hash::field(field);
        let first = self.by_hash.partition_point(|(member_hash, _)| *member_hash < hash);
        self.by_hash[first..]
            .iter()
            .take_while(|(member_hash, _)| *member_hash == hash)
            .any(|(_, member)| member.field().same(field))
    }
}
