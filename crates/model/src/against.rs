//! Running an engine against the model: the same operations, every answer judged.

use std::collections::BTreeSet;

use crate::conformance::Subject;
use crate::operation::{Answer, Operation, Place};
use crate::outcomes::State;
use crate::watcher::{Disagreement, Watcher};

/// Does the operations on a subject, and at the end takes everything out of it: each answer must be one
/// that the rules allow. Operations that make no sense when their turn comes are left out, such as the
/// return of a call that was not served; so any list of operations is a fair one.
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
    let mut run = Run { subject, watcher: Watcher::new(start), labels: BTreeSet::new() };
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
}

impl<S: Subject> Run<'_, S> {
    fn sensible(&mut self, at: Place, operation: &Operation) -> Result<(), Disagreement> {
        match operation {
            Operation::Start { label, .. } => {
                if self.labels.contains(label) {
                    return Ok(());
                }
                let answer = self.observe(at, operation)?;
                if matches!(answer, Answer::Done) {
                    self.labels.insert(label.clone());
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
            _ => _ = self.observe(at, operation)?,
        }
        Ok(())
    }

    /// Everything that is under way ends, then every tuple is taken: the contents must agree.
    fn end(mut self) -> Result<(), Disagreement> {
        for label in self.labels.clone() {
            self.end_scan(&label)?;
            self.cancel(&label)?;
        }
        for at in [Place::Main, Place::Other] {
            let template = crate::template("...");
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

const SCAN: &str = "scan ";

/// Calls and scans that chance gave the same label must not be taken for each other.
fn scan_label(label: &str) -> String {
    format!("{SCAN}{label}")
}
