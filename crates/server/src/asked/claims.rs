//! Claims, and what becomes of tuples that nobody could be done with (rules K1 to K5).

use std::rc::Rc;
use std::time::Duration;

use tupelo::encoding::{Decoded, encode_tuple_ref, write};
use tupelo::{
    Attempt, Claim, ClaimTerms, DeadLetterRecord, Error, Field, LeaseTerms, Order, Space,
    TemplateRef, TupleRef, TupleView, fields,
};
use tupelo_protocol::{Fault, Operation, Settlement, Term};

use super::{Found, Purpose, encoded, not_for};
use crate::answers::Answer;
use crate::hosted::Hosted;
use crate::kept::Share;
use crate::meters::Handed;
use crate::session::{QueuedWait, Session};

/// Claims a match; if there is none and the request waits, it joins the wait queue.
pub(super) fn claim(
    session: &Session,
    hosted: &Rc<Hosted>,
    id: u64,
    (order, waits, terms): (Order, bool, &ClaimTerms),
    template: &[TemplateRef<'_>],
) -> Result<Option<Answer>, Error> {
    let space = &hosted.space;
    if let Some((claim, tuple)) = space.try_claim(template, order, terms, encoded)? {
        let tuples = tuples_of(&claim, &tuple)?;
        Handed::new(hosted, (&tuples, 1), Duration::ZERO);
        session.give_claim(id, claim, hosted, &tuples);
        return Ok(None);
    }
    if !waits {
        return Ok(Some(Answer::Nothing));
    }
    let waiter = space.claimant(template, terms)?;
    session.wait(id, hosted, waiter, Purpose::Claim(*terms))?;
    Ok(None)
}

/// What a claim is answered by: its fence and which attempt it is, and the tuple.
pub(super) fn tuples_of(claim: &Claim, tuple: &[u8]) -> Result<Vec<u8>, Error> {
    let fence = i64::try_from(claim.fence()).unwrap_or(i64::MAX);
    let head = fields![fence, i64::from(claim.attempt())];
    let mut tuples = Vec::with_capacity(tuple.len() + 24);
    write::array_header(&mut tuples, 2)?;
    encode_tuple_ref(&mut tuples, (&head).into())?;
    tuples.extend(tuple);
    Ok(tuples)
}

/// Does an operation on a claim; one that ends it in the `grant` of a place in the wait queue for room.
pub(super) fn on_claim(
    claim: &Claim,
    share: &Share,
    grant: Option<&QueuedWait>,
    operation: &Operation<'_>,
) -> Result<Answer, Fault> {
    match operation {
        Operation::Put { tuples, terms, .. } => {
            let bytes = tuples.as_bytes().len();
            let tuples = tuples.decode()?;
            share.add(bytes)?;
            let terms = LeaseTerms { lease: terms.lease, after: terms.after };
            let mut refs = tuples.iter().map(Decoded::as_ref);
            refs.try_for_each(|tuple| claim.put_on(tuple, &terms))?;
            return Ok(Answer::Done(tuples.len() as u64));
        }
        Operation::Term(Term::Renew(Some(ttl))) => claim.extend(Some(*ttl))?,
        Operation::Term(Term::Prolong(ttl)) => claim.prolong(*ttl)?,
        Operation::Settle(Settlement::Done { .. }) => match grant {
            Some(line) => line.with_grant(|| claim.done())?,
            None => claim.done()?,
        },
        Operation::Settle(Settlement::Abort { reason }) => claim.abort(reason)?,
        Operation::Settle(Settlement::GiveBack) => claim.give_back()?,
        Operation::Settle(Settlement::Discard) => {
            share.clear();
            return Ok(Answer::Done(claim.discard_puts() as u64));
        }
        _ => return Err(not_for(operation, "a claim")),
    }
    Ok(Answer::Done(1))
}

/// The dead tuples: before each, how many attempts have failed, and the number and the reason of those that are known.
pub(super) fn dead(space: &Space, template: &[TemplateRef<'_>]) -> Result<Vec<u8>, Error> {
    let mut found = Found::default();
    space.dead(template, |tuple: TupleView<'_>, dead_letter: DeadLetterRecord| {
        let mut head = vec![Field::Int(i64::from(dead_letter.attempts))];
        for Attempt { number, reason } in &dead_letter.reasons {
            head.extend([Field::Int(i64::from(*number)), Field::Str(reason)]);
        }
        found.add_ref(TupleRef { fields: &head, class: None })?;
        found.add(tuple)
    })?;
    found.into_tuples()
}
