//! Keys: which fields a template fixes, and the hash of those fields.

use tupelo_shm::View;
use tupelo_tuple::{Field, Kind, PatternRef, hash};

use crate::store::record::ImageBuffer;

/// Fields from this number on are never part of a key; templates that fix them are filtered.
const FIELDS_MAX: usize = 32;

/// What a template is looked up by.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    /// The fields that it fixes, of the first `FIELDS_MAX`: bit `i` for field `i`.
    pub(crate) mask: u32,
    /// The tag of its matches under `mask`.
    pub(crate) tag: u32,
    /// Whether a tuple of fitting kinds that has the fields in `mask` matches: there are no predicates, and
    /// no fields are fixed beyond the mask.
    pub(crate) is_all: bool,
}

impl Key {
    /// The key of a template that has `patterns`.
    #[inline]
    pub(crate) fn new(patterns: &[PatternRef<'_>], seed: u64) -> Self {
        let mut tagger = Tagger::new(seed);
        for (index, pattern) in patterns.iter().enumerate() {
            match pattern {
                PatternRef::Actual(field) => tagger.fix(index, field),
                PatternRef::Test(_) => tagger.restrict(),
                PatternRef::Kinds(_) => {}
            }
        }
        tagger.key()
    }
}

/// Computes a key, pattern by pattern.
#[derive(Clone, Copy)]
pub(crate) struct Tagger {
    mask: u32,
    hash: u64,
    is_all: bool,
}

impl Tagger {
    #[inline(always)]
    pub(crate) const fn new(seed: u64) -> Self {
        Self { mask: 0, hash: seed, is_all: true }
    }

    /// The next pattern is the value `field`; its number is `index`.
    #[inline(always)]
    pub(crate) fn fix(&mut self, index: usize, field: &Field<'_>) {
        if index < FIELDS_MAX {
            self.mask |= 1 << index;
            self.hash = hash::join(self.hash, field);
        } else {
            self.restrict();
        }
    }

    /// The next pattern asks for more than a kind or a value.
    #[inline(always)]
    pub(crate) fn restrict(&mut self) {
        self.is_all = false;
    }

    #[inline(always)]
    pub(crate) fn key(self) -> Key {
        Key { mask: self.mask, tag: self.tag(), is_all: self.is_all }
    }

    /// Which fields were hashed is no part of the tag: an index is over one set of them.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
    fn tag(self) -> u32 {
        (self.hash >> 32) as u32 ^ self.hash as u32
    }
}

/// The tag of `fields` under `mask`: what the index over those fields is keyed with.
#[inline(always)]
pub(crate) fn tag_of_fields(fields: &[Field<'_>], mask: u32, seed: u64) -> u32 {
    let mut tagger = Tagger::new(seed);
    // One field after the other, also those that are not hashed: they may be known when the caller is compiled.
    for (index, field) in fields.iter().enumerate().take(FIELDS_MAX) {
        let left = mask >> index;
        if left == 0 {
            break;
        }
        if left & 1 == 1 {
            tagger.fix(index, field);
        }
    }
    tagger.tag()
}

/// The tag that matches of `patterns` have under `mask`, a set of fields that they fix.
#[inline]
pub(crate) fn tag_of_patterns(patterns: &[PatternRef<'_>], mask: u32, seed: u64) -> u32 {
    tag(mask, seed, |tagger, index| {
        if let Some(PatternRef::Actual(field)) = patterns.get(index) {
            tagger.fix(index, field);
        }
    })
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
    tag(mask, seed, |tagger, index| {
        if let Some(field) = tuple.field(index) {
            tagger.fix(index, &field);
        }
    })
}

#[inline(always)]
fn tag(mask: u32, seed: u64, fix: impl Fn(&mut Tagger, usize)) -> u32 {
    let mut tagger = Tagger::new(seed);
    let mut left = mask;
    while left != 0 {
        fix(&mut tagger, left.trailing_zeros() as usize);
        left &= left - 1;
    }
    tagger.tag()
}

/// The fields that `patterns` fix: bit `i` for field `i`.
pub(crate) fn mask_of(patterns: &[PatternRef<'_>]) -> u32 {
    Key::new(patterns, 0).mask
}
