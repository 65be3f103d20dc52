//! The outcomes of operations inside transactions, and of their ends.

use super::held::MISUSE;
use super::{Outcome, State, answer, timeout};
use crate::operation::{Answer, Operation, Place};
use crate::order::shape;
use crate::transactions::{TransactionTicket, View};
use crate::waiting::Want;
use crate::{Refusal, Space, Tuple};

/// A transaction as its caller has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Transaction {
    pub(crate) ticket: TransactionTicket,
    ends_ms: u64,
    /// It was committed or rolled back. An ended transaction says so until then.
    is_settled: bool,
}

impl State {
    pub(super) fn begins(&self, label: &str, ttl_ms: u64) -> Outcome {
        let mut after = self.clone();
        after.begun += 1;
        let ticket = TransactionTicket(after.begun);
        let ends_ms = after.main.now_ms + ttl_ms;
        let transaction = Transaction { ticket, ends_ms, is_settled: false };
        after.transactions.insert(label.to_owned(), transaction);
        after.main.begin(ticket, ttl_ms);
        after.other.begin(ticket, ttl_ms);
        (Answer::Done, after)
    }

    /// The outcomes of an operation inside a transaction, if the operation is possible there.
    pub(super) fn inside(&self, at: Place, label: &str, operation: &Operation) -> Vec<Outcome> {
        let Some(ticket) = self.transactions.get(label).map(|transaction| transaction.ticket)
        else {
            return Vec::new();
        };
        if let Some(refused) = self.unless_open(label) {
            return vec![refused];
        }
        let view = |want| View::inside(ticket, want);
        let take = |space: &mut Space, place| Answer::Tuple(space.take_inside(ticket, place));
        let read = |space: &mut Space, place| Answer::Tuple(space.read_inside(ticket, place));
        let (nothing, all) = (Answer::Nothing, usize::MAX);
        match operation {
            Operation::TryTake { template, order } => {
                let choices = self.choices(at, template, *order, view(Want::Take));
                self.per_choice(at, choices, nothing, take)
            }
            Operation::TryRead { template, order } => {
                let choices = self.choices(at, template, *order, view(Want::Read));
                self.per_choice(at, choices, nothing, read)
            }
            Operation::TakeNoWait { template, order } => {
                let choices = self.choices(at, template, *order, view(Want::Take));
                self.per_choice(at, choices, timeout(), take)
            }
            Operation::ReadNoWait { template, order } => {
                let choices = self.choices(at, template, *order, view(Want::Read));
                self.per_choice(at, choices, timeout(), read)
            }
            Operation::TakeAll { template, limit } => {
                let selection = (limit.unwrap_or(all), view(Want::Take));
                self.per_selection(at, template, selection, take)
            }
            Operation::ReadAll { template, limit } => {
                let selection = (limit.unwrap_or(all), view(Want::Read));
                self.per_selection(at, template, selection, read)
            }
            Operation::TryTakeMany { template, at_least, at_most } => {
                let view = view(Want::Take);
                if self.space(at).seen(template, view).count() < *at_least {
                    return vec![(nothing, self.clone())];
                }
                self.per_selection(at, template, (*at_most, view), take)
            }
            _ => self.only_outcome_inside(at, ticket, operation).into_iter().collect(),
        }
    }

    /// The outcome of an operation inside an open transaction that leaves no choice.
    fn only_outcome_inside(
        &self,
        at: Place,
        ticket: TransactionTicket,
        operation: &Operation,
    ) -> Option<Outcome> {
        let mut after = self.clone();
        let space = after.space_mut(at);
        let answer = match operation {
            Operation::Put { tuple } => {
                answer(space.put_inside(ticket, tuple.clone()), |()| Answer::Done)
            }
            Operation::PutIfAbsent { tuple, unless, .. } => {
                answer(space.put_if_absent_inside(ticket, tuple.clone(), unless), Answer::Flag)
            }
            Operation::Count { template } => {
                let view = View::inside(ticket, Want::Read);
                Answer::Count(space.seen(template, view).count() as u64)
            }
            Operation::Finish { label } => {
                let (at, call) = after.calls.remove(label)?;
                let space = after.space_mut(at);
                let stored = space.served(call).then(|| space.picked_up(call))?;
                Answer::Tuple(space.enlist(ticket, stored))
            }
            _ => return None,
        };
        Some((answer, after))
    }

    /// One outcome per way in which the tuples of several shapes, in two spaces, may reach blocked calls.
    pub(super) fn commits(&self, label: &str) -> Vec<Outcome> {
        let Some(Transaction { ticket, .. }) = self.transactions.get(label).copied() else {
            return Vec::new();
        };
        if let Some(refused) = self.unless_open(label) {
            return vec![refused];
        }
        if [&self.main, &self.other].into_iter().any(|space| space.has_what_was_absent(ticket)) {
            let undone = self.rolls_back(label).into_iter();
            return undone
                .map(|(_, after)| (refused(&Refusal::TransactionAborted), after))
                .collect();
        }
        let (mains, others) = (self.main.with_room_for(ticket), self.other.with_room_for(ticket));
        let mut first = [mains[0].clone(), others[0].clone()];
        if let Err(refusal) = first.iter_mut().try_for_each(|space| space.admit_commit(ticket)) {
            return vec![(refused(&refusal), self.clone())];
        }
        let committed = |space: &Space| {
            let mut space = space.clone();
            let (puts, locked) = space.consume(ticket);
            let mut spaces = space.after_release(ticket, locked);
            for space in &mut spaces {
                for tuple in &puts {
                    space.add(tuple.clone());
                }
            }
            spaces
        };
        let with_room = mains.iter().flat_map(|main| {
            let with =
                |other: &Space| Self { main: main.clone(), other: other.clone(), ..self.clone() };
            others.iter().map(with)
        });
        with_room.flat_map(|state| state.settled(label, committed)).collect()
    }

    /// As [`State::commits`]. A rollback does not check whether there is still something to undo.
    pub(super) fn rolls_back(&self, label: &str) -> Vec<Outcome> {
        let Some(transaction) = self.transactions.get(label).copied() else {
            return Vec::new();
        };
        if transaction.is_settled {
            return vec![(Answer::Refused(MISUSE.to_owned()), self.clone())];
        }
        let ticket = transaction.ticket;
        self.clone().settled(label, |space| {
            let mut spaces = space.after_release(ticket, space.places_of(ticket));
            for space in &mut spaces {
                space.parts.retain(|part| part.ticket != ticket);
            }
            spaces
        })
    }

    /// The states in which a transaction has ended, and its spaces are among the ones in `ended`.
    fn settled(mut self, label: &str, ended: impl Fn(&Space) -> Vec<Space>) -> Vec<Outcome> {
        self.settle(label);
        let others = ended(&self.other);
        let with = |main: Space| {
            let state = &self;
            others.iter().map(move |other| {
                let (main, other) = (main.clone(), other.clone());
                (Answer::Done, Self { main, other, ..state.clone() })
            })
        };
        ended(&self.main).into_iter().flat_map(with).collect()
    }

    /// The outcome of an operation inside a transaction that is not open any more.
    fn unless_open(&self, label: &str) -> Option<Outcome> {
        let transaction = self.transactions[label];
        let after = self.clone();
        if transaction.is_settled {
            return Some((Answer::Refused(MISUSE.to_owned()), after));
        }
        let is_over = transaction.ends_ms <= self.main.now_ms;
        is_over.then(|| (refused(&Refusal::TransactionAborted), after))
    }

    fn settle(&mut self, label: &str) {
        if let Some(transaction) = self.transactions.get_mut(label) {
            transaction.is_settled = true;
        }
    }
}

fn refused(refusal: &Refusal) -> Answer {
    Answer::Refused(refusal.code().to_owned())
}

impl Space {
    /// The possible states of this space when a transaction has let go of its tuples at these places. The oldest of
    /// each shape goes first: between shapes there is no order.
    fn after_release(&self, ticket: TransactionTicket, mut places: Vec<u64>) -> Vec<Self> {
        let mut space = self.clone();
        let is_awaited = |space: &Self, place: u64| space.awaits(space.tuple_of(ticket, place));
        while let Some(index) = places.iter().position(|place| !is_awaited(&space, *place)) {
            space.release(ticket, places.remove(index));
        }
        let mut first: Vec<(u64, &Tuple)> = Vec::new();
        for place in &places {
            let tuple = space.tuple_of(ticket, *place);
            if first.iter().all(|(_, other)| shape(other) != shape(tuple)) {
                first.push((*place, tuple));
            }
        }
        if first.is_empty() {
            return vec![space];
        }
        let first_with = |(place, _): (u64, &Tuple)| {
            let (mut space, mut places) = (space.clone(), places.clone());
            places.retain(|other| *other != place);
            space.release(ticket, place);
            space.after_release(ticket, places)
        };
        first.into_iter().flat_map(first_with).collect()
    }
}
