//! Histories of several callers at once: is there an order of the calls that explains all answers (O1)?
//!
//! Each call takes effect at one moment between its beginning and its end. The search tries every call
//! that may have been next (none of the others had ended before it began), follows the model, and goes
//! back when the answers do not fit (Wing and Gong, 1993). What was tried is remembered by the set of
//! calls that are done and the state they led to (Lowe, 2017), or it would be tried again in every order.

use std::collections::HashMap;

use crate::operation::{Answer, Operation, Place};
use crate::outcomes::State;

/// A call with its answer, and the moments of both on a clock that all callers share.
#[derive(Clone, Debug)]
pub struct Call {
    /// The space that was asked.
    pub at: Place,
    /// What was asked.
    pub operation: Operation,
    /// What was answered.
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
pub fn linearization(calls: &[Call], start: &State) -> Option<Vec<usize>> {
    assert!(calls.len() <= CALLS_MAX, "a history is searched up to {CALLS_MAX} calls");
    let mut search = Search { calls, tried: HashMap::new(), order: Vec::new() };
    search.explains(0, start).then_some(search.order)
}

struct Search<'a> {
    calls: &'a [Call],
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
                if !answer.agrees_with(&call.answer) {
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

    /// The calls that are not done and began before all others that are not done had returned.
    fn possibly_next(&self, done: u64) -> Vec<usize> {
        let waiting = || (0..self.calls.len()).filter(move |index| done >> index & 1 == 0);
        let first_return = waiting().map(|index| self.calls[index].returned).min();
        waiting().filter(|index| Some(self.calls[*index].invoked) <= first_return).collect()
    }
}
