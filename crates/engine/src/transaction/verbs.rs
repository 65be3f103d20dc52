//! The operations of a transaction, each in the transaction's own view: what is in the space and not in other
//! hands, without what it took, with what it put (rules X2, X3, X6).

use std::sync::Arc;

use tupelo_tuple::{TemplateRef, TupleRef, TupleView};

use super::Transaction;
use super::hold::Enlisted;
use super::own::is_beaten;
use crate::error::Error;
use crate::events::Happening;
use crate::find::Order;
use crate::waiters::Want;
use crate::waiters::wait::{Outcome, Waiter};

impl Transaction {
    /// Puts a tuple into space number `at`, at commit (rule X2).
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] and [`Error::LimitExceeded`] at once; that the space is full is known at commit.
    pub fn put<'f>(&mut self, at: usize, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        self.require_open()?;
        let part = &mut self.parts[at];
        let incoming = part.engine.incoming(tuple.into())?;
        part.own.put(&incoming);
        Ok(())
    }

    /// Checks a tuple that is to be put into space number `at`.
    ///
    /// # Errors
    ///
    /// As [`Transaction::put`].
    pub fn check<'f>(&mut self, at: usize, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        self.require_open()?;
        self.parts[at].engine.incoming(tuple.into()).map(|_| ())
    }

    /// Whether it has read something in space number `at`. Then a take that finds nothing must not get in line: what
    /// may come is what it has read itself, when others have not any more, and nobody hands that over. It watches, and
    /// tries again.
    pub fn has_read(&self, at: usize) -> bool {
        self.parts.get(at).is_some_and(|part| !part.locks.is_empty())
    }

    /// Takes a match from space number `at` and gives it to `sink`; `None` if nothing matches that no other
    /// transaction has (rule X4). Of what the transaction has put itself, which is younger than all in the space, only
    /// if nothing else matches, or the order asks for it.
    ///
    /// # Errors
    ///
    /// [`Error::Aborted`] if the lease has ended. What `sink` says: then the tuple is back.
    pub fn try_take<R, E: From<Error>>(
        &mut self,
        at: usize,
        template: &[TemplateRef<'_>],
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        self.require_open()?;
        let own = self.own_match(at, template, order);
        if order != Order::Lifo || own.is_none() {
            let taken = self.parts[at].take(template, (order, own), self.end_ms)?;
            if let Some(taken) = taken {
                return self.pour_held(at, taken, (order, own), sink).map(Some);
            }
        }
        own.map(|index| self.pour_own(at, index, sink)).transpose()
    }

    /// Copies a match in space number `at` for `sink`, and locks it; `None` if nothing matches.
    ///
    /// # Errors
    ///
    /// As [`Transaction::try_take`].
    pub fn try_read<R, E: From<Error>>(
        &mut self,
        at: usize,
        template: &[TemplateRef<'_>],
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        self.require_open()?;
        let own = self.own_match(at, template, order);
        let part = &mut self.parts[at];
        if order != Order::Lifo || own.is_none() {
            let read = part.read(template, order, self.end_ms)?;
            if let Some((copy, lock)) = read {
                let is_own_better =
                    own.is_some_and(|own| is_beaten(&copy, part.own.get(own), order));
                match (is_own_better, lock) {
                    (true, Some(lock)) => part.engine.release_lock(lock.place)?,
                    (_, Some(lock)) => part.locks.add(lock),
                    (_, None) => {}
                }
                if !is_own_better {
                    return sink(copy.view()).map(Some);
                }
            }
        }
        own.map(|own| sink(part.own.get(own).view())).transpose()
    }

    /// Takes the matches of one moment from space number `at`, up to `limit`: the oldest of each shape first, then
    /// what the transaction has put.
    ///
    /// # Errors
    ///
    /// As [`Transaction::try_take`]: if `sink` fails, all of them are back.
    pub fn take_all<R, E: From<Error>>(
        &mut self,
        at: usize,
        template: &[TemplateRef<'_>],
        limit: Option<usize>,
        sink: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let taken = self.try_take_many(at, template, (0, limit.unwrap_or(usize::MAX)), sink)?;
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
        (at_least, at_most): (usize, usize),
        mut sink: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Vec<R>>, E> {
        self.require_open()?;
        let own = self.parts[at].own.matches(template);
        let from_space = (at_least.saturating_sub(own.len()), at_most);
        let taken = self.parts[at].take_many(template, from_space, self.end_ms)?;
        if taken.len() + own.len() < at_least {
            return Ok(None);
        }
        let places: Vec<_> = taken.iter().map(|one| one.place).collect();
        let own = &own[..own.len().min(at_most - taken.len())];
        let part = &mut self.parts[at];
        let begin = part.holds.len();
        part.holds.extend(&places);
        let pour_all = || {
            let mut results = Vec::new();
            for one in taken {
                let copy = part.engine.copy_enlisted(one)?;
                let Some(copy) = copy else { return Ok(None) };
                results.push(sink(copy.view())?);
            }
            for index in own {
                results.push(sink(part.own.get(*index).view())?);
            }
            Ok(Some(results))
        };
        match pour_all() {
            Ok(Some(results)) => {
                own.iter().rev().for_each(|index| drop(part.own.remove(*index)));
                Ok(Some(results))
            }
            Ok(None) => Err(self.run_out()?.into()),
            Err(error) => {
                for place in part.holds.split_off(begin) {
                    part.engine.release_hold(place, Happening::Unheard)?;
                }
                Err(error)
            }
        }
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
        mut sink: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        self.require_open()?;
        let limit = limit.unwrap_or(usize::MAX);
        let part = &mut self.parts[at];
        let copies = part.read_all(template, limit, self.end_ms)?;
        let own = part.own.matches(template);
        let own = own.iter().map(|index| part.own.get(*index));
        copies.iter().chain(own).take(limit).map(|copy| sink(copy.view())).collect()
    }

    /// The number of matches in space number `at`. Locks nothing.
    ///
    /// # Errors
    ///
    /// As [`Transaction::try_read`].
    pub fn count(&mut self, at: usize, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        self.require_open()?;
        let part = &self.parts[at];
        Ok(part.engine.count(template)? + part.own.matches(template).len() as u64)
    }

    /// Gets in line to take a match from space number `at` (rule X6), for [`Transaction::finish_take`]; or, if it is
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
        self.parts[at].engine.waiter(template, if take { Want::Take } else { Want::Put })
    }

    /// Takes what a waiter of [`Transaction::waiter`] was handed. Does not wait: if there is nothing, the waiter stays
    /// in line.
    ///
    /// # Errors
    ///
    /// As [`Transaction::try_take`].
    pub fn finish_take<R, E: From<Error>>(
        &mut self,
        at: usize,
        waiter: Waiter,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        self.require_open()?;
        match waiter.finish_enlisted(self.end_ms)? {
            Outcome::Waits(waiter) => Ok(Outcome::Waits(waiter)),
            Outcome::Done(taken) => {
                self.pour_held(at, taken, (Order::Fifo, None), sink).map(Outcome::Done)
            }
        }
    }

    fn own_match(&self, at: usize, template: &[TemplateRef<'_>], order: Order) -> Option<usize> {
        let part = &self.parts[at];
        part.own.pick(template, order, part.engine.random_for(order))
    }

    /// Gives what was taken from the space to `sink`; or what the transaction has put itself, if the order asks for
    /// that rather.
    fn pour_held<R, E: From<Error>>(
        &mut self,
        at: usize,
        taken: Enlisted,
        (order, own): (Order, Option<usize>),
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let engine = Arc::clone(&self.parts[at].engine);
        let place = taken.place;
        let Some(copy) = engine.copy_enlisted(taken)? else {
            return Err(self.run_out()?.into());
        };
        let part = &mut self.parts[at];
        if let Some(own) = own.filter(|own| is_beaten(&copy, part.own.get(*own), order)) {
            engine.release_hold(place, Happening::Unheard)?;
            return self.pour_own(at, own, sink);
        }
        match sink(copy.view()) {
            Ok(result) => {
                part.holds.push(place);
                Ok(result)
            }
            Err(error) => {
                engine.release_hold(place, Happening::Unheard)?;
                Err(error)
            }
        }
    }

    /// Gives what the transaction has put itself to `sink`, and forgets it.
    fn pour_own<R, E: From<Error>>(
        &mut self,
        at: usize,
        index: usize,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let own = &mut self.parts[at].own;
        let result = sink(own.get(index).view())?;
        own.remove(index);
        Ok(result)
    }
}
