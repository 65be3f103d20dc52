//! The cases of `conformance/`: read, and run against anything that answers operations.
//!
//! `conformance/README.md` is the definition of the format. A case is compiled into probes, each an
//! operation with the answers that it may have, so running is a loop without cases of its own. Texts are
//! parsed once: a subject gets values, not text.

mod case;
mod events;
mod held;
mod step;
mod transactions;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

pub use case::{Case, read_folder};
pub use step::Probe;

use crate::operation::{Answer, Operation, Place};
use crate::outcomes::State;

/// Two empty spaces that answer operations: an engine under test.
pub trait Subject {
    /// Does the operation, without ever waiting, and says what came of it.
    fn perform(&mut self, at: Place, operation: &Operation) -> Answer;
}

/// The model itself: of several allowed outcomes, the first.
impl Subject for State {
    fn perform(&mut self, at: Place, operation: &Operation) -> Answer {
        let outcome = self.outcomes(at, operation).into_iter().next();
        let (answer, after) = outcome.unwrap_or_else(|| panic!("{operation:?} makes no sense now"));
        *self = after;
        match answer {
            Answer::Scanned(scanned) => Answer::Unordered(scanned.least()),
            answer => answer,
        }
    }
}

/// A case whose answers differ from the ones that the rules demand.
#[derive(Clone, Debug)]
pub struct Failure {
    case: String,
    probe: Probe,
    answer: Answer,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, probe, answer } = self;
        writeln!(out, "{case}")?;
        writeln!(out, "  step {}: {}", probe.number, probe.text)?;
        let expected: Vec<String> = probe.expected.iter().map(Answer::to_string).collect();
        writeln!(out, "  {}", probe.operation)?;
        writeln!(out, "  expected {}", expected.join(" or "))?;
        write!(out, "  answered {answer}")
    }
}

impl Case {
    /// Runs the case against a subject whose spaces are new and have the limits of the case.
    ///
    /// # Errors
    ///
    /// The first step whose answer is not an allowed one.
    pub fn run(&self, subject: &mut impl Subject) -> Result<(), Box<Failure>> {
        for probe in &self.probes {
            let answer = subject.perform(probe.at, &probe.operation);
            if !probe.expected.iter().any(|expected| expected.agrees_with(&answer)) {
                let case = format!("{}: {} {:?}", self.file, self.name, self.rules);
                return Err(Box::new(Failure { case, probe: probe.clone(), answer }));
            }
        }
        Ok(())
    }
}

/// Runs all cases of a folder, each against a new subject.
///
/// # Panics
///
/// If a case fails or the subject panics, after all have run: the message has every failure.
pub fn run_folder<S: Subject>(folder: &Path, mut subject: impl FnMut(&Case) -> S) {
    let cases = read_folder(folder);
    let mut run =
        |case: &Case| match catch_unwind(AssertUnwindSafe(|| case.run(&mut subject(case)))) {
            Ok(result) => result.err().map(|failure| failure.to_string()),
            Err(_) => Some(format!("{}: {}\n  panicked, as said above", case.file, case.name)),
        };
    let failures: Vec<String> = cases.iter().filter_map(&mut run).collect();
    let (failed, count) = (failures.len(), cases.len());
    assert!(
        failures.is_empty(),
        "{failed} of {count} cases failed:\n\n{}\n",
        failures.join("\n\n")
    );
}
