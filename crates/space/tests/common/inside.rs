//! Transactions as the model names them.

use std::time::Duration;

use tupelo::{Error, Inside, Outcome, Template, Transaction, Tuple};
use tupelo_model::{Answer, Operation, Place};

use super::hands::lease_terms;
use super::{Facade, keep, ordered, with_refs, with_tuple};

impl Facade {
    /// Does an operation on a transaction, or inside one.
    pub(super) fn with_transaction(
        &mut self,
        at: Place,
        operation: &Operation,
    ) -> Result<Answer, Error> {
        match operation {
            Operation::Begin { label, ttl_ms } => {
                let (main, other) = (self.space(Place::Main), self.space(Place::Other));
                let transaction = main.transaction(&[other], Duration::from_millis(*ttl_ms))?;
                self.transactions.insert(label.clone(), transaction);
            }
            Operation::Commit { label } => self.transactions[label].commit()?,
            Operation::RollBack { label } => self.transactions[label].abort()?,
            Operation::Inside { label, operation } => {
                if let Operation::Finish { label: call } = &**operation {
                    return self.finish_inside(label, call);
                }
                let seen = seen_by(&self.transactions[label], at);
                return inside(seen, operation, Duration::ZERO);
            }
            _ => unreachable!("{operation:?} is on no transaction"),
        }
        Ok(Answer::Done)
    }

    /// A take that waited returns with a tuple that is the transaction's.
    fn finish_inside(&mut self, label: &str, call: &str) -> Result<Answer, Error> {
        let inside = seen_by(&self.transactions[label], self.calls[call].0);
        // If the transaction is not open, the call stays in the wait queue.
        with_refs(&tupelo_model::template("..."), |template| inside.count(template))?;
        let (_, waiter) = self.calls.remove(call).expect("it was just looked at");
        match inside.finish_take(waiter, keep)? {
            Outcome::Done(tuple) => Ok(Answer::Tuple(tuple)),
            Outcome::Waits(_) => panic!("the call `{call}` was served, and has nothing"),
        }
    }
}

/// The space as a transaction sees it. Transactions are over both.
fn seen_by(transaction: &Transaction, at: Place) -> Inside<'_> {
    transaction.at(match at {
        Place::Main => 0,
        Place::Other => 1,
    })
}

/// Does an operation in a space as a transaction sees it; one that may wait gives up after `timeout`.
pub(crate) fn inside(
    space: Inside<'_>,
    operation: &Operation,
    timeout: Duration,
) -> Result<Answer, Error> {
    let found = |tuple: Option<Tuple>| tuple.map_or(Answer::Nothing, Answer::Tuple);
    let limited = |template: &Template, limit: Option<usize>, takes: bool| {
        let all = with_refs(template, |template| {
            if takes {
                space.take_all(template, limit, keep)
            } else {
                space.read_all(template, limit, keep)
            }
        });
        all.map(Answer::Tuples)
    };
    Ok(match operation {
        Operation::Put { tuple } => {
            with_tuple(tuple, |tuple| space.put(tuple))?;
            Answer::Done
        }
        Operation::PutIfAbsent { tuple, unless, terms } => {
            let terms = lease_terms(*terms);
            Answer::Flag(with_tuple(tuple, |tuple| {
                with_refs(unless, |unless| space.put_if_absent(tuple, unless, &terms))
            })?)
        }
        Operation::TryTake { template, order } => {
            found(with_refs(template, |template| space.try_take(template, ordered(*order), keep))?)
        }
        Operation::TryRead { template, order } => {
            found(with_refs(template, |template| space.try_read(template, ordered(*order), keep))?)
        }
        Operation::TakeNoWait { template, order } => {
            Answer::Tuple(with_refs(template, |template| {
                space.take(template, ordered(*order), Some(timeout), keep)
            })?)
        }
        Operation::ReadNoWait { template, order } => {
            Answer::Tuple(with_refs(template, |template| {
                space.read(template, ordered(*order), Some(timeout), keep)
            })?)
        }
        Operation::Count { template } => {
            Answer::Count(with_refs(template, |template| space.count(template))?)
        }
        Operation::ReadAll { template, limit } => limited(template, *limit, false)?,
        Operation::TakeAll { template, limit } => limited(template, *limit, true)?,
        Operation::TryTakeMany { template, at_least, at_most } => {
            let taken = with_refs(template, |template| {
                space.try_take_many(template, *at_least, *at_most, keep)
            })?;
            taken.map_or(Answer::Nothing, Answer::Tuples)
        }
        operation => unreachable!("{operation:?} is not for transactions"),
    })
}
