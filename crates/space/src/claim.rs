//! Claims: tuples that come back unless they are done with (rules K1 to K5).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tupelo_engine::{
    Claim as HeldClaim, ClaimRenewal, ClaimTerms, DeadLetterRecord, LeaseTerms, Order, visitor_once,
};
use tupelo_protocol::{Settlement, Term};
use tupelo_tuple::{TemplateRef, Tuple, TupleRef, TupleView, with_all_tuples};

use crate::connect::Space;
use crate::durable::Durability;
use crate::error::Error;
use crate::lease_renewer::{KeepAlive, Renew, RenewalOutcome};
use crate::remote::claim::RemoteClaim;
use crate::wait::{Lifted, Outcome, Place, Waiter, lift};

/// A claimed tuple, held until it is [`done`](Claim::done). It goes back to its old place if the claim is
/// [aborted](Claim::abort) or dropped. It also goes back if the process dies, or is silent for longer than the claim's
/// `ttl`.
///
/// ```
/// # use std::time::Duration;
/// # use tupelo::*;
/// # let space = Space::connect("mem://claims", &ConnectOptions::default())?;
/// space.put(&fields!["order", 7])?;
/// let terms = ClaimTerms { ttl: Duration::from_secs(30), attempts_max: Some(3) };
/// let template = [template!["order", Kind::Int]];
/// let claimed = space.try_claim(&template, Order::Fifo, &terms, |tuple| {
///     Ok::<_, Error>(tuple.to_tuple()?)
/// })?;
/// let (claim, order) = claimed.expect("there is one");
/// assert_eq!((order.to_string().as_str(), claim.attempt()), (r#"("order", 7)"#, 1));
/// claim.put(&fields!["shipped", 7])?;
/// claim.done()?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Claim {
    held: Held,
    ttl: Duration,
    /// The tuples that appear with `done` (rule K4); as a rule none. Not for a claim that is elsewhere: its tuples are
    /// there. No lock is held while a caller waits that may need the lock of an interpreter. Locked also while the
    /// claim is settled, so that a concurrent put either appears or is refused.
    puts: Mutex<Puts>,
}

/// Tuples that are held back, and the terms of each.
#[derive(Debug, Default)]
struct Puts {
    tuples: Vec<Tuple>,
    terms: Vec<LeaseTerms>,
}

impl Puts {
    fn clear(&mut self) {
        self.tuples.clear();
        self.terms.clear();
    }
}

/// Where a claim is held.
#[derive(Debug)]
enum Held {
    /// In an engine here.
    Here(HeldClaim<Space>),
    /// Elsewhere.
    There(RemoteClaim),
}

/// Renews a claim, which ends without it.
struct Renewal {
    claim: ClaimRenewal,
    ttl: Duration,
}

impl Renew for Renewal {
    fn renew(&self) -> RenewalOutcome {
        use tupelo_engine::Error::{ClaimForked, ClaimLost};
        match self.claim.try_prolong(self.ttl) {
            Ok(false) => RenewalOutcome::Later,
            Err(ClaimLost { .. } | ClaimForked) => RenewalOutcome::Ended,
            Ok(true) | Err(_) => RenewalOutcome::Renewed,
        }
    }
}

/// As [`Renewal`], of a claim that is elsewhere.
struct RemoteRenewal {
    claim: crate::remote::claim::Renewal,
    ttl: Duration,
}

impl Renew for RemoteRenewal {
    fn renew(&self) -> RenewalOutcome {
        match self.claim.prolong(self.ttl) {
            Err(Error::ClaimLost { .. } | Error::Misuse { .. }) => RenewalOutcome::Ended,
            Ok(()) | Err(_) => RenewalOutcome::Renewed,
        }
    }
}

/// Refuses terms under which no claim could succeed.
fn require_attempts(terms: &ClaimTerms) -> Result<(), Error> {
    if terms.attempts_max != Some(0) {
        return Ok(());
    }
    Err(Error::Misuse {
        problem: "attempts_max is 0, and a claim is an attempt already".into(),
        hint: Some("give Some(1) or more, or None for any number".into()),
    })
}

impl Space {
    /// Claims a match, if there is one, and shows it to `visitor`. Does not wait.
    ///
    /// # Errors
    ///
    /// The errors of the space, as in [`Space::try_take`]. The error of `visitor`: the tuple is back, and no attempt was
    /// counted. [`Error::Misuse`] for `attempts_max` 0.
    pub fn try_claim<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        terms: &ClaimTerms,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<(Claim, R)>, E> {
        require_attempts(terms)?;
        if self.local().is_none() {
            let claimed = self.claim_remotely(template, order, terms, visitor)?;
            return Ok(claimed.map(|(claim, result)| (Claim::remote(claim, terms), result)));
        }
        let visitor = |tuple: TupleView<'_>| visitor(tuple).map_err(Lifted::caller);
        let claimed = lift(HeldClaim::begin(self, template, order, terms, visitor))?;
        Ok(claimed.map(|(claim, result)| (Claim::new(claim, terms), result)))
    }

    /// Claims a match, waiting for one up to `timeout` (`None`: for ever).
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]: the call had no effect. As [`Space::try_claim`].
    #[expect(clippy::too_many_arguments, reason = "those of a take, and the terms")]
    pub fn claim<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        timeout: Option<Duration>,
        terms: &ClaimTerms,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<(Claim, R), E> {
        let mut once = visitor_once(visitor);
        if let Some(claimed) = self.try_claim(template, order, terms, &mut once)? {
            return Ok(claimed);
        }
        if timeout != Some(Duration::ZERO) {
            let waiter = self.claimant(template, terms)?;
            let finish = |waiter: Waiter| waiter.finish_claim(terms, &mut once);
            if let Some(claimed) = waiter.finish_within(timeout, finish)? {
                return Ok(claimed);
            }
        }
        Err(self.timeout("claim", template, timeout.unwrap_or_default()).into())
    }

    /// Joins the wait queue to claim a match on `terms`, by [`Waiter::finish_claim`]. A tuple that is handed over is kept for
    /// its `ttl`, and at least a tenth of a second. If this process has not picked it up by then, it goes to the next
    /// in the wait queue. This waiter is then behind all others (rule K2).
    ///
    /// # Errors
    ///
    /// As [`Space::waiter`]; [`Error::Misuse`] for `attempts_max` 0.
    pub fn claimant(
        &self,
        template: &[TemplateRef<'_>],
        terms: &ClaimTerms,
    ) -> Result<Waiter, Error> {
        require_attempts(terms)?;
        let Some(engine) = self.local() else { return self.claimant_remotely(template, terms) };
        Ok(Waiter::new(self, engine.claimant(template, terms.ttl)?))
    }

    /// Shows the matches whose last attempt has failed to `visitor`, with the reasons (rule K5); the oldest of each shape
    /// first.
    ///
    /// # Errors
    ///
    /// The errors of the space, as in [`Space::try_take`]. The error of `visitor`.
    pub fn dead<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        mut visitor: impl FnMut(TupleView<'_>, DeadLetterRecord) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let Some(engine) = self.local() else { return self.dead_remotely(template, visitor) };
        lift(engine.dead(template, |tuple, dead_letter| {
            visitor(tuple, dead_letter).map_err(Lifted::caller)
        }))
    }

    /// Puts the dead tuples that match back at their old places, with no attempt counted (rule K5). Returns how many.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceFull`], [`Error::TransactionTooBig`], and the errors of the space: none was put back.
    pub fn requeue(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        let Some(engine) = self.local() else { return self.requeue_remotely(template) };
        self.settled(engine.requeue(template)?)
    }
}

impl Waiter {
    /// Claims the tuple that [`Waiter::wait`] announced to a waiter that wants to take, without waiting. If there is no
    /// tuple, or not any more ([`Space::claimant`]), the waiter is in the wait queue.
    ///
    /// # Errors
    ///
    /// As [`Space::try_claim`]; [`Error::SpaceClosed`]; [`Error::Misuse`] for a waiter that does not take.
    pub fn finish_claim<R, E: From<Error>>(
        self,
        terms: &ClaimTerms,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<(Claim, R)>, E> {
        require_attempts(terms)?;
        self.require_take()?;
        let (space, waiter) = match self.into_parts() {
            (space, Place::Local(waiter)) => (space, waiter),
            (space, Place::Remote(place)) => {
                return Ok(match space.finish_claim_remotely(place, terms, visitor)? {
                    Ok((claim, result)) => Outcome::Done((Claim::remote(claim, terms), result)),
                    Err(place) => Outcome::Waits(Waiter::remote(&space, place)),
                });
            }
        };
        let visitor = |tuple: TupleView<'_>| visitor(tuple).map_err(Lifted::caller);
        let outcome = lift(waiter.finish_claim_for(&space, terms, visitor))?;
        Ok(match space.outcome(outcome) {
            Outcome::Done((claim, result)) => Outcome::Done((Claim::new(claim, terms), result)),
            Outcome::Waits(waiter) => Outcome::Waits(waiter),
        })
    }
}

impl Held {
    fn space(&self) -> &Space {
        match self {
            Self::Here(claim) => claim.handle(),
            Self::There(claim) => claim.space(),
        }
    }

    fn require_open(&self) -> Result<(), tupelo_engine::Error> {
        match self {
            Self::Here(claim) => claim.require_open(),
            Self::There(claim) => claim.require_open(),
        }
    }
}

impl Claim {
    pub(crate) fn new(held: HeldClaim<Space>, terms: &ClaimTerms) -> Self {
        Self { held: Held::Here(held), ttl: terms.ttl, puts: Mutex::default() }
    }

    fn remote(held: RemoteClaim, terms: &ClaimTerms) -> Self {
        Self { held: Held::There(held), ttl: terms.ttl, puts: Mutex::default() }
    }

    fn space(&self) -> &Space {
        self.held.space()
    }

    /// The number of the claim: greater than that of every earlier one in the space (rule K1). The holder's writes to
    /// other systems can carry it, so that a late write is recognised.
    pub fn fence(&self) -> u64 {
        match &self.held {
            Held::Here(claim) => claim.fence(),
            Held::There(claim) => claim.fence(),
        }
    }

    /// Which attempt at the tuple this is, from 1.
    pub fn attempt(&self) -> u32 {
        match &self.held {
            Held::Here(claim) => claim.attempt(),
            Held::There(claim) => claim.attempt(),
        }
    }

    /// Holds a tuple back until the claim is done, when it appears with that (rule K4). Whatever else ends the claim
    /// discards it.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] if the claim was done or aborted before; [`Error::SpaceClosed`]; [`Error::LimitExceeded`], or
    /// [`Error::SpaceFull`], for what could never be stored.
    pub fn put<'f>(&self, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        self.put_on(tuple, &LeaseTerms::default())
    }

    /// As [`Claim::put`], on `terms` that count from when the claim is done (rules L1, L3).
    ///
    /// # Errors
    ///
    /// As [`Claim::put`].
    pub fn put_on<'f>(
        &self,
        tuple: impl Into<TupleRef<'f>>,
        terms: &LeaseTerms,
    ) -> Result<(), Error> {
        self.space().require_open()?;
        self.held.require_open()?;
        let tuple = tuple.into();
        match &self.held {
            Held::Here(claim) => {
                claim.check(tuple)?;
                let tuple = tuple.to_tuple()?;
                let mut puts = self.puts()?;
                puts.tuples.push(tuple);
                puts.terms.push(*terms);
                Ok(())
            }
            Held::There(claim) => claim.put(tuple, terms),
        }
    }

    /// The tuples that were put so far, for a claim that is open and stays so, but for the owner of the lock.
    fn puts(&self) -> Result<MutexGuard<'_, Puts>, Error> {
        // First: in the child of a fork another thread of the parent may have had the lock.
        self.held.require_open()?;
        let puts = self.puts.lock().unwrap_or_else(PoisonError::into_inner);
        self.held.require_open()?;
        Ok(puts)
    }

    /// Discards the tuples that were put under the claim, which goes on. For a holder whose results never fit into the
    /// space, and that has a smaller answer. Returns how many tuples that were; none if the claim has ended.
    pub fn discard_puts(&self) -> usize {
        match &self.held {
            Held::Here(_) => self.puts().map_or(0, |mut puts| {
                let count = puts.tuples.len();
                puts.clear();
                count
            }),
            Held::There(claim) => claim.discard(),
        }
    }

    /// Consumes the tuple; the tuples that were put under the claim appear at the same moment.
    ///
    /// # Errors
    ///
    /// [`Error::ClaimLost`]: nothing was put, and the tuple is back or another holder's (rule K3). As
    /// [`Space::put_all`]: nothing was put, and the tuple is still claimed. [`Error::Misuse`] if the claim was done or
    /// aborted before.
    pub fn done(&self) -> Result<(), Error> {
        self.be_done()?;
        self.space().settled(())
    }

    /// As [`Claim::done`], returning when `sync` says, and not when the handle of the space does (rule C4).
    ///
    /// # Errors
    ///
    /// As [`Claim::done`].
    pub fn done_with_sync(&self, sync: Durability) -> Result<(), Error> {
        self.be_done()?;
        self.space().with_sync(sync).settled(())
    }

    fn be_done(&self) -> Result<(), Error> {
        self.space().require_open()?;
        self.space().patiently(|| {
            let claim = match &self.held {
                Held::There(claim) => return claim.settle(Settlement::Done { grant: None }),
                Held::Here(claim) => claim,
            };
            let mut puts = self.puts()?;
            let Puts { tuples, terms } = &*puts;
            if tuples.is_empty() {
                return Ok(claim.done(&[])?);
            }
            with_all_tuples(tuples, |tuples| claim.done_on(tuples, terms))??;
            puts.clear();
            Ok(())
        })
    }

    /// Puts the tuple back at its old place (rule K2), or with the dead letters after its last attempt (rule K5).
    /// Discards the tuples that were put under the claim.
    ///
    /// # Errors
    ///
    /// As [`Claim::done`].
    pub fn abort(&self, reason: &str) -> Result<(), Error> {
        self.be_aborted(reason)?;
        self.space().settled(())
    }

    /// As [`Claim::abort`], returning when `sync` says, and not when the handle of the space does (rule C4).
    ///
    /// # Errors
    ///
    /// As [`Claim::done`].
    pub fn abort_with_sync(&self, reason: &str, sync: Durability) -> Result<(), Error> {
        self.be_aborted(reason)?;
        self.space().with_sync(sync).settled(())
    }

    fn be_aborted(&self, reason: &str) -> Result<(), Error> {
        self.space().require_open()?;
        let claim = match &self.held {
            Held::There(claim) => return claim.settle(Settlement::Abort { reason }),
            Held::Here(claim) => claim,
        };
        let mut puts = self.puts()?;
        claim.abort(reason)?;
        puts.clear();
        Ok(())
    }

    /// Puts the tuple back at its old place as if it had never been claimed. No attempt is counted, and the tuples that
    /// were put under the claim are discarded. For a program that holds a tuple for a caller that has not got it, as a
    /// server does.
    ///
    /// # Errors
    ///
    /// As [`Claim::done`].
    pub fn give_back(&self) -> Result<(), Error> {
        self.space().require_open()?;
        let claim = match &self.held {
            Held::There(claim) => return claim.settle(Settlement::GiveBack),
            Held::Here(claim) => claim,
        };
        let mut puts = self.puts()?;
        claim.give_back()?;
        puts.clear();
        Ok(())
    }

    /// Lets the claim run for `ttl` from now; `None`: for as long as at first.
    ///
    /// # Errors
    ///
    /// [`Error::ClaimLost`] (rule K3).
    pub fn extend(&self, ttl: Option<Duration>) -> Result<(), Error> {
        self.space().require_open()?;
        let ttl = ttl.unwrap_or(self.ttl);
        match &self.held {
            Held::Here(claim) => Ok(claim.extend(ttl)?),
            Held::There(claim) => claim.change(Term::Renew(Some(ttl))),
        }
    }

    /// As [`Claim::extend`], and never shortens it: for a program that renews it beside others.
    ///
    /// # Errors
    ///
    /// As [`Claim::extend`].
    pub fn prolong(&self, ttl: Duration) -> Result<(), Error> {
        self.space().require_open()?;
        self.held.require_open()?;
        match &self.held {
            Held::Here(claim) => Ok(claim.renewal().prolong(ttl)?),
            Held::There(claim) => claim.change(Term::Prolong(ttl)),
        }
    }

    /// Whether the claim was done or aborted, or found lost by one of these.
    pub fn is_settled(&self) -> bool {
        matches!(self.held.require_open(), Err(tupelo_engine::Error::ClaimSettled))
    }

    /// Whether dropping the claim gives its tuple back: it is this process's, nothing has ended it that is known here, and
    /// the space is open, and was not removed.
    pub fn is_open(&self) -> bool {
        let is_over = |space: &Space| space.local().is_some_and(|engine| engine.is_over());
        self.held.require_open().is_ok()
            && self.space().require_open().is_ok()
            && !is_over(self.space())
    }

    /// How long the holder may be silent.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Renews the claim, and does so again by a thread of its own as long as the returned guard lives. A claim that was
    /// extended beyond that stays so.
    ///
    /// # Errors
    ///
    /// [`Error::ClaimLost`] (rule K3). [`Error::Misuse`] if the claim was done or aborted before; [`Error::SpaceClosed`];
    /// [`Error::System`] if there can be no thread.
    pub fn keep_alive(&self) -> Result<KeepAlive, Error> {
        self.space().require_open()?;
        self.held.require_open()?;
        let (ttl, renewer) = (self.ttl, self.space().lease_renewer());
        // The thread renews it for the first time after a third of the ttl, and less than that may be left.
        match &self.held {
            Held::Here(claim) => {
                let renewal = Renewal { claim: claim.renewal(), ttl };
                if !renewal.claim.is_fresh(ttl) {
                    renewal.claim.prolong(ttl)?;
                }
                renewer.keep(renewal, ttl)
            }
            Held::There(claim) => {
                if !claim.is_fresh(ttl) {
                    claim.change(Term::Prolong(ttl))?;
                }
                renewer.keep(RemoteRenewal { claim: claim.renewal(), ttl }, ttl)
            }
        }
    }
}
