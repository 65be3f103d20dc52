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
        let mut by_bytes = Vec::new();
        for value in values {
            let encoding = value.encode().map_err(PatternError::Value)?;
            by_bytes.push((encoding, Constant::new(value)?));
        }
        // By their bytes first, so that the order in which the members came leaves no trace.
        by_bytes.sort_by(|(a, _), (b, _)| a.cmp(b));
        let with_hash = |(_, member): (_, Constant)| (hash::field(&member.field()), member);
        let mut by_hash: Vec<_> = by_bytes.into_iter().map(with_hash).collect();
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

    pub(crate) const fn len(&self) -> usize {
        self.by_hash.len()
    }

    /// The members, in no order that says anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Constant> {
        self.by_hash.iter().map(|(_, member)| member)
    }

    /// The members with their encodings, in ascending order of the encodings.
    pub(crate) fn by_bytes(&self) -> Vec<(Vec<u8>, &Value)> {
        let encoded = |(_, member): &(u64, Constant)| member.value().encode().unwrap_or_default();
        let values = self.by_hash.iter().map(|(_, member)| member.value());
        let mut by_bytes: Vec<_> = self.by_hash.iter().map(encoded).zip(values).collect();
        by_bytes.sort_by(|(a, _), (b, _)| a.cmp(b));
        by_bytes
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
