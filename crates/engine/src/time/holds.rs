//! The ends of what is in somebody's hands: claims, and what open transactions have taken or locked.
//!
//! Nearly all of it is settled long before its time is over, so its timer is armed late: when the stripe is looked at because
//! something is due there ([`crate::time::catch_up`]). Until then the extension says when it ends, and the stripe is due no later
//! than that. A list grows at its front, and all that is not armed is armed at once; so what is not armed is the front part
//! of its list, and to find it costs no look at the rest.
//!
//! When the lease of a transaction ends, all that it has in a stripe goes at that moment: the oldest first, whichever timer is the
//! first to fire.

use tupelo_shm::{Section, View};

use crate::base::error::Error;
use crate::protocols::claim::{Place, settle};
use crate::protocols::transaction::{hold, lock};
use crate::store::extension::{self, Extension, FENCE, HOLD_END_MS, LIST_PREVIOUS, TRANSACTION};
use crate::store::record::{self, HOLDER, Header, SEQUENCE, STATE};
use crate::store::stripe::{DUE_MS, Stripe};
use crate::store::{self, Store, step};
use crate::time::list::{self, List};
use crate::time::wheel;
use crate::waiters::deliver::Delivery;

/// Something that its holder loses, with the age of its tuple.
#[derive(Clone, Copy)]
pub(crate) struct Lost {
    pub(crate) list: List,
    pub(crate) place: Place,
    sequence: u64,
}

/// The lists of what has an end of its own.
const LISTS: [List; 3] = [List::Claimed, List::Enlisted, List::Locks];

/// Gives a record that is about to be listed its end. It has a timer that is not armed.
///
/// # Errors
///
/// [`crate::base::error::Need`] if the stripe has no wheel yet and there is no block for one.
#[inline]
pub(crate) fn begin_hold<'m>(
    store: &Store,
    section: &mut Section<'m>,
    stripe: Stripe<'m>,
    extension: Extension<'m>,
    end_ms: u64,
) -> Result<(), Error> {
    // Meaningless until the record is listed (R2).
    extension.init64(HOLD_END_MS, end_ms);
    wheel::expect(store, section, stripe, end_ms)
}

/// Gives a listed record another end.
///
/// # Errors
///
/// As [`begin_hold`].
pub(crate) fn move_hold_end<'m>(
    store: &Store,
    section: &mut Section<'m>,
    stripe: Stripe<'m>,
    (reference, extension): (u32, Extension<'m>),
    end_ms: u64,
) -> Result<(), Error> {
    wheel::set64(section, extension, HOLD_END_MS, end_ms);
    if wheel::is_armed(extension) {
        wheel::disarm(section, stripe, reference);
        return wheel::arm(store, section, stripe, reference, end_ms);
    }
    wheel::expect(store, section, stripe, end_ms)
}

/// Arms the timers of all that is in somebody's hands in the stripe. May commit the section in between: from the back of
/// the part that is not armed, so that what is left is its front.
pub(crate) fn arm_holds<'m>(
    store: &Store,
    section: &mut Section<'m>,
    stripe: Stripe<'m>,
) -> Result<(), Error> {
    for list in LISTS {
        let (mut last, count) = unarmed(section.view(), stripe, list);
        for _ in 0..count {
            let Some((reference, extension)) = last else { break };
            step::commit_if_full(section)?;
            wheel::arm(store, section, stripe, reference, extension.load64(HOLD_END_MS))?;
            last = list::extension_of(section.view(), extension.load(LIST_PREVIOUS))
                .map(|before| (extension.load(LIST_PREVIOUS), before));
        }
    }
    Ok(())
}

/// All that a transaction has in the stripe whose lease has ended, the oldest first; by the record at `reference`, whose timer
/// has fired and is armed anew: that of the one which is let go first may be another. Commits the section.
pub(crate) fn lost_with<'m>(
    store: &Store,
    section: &mut Section<'m>,
    stripe: Stripe<'m>,
    reference: u32,
) -> Result<Vec<Lost>, Error> {
    let view = section.view();
    let whose = |header: Header<'_>, extension: Extension<'_>| {
        let transaction = (header.load(HOLDER), extension.load(TRANSACTION));
        (transaction, extension.load64(HOLD_END_MS))
    };
    let header = record::header(view, reference);
    let Some(extension) = extension::of(view, header) else {
        return Err(store::damaged(store, "a record in somebody's hands has no extension"));
    };
    let its = whose(header, extension);
    let lists = [List::Enlisted, List::Locks];
    let lost =
        oldest_first(view, stripe, &lists, |header, extension| whose(header, extension) == its);
    let fired = lost.iter().find(|one| one.place.reference == reference);
    let is_there = fired.is_some_and(|one| {
        let held = settle::held_at(store, view, one.place, one.list);
        held.is_some_and(|(_, fence)| fence == one.place.fence)
    });
    if !is_there {
        // It would fire again and again.
        return Err(store::damaged(store, "a transaction has a record that is on no list"));
    }
    wheel::arm(store, section, stripe, reference, extension.load64(HOLD_END_MS))?;
    section.commit()?;
    Ok(lost)
}

/// Lets go of what a transaction has lost, if it is still there.
pub(crate) fn lose<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    stripe: Stripe<'m>,
    Lost { list, place, .. }: Lost,
) -> Result<Delivery, Error> {
    match settle::held_at(store, section.view(), place, list) {
        Some((record, fence)) if fence == place.fence => {
            hold::let_go_of(store, section, stripe, (record, list))
        }
        _ => Ok(Delivery::default()),
    }
}

/// What is meant of what is on `lists` of a stripe: that of the oldest tuple first, so that it goes to who waits (rule T2).
pub(crate) fn oldest_first<'m>(
    view: &View<'m>,
    stripe: Stripe<'m>,
    lists: &[List],
    is_meant: impl Fn(Header<'m>, Extension<'m>) -> bool,
) -> Vec<Lost> {
    let mut all = Vec::new();
    for list in lists {
        for (reference, extension) in list::records(view, stripe, *list) {
            let header = record::header(view, reference);
            if is_meant(header, extension) {
                let sequence = if *list == List::Locks {
                    lock::sequence_of_tuple(header)
                } else {
                    header.load64(SEQUENCE)
                };
                let fence = extension.load64(FENCE);
                let place = Place { scope: stripe.scope(), reference, fence };
                all.push(Lost { list: *list, place, sequence });
            }
        }
    }
    all.sort_unstable_by_key(|one| one.sequence);
    all
}

/// Whether a record is what an open transaction has, or a lock of one.
pub(crate) fn is_of_transaction(view: &View<'_>, reference: u32) -> bool {
    let state = record::header(view, reference).load(STATE);
    state == record::ENLISTED || state == record::LOCK
}

/// The last of the records of a list whose timers are not armed, and how many there are.
fn unarmed<'m>(
    view: &View<'m>,
    stripe: Stripe<'m>,
    list: List,
) -> (Option<(u32, Extension<'m>)>, usize) {
    let front = list::records(view, stripe, list);
    let front = front.take_while(|(_, extension)| !wheel::is_armed(*extension));
    front.fold((None, 0), |(_, count), one| (Some(one), count + 1))
}

/// What is wrong with the ends of what is in somebody's hands in a stripe, if anything; else the records whose timers are not
/// armed.
pub(crate) fn not_armed(view: &View<'_>, stripe: Stripe<'_>) -> Result<Vec<u32>, String> {
    let mut all = Vec::new();
    for list in LISTS {
        let count = unarmed(view, stripe, list).1;
        for (index, (reference, extension)) in list::records(view, stripe, list).enumerate() {
            let (end_ms, due_ms) = (extension.load64(HOLD_END_MS), stripe.page().load64(DUE_MS));
            if index >= count {
                // Later, if there was no room for what is to happen then.
                if !wheel::is_armed(extension) || wheel::due_ms(view, reference) < end_ms {
                    return Err(format!("record {reference} has no timer for its end at {end_ms}"));
                }
            } else if due_ms == 0 || due_ms > end_ms {
                return Err(format!(
                    "the hold of record {reference} ends at {end_ms}, and nobody looks before {due_ms}"
                ));
            } else {
                all.push(reference);
            }
        }
    }
    Ok(all)
}
