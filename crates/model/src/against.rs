//! Running an engine against the model: the same operations, every answer judged.

use std::collections::{BTreeMap, BTreeSet};

use crate::conformance::Subject;
use crate::operation::{Answer, Operation, PASS_MS, Place};
use crate::outcomes::State;
use crate::waiting::Want;
use crate::watcher::{Disagreement, Watcher};

/// Does the operations on a subject, and at the end takes everything out of it: each answer must be one
/// that the rules allow. Operations that make no sense when their turn comes are left out, such as the
/// return of a call that was not served; so any list of operations is a fair one. After each that makes
/// something due soon, time passes until it has happened: before that, nobody can say whether it has.
///
/// `start` is what the model knows of the subject's spaces: their limits.
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
        labels: BTreeSet::new(),
        takes: BTreeMap::new(),
        leases: BTreeSet::new(),
        claims: BTreeMap::new(),
    };
    for (at, operation) in operations {
        run.sensible(*at, operation)?;
    }
    run.end()
}

struct Run<'a, S> {
    subject: &'a mut S,
    watcher: Watcher,
    /// The calls and scans under way: how their labels differ is said by [`scan_label`].
    labels: BTreeSet<String>,
    /// The calls that are takes, and where.
    takes: BTreeMap<String, Place>,
    leases: BTreeSet<String>,
    /// The claims that their holders have not ended, and where they are.
    claims: BTreeMap<String, Place>,
}

impl<S: Subject> Run<'_, S> {
    fn sensible(&mut self, at: Place, operation: &Operation) -> Result<(), Disagreement> {
        match operation {
            Operation::Start { label, want, .. } => {
                if self.labels.contains(label) {
                    return Ok(());
                }
                let answer = self.observe(at, operation)?;
                if matches!(answer, Answer::Done) {
                    self.labels.insert(label.clone());
                    self.takes.remove(label);
                    if *want == Want::Take {
                        self.takes.insert(label.clone(), at);
                    }
                }
            }
            Operation::BeginScan { label, template } => {
                let (label, template) = (scan_label(label), template.clone());
                if self.labels.insert(label.clone()) {
                    self.observe(at, &Operation::BeginScan { label, template })?;
                }
            }
            Operation::ContinueScan { label, at_most } => {
                let (label, at_most) = (scan_label(label), *at_most);
                if self.labels.contains(&label) {
                    self.observe(at, &Operation::ContinueScan { label, at_most })?;
                }
            }
            Operation::EndScan { label } => self.end_scan(&scan_label(label))?,
            Operation::Served { label } | Operation::Finish { label } => self.finish(label)?,
            Operation::Cancel { label } => self.cancel(label)?,
            _ => self.sensible_if_held(at, operation)?,
        }
        Ok(())
    }

    /// The same for leases and claims.
    fn sensible_if_held(&mut self, at: Place, operation: &Operation) -> Result<(), Disagreement> {
        let makes_sense = match operation {
            Operation::Renew { label, .. }
            | Operation::CancelLease { label }
            | Operation::LeaseEnds { label } => self.leases.contains(label),
            Operation::Claim { label, .. } => !self.claims.contains_key(label),
            Operation::FinishClaim { call, label, .. } => {
                self.can_finish_claim(call)? && !self.claims.contains_key(label)
            }
            Operation::PutUnder { label, .. }
            | Operation::Done { label }
            | Operation::Abort { label, .. }
            | Operation::Extend { label, .. } => self.claims.contains_key(label),
            _ => true,
        };
        if makes_sense {
            let answer = self.observe(at, operation)?;
            self.note(at, operation, &answer);
            self.compare_fences(operation, &answer)?;
            if operation.is_brief() && !matches!(answer, Answer::Refused(_)) {
                self.observe(at, &Operation::Pass { ms: PASS_MS })?;
            }
        }
        Ok(())
    }

    /// A new claim has a greater fence than all that are open in its space (K1).
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
            self.observe(at, &Operation::Newer { label: label.clone(), than })?;
        }
        Ok(())
    }

    /// Whether a call can return with a claim: it is a take, and was served.
    fn can_finish_claim(&mut self, call: &str) -> Result<bool, Disagreement> {
        if !self.labels.contains(call) || !self.takes.contains_key(call) {
            return Ok(false);
        }
        let served = Operation::Served { label: call.to_owned() };
        Ok(matches!(self.observe(Place::Main, &served)?, Answer::Flag(true)))
    }

    /// Remembers who holds what.
    fn note(&mut self, at: Place, operation: &Operation, answer: &Answer) {
        match (operation, answer) {
            (Operation::PutLeased { label, .. }, Answer::Done) => {
                self.leases.insert(label.clone());
            }
            (Operation::Claim { label, .. }, Answer::Claimed { .. }) => {
                self.claims.insert(label.clone(), at);
            }
            (Operation::FinishClaim { call, label, .. }, Answer::Claimed { .. }) => {
                self.labels.remove(call);
                self.claims.insert(label.clone(), self.takes[call]);
            }
            // For want of room, the claim goes on.
            (Operation::Done { .. }, Answer::Refused(code)) if code == SPACE_FULL => {}
            (Operation::Done { label } | Operation::Abort { label, .. }, _) => {
                self.claims.remove(label);
            }
            _ => {}
        }
    }

    /// Everything that is under way ends, then every tuple is taken: the contents must agree.
    fn end(mut self) -> Result<(), Disagreement> {
        for label in self.labels.clone() {
            self.end_scan(&label)?;
            self.cancel(&label)?;
        }
        for label in std::mem::take(&mut self.claims).into_keys() {
            let reason = "the end".to_owned();
            self.observe(Place::Main, &Operation::Abort { label, reason })?;
        }
        for label in std::mem::take(&mut self.leases) {
            self.observe(Place::Main, &Operation::LeaseEnds { label })?;
        }
        for at in [Place::Main, Place::Other] {
            let template = crate::template("...");
            self.observe(at, &Operation::Dead { template: template.clone() })?;
            self.observe(at, &Operation::Requeue { template: template.clone() })?;
            self.observe(at, &Operation::Count { template: template.clone() })?;
            self.observe(at, &Operation::TakeAll { template, limit: None })?;
        }
        Ok(())
    }

    fn finish(&mut self, label: &str) -> Result<(), Disagreement> {
        if !self.labels.contains(label) {
            return Ok(());
        }
        let label = label.to_owned();
        let served = self.observe(Place::Main, &Operation::Served { label: label.clone() })?;
        if matches!(served, Answer::Flag(true)) {
            self.labels.remove(&label);
            self.observe(Place::Main, &Operation::Finish { label })?;
        }
        Ok(())
    }

    fn cancel(&mut self, label: &str) -> Result<(), Disagreement> {
        if self.labels.remove(label) {
            self.observe(Place::Main, &Operation::Cancel { label: label.to_owned() })?;
        }
        Ok(())
    }

    fn end_scan(&mut self, label: &str) -> Result<(), Disagreement> {
        if label.starts_with(SCAN) && self.labels.remove(label) {
            self.observe(Place::Main, &Operation::EndScan { label: label.to_owned() })?;
        }
        Ok(())
    }

    fn observe(&mut self, at: Place, operation: &Operation) -> Result<Answer, Disagreement> {
        let answer = self.subject.perform(at, operation);
        self.watcher.observe(at, operation, &answer)?;
        Ok(answer)
    }
}

/// The code of an operation for which there is no room.
const SPACE_FULL: &str = "TUP-005";

const SCAN: &str = "scan ";

/// Calls and scans that chance gave the same label must not be taken for each other.
fn scan_label(label: &str) -> String {
    format!("{SCAN}{label}")
}
