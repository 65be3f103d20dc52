//! Leases of single tuples (rules L1 to L3).

use tupelo::{Lease, LeaseTerms, Space, TemplateRef};
use tupelo_protocol::{Fault, Operation, PutTerms, TemplateBytes, Term, Tuples};

use super::{not_for, with_template};
use crate::answers::Answer;

/// Puts one tuple on terms, unless something matches `unless`.
pub(super) fn put(
    space: &Space,
    tuple: Tuples<'_>,
    terms: PutTerms,
    unless: Option<TemplateBytes<'_>>,
) -> Result<Option<Lease>, Fault> {
    let tuple = tuple.decode()?;
    let [tuple] = &tuple[..] else { return Err(Fault::protocol("a lease is of one tuple")) };
    let PutTerms { lease, after } = terms;
    let terms = LeaseTerms { lease, after };
    let Some(unless) = unless else {
        return Ok(Some(space.put_leased(tuple.as_ref(), &terms)?));
    };
    let put =
        |unless: &[TemplateRef<'_>]| space.put_if_absent_leased(tuple.as_ref(), unless, &terms);
    with_template(unless, put)
}

/// Does an operation on a lease.
pub(super) fn on_lease(lease: &Lease, operation: &Operation<'_>) -> Result<Answer, Fault> {
    let Operation::Term(term) = operation else { return Err(not_for(operation, "a lease")) };
    match *term {
        Term::Left => {
            let left = lease.expires_in()?;
            let nanoseconds = left.map(|left| u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
            return Ok(nanoseconds.map_or(Answer::Nothing, Answer::Done));
        }
        Term::Renew(length) => lease.renew(length)?,
        Term::Prolong(length) => lease.prolong(length)?,
        Term::Cancel => lease.cancel()?,
    }
    Ok(Answer::Done(1))
}
