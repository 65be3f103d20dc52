//! Claims (rules K1 to K5): a tuple in somebody's hands until it is done with, and back in the space otherwise.
//!
//! A claimed record is in no list that a search goes through; the partition has a list of its own for them, and the
//! record's timer ends the claim. Its holder is known by a *fence*, a number that is never given out again: whoever
//! comes with an older one has lost the claim, and changes nothing. Parts: getting a claim (here), what ends it
//! ([`settle`]), what earlier attempts came to ([`crate::store::history`]), and what was given up ([`dead`]).

pub(crate) mod dead;
mod finish;
pub(crate) mod outliving;
pub(crate) mod settle;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tupelo_shm::process::fork_generation;
use tupelo_shm::{Section, View};
use tupelo_tuple::{TemplateRef, TupleView};

use crate::Engine;
use crate::base::clock;
use crate::base::error::{Error, Need};
use crate::index::find::{Order, Purpose};
use crate::index::links;
use crate::operations::at_match::{self, Clock};
use crate::operations::targets::TupleBuffer;
use crate::store::extension::{self, ATTEMPTS, ATTEMPTS_MAX, Extension, FENCE, HANDLE};
use crate::store::partition::{self, HELD, Partition};
use crate::store::record::{self, HOLDER, Header, Record, SHAPE, STATE};
use crate::store::registry::{self, Kinds};
use crate::store::{self, NEXT_FENCE, Store, blocks, space_line, step};
use crate::time::list::{self, List, Place};
use crate::time::{holds, wheel};
use crate::waiters::deliver::Delivery;

pub use crate::store::history::Attempt;
pub use settle::ClaimRenewal;

/// What a claim is given on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimTerms {
    /// How long the holder may be silent. Rounded up to milliseconds.
    pub ttl: Duration,
    /// After so many attempts that failed, the tuple is dead (rule K5); `None`: never. 0 is as 1: a claim is an attempt.
    pub attempts_max: Option<u32>,
}

/// What keeps an engine for a claim: a reference to it, or a handle of the caller's own that has one. So a claim counts up one
/// reference, and not two.
pub trait Handle {
    /// The engine.
    fn kept(&self) -> &Arc<Engine>;

    /// Which of the process's handles it is: what [`Engine::give_up`] is told. 0 for one that is never given up.
    fn number(&self) -> u32 {
        0
    }
}

impl Handle for Arc<Engine> {
    fn kept(&self) -> &Self {
        self
    }
}

impl<H: Handle> Handle for &H {
    fn kept(&self) -> &Arc<Engine> {
        (**self).kept()
    }

    fn number(&self) -> u32 {
        (**self).number()
    }
}

/// Who claims, and on which terms.
#[derive(Clone, Copy)]
pub(crate) struct Claimant<'t> {
    /// The number of the handle.
    pub(crate) handle: u32,
    pub(crate) terms: &'t ClaimTerms,
}

/// By whom something is held, and until when.
#[derive(Clone, Copy)]
pub(crate) struct Tenure {
    /// The number of the handle.
    pub(crate) handle: u32,
    pub(crate) end_ms: u64,
}

/// A tuple in this process's hands (rule K1). Dropped before it is settled, it gives the tuple back.
pub struct Claim<H: Handle = Arc<Engine>> {
    handle: H,
    place: Place,
    attempt: u32,
    is_settled: AtomicBool,
    /// When it was made, as forks are counted: a child's copy of it is not the child's.
    fork_generation: u32,
}

/// A claim that was begun.
#[derive(Clone, Copy)]
pub(crate) struct Begun {
    place: Place,
    attempt: u32,
    /// Whether the tuple was copied on the way: a large one is copied outside of the lock.
    is_copied: bool,
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

impl<H: Handle> std::fmt::Debug for Claim<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Words that beginning a claim changes, beside taking the record out of the lists.
pub(crate) const BEGIN_WORDS: usize =
    blocks::ALLOCATE_WORDS + 1 + list::LINK_WORDS + 4 + wheel::ARM_WORDS;
const _: () = assert!(BEGIN_WORDS <= step::STEP_WORDS);

/// As [`crate::Engine::try_claim`] says.
pub(crate) fn try_claim<R, E: From<Error>>(
    engine: &Arc<Engine>,
    template: &[TemplateRef<'_>],
    order: Order,
    terms: &ClaimTerms,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<(Claim, R)>, E> {
    Claim::begin(engine, template, order, terms, visitor)
}

/// Copies a large tuple that was claimed, without the lock, and then looks whether it still is.
#[cold]
fn copy_claimed(store: &Store, place: Place, copy: &mut TupleBuffer) -> Result<(), Error> {
    let view = store.memory.view();
    let record = record::at(&view, place.reference);
    let is_copied = fill_held(store, &view, record, copy);
    settle::with_claim(store, place, |section, _, record| {
        // It is the one that was copied: if that was none, there is none.
        if !is_copied {
            kinds_of(store, section.view(), record.header)?;
        }
        Ok(Delivery::default())
    })
}

/// Copies a record without its lock. If somebody else has its memory by now, the copy means nothing, and this says `false`
/// if that can be seen already: the caller has yet to look whether the record is still its own.
pub(crate) fn fill_held(
    store: &Store,
    view: &View<'_>,
    record: Record<'_>,
    copy: &mut TupleBuffer,
) -> bool {
    let kinds = registry::kinds_of(store, view, record::shape_of(record.header).0);
    kinds.inspect(|kinds| copy.fill(view, record, kinds)).is_some()
}

/// Claims a record that is in no list, and counted as held. Copies it if it is short.
///
/// # Errors
///
/// [`Need`], also if something has to happen first in the partition.
#[inline]
pub(crate) fn begin_claim<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    (record, kinds): (Record<'m>, &Kinds),
    claimant: Claimant<'_>,
    copy: &mut TupleBuffer,
) -> Result<Begun, Error> {
    let Claimant { handle, terms } = claimant;
    let (now_ms, end_ms) = clock::now_and_in(terms.ttl);
    if partition::is_behind_at(partition, now_ms) {
        // What was found may be a tuple whose time is over.
        return Err(Need::Time.into());
    }
    let tenure = Tenure { handle, end_ms };
    let (fence, extension) = hold_until(store, section, partition, record, List::Claimed, tenure)?;
    // Means nothing to anybody until the section is over (R2).
    extension.init(ATTEMPTS_MAX, terms.attempts_max.map_or(0, |most| most.max(1)));
    let place = Place { scope: partition.scope(), reference: record.reference, fence };
    outliving::note(store, section, place, extension)?;
    let is_copied = copy.fill_short(section.view(), record, kinds);
    Ok(Begun { place, attempt: extension.load(ATTEMPTS).saturating_add(1), is_copied })
}

/// Puts a record that nothing else lists on a list of those in this process's hands. Returns the fence by which the holder
/// is known.
#[inline(always)]
pub(crate) fn hold_until<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    list: List,
    tenure: Tenure,
) -> Result<(u64, Extension<'m>), Error> {
    let Record { reference, header } = record;
    let extension = extension::ensure_beyond(section, &store.layout, partition, header)?;
    let counter = space_line(section.view()).double(NEXT_FENCE);
    let fence = counter.fetch_add(1, Ordering::Relaxed) + 1;
    // Meaningless until the record is listed (R2).
    extension.init64(FENCE, fence);
    extension.init(HANDLE, tenure.handle);
    holds::begin_hold(store, section, partition, extension, tenure.end_ms)?;
    let holder = section.thread().participant() + 1;
    let stores = [
        (header.place(SHAPE), links::unmarked(header)),
        (header.place(STATE), list.state()),
        (header.place(HOLDER), holder),
    ];
    list::push_unlisted(section, partition, list, (reference, extension), stores);
    Ok((fence, extension))
}

impl<H: Handle + Clone> Claim<H> {
    /// As [`crate::Engine::try_claim`], in the space of `handle`, which the claim keeps.
    ///
    /// # Errors
    ///
    /// As [`crate::Engine::try_claim`].
    #[inline]
    pub fn begin<R, E: From<Error>>(
        handle: &H,
        template: &[TemplateRef<'_>],
        order: Order,
        terms: &ClaimTerms,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<(Self, R)>, E> {
        let engine = &**handle.kept();
        let mut copy = TupleBuffer::new();
        let claimant = Claimant { handle: handle.number(), terms };
        let how = (order, Purpose::Take, Clock::InAct);
        let begun = at_match::at_match(engine, template, how, |section, partition, hit, kinds| {
            section.add(partition.page(), HELD, 1);
            links::unlink_found(section, partition, hit);
            begin_claim(engine, section, partition, (hit.record, kinds), claimant, &mut copy)
        })?;
        begun.map(|begun| Self::visit(handle, begun, &mut copy, visitor)).transpose()
    }

    /// Makes a claim of what was begun, and shows the tuple to `visitor`.
    pub(crate) fn visit<R, E: From<Error>>(
        handle: &H,
        begun: Begun,
        copy: &mut TupleBuffer,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<(Self, R), E> {
        let Begun { place, attempt, is_copied } = begun;
        let is_settled = AtomicBool::new(false);
        let (handle, fork_generation) = (handle.clone(), fork_generation());
        let claim = Self { handle, place, attempt, is_settled, fork_generation };
        let copied =
            if is_copied { Ok(()) } else { copy_claimed(claim.handle.kept(), place, copy) };
        match copied.map_err(E::from).and_then(|()| visitor(copy.view())) {
            Ok(result) => Ok((claim, result)),
            Err(error) => {
                // No attempt has failed: a claimant whose visitor has not accepted the tuple has not tried.
                claim.is_settled.store(true, Ordering::Relaxed);
                // A claim that was lost meanwhile is back already.
                match settle::release_claim(claim.handle.kept(), place) {
                    Ok(()) | Err(Error::ClaimLost { .. }) => Err(error),
                    Err(failed) => Err(failed.into()),
                }
            }
        }
    }
}

impl<H: Handle> Claim<H> {
    /// What it keeps its engine by.
    pub fn handle(&self) -> &H {
        &self.handle
    }

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

impl<H: Handle> Drop for Claim<H> {
    fn drop(&mut self) {
        if self.is_own() && !self.is_settled.load(Ordering::Relaxed) {
            // If this fails, the claim was lost, or the space says so at the next call.
            let _ = self.abort("the claim was dropped");
        }
    }
}

/// The process that holds the record with this header; 0 if it is not known any more.
pub(crate) fn holder_pid(store: &Store, header: Header<'_>) -> u32 {
    store.memory.pid_of_participant(header.load(HOLDER).wrapping_sub(1))
}

/// The kinds of a shape that a record names.
pub(crate) fn kinds_of(store: &Store, view: &View<'_>, header: Header<'_>) -> Result<Kinds, Error> {
    let (shape, _) = record::shape_of(header);
    registry::kinds_of(store, view, shape)
        .ok_or_else(|| store::damaged(store, "a claimed record names a shape that does not exist"))
}
