//! What can be wrong with leases, claims and dead letters.

use tupelo_model::conformance::Subject;
use tupelo_model::{Answer, ClaimTerms, LeaseTerms, Operation as O, Place};

use super::{Broken, Fault};

/// Longer than any test lets pass.
const LONG_MS: u64 = 7_200_000;

impl Broken {
    /// Remembers what is claimed, for the faults that need to know.
    pub(super) fn note_claim(&mut self, at: Place, operation: &O, answer: &Answer) {
        let (O::Claim { label, .. } | O::FinishClaim { label, .. }) = operation else { return };
        if let Answer::Claimed { tuple, .. } = answer {
            self.claims.insert(label.clone(), (at, tuple.clone()));
        }
    }

    /// The operation as the fault has it, or `None` if the fault is not in its arguments.
    pub(super) fn distorted_if_held(&self, operation: O) -> Option<O> {
        let lasting = |terms| match self.fault {
            Fault::LeasesNeverEnd => Some(LeaseTerms { lease_ms: None, ..terms }),
            Fault::DelaysAreIgnored => Some(LeaseTerms { after_ms: None, ..terms }),
            _ => None,
        };
        let generous = |terms| match self.fault {
            Fault::ClaimsNeverRunOut => Some(ClaimTerms { ttl_ms: LONG_MS, ..terms }),
            Fault::AttemptsHaveNoLimit => Some(ClaimTerms { attempts_max: None, ..terms }),
            _ => None,
        };
        Some(match operation {
            O::PutLeased { label, tuple, terms } => {
                O::PutLeased { label, tuple, terms: lasting(terms)? }
            }
            O::Claim { label, template, order, terms } => {
                O::Claim { label, template, order, terms: generous(terms)? }
            }
            O::FinishClaim { call, label, terms } => {
                O::FinishClaim { call, label, terms: generous(terms)? }
            }
            O::Done { label } if self.fault == Fault::DoneKeepsTheTuple => {
                O::Abort { label, reason: "kept".to_owned() }
            }
            O::Abort { label, .. } if self.fault == Fault::AbortLosesTheTuple => O::Done { label },
            other => return self.distorted_if_inside(other),
        })
    }

    /// The answer as the fault has it, or `None` if the fault is not in this operation.
    pub(super) fn faulty_if_held(&mut self, at: Place, operation: &O) -> Option<Answer> {
        Some(match (self.fault, operation) {
            (Fault::RenewalsAreIgnored, O::Renew { label, .. })
            | (Fault::CancelledLeasesGoOn, O::CancelLease { label }) => {
                match self.state.perform(at, &O::LeaseEnds { label: label.clone() }) {
                    Answer::Flag(_) => Answer::Done,
                    refused => refused,
                }
            }
            (Fault::ExpiredLeasesAreRenewed, O::Renew { .. })
            | (Fault::LateDoneIsAccepted, O::Done { .. }) => {
                self.state.perform(at, operation);
                Answer::Done
            }
            (Fault::ExtensionsAreIgnored, O::Extend { .. })
            | (Fault::PutsUnderAClaimAreForgotten, O::PutUnder { .. }) => Answer::Done,
            (Fault::AttemptsAreNotCounted, O::Claim { .. } | O::FinishClaim { .. }) => {
                match self.state.perform(at, operation) {
                    Answer::Claimed { tuple, .. } => Answer::Claimed { tuple, attempt: 1 },
                    refused => refused,
                }
            }
            (Fault::FencesDoNotIncrease, O::Newer { .. }) => Answer::Flag(false),
            (Fault::AbortMakesTheTupleTheYoungest, O::Abort { label, .. }) => {
                let (at, tuple) = self.claims[label].clone();
                match self.state.perform(at, &O::Done { label: label.clone() }) {
                    Answer::Done => self.state.perform(at, &O::Put { tuple }),
                    refused => refused,
                }
            }
            (Fault::PutsUnderAClaimAppearAtOnce, O::PutUnder { label, tuple }) => {
                let (at, _) = self.claims[label];
                self.state.perform(at, &O::Put { tuple: tuple.clone() })
            }
            (Fault::DeadTuplesAreForgotten, O::Dead { .. }) => Answer::Dead(Vec::new()),
            (Fault::RequeueLosesTheTuples, O::Requeue { template }) => {
                let count = self.state.perform(at, operation);
                let all = O::TakeAll { template: template.clone(), limit: None };
                self.state.perform(at, &all);
                count
            }
            _ => return self.faulty_if_inside(at, operation),
        })
    }
}
