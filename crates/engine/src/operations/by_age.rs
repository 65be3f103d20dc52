//! One match after the other, of several shapes, by their ages (rule T2).
//!
//! The shapes are not locked together: that would hold up everybody who puts into one of them. It is looked at each for
//! its oldest match, mostly without its lock. Then the shape that has the oldest of all is entered, and asked for its
//! oldest again. The answer holds if that match is still no younger than the oldest of the next shape was; else the look
//! begins anew. Who loses often asks all shapes at one moment.

use tupelo_shm::View;

use crate::base::error::Error;
use crate::index::find::{Found, Hit, Order};
use crate::operations::take;
use crate::operations::targets::Target;
use crate::recovery::enter;
use crate::store::partition::{self, Partition};
use crate::store::record::{self, Header, Record};
use crate::store::{Store, stamps};

/// How often a shape is looked at without its lock, and how often all of them are before they are locked together.
const ATTEMPTS: u32 = 4;

/// How old a match has to be.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    /// The sequence number of the next best; `None` if any match will do.
    sequence: Option<u64>,
    backward: bool,
}

impl Limit {
    /// Any age.
    pub(crate) const NONE: Self = Self { sequence: None, backward: false };

    /// Whether any match will do.
    #[inline(always)]
    pub(crate) fn is_none(self) -> bool {
        self.sequence.is_none()
    }

    /// Whether the record with this header is as old as asked for, or as young.
    #[inline(always)]
    pub(crate) fn admits(self, header: Header<'_>) -> bool {
        self.sequence.is_none_or(|limit| {
            let own = header.load64(record::SEQUENCE);
            if self.backward { own >= limit } else { own <= limit }
        })
    }

    /// What was found, if it is as old as asked for.
    #[inline(always)]
    pub(crate) fn admitted<'m>(self, found: Found<'m>) -> Found<'m> {
        let is_admitted = |hit: &Hit<'m>| self.admits(hit.record.header);
        Found { hit: found.hit.filter(is_admitted), ..found }
    }
}

/// A match, by where it is: the number of its target, and its age.
#[derive(Clone, Copy)]
struct First {
    target: usize,
    sequence: u64,
}

/// Lets `attempt` get the match that `order` asks for out of one of `targets`, no older or younger than it says. `None`
/// if there is none, or if that is to be told of all shapes at one moment.
pub(crate) fn in_turn<'t, R, E: From<Error>>(
    store: &Store,
    targets: &'t [Target<'t>],
    order: Order,
    mut attempt: impl FnMut(&'t Target<'t>, Limit) -> Result<Option<R>, E>,
) -> Result<Option<R>, E> {
    match (targets, order) {
        // Values compare across shapes: an int with a float.
        (_, Order::Max(_) | Order::Min(_) | Order::MaxOf(_) | Order::MinOf(_)) => Ok(None),
        ([one], _) => attempt(one, Limit::NONE),
        (several, Order::Any) => {
            for target in several {
                if let Some(result) = attempt(target, Limit::NONE)? {
                    return Ok(Some(result));
                }
            }
            Ok(None)
        }
        // By chance goes by how many there are.
        (_, Order::Random) | ([], _) => Ok(None),
        (several, Order::Fifo | Order::Lifo) => {
            stamps::begin(store);
            for _ in 0..ATTEMPTS {
                let Some((first, limit)) = first(store, several, order)? else { break };
                if let Some(result) = attempt(&several[first], limit)? {
                    return Ok(Some(result));
                }
            }
            Ok(None)
        }
    }
}

/// The number of the target that has the oldest match, or the youngest, and how old the next is; `None` if there is no match.
fn first(
    store: &Store,
    targets: &[Target<'_>],
    order: Order,
) -> Result<Option<(usize, Limit)>, Error> {
    let backward = order == Order::Lifo;
    let is_before = |one: First, other: First| {
        if backward { one.sequence > other.sequence } else { one.sequence < other.sequence }
    };
    let (mut first, mut second): (Option<First>, Option<First>) = (None, None);
    for (number, target) in targets.iter().enumerate() {
        let Some(sequence) = look(store, target, order)? else { continue };
        let own = First { target: number, sequence };
        if first.is_none_or(|first| is_before(own, first)) {
            (first, second) = (Some(own), first);
        } else if second.is_none_or(|second| is_before(own, second)) {
            second = Some(own);
        }
    }
    let sequence = second.map(|second| second.sequence);
    Ok(first.map(|first| (first.target, Limit { sequence, backward })))
}

/// The age of the match of `target` that `order` asks for.
fn look(store: &Store, target: &Target<'_>, order: Order) -> Result<Option<u64>, Error> {
    let scope = partition::scope_of(target.shape);
    let seek = |view: &View<'_>| {
        let (reference, learn) = target.pick_noting(view, order, 0, store.seed);
        let age = || record::header(view, reference).load64(record::SEQUENCE);
        ((reference != 0).then(age), learn)
    };
    let view = store.memory.view();
    for _ in 0..ATTEMPTS {
        let Some(turn) = view.begin_read(scope) else {
            std::hint::spin_loop();
            continue;
        };
        let (age, learn) = seek(&view);
        if partition::is_behind(Partition::of_shape(&view, target.shape)) {
            // What was found may have ended, and what was not may be there.
            (store.callbacks.catch_up)(store, scope)?;
        } else if view.unchanged(scope, turn) && !view.violated() {
            take::learn_if(store, learn, scope)?;
            return Ok(age);
        }
        view.forgive();
    }
    let section = enter::enter(store, scope)?;
    let (age, _) = seek(section.view());
    section.finish()?;
    Ok(age)
}

/// The age of a record among those of all shapes.
pub(crate) fn age(record: Record<'_>) -> u64 {
    record.header.load64(record::SEQUENCE)
}
