//! Claims of tuples that are elsewhere (rules K1 to K5).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Atomic};
use std::time::{Duration, Instant};

use tupelo_engine::{Attempt, ClaimTerms, DeadLetterRecord, LeaseTerms, Order};
use tupelo_protocol::{Fault, Kept, Operation, Settlement, TemplateBytes, Term, Tuples};
use tupelo_shm::process::fork_generation;
use tupelo_tuple::{Field, TemplateRef, TupleRef, TupleView};

use super::ask::put_terms;
use super::{Ask, collect, encoded, lease};
use crate::connect::Space;
use crate::error::Error;
use crate::wait::{Elsewhere, Waiter};

/// A claim that is elsewhere. Dropped, it is aborted.
#[derive(Debug)]
pub(crate) struct RemoteClaim {
    space: Space,
    kept: Arc<dyn Kept>,
    fence: u64,
    attempt: u32,
    /// Whether it was done or aborted, or found lost.
    is_settled: AtomicBool,
    begin: Instant,
    /// When it was begun, as forks are counted.
    fork_generation: u32,
}

/// Renews a claim that is elsewhere.
pub(crate) struct Renewal {
    kept: Arc<dyn Kept>,
}

impl RemoteClaim {
    /// The claim that was left open, with its fence and its attempt.
    fn new(space: &Space, kept: Box<dyn Kept>, (fence, attempt): (u64, u32)) -> Self {
        let kept: Arc<dyn Kept> = kept.into();
        space.inner.opened.add_elsewhere(&kept);
        Self {
            space: space.clone(),
            kept,
            fence,
            attempt,
            is_settled: AtomicBool::new(false),
            begin: Instant::now(),
            fork_generation: fork_generation(),
        }
    }

    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    pub(crate) fn fence(&self) -> u64 {
        self.fence
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    pub(crate) fn require_open(&self) -> Result<(), tupelo_engine::Error> {
        if self.fork_generation != fork_generation() {
            return Err(tupelo_engine::Error::ClaimForked);
        }
        if self.is_settled.load(Atomic::Relaxed) {
            return Err(tupelo_engine::Error::ClaimSettled);
        }
        Ok(())
    }

    /// Puts a tuple under the claim.
    pub(crate) fn put(&self, tuple: TupleRef<'_>, terms: &LeaseTerms) -> Result<(), Error> {
        let tuples = encoded(std::iter::once(tuple))?;
        let tuples = Tuples::of_encoding(&tuples);
        let put = Operation::Put { tuples, terms: put_terms(terms), unless: None };
        self.ask(&put).map(drop)
    }

    /// Discards the tuples that were put under the claim. Returns how many they were.
    pub(crate) fn discard(&self) -> usize {
        let discarded = self.ask(&Operation::Settle(Settlement::Discard)).unwrap_or_default();
        usize::try_from(discarded).unwrap_or(usize::MAX)
    }

    /// Ends the claim.
    pub(crate) fn settle(&self, settlement: Settlement<'_>) -> Result<(), Error> {
        let settled = self.ask(&Operation::Settle(settlement));
        if matches!(settled, Ok(_) | Err(Error::ClaimLost { .. } | Error::SpaceRemoved { .. })) {
            self.is_settled.store(true, Atomic::Relaxed);
        }
        settled.map(drop)
    }

    /// Moves its end.
    pub(crate) fn change(&self, term: Term) -> Result<(), Error> {
        self.ask(&Operation::Term(term)).map(drop)
    }

    /// Whether so much of its `ttl` is left that no renewal is needed soon.
    pub(crate) fn is_fresh(&self, ttl: Duration) -> bool {
        self.begin.elapsed() < ttl / 8
    }

    pub(crate) fn renewal(&self) -> Renewal {
        Renewal { kept: Arc::clone(&self.kept) }
    }

    fn ask(&self, operation: &Operation<'_>) -> Result<u64, Error> {
        self.require_open()?;
        lost_with_connection(Ask::Kept(&*self.kept, 0), operation)
    }
}

/// Asks about a claim, which is lost if its connection is.
fn lost_with_connection(ask: Ask<'_>, operation: &Operation<'_>) -> Result<u64, Error> {
    match ask.call(operation, &mut |_| ControlFlow::Break(())) {
        Err(fault) if lease::is_gone(&fault) => {
            let problem = format!("it has ended with its connection: {}", fault.message);
            Err(Error::ClaimLost { problem })
        }
        Err(fault) => Err(fault.into()),
        Ok(tupelo_protocol::Found::Count(count)) => Ok(count),
        Ok(found) => Err(super::not_due(operation, "a number", found)),
    }
}

impl Renewal {
    pub(crate) fn prolong(&self, ttl: Duration) -> Result<(), Error> {
        let prolong = Operation::Term(Term::Prolong(ttl));
        lost_with_connection(Ask::Kept(&*self.kept, 0), &prolong).map(drop)
    }
}

impl Drop for RemoteClaim {
    fn drop(&mut self) {
        if self.require_open().is_ok() {
            let reason = "the claim was dropped";
            self.kept.post(&Operation::Settle(Settlement::Abort { reason }));
        }
    }
}

fn claim<'t>(order: Order, terms: &ClaimTerms, waits: bool, template: &'t [u8]) -> Operation<'t> {
    let ClaimTerms { ttl, attempts_max } = *terms;
    let template = TemplateBytes::of_encoding(template);
    Operation::Claim { order, ttl, attempts_max, waits, template }
}

/// The whole number in a field of what describes a tuple.
fn whole(field: Option<Field<'_>>) -> Result<u64, Error> {
    match field {
        Some(Field::Int(number)) => u64::try_from(number).ok(),
        _ => None,
    }
    .ok_or_else(|| Fault::protocol("what describes a tuple has no such number").into())
}

/// The result of the two tuples that answer a claim.
#[derive(Default)]
struct Claimed {
    head: Option<(u64, u32)>,
}

impl Claimed {
    /// Reads the first tuple, and lets `visitor` have the second one.
    fn see<R, E: From<Error>>(
        &mut self,
        tuple: TupleView<'_>,
        visitor: &mut impl FnMut(TupleView<'_>) -> Option<Result<R, E>>,
    ) -> Option<Result<Option<R>, E>> {
        if self.head.is_some() {
            return visitor(tuple).map(|made| made.map(Some));
        }
        let mut fields = tuple.fields();
        let fence = whole(fields.next());
        let attempt =
            whole(fields.next()).map(|attempt| u32::try_from(attempt).unwrap_or(u32::MAX));
        Some(match (fence, attempt) {
            (Ok(fence), Ok(attempt)) => {
                self.head = Some((fence, attempt));
                Ok(None)
            }
            (Err(error), _) | (_, Err(error)) => Err(error.into()),
        })
    }

    /// The claim that was left open, and the result of the visitor.
    fn claim<R>(
        self,
        space: &Space,
        kept: Option<Box<dyn Kept>>,
        made: Vec<Option<R>>,
    ) -> Result<(RemoteClaim, R), Error> {
        match (kept, self.head, made.into_iter().flatten().next()) {
            (Some(kept), Some(head), Some(made)) => Ok((RemoteClaim::new(space, kept, head), made)),
            _ => Err(Fault::protocol("a claim is answered by two tuples, and left open").into()),
        }
    }
}

impl Space {
    /// As [`Space::try_claim`].
    #[cold]
    #[inline(never)]
    pub(crate) fn claim_remotely<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        terms: &ClaimTerms,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<(RemoteClaim, R)>, E> {
        let template = TemplateBytes::encode(template).map_err(Error::from)?;
        self.claim_encoded((order, terms), &template, visitor)
    }

    fn claim_encoded<R, E: From<Error>>(
        &self,
        (order, terms): (Order, &ClaimTerms),
        template: &[u8],
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<(RemoteClaim, R)>, E> {
        let (mut visitor, mut claimed) = (Some(visitor), Claimed::default());
        let mut once = |tuple: TupleView<'_>| visitor.take().map(|visitor| visitor(tuple));
        let operation = claim(order, terms, false, template);
        let remote = self.remote()?;
        let ((_, kept), made) =
            collect(|tuple| claimed.see(tuple, &mut once), |visit| remote.open(&operation, visit))?;
        if kept.is_none() {
            return Ok(None);
        }
        Ok(Some(claimed.claim(self, kept, made)?))
    }

    /// As [`Space::claimant`].
    #[cold]
    pub(crate) fn claimant_remotely(
        &self,
        template: &[TemplateRef<'_>],
        terms: &ClaimTerms,
    ) -> Result<Waiter, Error> {
        self.claimant_encoded(TemplateBytes::encode(template)?, terms)
    }

    fn claimant_encoded(&self, template: Vec<u8>, terms: &ClaimTerms) -> Result<Waiter, Error> {
        let pending = self.remote()?.wait(&claim(Order::Fifo, terms, true, &template))?;
        Ok(Waiter::remote(self, Elsewhere::for_claim(pending, terms, template)))
    }

    /// As [`Waiter::finish_claim`].
    #[cold]
    #[inline(never)]
    pub(crate) fn finish_claim_remotely<R, E: From<Error>>(
        &self,
        place: Elsewhere,
        terms: &ClaimTerms,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Result<(RemoteClaim, R), Elsewhere>, E> {
        use tupelo_protocol::PickedUp;
        if !place.is_claim(terms) {
            // The tuple that it was handed goes back, and is claimed from there: it was held on other terms.
            let template = place.into_template();
            if let Some(claimed) = self.claim_encoded((Order::Fifo, terms), &template, visitor)? {
                return Ok(Ok(claimed));
            }
            let pending = self.remote()?.wait(&claim(Order::Fifo, terms, true, &template));
            let pending = pending.map_err(Error::from)?;
            return Ok(Err(Elsewhere::for_claim(pending, terms, template)));
        }
        let (mut visitor, mut claimed) = (Some(visitor), Claimed::default());
        let mut once = |tuple: TupleView<'_>| visitor.take().map(|visitor| visitor(tuple));
        let (pending, template) = place.into_parts();
        let (picked_up, made) =
            collect(|tuple| claimed.see(tuple, &mut once), |visit| pending.pick_up(visit))?;
        match picked_up {
            PickedUp::Waits(pending) => Ok(Err(Elsewhere::for_claim(pending, terms, template))),
            PickedUp::Opened(kept) => Ok(Ok(claimed.claim(self, Some(kept), made)?)),
            PickedUp::Seen | PickedUp::BrokenOff => Ok(Ok(claimed.claim(self, None, made)?)),
        }
    }

    /// As [`Space::dead`].
    #[cold]
    #[inline(never)]
    pub(crate) fn dead_remotely<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        mut visitor: impl FnMut(TupleView<'_>, DeadLetterRecord) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let template = TemplateBytes::encode(template).map_err(Error::from)?;
        let dead = Operation::Dead { template: TemplateBytes::of_encoding(&template) };
        let mut dead_letter = None;
        let see = |tuple: TupleView<'_>| match dead_letter.take() {
            Some(dead_letter) => Some(visitor(tuple, dead_letter).map(Some)),
            None => Some(dead_letter_of(tuple).map_err(E::from).map(|read| {
                dead_letter = Some(read);
                None
            })),
        };
        let made = Ask::Space(self.remote()?).tuples_of(&dead, see)?;
        Ok(made.unwrap_or_default().into_iter().flatten().collect())
    }

    /// As [`Space::requeue`].
    #[cold]
    pub(crate) fn requeue_remotely(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        let template = TemplateBytes::encode(template)?;
        let requeue = Operation::Requeue { template: TemplateBytes::of_encoding(&template) };
        Ask::Space(self.remote()?).count_of(&requeue)
    }
}

/// How many attempts have failed, and the number and the reason of each known one.
fn dead_letter_of(tuple: TupleView<'_>) -> Result<DeadLetterRecord, Error> {
    let mut fields = tuple.fields();
    let small = |field| whole(field).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let (attempts, mut reasons) = (small(fields.next())?, Vec::new());
    while let Some(number) = fields.next() {
        let Some(Field::Str(reason)) = fields.next() else {
            return Err(Fault::protocol("an attempt that has failed has a reason").into());
        };
        reasons.push(Attempt { number: small(Some(number))?, reason: reason.to_owned() });
    }
    Ok(DeadLetterRecord { attempts, reasons })
}
