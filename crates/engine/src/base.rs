//! The base list: the records of a stripe in the order of their puts (rule T2).

use tupelo_shm::Section;

use crate::record::{self, Header, NEXT, PREVIOUS};
use crate::stripe::{FIRST, LAST, LIVE, Stripe};

/// Words that linking a record changes: two neighbours and the count.
pub(crate) const LINK_WORDS: usize = 3;
/// Words that unlinking one changes: the same.
pub(crate) const UNLINK_WORDS: usize = 3;

/// Appends a fresh record: the youngest.
#[inline]
pub(crate) fn append<'m>(section: &mut Section<'m>, stripe: Stripe<'m>, reference: u32) {
    let last = stripe.page().load(LAST);
    link_between(section, stripe, reference, last, 0);
}

/// Puts a record back at the place that its sequence number gives it (rule T5). It was taken from near the
/// front, so the walk from there is short.
pub(crate) fn restore<'m>(section: &mut Section<'m>, stripe: Stripe<'m>, reference: u32) {
    let sequence = record::header(section.view(), reference).load64(record::SEQUENCE);
    let (mut previous, mut next) = (0, stripe.page().load(FIRST));
    let mut steps = stripe.steps_max(section.view());
    while next != 0 && record::header(section.view(), next).load64(record::SEQUENCE) < sequence {
        (previous, next) = (next, record::header(section.view(), next).load(NEXT));
        if steps == 0 {
            section.view().violate();
            return;
        }
        steps -= 1;
    }
    link_between(section, stripe, reference, previous, next);
}

#[inline]
fn link_between<'m>(
    section: &mut Section<'m>,
    stripe: Stripe<'m>,
    reference: u32,
    previous: u32,
    next: u32,
) {
    let header = record::header(section.view(), reference);
    // The links of a record outside of the list mean nothing: no log (R2).
    header.init(PREVIOUS, previous);
    header.init(NEXT, next);
    set_neighbour(section, stripe, previous, NEXT, FIRST, reference);
    set_neighbour(section, stripe, next, PREVIOUS, LAST, reference);
    section.add(stripe.page(), LIVE, 1);
}

/// Takes a record out of the list.
#[inline]
pub(crate) fn unlink<'m>(section: &mut Section<'m>, stripe: Stripe<'m>, header: Header<'m>) {
    let (previous, next) = (header.load(PREVIOUS), header.load(NEXT));
    set_neighbour(section, stripe, previous, NEXT, FIRST, next);
    set_neighbour(section, stripe, next, PREVIOUS, LAST, previous);
    section.add(stripe.page(), LIVE, -1);
}

/// Stores `value` into the link `at` of `neighbour`, or into the stripe's `end` if there is none.
#[inline(always)]
#[expect(clippy::inline_always, reason = "four times in each put and take, constant arguments")]
fn set_neighbour<'m>(
    section: &mut Section<'m>,
    stripe: Stripe<'m>,
    neighbour: u32,
    at: usize,
    end: usize,
    value: u32,
) {
    if neighbour == 0 {
        section.set(stripe.page(), end, value);
    } else {
        let header = record::header(section.view(), neighbour);
        section.set(header, at, value);
    }
}
