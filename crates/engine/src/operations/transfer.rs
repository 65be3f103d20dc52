//! `move_to` and `copy_to`: all matches from one space into another at one moment (rule O7).
//!
//! Both spaces are locked until both have changed, and change by one commit, whoever is killed when
//! (`journal::commit_together`). So nobody sees a tuple in both or in neither.

use tupelo_shm::{Section, View};
use tupelo_tuple::{Field, TemplateRef, TupleRef};

use crate::base::error::{Error, Need};
use crate::base::layout::head;
use crate::index::find::Purpose;
use crate::journal;
use crate::operations::filtered::{self, Among, FilterResults, Filtered};
use crate::operations::moment::{self, Locked, Look};
use crate::operations::targets::{self, Target, Targets, TupleCopy};
use crate::operations::{bulk, put, take};
use crate::recovery::provide::{self, Gathering};
use crate::recovery::quota::{self, Places};
use crate::recovery::{full, sweep};
use crate::store::partition::{self, Partition};
use crate::store::registry::{self, Kinds};
use crate::store::{self, Store, step};
use crate::waiters::deliver::Delivery;
use crate::waiters::timer_leader;

/// Whose resources a transfer found missing.
enum Missing {
    Source(Need),
    Target(Need),
}

/// Why an attempt did not come to its end, and what it lacked, if that can be had.
struct Failure {
    error: Error,
    missing: Option<Missing>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, missing: None }
    }
}

/// Both spaces, locked.
struct Both<'a> {
    /// Of the source, and of the target.
    sections: [Section<'a>; 2],
    /// How many more tuples the target may have.
    places: Places,
    /// The numbers that the shapes of the source have in the target, where it knows them.
    known: Vec<Option<u32>>,
    /// The same, in the order of locks.
    shapes: Vec<u32>,
}

impl<'a> Locked<'a> for Both<'a> {
    fn view(&self) -> &View<'a> {
        self.sections[0].view()
    }
}

/// As [`crate::Engine::move_to`] says.
pub(crate) fn move_to(
    store: &Store,
    other: &Store,
    template: &[TemplateRef<'_>],
) -> Result<u64, Error> {
    if is_same_space(store, other) {
        return bulk::count(store, template);
    }
    transfer(store, other, template, true)
}

/// As [`crate::Engine::copy_to`] says.
pub(crate) fn copy_to(
    store: &Store,
    other: &Store,
    template: &[TemplateRef<'_>],
) -> Result<u64, Error> {
    if !is_same_space(store, other) {
        return transfer(store, other, template, false);
    }
    copy_within(store, template)
}

/// Copies every match into this space.
fn copy_within(store: &Store, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
    timer_leader::catch_up_for_multi_shape(store)?;
    let lock = |targets: &Targets<'_>| {
        targets::lock_all_to_put(store, targets.all.iter().map(|target| target.shape))
    };
    let which = (Purpose::Read, Among::Listed);
    let copied =
        bulk::at_one_moment_by(store, template, which, lock, |section, targets, places| {
            let (copies, _) = collect(store, section, targets, false)?;
            let shapes = targets.iter().map(|target| target.shape);
            step::count_anew(section, copies.len(), shapes)?;
            Ok((copies.len() as u64, store_copies(store, section, &copies, places)?))
        });
    let Some((count, stored)) = copied? else { return Ok(0) };
    stored.wake(store);
    Ok(count)
}

/// As [`crate::Engine::is_same_space`] says.
pub(crate) fn is_same_space(store: &Store, other: &Store) -> bool {
    store.segment.identity().uuid == other.segment.identity().uuid
}

fn transfer(
    store: &Store,
    other: &Store,
    template: &[TemplateRef<'_>],
    remove: bool,
) -> Result<u64, Error> {
    timer_leader::catch_up_for_multi_shape(other)?;
    let transferred = transfer_at_last(store, other, template, remove);
    sweep::return_log_reserve(store);
    sweep::return_log_reserve(other);
    transferred
}

/// Transfers, until nothing is missing.
fn transfer_at_last(
    store: &Store,
    other: &Store,
    template: &[TemplateRef<'_>],
    remove: bool,
) -> Result<u64, Error> {
    filtered::filtering(store, template, &mut FilterResults::default(), |filter_results| {
        transfer_filtered(store, other, template, filter_results, remove)
    })
}

fn transfer_filtered(
    store: &Store,
    other: &Store,
    template: &[TemplateRef<'_>],
    filter_results: &FilterResults,
    remove: bool,
) -> Result<Filtered<u64>, Error> {
    let purpose = if remove { Purpose::Take } else { Purpose::Read };
    loop {
        let targets = || targets::targets_filtered(store, template, purpose, filter_results);
        let lock = |targets: &Targets<'_>| lock_both(store, other, targets).map_err(Failure::from);
        let how = Look { targets, lock, recalls: true };
        let done = moment::at_moment(store, &how, |both, targets| {
            transfer_once(store, other, both, targets, filter_results, remove)
        });
        match done {
            Ok(done) => return Ok(done.unwrap_or(Filtered::Done(0))),
            Err(Failure { missing: Some(Missing::Source(need)), .. }) => {
                provide::provide(store, need, Gathering::Waits)?;
            }
            Err(Failure { missing: Some(Missing::Target(need)), .. }) => {
                provide::provide(other, need, Gathering::Waits)?;
            }
            Err(Failure { error, missing: None }) => return Err(error),
        }
    }
}

/// One attempt; `None` if the target has got new shapes.
fn transfer_once<'a>(
    store: &'a Store,
    other: &'a Store,
    Both { mut sections, places, known, shapes }: Both<'a>,
    targets: &Targets<'_>,
    filter_results: &FilterResults,
    remove: bool,
) -> Result<Option<Filtered<u64>>, Failure> {
    let [from, into] = &mut sections;
    if let Some(unknown) = filter_results.missing(store, from, &targets.all, Among::Listed) {
        return Ok(Some(Filtered::Unknown(unknown)));
    }
    let new = new_shapes(store, from, targets, &known);
    if !new.is_empty() {
        drop(sections);
        for kinds in &new {
            registry::shape(other, kinds, None).map_err(in_target)?;
        }
        return Ok(None);
    }
    let (copies, removed) = collect(store, from, &targets.all, remove).map_err(in_source)?;
    full::require_may_hold(other, copies.len()).map_err(in_target)?;
    step::count_anew(into, copies.len(), shapes.iter().copied()).map_err(in_target)?;
    let stored = store_copies(other, into, &copies, places).map_err(in_target)?;
    journal::commit_together(&[store, other], &mut sections).map_err(
        |(index, error)| match index {
            0 => in_source(error),
            _ => in_target(error),
        },
    )?;
    drop(sections);
    removed.wake(store);
    stored.wake(other);
    Ok(Some(Filtered::Done(copies.len() as u64)))
}

/// The shapes of matches that the other space does not know, of which `known` are the numbers there. One that nothing
/// comes of is not made: it would be there for good.
fn new_shapes(
    store: &Store,
    from: &Section<'_>,
    targets: &Targets<'_>,
    known: &[Option<u32>],
) -> Vec<Kinds> {
    let unknown = targets.all.iter().zip(known).filter(|(_, shape)| shape.is_none());
    unknown
        .filter(|(target, _)| !target.first_matches(from.view(), store.seed, 1).is_empty())
        .map(|(target, _)| target.kinds)
        .collect()
}

/// Locks both spaces, always in the same order, whichever way the transfer goes; `None` if there is nothing to be transferred.
fn lock_both<'a>(
    store: &'a Store,
    other: &'a Store,
    targets: &Targets<'_>,
) -> Result<Option<Both<'a>>, Error> {
    if targets.all.is_empty() {
        return Ok(None);
    }
    let own: Vec<u32> = targets.all.iter().map(|target| target.shape).collect();
    let known = targets.all.iter().map(|target| registry::find_shape(other, &target.kinds));
    let known: Vec<Option<u32>> = known.collect();
    let mut shapes: Vec<u32> = known.iter().flatten().copied().collect();
    shapes.sort_unstable();
    let (sections, places) = if store.segment.identity().uuid < other.segment.identity().uuid {
        let from = lock_entirely(store, &own)?;
        let (into, places) = lock_entirely_to_put(other, &shapes)?;
        ([from, into], places)
    } else {
        let (into, places) = lock_entirely_to_put(other, &shapes)?;
        ([lock_entirely(store, &own)?, into], places)
    };
    Ok(Some(Both { sections, places, known, shapes }))
}

/// Locks the partitions of `shapes`, and whatever a change in them may need. A section
/// over one space asks for the rest when it needs it; one that has locks of another space by then could
/// wait for somebody who waits for these.
pub(crate) fn lock_entirely<'s>(store: &'s Store, shapes: &[u32]) -> Result<Section<'s>, Error> {
    match targets::lock_all(store, shapes.iter().copied())? {
        Some(section) => lock_rest(store, section),
        None => lock_rest(store, Section::enter(&store.memory, head::MULTI_SHAPE_SCOPE)?),
    }
}

/// As [`lock_entirely`], for a put: see [`crate::recovery::quota::begin_put`].
pub(crate) fn lock_entirely_to_put<'s>(
    store: &'s Store,
    shapes: &[u32],
) -> Result<(Section<'s>, Places), Error> {
    let (section, places) = match targets::lock_all_to_put(store, shapes.iter().copied())? {
        Some(locked) => locked,
        None => quota::begin_put(store, head::MULTI_SHAPE_SCOPE)?,
    };
    Ok((lock_rest(store, section)?, places))
}

fn collect<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    targets: &[Target<'_>],
    remove: bool,
) -> Result<(Vec<TupleCopy>, Delivery), Error> {
    let (mut copies, mut wakes) = (Vec::new(), Delivery::default());
    let shapes = targets.iter().map(|target| target.shape);
    step::count_anew(section, usize::MAX, shapes.filter(|_| remove))?;
    for target in targets {
        let partition = Partition::of_shape(section.view(), target.shape);
        section.focus(partition.scope());
        for reference in target.matches(section.view(), store.seed) {
            step::begin(section)?;
            copies.push(TupleCopy::new(section.view(), reference, target.kinds));
            if remove {
                wakes.join(take::remove(
                    store,
                    section,
                    partition,
                    reference,
                    target.kinds.as_slice(),
                )?);
            }
        }
    }
    Ok((copies, wakes))
}

fn store_copies<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    copies: &[TupleCopy],
    places: Places,
) -> Result<Delivery, Error> {
    quota::require_places(store, places, copies.len())?;
    let mut wakes = Delivery::default();
    for copy in copies {
        let fields: Vec<Field<'_>> = copy.view().fields().collect();
        let class = copy.view().class();
        let incoming = put::incoming(store, TupleRef { fields: &fields, class })?;
        if incoming.kinds.as_slice() != copy.view().kinds() {
            // Its shape is not the one that was locked for it.
            return Err(store::damaged(store, "a tuple has other fields than its shape says"));
        }
        let shape = registry::shape(store, &incoming.kinds, incoming.fields.first())?;
        step::begin(section)?;
        section.focus(partition::scope_of(shape));
        wakes.join(put::store_tuple(store, section, &incoming, shape)?.0);
    }
    Ok(wakes)
}

/// Locks what comes behind all partitions.
fn lock_rest<'s>(store: &Store, mut section: Section<'s>) -> Result<Section<'s>, Error> {
    let journal = store.journal.is_on().then_some(head::JOURNAL_SCOPE);
    for scope in [head::MULTI_SHAPE_SCOPE, head::ARENA_SCOPE].into_iter().chain(journal) {
        if !section.holds(scope) {
            section.enter_also(scope)?;
        }
    }
    Ok(section)
}

fn in_source(error: Error) -> Failure {
    let missing = if let Error::Need(need) = error { Some(Missing::Source(need)) } else { None };
    Failure { error, missing }
}

fn in_target(error: Error) -> Failure {
    let missing = if let Error::Need(need) = error { Some(Missing::Target(need)) } else { None };
    Failure { error, missing }
}
