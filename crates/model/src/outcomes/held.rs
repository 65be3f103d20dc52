//! The outcomes of operations on leases and claims, and of time.

use super::{Outcome, State, answer, timeout};
use crate::claims::{ClaimTerms, Fence, Grant};
use crate::operation::{Answer, Operation, Place};
use crate::order::shape;
use crate::{Refusal, Space, Template, Tuple};

/// The code of a call on a claim or a transaction that its holder has ended before.
pub(super) const MISUSE: &str = "TUP-019";

/// A claim as its holder has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Handle {
    at: Place,
    fence: Fence,
    /// The tuples that were put under the claim (K4).
    puts: Vec<Tuple>,
    /// Its holder has ended the claim, or was told that it is lost when it wanted to.
    is_settled: bool,
}

impl Handle {
    /// Whether it is the handle of this claim.
    pub(crate) fn is_of(&self, at: Place, fence: Fence) -> bool {
        (self.at, self.fence) == (at, fence)
    }
}

impl Handle {
    /// Where its tuple is.
    pub(super) fn place(&self) -> Place {
        self.at
    }

    /// The tuples that were put under the claim.
    pub(super) fn puts(&self) -> impl Iterator<Item = &Tuple> {
        self.puts.iter()
    }
}

impl State {
    /// Whether the claim of a handle goes on.
    pub(super) fn holds(&self, handle: &Handle) -> bool {
        !handle.is_settled && self.space(handle.at).is_held(handle.fence)
    }

    /// The outcome of an operation on a lease or a claim that leaves no choice.
    pub(super) fn outcome_of_held(&self, at: Place, operation: &Operation) -> Option<Outcome> {
        let mut after = self.clone();
        let space = after.space_mut(at);
        let answer = match operation {
            Operation::PutLeased { label, tuple, terms } => {
                let lease = space.put_leased(tuple.clone(), *terms);
                answer(lease, |ticket| {
                    after.leases.insert(label.clone(), (at, ticket));
                    Answer::Done
                })
            }
            Operation::PutAllLeased { tuples, terms } => {
                let put = space.put_all_leased(tuples.clone(), *terms);
                answer(put, |count| Answer::Count(count as u64))
            }
            Operation::Renew { label, lease_ms } => {
                let (at, ticket) = *after.leases.get(label)?;
                answer(after.space_mut(at).renew(ticket, *lease_ms), |()| Answer::Done)
            }
            Operation::CancelLease { label } => {
                let (at, ticket) = *after.leases.get(label)?;
                answer(after.space_mut(at).cancel_lease(ticket), |()| Answer::Done)
            }
            Operation::LeaseEnds { label } => {
                let (at, ticket) = *after.leases.get(label)?;
                answer(after.space_mut(at).lease_ends(ticket), Answer::Flag)
            }
            Operation::FinishClaim { call, label, terms } => {
                let (at, ticket) = after.calls.remove(call)?;
                let space = after.space_mut(at);
                let grant = space.served(ticket).then(|| space.finish_claim(ticket, *terms))?;
                after.granted(at, label, grant)
            }
            Operation::Newer { label, than } => {
                Answer::Flag(after.claims.get(label)?.fence > after.claims.get(than)?.fence)
            }
            Operation::Dead { template } => Answer::Dead(space.dead(template)),
            _ => after.on_claim(operation)?,
        };
        Some((answer, after))
    }

    /// An operation on a claim by its holder, or by a caller that believes to hold it.
    fn on_claim(&mut self, operation: &Operation) -> Option<Answer> {
        let (Operation::PutUnder { label, .. }
        | Operation::Done { label }
        | Operation::Abort { label, .. }
        | Operation::Extend { label, .. }) = operation
        else {
            return None;
        };
        let mut handle = self.claims.remove(label)?;
        let answer = self.on_handle(&mut handle, operation);
        self.claims.insert(label.clone(), handle);
        Some(answer)
    }

    fn on_handle(&mut self, handle: &mut Handle, operation: &Operation) -> Answer {
        if handle.is_settled {
            return Answer::Refused(MISUSE.to_owned());
        }
        let space = self.space_mut(handle.at);
        let done = match operation {
            Operation::PutUnder { tuple, .. } => {
                handle.puts.push(tuple.clone());
                Ok(())
            }
            Operation::Extend { ttl_ms, .. } => space.extend(handle.fence, *ttl_ms),
            ending => {
                let ended = match ending {
                    Operation::Abort { reason, .. } => space.abort(handle.fence, reason),
                    _ => space.done(handle.fence, handle.puts.clone()),
                };
                handle.is_settled = matches!(ended, Ok(()) | Err(Refusal::ClaimLost));
                ended
            }
        };
        answer(done, |()| Answer::Done)
    }

    /// One outcome per match that the claim may get; else its time is over at once.
    pub(super) fn claims(
        &self,
        at: Place,
        label: &str,
        places: Vec<u64>,
        terms: ClaimTerms,
    ) -> Vec<Outcome> {
        if places.is_empty() {
            return vec![(timeout(), self.clone())];
        }
        let outcome = |place| {
            let mut after = self.clone();
            let grant = after.space_mut(at).claim_at(place, terms);
            let answer = after.granted(at, label, grant);
            (answer, after)
        };
        places.into_iter().map(outcome).collect()
    }

    /// A caller has a claim now.
    fn granted(&mut self, at: Place, label: &str, (fence, tuple, attempt): Grant) -> Answer {
        let handle = Handle { at, fence, puts: Vec::new(), is_settled: false };
        self.claims.insert(label.to_owned(), handle);
        Answer::Claimed { tuple, attempt }
    }

    /// One outcome per way in which the dead tuples of several shapes may reach blocked calls.
    pub(super) fn requeues(&self, at: Place, template: &Template) -> Vec<Outcome> {
        let count = Answer::Count(self.space(at).dead_matches(template).count() as u64);
        let outcome = |space: Space| {
            let mut after = self.clone();
            *after.space_mut(at) = space;
            (count.clone(), after)
        };
        self.space(at).after_requeue(template).into_iter().map(outcome).collect()
    }

    /// One outcome per order of the due events of several shapes.
    pub(super) fn passes(&self, ms: u64) -> Vec<Outcome> {
        let later = |space: &Space| space.after_pass(space.now_ms + ms);
        let others = later(&self.other);
        let with = |main: Space| {
            others.iter().map(move |other| {
                let (main, other) = (main.clone(), other.clone());
                (Answer::Done, Self { main, other, ..self.clone() })
            })
        };
        later(&self.main).into_iter().flat_map(with).collect()
    }
}

impl Space {
    /// The possible states of this space when everything that is due until `end_ms` has happened.
    fn after_pass(&self, end_ms: u64) -> Vec<Self> {
        let mut due = self.first_due(end_ms);
        if due.is_empty() {
            let mut space = self.clone();
            space.arrived_at(end_ms);
            return vec![space];
        }
        if !self.somebody_waits() {
            due.truncate(1);
        }
        let first_with = |due| {
            let mut space = self.clone();
            space.happen(due);
            space.after_pass(end_ms)
        };
        due.into_iter().flat_map(first_with).collect()
    }

    /// The spaces that this one may be when the dead tuples that match are back.
    fn after_requeue(&self, template: &Template) -> Vec<Self> {
        let mut first: Vec<(u64, &Tuple)> = Vec::new();
        for stored in self.dead_matches(template) {
            if first.iter().all(|(_, other)| shape(other) != shape(&stored.tuple)) {
                first.push((stored.place, &stored.tuple));
            }
        }
        if first.is_empty() {
            return vec![self.clone()];
        }
        if !self.somebody_waits() {
            first.truncate(1);
        }
        let first_with = |(place, _)| {
            let mut space = self.clone();
            space.revive(place);
            space.after_requeue(template)
        };
        first.into_iter().flat_map(first_with).collect()
    }

    fn somebody_waits(&self) -> bool {
        self.waits.iter().any(|wait| wait.served.is_none())
    }
}
