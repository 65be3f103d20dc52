//! What a test holds: claims and leases, by their labels.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use tupelo::{
    Claim, ClaimTerms, DeadLetterRecord, Error, Lease, LeaseTerms, Outcome, Space, TupleView,
    Waiter,
};
use tupelo_model::{Answer, Operation};

use super::{keep, ordered, with_all, with_refs, with_tuple};

/// The claims and the leases of a test, or of one of its threads.
#[derive(Default)]
pub(crate) struct Hands {
    claims: HashMap<String, Claim>,
    leases: HashMap<String, Lease>,
}

impl Hands {
    /// Does an operation on a lease; `None` if it is another one.
    pub(crate) fn with_lease(
        &mut self,
        space: &Space,
        operation: &Operation,
    ) -> Result<Option<Answer>, Error> {
        match operation {
            Operation::PutLeased { label, tuple, terms } => {
                let terms = lease_terms(*terms);
                let lease = with_tuple(tuple, |tuple| space.put_leased(tuple, &terms))?;
                self.leases.insert(label.clone(), lease);
            }
            Operation::PutAllLeased { tuples, terms } => {
                let terms = lease_terms(*terms);
                let count = with_all(tuples, |tuples| space.put_all_leased(tuples, &terms))?;
                return Ok(Some(Answer::Count(count as u64)));
            }
            Operation::Renew { label, lease_ms } => {
                self.leases[label].renew(lease_ms.map(Duration::from_millis))?;
            }
            Operation::CancelLease { label } => self.leases[label].cancel()?,
            Operation::LeaseEnds { label } => {
                return Ok(Some(Answer::Flag(self.leases[label].expires_in()?.is_some())));
            }
            Operation::Pass { ms } => thread::sleep(Duration::from_millis(*ms)),
            _ => return Ok(None),
        }
        Ok(Some(Answer::Done))
    }

    /// Does an operation on a claim; `None` if it is another one. A claim that finds nothing gives up after
    /// `timeout`.
    pub(crate) fn with_claim(
        &mut self,
        space: &Space,
        operation: &Operation,
        timeout: Duration,
    ) -> Result<Option<Answer>, Error> {
        match operation {
            Operation::Claim { label, template, order, terms } => {
                let (order, terms) = (ordered(*order), claim_terms(*terms));
                let claimed = with_refs(template, |template| {
                    space.claim(template, order, Some(timeout), &terms, keep)
                })?;
                return Ok(Some(self.granted(label, claimed)));
            }
            Operation::PutUnder { label, tuple } => {
                with_tuple(tuple, |tuple| self.claims[label].put(tuple))?;
            }
            Operation::Done { label } => self.claims[label].done()?,
            Operation::Abort { label, reason } => self.claims[label].abort(reason)?,
            Operation::Extend { label, ttl_ms } => {
                self.claims[label].extend(Some(Duration::from_millis(*ttl_ms)))?;
            }
            Operation::Newer { label, than } => {
                let is_newer = self.claims[label].fence() > self.claims[than].fence();
                return Ok(Some(Answer::Flag(is_newer)));
            }
            Operation::Dead { template } => {
                let dead = with_refs(template, |template| space.dead(template, dead_letter))?;
                return Ok(Some(Answer::Dead(dead)));
            }
            Operation::Requeue { template } => {
                return Ok(Some(Answer::Count(with_refs(template, |template| {
                    space.requeue(template)
                })?)));
            }
            _ => return Ok(None),
        }
        Ok(Some(Answer::Done))
    }

    /// A blocking call returns with a claim.
    pub(crate) fn finish_claim(
        &mut self,
        waiter: Waiter,
        label: &str,
        terms: tupelo_model::ClaimTerms,
    ) -> Result<Answer, Error> {
        match waiter.finish_claim(&claim_terms(terms), keep)? {
            Outcome::Done(claimed) => Ok(self.granted(label, claimed)),
            Outcome::Waits(_) => panic!("it was told that there is a tuple"),
        }
    }

    fn granted(&mut self, label: &str, (claim, tuple): (Claim, tupelo::Tuple)) -> Answer {
        let attempt = claim.attempt() as usize;
        self.claims.insert(label.to_owned(), claim);
        Answer::Claimed { tuple, attempt }
    }
}

fn dead_letter(
    tuple: TupleView<'_>,
    dead_letter: DeadLetterRecord,
) -> Result<tupelo_model::DeadLetterRecord, Error> {
    let reasons = dead_letter.reasons.into_iter().map(|attempt| Some(attempt.reason)).collect();
    let attempts = dead_letter.attempts as usize;
    Ok(tupelo_model::DeadLetterRecord { tuple: keep(tuple)?, attempts, reasons })
}

pub(crate) fn lease_terms(terms: tupelo_model::LeaseTerms) -> LeaseTerms {
    let length = |ms: Option<u64>| ms.map(Duration::from_millis);
    LeaseTerms { lease: length(terms.lease_ms), after: length(terms.after_ms) }
}

fn claim_terms(terms: tupelo_model::ClaimTerms) -> ClaimTerms {
    let attempts_max = terms.attempts_max.map(|most| u32::try_from(most).expect("a small number"));
    ClaimTerms { ttl: Duration::from_millis(terms.ttl_ms), attempts_max }
}
