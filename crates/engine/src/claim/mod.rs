//! Claims (rules K1 to K5): a tuple in somebody's hands until it is done with, and back in the space otherwise.
//!
//! A claimed record is in no list that a search goes through; the stripe has a list of its own for them, and the
//! record's timer ends the claim. Its holder is known by a *fence*, a number that is never given out again: whoever
//! comes with an older one has lost the claim, and changes nothing. Parts: getting a claim (here), what ends it
//! ([`settle`]), what earlier attempts came to ([`history`]), and what was given up ([`dead`]).

pub(crate) mod dead;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod settle;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tupelo_shm::{Section, View, process::fork_generation};
use tupelo_tuple::{TemplateRef, TupleView};

use crate::Engine;
use crate::engine::{NEXT_FENCE, space_line};
use crate::error::Error;
use crate::extension::{self, ATTEMPTS, ATTEMPTS_MAX, FENCE};
use crate::find::{Found, Hit, Order, Purpose, Search};
use crate::links;
use crate::record::{self, HOLDER, Header, ImageBuffer, Record, SHAPE, STATE};
use crate::registry::Kinds;
use crate::step;
use crate::stripe::{self, HELD, Stripe};
use crate::targets::TupleCopy;
use crate::timers::{self, wheel};
use crate::waiters::deliver::Delivery;
use list::List;

pub use history::Attempt;

/// What a claim is given on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimTerms {
    /// How long the holder may be silent. Rounded up to milliseconds.
    pub ttl: Duration,
    /// After so many attempts that failed, the tuple is dead (rule K5); `None`: never.
    pub attempts_max: Option<u32>,
}

/// A tuple in this process's hands (rule K1). Dropped before it is settled, it gives the tuple back.
pub struct Claim {
    engine: Arc<Engine>,
    place: Place,
    attempt: u32,
    is_settled: AtomicBool,
    /// When it was made, as forks are counted: a child's copy of it is not the child's.
    fork_generation: u32,
}

/// Where a claimed record is, and the fence of the claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) scope: u32,
    pub(crate) reference: u32,
    pub(crate) fence: u64,
}

/// A claim that was begun.
pub(crate) struct Begun {
    place: Place,
    attempt: u32,
    /// The tuple, if it is short.
    copy: Option<TupleCopy>,
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure<'r> {
    /// The holder said so.
    Abort { reason: &'r str },
    /// The claim's time ran out.
    Silence { pid: u32 },
    /// The holder died.
    Death { pid: u32 },
}

impl Failure<'_> {
    fn reason(&self) -> String {
        match self {
            Self::Abort { reason } => (*reason).to_owned(),
            Self::Silence { pid } => format!("process {pid} did not renew its claim in time"),
            Self::Death { pid } => format!("process {pid} died"),
        }
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Words that beginning a claim changes, beside taking the record out of the lists.
pub(crate) const BEGIN_WORDS: usize =
    crate::blocks::ALLOCATE_WORDS + 1 + list::LINK_WORDS + 4 + wheel::ARM_WORDS;
const _: () = assert!(BEGIN_WORDS <= step::STEP_WORDS);

impl Engine {
    /// Claims a match and gives it to `sink`, which reads it where it lies; `None` if nothing matches. Does not
    /// wait.
    ///
    /// # Errors
    ///
    /// What the memory says, and what `sink` says: then the tuple is back, and no attempt was counted.
    pub fn try_claim<R, E: From<Error>>(
        self: &Arc<Self>,
        template: &[TemplateRef<'_>],
        order: Order,
        terms: &ClaimTerms,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<(Claim, R)>, E> {
        let begun = self.claim_match(template, order, terms)?;
        begun.map(|begun| self.pour_claim(begun, sink)).transpose()
    }

    /// Makes a claim of what was begun, and shows the tuple to `sink`.
    pub(crate) fn pour_claim<R, E: From<Error>>(
        self: &Arc<Self>,
        begun: Begun,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<(Claim, R), E> {
        let Begun { place, attempt, copy } = begun;
        let is_settled = AtomicBool::new(false);
        let (engine, fork_generation) = (Arc::clone(self), fork_generation());
        let claim = Claim { engine, place, attempt, is_settled, fork_generation };
        let copy = match copy {
            Some(copy) => copy,
            None => self.copy_claimed(place)?,
        };
        match sink(copy.view()) {
            Ok(result) => Ok((claim, result)),
            Err(error) => {
                claim.is_settled.store(true, Ordering::Relaxed);
                // A claim that was lost meanwhile is back already.
                match self.release_claim(place) {
                    Ok(()) | Err(Error::ClaimLost { .. }) => Err(error),
                    Err(failed) => Err(failed.into()),
                }
            }
        }
    }

    /// Copies a large tuple that was claimed, without the lock, and then looks whether it still is.
    #[cold]
    fn copy_claimed(&self, place: Place) -> Result<TupleCopy, Error> {
        let view = self.memory.view();
        let kinds = kinds_of(self, &view, record::header(&view, place.reference))?;
        let copy = TupleCopy::new(&view, place.reference, kinds);
        self.with_claim(place, |_, _, _| Ok(Delivery::default()))?;
        Ok(copy)
    }

    fn claim_match(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        terms: &ClaimTerms,
    ) -> Result<Option<Begun>, Error> {
        if matches!(order, Order::Max(_) | Order::Min(_)) {
            self.recall_matches_of(template)?;
            return self.claim_extreme(template, order, terms);
        }
        let mut kinds = Kinds::new();
        if let [one] = template
            && let Some(key) = kinds.select(one, self.seed)
            && let Some(shape) = self.find_shape(&kinds)
        {
            // Nearly always: one shape, which has a match.
            let search = Search::by_key(one.patterns, &kinds, key, self.seed, Purpose::Take);
            let (begun, learn) = self.claim_from((shape, &kinds), terms, |view, stripe| {
                search.pick(view, stripe, order, self.random_for(order))
            })?;
            // It may be claimed: that an index could not be had must not lose it.
            let _ = self.learn_if(learn, stripe::scope_of(shape), search.key.mask);
            if begun.is_some() {
                return Ok(begun);
            }
        }
        self.claim_wide(template, order, terms)
    }

    /// Claims from the first shape that has a match; a miss is confirmed as in `take_wide`.
    #[cold]
    fn claim_wide(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        terms: &ClaimTerms,
    ) -> Result<Option<Begun>, Error> {
        let mut recalled = false;
        loop {
            for target in &self.targets(template, Purpose::Take).all {
                let random = self.random();
                let (begun, _) =
                    self.claim_from((target.shape, &target.kinds), terms, |view, _| {
                        target.find(view, order, random, self.seed)
                    })?;
                if begun.is_some() {
                    return Ok(begun);
                }
            }
            if !recalled && self.recall_matches_of(template)? {
                recalled = true;
            } else if !self.matches_now(template, Purpose::Take)? {
                return self.require_sound().map(|()| None);
            }
        }
    }

    /// Claims what `find` finds in one stripe. Returns also whether the search has shown that an index pays.
    #[inline]
    fn claim_from(
        &self,
        (shape, kinds): (u32, &Kinds),
        terms: &ClaimTerms,
        find: impl for<'m> Fn(&View<'m>, Stripe<'m>) -> Found<'m>,
    ) -> Result<(Option<Begun>, bool), Error> {
        self.retry(|| {
            let mut section = self.enter(stripe::scope_of(shape))?;
            let stripe = Stripe::of_shape(section.view(), shape);
            let Found { hit, learn } = find(section.view(), stripe);
            let Some(hit) = hit else {
                section.finish()?;
                return Ok((None, learn));
            };
            let begun = self.begin_claim(&mut section, stripe, (hit, kinds), terms)?;
            section.finish()?;
            Ok((Some(begun), learn))
        })
    }

    /// Takes a record out of its lists, and claims it.
    pub(crate) fn begin_claim<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        (hit, kinds): (Hit<'m>, &Kinds),
        terms: &ClaimTerms,
    ) -> Result<Begun, Error> {
        links::unlink_found(section, stripe, hit);
        section.add(stripe.page(), HELD, 1);
        self.hold_for_claim(section, stripe, (hit.record, kinds), terms)
    }

    /// Claims a record that is in no list, and counted as held.
    pub(crate) fn hold_for_claim<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        (record, kinds): (Record<'m>, &Kinds),
        terms: &ClaimTerms,
    ) -> Result<Begun, Error> {
        let Record { reference, header } = record;
        let extension = extension::ensure(section, &self.layout, stripe, header)?;
        let view = self.memory.view();
        let fence = space_line(&view).double(NEXT_FENCE).fetch_add(1, Ordering::Relaxed) + 1;
        // Meaningless until the record is claimed (R2).
        extension.init64(FENCE, fence);
        extension.init(ATTEMPTS_MAX, terms.attempts_max.unwrap_or(0));
        list::push(section, stripe, List::Claimed, (reference, extension));
        let holder = section.thread().participant() + 1;
        section.set_words([
            (header.place(SHAPE), links::unmarked(header)),
            (header.place(STATE), record::CLAIMED),
            (header.place(HOLDER), holder),
        ]);
        wheel::arm(self, section, stripe, reference, timers::now_and_in(terms.ttl))?;
        let is_short = record::image_bytes(header) <= ImageBuffer::SHORT_BYTES;
        Ok(Begun {
            place: Place { scope: stripe.scope(), reference, fence },
            attempt: extension.load(ATTEMPTS) + 1,
            copy: is_short.then(|| TupleCopy::new(section.view(), reference, *kinds)),
        })
    }
}

impl Claim {
    /// The number of the claim, which is greater than that of every earlier one in the space (rule K1).
    pub fn fence(&self) -> u64 {
        self.place.fence
    }

    /// Which attempt at the tuple this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether this process made it, and is no fork of the one that did.
    pub(super) fn is_own(&self) -> bool {
        self.fork_generation == fork_generation()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.is_own() && !self.is_settled.load(Ordering::Relaxed) {
            // If this fails, the claim was lost, or the space says so at the next call.
            let _ = self.abort("the claim was dropped");
        }
    }
}

/// The process that holds the record with this header; 0 if it is not known any more.
pub(crate) fn holder_pid(engine: &Engine, header: Header<'_>) -> u32 {
    let number = header.load(HOLDER).wrapping_sub(1);
    let participants = engine.memory.participants();
    participants.iter().find(|one| one.number == number).map_or(0, |one| one.pid)
}

/// The kinds of a shape that a record names.
pub(crate) fn kinds_of(
    engine: &Engine,
    view: &View<'_>,
    header: Header<'_>,
) -> Result<Kinds, Error> {
    let (shape, _) = record::shape_of(header);
    engine
        .kinds_of(view, shape)
        .ok_or_else(|| engine.damaged("a claimed record names a shape that does not exist"))
}
