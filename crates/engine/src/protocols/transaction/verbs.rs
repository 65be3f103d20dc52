//! The operations of a transaction, each in the transaction's own view. The view has the tuples of the space that
//! nobody else holds, without those it took, and with those it put (rules X2, X3, X6).

use tupelo_tuple::{TemplateRef, TupleRef, TupleView};

use crate::base::error::Error;
use crate::base::terms::LeaseTerms;
use crate::base::want::Want;
use crate::index::find::Order;
use crate::operations::targets::{TupleBuffer, TupleCopy};
use crate::operations::wait::{self, Outcome, Waiter};
use crate::operations::{bulk, put};
use crate::protocols::transaction::Transaction;
use crate::protocols::transaction::hold::{self, Enlisted};
use crate::protocols::transaction::write_set::{Number, is_preceded};
use crate::store;
use crate::waiters::hand_off::HandOffDeadline;

impl Transaction {
    /// Puts a tuple into space number `at`, at commit (rule X2).
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] and [`Error::LimitExceeded`] at once; that the space is full is known at commit.
    pub fn put<'f>(&mut self, at: usize, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        self.put_on(at, tuple, &LeaseTerms::default())
    }

    /// As [`Transaction::put`], on `terms` that count from the commit (rules L1, L3). To the transaction itself the tuple is there
    /// at once, and until then.
    ///
    /// # Errors
    ///
    /// As [`Transaction::put`].
    pub fn put_on<'f>(
        &mut self,
        at: usize,
        tuple: impl Into<TupleRef<'f>>,
        terms: &LeaseTerms,
    ) -> Result<(), Error> {
        self.require_open()?;
        let part = &mut self.parts[at];
        let incoming = put::incoming(&part.engine, tuple.into())?;
        part.writes.put(&incoming, terms);
        Ok(())
    }

    /// As [`Transaction::put_on`], unless something matches `unless` that the transaction sees, or that others hold (rules O8,
    /// O9). Returns whether it did. If something matches when it commits, it comes to nothing.
    ///
    /// # Errors
    ///
    /// As [`Transaction::put`]; [`Error::LimitExceeded`] for too many such templates.
    pub fn put_if_absent<'f>(
        &mut self,
        at: usize,
        tuple: impl Into<TupleRef<'f>>,
        unless: &[TemplateRef<'_>],
        terms: &LeaseTerms,
    ) -> Result<bool, Error> {
        self.require_open()?;
        let part = &mut self.parts[at];
        let incoming = put::incoming(&part.engine, tuple.into())?;
        if !part.writes.matches(unless).is_empty() || part.is_present(unless)? {
            return Ok(false);
        }
        part.require_absent(unless)?;
        part.writes.put(&incoming, terms);
        Ok(true)
    }

    /// Checks a tuple that is to be put into space number `at`.
    ///
    /// # Errors
    ///
    /// As [`Transaction::put`].
    pub fn check<'f>(&mut self, at: usize, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        self.require_open()?;
        put::incoming(&self.parts[at].engine, tuple.into()).map(|_| ())
    }

    /// Whether it has read something in space number `at`. Then a take that finds nothing must not join the wait queue.
    /// It may get a tuple that it has read itself, when others no longer have read it. Nobody hands such a tuple over.
    /// It watches, and tries again.
    pub fn has_read(&self, at: usize) -> bool {
        self.parts.get(at).is_some_and(|part| !part.locks.is_empty())
    }

    /// Takes a match from space number `at` and gives it to `visitor`; `None` if nothing matches that no other
    /// transaction has (rule X4). Of what the transaction has put itself, which is younger than all in the space, only
    /// if nothing else matches, or the order asks for it.
    ///
    /// # Errors
    ///
    /// [`Error::Aborted`] if the lease has ended. What `visitor` says: then the tuple is back, as it was.
    pub fn try_take<R, E: From<Error>>(
        &mut self,
        at: usize,
        template: &[TemplateRef<'_>],
        order: Order,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        self.require_open()?;
        let own = self.match_in_writes(at, template, order);
        if order != Order::Lifo || own.is_none() {
            let mut copy = TupleBuffer::new();
            let term = self.term_in(at);
            if let Some(taken) = self.parts[at].take(template, order, own, term, &mut copy)? {
                return self
                    .visit_held(at, taken, &mut copy, own.map(|own| (order, own)), visitor)
                    .map(Some);
            }
        }
        own.map(|number| self.visit_written(at, number, visitor)).transpose()
    }

    /// Copies a match in space number `at` for `visitor`, and locks it; `None` if nothing matches.
    ///
    /// # Errors
    ///
    /// As [`Transaction::try_take`].
    pub fn try_read<R, E: From<Error>>(
        &mut self,
        at: usize,
        template: &[TemplateRef<'_>],
        order: Order,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        self.require_open()?;
        let own = self.match_in_writes(at, template, order);
        let term = self.term_in(at);
        let part = &mut self.parts[at];
        if order != Order::Lifo || own.is_none() {
            let read = part.read(template, order, term)?;
            if let Some((copy, lock)) = read {
                let is_own_better = own.is_some_and(|own| {
                    is_preceded(&copy.view(), &part.writes.get(own).view(), order)
                });
                let locks = Vec::from_iter(lock);
                if !is_own_better {
                    let result = visitor(copy.view());
                    part.keep(locks, result.is_ok())?;
                    return result.map(Some);
                }
                part.keep(locks, false)?;
            }
        }
        own.map(|own| visitor(part.writes.get(own).view())).transpose()
    }

    /// Takes the matches of one moment from space number `at`, up to `limit`: the oldest of each shape first, then
    /// what the transaction has put.
    ///
    /// # Errors
    ///
    /// As [`Transaction::try_take`]: if `visitor` fails, all of them are back.
    pub fn take_all<R, E: From<Error>>(
        &mut self,
        at: usize,
        template: &[TemplateRef<'_>],
        limit: Option<usize>,
        visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let taken = self.try_take_many(at, template, 0, limit.unwrap_or(usize::MAX), visitor)?;
        Ok(taken.unwrap_or_default())
    }

    /// Takes between `at_least` and `at_most` matches of one moment from space number `at`; `None`, and nothing taken,
    /// if there are fewer.
    ///
    /// # Errors
    ///
    /// As [`Transaction::take_all`].
    pub fn try_take_many<R, E: From<Error>>(
        &mut self,
        at: usize,
        template: &[TemplateRef<'_>],
        at_least: usize,
        at_most: usize,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Vec<R>>, E> {
        self.require_open()?;
        let own = self.parts[at].writes.matches(template);
        let from_space = at_least.saturating_sub(own.len());
        let term = self.term_in(at);
        let taken = self.parts[at].take_many(template, from_space, at_most, term)?;
        if taken.len() + own.len() < at_least {
            return Ok(None);
        }
        let all_taken: Vec<Enlisted> = taken.iter().map(|(one, _)| *one).collect();
        let own = &own[..own.len().min(at_most - taken.len())];
        let part = &mut self.parts[at];
        let begin = part.holds.len();
        part.holds.extend(all_taken.iter().map(|one| one.hold));
        let mut visit_all = || {
            let mut results = Vec::new();
            let mut buffer = TupleBuffer::new();
            for (one, copy) in &taken {
                if copy.is_none() && !hold::copy_enlisted(&part.engine, one.hold, &mut buffer)? {
                    return Ok(None);
                }
                results
                    .push(visitor(copy.as_ref().map_or_else(|| buffer.view(), TupleCopy::view))?);
            }
            for number in own {
                results.push(visitor(part.writes.get(*number).view())?);
            }
            Ok(Some(results))
        };
        match visit_all() {
            Ok(Some(results)) => {
                for number in own {
                    part.writes.remove(*number);
                }
                Ok(Some(results))
            }
            Ok(None) => Err(self.run_out()?.into()),
            Err(error) => {
                part.holds.truncate(begin);
                self.put_back(at, &all_taken)?;
                Err(error)
            }
        }
    }

    /// Gives back what was taken and is not wanted, as it was. If it can not be locked again, all of the transaction is
    /// undone: others might change what it has read (rule X3).
    fn put_back(&mut self, at: usize, taken: &[Enlisted]) -> Result<(), Error> {
        let term = self.term_in(at);
        let part = &mut self.parts[at];
        for (index, one) in taken.iter().enumerate() {
            if let Err(error) = part.put_back(*one, term) {
                part.holds.extend(taken[index..].iter().map(|one| one.hold));
                self.abort()?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Copies the matches of one moment in space number `at`, up to `limit`, and locks them.
    ///
    /// # Errors
    ///
    /// As [`Transaction::try_read`].
    pub fn read_all<R, E: From<Error>>(
        &mut self,
        at: usize,
        template: &[TemplateRef<'_>],
        limit: Option<usize>,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        self.require_open()?;
        let limit = limit.unwrap_or(usize::MAX);
        let term = self.term_in(at);
        let part = &mut self.parts[at];
        let (copies, locks) = part.read_all(template, limit, term)?;
        let own = part.writes.matches(template);
        let own = own.iter().map(|number| part.writes.get(*number));
        let all = copies.iter().chain(own).take(limit);
        let results: Result<Vec<R>, E> = all.map(|copy| visitor(copy.view())).collect();
        part.keep(locks, results.is_ok())?;
        results
    }

    /// The number of matches in space number `at`. Locks nothing.
    ///
    /// # Errors
    ///
    /// As [`Transaction::try_read`].
    pub fn count(&mut self, at: usize, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        self.require_open()?;
        let part = &mut self.parts[at];
        Ok(bulk::count(&part.engine, template)? + part.writes.matches(template).len() as u64)
    }

    /// Joins the wait queue to take a match from space number `at` (rule X6), for [`Transaction::finish_take`]; or, if it is
    /// not to be taken, watches for one.
    ///
    /// # Errors
    ///
    /// As [`crate::Engine::waiter`]; [`Error::Aborted`] if the lease has ended.
    pub fn waiter(
        &mut self,
        at: usize,
        template: &[TemplateRef<'_>],
        take: bool,
    ) -> Result<Waiter, Error> {
        self.require_open()?;
        let engine = &self.parts[at].engine;
        if !take {
            return wait::waiter(engine, template, Want::Put);
        }
        // What it is handed is back when the transaction is over, also if the process is stopped.
        wait::waiter_for(
            engine,
            template,
            Want::Take,
            Some(HandOffDeadline::Until(self.term.end_ms)),
        )
    }

    /// Takes what a waiter of [`Transaction::waiter`] was handed. Does not wait: if there is nothing, the waiter stays
    /// in the wait queue.
    ///
    /// # Errors
    ///
    /// As [`Transaction::try_take`].
    pub fn finish_take<R, E: From<Error>>(
        &mut self,
        at: usize,
        waiter: Waiter,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        self.require_open()?;
        let mut copy = TupleBuffer::new();
        match waiter.finish_enlisted(self.term_in(at), &mut copy)? {
            Outcome::Waits(waiter) => Ok(Outcome::Waits(waiter)),
            Outcome::Done(taken) => {
                self.visit_held(at, taken, &mut copy, None, visitor).map(Outcome::Done)
            }
        }
    }

    fn match_in_writes(
        &mut self,
        at: usize,
        template: &[TemplateRef<'_>],
        order: Order,
    ) -> Option<Number> {
        let part = &mut self.parts[at];
        let random = store::random_for(&part.engine, order);
        part.writes.pick(template, order, random)
    }

    /// Gives what was taken from the space to `visitor`, by way of `copy`, unless it was copied there. If the order of
    /// the `rival` asks for that rather, it is a tuple that the transaction has put itself.
    fn visit_held<R, E: From<Error>>(
        &mut self,
        at: usize,
        (taken, is_copied): (Enlisted, bool),
        copy: &mut TupleBuffer,
        rival: Option<(Order, Number)>,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let part = &mut self.parts[at];
        let is_whole = is_copied
            || match hold::copy_enlisted(&part.engine, taken.hold, copy) {
                Ok(is_held) => is_held,
                Err(error) => {
                    self.put_back(at, &[taken])?;
                    return Err(error.into());
                }
            };
        if !is_whole {
            return Err(self.run_out()?.into());
        }
        let view = copy.view();
        if let Some((order, own)) = rival
            && is_preceded(&view, &part.writes.get(own).view(), order)
        {
            self.put_back(at, &[taken])?;
            return self.visit_written(at, own, visitor);
        }
        match visitor(view) {
            Ok(result) => {
                part.holds.push(taken.hold);
                Ok(result)
            }
            Err(error) => {
                self.put_back(at, &[taken])?;
                Err(error)
            }
        }
    }

    /// Gives what the transaction has put itself to `visitor`, and forgets it.
    fn visit_written<R, E: From<Error>>(
        &mut self,
        at: usize,
        number: Number,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let own = &mut self.parts[at].writes;
        let result = visitor(own.get(number).view())?;
        own.remove(number);
        Ok(result)
    }
}

#[cfg(test)]
mod tests;
