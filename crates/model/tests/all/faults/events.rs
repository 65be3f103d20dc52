//! What can be wrong with subscriptions.

use tupelo_model::conformance::Subject;
use tupelo_model::{Answer, Event, EventKind, Operation as O, Place};

use super::{Broken, Fault};

impl Broken {
    /// Remembers who listens, for the faults that need to know.
    pub(super) fn note_subscription(&mut self, operation: &O) {
        match operation {
            O::Subscribe { label, .. } => {
                self.heard.insert(label.clone(), Vec::new());
            }
            O::Unsubscribe { label } => {
                self.heard.remove(label);
            }
            _ => {}
        }
    }

    /// The operation as the fault has it, or `None` if the fault is not in its arguments.
    pub(super) fn distorted_if_told(&self, operation: O) -> Option<O> {
        match (self.fault, operation) {
            (Fault::AllKindsAreTold, O::Subscribe { label, template, buffer, .. }) => {
                let on = EventKind::ALL.to_vec();
                Some(O::Subscribe { label, template, on, buffer })
            }
            _ => None,
        }
    }

    /// The answer as the fault has it, or `None` if the fault is not in this operation.
    pub(super) fn faulty_if_told(&mut self, at: Place, operation: &O) -> Option<Answer> {
        Some(match (self.fault, operation) {
            (Fault::SubscriptionsBeginLate, O::Subscribe { label, .. }) => {
                self.late.insert(label.clone(), (at, operation.clone()));
                Answer::Done
            }
            (Fault::SubscriptionsBeginLate, O::Unsubscribe { label }) => {
                self.late.remove(label)?;
                Answer::Done
            }
            (Fault::CommitsAreNotHeard, O::Commit { .. }) => {
                for (label, heard) in &mut self.heard {
                    heard.extend(events(&mut self.state, label));
                }
                let answer = self.state.perform(at, operation);
                for label in self.heard.keys() {
                    events(&mut self.state, label);
                }
                answer
            }
            (_, O::Events { label }) => {
                if let Some((at, subscribe)) = self.late.remove(label) {
                    self.state.perform(at, &subscribe);
                }
                let mut told = self.heard.get_mut(label).map(std::mem::take).unwrap_or_default();
                told.extend(events(&mut self.state, label));
                Answer::Events(self.faulty_events(told))
            }
            _ => return None,
        })
    }

    fn faulty_events(&self, mut told: Vec<Event>) -> Vec<Event> {
        match self.fault {
            Fault::EventsAreToldTwice => told.extend(told.last().cloned()),
            Fault::EventsAreLost => drop(told.pop()),
            Fault::EventsAreReversed => {
                let numbers: Vec<_> = told.iter().map(|one| (one.sequence, one.missed)).collect();
                told.reverse();
                for (event, (sequence, missed)) in told.iter_mut().zip(numbers) {
                    (event.sequence, event.missed) = (sequence, missed);
                }
            }
            Fault::EventNumbersBeginWithZero => {
                for event in &mut told {
                    event.sequence -= 1;
                }
            }
            _ => {}
        }
        told
    }
}

/// What waits for a subscription.
fn events(state: &mut tupelo_model::State, label: &str) -> Vec<Event> {
    match state.perform(Place::Main, &O::Events { label: label.to_owned() }) {
        Answer::Events(events) => events,
        other => panic!("events are answered with {other}"),
    }
}
