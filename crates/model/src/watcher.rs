//! Watching an engine: is this answer one that the rules allow?
//!
//! An answer can leave open what happened (which of two equal tuples was taken?), so the watcher keeps
//! every state that agrees with all the answers so far. The engine is wrong when none is left.

use std::fmt;

use crate::operation::{Answer, Operation, Place};
use crate::order::shape;
use crate::outcomes::State;
use crate::space::Stored;
use crate::waiting::{Ticket, Want};
use crate::{Space, Tuple};

/// All the states that an engine may be in after the answers that it gave.
#[derive(Clone, Debug)]
pub struct Watcher {
    states: Vec<State>,
}

/// An answer that no rule allows.
#[derive(Clone, Debug)]
pub struct Disagreement(Box<Details>);

#[derive(Clone, Debug)]
struct Details {
    operation: Operation,
    answer: Answer,
    allowed: Vec<Answer>,
}

impl Watcher {
    /// Begins with the one state that is known.
    pub fn new(state: State) -> Self {
        Self { states: vec![state] }
    }

    /// The engine answered an operation. Keeps the states that agree.
    ///
    /// ```
    /// use tupelo_model::{Answer, Operation, Order, Place, State, Watcher, template, tuple};
    ///
    /// let mut watcher = Watcher::new(State::default());
    /// let put = Operation::Put { tuple: tuple("job, 7") };
    /// let take = Operation::TryTake { template: template("job, _"), order: Order::Fifo };
    /// watcher.observe(Place::Main, &put, &Answer::Done)?;
    /// assert!(watcher.clone().observe(Place::Main, &take, &Answer::Tuple(tuple("job, 7"))).is_ok());
    /// assert!(watcher.observe(Place::Main, &take, &Answer::Nothing).is_err());
    /// # Ok::<(), tupelo_model::Disagreement>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A [`Disagreement`] if the rules do not allow the answer; it says what they allow.
    pub fn observe(
        &mut self,
        at: Place,
        operation: &Operation,
        answer: &Answer,
    ) -> Result<(), Disagreement> {
        let mut allowed = Vec::new();
        let mut agreeing: Vec<State> = Vec::new();
        for (possible, after) in self.states.iter().flat_map(|state| state.outcomes(at, operation))
        {
            if possible.agrees_with(answer) && !agreeing.iter().any(|other| other.resembles(&after))
            {
                agreeing.push(after);
            }
            allowed.push(possible);
        }
        if agreeing.is_empty() {
            let (operation, answer) = (operation.clone(), answer.clone());
            return Err(Disagreement(Box::new(Details { operation, answer, allowed })));
        }
        self.states = agreeing;
        Ok(())
    }

    /// The states that agree with all answers so far; at least one.
    pub fn states(&self) -> &[State] {
        &self.states
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { operation, answer, allowed } = &*self.0;
        let mut allowed: Vec<String> = allowed.iter().map(Answer::to_string).collect();
        allowed.dedup();
        writeln!(out, "{operation}\n  was answered {answer}\n  the rules allow:")?;
        allowed.iter().try_for_each(|answer| writeln!(out, "    {answer}"))
    }
}

impl std::error::Error for Disagreement {}

impl State {
    /// Whether no operation can tell the two states apart, if both come from the same operations.
    pub(crate) fn resembles(&self, other: &Self) -> bool {
        self.main.contents() == other.main.contents()
            && self.other.contents() == other.other.contents()
    }
}

/// What is in a space, as far as operations can tell.
#[derive(PartialEq)]
struct Contents<'a> {
    /// The tuples by shape and age, and in whose hands they are. Places are left out: they are compared
    /// only within a shape, where the order says the same.
    tuples: Vec<(Option<Ticket>, &'a Tuple)>,
    /// The copies in the hands of reads that have not returned yet.
    copies: Vec<(Ticket, &'a Tuple)>,
}

impl Space {
    fn contents(&self) -> Contents<'_> {
        let free = self.tuples.iter().map(|stored| (None, stored));
        let held = self.served_by(Want::Take).map(|(ticket, stored)| (Some(ticket), stored));
        let mut tuples: Vec<(Option<Ticket>, &Stored)> = free.chain(held).collect();
        tuples.sort_by_key(|(_, stored)| (shape(&stored.tuple), stored.place));
        Contents {
            tuples: tuples.into_iter().map(|(holder, stored)| (holder, &stored.tuple)).collect(),
            copies: self
                .served_by(Want::Read)
                .map(|(ticket, stored)| (ticket, &stored.tuple))
                .collect(),
        }
    }
}
