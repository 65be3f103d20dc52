//! `take_all`, `take_many`: removing the matches of one moment (rule O6), each once somebody can represent it (V3).
//!
//! Every language can represent most kinds: such tuples are removed and then given to the visitor. If a language may not
//! represent a kind, or a tuple is large, the visitor gets copies first. The accepted tuples are removed, if they are
//! still the tuples to be removed by then; if not, the visitor gets the others as well. So a refusal finds everything
//! where it was, with its age and place, and no tuple was held meanwhile.

use tupelo_shm::{Section, View};
use tupelo_tuple::{TemplateRef, TupleView};

use crate::base::error::Error;
use crate::index::find::Purpose;
use crate::operations::bulk::{self, Found, found, visit};
use crate::operations::targets::{Target, TupleCopy};
use crate::store::{Store, record, step};
use crate::waiters::deliver::Delivery;

/// A tuple of a space, told from all others that ever were in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    shape: u32,
    sequence: u64,
}

impl Identity {
    /// The tuple at `reference`, of a shape whose partition is locked.
    pub(crate) fn of(view: &View<'_>, target: &Target<'_>, reference: u32) -> Self {
        let sequence = record::header(view, reference).load64(record::SEQUENCE);
        Self { shape: target.shape, sequence }
    }
}

/// What a look at the matches came to.
enum Look {
    /// There are too few.
    TooFew,
    /// These were removed, and this is what the visitor made of them.
    Removed(Vec<TupleCopy>, Delivery),
    /// These were removed, all of which the visitor had accepted.
    Confirmed(Vec<Identity>, Delivery),
    /// Nothing was removed: the visitor has not seen these.
    Unseen(Vec<(Identity, TupleCopy)>),
}

/// As [`crate::Engine::take_all`] says.
pub(crate) fn take_all<R, E: From<Error>>(
    store: &Store,
    template: &[TemplateRef<'_>],
    limit: Option<usize>,
    visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
) -> Result<Vec<R>, E> {
    let taken = try_take_many(store, template, 0, limit.unwrap_or(usize::MAX), visitor)?;
    Ok(taken.unwrap_or_default())
}

/// As [`crate::Engine::try_take_many`] says.
pub(crate) fn try_take_many<R, E: From<Error>>(
    store: &Store,
    template: &[TemplateRef<'_>],
    at_least: usize,
    at_most: usize,
    mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<Vec<R>>, E> {
    let mut accepted: Vec<(Identity, R)> = Vec::new();
    loop {
        let seen: Vec<Identity> = accepted.iter().map(|(identity, _)| *identity).collect();
        let look = bulk::at_one_moment(store, template, Purpose::Take, |section, targets| {
            let matches: Vec<Found<'_>> = found(store, section, targets, at_most).collect();
            if matches.len() < at_least {
                return Ok(Look::TooFew);
            }
            remove_seen(store, section, &matches, &seen)
        })?;
        match look.unwrap_or(Look::TooFew) {
            Look::TooFew => return Ok((at_least == 0).then(Vec::new)),
            Look::Unseen(copies) => {
                for (identity, copy) in copies {
                    accepted.push((identity, visitor(copy.view())?));
                }
            }
            Look::Confirmed(identities, wakes) => {
                wakes.wake(store);
                return Ok(Some(in_order(accepted, &identities)));
            }
            Look::Removed(copies, wakes) => {
                wakes.wake(store);
                let results = visit(&copies, visitor);
                if results.is_err() {
                    bulk::put_copies(store, &copies)?;
                }
                return results.map(Some);
            }
        }
    }
}

/// Removes all matches, unless one has a field that the visitor may refuse, and has not been `seen`.
fn remove_seen<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    matches: &[Found<'_>],
    seen: &[Identity],
) -> Result<Look, Error> {
    let identity = |found: &Found<'_>, section: &Section<'_>| {
        Identity::of(section.view(), found.target, found.reference)
    };
    let identities: Vec<Identity> = matches.iter().map(|found| identity(found, section)).collect();
    let is_refusable = matches.iter().any(|found| {
        let header = record::header(section.view(), found.reference);
        record::must_be_held(header, found.target.kinds.are_refusable())
    });
    let mut known = seen.to_vec();
    known.sort_unstable();
    let unseen = |identity: &Identity| known.binary_search(identity).is_err();
    if is_refusable && identities.iter().any(unseen) {
        let unseen = identities.into_iter().zip(matches).filter(|(identity, _)| unseen(identity));
        let copies = unseen.map(|(identity, found)| (identity, found.copy(section)));
        return Ok(Look::Unseen(copies.collect()));
    }
    let copies: Vec<TupleCopy> = if is_refusable {
        Vec::new()
    } else {
        matches.iter().map(|found| found.copy(section)).collect()
    };
    let mut shapes: Vec<u32> = matches.iter().map(|found| found.target.shape).collect();
    shapes.dedup(); // They come shape by shape.
    step::count_anew(section, matches.len(), shapes)?;
    let mut wakes = Delivery::default();
    for found in matches {
        wakes.join(bulk::remove_found(store, section, found)?);
    }
    Ok(if is_refusable { Look::Confirmed(identities, wakes) } else { Look::Removed(copies, wakes) })
}

/// What was accepted for these tuples, in their order.
fn in_order<R>(accepted: Vec<(Identity, R)>, identities: &[Identity]) -> Vec<R> {
    let mut results: std::collections::BTreeMap<Identity, R> = accepted.into_iter().collect();
    identities.iter().filter_map(|identity| results.remove(identity)).collect()
}
