//! Claims: tuples that come back unless they are done with (rules K1 to K5).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tupelo_engine::{Claim as HeldClaim, ClaimRenewal, ClaimTerms, Obituary, Order, sink_once};
use tupelo_tuple::{TemplateRef, Tuple, TupleRef, TupleView, with_all_tuples};

use crate::connect::Space;
use crate::error::Error;
use crate::heartbeat::{Beat, Beaten, KeepAlive};
use crate::wait::{Lifted, Outcome, Waiter, lift};

/// A tuple in this process's hands until it is [`done`](Claim::done) with. It goes back to its old place if the claim
/// is [aborted](Claim::abort) or dropped, if the process dies, or if it is silent for longer than its `ttl`.
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
    held: HeldClaim<Space>,
    ttl: Duration,
    /// What appears with `done` (rule K4); as a rule nothing. Locked also while the claim is settled, so that what is put
    /// at that moment either appears or is refused.
    puts: Mutex<Vec<Tuple>>,
}

/// Renews a claim, which ends without it.
struct Renewal {
    claim: ClaimRenewal,
    ttl: Duration,
}

impl Beat for Renewal {
    fn beat(&self) -> Beaten {
        use tupelo_engine::Error::{ClaimForked, ClaimLost};
        match self.claim.try_prolong(self.ttl) {
            Ok(false) => Beaten::Later,
            Err(ClaimLost { .. } | ClaimForked) => Beaten::Ended,
            Ok(true) | Err(_) => Beaten::Renewed,
        }
    }
}

/// Refuses terms under which nobody could claim anything.
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
    /// Claims a match, if there is one, and shows it to `sink`. Does not wait.
    ///
    /// # Errors
    ///
    /// What a space says, as in [`Space::try_take`]. What `sink` says: the tuple is back, and no attempt was counted. [`Error::Misuse`] for `attempts_max` 0.
    pub fn try_claim<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        terms: &ClaimTerms,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<(Claim, R)>, E> {
        self.engine_for("claims")?; // it is open
        require_attempts(terms)?;
        let sink = |tuple: TupleView<'_>| sink(tuple).map_err(Lifted::caller);
        let claimed = lift(HeldClaim::begin(self, template, order, terms, sink))?;
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
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<(Claim, R), E> {
        let mut once = sink_once(sink);
        if let Some(claimed) = self.try_claim(template, order, terms, &mut once)? {
            return Ok(claimed);
        }
        if timeout != Some(Duration::ZERO) {
            let waiter = self.claimant(template, terms.ttl)?;
            let finish = |waiter: Waiter| waiter.finish_claim(terms, &mut once);
            if let Some(claimed) = waiter.finish_within(timeout, finish)? {
                return Ok(claimed);
            }
        }
        Err(self.timeout("claim", template, timeout.unwrap_or_default()).into())
    }

    /// Gets in line to claim a match. What is handed over is kept for `ttl`, and at least a tenth of a second; if this
    /// process has not picked it up by then, it goes to the next in line, and this waiter is behind all others (rule K2).
    ///
    /// # Errors
    ///
    /// As [`Space::waiter`].
    pub fn claimant(&self, template: &[TemplateRef<'_>], ttl: Duration) -> Result<Waiter, Error> {
        Ok(Waiter::new(self, self.engine_for("claims")?.claimant(template, ttl)?))
    }

    /// Shows the tuples whose last attempt has failed, and that match, to `sink`, with what became of them
    /// (rule K5); the oldest of each shape first.
    ///
    /// # Errors
    ///
    /// What a space says, as in [`Space::try_take`]. What `sink` says.
    pub fn dead<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        mut sink: impl FnMut(TupleView<'_>, Obituary) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let engine = self.engine_for("dead letters")?;
        lift(engine.dead(template, |tuple, obituary| sink(tuple, obituary).map_err(Lifted::caller)))
    }

    /// Puts the dead tuples that match back at their old places, as if nobody had tried yet (rule K5). Returns how
    /// many.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceFull`], [`Error::TransactionTooBig`], and what a space says: none was put back.
    pub fn requeue(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        Ok(self.engine_for("dead letters")?.requeue(template)?)
    }
}

impl Waiter {
    /// Claims the tuple that [`Waiter::wait`] announced to a waiter that wants to take, without waiting: if there is no
    /// tuple, or not any more ([`Space::claimant`]), the waiter is in line.
    ///
    /// # Errors
    ///
    /// As [`Space::try_claim`]; [`Error::SpaceClosed`]; [`Error::Misuse`] for a waiter that does not take.
    pub fn finish_claim<R, E: From<Error>>(
        self,
        terms: &ClaimTerms,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<(Claim, R)>, E> {
        require_attempts(terms)?;
        self.require_take()?;
        let (space, waiter) = self.into_parts("claims")?;
        let sink = |tuple: TupleView<'_>| sink(tuple).map_err(Lifted::caller);
        let outcome = lift(waiter.finish_claim_for(&space, terms, sink))?;
        Ok(match space.outcome(outcome) {
            Outcome::Done((claim, result)) => Outcome::Done((Claim::new(claim, terms), result)),
            Outcome::Waits(waiter) => Outcome::Waits(waiter),
        })
    }
}

impl Claim {
    fn new(held: HeldClaim<Space>, terms: &ClaimTerms) -> Self {
        Self { held, ttl: terms.ttl, puts: Mutex::default() }
    }

    fn space(&self) -> &Space {
        self.held.handle()
    }

    /// The number of the claim: greater than that of every earlier one in the space (rule K1). What the holder
    /// writes elsewhere can carry it, so that a late writer is known.
    pub fn fence(&self) -> u64 {
        self.held.fence()
    }

    /// Which attempt at the tuple this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.held.attempt()
    }

    /// Holds a tuple back until the claim is done, when it appears with that (rule K4). Whatever else ends the claim
    /// discards it.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] if the claim was done or aborted before; [`Error::SpaceClosed`]; [`Error::LimitExceeded`], or
    /// [`Error::SpaceFull`], for what could never be stored.
    pub fn put<'f>(&self, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        self.space().engine()?;
        self.held.require_open()?;
        let tuple = tuple.into();
        self.held.check(tuple)?;
        let tuple = tuple.to_tuple()?;
        self.puts()?.push(tuple);
        Ok(())
    }

    /// What was put so far, for a claim that is open and stays so, but for who has the lock.
    fn puts(&self) -> Result<MutexGuard<'_, Vec<Tuple>>, Error> {
        // First: in the child of a fork the lock may be one that another thread of its parent had.
        self.held.require_open()?;
        let puts = self.puts.lock().unwrap_or_else(PoisonError::into_inner);
        self.held.require_open()?;
        Ok(puts)
    }

    /// Discards what was put under the claim, which goes on: for a holder whose results never fit into the space, and
    /// who has something smaller to say. Returns how many tuples that were; none if the claim has ended.
    pub fn discard_puts(&self) -> usize {
        self.puts().map_or(0, |mut puts| puts.drain(..).count())
    }

    /// Consumes the tuple; what was put under the claim appears at the same moment.
    ///
    /// # Errors
    ///
    /// [`Error::ClaimLost`]: nothing was put, and the tuple is back or somebody else's (rule K3). As
    /// [`Space::put_all`]: nothing was put, and the tuple is still claimed. [`Error::Misuse`] if the claim was done
    /// or aborted before.
    pub fn done(&self) -> Result<(), Error> {
        self.space().engine()?;
        self.space().patiently(|| {
            let mut puts = self.puts()?;
            if puts.is_empty() {
                return Ok(self.held.done(&[])?);
            }
            with_all_tuples(&puts, |tuples| self.held.done(tuples))??;
            puts.clear();
            Ok(())
        })
    }

    /// Puts the tuple back at its old place (rule K2), or with the dead letters after its last attempt (rule K5);
    /// discards what was put under the claim.
    ///
    /// # Errors
    ///
    /// As [`Claim::done`].
    pub fn abort(&self, reason: &str) -> Result<(), Error> {
        self.space().engine()?;
        let mut puts = self.puts()?;
        self.held.abort(reason)?;
        puts.clear();
        Ok(())
    }

    /// Puts the tuple back at its old place as if it had never been claimed: no attempt is counted, and what was put under
    /// the claim is discarded. For who holds a tuple for a caller that has not got it, as a server does.
    ///
    /// # Errors
    ///
    /// As [`Claim::done`].
    pub fn give_back(&self) -> Result<(), Error> {
        self.space().engine()?;
        let mut puts = self.puts()?;
        self.held.give_back()?;
        puts.clear();
        Ok(())
    }

    /// Lets the claim run for `ttl` from now; `None`: for as long as at first.
    ///
    /// # Errors
    ///
    /// [`Error::ClaimLost`] (rule K3).
    pub fn extend(&self, ttl: Option<Duration>) -> Result<(), Error> {
        self.space().engine()?;
        Ok(self.held.extend(ttl.unwrap_or(self.ttl))?)
    }

    /// Whether the claim was done or aborted, or found lost by one of these.
    pub fn is_settled(&self) -> bool {
        matches!(self.held.require_open(), Err(tupelo_engine::Error::ClaimSettled))
    }

    /// Whether dropping the claim gives its tuple back: it is this process's, nothing has ended it that is known here, and
    /// the space is open.
    pub fn is_open(&self) -> bool {
        self.held.require_open().is_ok() && self.space().engine().is_ok()
    }

    /// How long the holder may be silent.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Renews the claim, and does so again by a thread of its own as long as the returned guard lives. One that was extended
    /// beyond that stays so.
    ///
    /// # Errors
    ///
    /// [`Error::ClaimLost`] (rule K3). [`Error::Misuse`] if the claim was done or aborted before; [`Error::SpaceClosed`];
    /// [`Error::System`] if there can be no thread.
    pub fn keep_alive(&self) -> Result<KeepAlive, Error> {
        self.space().engine()?;
        self.held.require_open()?;
        let renewal = Renewal { claim: self.held.renewal(), ttl: self.ttl };
        // The thread renews it for the first time after a third of the ttl, and less than that may be left.
        if !renewal.claim.is_fresh(self.ttl) {
            renewal.claim.prolong(self.ttl)?;
        }
        self.space().heart().keep(renewal, self.ttl)
    }
}
