//! What a transaction has put: in its process, where nobody else sees it until it commits (rule X2).
//!
//! A few are looked at one by one. Of more it also keeps lists by shape, as a space does, and finds them as there: where
//! templates fix fields, by the hash of those fields, once that pays. So a transaction may put and take thousands of its own.

use std::collections::{BTreeMap, HashMap};
use std::ops::Index as At;

use smallvec::SmallVec;
use tupelo_tuple::{Field, PatternRef, TemplateRef, TupleRef, TupleView};

use crate::base::terms::LeaseTerms;
use crate::index::find::{Order, chosen, precedes};
use crate::operations::targets::{Patterns, TupleCopy};
use crate::protocols::transaction::Few;
use crate::store::incoming::Incoming;
use crate::store::key::{Key, tag_of_fields};
use crate::store::partition::INDEXES_MAX;
use crate::store::registry::Kinds;

/// Of so many tuples, a look at all of them costs less than an index.
const SCANNED_MAX: usize = 16;

/// Which of a transaction's own tuples: they count up in the order of the puts.
pub(super) type Number = u64;

/// The fields of a tuple, or of several, one after the other: few, as a rule.
pub(super) type Fields<'f> = SmallVec<[Field<'f>; 4]>;

/// The tuples, oldest first.
pub(super) struct WriteSet {
    all: Ascending<TupleCopy>,
    /// The same, by shape: from when on there are more than [`SCANNED_MAX`].
    shapes: Vec<OfShape>,
    /// When each is there from the commit on, of those that are not there at once and for ever.
    terms: BTreeMap<Number, LeaseTerms>,
    next: Number,
    seed: u64,
}

/// Those of one shape.
struct OfShape {
    kinds: Kinds,
    signature: u64,
    numbers: Ascending<()>,
    indexes: Vec<Index>,
}

/// Tuples of a shape by the hash of some of their fields.
struct Index {
    mask: u32,
    tags: HashMap<u32, Ascending<()>>,
}

/// Values by number, each inserted with a greater one than those before. One alone needs no memory of its own: most transactions
/// put one tuple, and a map makes room for eleven at once.
struct Ascending<V> {
    /// It came when nothing was there, so it is older than all others.
    first: Option<(Number, V)>,
    others: BTreeMap<Number, V>,
}

impl<V> Ascending<V> {
    const fn new() -> Self {
        Self { first: None, others: BTreeMap::new() }
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn insert(&mut self, number: Number, value: V) {
        if self.is_empty() {
            self.first = Some((number, value));
        } else {
            self.others.insert(number, value);
        }
    }

    fn remove(&mut self, number: Number) -> Option<V> {
        match self.first.take_if(|(first, _)| *first == number) {
            Some((_, value)) => Some(value),
            None => self.others.remove(&number),
        }
    }

    fn numbers(&self) -> impl DoubleEndedIterator<Item = Number> {
        let first = self.first.as_ref().map(|(number, _)| *number);
        first.into_iter().chain(self.others.keys().copied())
    }

    fn values(&self) -> impl Iterator<Item = &V> {
        let first = self.first.as_ref().map(|(_, value)| value);
        first.into_iter().chain(self.others.values())
    }
}

impl<V> At<Number> for Ascending<V> {
    type Output = V;

    fn index(&self, number: Number) -> &V {
        match &self.first {
            Some((first, value)) if *first == number => value,
            _ => &self.others[&number],
        }
    }
}

impl WriteSet {
    pub(super) fn new(seed: u64) -> Self {
        Self { all: Ascending::new(), shapes: Vec::new(), terms: BTreeMap::new(), next: 0, seed }
    }

    pub(super) fn put(&mut self, incoming: &Incoming<'_>, terms: &LeaseTerms) {
        let number = self.next;
        self.next += 1;
        if *terms != LeaseTerms::default() {
            self.terms.insert(number, *terms);
        }
        self.all.insert(number, TupleCopy::of(incoming));
        let Self { all, shapes, seed, .. } = self;
        if !shapes.is_empty() {
            of_shape(shapes, &all[number]).add(number, &all[number], *seed);
        } else if all.len() > SCANNED_MAX {
            for number in all.numbers() {
                of_shape(shapes, &all[number]).add(number, &all[number], *seed);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The terms of each, oldest first; empty if none has any.
    pub(super) fn terms(&self) -> Vec<LeaseTerms> {
        if self.terms.is_empty() {
            return Vec::new();
        }
        let of_each = |number| self.terms.get(&number).copied().unwrap_or_default();
        self.all.numbers().map(of_each).collect()
    }

    /// One that is there.
    pub(super) fn get(&self, number: Number) -> &TupleCopy {
        &self.all[number]
    }

    /// Takes one out: it was put and taken, and nobody ever hears of it (rules X2, X7).
    pub(super) fn remove(&mut self, number: Number) {
        let Some(copy) = self.all.remove(number) else { return };
        self.terms.remove(&number);
        if !self.shapes.is_empty() {
            of_shape(&mut self.shapes, &copy).remove(number, &copy, self.seed);
        }
    }

    /// Which of them match, oldest first.
    pub(super) fn matches(&mut self, template: &[TemplateRef<'_>]) -> Vec<Number> {
        let mut all: Vec<Number> =
            self.search(template, |matches| matches.collect::<Vec<_>>()).concat();
        all.sort_unstable();
        // One may match several alternatives.
        all.dedup();
        all
    }

    /// The match that `order` asks for.
    pub(super) fn pick(
        &mut self,
        template: &[TemplateRef<'_>],
        order: Order,
        random: u64,
    ) -> Option<Number> {
        if self.all.is_empty() {
            return None;
        }
        match order {
            Order::Fifo | Order::Any => {
                self.search(template, |matches| matches.next()).into_iter().flatten().min()
            }
            Order::Lifo => {
                self.search(template, |matches| matches.next_back()).into_iter().flatten().max()
            }
            Order::Random => {
                let matches = self.matches(template);
                chosen(matches.len(), random).map(|index| matches[index])
            }
            Order::Max(_) | Order::Min(_) | Order::MaxOf(_) | Order::MinOf(_) => {
                self.furthest(template, order)
            }
        }
    }

    fn furthest(&mut self, template: &[TemplateRef<'_>], order: Order) -> Option<Number> {
        let matches = self.matches(template);
        let precedes = |one: Number, best: Number| {
            precedes(&self.get(one).view(), &self.get(best).view(), order)
        };
        matches.into_iter().reduce(|best, one| if precedes(one, best) { one } else { best })
    }

    /// What `find` says of the matches of each alternative in each shape, oldest first.
    fn search<R>(
        &mut self,
        template: &[TemplateRef<'_>],
        find: impl Fn(&mut dyn DoubleEndedIterator<Item = Number>) -> R,
    ) -> Vec<R> {
        let Self { all, shapes, seed, .. } = self;
        let mut found = Vec::new();
        for alternative in template {
            if shapes.is_empty() {
                let is_match = |number: &Number| {
                    let copy = &all[*number];
                    copy.kinds().fit(alternative) && alternative.matches(&copy.view())
                };
                found.push(find(&mut all.numbers().filter(is_match)));
            }
            for shape in shapes.iter_mut().filter(|shape| shape.kinds.fit(alternative)) {
                let Some(patterns) = Patterns::of(alternative, &shape.kinds) else { continue };
                let is_match = |number: &Number| alternative.matches(&all[*number].view());
                let candidates = shape.candidates(all, &patterns, *seed);
                let candidates = candidates.into_iter().flat_map(Ascending::numbers);
                found.push(find(&mut candidates.filter(is_match)));
            }
        }
        found
    }

    /// The fields of all, for [`WriteSet::refs`].
    pub(super) fn fields(&self) -> Fields<'_> {
        let mut all = Fields::new();
        for copy in self.all.values() {
            all.extend(copy.view().fields());
        }
        all
    }

    /// All of them, in the form that a put takes.
    pub(super) fn refs<'s>(&'s self, fields: &'s [Field<'_>]) -> Few<TupleRef<'s>> {
        let (mut refs, mut rest) = (Few::with_capacity(self.len()), fields);
        for copy in self.all.values() {
            let (fields, others) = rest.split_at(copy.kinds().as_slice().len());
            refs.push(TupleRef { fields, class: copy.kinds().class() });
            rest = others;
        }
        refs
    }
}

/// What there is of the shape of `copy`.
fn of_shape<'s>(shapes: &'s mut Vec<OfShape>, copy: &TupleCopy) -> &'s mut OfShape {
    let kinds = copy.kinds();
    let signature = kinds.signature();
    let is_it = |shape: &OfShape| shape.signature == signature && shape.kinds.are(kinds);
    let at = shapes.iter().position(is_it).unwrap_or_else(|| {
        let (numbers, indexes) = (Ascending::new(), Vec::new());
        shapes.push(OfShape { kinds: *kinds, signature, numbers, indexes });
        shapes.len() - 1
    });
    &mut shapes[at]
}

/// The fields of a copy, for indexes.
fn fields_of(copy: &TupleCopy) -> Fields<'_> {
    copy.view().fields().collect()
}

impl OfShape {
    fn add(&mut self, number: Number, copy: &TupleCopy, seed: u64) {
        self.numbers.insert(number, ());
        for index in &mut self.indexes {
            index.add(number, &fields_of(copy), seed);
        }
    }

    fn remove(&mut self, number: Number, copy: &TupleCopy, seed: u64) {
        self.numbers.remove(number);
        for index in &mut self.indexes {
            index.remove(number, &fields_of(copy), seed);
        }
    }

    /// Those that can match, oldest first; `None` if there are none.
    fn candidates(
        &mut self,
        all: &Ascending<TupleCopy>,
        patterns: &[PatternRef<'_>],
        seed: u64,
    ) -> Option<&Ascending<()>> {
        let key = Key::new(patterns, seed);
        match self.index(all, key.mask, seed) {
            Some(slot) => self.indexes[slot].tags.get(&key.tag),
            None => Some(&self.numbers),
        }
    }

    /// Which index is over the fields in `mask`; it is built, if that pays. `None` if there is none.
    fn index(&mut self, all: &Ascending<TupleCopy>, mask: u32, seed: u64) -> Option<usize> {
        let slot = self.indexes.iter().position(|index| index.mask == mask);
        let pays =
            || mask != 0 && self.numbers.len() > SCANNED_MAX && self.indexes.len() < INDEXES_MAX;
        if slot.is_some() || !pays() {
            return slot;
        }
        let mut index = Index { mask, tags: HashMap::new() };
        for number in self.numbers.numbers() {
            index.add(number, &fields_of(&all[number]), seed);
        }
        self.indexes.push(index);
        Some(self.indexes.len() - 1)
    }
}

impl Index {
    fn add(&mut self, number: Number, fields: &[Field<'_>], seed: u64) {
        let tag = tag_of_fields(fields, self.mask, seed);
        self.tags.entry(tag).or_insert_with(Ascending::new).insert(number, ());
    }

    fn remove(&mut self, number: Number, fields: &[Field<'_>], seed: u64) {
        let tag = tag_of_fields(fields, self.mask, seed);
        if let Some(numbers) = self.tags.get_mut(&tag) {
            numbers.remove(number);
            if numbers.is_empty() {
                self.tags.remove(&tag);
            }
        }
    }
}

/// Whether an order by a field asks for `own` rather than for `copy`, which is older.
pub(super) fn is_preceded(copy: &TupleView<'_>, own: &TupleView<'_>, order: Order) -> bool {
    order.is_by_field() && precedes(own, copy, order)
}
