//! Finding the match that an order asks for, and changing it in the very section that found it: what a claim and a
//! transaction do.

use tupelo_shm::{Section, View};
use tupelo_tuple::TemplateRef;

use crate::base::error::{Error, Need};
use crate::index::find::{self, Found, Hit, Order, Purpose, Search};
use crate::journal;
use crate::operations::bulk::{self, Found as Chosen, furthest};
use crate::operations::by_age::{self, age};
use crate::operations::filtered::{self, has_condition};
use crate::operations::take;
use crate::operations::targets::{self, Target};
use crate::recovery::{enter, provide};
use crate::store::partition::{self, Partition};
use crate::store::registry::{self, Kinds};
use crate::store::{self, Store, record, stamps};

/// When it is seen to that all has happened which is due where a match is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Before the search, by the cheap clock.
    BeforeSearch,
    /// If there is a match, by what is done with it: that reads the clock ends are told by in any case ([`Need::Time`]).
    InAct,
}

/// Runs `act` on the match that `order` asks for; `None` if nothing matches that is good for `purpose`. Does not
/// wait.
///
/// # Errors
///
/// What the memory and `act` say: nothing changed.
pub(crate) fn at_match<'e, R>(
    store: &'e Store,
    template: &[TemplateRef<'_>],
    (order, purpose, clock): (Order, Purpose, Clock),
    mut act: impl FnMut(&mut Section<'e>, Partition<'e>, Hit<'e>, &Kinds) -> Result<R, Error>,
) -> Result<Option<R>, Error> {
    if has_condition(template) {
        return filtered::at_filtered_match(store, template, (order, purpose), act);
    }
    if order.is_by_field() {
        return at_chosen(store, template, (order, purpose), act);
    }
    let mut kinds = Kinds::new();
    if let [one] = template
        && let Some(key) = kinds.select(one, store.seed)
        && let Some(shape) = registry::find_shape(store, &kinds)
    {
        // Nearly always: one shape, which has a match.
        let search = Search::by_key(one.patterns, &kinds, key, store.seed, purpose);
        let find = |view: &View<'e>, partition: Partition<'e>| {
            search.pick(view, partition, order, store::random_for(store, order))
        };
        let (done, learn) = at_match_of(store, (shape, &kinds), (find, clock), &mut act)?;
        // It may be done: that an index could not be had must not undo it.
        let _ = take::learn_if(store, learn, partition::scope_of(shape));
        if done.is_some() {
            return Ok(done);
        }
    }
    at_match_multi_shape(store, template, (order, purpose), act)
}

/// The match of the shape that has what `order` asks for; the last look is as in `take_multi_shape`.
#[cold]
fn at_match_multi_shape<'e, R>(
    store: &'e Store,
    template: &[TemplateRef<'_>],
    (order, purpose): (Order, Purpose),
    mut act: impl FnMut(&mut Section<'e>, Partition<'e>, Hit<'e>, &Kinds) -> Result<R, Error>,
) -> Result<Option<R>, Error> {
    let targets = targets::targets(store, template, purpose).all;
    let done = by_age::in_turn(store, &targets, order, |target, limit| {
        let random = store::random(store);
        let find = |view: &View<'e>, _: Partition<'e>| {
            limit.admitted(target.find(view, order, random, store.seed))
        };
        let find = (find, Clock::BeforeSearch);
        let (done, _) = at_match_of(store, (target.shape, &target.kinds), find, &mut act)?;
        Ok::<_, Error>(done)
    })?;
    if done.is_some() {
        return Ok(done);
    }
    let done = at_chosen(store, template, (order, purpose), act)?;
    // Without a shape to look at, nothing has been locked.
    store::require_sound(store).map(|()| done)
}

/// The match that `find` finds in one partition. Returns also by which fields the search has shown that an index pays.
#[inline]
fn at_match_of<'e, R>(
    store: &'e Store,
    (shape, kinds): (u32, &Kinds),
    (find, clock): (impl Fn(&View<'e>, Partition<'e>) -> Found<'e>, Clock),
    act: &mut impl FnMut(&mut Section<'e>, Partition<'e>, Hit<'e>, &Kinds) -> Result<R, Error>,
) -> Result<(Option<R>, u32), Error> {
    provide::retry(store, || {
        let scope = partition::scope_of(shape);
        let mut section = match clock {
            Clock::BeforeSearch => enter::enter(store, scope)?,
            Clock::InAct => Section::enter(&store.memory, scope)?,
        };
        let partition = Partition::of_shape(section.view(), shape);
        let Found { hit, learn } = find(section.view(), partition);
        let Some(hit) = hit else {
            if clock == Clock::InAct && partition::is_behind(partition) {
                return Err(Need::Time.into());
            }
            section.finish()?;
            return Ok((None, learn));
        };
        let done = act(&mut section, partition, hit, kinds)?;
        journal::finish(store, section)?;
        Ok((Some(done), learn))
    })
}

/// The match that `order` asks for among those of all shapes at one moment.
fn at_chosen<'e, R>(
    store: &'e Store,
    template: &[TemplateRef<'_>],
    (order, purpose): (Order, Purpose),
    mut act: impl FnMut(&mut Section<'e>, Partition<'e>, Hit<'e>, &Kinds) -> Result<R, Error>,
) -> Result<Option<R>, Error> {
    let done = bulk::at_one_moment(store, template, purpose, |section, targets| {
        let Some(Chosen { target, reference }) = chosen(store, section, targets, order) else {
            return Ok(None);
        };
        let partition = Partition::of_shape(section.view(), target.shape);
        section.focus(partition.scope());
        let hit = Hit { record: record::at(section.view(), reference), place: None };
        act(section, partition, hit, &target.kinds).map(Some)
    });
    Ok(done?.flatten())
}

/// The match that `order` asks for among those of `targets`, whose partitions the section holds.
pub(crate) fn chosen<'t>(
    store: &Store,
    section: &Section<'_>,
    targets: &'t [Target<'t>],
    order: Order,
) -> Option<Chosen<'t>> {
    let view = section.view();
    let pick = |target: &'t Target<'t>| {
        let reference = target.pick(view, order, store::random_for(store, order), store.seed);
        (reference != 0).then_some(Chosen { target, reference })
    };
    let by_age = |found: &Chosen<'t>| age(record::at(view, found.reference));
    match (targets, order) {
        (_, Order::Max(_) | Order::Min(_) | Order::MaxOf(_) | Order::MinOf(_)) => {
            furthest(section, targets, store.seed, order)
        }
        ([one], _) => pick(one),
        (_, Order::Any) => targets.iter().find_map(pick),
        (_, Order::Random) => pick(one_by_chance(store, view, targets)?),
        (_, Order::Fifo) => {
            stamps::begin(store);
            targets.iter().filter_map(pick).min_by_key(by_age)
        }
        (_, Order::Lifo) => {
            stamps::begin(store);
            targets.iter().filter_map(pick).max_by_key(by_age)
        }
    }
}

/// One of `targets`, each with the chance of its matches.
fn one_by_chance<'t>(
    store: &Store,
    view: &View<'_>,
    targets: &'t [Target<'t>],
) -> Option<&'t Target<'t>> {
    let counts: Vec<usize> =
        targets.iter().map(|target| target.matches(view, store.seed).len()).collect();
    let mut left = find::chosen(counts.iter().sum(), store::random(store))?;
    let is_it = |(_, count): &(&Target<'_>, usize)| {
        let is_it = left < *count;
        left = left.saturating_sub(*count);
        is_it
    };
    targets.iter().zip(counts).find(is_it).map(|(target, _)| target)
}
