//! What ends a claim: the tuple is done with, or it goes back, or its last attempt has failed (rules K2 to K5).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tupelo_shm::process::fork_generation;
use tupelo_shm::{Section, View};
use tupelo_tuple::{Kind, TupleRef};

use crate::Engine;
use crate::base::clock;
use crate::base::error::Error;
use crate::base::terms::LeaseTerms;
use crate::index::links;
use crate::journal;
use crate::operations::bulk::{self, Together};
use crate::operations::{put, take, targets};
use crate::protocols::claim::{Attempt, Claim, Failure, Handle, holder_pid, kinds_of, outliving};
use crate::protocols::due::{self, Lost};
use crate::protocols::holders_gone::Gone;
use crate::recovery::full::{self, Wanted, largest_bytes};
use crate::recovery::{enter, held, provide, quota};
use crate::store::extension::{
    self, ATTEMPTS, ATTEMPTS_MAX, Extension, FENCE, HOLD_END_MS, lease_end_ms,
};
use crate::store::incoming::Incoming;
use crate::store::partition::{self, DEAD_COUNT, HELD, Partition, count_take};
use crate::store::record::{self, Record, STATE};
use crate::store::{self, Store, blocks, changes, history, step};
use crate::time::list::{self, List, Place};
use crate::time::{bounded_lock, holds, wheel};
use crate::waiters::deliver::{self, Delivery};
use crate::waiters::events::{EventKind, Happening};
use crate::waiters::{chain, timer_leader};

impl<H: Handle> Claim<H> {
    /// Consumes the tuple, and stores `puts` at the same moment (rules K2, K4).
    ///
    /// # Errors
    ///
    /// [`Error::ClaimLost`]: somebody else has the tuple, or may have had it; nothing was stored (rule K3). As
    /// [`crate::Engine::put_all`]: nothing was stored, and the tuple is still claimed.
    pub fn done(&self, puts: &[TupleRef<'_>]) -> Result<(), Error> {
        self.done_on(puts, &[])
    }

    /// As [`Claim::done`], where each of `puts` has the terms of the same place, which count from this moment (rules L1, L3). Those
    /// without are there at once, and for ever.
    ///
    /// # Errors
    ///
    /// As [`Claim::done`].
    pub fn done_on(&self, puts: &[TupleRef<'_>], terms: &[LeaseTerms]) -> Result<(), Error> {
        self.require_open()?;
        let engine = self.engine();
        if puts.is_empty() {
            self.settled(with_claim(engine, self.place, |section, partition, record| {
                end_claim(engine, section, partition, record)?;
                free_claimed(engine, section, partition, record)
            }))
        } else {
            self.settled(done_with(engine, self.place, puts, terms))
        }
    }

    /// Puts the tuple back at its old place (rule K2), or with the dead letters if that was the last attempt (K5).
    ///
    /// # Errors
    ///
    /// As [`Claim::done`].
    pub fn abort(&self, reason: &str) -> Result<(), Error> {
        self.require_open()?;
        self.settled(abort_claim(self.engine(), self.place, &Failure::Abort { reason }))
    }

    /// Puts the tuple back at its old place as if it had never been claimed: no attempt is counted. For who has held it for
    /// a caller that has not got it.
    ///
    /// # Errors
    ///
    /// As [`Claim::done`].
    pub fn give_back(&self) -> Result<(), Error> {
        self.require_open()?;
        self.settled(release_claim(self.engine(), self.place))
    }

    /// Lets the claim run for `ttl` from now (rule K2).
    ///
    /// # Errors
    ///
    /// [`Error::ClaimLost`] (rule K3).
    pub fn extend(&self, ttl: Duration) -> Result<(), Error> {
        self.require_open()?;
        move_claim_end(self.engine(), self.place, |_| clock::moment_in(ttl))
    }

    /// What extends the claim without this handle, for as long as it holds.
    pub fn renewal(&self) -> ClaimRenewal {
        let Self { place, fork_generation, .. } = *self;
        ClaimRenewal { engine: Arc::clone(self.handle.kept()), place, fork_generation }
    }

    fn engine(&self) -> &Engine {
        self.handle.kept()
    }

    /// Whether this handle still has to settle the claim.
    ///
    /// # Errors
    ///
    /// [`Error::ClaimSettled`], or [`Error::ClaimForked`] in a child of the process that claimed.
    pub fn require_open(&self) -> Result<(), Error> {
        if !self.is_own() {
            return Err(Error::ClaimForked);
        }
        if self.is_settled.load(Ordering::Relaxed) { Err(Error::ClaimSettled) } else { Ok(()) }
    }

    /// Looks at a tuple that is to appear with [`Claim::done`], as that would: whether it could ever be stored.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`], [`Error::TooLarge`].
    pub fn check<'f>(&self, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        put::incoming(self.engine(), tuple.into()).map(|_| ())
    }

    /// Notes that the claim has ended, if `result` says so.
    fn settled(&self, result: Result<(), Error>) -> Result<(), Error> {
        if matches!(result, Ok(()) | Err(Error::ClaimLost { .. })) {
            self.is_settled.store(true, Ordering::Relaxed);
        }
        result
    }
}

/// Extends a claim that somebody else settles.
pub struct ClaimRenewal {
    engine: Arc<Engine>,
    place: Place,
    fork_generation: u32,
}

impl ClaimRenewal {
    /// As [`Claim::extend`], except that a claim that runs longer as it is does so.
    ///
    /// # Errors
    ///
    /// [`Error::ClaimLost`], also after the claim was settled; [`Error::ClaimForked`] in a child of the process that
    /// claimed.
    pub fn prolong(&self, ttl: Duration) -> Result<(), Error> {
        if self.fork_generation != fork_generation() {
            return Err(Error::ClaimForked);
        }
        move_claim_end(&self.engine, self.place, |end_ms| end_ms.max(clock::moment_in(ttl)))
    }

    /// As [`ClaimRenewal::prolong`], unless somebody stays where the claim is. Returns whether it did: who has others to
    /// renew, too, comes back after those.
    ///
    /// # Errors
    ///
    /// As [`ClaimRenewal::prolong`].
    pub fn try_prolong(&self, ttl: Duration) -> Result<bool, Error> {
        let is_own = self.fork_generation == fork_generation();
        if is_own && !bounded_lock::is_passable(&self.engine, self.place.scope)? {
            return Ok(false);
        }
        self.prolong(ttl).map(|()| true)
    }

    /// Whether the claim is as good as just begun or renewed for `ttl`, by a look without the lock: nearly all of it is left.
    pub fn is_fresh(&self, ttl: Duration) -> bool {
        let view = self.engine.memory.view();
        let header = record::header(&view, self.place.reference);
        let Some(extension) = extension::of_any(&view, &self.engine.layout, header) else {
            return false;
        };
        // No two claims have the same fence. If the block is something else by now, this is a number that comes up there by
        // chance once in 2^64 times.
        let holds = self.fork_generation == fork_generation()
            && header.load(record::STATE) == record::CLAIMED
            && extension.load64(FENCE) == self.place.fence;
        holds && extension.load64(HOLD_END_MS) >= clock::coarse_moment_in(ttl.mul_f64(0.875))
    }
}

/// Runs `change` on the claimed record, if the claim still holds.
pub(crate) fn with_claim<'e>(
    store: &'e Store,
    place: Place,
    mut change: impl FnMut(&mut Section<'e>, Partition<'e>, Record<'e>) -> Result<Delivery, Error>,
) -> Result<(), Error> {
    let delivery = provide::retry(store, || {
        let mut section = enter::enter(store, place.scope)?;
        let (partition, record) = require_claimed(store, section.view(), place)?;
        let delivery = change(&mut section, partition, record)?;
        journal::finish(store, section)?;
        Ok(delivery)
    })?;
    delivery.wake(store);
    Ok(())
}

/// The record that `place` has claimed, under the lock of its partition.
#[inline(always)]
fn require_claimed<'m>(
    store: &Store,
    view: &View<'m>,
    place: Place,
) -> Result<(Partition<'m>, Record<'m>), Error> {
    let partition = Partition::of_scope(view, place.scope);
    match held_at(store, view, place, List::Claimed) {
        Some((record, fence)) if fence == place.fence => Ok((partition, record)),
        // The very tuple, as far as can be seen: who has it now.
        Some((record, _)) => Err(Error::ClaimLost { pid: Some(holder_pid(store, record.header)) }),
        None => Err(Error::ClaimLost { pid: None }),
    }
}

/// The record at `place`, if it is on `list` still or again, and the fence of who has it. Under the lock of its
/// partition.
#[inline(always)]
pub(crate) fn held_at<'m>(
    store: &Store,
    view: &View<'m>,
    place: Place,
    list: List,
) -> Option<(Record<'m>, u64)> {
    let partition = Partition::of_scope(view, place.scope);
    // What came last is there. Another's block may be something else by now, and its words anything: they are looked at
    // one after the other.
    let is_held = list.begins_with(partition, place.reference)
        || blocks::begins_at(view, &store.layout, partition, place.reference)
            && blocks::start(view, place.reference).load(STATE) == list.state();
    let record = is_held.then(|| record::at(view, place.reference))?;
    let extension = extension::of_any(view, &store.layout, record.header)?;
    Some((record, extension.load64(FENCE)))
}

/// Takes a record off its claim: what follows decides where it goes.
#[inline(always)]
pub(super) fn end_claim<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
) -> Result<Extension<'m>, Error> {
    end_hold(store, section, partition, record, List::Claimed)
}

/// Takes a record off a list of those in somebody's hands.
#[inline(always)]
pub(crate) fn end_hold<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    list: List,
) -> Result<Extension<'m>, Error> {
    let Some(extension) = extension::of(section.view(), record.header) else {
        return Err(store::damaged(store, "a record in somebody's hands has no extension"));
    };
    if wheel::is_armed(extension) {
        wheel::disarm(section, partition, record.reference);
    }
    list::remove(section, partition, list, extension);
    Ok(extension)
}

/// Frees a record that is off its claim: its tuple is consumed.
pub(super) fn free_claimed<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
) -> Result<Delivery, Error> {
    let delivery = publish_end(store, section, partition, record)?;
    section.add(partition.page(), HELD, -1);
    links::free_tuple(store, section, partition, record)?;
    count_take(partition);
    Ok(delivery)
}

/// As [`crate::waiters::deliver::publish_removal`], of a record whose holder consumes it. Only those who watch removals need its kinds.
#[inline(always)]
pub(crate) fn publish_end<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
) -> Result<Delivery, Error> {
    if !chain::watching_removals(section, partition) {
        return Ok(Delivery::default());
    }
    let kinds = kinds_of(store, section.view(), record.header)?;
    let taken = (record.reference, EventKind::Take);
    deliver::publish_removal(store, section, partition, taken, kinds.as_slice())
}

/// Consumes a claimed tuple and stores others, at one moment (rule K4).
fn done_with(
    store: &Store,
    place: Place,
    puts: &[TupleRef<'_>],
    terms: &[LeaseTerms],
) -> Result<(), Error> {
    let mut incoming = Together::new();
    bulk::all_incoming(store, puts, &mut incoming)?;
    bulk::set_terms(store, &mut incoming, terms);
    full::require_fit(store, &incoming)?;
    timer_leader::catch_up_for_multi_shape(store)?;
    if let [(sole, _)] = &mut incoming[..] {
        // It comes for the one that goes.
        sole.takes_room = false;
    }
    let own = partition::shape_of(place.scope);
    let shapes: Vec<u32> = incoming.iter().map(|(_, shape)| *shape).collect();
    let done = || provide::retry(store, || done_with_once(store, place, own, &incoming));
    let wanted = Wanted { shapes: &shapes, leaving: 1, largest_bytes: largest_bytes(&incoming) };
    let delivery = full::making_room(store, wanted, done)?;
    delivery.wake(store);
    Ok(())
}

fn done_with_once(
    store: &Store,
    place: Place,
    own: u32,
    incoming: &[(Incoming<'_>, u32)],
) -> Result<Delivery, Error> {
    let mut shapes: Vec<u32> = incoming.iter().map(|(_, shape)| *shape).collect();
    shapes.push(own);
    let (mut section, places) = targets::lock_to_put(store, shapes, incoming.len() + 1)?;
    let (partition, record) = require_claimed(store, section.view(), place)?;
    full::require_fit_beside(store, record.header, incoming)?;
    // Its place in a limited space is free for what follows.
    quota::require_places(store, places, incoming.len().saturating_sub(1))?;
    step::begin(&section)?;
    section.focus(place.scope);
    end_claim(store, &mut section, partition, record)?;
    section.add(partition.page(), HELD, -1);
    let mut wakes = publish_end(store, &mut section, partition, record)?;
    wakes.join(bulk::store_all(store, &mut section, incoming)?);
    // Frees last: a block that this section frees must not be filled in it again.
    step::begin(&section)?;
    section.focus(place.scope);
    take::free_journalled(store, &mut section, partition, record)?;
    journal::commit(store, &mut section)?;
    Ok(wakes)
}

/// Gives a claimed tuple back: an attempt has failed. Without a reason if there is no room for it.
pub(crate) fn abort_claim(store: &Store, place: Place, failure: &Failure<'_>) -> Result<(), Error> {
    timer_leader::catch_up_for_multi_shape(store)?;
    let fail = |failure: Option<&Failure<'_>>| {
        with_claim(store, place, |section, partition, record| {
            let kinds = kinds_of(store, section.view(), record.header)?;
            fail_claim(store, section, partition, record, kinds.as_slice(), failure)
        })
    };
    match fail(Some(failure)) {
        Err(Error::SpaceFull(_)) => fail(None),
        done => done,
    }
}

/// Gives a claimed tuple back as if it had never been claimed.
pub(crate) fn release_claim(store: &Store, place: Place) -> Result<(), Error> {
    timer_leader::catch_up_for_multi_shape(store)?;
    with_claim(store, place, |section, partition, record| {
        let kinds = kinds_of(store, section.view(), record.header)?;
        end_claim(store, section, partition, record)?;
        let back = (record.reference, Happening::Unpublished);
        held::give_back(store, section, partition, back, kinds.as_slice())
    })
}

/// Moves the end of a claim to where `choose` wants it, of where it is.
fn move_claim_end(store: &Store, place: Place, choose: impl Fn(u64) -> u64) -> Result<(), Error> {
    with_claim(store, place, |section, partition, record| {
        let Some(extension) = extension::of(section.view(), record.header) else {
            return Err(store::damaged(store, "a claimed record has no extension"));
        };
        let end_ms = choose(extension.load64(HOLD_END_MS));
        holds::move_hold_end(store, section, partition, (record.reference, extension), end_ms)?;
        Ok(Delivery::default())
    })
}

/// Counts an attempt that has failed, and puts the tuple back, or with the dead ones.
pub(crate) fn fail_claim<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    kinds: &[Kind],
    failure: Option<&Failure<'_>>,
) -> Result<Delivery, Error> {
    let extension = end_claim(store, section, partition, record)?;
    let number = extension.load(ATTEMPTS).saturating_add(1);
    section.set(extension, ATTEMPTS, number);
    let mut replaced = 0;
    if let Some(failure) = failure {
        let attempt = Attempt { number, reason: failure.reason() };
        replaced = history::append(section, &store.layout, partition, extension, &attempt)?;
    }
    changes::attempts(store, section, record);
    let most = extension.load(ATTEMPTS_MAX);
    let is_last = most != 0 && number >= most;
    let delivery = if is_last && !clock::is_past(lease_end_ms(section.view(), record)) {
        give_up(store, section, partition, record, extension, kinds)?
    } else {
        let back = (record.reference, EventKind::Return.into());
        held::give_back(store, section, partition, back, kinds)?
    };
    // Frees last: who waited for the tuple may have been given a copy.
    history::free(section, &store.layout, partition, replaced)?;
    Ok(delivery)
}

/// Puts a record that is off its claim with the dead ones (rule K5).
fn give_up<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    extension: Extension<'m>,
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    let gone = (record.reference, EventKind::Expire);
    let delivery = deliver::publish_removal(store, section, partition, gone, kinds)?;
    section.add(partition.page(), HELD, -1);
    list_dead(store, section, partition, record, extension)?;
    Ok(delivery)
}

/// Lists a record that is on no list with the dead ones.
pub(crate) fn list_dead<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    extension: Extension<'m>,
) -> Result<(), Error> {
    list::push(section, partition, List::Dead, (record.reference, extension));
    section.set_words([
        (record.header.place(STATE), record::DEAD),
        (partition.page().place(DEAD_COUNT), partition.page().load(DEAD_COUNT).wrapping_add(1)),
    ]);
    wheel::arm_lease(store, section, partition, record)
}

/// Gives back what a dead process had claimed in the partition of `scope` (rules K2, L5).
pub(crate) fn fail_claims_of(store: &Store, gone: Gone, scope: u32) -> Result<(), Error> {
    let mut with_reason = true;
    for lost in lost_by(store, gone, scope, &[List::Claimed])? {
        let fail = |with_reason: bool| {
            let failure = with_reason.then_some(gone.failure());
            lose_one(store, lost, |section, partition, record| {
                if outliving::is_one(section.view(), record) {
                    return outliving::leave(store, section, partition, record, gone);
                }
                let kinds = kinds_of(store, section.view(), record.header)?;
                fail_claim(store, section, partition, record, kinds.as_slice(), failure.as_ref())
            })
        };
        match fail(with_reason) {
            Err(Error::SpaceFull(_)) if with_reason => {
                with_reason = false;
                fail(false)?;
            }
            done => done?,
        }
    }
    Ok(())
}

/// What a holder that is gone has in hands on `lists` in the partition of `scope`, the oldest first.
pub(crate) fn lost_by(
    store: &Store,
    gone: Gone,
    scope: u32,
    lists: &[List],
) -> Result<Vec<Lost>, Error> {
    let section = Section::enter(&store.memory, scope)?;
    let partition = Partition::of_scope(section.view(), scope);
    let own = section.thread().participant();
    let lost = due::oldest_first(section.view(), partition, lists, |header, extension| {
        gone.has(own, header, extension)
    });
    section.finish()?;
    Ok(lost)
}

/// Takes a record out of the hands of a holder that is gone, by `lose`, if it is still there.
pub(crate) fn lose_one<'e>(
    store: &'e Store,
    Lost { list, place, .. }: Lost,
    lose: impl Fn(&mut Section<'e>, Partition<'e>, Record<'e>) -> Result<Delivery, Error>,
) -> Result<(), Error> {
    let delivery = provide::retry(store, || {
        // Not on time: this is called while time is kept, too.
        let mut section = Section::enter(&store.memory, place.scope)?;
        let partition = Partition::of_scope(section.view(), place.scope);
        let delivery = match held_at(store, section.view(), place, list) {
            Some((record, fence)) if fence == place.fence => lose(&mut section, partition, record)?,
            _ => Delivery::default(),
        };
        journal::commit(store, &mut section)?;
        Ok(delivery)
    })?;
    delivery.wake(store);
    Ok(())
}
