//! Transactions over spaces that are elsewhere (rules X1 to X6).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Atomic};
use std::time::{Duration, Instant};

use tupelo_engine::{LeaseTerms, Order};
use tupelo_protocol::{
    Action, Amount, Kept, Operation, Settlement, SpaceId, SpaceIds, TemplateBytes, Tuples, Watched,
};
use tupelo_shm::process::fork_generation;
use tupelo_tuple::{TemplateRef, TupleRef, TupleView};

use super::ask::put_terms;
use super::{Ask, encoded, find, not_due};
use crate::connect::Space;
use crate::error::Error;
use crate::wait::{Elsewhere, Outcome, Waiter, Want};

/// How much later than asked for a transaction may end, as ends are rounded up to milliseconds.
const ROUNDING: Duration = Duration::from_millis(3);

/// A transaction that is elsewhere. Dropped, it is rolled back.
#[derive(Debug)]
pub(crate) struct RemoteTransaction {
    kept: Arc<dyn Kept>,
    /// When its time is over: not before it is so there.
    end: Instant,
    /// Whether a call has found that it is over.
    is_over: AtomicBool,
    /// Whether it was committed, if it was ended.
    was_committed: AtomicBool,
    /// When it was begun, as forks are counted.
    fork_generation: u32,
}

impl RemoteTransaction {
    /// Begins one over spaces of one server.
    pub(crate) fn begin(spaces: &[Space], ttl: Duration) -> Result<Self, Error> {
        let ids = spaces.iter().map(|space| Ok(space.remote()?.identity()));
        let ids = ids.collect::<Result<Vec<SpaceId>, Error>>()?;
        let begin = Operation::Begin { others: SpaceIds::Plain(&ids[1..]), ttl };
        let (found, kept) = spaces[0].remote()?.open(&begin, &mut |_| ControlFlow::Break(()))?;
        let kept = kept.ok_or_else(|| not_due(&begin, "a transaction", found))?;
        let kept: Arc<dyn Kept> = kept.into();
        for space in spaces {
            space.inner.opened.add_elsewhere(&kept);
        }
        Ok(Self {
            kept,
            end: Instant::now() + ttl + ROUNDING,
            is_over: AtomicBool::new(false),
            was_committed: AtomicBool::new(false),
            fork_generation: fork_generation(),
        })
    }

    pub(crate) fn time_left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Whether a call has found that it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Atomic::Relaxed)
    }

    /// The error of a call, by which it may be known that it is over: it ends with its connection.
    fn filtered(&self, error: Error) -> Error {
        let error = match error {
            Error::ConnectionLost { problem, may_have_happened: false, .. } => {
                let problem = format!("the transaction has ended with its connection: {problem}");
                Error::Aborted { problem, waited_for: None }
            }
            error => error,
        };
        if matches!(error, Error::Aborted { .. } | Error::ConnectionLost { .. }) {
            self.is_over.store(true, Atomic::Relaxed);
        }
        error
    }

    fn settle(&self, settlement: Settlement<'_>) -> Result<(), Error> {
        let settled = Ask::Kept(&*self.kept, 0).count_of(&Operation::Settle(settlement));
        settled.map(drop).map_err(|error| self.filtered(error))
    }

    /// Refuses if it was ended.
    pub(crate) fn require_open(&self, is_ended: bool) -> Result<(), Error> {
        if self.fork_generation != fork_generation() {
            return Err(tupelo_engine::Error::TransactionForked.into());
        }
        if is_ended {
            let committed = self.was_committed.load(Atomic::Relaxed);
            return Err(tupelo_engine::Error::TransactionEnded { committed }.into());
        }
        Ok(())
    }

    pub(crate) fn commit(&self) -> Result<(), Error> {
        self.settle(Settlement::Done { grant: None })?;
        self.was_committed.store(true, Atomic::Relaxed);
        Ok(())
    }

    /// Rolls it back. One whose connection is lost is rolled back.
    pub(crate) fn abort(&self) -> Result<(), Error> {
        match self.settle(Settlement::Abort { reason: "" }) {
            Ok(()) | Err(Error::Aborted { .. } | Error::ConnectionLost { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Its space number `at`.
    pub(crate) fn inside(&self, at: usize) -> RemoteInside<'_> {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        RemoteInside { transaction: self, ask: Ask::Kept(&*self.kept, at) }
    }
}

/// A space as a transaction sees it, both elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct RemoteInside<'t> {
    transaction: &'t RemoteTransaction,
    ask: Ask<'t>,
}

impl RemoteInside<'_> {
    pub(crate) fn put_all(&self, tuples: &[TupleRef<'_>], terms: &LeaseTerms) -> Result<(), Error> {
        if tuples.is_empty() {
            return Ok(());
        }
        let tuples = encoded(tuples.iter().copied())?;
        let (tuples, terms) = (Tuples::of_encoding(&tuples), put_terms(terms));
        self.count_of(&Operation::Put { tuples, terms, unless: None }).map(drop)
    }

    pub(crate) fn put_if_absent(
        &self,
        tuple: TupleRef<'_>,
        unless: &[TemplateRef<'_>],
        terms: &LeaseTerms,
    ) -> Result<bool, Error> {
        let (tuple, unless) = (encoded(std::iter::once(tuple))?, TemplateBytes::encode(unless)?);
        let put = Operation::Put {
            tuples: Tuples::of_encoding(&tuple),
            terms: put_terms(terms),
            unless: Some(TemplateBytes::of_encoding(&unless)),
        };
        Ok(self.count_of(&put)? > 0)
    }

    pub(crate) fn check(&self, tuple: TupleRef<'_>) -> Result<(), Error> {
        let tuples = encoded(std::iter::once(tuple))?;
        self.count_of(&Operation::Check { tuples: Tuples::of_encoding(&tuples) }).map(drop)
    }

    pub(crate) fn has_read(&self) -> Result<bool, Error> {
        Ok(self.count_of(&Operation::HasRead)? > 0)
    }

    pub(crate) fn count(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        self.ask.count(template).map_err(|error| self.transaction.filtered(error))
    }

    fn count_of(&self, operation: &Operation<'_>) -> Result<u64, Error> {
        self.ask.count_of(operation).map_err(|error| self.transaction.filtered(error))
    }

    pub(crate) fn find<R, E: From<Error>>(
        &self,
        how: (Action, Order),
        template: &[TemplateRef<'_>],
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let found = self.ask.find(how, template, |tuple| visitor(tuple).map_err(Sunk::Caller));
        found.map_err(|error| self.as_callers(error))
    }

    pub(crate) fn find_all<R, E: From<Error>>(
        &self,
        action: Action,
        numbers: (usize, Option<usize>),
        template: &[TemplateRef<'_>],
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Vec<R>>, E> {
        let visitor = |tuple: TupleView<'_>| visitor(tuple).map_err(Sunk::Caller);
        self.ask
            .find_all(action, numbers, template, visitor)
            .map_err(|error| self.as_callers(error))
    }

    fn as_callers<E: From<Error>>(&self, error: Sunk<E>) -> E {
        match error {
            Sunk::Space(error) => self.transaction.filtered(error).into(),
            Sunk::Caller(error) => error,
        }
    }

    /// Joins the wait queue to take a match, or watches for one to be put or given back.
    pub(crate) fn waiter(
        &self,
        space: &Space,
        template: &[TemplateRef<'_>],
        want: Want,
    ) -> Result<Waiter, Error> {
        let template = TemplateBytes::encode(template)?;
        let place = match want {
            Want::Take => {
                let take = find((Action::Take, Order::Fifo), Amount::One, &template, true);
                Elsewhere::for_inside(self.ask.wait(&take)?)
            }
            Want::Read => {
                let template = TemplateBytes::of_encoding(&template);
                let watch = Operation::Watch { template, on: Watched::Put };
                Elsewhere::watch(self.ask.wait(&watch)?)
            }
        };
        Ok(Waiter::remote(space, place))
    }

    /// Takes the tuple that a place in the wait queue was handed.
    pub(crate) fn finish_take<R, E: From<Error>>(
        &self,
        space: &Space,
        place: Elsewhere,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        let outcome = place.pick_up(|tuple| visitor(tuple).map_err(Sunk::Caller));
        Ok(match outcome.map_err(|error| self.as_callers(error))? {
            Outcome::Done(result) => Outcome::Done(result),
            Outcome::Waits(place) => Outcome::Waits(Waiter::remote(space, place)),
        })
    }
}

/// The outcome of a call: of the call itself, or a refusal by the caller's visitor.
enum Sunk<E> {
    Space(Error),
    Caller(E),
}

impl<E> From<Error> for Sunk<E> {
    fn from(error: Error) -> Self {
        Self::Space(error)
    }
}
