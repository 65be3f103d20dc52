//! Watching an engine: do the rules allow this answer?
//!
//! An answer can leave open what happened (which of two equal tuples was taken?). So the watcher keeps every state that
//! agrees with all the answers so far. The engine is wrong when none is left.

use std::fmt;

use crate::events::Subscription;
use crate::leases::Delayed;
use crate::operation::{Answer, Operation, Place};
use crate::order::shape;
use crate::outcomes::State;
use crate::scan::OpenScan;
use crate::space::Stored;
use crate::transactions::{Part, TransactionTicket};
use crate::waiting::{Ticket, Want};
use crate::{LeaseTicket, Tuple};

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
    /// Begins with the only known state.
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
    /// A [`Disagreement`] if the rules do not allow the answer; it lists the allowed answers.
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
        [Place::Main, Place::Other].into_iter().all(|at| self.contents(at) == other.contents(at))
    }

    fn contents<'a>(&'a self, at: Place) -> Contents<'a> {
        let space = self.space(at);
        let free = space.tuples.iter().map(|stored| (Whereabouts::Free, stored));
        let dead = space.dead.iter().map(|stored| (Whereabouts::Dead, stored));
        let handed = space.served_by(Want::Take);
        let handed = handed.map(|(ticket, stored)| (Whereabouts::Handed(ticket), stored));
        let claimed = space.claims.iter().map(|claimed| {
            let claim = self.claims.iter().find(|(_, handle)| handle.is_of(at, claimed.fence));
            let label = claim.map(|(label, _)| label.as_str());
            (Whereabouts::Claimed(label, claimed.ends_ms, claimed.attempts_max), &claimed.stored)
        });
        let taken = space.parts.iter().flat_map(|part| {
            part.taken.iter().map(|stored| (Whereabouts::Taken(part.ticket), stored))
        });
        let mut tuples: Vec<_> =
            free.chain(dead).chain(handed).chain(claimed).chain(taken).collect();
        tuples.sort_by_key(|(_, stored)| (shape(&stored.tuple), stored.place));
        let seen = |(whereabouts, stored): (Whereabouts<'a>, &'a Stored)| Seen {
            whereabouts,
            tuple: &stored.tuple,
            lease: stored
                .lease
                .as_ref()
                .map(|lease| (self.label_of(at, lease.ticket), lease.ends_ms)),
            failures: &stored.failures,
            readers: &stored.readers,
            scanned: space.scans.iter().map(|scan| scan.scanned.knows(stored.place)).collect(),
        };
        let mut delayed: Vec<&Delayed> = space.delayed.iter().collect();
        delayed.sort_by_key(|delayed| (shape(&delayed.tuple), delayed.visible_ms, delayed.ticket));
        let coming = |delayed: &'a Delayed| Coming {
            tuple: &delayed.tuple,
            lease: (self.label_of(at, delayed.ticket), delayed.lease_ms),
            visible_ms: delayed.visible_ms,
        };
        let copies = space.served_by(Want::Read);
        let puts = |part: &'a Part| {
            let mut puts: Vec<&Tuple> = part.puts.iter().map(|stored| &stored.tuple).collect();
            puts.sort_by_key(|tuple| shape(tuple));
            (part.ticket, puts)
        };
        let gone = |scan: &'a OpenScan| {
            let meanwhile = scan.scanned.meanwhile.iter().map(|stored| &stored.tuple);
            let mut gone: Vec<&Tuple> = meanwhile.collect();
            gone.sort_by_cached_key(ToString::to_string);
            gone
        };
        Contents {
            tuples: tuples.into_iter().map(seen).collect(),
            delayed: delayed.into_iter().map(coming).collect(),
            copies: copies.map(|(ticket, stored)| (ticket, &stored.tuple)).collect(),
            puts: space.parts.iter().map(puts).collect(),
            gone: space.scans.iter().map(gone).collect(),
            subscriptions: &space.subscriptions,
        }
    }

    /// The holder's label of a lease, if it has a holder.
    fn label_of(&self, at: Place, ticket: LeaseTicket) -> Option<&str> {
        let lease = self.leases.iter().find(|(_, lease)| **lease == (at, ticket));
        lease.map(|(label, _)| label.as_str())
    }
}

/// The contents of a space, as far as operations can tell.
#[derive(PartialEq)]
struct Contents<'a> {
    /// The tuples by shape and age. Places are left out: they are compared only within a shape, where the order says
    /// the same. So are fences: labels name the holders.
    tuples: Vec<Seen<'a>>,
    /// The tuples that are not visible yet, by shape and in the order of their moments.
    delayed: Vec<Coming<'a>>,
    /// The copies in the hands of reads that have not returned yet.
    copies: Vec<(Ticket, &'a Tuple)>,
    /// What open transactions have put, by shape and age.
    puts: Vec<(TransactionTicket, Vec<&'a Tuple>)>,
    /// Per scan, the tuples that came or went meanwhile.
    gone: Vec<Vec<&'a Tuple>>,
    /// The subscriptions, and their events that have not been picked up yet.
    subscriptions: &'a [Subscription],
}

#[derive(PartialEq)]
struct Seen<'a> {
    whereabouts: Whereabouts<'a>,
    tuple: &'a Tuple,
    lease: Option<LabelledLease<'a>>,
    failures: &'a [Option<String>],
    readers: &'a [TransactionTicket],
    /// Per scan, its state for the tuple.
    scanned: Vec<(bool, bool)>,
}

/// What its holder calls a lease, and when it ends or how long it will be.
type LabelledLease<'a> = (Option<&'a str>, Option<u64>);

/// Where a tuple is.
#[derive(PartialEq)]
enum Whereabouts<'a> {
    Free,
    Dead,
    Handed(Ticket),
    /// The claim's label, its end, and the most attempts.
    Claimed(Option<&'a str>, u64, Option<usize>),
    Taken(TransactionTicket),
}

#[derive(PartialEq)]
struct Coming<'a> {
    tuple: &'a Tuple,
    lease: LabelledLease<'a>,
    visible_ms: u64,
}
