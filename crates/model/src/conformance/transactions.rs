//! The steps on transactions, and inside them.

use super::step::{Expectation, Step};
use crate::operation::{Answer, Operation};

impl Step<'_> {
    /// A step that begins or ends a transaction; `None` if it is another one.
    pub(super) fn on_transaction(&self) -> Option<Vec<Expectation>> {
        let operation = if self.has("begin") {
            Operation::Begin { label: self.label("begin"), ttl_ms: self.milliseconds("ttl") }
        } else if self.has("commit") {
            Operation::Commit { label: self.label("commit") }
        } else if self.has("roll_back") {
            Operation::RollBack { label: self.label("roll_back") }
        } else {
            return None;
        };
        let expected = self.error().map_or(Answer::Done, Answer::Refused);
        Some(vec![(operation, vec![expected])])
    }

    /// The outcome of a step that says that it is inside a transaction.
    pub(super) fn inside(&self, expectations: Vec<Expectation>) -> Vec<Expectation> {
        if !self.has("in") {
            return expectations;
        }
        let label = self.label("in");
        let inside = |(operation, expected): Expectation| {
            let operation =
                Operation::Inside { label: label.clone(), operation: Box::new(operation) };
            (operation, expected)
        };
        expectations.into_iter().map(inside).collect()
    }
}
