//! Finding the records of one partition that match: by the best index there is, in the order asked for.

use smallvec::SmallVec;
use tupelo_shm::View;
use tupelo_tuple::{Field, Kind, PatternRef, Test, TupleView};

use crate::index::table::{self, Place};
use crate::index::{self, Index, learn, links, ring};
use crate::store::key::Key;
use crate::store::partition::{FIRST, LAST, LIVE, Partition};
use crate::store::record::{self, Header, NEXT, PREVIOUS, Record};
use crate::store::registry::Kinds;

pub(crate) use tupelo_tuple::Order;

/// What a match is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be copied.
    Read,
    /// To be removed: what an open transaction has read is passed over (rule X3).
    Take,
}

impl Purpose {
    /// The marks of a record that make it no match.
    #[inline(always)]
    fn marks(self) -> u32 {
        match self {
            Self::Read => 0,
            Self::Take => record::READ_MARK,
        }
    }

    /// Whether the record with this header is no match, although its fields may be those of one.
    pub(crate) fn passes_over(self, header: Header<'_>) -> bool {
        header.load(record::SHAPE) & self.marks() != 0
    }
}

/// What is looked for in one partition: patterns, and the kinds that the partition's tuples have.
#[derive(Clone, Copy)]
pub(crate) struct Search<'t> {
    pub(crate) patterns: &'t [PatternRef<'t>],
    pub(crate) kinds: &'t [Kind],
    /// What it is looked up by. Computed before the lock is taken.
    pub(crate) key: Key,
    /// Whether the tuples have a field that the caller may be unable to represent.
    pub(crate) is_refusable: bool,
    pub(crate) seed: u64,
    /// The marks of a record that make it no match.
    passes_over: u32,
}

/// A pattern that asks for one of several values.
#[derive(Clone, Copy)]
struct Membership<'t> {
    field: usize,
    test: &'t Test,
    /// The fields that a template fixes that has one of the values there.
    mask: u32,
}

impl Membership<'_> {
    /// Whether it pays to look each of the values up: there is an index for that, and there are no fewer records.
    fn has_index(&self, partition: Partition<'_>) -> bool {
        learn::exact(partition, self.mask).is_some()
            && self.test.members_count() <= partition.page().load(LIVE) as usize
    }
}

/// What a search came to.
#[derive(Clone, Copy, Default)]
pub(crate) struct Found<'m> {
    /// The match, if there is one.
    pub(crate) hit: Option<Hit<'m>>,
    /// The fields by which an index pays, if the search has shown that; else 0.
    pub(crate) learn: u32,
}

/// A match.
#[derive(Clone, Copy)]
pub(crate) struct Hit<'m> {
    pub(crate) record: Record<'m>,
    /// The index that led to the record, and where the leader of its tag stands: who takes the record
    /// out in the same section need not look again.
    pub(crate) place: Option<(Index<'m>, Place<'m>)>,
}

impl<'m> Found<'m> {
    /// The record at `reference`; nothing for 0.
    #[inline(always)]
    pub(crate) fn at(view: &View<'m>, reference: u32, learn: u32) -> Self {
        let hit = || Hit { record: record::at(view, reference), place: None };
        Self { hit: (reference != 0).then(hit), learn }
    }

    /// The reference of the match; 0 if there is none.
    pub(crate) fn reference(&self) -> u32 {
        self.hit.map_or(0, |hit| hit.record.reference)
    }
}

impl<'t> Search<'t> {
    /// A search for what `patterns` match among tuples of `kinds`, which fit them.
    #[inline]
    pub(crate) fn new(
        patterns: &'t [PatternRef<'t>],
        kinds: &'t Kinds,
        seed: u64,
        purpose: Purpose,
    ) -> Self {
        Self::by_key(patterns, kinds, Key::new(patterns, seed), seed, purpose)
    }

    /// As [`Search::new`], with the key that went with finding out the kinds.
    #[inline(always)]
    pub(crate) fn by_key(
        patterns: &'t [PatternRef<'t>],
        kinds: &'t Kinds,
        key: Key,
        seed: u64,
        purpose: Purpose,
    ) -> Self {
        let (is_refusable, passes_over) = (kinds.are_refusable(), purpose.marks());
        Self { patterns, kinds: kinds.as_slice(), key, is_refusable, seed, passes_over }
    }

    /// Gives `act` the search with a copy of its patterns, as [`PatternRef::apart`].
    #[inline(always)]
    pub(crate) fn apart<R>(&self, act: impl FnOnce(&Search<'_>) -> R) -> R {
        let rest = *self;
        PatternRef::apart(self.patterns, move |patterns| act(&Search { patterns, ..rest }))
    }

    /// Whether the record matches.
    #[inline(always)]
    pub(crate) fn accepts(&self, view: &View<'_>, record: Record<'_>) -> bool {
        let marks = record.header.load(record::SHAPE);
        if marks & self.passes_over != 0 {
            return false;
        }
        let record = (record, record::is_wide(marks));
        if self.key.is_all {
            record::matches_fixed(view, record, self.kinds, self.patterns)
        } else {
            record::matches(view, record, self.kinds, self.patterns)
        }
    }

    /// The records that can match, oldest first or youngest first; a superset of those that do.
    #[inline]
    pub(crate) fn candidates<'v, 'm>(
        &self,
        view: &'v View<'m>,
        partition: Partition<'m>,
        backward: bool,
    ) -> Walk<'v, 'm> {
        let mut remaining = partition.steps_max(view);
        let best = if self.key.mask == 0 {
            None
        } else {
            learn::best(partition, self.patterns, self.key, self.seed)
        };
        let (index, start) = match best {
            Some((index, tag)) => {
                learn::used(index);
                let leader = table::find(view, index, tag).map_or(0, Place::leader);
                let start = if backward && leader != 0 {
                    ring::previous(view, index, leader)
                } else {
                    leader
                };
                (Some(index), start)
            }
            None => (None, partition.page().load(if backward { LAST } else { FIRST })),
        };
        if start == 0 {
            remaining = 0;
        }
        Walk { view, index, start, next: start, remaining, backward }
    }

    /// As [`Search::candidates`], oldest first, behind the record at `reference`, which is one of them.
    pub(crate) fn candidates_behind<'v, 'm>(
        &self,
        view: &'v View<'m>,
        partition: Partition<'m>,
        reference: u32,
    ) -> Walk<'v, 'm> {
        let mut walk = self.candidates(view, partition, false);
        if walk.next != 0 {
            walk.next = reference;
            walk.next();
        }
        walk
    }

    /// The oldest match.
    #[inline(always)]
    fn oldest<'m>(&self, view: &View<'m>, partition: Partition<'m>) -> Found<'m> {
        match learn::exact(partition, self.key.mask) {
            Some(index) => self.oldest_in(view, partition, index),
            None => self.first(view, partition, false),
        }
    }

    /// The oldest match, by the index over exactly the fields that the patterns fix: nearly always the
    /// leader of the tag.
    #[inline(always)]
    fn oldest_in<'m>(
        &self,
        view: &View<'m>,
        partition: Partition<'m>,
        index: Index<'m>,
    ) -> Found<'m> {
        learn::used(index);
        let Some(place) = table::find(view, index, self.key.tag) else { return Found::default() };
        let record = record::at(view, place.leader());
        if !self.accepts(view, record) {
            return self.first(view, partition, false);
        }
        Found { hit: Some(Hit { record, place: Some((index, place)) }), learn: 0 }
    }

    /// The first match in the given order, which is not a field's.
    #[inline(always)]
    fn first<'m>(&self, view: &View<'m>, partition: Partition<'m>, backward: bool) -> Found<'m> {
        let (reference, learn) =
            self.apart(move |search| search.first_of_walk(view, partition, backward));
        Found::at(view, reference, learn)
    }

    /// As [`Search::first`]: the reference, and by which fields an index pays. That is little, so what is found without a
    /// walk need not come through memory either.
    #[inline(always)] // a pair and a read from Python take 4 % less time
    fn first_of_walk(
        &self,
        view: &View<'_>,
        partition: Partition<'_>,
        backward: bool,
    ) -> (u32, u32) {
        if self.key.is_all {
            // No pattern asks for one of several values.
            return self.first_of_walk_by(view, partition, (self.key.mask, backward));
        }
        self.first_of_walk_in_parts(view, partition, backward)
    }

    /// As [`Search::first_of_walk`], where a pattern may ask for one of several values.
    #[inline(never)]
    fn first_of_walk_in_parts(
        &self,
        view: &View<'_>,
        partition: Partition<'_>,
        backward: bool,
    ) -> (u32, u32) {
        let Some(membership) = self.membership() else {
            return self.first_of_walk_by(view, partition, (self.key.mask, backward));
        };
        if !membership.has_index(partition) {
            return self.first_of_walk_by(view, partition, (membership.mask, backward));
        }
        let mut first = 0;
        self.each_member(membership, |search| {
            let (own, _) = search.first_of_walk_by(view, partition, (search.key.mask, backward));
            let is_before = |own, other| links::precedes(view, own, other) != backward;
            if own != 0 && (first == 0 || is_before(own, first)) {
                first = own;
            }
        });
        (first, 0)
    }

    /// The first pattern that asks for one of several values.
    fn membership(&self) -> Option<Membership<'t>> {
        if self.key.is_all {
            return None;
        }
        let mut fields = self.patterns.iter().enumerate().take(u32::BITS as usize);
        fields.find_map(|(field, pattern)| match pattern {
            PatternRef::Test(test) if test.members_count() > 0 => {
                Some(Membership { field, test, mask: self.key.mask | 1 << field })
            }
            _ => None,
        })
    }

    /// Gives `act` a search for each of the values.
    fn each_member(&self, membership: Membership<'t>, mut act: impl FnMut(&Search<'_>)) {
        let mut patterns: SmallVec<[PatternRef<'t>; 8]> = SmallVec::from_slice(self.patterns);
        for member in membership.test.members() {
            if self.kinds.get(membership.field) == Some(&member.kind()) {
                patterns[membership.field] = PatternRef::Actual(member);
                let key = Key::new(&patterns, self.seed);
                act(&Search { patterns: &patterns, key, ..*self });
            }
        }
    }

    /// The first match, by the best index. Notes for the fields of `mask` what that has cost.
    #[inline(never)]
    fn first_of_walk_by(
        &self,
        view: &View<'_>,
        partition: Partition<'_>,
        (mask, backward): (u32, bool),
    ) -> (u32, u32) {
        let mut walk = self.candidates(view, partition, backward);
        let exact = walk.is_exact(mask);
        let mut scanned = 0;
        let reference = loop {
            match walk.next() {
                Some(reference) if self.accepts(view, record::at(view, reference)) => {
                    break reference;
                }
                Some(_) => scanned += 1,
                None => break 0,
            }
        };
        let learn = scanned > 0 && !exact && learn::note(partition, mask, scanned);
        (reference, if learn { mask } else { 0 })
    }

    /// The match that `order` asks for.
    #[inline(always)]
    pub(crate) fn pick<'m>(
        &self,
        view: &View<'m>,
        partition: Partition<'m>,
        order: Order,
        random: u64,
    ) -> Found<'m> {
        let at = |reference| Found::at(view, reference, 0);
        match order {
            Order::Fifo | Order::Any => self.oldest(view, partition),
            Order::Lifo => self.first(view, partition, true),
            Order::Random => at(self.apart(move |search| search.random(view, partition, random))),
            Order::Max(_) | Order::Min(_) | Order::MaxOf(_) | Order::MinOf(_) => {
                at(self.apart(move |search| search.extreme(view, partition, order)))
            }
        }
    }

    /// Every match, oldest first.
    pub(crate) fn matches<'v, 'm>(
        &self,
        view: &'v View<'m>,
        partition: Partition<'m>,
    ) -> impl Iterator<Item = u32> + use<'v, 'm, 't> {
        let search = *self;
        self.candidates(view, partition, false)
            .filter(move |reference| search.accepts(view, record::at(view, *reference)))
    }

    /// How many matches there are, and by which fields an index pays, if that has shown it; else 0.
    pub(crate) fn count(&self, view: &View<'_>, partition: Partition<'_>) -> (u64, u32) {
        if self.membership().is_some() {
            let all = self.first_matches(view, partition, |_| true, usize::MAX);
            return (all.len() as u64, 0);
        }
        let mut walk = self.candidates(view, partition, false);
        let exact = walk.is_exact(self.key.mask);
        let (mut count, mut scanned) = (0, 0);
        for reference in walk.by_ref() {
            if self.accepts(view, record::at(view, reference)) {
                count += 1;
            } else {
                scanned += 1;
            }
        }
        let learn = scanned > 0 && !exact && learn::note(partition, self.key.mask, scanned);
        (count, if learn { self.key.mask } else { 0 })
    }

    /// Up to `at_most` matches, oldest first.
    pub(crate) fn first_matches(
        &self,
        view: &View<'_>,
        partition: Partition<'_>,
        is_one: impl Fn(&u32) -> bool,
        at_most: usize,
    ) -> Vec<u32> {
        let of = |search: &Search<'_>| -> Vec<u32> {
            search.matches(view, partition).filter(&is_one).take(at_most).collect()
        };
        let by_index = self.membership().filter(|membership| membership.has_index(partition));
        let Some(membership) = by_index else { return of(self) };
        let mut all = Vec::new();
        self.each_member(membership, |search| all.append(&mut of(search)));
        all.sort_unstable_by_key(|reference| {
            record::header(view, *reference).load64(record::SEQUENCE)
        });
        all.truncate(at_most);
        all
    }

    #[cold]
    fn random(&self, view: &View<'_>, partition: Partition<'_>, random: u64) -> u32 {
        let chosen = chosen(self.matches(view, partition).count(), random);
        chosen.and_then(|index| self.matches(view, partition).nth(index)).unwrap_or(0)
    }

    #[cold]
    fn extreme(&self, view: &View<'_>, partition: Partition<'_>, order: Order) -> u32 {
        extreme(view, self.kinds, self.matches(view, partition), order)
    }
}

/// One of `count`, each with the same chance; `None` of none.
pub(crate) fn chosen(count: usize, random: u64) -> Option<usize> {
    // The product's high half is uniform over 0..count to within count in 2^64.
    let product = u128::from(random) * count as u128;
    (count != 0).then(|| usize::try_from(product >> 64).unwrap_or(0))
}

/// The record that an order by a field asks for, the first among equals, or 0. Looks at all. The order goes by a number: the
/// records are of one class.
pub(crate) fn extreme(
    view: &View<'_>,
    kinds: &[Kind],
    all: impl IntoIterator<Item = u32>,
    order: Order,
) -> u32 {
    let precedes = |one, best| {
        let (mut a, mut b) = (record::ImageBuffer::new(), record::ImageBuffer::new());
        precedes(&a.copy(view, one, kinds), &b.copy(view, best, kinds), order)
    };
    let better = |best, one| if best == 0 || precedes(one, best) { one } else { best };
    all.into_iter().fold(0, better)
}

/// Whether `one` is further out than `best` in the field of `order`, as its class numbers that. Every value that has an order is further out than
/// one that has none: NaN, `null`, a list, no such field. Text is further up than any number.
pub(crate) fn precedes(one: &TupleView<'_>, best: &TupleView<'_>, order: Order) -> bool {
    let greatest = matches!(order, Order::Max(_) | Order::MaxOf(_));
    let has_order = |field: &Field<'_>| field.order(field).is_some();
    let Some(one) = field_of(one, order).filter(has_order) else { return false };
    let Some(best) = field_of(best, order).filter(has_order) else { return true };
    let order = one.order_across_kinds(&best);
    order.is_some_and(|order| if greatest { order.is_gt() } else { order.is_lt() })
}

/// The field of a tuple that an order goes by.
fn field_of<'t>(tuple: &TupleView<'t>, order: Order) -> Option<Field<'t>> {
    match order.among(tuple.class()) {
        Order::Max(number) | Order::Min(number) => tuple.field(number),
        _ => None,
    }
}

/// A bounded walk over the base list or one ring.
pub(crate) struct Walk<'v, 'm> {
    view: &'v View<'m>,
    index: Option<Index<'m>>,
    start: u32,
    next: u32,
    remaining: u32,
    backward: bool,
}

impl Walk<'_, '_> {
    /// Whether the walk is over an index of exactly this mask: then a longer one would not help.
    #[inline]
    fn is_exact(&self, mask: u32) -> bool {
        self.index.is_some_and(|index| index.words.load(index::MASK) == mask)
    }
}

impl Iterator for Walk<'_, '_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let here = self.next;
        if here == 0 {
            return None;
        }
        if self.remaining == 0 {
            // More records than the partition has: the links contradict the count.
            self.view.violate();
            return None;
        }
        self.remaining -= 1;
        self.next = match self.index {
            None => {
                record::header(self.view, here).load(if self.backward { PREVIOUS } else { NEXT })
            }
            Some(index) => {
                let step = if self.backward { ring::previous } else { ring::next };
                let next = step(self.view, index, here);
                if next == self.start { 0 } else { next }
            }
        };
        Some(here)
    }
}
