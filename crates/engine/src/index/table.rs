//! The bucket array of an index: one cache line per bucket, growing by one bucket at a time.
//!
//! A bucket is seven references to leaders, the head of an overflow chain (through the leaders' links),
//! and seven tags: a lookup compares the tags of one line and touches no record unless its tag fits. The
//! references come first, because the second word of a block's first line is the allocator's until it is
//! stored with the log.
//!
//! Growth is linear hashing: when the load passes four in seven, one bucket is split in two, so an insertion never
//! pauses for the whole table. The array is a few segments of doubling length. Where the space has no room for the next
//! one, the chains grow instead, and nothing is refused for it. Only the build of an index stops, and goes on when
//! there is room.

use tupelo_shm::{GRANULE, Section, Span, Store, View, Word};

use super::{BUCKETS, GROWTH, Index, KEYS, LEVEL, MASK, SEGMENTS, SEGMENTS_MAX};
use crate::base::error::{Error, Need};
use crate::base::layout::Layout;
use crate::store::partition::Partition;
use crate::store::record::{self, BUCKET_NEXT, Link, TAG};
use crate::store::{blocks, step};

pub(crate) type Bucket<'m> = Span<'m, GRANULE>;
const ENTRIES: usize = 7;
const OVERFLOW: usize = 4 * ENTRIES;
const TAGS: usize = 32;

/// Buckets of a new table: 512 bytes.
pub(crate) const BUCKETS_MIN: u32 = 8;
/// Keys per bucket beyond which the table grows: four of seven entries. A bucket that waits for its split has twice as
/// many as one that was split. What does not fit costs a miss of the cache per link of the chain. With five of seven, a
/// put and a take among a million take a quarter longer, and hardly less memory: segments are whole.
const LOAD: u32 = 4;

/// Those of the first eight words of a bucket, or of its tags, that are entries.
const ENTRIES_SET: u32 = (1 << ENTRIES) - 1;

/// A word that holds the reference of a leader.
#[derive(Clone, Copy)]
pub(crate) struct Place<'m> {
    word: Word<'m>,
    leader: u32,
}

impl<'m> Place<'m> {
    /// The place in `word`, with the leader that it holds now.
    #[inline]
    fn new(word: Word<'m>) -> Self {
        Self { word, leader: word.load() }
    }

    /// The leader when the place was found.
    #[inline]
    pub(crate) fn leader(self) -> u32 {
        self.leader
    }

    /// Stores another leader, or what follows in the chain.
    #[inline]
    pub(crate) fn set(self, section: &mut Section<'m>, reference: u32) {
        section.set_word(self.word, reference);
    }
}

/// Ones up to the highest bit of `buckets`, which is at least `BUCKETS_MIN` in a sound table. Kept in the descriptor, since
/// many processors are slow to find a highest bit.
pub(crate) fn level_of(buckets: u32) -> u32 {
    u32::MAX >> (buckets | BUCKETS_MIN).leading_zeros()
}

/// The bucket that `tag` belongs to, among `buckets`, whose level is `level`.
#[inline(always)]
fn bucket_of(tag: u32, buckets: u32, level: u32) -> u32 {
    let high = tag & level;
    if high < buckets { high } else { tag & level >> 1 }
}

/// The bucket of `index` that `tag` belongs to.
#[inline(always)]
fn bucket_in(index: Index<'_>, tag: u32) -> u32 {
    bucket_of(tag, index.words.load(BUCKETS), index.words.load(LEVEL))
}

/// The line of bucket number `bucket`: segment `j` holds buckets `2^(j+2)` to `2^(j+3)`, the first all below.
#[inline(always)]
fn line<'m>(view: &View<'m>, index: Index<'m>, bucket: u32) -> Bucket<'m> {
    let (segment, inside) = if bucket < BUCKETS_MIN {
        (0, bucket)
    } else {
        let level = bucket.ilog2();
        (level as usize - 2, bucket - (1 << level))
    };
    let block = index.words.load(SEGMENTS + 4 * segment.min(SEGMENTS_MAX - 1));
    if block == 0 {
        view.violate();
    }
    view.span((block as usize + inside as usize) * GRANULE)
}

/// The bucket that `tag` belongs to.
#[inline(always)]
pub(crate) fn bucket<'m>(view: &View<'m>, index: Index<'m>, tag: u32) -> Bucket<'m> {
    line(view, index, bucket_in(index, tag))
}

/// Where the leader of `tag` stands, if there is one.
#[inline(always)]
pub(crate) fn find<'m>(view: &View<'m>, index: Index<'m>, tag: u32) -> Option<Place<'m>> {
    find_in(view, index, bucket(view, index, tag), tag)
}

/// Where the leader of `tag` stands in its bucket, if there is one.
#[inline(always)]
pub(crate) fn find_in<'m>(
    view: &View<'m>,
    index: Index<'m>,
    bucket: Bucket<'m>,
    tag: u32,
) -> Option<Place<'m>> {
    let tags: Span<'m, 32> = bucket.part(TAGS);
    let mut fitting = tags.equal_words(tag) & ENTRIES_SET;
    while fitting != 0 {
        let place = entry(bucket, fitting);
        if place.leader() != 0 {
            return Some(place);
        }
        fitting &= fitting - 1;
    }
    if bucket.load(OVERFLOW) == 0 { None } else { find_in_chain(view, index, bucket, tag) }
}

/// The first of the entries in `set`, which is not empty.
#[inline(always)]
fn entry(bucket: Bucket<'_>, set: u32) -> Place<'_> {
    Place::new(bucket.place(4 * (set.trailing_zeros() as usize % (ENTRIES + 1))))
}

#[cold]
fn find_in_chain<'m>(
    view: &View<'m>,
    index: Index<'m>,
    bucket: Bucket<'m>,
    tag: u32,
) -> Option<Place<'m>> {
    let mut place = Place::new(bucket.place(OVERFLOW));
    for _ in 0..=chain_max(view, index) {
        let leader = place.leader();
        if leader == 0 {
            return None;
        }
        let link = record::link(view, leader, index.slot);
        if link.load(TAG) == tag {
            return Some(place);
        }
        place = Place::new(link.place(BUCKET_NEXT));
    }
    view.violate();
    None
}

/// How many leaders a chain has at most: as many as the index counts, and no more than the segment can hold, should the count
/// be damaged.
fn chain_max(view: &View<'_>, index: Index<'_>) -> usize {
    index.words.load(KEYS).min(view.granules()) as usize
}

/// Enters a leader, whose tag the table does not have, into its bucket, together with `also`. Its link is not reachable
/// yet. [`grow`] follows.
#[inline(always)]
pub(crate) fn insert<'m, const A: usize, const B: usize>(
    section: &mut Section<'m>,
    index: Index<'m>,
    bucket: Bucket<'m>,
    (leader, link): (u32, Link<'m>),
    also: ([Store<'m>; A], [Store<'m>; B]),
) {
    let references: Span<'m, 32> = bucket.part(0);
    let free = references.equal_words(0) & ENTRIES_SET;
    if free == 0 {
        link.init(BUCKET_NEXT, bucket.load(OVERFLOW));
        let stores = [(bucket.place(OVERFLOW), leader), keys(index, 1)];
        section.set_together(stores, also.0, also.1);
    } else {
        let number = free.trailing_zeros() as usize % (ENTRIES + 1);
        // The tag of an empty entry means nothing: no log (R2). One that this section has emptied has its tag in the log
        // (`keep_tag`): an undo fills it again.
        bucket.init(TAGS + 4 * number, link.load(TAG));
        link.init(BUCKET_NEXT, 0);
        let stores = [(bucket.place(4 * number), leader), keys(index, 1)];
        section.set_together(stores, also.0, also.1);
    }
}

/// The count of keys, to be stored with `change` added.
#[inline(always)]
fn keys(index: Index<'_>, change: i32) -> Store<'_> {
    (index.words.place(KEYS), index.words.load(KEYS).wrapping_add_signed(change))
}

/// Splits a bucket if the table is too full after an insertion.
#[inline(always)]
pub(crate) fn grow<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    index: Index<'m>,
) -> Result<(), Error> {
    if index.words.load(KEYS) > index.words.load(BUCKETS).wrapping_mul(LOAD) {
        split(section, layout, partition, index)?;
    }
    Ok(())
}

/// Has an undo restore the tag of a leader that is about to be taken out. An insertion in the same section may find its
/// entry empty, and store another tag there without the log.
pub(crate) fn keep_tag<'m>(section: &mut Section<'m>, index: Index<'m>, (leader, tag): (u32, u32)) {
    let bucket = bucket(section.view(), index, tag);
    let references: Span<'m, 32> = bucket.part(0);
    let entries = references.equal_words(leader) & ENTRIES_SET;
    if entries != 0 {
        section.set(bucket, TAGS + 4 * (entries.trailing_zeros() as usize % (ENTRIES + 1)), tag);
    }
}

/// What taking a leader out changes whose tag has no other record.
#[inline(always)]
pub(crate) fn removal<'m>(index: Index<'m>, place: Place<'m>, after: u32) -> [Store<'m>; 2] {
    [(place.word, after), keys(index, -1)]
}

/// Words that a new segment changes.
const SEGMENT_WORDS: usize = blocks::ALLOCATE_WORDS + 1;
/// Words that a split changes: the descriptor, the allocator's word of the new line, and the entries, tags and
/// chain of both lines. What stands in the bucket has a link each on top.
const SPLIT_WORDS: usize = 2 + 1 + 2 * (2 * ENTRIES + 1);

/// Splits the bucket whose turn it is in two.
#[cold]
#[inline(never)]
fn split<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    index: Index<'m>,
) -> Result<(), Error> {
    let buckets = index.words.load(BUCKETS);
    // Before the chain is walked, which is long where there is no room.
    if buckets.is_power_of_two() && !add_segment(section, layout, partition, index, buckets)? {
        return Ok(());
    }
    let level = level_of(buckets);
    let old = line(section.view(), index, bucket_of(buckets, buckets, level));
    let all = entries(section.view(), index, old);
    step::beyond(section, SPLIT_WORDS + all.len())?;
    let more = buckets.wrapping_add(1);
    let level_after = level_of(more);
    let new = line(section.view(), index, buckets);
    let (stay, go): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(tag, _)| bucket_of(*tag, more, level_after) != buckets);
    clear(section, new);
    fill(section, index, new, &go);
    fill(section, index, old, &stay);
    section.set(index.words, BUCKETS, more);
    if level_after != level {
        section.set(index.words, LEVEL, level_after);
    }
    Ok(())
}

/// Gives a table of `buckets` buckets memory for as many more. Returns whether it has it; else the chains grow instead.
fn add_segment<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    index: Index<'m>,
    buckets: u32,
) -> Result<bool, Error> {
    let segment = (buckets.ilog2() as usize).wrapping_sub(2);
    if segment >= SEGMENTS_MAX {
        return Ok(false); // Full (or damaged).
    }
    step::beyond(section, SEGMENT_WORDS)?;
    match blocks::allocate(section, layout, partition, buckets as usize * GRANULE) {
        Ok(block) => {
            section.set(index.words, SEGMENTS + 4 * segment, block);
            Ok(true)
        }
        Err(Error::Need(need)) => do_without(index, partition.scope(), need).map(|()| false),
        Err(error) => Err(error),
    }
}

/// Refuses what is to begin anew when there is the memory that a larger table needs. Does not refuse it if there was
/// none lately, so that the table does without.
fn do_without(index: Index<'_>, scope: u32, need: Need) -> Result<(), Error> {
    let (count, committed, is_reserve) = match need {
        Need::Extents { count, committed, .. } => (count, committed, false),
        Need::Reserve { count, committed } => (count, committed, true),
        Need::SmallSlab { count, committed, is_reserve, .. } => (count, committed, is_reserve),
        other => return Err(other.into()),
    };
    let (mask, keys) = (index.words.load(MASK), index.words.load(KEYS));
    if keys <= index.words.load(GROWTH) {
        return Ok(());
    }
    Err(Need::Table { scope, mask, keys, count, committed, is_reserve }.into())
}

/// Tags and leaders of a bucket and its chain.
fn entries(view: &View<'_>, index: Index<'_>, bucket: Bucket<'_>) -> Vec<(u32, u32)> {
    let tagged = |entry| (bucket.load(TAGS + 4 * entry), bucket.load(4 * entry));
    let mut all: Vec<_> = (0..ENTRIES).map(tagged).filter(|(_, leader)| *leader != 0).collect();
    let leaders_max = chain_max(view, index);
    let mut leader = bucket.load(OVERFLOW);
    while leader != 0 {
        if all.len() >= leaders_max {
            // More than the index counts: the chain leads back into itself.
            view.violate();
            break;
        }
        let link = record::link(view, leader, index.slot);
        all.push((link.load(TAG), leader));
        leader = link.load(BUCKET_NEXT);
    }
    all
}

/// Empties a line that is not in use yet. Its second word may be a free list's link until now.
pub(crate) fn clear<'m>(section: &mut Section<'m>, bucket: Bucket<'m>) {
    for word in (0..GRANULE).step_by(4).filter(|word| *word != record::FREE_NEXT) {
        bucket.init(word, 0);
    }
    section.set(bucket, record::FREE_NEXT, 0);
}

/// Makes `all` the contents of a bucket.
fn fill<'m>(section: &mut Section<'m>, index: Index<'m>, bucket: Bucket<'m>, all: &[(u32, u32)]) {
    let (inside, beyond) = all.split_at(all.len().min(ENTRIES));
    for entry in 0..ENTRIES {
        let (tag, leader) = inside.get(entry).copied().unwrap_or_default();
        if bucket.load(4 * entry) != leader || bucket.load(TAGS + 4 * entry) != tag {
            section.set(bucket, TAGS + 4 * entry, tag);
            section.set(bucket, 4 * entry, leader);
        }
    }
    let mut next = 0;
    for (_, leader) in beyond.iter().rev() {
        let link = record::link(section.view(), *leader, index.slot);
        section.set(link, BUCKET_NEXT, next);
        next = *leader;
    }
    for (_, leader) in inside {
        let link = record::link(section.view(), *leader, index.slot);
        if link.load(BUCKET_NEXT) != 0 {
            section.set(link, BUCKET_NEXT, 0);
        }
    }
    if bucket.load(OVERFLOW) != next {
        section.set(bucket, OVERFLOW, next);
    }
}

/// The blocks of a table, to be freed.
pub(crate) fn segments(index: Index<'_>) -> impl Iterator<Item = u32> {
    (0..SEGMENTS_MAX)
        .map(move |segment| index.words.load(SEGMENTS + 4 * segment))
        .filter(|block| *block != 0)
}

/// The first `BUCKETS_MIN` lines of a new table's block, emptied.
pub(crate) fn clear_first_segment(section: &mut Section<'_>, block: u32) {
    for bucket in 0..BUCKETS_MIN {
        let line = section.view().at(block + bucket);
        clear(section, line);
    }
}

/// Tags and leaders in bucket number `bucket`.
pub(crate) fn entries_of(view: &View<'_>, index: Index<'_>, bucket: u32) -> Vec<(u32, u32)> {
    entries(view, index, line(view, index, bucket))
}

/// Whether bucket number `bucket` is where `tag` belongs.
pub(crate) fn is_in_bucket(index: Index<'_>, tag: u32, bucket: u32) -> bool {
    bucket_in(index, tag) == bucket
}

#[cfg(test)]
mod tests;
