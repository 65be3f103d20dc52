//! Templates with a condition over the whole tuple (rule M9): filtered on copies, outside of every lock.
//!
//! A section collects copies of tuples that fit the fields and have no filter result yet, a bounded number of them.
//! With the locks released the conditions are evaluated, and the next section has more filter results to go by. An
//! operation takes place in a section that knows all it has to. For a take of the oldest match, these are the filter
//! results of all tuples up to it; for a count, those of all. So it is as exact as any other (rules O1, O6, T2),
//! however long the conditions took. A tuple never changes, so neither does its filter result. It is kept by the number
//! of the tuple in its shape.
//!
//! Not every section goes through all that was rejected before: a shape has a *frontier*, and everything up to it has
//! its filter result. It holds as long as nothing has come back behind it. The partition counts what comes back
//! ([`RETURNS`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tupelo_shm::{Section, View};
use tupelo_tuple::{TemplateRef, TupleView};

use crate::Engine;
use crate::base::error::Error;
use crate::base::layout::Layout;
use crate::base::steps::step;
use crate::base::want::Want;
use crate::index::find::{Hit, Order, Purpose};
use crate::journal;
use crate::operations::moment::{self, Look};
use crate::operations::scan::is_listed;
use crate::operations::take::{self, take_in_hand};
use crate::operations::targets::{self, Target, Targets, TupleCopy};
use crate::operations::wait::{Outcome, filtered};
use crate::operations::{at_match, versioned_reference};
use crate::recovery::provide;
use crate::store::partition::{Partition, RETURNS};
use crate::store::registry::Kinds;
use crate::store::{Store, WHERE_ERRORS, record, space_line, stamps};
use crate::time::list::{self, List};

/// Copies in the first batch, and in later ones, each of which has twice as many: about 20 us of copying.
const BATCH_MIN: usize = 8;
const BATCH_MAX: usize = 256;
/// Batches that are filtered at once: together some 100 tuples.
const SMALL_BATCHES: u32 = 4;
/// Bytes of copies after which a batch is full.
const BATCH_BYTES: usize = 256 << 10;
/// Filter results that a waiter keeps, whatever else.
const KEPT_MIN: usize = 1024;

/// Which of several matches is taken, of what for.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    pub(crate) purpose: Purpose,
    pub(crate) order: Order,
    /// Whether the lock of the multi-shape waiters is taken, too.
    pub(crate) with_multi_shape: bool,
    /// Whether what the dead held is recalled first: not for who goes on waiting, whatever it finds (rule L5).
    pub(crate) recalls: bool,
}

impl Choice {
    fn of(purpose: Purpose, order: Order) -> Self {
        Self { purpose, order, with_multi_shape: false, recalls: true }
    }
}

/// What an operation on all matches concerns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Among {
    /// The tuples in the lists.
    Listed,
    /// These, and those that somebody holds (rule O9).
    Held,
    /// The dead (rule K5).
    Dead,
}

/// What is known of tuples that fit the fields of a template, by their shape.
#[derive(Debug, Default)]
pub(crate) struct FilterResults {
    shapes: BTreeMap<u32, OfShape>,
    batches: u32,
}

/// What is known of those of one shape.
#[derive(Debug)]
pub(crate) struct OfShape {
    /// Whether it is a match, by the number of the tuple.
    known: BTreeMap<u64, bool>,
    frontier: Option<Frontier>,
}

/// Up to here, in the order of a shape, each tuple has its filter result. In a search for the first match, none of them
/// has passed.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    reference: u32,
    sequence: u64,
    /// How many tuples had come back to the shape by then.
    returns: u32,
}

/// A shape of which nothing is known.
static NOTHING_KNOWN: OfShape = OfShape { known: BTreeMap::new(), frontier: None };

/// Tuples to be filtered before an operation can go on, and how far the look for them went.
#[derive(Default)]
pub(crate) struct Unknown {
    copies: Vec<(u32, u64, TupleCopy)>,
    bytes: usize,
    frontiers: Vec<(u32, Frontier)>,
}

/// What came of a section.
pub(crate) enum Filtered<R> {
    /// The operation took place.
    Done(R),
    /// Nothing was changed: these have to be filtered first.
    Unknown(Unknown),
}

/// What came of a look for the first match.
enum Sought<'t> {
    Found(&'t Target<'t>, u32),
    Nothing,
    Unknown(Unknown),
}

impl FilterResults {
    /// None at all.
    pub(crate) const NONE: Self = Self { shapes: BTreeMap::new(), batches: 0 };

    /// What is known of the tuples of `shape`.
    pub(crate) fn of(&self, shape: u32) -> &OfShape {
        self.shapes.get(&shape).unwrap_or(&NOTHING_KNOWN)
    }

    /// How many copies the next batch may have.
    fn room(&self) -> usize {
        // Not shifted any further: it would become 0 before `checked_shl` refused.
        BATCH_MIN << self.batches.min((BATCH_MAX / BATCH_MIN).ilog2())
    }

    fn add(&mut self, shape: u32, sequence: u64, filter_result: bool) {
        self.shape(shape).known.insert(sequence, filter_result);
    }

    fn shape(&mut self, shape: u32) -> &mut OfShape {
        self.shapes.entry(shape).or_insert(OfShape { known: BTreeMap::new(), frontier: None })
    }

    /// Forgets filter results, if most are of tuples that are gone. For who looks for the first match again and again.
    pub(crate) fn prune(&mut self, view: &View<'_>) {
        for (shape, filter_results) in &mut self.shapes {
            let live = Partition::of_shape(view, *shape).steps_max(view) as usize;
            if filter_results.known.len() > KEPT_MIN.max(2 * live) {
                filter_results.known.clear();
            }
        }
    }
}

impl OfShape {
    /// Whether the tuple at `reference` is known to be a match.
    pub(crate) fn admits(&self, view: &View<'_>, reference: u32) -> bool {
        self.filter_result(view, reference) == Some(true)
    }

    fn filter_result(&self, view: &View<'_>, reference: u32) -> Option<bool> {
        self.known.get(&sequence_of(view, reference)).copied()
    }
}

fn sequence_of(view: &View<'_>, reference: u32) -> u64 {
    record::header(view, reference).load64(record::SEQUENCE)
}

impl Unknown {
    fn add(&mut self, view: &View<'_>, target: &Target<'_>, reference: u32) {
        let header = record::header(view, reference);
        self.bytes += record::image_bytes(header);
        let copy = TupleCopy::new(view, reference, target.kinds);
        self.copies.push((target.shape, header.load64(record::SEQUENCE), copy));
    }

    fn is_full(&self, room: usize) -> bool {
        self.copies.len() >= room || self.bytes >= BATCH_BYTES
    }
}

/// A look through the candidates of one shape.
struct Survey<'s> {
    layout: &'s Layout,
    seed: u64,
    room: usize,
    backward: bool,
    /// Whether the first match ends it.
    is_for_first: bool,
}

impl Survey<'_> {
    /// Adds what is unknown to `unknown`. Returns the first match, if it is one for the first match, all before it are
    /// known, and there is one.
    fn go(&self, view: &View<'_>, target: &Target<'_>, unknown: &mut Unknown) -> Option<u32> {
        let Some(filter_results) = target.filter_results else {
            return self.is_for_first.then(|| target.first(view, self.seed, self.backward))?;
        };
        let partition = Partition::of_shape(view, target.shape);
        let returns = partition.page().load(RETURNS);
        let is_in_order = !self.backward && target.has_one_alternative();
        let holds = |frontier: &Frontier| frontier.returns == returns && is_in_order;
        let mut frontier = filter_results.frontier.filter(holds);
        let passed = frontier.map(|frontier| frontier.sequence);
        let behind = frontier
            .map(|frontier| (frontier.reference, frontier.sequence))
            .filter(|place| is_listed(view, self.layout, partition, *place))
            .map(|(reference, _)| reference);
        let mut is_prefix = !self.backward;
        let mut found = None;
        target.each_candidate(
            view,
            self.seed,
            (self.backward, behind),
            |reference, is_passed_over| {
                let sequence = sequence_of(view, reference);
                if passed.is_some_and(|passed| sequence <= passed) {
                    return true;
                }
                if is_passed_over {
                    // For now: it may be a match again. Who looks for the first one does not filter it before.
                    is_prefix = false;
                    if self.is_for_first {
                        return true;
                    }
                }
                match filter_results.known.get(&sequence) {
                    Some(true) if self.is_for_first => {
                        found = unknown.copies.is_empty().then_some(reference);
                        return false;
                    }
                    Some(_) if is_prefix => {
                        frontier = Some(Frontier { reference, sequence, returns });
                    }
                    Some(_) => {}
                    None => {
                        is_prefix = false;
                        unknown.add(view, target, reference);
                    }
                }
                !unknown.is_full(self.room)
            },
        );
        unknown.frontiers.extend(frontier.map(|frontier| (target.shape, frontier)));
        found
    }
}

/// Runs `attempt` with more and more filter results, until none is missing.
pub(crate) fn filtering<R, E: From<Error>>(
    store: &Store,
    template: &[TemplateRef<'_>],
    filter_results: &mut FilterResults,
    mut attempt: impl FnMut(&FilterResults) -> Result<Filtered<R>, E>,
) -> Result<R, E> {
    loop {
        match attempt(filter_results)? {
            Filtered::Done(result) => return Ok(result),
            Filtered::Unknown(unknown) => {
                let is_small = filter_results.batches < SMALL_BATCHES;
                let mut filter = || {
                    for (shape, sequence, copy) in &unknown.copies {
                        let filter_result = filter_result(store, template, &copy.view());
                        filter_results.add(*shape, *sequence, filter_result);
                    }
                };
                // A small batch is soon done: to let go of a lock and get it back would take longer.
                if is_small {
                    filter();
                } else {
                    step(filter)?;
                }
                for (shape, frontier) in unknown.frontiers {
                    filter_results.shape(shape).frontier = Some(frontier);
                }
                filter_results.batches = filter_results.batches.saturating_add(1);
            }
        }
    }
}

/// Whether `tuple`, a copy, is what `template` asks for. A condition that can not be told is counted.
pub(crate) fn filter_result(
    store: &Store,
    template: &[TemplateRef<'_>],
    tuple: &TupleView<'_>,
) -> bool {
    let mut failed = false;
    for one in template {
        match one.filter(tuple) {
            Ok(true) => return true,
            Ok(false) => {}
            Err(_) => failed = true,
        }
    }
    if failed {
        // Statistics: what they count has no part in any section.
        let view = store.memory.view();
        space_line(&view).double(WHERE_ERRORS).fetch_add(1, Relaxed);
    }
    false
}

/// Runs `operation` on the match that the choice asks for, in a section that holds all partitions concerned; `None`
/// if nothing matches at one moment. For templates with a condition.
pub(crate) fn find_filtered<'e, R>(
    store: &'e Store,
    template: &[TemplateRef<'_>],
    choice: Choice,
    filter_results: &mut FilterResults,
    mut operation: impl FnMut(&mut Section<'e>, &Target<'_>, u32) -> Result<R, Error>,
) -> Result<Option<R>, Error> {
    filtering(store, template, filter_results, |filter_results| {
        provide::retry(store, || {
            let targets =
                || targets::targets_filtered(store, template, choice.purpose, filter_results);
            let lock = |targets: &Targets<'_>| {
                if choice.with_multi_shape {
                    return targets::lock_with_multi_shape(store, targets).map(Some);
                }
                targets::lock_all(store, targets.all.iter().map(|target| target.shape))
            };
            let how = Look { targets, lock, recalls: choice.recalls };
            let done = moment::at_moment(store, &how, |mut section: Section<'e>, targets| {
                Ok(Some(
                    match seek(store, &section, targets, choice.order, filter_results.room()) {
                        Sought::Unknown(unknown) => Filtered::Unknown(unknown),
                        Sought::Nothing => Filtered::Done(None),
                        Sought::Found(target, reference) => {
                            section
                                .focus(Partition::of_shape(section.view(), target.shape).scope());
                            let result = operation(&mut section, target, reference)?;
                            journal::commit(store, &mut section)?;
                            Filtered::Done(Some(result))
                        }
                    },
                ))
            })?;
            Ok(done.unwrap_or(Filtered::Done(None)))
        })
    })
}

/// The match that `order` asks for, or what has to be known first.
fn seek<'t>(
    store: &Store,
    section: &Section<'_>,
    targets: &'t Targets<'t>,
    order: Order,
    room: usize,
) -> Sought<'t> {
    let backward = order == Order::Lifo;
    if !matches!(order, Order::Fifo | Order::Any | Order::Lifo) {
        if let Some(unknown) = unknown(store, section, &targets.all, (Among::Listed, room)) {
            return Sought::Unknown(unknown);
        }
        return seek_known(store, section, targets, order);
    }
    let mut unknown = Unknown::default();
    let (layout, seed) = (&store.layout, store.seed);
    let survey = Survey { layout, seed, room, backward, is_for_first: true };
    let view = section.view();
    let is_by_age = order != Order::Any && targets.all.len() > 1;
    if is_by_age {
        stamps::begin(store);
    }
    let mut firsts = Vec::new();
    for target in &targets.all {
        let found = survey.go(view, target, &mut unknown);
        firsts.extend(found.map(|reference| (target, reference)));
        let is_enough = unknown.is_full(room) || !(is_by_age || firsts.is_empty());
        if is_enough || !is_by_age && !unknown.copies.is_empty() {
            break;
        }
    }
    if !unknown.copies.is_empty() {
        return Sought::Unknown(unknown);
    }
    let age = |(_, reference): &(&Target<'_>, u32)| sequence_of(view, *reference);
    let first = firsts.into_iter();
    let first = if backward { first.max_by_key(age) } else { first.min_by_key(age) };
    first.map_or(Sought::Nothing, |(target, reference)| Sought::Found(target, reference))
}

/// The match that `order` asks for, if all are known.
fn seek_known<'t>(
    store: &Store,
    section: &Section<'_>,
    targets: &'t Targets<'t>,
    order: Order,
) -> Sought<'t> {
    let chosen = at_match::chosen(store, section, &targets.all, order);
    chosen.map_or(Sought::Nothing, |found| Sought::Found(found.target, found.reference))
}

/// A batch of those among the candidates that have no filter result; `None` if all have, or there is no condition.
pub(crate) fn unknown(
    store: &Store,
    section: &Section<'_>,
    targets: &[Target<'_>],
    (among, room): (Among, usize),
) -> Option<Unknown> {
    let (layout, seed) = (&store.layout, store.seed);
    let survey = Survey { layout, seed, room, backward: false, is_for_first: false };
    let view = section.view();
    let mut unknown = Unknown::default();
    for target in targets {
        let Some(filter_results) = target.filter_results else { continue };
        if among != Among::Dead {
            survey.go(view, target, &mut unknown);
        }
        let others = match among {
            Among::Listed => Vec::new(),
            Among::Held => targets::held(store, section, target),
            Among::Dead => list::records(view, Partition::of_shape(view, target.shape), List::Dead)
                .map(|(reference, _)| reference)
                .filter(|reference| target.fits(view, *reference, seed))
                .collect(),
        };
        for reference in others {
            if filter_results.filter_result(view, reference).is_none() && !unknown.is_full(room) {
                unknown.add(view, target, reference);
            }
        }
    }
    (!unknown.copies.is_empty()).then_some(unknown)
}

impl FilterResults {
    /// A batch of those among the candidates that have no filter result: see [`unknown`].
    pub(crate) fn missing(
        &self,
        store: &Store,
        section: &Section<'_>,
        targets: &[Target<'_>],
        among: Among,
    ) -> Option<Unknown> {
        unknown(store, section, targets, (among, self.room()))
    }
}

/// Whether matches of `template` have to fulfil a condition.
#[inline]
pub(crate) fn has_condition(template: &[TemplateRef<'_>]) -> bool {
    template.iter().any(|one| one.condition.is_some())
}

/// The verbs for one match.
/// Takes a match, as [`crate::Engine::try_take`] does.
#[cold]
pub(crate) fn take_filtered<R, E: From<Error>>(
    store: &Store,
    template: &[TemplateRef<'_>],
    order: Order,
    filter_results: &mut FilterResults,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    let taken = find_filtered(
        store,
        template,
        Choice::of(Purpose::Take, order),
        filter_results,
        |section, target, reference| {
            let partition = Partition::of_shape(section.view(), target.shape);
            let in_flight = take_in_hand(section, partition, reference)?;
            Ok((partition.scope(), reference, in_flight, target.kinds))
        },
    );
    let Some((scope, reference, in_flight, kinds)) = taken? else { return Ok(None) };
    take::visit(store, scope, reference, (&in_flight, false), kinds.as_slice(), visitor).map(Some)
}

/// What `look` finds, with what is known of the tuples that it filters; if nothing, joins the wait queue with that.
#[cold]
pub(crate) fn found_or_waits<R, E: From<Error>>(
    engine: &Arc<Engine>,
    template: &[TemplateRef<'_>],
    want: Want,
    look: impl FnOnce(&mut FilterResults) -> Result<Option<R>, E>,
) -> Result<Outcome<R>, E> {
    let mut filter_results = FilterResults::default();
    if let Some(result) = look(&mut filter_results)? {
        return Ok(Outcome::Done(result));
    }
    let waiter = filtered::filtered_waiter(engine, template, want, None, filter_results)?;
    Ok(Outcome::Waits(waiter))
}

/// Copies a match, as [`crate::Engine::try_read`] does.
#[cold]
pub(crate) fn read_filtered<R, E: From<Error>>(
    store: &Store,
    template: &[TemplateRef<'_>],
    order: Order,
    filter_results: &mut FilterResults,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    let choice = Choice::of(Purpose::Read, order);
    let copy = versioned_reference::copy_match(store, |large| {
        find_filtered(store, template, choice, filter_results, |section, target, reference| {
            Ok(large.of(section.view(), (target.shape, reference), &target.kinds))
        })
    })?;
    copy.map(|copy| visitor(copy.view())).transpose()
}

/// Changes a match in the section that found it, as [`crate::operations::at_match::at_match`] does.
#[cold]
pub(crate) fn at_filtered_match<'e, R>(
    store: &'e Store,
    template: &[TemplateRef<'_>],
    (order, purpose): (Order, Purpose),
    mut act: impl FnMut(&mut Section<'e>, Partition<'e>, Hit<'e>, &Kinds) -> Result<R, Error>,
) -> Result<Option<R>, Error> {
    find_filtered(
        store,
        template,
        Choice::of(purpose, order),
        &mut FilterResults::default(),
        |section, target, reference| {
            let partition = Partition::of_shape(section.view(), target.shape);
            let hit = Hit { record: record::at(section.view(), reference), place: None };
            act(section, partition, hit, &target.kinds)
        },
    )
}
