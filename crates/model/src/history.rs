//! Histories of several callers at once: does an order of the calls explain all answers (O1)?
//!
//! Each call takes effect at one moment between its beginning and its end. The search tries every call that may have
//! been next: none of the others had ended before it began. It follows the model, and goes back when the answers do not
//! fit (Wing and Gong, 1993). It remembers each attempt by the set of calls that are done and their resulting state
//! (Lowe, 2017). Otherwise it would try the same in every order.
//!
//! The events of a subscription until the end tell much about the order, so the search compares them step by step: the
//! events of a call must come next. That makes the search short where it would be long, since states differ by their
//! events. It demands more than the answer at the end does. The answer leaves open in which order the events of several
//! shapes follow each other, as one call may concern several in any order (N1). Here only the order within one call is
//! open.

use std::collections::HashMap;

use crate::Event;
use crate::operation::{Answer, Operation, Place, events_agree};
use crate::outcomes::State;

/// A call with its answer, and the moments of both on a clock that all callers share.
#[derive(Clone, Debug)]
pub struct Call {
    /// The space that was asked.
    pub at: Place,
    /// The operation.
    pub operation: Operation,
    /// The answer.
    pub answer: Answer,
    /// A moment before the call.
    pub invoked: u64,
    /// A moment after its return.
    pub returned: u64,
}

/// The most calls of a history: a set of calls is the bits of one word.
pub const CALLS_MAX: usize = 64;

/// An order of the calls, by their indices, that explains all answers from `start` on; `None` if the
/// history is not linearizable (O1).
///
/// ```
/// use tupelo_model::{Answer, Call, Operation, Order, Place, State, linearization, template, tuple};
///
/// let call = |operation, answer, invoked, returned| {
///     Call { at: Place::Main, operation, answer, invoked, returned }
/// };
/// let put = Operation::Put { tuple: tuple("a") };
/// let take = Operation::TryTake { template: template("a"), order: Order::Fifo };
/// let found = Answer::Tuple(tuple("a"));
///
/// // They overlap: the take came second.
/// let calls = [call(take.clone(), found.clone(), 1, 4), call(put.clone(), Answer::Done, 2, 3)];
/// assert_eq!(linearization(&calls, &State::default()), Some(vec![1, 0]));
///
/// // The take had returned before the put began: nothing explains its answer.
/// let calls = [call(take, found, 1, 2), call(put, Answer::Done, 3, 4)];
/// assert_eq!(linearization(&calls, &State::default()), None);
/// ```
///
/// # Panics
///
/// If there are more than [`CALLS_MAX`] calls.
///
/// # Subscriptions
///
/// A subscription is asked by one call at most, which returns all its events until then.
pub fn linearization(calls: &[Call], start: &State) -> Option<Vec<usize>> {
    assert!(calls.len() <= CALLS_MAX, "a history is searched up to {CALLS_MAX} calls");
    let received = calls.iter().enumerate();
    let received = received.filter_map(|(index, call)| Some((index, call.received()?))).collect();
    let mut search = Search { calls, received, tried: HashMap::new(), order: Vec::new() };
    search.explains(0, start).then_some(search.order)
}

impl Call {
    /// All events of a subscription, with its label, if the call has asked for them: no other call does.
    fn received(&self) -> Option<(&str, &[Event])> {
        match (&self.operation, &self.answer) {
            (Operation::Events { label }, Answer::Events(events)) => Some((label, events)),
            _ => None,
        }
    }
}

struct Search<'a> {
    calls: &'a [Call],
    /// What subscriptions have received, with the index of the call that says so.
    received: Vec<(usize, (&'a str, &'a [Event]))>,
    /// The states that each set of calls has led to, and that lead nowhere.
    tried: HashMap<u64, Vec<State>>,
    order: Vec<usize>,
}

impl Search<'_> {
    /// Whether the calls that are not `done` can be put in an order that explains their answers.
    fn explains(&mut self, done: u64, state: &State) -> bool {
        if done.count_ones() as usize == self.calls.len() {
            return true;
        }
        if self.tried.entry(done).or_default().iter().any(|tried| tried.resembles(state)) {
            return false;
        }
        for index in self.possibly_next(done) {
            let call = &self.calls[index];
            for (answer, after) in state.outcomes(call.at, &call.operation) {
                if !answer.agrees_with(&call.answer) || !self.was_received(done, (state, &after)) {
                    continue;
                }
                self.order.push(index);
                if self.explains(done | 1 << index, &after) {
                    return true;
                }
                self.order.pop();
            }
        }
        self.tried.entry(done).or_default().push(state.clone());
        false
    }

    /// Whether the events between two states come next for each subscription that is still to be asked. Not known of a
    /// subscription that has dropped events.
    fn was_received(&self, done: u64, (before, after): (&State, &State)) -> bool {
        let to_come = self.received.iter().filter(|(index, _)| done >> index & 1 == 0);
        to_come.map(|(_, received)| *received).all(|(label, received)| {
            let published = before.events_so_far(label).map_or(0, |events| events.len());
            let events = after.events_so_far(label).unwrap_or_default();
            let Some(news) = events.get(published..) else { return true };
            received
                .get(published..events.len())
                .is_some_and(|received| events_agree(news, received))
        })
    }

    /// The calls that are not done and began before all others that are not done had returned.
    fn possibly_next(&self, done: u64) -> Vec<usize> {
        let waiting = || (0..self.calls.len()).filter(move |index| done >> index & 1 == 0);
        let first_return = waiting().map(|index| self.calls[index].returned).min();
        waiting().filter(|index| Some(self.calls[*index].invoked) <= first_return).collect()
    }
}
