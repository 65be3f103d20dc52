//! Operations on many tuples at one moment (rules O5, O6): all partitions concerned are locked together, and
//! one store commits everything.

use smallvec::SmallVec;
use tupelo_shm::Section;
use tupelo_tuple::{Field, TemplateRef, TupleRef, TupleView};

use crate::base::error::Error;
use crate::base::terms::LeaseTerms;
use crate::index::find::{Order, Purpose, precedes};
use crate::journal;
use crate::operations::at_match;
use crate::operations::by_age::age;
use crate::operations::filtered::{self, Among, FilterResults, Filtered};
use crate::operations::moment::{self, Look};
use crate::operations::put;
use crate::operations::take::{self, take_in_hand};
use crate::operations::targets::{self, Target, Targets, TupleCopy};
use crate::operations::versioned_reference::{self, LargeCopy, Seen};
use crate::recovery::full::{self, Wanted, largest_bytes};
use crate::recovery::{provide, quota};
use crate::store::incoming::{self, Incoming};
use crate::store::partition::{self, Partition};
use crate::store::{Store, record, registry, stamps, step};
use crate::waiters::deliver::Delivery;
use crate::waiters::timer_leader;

/// Tuples that are put at one moment, with their shapes. Nearly always one where something else goes at that moment, too.
pub(crate) type Together<'f> = SmallVec<[(Incoming<'f>, u32); 1]>;

/// As [`crate::Engine::put_all`] says.
pub(crate) fn put_all<'f>(
    store: &Store,
    tuples: &[impl Into<TupleRef<'f>> + Copy],
) -> Result<usize, Error> {
    let mut incoming = Together::new();
    all_incoming(store, tuples, &mut incoming)?;
    put_all_incoming(store, &incoming)?;
    Ok(tuples.len())
}

/// As [`crate::Engine::put_all_leased`] says.
pub(crate) fn put_all_leased<'f>(
    store: &Store,
    tuples: &[impl Into<TupleRef<'f>> + Copy],
    terms: &LeaseTerms,
) -> Result<usize, Error> {
    let mut incoming = Together::new();
    all_incoming(store, tuples, &mut incoming)?;
    for (one, _) in &mut incoming {
        one.terms = Some(incoming::numbered(store, terms));
    }
    put_all_incoming(store, &incoming)?;
    Ok(tuples.len())
}

/// Checks tuples that are to be put together, finds their shapes, and adds them to `all`.
pub(crate) fn all_incoming<'f>(
    store: &Store,
    tuples: &[impl Into<TupleRef<'f>> + Copy],
    all: &mut Together<'f>,
) -> Result<(), Error> {
    // Nothing that collects, or returns them: it would move each from place to place.
    all.reserve(tuples.len());
    for tuple in tuples {
        let one = put::incoming(store, (*tuple).into())?;
        let shape = registry::shape(store, &one.kinds, one.fields.first())?;
        all.push((one, shape));
    }
    Ok(())
}

/// Gives each tuple the terms of the same place, from now on. Those without are there at once, and for ever.
pub(crate) fn set_terms(store: &Store, incoming: &mut [(Incoming<'_>, u32)], terms: &[LeaseTerms]) {
    for ((one, _), terms) in incoming.iter_mut().zip(terms) {
        if *terms != LeaseTerms::default() {
            one.terms = Some(incoming::numbered(store, terms));
        }
    }
}

fn put_all_incoming(store: &Store, incoming: &[(Incoming<'_>, u32)]) -> Result<(), Error> {
    if incoming.is_empty() {
        return Ok(());
    }
    full::require_fit(store, incoming)?;
    timer_leader::catch_up_for_multi_shape(store)?;
    let shapes: Vec<u32> = incoming.iter().map(|(_, shape)| *shape).collect();
    let put = || {
        let (mut section, places) =
            targets::lock_to_put(store, shapes.iter().copied(), incoming.len())?;
        quota::require_places(store, places, incoming.len())?;
        let wakes = store_all(store, &mut section, incoming)?;
        journal::commit(store, &mut section)?;
        Ok(wakes)
    };
    let wanted = Wanted { shapes: &shapes, leaving: 0, largest_bytes: largest_bytes(incoming) };
    let wakes = full::making_room(store, wanted, || provide::retry(store, put))?;
    wakes.wake(store);
    Ok(())
}

/// Stores tuples in a section that holds all their partitions, and has places for them.
pub(crate) fn store_all<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    incoming: &[(Incoming<'_>, u32)],
) -> Result<Delivery, Error> {
    let mut wakes = Delivery::default();
    for (one, shape) in incoming {
        step::begin(section)?;
        section.focus(Partition::of_shape(section.view(), *shape).scope());
        wakes.join(put::store_tuple(store, section, one, *shape)?.0);
    }
    Ok(wakes)
}

/// As [`crate::Engine::count`] says.
pub(crate) fn count(store: &Store, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
    let mut learned = Vec::new();
    let counted = at_one_moment(store, template, Purpose::Read, |section, targets| {
        learned.clear();
        let of = |target: &Target<'_>| {
            let (count, learn) = target.count(section.view(), store.seed);
            learned.push((partition::scope_of(target.shape), learn));
            count
        };
        Ok(targets.iter().map(of).sum())
    });
    let count = counted?.unwrap_or(0);
    for (scope, learn) in learned {
        // It is counted: that an index could not be had must not undo it.
        let _ = take::learn_if(store, learn, scope);
    }
    Ok(count)
}

/// As [`crate::Engine::count_with_read`] says.
pub(crate) fn count_with_read(
    store: &Store,
    template: &[TemplateRef<'_>],
) -> Result<(u64, u64), Error> {
    let counted = at_one_moment(store, template, Purpose::Read, |section, targets| {
        let (mut all, mut read) = (0, 0);
        for reference in targets.iter().flat_map(|one| one.matches(section.view(), store.seed)) {
            all += 1;
            let header = record::header(section.view(), reference);
            read += u64::from(Purpose::Take.passes_over(header));
        }
        Ok((all, read))
    });
    Ok(counted?.unwrap_or_default())
}

/// As [`crate::Engine::present`] says.
pub(crate) fn present(store: &Store, template: &[TemplateRef<'_>]) -> Result<bool, Error> {
    let among = (Purpose::Read, Among::Held);
    let present = at_one_moment_among(store, template, among, |section, targets| {
        Ok(targets.iter().any(|target| has_match(store, section, target)))
    });
    Ok(present?.unwrap_or(false))
}

/// Whether a match of `target` is in its partition, or held.
pub(crate) fn has_match(store: &Store, section: &Section<'_>, target: &Target<'_>) -> bool {
    !target.first_matches(section.view(), store.seed, 1).is_empty()
        || targets::holds_match(store, section, target)
}

/// As [`crate::Engine::read_all`] says.
pub(crate) fn read_all<R, E: From<Error>>(
    store: &Store,
    template: &[TemplateRef<'_>],
    limit: Option<usize>,
    visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
) -> Result<Vec<R>, E> {
    visit(&copies(store, template, limit.unwrap_or(usize::MAX))?, visitor)
}

/// Copies of the matches of one moment.
pub(crate) fn copies(
    store: &Store,
    template: &[TemplateRef<'_>],
    limit: usize,
) -> Result<Vec<TupleCopy>, Error> {
    let copies = at_one_moment(store, template, Purpose::Read, |section, targets| {
        let matches = found(store, section, targets, limit);
        Ok(matches.map(|found| found.copy(section)).collect())
    });
    Ok(copies?.unwrap_or_default())
}

/// Removes the match that `order` asks for among those of all shapes at one moment.
pub(crate) fn take_chosen<R, E: From<Error>>(
    store: &Store,
    template: &[TemplateRef<'_>],
    order: Order,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    let held = at_one_moment(store, template, Purpose::Take, |section, targets| {
        let Some(found) = at_match::chosen(store, section, targets, order) else {
            return Ok(None);
        };
        let partition = Partition::of_shape(section.view(), found.target.shape);
        section.focus(partition.scope());
        let in_flight = take_in_hand(section, partition, found.reference)?;
        Ok(Some((partition.scope(), found.reference, in_flight, found.target.kinds)))
    });
    let Some((scope, reference, in_flight, kinds)) = held?.flatten() else { return Ok(None) };
    take::visit(store, scope, reference, (&in_flight, false), kinds.as_slice(), visitor).map(Some)
}

/// Copies the match that `order` asks for among those of all shapes at one moment.
pub(crate) fn read_chosen<R, E: From<Error>>(
    store: &Store,
    template: &[TemplateRef<'_>],
    order: Order,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    let copy = versioned_reference::copy_match(store, |large| {
        let seen = at_one_moment(store, template, Purpose::Read, |section, targets| {
            let found = at_match::chosen(store, section, targets, order);
            Ok(found.map(|found| found.seen(section, large)))
        });
        Ok(seen?.flatten())
    })?;
    copy.map(|copy| visitor(copy.view())).transpose()
}

pub(crate) fn remove_found<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    found: &Found<'_>,
) -> Result<Delivery, Error> {
    step::begin(section)?;
    let partition = Partition::of_shape(section.view(), found.target.shape);
    section.focus(partition.scope());
    take::remove(store, section, partition, found.reference, found.target.kinds.as_slice())
}

/// Stores copies as new tuples.
pub(crate) fn put_copies(store: &Store, copies: &[TupleCopy]) -> Result<(), Error> {
    let fields: Vec<Vec<Field<'_>>> =
        copies.iter().map(|copy| copy.view().fields().collect()).collect();
    let tuples = fields.iter().zip(copies);
    let tuples = tuples.map(|(fields, copy)| TupleRef { fields, class: copy.view().class() });
    put_all(store, &tuples.collect::<Vec<_>>()).map(|_| ())
}

/// Runs `operation` while every partition that `template` concerns is locked. `None` if there is none.
pub(crate) fn at_one_moment<'e, R>(
    store: &'e Store,
    template: &[TemplateRef<'_>],
    purpose: Purpose,
    operation: impl FnMut(&mut Section<'e>, &[Target<'_>]) -> Result<R, Error>,
) -> Result<Option<R>, Error> {
    at_one_moment_among(store, template, (purpose, Among::Listed), operation)
}

/// As [`at_one_moment`], for who asks also for tuples that are not in the lists.
pub(crate) fn at_one_moment_among<'e, R>(
    store: &'e Store,
    template: &[TemplateRef<'_>],
    which: (Purpose, Among),
    mut operation: impl FnMut(&mut Section<'e>, &[Target<'_>]) -> Result<R, Error>,
) -> Result<Option<R>, Error> {
    let lock = |targets: &Targets<'_>| -> Result<_, Error> {
        let section = targets::lock_all(store, targets.all.iter().map(|target| target.shape))?;
        Ok(section.map(|section| (section, ())))
    };
    at_one_moment_by(store, template, which, lock, |section, targets, ()| {
        operation(section, targets)
    })
}

/// As [`at_one_moment_among`], where `lock` locks the partitions, and finds out what else `operation` has to know.
pub(crate) fn at_one_moment_by<'e, P, R>(
    store: &'e Store,
    template: &[TemplateRef<'_>],
    (purpose, among): (Purpose, Among),
    lock: impl Fn(&Targets<'_>) -> Result<Option<(Section<'e>, P)>, Error>,
    mut operation: impl FnMut(&mut Section<'e>, &[Target<'_>], P) -> Result<R, Error>,
) -> Result<Option<R>, Error> {
    filtered::filtering(store, template, &mut FilterResults::default(), |filter_results| {
        provide::retry(store, || {
            let targets = || targets::targets_filtered(store, template, purpose, filter_results);
            let how = Look { targets, lock: &lock, recalls: true };
            let done = moment::at_moment(store, &how, |(mut section, with), targets| {
                if let Some(unknown) = filter_results.missing(store, &section, &targets.all, among)
                {
                    return Ok(Some(Filtered::Unknown(unknown)));
                }
                let result = operation(&mut section, &targets.all, with)?;
                journal::commit(store, &mut section)?;
                Ok(Some(Filtered::Done(Some(result))))
            })?;
            Ok(done.unwrap_or(Filtered::Done(None)))
        })
    })
}

/// A match, and the target that it was found in.
#[derive(Clone, Copy)]
pub(crate) struct Found<'t> {
    pub(crate) target: &'t Target<'t>,
    pub(crate) reference: u32,
}

impl Found<'_> {
    /// The number of its target among `targets`, and the record.
    pub(crate) fn place(&self, targets: &[Target<'_>]) -> (usize, u32) {
        let number = targets.iter().position(|target| target.shape == self.target.shape);
        (number.unwrap_or(0), self.reference)
    }

    pub(crate) fn seen(&self, section: &Section<'_>, large: LargeCopy) -> Seen {
        large.of(section.view(), (self.target.shape, self.reference), &self.target.kinds)
    }

    pub(crate) fn copy(&self, section: &Section<'_>) -> TupleCopy {
        TupleCopy::new(section.view(), self.reference, self.target.kinds)
    }
}

/// The match that a field order asks for, among the shapes' own such matches.
pub(crate) fn furthest<'t>(
    section: &Section<'_>,
    targets: &'t [Target<'t>],
    seed: u64,
    order: Order,
) -> Option<Found<'t>> {
    let candidates = targets.iter().filter_map(|target| {
        let reference = target.pick(section.view(), order, 0, seed);
        (reference != 0).then_some(Found { target, reference })
    });
    let mut candidates: Vec<Found<'_>> = candidates.collect();
    if candidates.len() < 2 {
        return candidates.pop();
    }
    let copied = candidates.into_iter().map(|found| {
        let copy = found.copy(section);
        (found, copy)
    });
    let best =
        copied.reduce(
            |best, one| {
                if precedes(&one.1.view(), &best.1.view(), order) { one } else { best }
            },
        );
    best.map(|(found, _)| found)
}

/// Up to `at_most` matches, the oldest of all shapes. They come shape by shape, oldest first.
pub(crate) fn found<'t>(
    store: &Store,
    section: &Section<'_>,
    targets: &'t [Target<'t>],
    at_most: usize,
) -> impl Iterator<Item = Found<'t>> {
    let mut all = Vec::new();
    for target in targets {
        let matches = target.first_matches(section.view(), store.seed, at_most);
        all.extend(matches.into_iter().map(|reference| Found { target, reference }));
    }
    if targets.len() > 1 && at_most != usize::MAX {
        stamps::begin(store);
        let age = |found: &Found<'_>| age(record::at(section.view(), found.reference));
        let mut oldest: Vec<(u64, usize)> = all.iter().map(age).zip(0..).collect();
        oldest.sort_unstable();
        oldest.truncate(at_most);
        oldest.sort_unstable_by_key(|(_, place)| *place);
        all = oldest.into_iter().map(|(_, place)| all[place]).collect();
    }
    all.into_iter()
}

/// What `visitor` makes of each copy.
pub(crate) fn visit<R, E>(
    copies: &[TupleCopy],
    mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
) -> Result<Vec<R>, E> {
    copies.iter().map(|copy| visitor(copy.view())).collect()
}
