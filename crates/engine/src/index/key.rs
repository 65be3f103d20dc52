//! Keys: which fields a template fixes, and the hash of those fields.

use tupelo_shm::View;
use tupelo_tuple::{Field, Kind, PatternRef, hash};

use crate::record::ImageBuffer;

/// Fields from this number on are never part of a key; templates that fix them are filtered.
const FIELDS_MAX: usize = 32;

/// The set of fields that `patterns` fix: bit `i` for field `i`.
#[inline]
pub(crate) fn mask_of(patterns: &[PatternRef<'_>]) -> u32 {
    patterns
        .iter()
        .take(FIELDS_MAX)
        .enumerate()
        .fold(0, |mask, (index, pattern)| mask | u32::from(pattern.actual().is_some()) << index)
}

/// The tag of `fields` under `mask`: what the index over those fields is keyed with.
#[inline]
pub(crate) fn tag_of_fields(fields: &[Field<'_>], mask: u32, seed: u64) -> u32 {
    tag(mask, seed, |index| fields.get(index).map(hash::field))
}

/// The tag that matches of `patterns` have under `mask`, a set of fields that they fix.
#[inline]
pub(crate) fn tag_of_patterns(patterns: &[PatternRef<'_>], mask: u32, seed: u64) -> u32 {
    tag(mask, seed, |index| patterns.get(index)?.actual().map(hash::field))
}

/// The tag of the record at `reference` under `mask`.
pub(crate) fn tag_of_record(
    view: &View<'_>,
    reference: u32,
    kinds: &[Kind],
    mask: u32,
    seed: u64,
) -> u32 {
    let mut copy = ImageBuffer::new();
    let tuple = copy.copy(view, reference, kinds);
    tag(mask, seed, |index| tuple.field(index).as_ref().map(hash::field))
}

#[inline]
fn tag(mask: u32, seed: u64, field_hash: impl Fn(usize) -> Option<u64>) -> u32 {
    let (mut left, mut hash) = (mask, seed ^ u64::from(mask));
    while left != 0 {
        hash = hash::combine(hash, field_hash(left.trailing_zeros() as usize).unwrap_or(0));
        left &= left - 1;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
    let tag = (hash >> 32) as u32 ^ hash as u32;
    tag
}
