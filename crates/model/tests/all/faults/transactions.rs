//! What can be wrong with transactions.

use tupelo_model::conformance::Subject;
use tupelo_model::{Answer, Operation as O, Order, Place, Template, Tuple, template};

use super::{Broken, Fault};

/// Longer than any test lets pass.
const LONG_MS: u64 = 7_200_000;

/// What a transaction has taken or put.
#[derive(Clone)]
pub(super) struct Deed {
    label: String,
    at: Place,
    tuple: Tuple,
    is_put: bool,
}

fn inside(label: &str, operation: O) -> O {
    O::Inside { label: label.to_owned(), operation: Box::new(operation) }
}

impl Broken {
    /// Remembers what transactions take and put, for the faults that need to know.
    pub(super) fn note_inside(&mut self, at: Place, operation: &O, answer: &Answer) {
        match operation {
            O::Inside { label, operation } => {
                let (tuple, is_put) = match (&**operation, answer) {
                    (O::TryTake { .. }, Answer::Tuple(tuple)) => (tuple, false),
                    (O::Put { tuple }, Answer::Done) => (tuple, true),
                    _ => return,
                };
                self.inside.push(Deed { label: label.clone(), at, tuple: tuple.clone(), is_put });
            }
            O::Begin { label, .. } | O::RollBack { label } | O::Commit { label } => {
                self.inside.retain(|deed| deed.label != *label);
            }
            _ => {}
        }
    }

    fn deeds(&self, label: &str, are_puts: bool) -> Vec<Deed> {
        let is_it = |deed: &&Deed| deed.label == label && deed.is_put == are_puts;
        self.inside.iter().filter(is_it).cloned().collect()
    }

    /// The operation as the fault has it, or `None` if the fault is not in its arguments.
    pub(super) fn distorted_if_inside(&self, operation: O) -> Option<O> {
        match (self.fault, operation) {
            (Fault::TransactionsNeverEnd, O::Begin { label, .. }) => {
                Some(O::Begin { label, ttl_ms: LONG_MS })
            }
            (Fault::RollBackLosesWhatWasTaken, O::RollBack { label })
                if self.deeds(&label, true).is_empty() =>
            {
                Some(O::Commit { label })
            }
            (fault, O::Inside { label, operation }) => {
                let operation = match (fault, *operation) {
                    (Fault::TakesInsideAreVisible, O::TryTake { template, order }) => {
                        O::TryRead { template, order }
                    }
                    (Fault::ReadsHideTheTuple, O::TryRead { template, order }) => {
                        O::TryTake { template, order }
                    }
                    _ => return None,
                };
                Some(inside(&label, operation))
            }
            (_, operation) => self.distorted_if_told(operation),
        }
    }

    /// The answer as the fault has it, or `None` if the fault is not in this operation.
    pub(super) fn faulty_if_inside(&mut self, at: Place, operation: &O) -> Option<Answer> {
        Some(match (self.fault, operation) {
            (_, O::Inside { label, operation: within }) => {
                return self.faulty_inside(at, label, within);
            }
            (Fault::CommitStopsHalfWay, O::Commit { label }) => {
                let puts = self.deeds(label, true);
                let answer = self.state.perform(at, operation);
                if let (Answer::Done, Some(last)) = (&answer, puts.last()) {
                    let this = Template::of_actuals(&last.tuple);
                    let take = O::TryTake { template: this, order: Order::Lifo };
                    self.state.perform(last.at, &take);
                }
                answer
            }
            (Fault::CommitKeepsWhatWasTaken, O::Commit { label }) => {
                let taken = self.deeds(label, false);
                let answer = self.state.perform(at, operation);
                if matches!(answer, Answer::Done) {
                    self.put_again(&taken);
                }
                answer
            }
            (Fault::RollBackMakesTheTuplesTheYoungest, O::RollBack { label }) => {
                let taken = self.deeds(label, false);
                let answer = self.state.perform(at, operation);
                for deed in taken {
                    let template = Template::of_actuals(&deed.tuple);
                    let to = deed.tuple.clone();
                    self.state.perform(deed.at, &O::TrySwap { template, to });
                }
                answer
            }
            (Fault::RollBackKeepsThePuts, O::RollBack { label }) => {
                let puts = self.deeds(label, true);
                let answer = self.state.perform(at, operation);
                self.put_again(&puts);
                answer
            }
            (Fault::RollBackKeepsTheLocks, O::RollBack { .. }) => Answer::Done,
            _ => return self.faulty_if_told(at, operation),
        })
    }

    fn put_again(&mut self, deeds: &[Deed]) {
        for deed in deeds {
            self.state.perform(deed.at, &O::Put { tuple: deed.tuple.clone() });
        }
    }

    fn faulty_inside(&mut self, at: Place, label: &str, operation: &O) -> Option<Answer> {
        let plainly = inside(label, operation.clone());
        Some(match (self.fault, operation) {
            (Fault::PutsInsideAreVisibleAtOnce, O::Put { .. }) => self.state.perform(at, operation),
            (Fault::PutsInsideAreForgotten, O::Put { .. }) => {
                let nothing = O::Count { template: template("...") };
                match self.state.perform(at, &inside(label, nothing)) {
                    Answer::Count(_) => Answer::Done,
                    refused => refused,
                }
            }
            (Fault::OwnPutsAreNotSeen, O::TryRead { .. } | O::Count { .. }) => {
                match self.state.perform(at, &plainly) {
                    Answer::Tuple(_) | Answer::Nothing | Answer::Count(_) => {
                        self.state.perform(at, operation)
                    }
                    refused => refused,
                }
            }
            (Fault::ReadsLockNothing, O::TryRead { template, .. }) => {
                match self
                    .state
                    .perform(at, &inside(label, O::Count { template: template.clone() }))
                {
                    Answer::Count(_) => self.state.perform(at, operation),
                    refused => refused,
                }
            }
            (Fault::CountsLock, O::Count { template }) => {
                let all = O::ReadAll { template: template.clone(), limit: None };
                match self.state.perform(at, &inside(label, all)) {
                    Answer::Tuples(tuples) => Answer::Count(tuples.len() as u64),
                    refused => refused,
                }
            }
            (Fault::OwnReadsAreNotTaken, O::TryTake { .. }) => {
                match self.state.perform(at, &inside(label, O::Count { template: template("...") }))
                {
                    Answer::Count(_) => match self.state.perform(at, operation) {
                        Answer::Tuple(tuple) => {
                            self.state.perform(at, &O::Put { tuple });
                            self.state.perform(at, &plainly)
                        }
                        nothing => nothing,
                    },
                    refused => refused,
                }
            }
            (Fault::EndedTransactionsGoOn, O::Put { .. }) => {
                self.state.perform(at, &plainly);
                Answer::Done
            }
            _ => return None,
        })
    }
}
