//! What is put into a space.

use std::rc::Rc;

use tupelo::encoding::Decoded;
use tupelo::{LeaseTerms, Space, TemplateRef};
use tupelo_protocol::{Fault, PutTerms, TemplateBytes, Tuples};

use super::{one, with_template};
use crate::answers::Answer;

/// Puts tuples; returns how many.
pub(super) fn put(
    space: &Space,
    tuples: Tuples<'_>,
    terms: PutTerms,
    unless: Option<TemplateBytes<'_>>,
) -> Result<u64, Fault> {
    let tuples = tuples.decode()?;
    let PutTerms { lease, after } = terms;
    let terms = LeaseTerms { lease, after };
    if let Some(unless) = unless {
        let ([tuple], true) = (&tuples[..], terms == LeaseTerms::default()) else {
            return Err(Fault::protocol("a put with `unless` is for one tuple, without terms"));
        };
        let put = |unless: &[TemplateRef<'_>]| space.put_if_absent(tuple.as_ref(), unless);
        return Ok(u64::from(with_template(unless, put)?));
    }
    if let ([tuple], true) = (&tuples[..], terms == LeaseTerms::default()) {
        space.put(tuple.as_ref())?;
        return Ok(1);
    }
    let tuples: Vec<_> = tuples.iter().map(Decoded::as_ref).collect();
    Ok(space.put_all_leased(&tuples, &terms)? as u64)
}

/// Replaces the oldest match.
pub(super) fn swap(
    space: &Space,
    template: TemplateBytes<'_>,
    to: Tuples<'_>,
) -> Result<Answer, Fault> {
    let to = to.decode()?;
    let [to] = &to[..] else { return Err(Fault::protocol("a swap is for one tuple")) };
    let old = with_template(template, |template| space.try_swap(template, to.as_ref(), one))?;
    Ok(old.map_or(Answer::Nothing, |old| Answer::Found(Rc::new(old))))
}
