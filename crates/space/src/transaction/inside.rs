//! A space as a transaction sees it (rules X2 to X6).

use std::time::{Duration, Instant};

use tupelo_engine::{LeaseTerms, Order};
use tupelo_protocol::Action;
use tupelo_tuple::{TemplateRef, TupleRef, TupleView};

use super::{Call, Transaction, Way};
use crate::connect::Space;
use crate::error::{Error, TEMPLATE_CHARACTERS_MAX};
use crate::explain::shortened;
use crate::remote::transaction::RemoteInside;
use crate::wait::{Lifted, Outcome, Place, Waiter, Want, lift};

/// A space as a transaction sees it: the visible tuples, without the ones that it has taken, and with the ones that it
/// has put (rule X6).
#[derive(Clone, Copy, Debug)]
pub struct Inside<'t> {
    pub(super) transaction: &'t Transaction,
    pub(super) at: usize,
}

impl<'t> Inside<'t> {
    /// The number of the space in the transaction.
    pub fn number(&self) -> usize {
        self.at
    }

    /// The space.
    pub fn space(&self) -> &'t Space {
        &self.transaction.spaces[self.at]
    }

    /// Whether the time of the transaction has run out. A call that waits ends with [`Inside::timeout`] then.
    pub fn is_over(&self) -> bool {
        self.transaction.time_left().is_zero()
    }

    /// The transaction in this space.
    fn way(&self) -> Result<Way<'t>, Error> {
        // A closed handle is refused as everywhere.
        self.space().require_open()?;
        self.transaction.way()
    }

    /// Calls an operation that exists only for an engine or only for a space elsewhere.
    fn either<R>(
        &self,
        here: impl FnOnce(&mut Call<'t>) -> Result<R, tupelo_engine::Error>,
        there: impl FnOnce(RemoteInside<'t>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        match self.way()? {
            Way::Here(mut call) => Ok(here(&mut call)?),
            Way::There(transaction) => there(transaction.inside(self.at)),
        }
    }

    /// Stores a tuple at commit (rule X2).
    ///
    /// # Errors
    ///
    /// [`Error::SpaceFull`] for a tuple larger than the space, [`Error::LimitExceeded`]; whether there is room is known
    /// at commit.
    pub fn put<'f>(&self, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        self.put_on(tuple, &LeaseTerms::default())
    }

    /// As [`Inside::put`], on `terms` that count from the commit (rules L1, L3).
    ///
    /// # Errors
    ///
    /// As [`Inside::put`].
    pub fn put_on<'f>(
        &self,
        tuple: impl Into<TupleRef<'f>>,
        terms: &LeaseTerms,
    ) -> Result<(), Error> {
        let tuple = tuple.into();
        let here = |call: &mut Call<'_>| call.put_on(self.at, tuple, terms);
        self.either(here, |inside| inside.put_all(&[tuple], terms))
    }

    /// Stores all tuples at commit, or none.
    ///
    /// # Errors
    ///
    /// As [`Inside::put`]: none of them is put.
    pub fn put_all(&self, tuples: &[TupleRef<'_>]) -> Result<(), Error> {
        self.put_all_on(tuples, &LeaseTerms::default())
    }

    /// As [`Inside::put_all`], each on `terms` that count from the commit (rules L1, L3).
    ///
    /// # Errors
    ///
    /// As [`Inside::put`]: none of them is put.
    pub fn put_all_on(&self, tuples: &[TupleRef<'_>], terms: &LeaseTerms) -> Result<(), Error> {
        let all = |call: &mut Call<'_>| {
            tuples.iter().try_for_each(|tuple| call.check(self.at, *tuple))?;
            tuples.iter().try_for_each(|tuple| call.put_on(self.at, *tuple, terms))
        };
        self.either(all, |inside| inside.put_all(tuples, terms))
    }

    /// As [`Inside::put_on`], unless something matches `unless`: in the transaction's view, or held by others (rules O8, O9). Returns
    /// whether it did. If something matches at commit, the commit is [`Error::Aborted`].
    ///
    /// # Errors
    ///
    /// As [`Inside::put`]. [`Error::Unsupported`] for an `unless` with a condition over the whole tuple (M9).
    pub fn put_if_absent<'f>(
        &self,
        tuple: impl Into<TupleRef<'f>>,
        unless: &[TemplateRef<'_>],
        terms: &LeaseTerms,
    ) -> Result<bool, Error> {
        if unless.iter().any(|one| one.condition.is_some()) {
            return Err(Error::Unsupported {
                problem: "put_if_absent in a transaction does not take a condition (where=)".into(),
                hint: "write it as patterns of the fields, as in unless=(\"job\", F > 7)".into(),
            });
        }
        let tuple = tuple.into();
        let here = |call: &mut Call<'_>| call.put_if_absent(self.at, tuple, unless, terms);
        self.either(here, |inside| inside.put_if_absent(tuple, unless, terms))
    }

    /// Checks a tuple that is to be put: for a caller that changes something else first.
    ///
    /// # Errors
    ///
    /// As [`Inside::put`].
    pub fn check<'f>(&self, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        let tuple = tuple.into();
        self.either(|call| call.check(self.at, tuple), |inside| inside.check(tuple))
    }

    /// Whether the transaction has read something here. Then a take without a match has to watch ([`Want::Read`]) and
    /// try again: tuples that the transaction itself has read are not handed over when others unlock them.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] in another thread.
    pub fn has_read(&self) -> Result<bool, Error> {
        self.either(|call| Ok(call.has_read(self.at)), |inside| inside.has_read())
    }

    /// Takes a match, if there is one that no other transaction has, and gives it to `visitor` (rule X4). The
    /// transaction's own puts are younger than everything else.
    ///
    /// # Errors
    ///
    /// [`Error::Aborted`] if the `ttl` has passed. What `visitor` says: then the tuple is back.
    pub fn try_take<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let mut inner = match self.way()? {
            Way::Here(inner) => inner,
            Way::There(transaction) => {
                let inside = transaction.inside(self.at);
                return inside.find((Action::Take, order), template, visitor);
            }
        };
        lift(
            inner
                .try_take(self.at, template, order, |tuple| visitor(tuple).map_err(Lifted::caller)),
        )
    }

    /// Copies a match, if there is one. No other caller can take it from now on (rule X3).
    ///
    /// # Errors
    ///
    /// As [`Inside::try_take`].
    pub fn try_read<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let mut inner = match self.way()? {
            Way::Here(inner) => inner,
            Way::There(transaction) => {
                let inside = transaction.inside(self.at);
                return inside.find((Action::Read, order), template, visitor);
            }
        };
        lift(
            inner
                .try_read(self.at, template, order, |tuple| visitor(tuple).map_err(Lifted::caller)),
        )
    }

    /// Takes a match, waiting for one up to `timeout`, or until another transaction gives one back (rule X4).
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]: the transaction goes on. [`Error::Aborted`], naming the template, if its `ttl` ends first,
    /// as it does in a deadlock (X6).
    pub fn take<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        timeout: Option<Duration>,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        if let Some(taken) = self.try_take(template, order, &mut visitor)? {
            return Ok(taken);
        }
        if timeout == Some(Duration::ZERO) {
            return Err(self.timeout("take", template, Duration::ZERO).into());
        }
        if self.has_read()? {
            return self.retry(("take", template), timeout, || {
                self.try_take(template, order, &mut visitor)
            });
        }
        let end = self.end_of_wait(timeout);
        let mut waiter = self.waiter(template, Want::Take)?;
        loop {
            match self.finish_take(waiter, &mut visitor)? {
                Outcome::Done(taken) => return Ok(taken),
                Outcome::Waits(again) => waiter = again,
            }
            // Something may have been handed over when it was too late.
            if self.is_over()
                || !waiter.last_wait(Some(end.saturating_duration_since(Instant::now())))?
            {
                drop(waiter);
                return Err(self.timeout("take", template, timeout.unwrap_or_default()).into());
            }
        }
    }

    /// Tries again whenever a match was put, given back or unlocked.
    fn retry<R, E: From<Error>>(
        &self,
        (verb, template): (&'static str, &[TemplateRef<'_>]),
        timeout: Option<Duration>,
        mut attempt: impl FnMut() -> Result<Option<R>, E>,
    ) -> Result<R, E> {
        let end = self.end_of_wait(timeout);
        let puts = self.waiter(template, Want::Read)?;
        while !self.is_over() {
            if let Some(done) = attempt()? {
                return Ok(done);
            }
            if !puts.wait(Some(end.saturating_duration_since(Instant::now())))? {
                break;
            }
        }
        drop(puts);
        Err(self.timeout(verb, template, timeout.unwrap_or_default()).into())
    }

    /// Copies a match, waiting for one up to `timeout`; no other caller can take it from then on (rule X3).
    ///
    /// # Errors
    ///
    /// As [`Inside::take`].
    pub fn read<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        timeout: Option<Duration>,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        if let Some(read) = self.try_read(template, order, &mut visitor)? {
            return Ok(read);
        }
        if timeout == Some(Duration::ZERO) {
            return Err(self.timeout("read", template, Duration::ZERO).into());
        }
        self.retry(("read", template), timeout, || self.try_read(template, order, &mut visitor))
    }

    /// How long a call that may wait for `timeout` can wait: not longer than the transaction may be open.
    pub fn wait_at_most(&self, timeout: Option<Duration>) -> Duration {
        let left = self.transaction.time_left();
        timeout.map_or(left, |timeout| timeout.min(left))
    }

    /// When a call that began now has waited long enough.
    fn end_of_wait(&self, timeout: Option<Duration>) -> Instant {
        // First the length: a wait that ends with the transaction must not end before it.
        let length = self.wait_at_most(timeout);
        Instant::now() + length
    }

    /// Takes the matches of one moment, up to `limit`: the oldest of each shape first, then the transaction's own puts.
    ///
    /// # Errors
    ///
    /// As [`Inside::try_take`]: then all are back.
    pub fn take_all<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        limit: Option<usize>,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let mut inner = match self.way()? {
            Way::Here(inner) => inner,
            Way::There(transaction) => {
                let inside = transaction.inside(self.at);
                return Ok(inside
                    .find_all(Action::Take, (0, limit), template, visitor)?
                    .unwrap_or_default());
            }
        };
        lift(
            inner
                .take_all(self.at, template, limit, |tuple| visitor(tuple).map_err(Lifted::caller)),
        )
    }

    /// Takes between `at_least` and `at_most` matches of one moment; `None`, and nothing taken, if there are fewer.
    ///
    /// # Errors
    ///
    /// As [`Inside::take_all`].
    pub fn try_take_many<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        at_least: usize,
        at_most: usize,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Vec<R>>, E> {
        let mut inner = match self.way()? {
            Way::Here(inner) => inner,
            Way::There(transaction) => {
                let inside = transaction.inside(self.at);
                return inside.find_all(Action::Take, (at_least, Some(at_most)), template, visitor);
            }
        };
        let visitor = |tuple: TupleView<'_>| visitor(tuple).map_err(Lifted::caller);
        lift(inner.try_take_many(self.at, template, at_least, at_most, visitor))
    }

    /// Copies the matches of one moment, up to `limit`; no other caller can take them from then on (rule X3).
    ///
    /// # Errors
    ///
    /// As [`Inside::try_read`].
    pub fn read_all<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        limit: Option<usize>,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let mut inner = match self.way()? {
            Way::Here(inner) => inner,
            Way::There(transaction) => {
                let inside = transaction.inside(self.at);
                return Ok(inside
                    .find_all(Action::Read, (0, limit), template, visitor)?
                    .unwrap_or_default());
            }
        };
        lift(
            inner
                .read_all(self.at, template, limit, |tuple| visitor(tuple).map_err(Lifted::caller)),
        )
    }

    /// The number of matches. Locks nothing: others may change it.
    ///
    /// # Errors
    ///
    /// As [`Inside::try_read`].
    pub fn count(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        self.either(|call| call.count(self.at, template), |inside| inside.count(template))
    }

    /// Joins the wait queue to take a match, for [`Inside::finish_take`]; or watches for one to be put or given back, for
    /// another [`Inside::try_read`]. For callers that wait in their own manner, no longer than
    /// [`Transaction::time_left`].
    ///
    /// # Errors
    ///
    /// As [`Space::waiter`]; [`Error::Aborted`] if the `ttl` has passed.
    pub fn waiter(&self, template: &[TemplateRef<'_>], want: Want) -> Result<Waiter, Error> {
        match self.way()? {
            Way::Here(mut call) => {
                let waiter = call.waiter(self.at, template, want == Want::Take)?;
                Ok(Waiter::new(self.space(), waiter))
            }
            Way::There(transaction) => {
                transaction.inside(self.at).waiter(self.space(), template, want)
            }
        }
    }

    /// Takes the tuple that a taking waiter was handed. If there is none, or the transaction's time has run out, the
    /// waiter stays in the wait queue.
    ///
    /// # Errors
    ///
    /// As [`Inside::try_take`]; [`Error::Misuse`] for a waiter that does not take, or that is in the wait queue elsewhere.
    pub fn finish_take<R, E: From<Error>>(
        &self,
        waiter: Waiter,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        waiter.require_take()?;
        let is_foreign = waiter.elsewhere().is_some_and(|place| !place.is_inside);
        if is_foreign || !waiter.space().is_same(self.space()) {
            return Err(self.elsewhere(&waiter).into());
        }
        if self.is_over() {
            return Ok(Outcome::Waits(waiter));
        }
        let (mut inner, space, waiter) = match (self.way()?, waiter.into_parts()) {
            (Way::Here(inner), (space, Place::Local(waiter))) => (inner, space, waiter),
            (Way::There(transaction), (space, Place::Remote(place))) => {
                return transaction.inside(self.at).finish_take(&space, place, visitor);
            }
            _ => unreachable!("a space is here, or it is not"),
        };
        let outcome = lift(
            inner.finish_take(self.at, waiter, |tuple| visitor(tuple).map_err(Lifted::caller)),
        )?;
        Ok(space.outcome(outcome))
    }

    #[cold]
    fn elsewhere(&self, waiter: &Waiter) -> Error {
        Error::Misuse {
            problem: format!("this place in the wait queue is one in {}", waiter.space().url()),
            hint: Some(format!(
                "join the wait queue in {} by waiter() of the transaction",
                self.space().url()
            )),
        }
    }

    /// The error of a call that has waited in vain for `timeout`, or until the transaction's time had run out. In that
    /// case the transaction is aborted (rule X6).
    #[cold]
    pub fn timeout(
        &self,
        verb: &'static str,
        template: &[TemplateRef<'_>],
        timeout: Duration,
    ) -> Error {
        let (space, at) = (self.space(), self.at);
        let over = self.either(
            |call| call.waiter(at, template, false).map(drop),
            |inside| inside.count(template).map(drop),
        );
        match (over, space.timeout(verb, template, timeout)) {
            (Ok(()), timed_out) => timed_out,
            (Err(Error::Aborted { problem, .. }), Error::Timeout { template, url, .. }) => {
                let template = shortened(&template, TEMPLATE_CHARACTERS_MAX);
                Error::Aborted { problem, waited_for: Some(format!("{template} in {url}")) }
            }
            (Err(error), _) => error,
        }
    }
}
