//! The shapes that an operation over all matches concerns, and locking them together (rules O5, O6).

use std::ops::Deref;

use smallvec::SmallVec;
use tupelo_shm::{Section, View};
use tupelo_tuple::{PatternRef, TemplateRef, TupleView, image};

use crate::base::error::Error;
use crate::base::layout::head;
use crate::index::find::{Found, Order, Purpose, Search, chosen, extreme};
use crate::operations::filtered::{FilterResults, OfShape};
use crate::recovery::quota::{self, Places};
use crate::store::incoming::Incoming;
use crate::store::partition::{self, HELD, LIVE, Partition};
use crate::store::record::{self, ImageBuffer, Record};
use crate::store::registry::{self, Kinds};
use crate::store::{Store, in_flight, step};
use crate::time::list::{self, List};
use crate::waiters::hand_off;

/// A shape, and the alternatives of a template that can match its tuples.
pub(crate) struct Target<'t> {
    pub(crate) shape: u32,
    pub(crate) kinds: Kinds,
    pub(crate) purpose: Purpose,
    /// Which of the tuples that fit are matches, if the template has a condition.
    pub(crate) filter_results: Option<&'t OfShape>,
    /// Their patterns, field by field.
    alternatives: Vec<Patterns<'t>>,
}

/// The targets of one template, by shape number: the order in which locks are taken.
pub(crate) struct Targets<'t> {
    pub(crate) all: Vec<Target<'t>>,
    /// How many shapes there were: a new one since then may be a target too.
    shapes: u32,
}

impl Target<'_> {
    /// The matches in the partition, oldest first, each once.
    pub(crate) fn matches(&self, view: &View<'_>, seed: u64) -> Vec<u32> {
        self.first_matches(view, seed, usize::MAX)
    }

    /// How many there are. Where each tuple of the shape is one, the partition knows. Returns also by which fields an index
    /// pays, if that has shown it; else 0.
    pub(crate) fn count(&self, view: &View<'_>, seed: u64) -> (u64, u32) {
        let partition = Partition::of_shape(view, self.shape);
        match self.search(seed) {
            Some(search) if self.purpose == Purpose::Read => {
                let is_each = search.key.mask == 0 && search.key.is_all;
                if is_each {
                    return (u64::from(partition.page().load(LIVE)), 0);
                }
                search.count(view, partition)
            }
            _ => (self.matches(view, seed).len() as u64, 0),
        }
    }

    /// The oldest of them, `at_most` so many: no more are looked at than that takes.
    pub(crate) fn first_matches(&self, view: &View<'_>, seed: u64, at_most: usize) -> Vec<u32> {
        let partition = Partition::of_shape(view, self.shape);
        let of = |patterns: &[PatternRef<'_>]| -> Vec<u32> {
            let is_match = |reference: &u32| self.admits(view, *reference);
            Search::new(patterns, &self.kinds, seed, self.purpose)
                .first_matches(view, partition, is_match, at_most)
        };
        if let [one] = &self.alternatives[..] {
            return of(one);
        }
        self.merged(view, at_most, of)
    }

    /// Whether a record that fits is a match as far as the condition says, if there is one.
    pub(crate) fn admits(&self, view: &View<'_>, reference: u32) -> bool {
        self.filter_results.is_none_or(|filter_results| filter_results.admits(view, reference))
    }

    /// The oldest match, or the youngest; `None` if there is none.
    pub(crate) fn first(&self, view: &View<'_>, seed: u64, backward: bool) -> Option<u32> {
        let order = if backward { Order::Lifo } else { Order::Fifo };
        Some(self.pick(view, order, 0, seed)).filter(|reference| *reference != 0)
    }

    /// Gives `visit` each record whose fields are those of a match, in order, with whether it is passed over
    /// nevertheless; behind one of them, if that is given. Until `visit` says that it is enough.
    pub(crate) fn each_candidate(
        &self,
        view: &View<'_>,
        seed: u64,
        (backward, behind): (bool, Option<u32>),
        mut visit: impl FnMut(u32, bool) -> bool,
    ) {
        let partition = Partition::of_shape(view, self.shape);
        let passed_over = |reference| self.purpose.passes_over(record::header(view, reference));
        if let [one] = &self.alternatives[..] {
            let search = Search::new(one, &self.kinds, seed, Purpose::Read);
            let mut walk = match behind {
                Some(reference) => search.candidates_behind(view, partition, reference),
                None => search.candidates(view, partition, backward),
            };
            walk.all(|reference| {
                let fits = search.accepts(view, record::at(view, reference));
                !fits || visit(reference, passed_over(reference))
            });
            return;
        }
        let all = self.merged(view, usize::MAX, |patterns| {
            Search::new(patterns, &self.kinds, seed, Purpose::Read)
                .matches(view, partition)
                .collect()
        });
        let in_order: Box<dyn Iterator<Item = u32>> =
            if backward { Box::new(all.into_iter().rev()) } else { Box::new(all.into_iter()) };
        let mut in_order = in_order;
        in_order.all(|reference| visit(reference, passed_over(reference)));
    }

    /// Whether there is one alternative only: then its matches are gone through one by one.
    pub(crate) fn has_one_alternative(&self) -> bool {
        self.alternatives.len() == 1
    }

    /// What `of` finds for each alternative, oldest first, each once.
    fn merged(
        &self,
        view: &View<'_>,
        at_most: usize,
        of: impl Fn(&[PatternRef<'_>]) -> Vec<u32>,
    ) -> Vec<u32> {
        let mut all: Vec<u32> =
            self.alternatives.iter().flat_map(|alternative| of(alternative)).collect();
        all.sort_unstable_by_key(|reference| {
            (record::header(view, *reference).load64(record::SEQUENCE), *reference)
        });
        all.dedup();
        all.truncate(at_most);
        all
    }

    /// The search for the only alternative; `None` if there are several, or there is a condition.
    pub(crate) fn search(&self, seed: u64) -> Option<Search<'_>> {
        if self.filter_results.is_some() {
            return None;
        }
        let [one] = &self.alternatives[..] else { return None };
        Some(Search::new(one, &self.kinds, seed, self.purpose))
    }

    /// As [`Target::pick`], with where it stands in an index, and whether to learn.
    pub(crate) fn find<'m>(
        &self,
        view: &View<'m>,
        order: Order,
        random: u64,
        seed: u64,
    ) -> Found<'m> {
        match self.search(seed) {
            Some(search) => search.pick(view, Partition::of_shape(view, self.shape), order, random),
            None => Found::at(view, self.pick(view, order, random, seed), 0),
        }
    }

    /// The match that `order` asks for among those of all alternatives, or 0.
    pub(crate) fn pick(&self, view: &View<'_>, order: Order, random: u64, seed: u64) -> u32 {
        self.pick_noting(view, order, random, seed).0
    }

    /// As [`Target::pick`]. Returns also the fields of an alternative by which an index pays, if the search has shown that;
    /// else 0.
    pub(crate) fn pick_noting(
        &self,
        view: &View<'_>,
        order: Order,
        random: u64,
        seed: u64,
    ) -> (u32, u32) {
        let order = order.among(self.kinds.class());
        if let Some(search) = self.search(seed) {
            let found = search.pick(view, Partition::of_shape(view, self.shape), order, random);
            return (found.reference(), found.learn);
        }
        let reference = match order {
            Order::Fifo | Order::Any => return self.first_of_alternatives(view, seed, false),
            Order::Lifo => return self.first_of_alternatives(view, seed, true),
            Order::Random => {
                let all = self.matches(view, seed);
                chosen(all.len(), random).and_then(|index| all.get(index).copied()).unwrap_or(0)
            }
            Order::Max(_) | Order::Min(_) | Order::MaxOf(_) | Order::MinOf(_) => {
                extreme(view, self.kinds.as_slice(), self.matches(view, seed), order)
            }
        };
        (reference, 0)
    }

    /// The oldest match of each alternative, by its index, and the oldest of those; or the youngest.
    fn first_of_alternatives(&self, view: &View<'_>, seed: u64, backward: bool) -> (u32, u32) {
        let partition = Partition::of_shape(view, self.shape);
        let order = if backward { Order::Lifo } else { Order::Fifo };
        let mut learn = 0;
        let firsts = self.alternatives.iter().filter_map(|patterns| {
            let search = Search::new(patterns, &self.kinds, seed, self.purpose);
            if self.filter_results.is_some() {
                let is_match = |reference: &u32| {
                    search.accepts(view, record::at(view, *reference))
                        && self.admits(view, *reference)
                };
                return search.candidates(view, partition, backward).find(is_match);
            }
            let found = search.pick(view, partition, order, 0);
            if found.learn != 0 {
                learn = found.learn;
            }
            found.hit.map(|hit| hit.record.reference)
        });
        let age = |reference: &u32| {
            (record::header(view, *reference).load64(record::SEQUENCE), *reference)
        };
        let first = if backward { firsts.max_by_key(age) } else { firsts.min_by_key(age) };
        (first.unwrap_or(0), learn)
    }

    /// Whether the record is a match.
    pub(crate) fn accepts(&self, view: &View<'_>, reference: u32, seed: u64) -> bool {
        self.fits(view, reference, seed) && self.admits(view, reference)
    }

    /// Whether its fields are those of a match.
    pub(crate) fn fits(&self, view: &View<'_>, reference: u32, seed: u64) -> bool {
        self.alternatives.iter().any(|alternative| {
            Search::new(alternative, &self.kinds, seed, self.purpose)
                .accepts(view, record::at(view, reference))
        })
    }
}

/// The patterns of a template, field by field. (Not a `Cow`, which is invariant in what it borrows.)
pub(crate) enum Patterns<'t> {
    Given(&'t [PatternRef<'t>]),
    /// Those of a template of entries, put into the order of the fields.
    Resolved(Vec<PatternRef<'t>>),
}

impl<'t> Patterns<'t> {
    /// The patterns of a template that fits `kinds`.
    pub(crate) fn of(template: &TemplateRef<'t>, kinds: &Kinds) -> Option<Self> {
        match kinds.class() {
            None => Some(Self::Given(template.patterns)),
            Some(class) => template.resolved(class).map(Self::Resolved),
        }
    }
}

impl<'t> Deref for Patterns<'t> {
    type Target = [PatternRef<'t>];

    fn deref(&self) -> &[PatternRef<'t>] {
        match self {
            Self::Given(patterns) => patterns,
            Self::Resolved(patterns) => patterns,
        }
    }
}

/// A copy of a tuple: what bulk operations carry from the critical section to the visitor.
pub(crate) struct TupleCopy {
    kinds: Kinds,
    image: Image,
    wide: bool,
}

/// An image outside of the segment, with room for that of a few numbers and words: most need no memory of their own.
pub(crate) type Image = SmallVec<[u8; 64]>;

impl TupleCopy {
    pub(crate) fn new(view: &View<'_>, reference: u32, kinds: Kinds) -> Self {
        let mut buffer = ImageBuffer::new();
        let image = Image::from_slice(buffer.copy(view, reference, kinds.as_slice()).image());
        let (_, wide) = record::shape_of(record::header(view, reference));
        Self { kinds, image, wide }
    }

    /// A copy that was made elsewhere.
    pub(crate) fn of_image(kinds: Kinds, image: Image, wide: bool) -> Self {
        Self { kinds, image, wide }
    }

    /// A copy of a tuple that is in no space.
    pub(crate) fn of(incoming: &Incoming<'_>) -> Self {
        let size = image::size(incoming.fields, 0);
        let mut image = ImageBytes(Image::from_elem(0, size.bytes));
        image::write(incoming.fields, 0, size.wide, &mut image);
        Self { kinds: incoming.kinds, image: image.0, wide: size.wide }
    }

    /// As [`TupleCopy::new`]; `None` of a large tuple, which is copied outside of the critical section.
    pub(crate) fn of_short(view: &View<'_>, record: Record<'_>, kinds: &Kinds) -> Option<Self> {
        record::is_short(record.header).then(|| Self::new(view, record.reference, *kinds))
    }

    /// What kinds its fields have.
    pub(crate) fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    pub(crate) fn view(&self) -> TupleView<'_> {
        TupleView::new(self.kinds.as_slice(), &self.image, self.wide).of_class(self.kinds.class())
    }
}

/// Room for a copy of a tuple on its way from the critical section to the visitor, which is allocated only for a large one.
pub(crate) struct TupleBuffer {
    kinds: Kinds,
    image: ImageBuffer,
    wide: bool,
}

impl TupleBuffer {
    pub(crate) const fn new() -> Self {
        Self { kinds: Kinds::new(), image: ImageBuffer::new(), wide: false }
    }

    /// Copies the tuple of `record`, whose fields have `kinds`.
    #[inline]
    pub(crate) fn fill(&mut self, view: &View<'_>, record: Record<'_>, kinds: &Kinds) {
        self.kinds = *kinds;
        self.image.copy_of(view, record, kinds.as_slice());
        (_, self.wide) = record::shape_of(record.header);
    }

    /// As [`TupleBuffer::fill`]; not a large tuple, which is copied outside of the critical section. Returns whether it did.
    #[inline]
    pub(crate) fn fill_short(
        &mut self,
        view: &View<'_>,
        record: Record<'_>,
        kinds: &Kinds,
    ) -> bool {
        let is_short = record::is_short(record.header);
        if is_short {
            self.fill(view, record, kinds);
        }
        is_short
    }

    /// The tuple that was copied last.
    #[inline]
    pub(crate) fn view(&self) -> TupleView<'_> {
        TupleView::new(self.kinds.as_slice(), self.image.copied(), self.wide)
            .of_class(self.kinds.class())
    }
}

/// Where an image is written that is in no segment.
struct ImageBytes(Image);

impl image::Write for ImageBytes {
    fn word(&mut self, index: usize, word: u64) {
        self.bytes(8 * index, &word.to_le_bytes());
    }

    fn bytes(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// The shapes that `template` can match.
pub(crate) fn targets<'t>(
    store: &Store,
    template: &'t [TemplateRef<'t>],
    purpose: Purpose,
) -> Targets<'t> {
    targets_filtered(store, template, purpose, &NO_FILTER_RESULTS)
}

/// As [`targets`], with what is known of the tuples that fit, if `template` has a condition.
pub(crate) fn targets_filtered<'t>(
    store: &Store,
    template: &'t [TemplateRef<'t>],
    purpose: Purpose,
    filter_results: &'t FilterResults,
) -> Targets<'t> {
    let view = store.memory.view();
    let shapes = registry::count(&view);
    let mut pairs = registry::fitting(store, template);
    pairs.sort_by_key(|(_, shape)| *shape);
    let mut all: Vec<Target<'t>> = Vec::new();
    for (alternative, shape) in pairs {
        if let Some(last) = all.last_mut().filter(|last| last.shape == shape) {
            last.alternatives.extend(Patterns::of(alternative, &last.kinds));
            last.filter_results =
                last.filter_results.or(alternative.condition.map(|_| filter_results.of(shape)));
        } else if let Some(kinds) = registry::kinds_of(store, &view, shape) {
            let alternatives = Patterns::of(alternative, &kinds).into_iter().collect();
            let filter_results = alternative.condition.map(|_| filter_results.of(shape));
            all.push(Target { shape, kinds, purpose, filter_results, alternatives });
        }
    }
    Targets { all, shapes }
}

/// Locks the partitions of `shapes`, ascending, at a moment at which everything due there has happened; `None`
/// if there are none.
pub(crate) fn lock_all(
    store: &Store,
    shapes: impl IntoIterator<Item = u32, IntoIter: Clone>,
) -> Result<Option<Section<'_>>, Error> {
    let locked =
        lock_all_from(store, shapes, |scope| Ok((Section::enter(&store.memory, scope)?, ())))?;
    Ok(locked.map(|(section, ())| section))
}

/// As [`lock_all`], for a put: see [`crate::recovery::quota::begin_put`].
pub(crate) fn lock_all_to_put(
    store: &Store,
    shapes: impl IntoIterator<Item = u32, IntoIter: Clone>,
) -> Result<Option<(Section<'_>, Places)>, Error> {
    lock_all_from(store, shapes, |scope| quota::begin_put(store, scope))
}

/// As [`lock_all`], where `begin` locks the first.
fn lock_all_from<'e, P>(
    store: &'e Store,
    shapes: impl IntoIterator<Item = u32, IntoIter: Clone>,
    begin: impl Fn(u32) -> Result<(Section<'e>, P), Error>,
) -> Result<Option<(Section<'e>, P)>, Error> {
    let shapes = shapes.into_iter();
    let mut others = shapes.clone();
    let Some(first) = others.next() else { return Ok(None) };
    loop {
        let (mut section, with) = begin(partition::scope_of(first))?;
        for shape in others.clone() {
            section.enter_also(partition::scope_of(shape))?;
        }
        let is_behind =
            |shape: &u32| partition::is_behind(Partition::of_shape(section.view(), *shape));
        let Some(late) = shapes.clone().find(is_behind) else {
            return Ok(Some((section, with)));
        };
        let scope = partition::scope_of(late);
        drop(section);
        (store.callbacks.catch_up)(store, scope)?;
    }
}

/// As [`lock_all_to_put`], of at least one shape, in any order and perhaps several times, for a step in which
/// `changes` tuples come or go.
pub(crate) fn lock_to_put(
    store: &Store,
    shapes: impl IntoIterator<Item = u32>,
    changes: usize,
) -> Result<(Section<'_>, Places), Error> {
    let mut shapes: Vec<u32> = shapes.into_iter().collect();
    shapes.sort_unstable();
    shapes.dedup();
    let Some((mut section, places)) = lock_all_to_put(store, shapes.iter().copied())? else {
        unreachable!("at least one shape is to be locked")
    };
    step::count_anew(&mut section, changes, shapes)?;
    Ok((section, places))
}

/// Locks the partitions of all targets, then the multi-shape waiters.
pub(crate) fn lock_with_multi_shape<'s>(
    store: &'s Store,
    targets: &Targets<'_>,
) -> Result<Section<'s>, Error> {
    let section = lock_all(store, targets.all.iter().map(|target| target.shape))?;
    let Some(mut section) = section else {
        return Ok(Section::enter(&store.memory, head::MULTI_SHAPE_SCOPE)?);
    };
    section.enter_also(head::MULTI_SHAPE_SCOPE)?;
    Ok(section)
}

/// Whether shapes were added since `targets` were listed.
pub(crate) fn outdated(store: &Store, targets: &Targets<'_>) -> bool {
    registry::count(&store.memory.view()) != targets.shapes
}

/// Whether a match of `target` is held by somebody. The section holds the partition.
pub(crate) fn holds_match(store: &Store, section: &Section<'_>, target: &Target<'_>) -> bool {
    held(store, section, target).into_iter().any(|one| target.admits(section.view(), one))
}

/// The records whose fields are those of a match of `target` and that somebody holds. They are handed to a waiter that
/// has not picked it up, claimed, or in the hands of a take. The section holds the partition.
#[cold]
pub(crate) fn held(store: &Store, section: &Section<'_>, target: &Target<'_>) -> Vec<u32> {
    let view = section.view();
    if Partition::of_shape(view, target.shape).page().load(HELD) == 0 {
        return Vec::new();
    }
    let fits = |reference: &u32| target.fits(view, *reference, store.seed);
    let handed = hand_off::handed(view, target.shape).map(|(_, reference)| reference);
    let partition = Partition::of_shape(view, target.shape);
    let hidden = [List::Claimed, List::Enlisted]
        .into_iter()
        .flat_map(|list| list::records(view, partition, list))
        .map(|(reference, _)| reference);
    let slots = store.memory.slots();
    let in_hand = slots
        .into_iter()
        .flat_map(|slot| in_flight::words().map(move |word| in_flight::named(slot, word)));
    let in_hand = in_hand.filter(|reference| {
        record::header_of_shape(view, *reference, target.shape)
            .is_some_and(|header| header.load(record::STATE) == record::TAKEN)
    });
    handed.chain(hidden).chain(in_hand).filter(fits).collect()
}

/// What is known of tuples where nobody asks for filter results.
static NO_FILTER_RESULTS: FilterResults = FilterResults::NONE;
