//! The steps on leases and claims, and time.

use serde_json::Value as Json;

use super::step::{Expectation, Step};
use crate::operation::{Answer, Operation};
use crate::{ClaimTerms, DeadLetterRecord, LeaseTerms};

impl Step<'_> {
    /// A step on a lease or a claim; `None` if it is another one.
    pub(super) fn held(&self) -> Option<Vec<Expectation>> {
        let operation = self.on_lease().or_else(|| self.on_claim())?;
        let expected = match (&operation, self.error()) {
            (_, Some(code)) => Answer::Refused(code),
            (Operation::Claim { .. } | Operation::FinishClaim { .. }, None) => {
                Answer::Claimed { tuple: self.tuple("gives"), attempt: self.number("attempt") }
            }
            (Operation::LeaseEnds { .. } | Operation::Newer { .. }, None) => {
                Answer::Flag(self.flag("gives"))
            }
            (Operation::PutAllLeased { .. } | Operation::Requeue { .. }, None) => {
                Answer::Count(self.number("gives") as u64)
            }
            (Operation::Dead { .. }, None) => Answer::Dead(self.dead_letters()),
            _ => Answer::Done,
        };
        if let Operation::FinishClaim { call, .. } = &operation {
            let served = Operation::Served { label: call.clone() };
            return Some(vec![(served, vec![Answer::Flag(true)]), (operation, vec![expected])]);
        }
        Some(vec![(operation, vec![expected])])
    }

    fn on_lease(&self) -> Option<Operation> {
        let is_leased = self.has("lease") || self.has("after");
        Some(if self.has("put") && is_leased {
            // A lease without later operations needs no name.
            let label = if self.has("as") { self.label("as") } else { String::new() };
            Operation::PutLeased { label, tuple: self.tuple("put"), terms: self.lease_terms() }
        } else if self.has("put_all") && is_leased {
            Operation::PutAllLeased { tuples: self.tuples("put_all"), terms: self.lease_terms() }
        } else if self.has("renew") {
            Operation::Renew { label: self.label("renew"), lease_ms: self.length("lease") }
        } else if self.has("cancel_lease") {
            Operation::CancelLease { label: self.label("cancel_lease") }
        } else if self.has("lease_ends") {
            Operation::LeaseEnds { label: self.label("lease_ends") }
        } else if self.has("pass") {
            Operation::Pass { ms: self.milliseconds("pass") }
        } else {
            return None;
        })
    }

    fn on_claim(&self) -> Option<Operation> {
        Some(if self.has("claim") {
            let (template, order) = (self.template("claim"), self.order());
            let (label, terms) = (self.claim_label(), self.claim_terms());
            Operation::Claim { label, template, order, terms }
        } else if self.has("finish_claim") {
            let (call, label) = (self.label("finish_claim"), self.claim_label());
            Operation::FinishClaim { call, label, terms: self.claim_terms() }
        } else if self.has("put") && self.has("under") {
            Operation::PutUnder { label: self.label("under"), tuple: self.tuple("put") }
        } else if self.has("done") {
            Operation::Done { label: self.label("done") }
        } else if self.has("abort") {
            Operation::Abort { label: self.label("abort"), reason: self.label("reason") }
        } else if self.has("extend") {
            Operation::Extend { label: self.label("extend"), ttl_ms: self.milliseconds("ttl") }
        } else if self.has("newer") {
            Operation::Newer { label: self.label("newer"), than: self.label("than") }
        } else if self.has("dead") {
            Operation::Dead { template: self.template("dead") }
        } else if self.has("requeue") {
            Operation::Requeue { template: self.template("requeue") }
        } else {
            return None;
        })
    }

    /// The claim's label; none if there is none to be had.
    fn claim_label(&self) -> String {
        if self.has("error") { String::new() } else { self.label("as") }
    }

    pub(super) fn lease_terms(&self) -> LeaseTerms {
        let length = |key| if self.has(key) { self.length(key) } else { None };
        LeaseTerms { lease_ms: length("lease"), after_ms: length("after") }
    }

    fn claim_terms(&self) -> ClaimTerms {
        let attempts_max = self.has("max_attempts").then(|| self.number("max_attempts"));
        ClaimTerms { ttl_ms: self.milliseconds("ttl"), attempts_max }
    }

    /// A length of time in seconds, or `null` for ever.
    fn length(&self, key: &'static str) -> Option<u64> {
        (!self.get(key).is_null()).then(|| self.milliseconds(key))
    }

    pub(super) fn milliseconds(&self, key: &'static str) -> u64 {
        let seconds = self.get(key).as_f64();
        let ms = seconds.map(|seconds| (seconds * 1000.0).round());
        match ms {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a small number that is not negative"
            )]
            Some(ms) if (0.0..1e9).contains(&ms) => ms as u64,
            _ => self.wrong(&format!("`{key}` is not a number of seconds")),
        }
    }

    /// The dead letters: a tuple, how many attempts failed, and why; `null` where the holder gave no reason.
    fn dead_letters(&self) -> Vec<DeadLetterRecord> {
        let dead_letter = |json: &Json| {
            let [tuple, attempts, reasons] = json.as_array()?.as_slice() else { return None };
            let reason = |json: &Json| json.as_str().map(str::to_owned);
            let reasons = reasons.as_array()?.iter().map(reason).collect();
            let attempts = usize::try_from(attempts.as_u64()?).ok()?;
            Some(DeadLetterRecord { tuple: self.parse(tuple.as_str()?), attempts, reasons })
        };
        let list = self.get("gives").as_array();
        let all = list.and_then(|list| list.iter().map(dead_letter).collect());
        all.unwrap_or_else(|| self.wrong("`gives` is not a list of [tuple, attempts, reasons]"))
    }
}
