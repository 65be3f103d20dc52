//! Running an engine against the model: the same operations, every answer judged.

use std::collections::{BTreeMap, BTreeSet};

use crate::conformance::Subject;
use crate::operation::{Answer, Operation, PASS_MS, Place};
use crate::outcomes::State;
use crate::waiting::Want;
use crate::watcher::{Disagreement, Watcher};

/// The code of an operation for which there is no room.
const SPACE_FULL: &str = "TUP-005";

/// Does the operations on a subject, and at the end takes everything out of it. Each answer must be one that the rules
/// allow. Two adjustments make any list of operations valid:
///
/// - An operation on a missing call, scan, lease, claim or transaction goes to the next existing one, by their labels.
///   If there is none, or it makes no sense (the return of a call that was not served), it is left out.
/// - After an operation that makes something due soon, time passes until it has happened: before that, no observer can
///   tell whether it has.
///
/// `start` is the model's knowledge of the subject's spaces: their limits.
///
/// # Errors
///
/// The first answer that no rule allows.
pub fn run_against_model(
    subject: &mut impl Subject,
    start: State,
    operations: &[(Place, Operation)],
) -> Result<(), Disagreement> {
    let mut run = Run {
        subject,
        watcher: Watcher::new(start),
        calls: BTreeMap::new(),
        scans: BTreeSet::new(),
        subscriptions: BTreeSet::new(),
        leases: BTreeSet::new(),
        claims: BTreeMap::new(),
        transactions: BTreeSet::new(),
    };
    for (at, operation) in operations {
        if let Some(operation) = run.sensible(operation)? {
            run.observe(*at, &operation)?;
        }
    }
    run.end()
}

struct Run<'a, S> {
    subject: &'a mut S,
    watcher: Watcher,
    /// The calls that have not returned, their spaces, and their wants.
    calls: BTreeMap<String, (Place, Want)>,
    scans: BTreeSet<String>,
    subscriptions: BTreeSet<String>,
    leases: BTreeSet<String>,
    /// The claims that their holders have not ended, and where they are.
    claims: BTreeMap<String, Place>,
    /// The transactions that were neither committed nor rolled back.
    transactions: BTreeSet<String>,
}

impl<S: Subject> Run<'_, S> {
    /// The operation as it makes sense now, if it does.
    fn sensible(&mut self, operation: &Operation) -> Result<Option<Operation>, Disagreement> {
        use Operation as O;
        let mut operation = operation.clone();
        let makes_sense = match &mut operation {
            O::Start { label, .. } => !self.calls.contains_key(label),
            O::BeginScan { label, .. } => !self.scans.contains(label),
            O::Claim { label, .. } => !self.claims.contains_key(label),
            O::ContinueScan { label, .. } | O::EndScan { label } => next(self.scans.iter(), label),
            O::Cancel { label } | O::Served { label } => next(self.calls.keys(), label),
            O::Finish { label } => next(self.calls.keys(), label) && self.is_served(label)?,
            O::FinishClaim { call, label, .. } => {
                !self.claims.contains_key(label) && self.is_taken(call)?
            }
            O::Subscribe { label, .. } => !self.subscriptions.contains(label),
            O::Events { label } | O::Unsubscribe { label } => {
                next(self.subscriptions.iter(), label)
            }
            O::PutUnder { label, .. }
            | O::Done { label }
            | O::Abort { label, .. }
            | O::Extend { label, .. } => next(self.claims.keys(), label),
            O::Renew { label, .. } | O::CancelLease { label } | O::LeaseEnds { label } => {
                next(self.leases.iter(), label)
            }
            O::Begin { label, .. } => !self.transactions.contains(label),
            O::Commit { label } | O::RollBack { label } => next(self.transactions.iter(), label),
            O::Inside { label, operation } => {
                next(self.transactions.iter(), label)
                    && match &mut **operation {
                        O::Finish { label } => self.is_taken(label)?,
                        _ => true,
                    }
            }
            _ => true,
        };
        Ok(makes_sense.then_some(operation))
    }

    /// Makes `call` a call that takes, and returns whether it was served.
    fn is_taken(&mut self, call: &mut String) -> Result<bool, Disagreement> {
        let takes = self.calls.iter().filter(|(_, (_, want))| *want == Want::Take);
        Ok(next(takes.map(|(label, _)| label), call) && self.is_served(call)?)
    }

    fn is_served(&mut self, call: &str) -> Result<bool, Disagreement> {
        let served = Operation::Served { label: call.to_owned() };
        Ok(matches!(self.judge(Place::Main, &served)?, Answer::Flag(true)))
    }

    /// Does an operation, and everything that goes with it.
    fn observe(&mut self, at: Place, operation: &Operation) -> Result<(), Disagreement> {
        let answer = self.judge(at, operation)?;
        self.note(at, operation, &answer);
        self.compare_fences(operation, &answer)?;
        if operation.is_brief() && !matches!(answer, Answer::Refused(_)) {
            self.judge(at, &Operation::Pass { ms: PASS_MS })?;
        }
        Ok(())
    }

    fn judge(&mut self, at: Place, operation: &Operation) -> Result<Answer, Disagreement> {
        let answer = self.subject.perform(at, operation);
        self.watcher.observe(at, operation, &answer)?;
        Ok(answer)
    }

    /// Remembers the open objects.
    fn note(&mut self, at: Place, operation: &Operation, answer: &Answer) {
        use Operation as O;
        match (operation, answer) {
            (O::Start { label, want, .. }, Answer::Done) => {
                self.calls.insert(label.clone(), (at, *want));
            }
            (O::Finish { label } | O::Cancel { label }, _) => drop(self.calls.remove(label)),
            (O::BeginScan { label, .. }, _) => drop(self.scans.insert(label.clone())),
            (O::EndScan { label }, _) => drop(self.scans.remove(label)),
            (O::Subscribe { label, .. }, _) => drop(self.subscriptions.insert(label.clone())),
            (O::Unsubscribe { label }, _) => drop(self.subscriptions.remove(label)),
            (O::PutLeased { label, .. }, Answer::Done) => drop(self.leases.insert(label.clone())),
            (O::Claim { label, .. }, Answer::Claimed { .. }) => {
                self.claims.insert(label.clone(), at);
            }
            (O::FinishClaim { call, label, .. }, Answer::Claimed { .. }) => {
                if let Some((at, _)) = self.calls.remove(call) {
                    self.claims.insert(label.clone(), at);
                }
            }
            // For want of room, the claim goes on.
            (O::Done { .. }, Answer::Refused(code)) if code == SPACE_FULL => {}
            (O::Done { label } | O::Abort { label, .. }, _) => drop(self.claims.remove(label)),
            (O::Begin { label, .. }, Answer::Done) => drop(self.transactions.insert(label.clone())),
            (O::Inside { operation, .. }, Answer::Tuple(_)) => self.note(at, operation, answer),
            // As for a claim.
            (O::Commit { .. }, Answer::Refused(code)) if code == SPACE_FULL => {}
            (O::Commit { label } | O::RollBack { label }, _) => {
                self.transactions.remove(label);
            }
            _ => {}
        }
    }

    /// A new claim has a greater fence than every open one in its space (K1).
    fn compare_fences(
        &mut self,
        operation: &Operation,
        answer: &Answer,
    ) -> Result<(), Disagreement> {
        let (Operation::Claim { label, .. } | Operation::FinishClaim { label, .. }) = operation
        else {
            return Ok(());
        };
        let Answer::Claimed { .. } = answer else { return Ok(()) };
        let at = self.claims[label];
        let others = self.claims.iter().filter(|(other, place)| *other != label && **place == at);
        let others: Vec<String> = others.map(|(other, _)| other.clone()).collect();
        for than in others {
            self.judge(at, &Operation::Newer { label: label.clone(), than })?;
        }
        Ok(())
    }

    /// Everything that is under way ends, then every tuple is taken: the contents must agree.
    fn end(mut self) -> Result<(), Disagreement> {
        let scans = std::mem::take(&mut self.scans).into_iter();
        let calls = std::mem::take(&mut self.calls).into_keys();
        let claims = std::mem::take(&mut self.claims).into_keys();
        let leases = std::mem::take(&mut self.leases).into_iter();
        let transactions = std::mem::take(&mut self.transactions).into_iter();
        let subscriptions = std::mem::take(&mut self.subscriptions);
        let reason = || "the end".to_owned();
        let ends = scans
            .map(|label| Operation::EndScan { label })
            .chain(calls.map(|label| Operation::Cancel { label }))
            .chain(claims.map(|label| Operation::Abort { label, reason: reason() }))
            .chain(transactions.map(|label| Operation::RollBack { label }))
            .chain(leases.map(|label| Operation::LeaseEnds { label }))
            .chain(subscriptions.iter().cloned().map(|label| Operation::Events { label }))
            .chain(subscriptions.iter().cloned().map(|label| Operation::Unsubscribe { label }));
        for end in ends {
            self.judge(Place::Main, &end)?;
        }
        for at in [Place::Main, Place::Other] {
            let template = crate::template("...");
            self.judge(at, &Operation::Dead { template: template.clone() })?;
            self.judge(at, &Operation::Requeue { template: template.clone() })?;
            self.judge(at, &Operation::Count { template: template.clone() })?;
            self.judge(at, &Operation::TakeAll { template, limit: None })?;
        }
        Ok(())
    }
}

/// Makes `label` a known label; the known ones are sorted. Takes the label itself, or the next one, round about.
/// Returns whether there is one.
fn next<'l>(mut known: impl Iterator<Item = &'l String>, label: &mut String) -> bool {
    let Some(first) = known.next() else { return false };
    if first < label {
        let next = known.find(|other| *other >= label).unwrap_or(first);
        label.clone_from(next);
    } else {
        label.clone_from(first);
    }
    true
}
