//! The ends of what is in somebody's hands: claims, and what open transactions have taken or locked.
//!
//! Nearly every hold is settled long before its time is over, so its timer is armed late: when the partition is looked at
//! because something is due there ([`crate::protocols::due`]). Until then the extension says when it ends, and the
//! partition is due no later than that. A list grows at its front, and all unarmed entries are armed at once. So the
//! unarmed entries are the front part of their list, and finding them costs no look at the rest.
//!
//! When the lease of a transaction ends, all that it has in a partition goes at that moment: the oldest first, whichever timer is the
//! first to fire.

use tupelo_shm::{Section, View};

use crate::base::error::Error;
use crate::store::extension::{Extension, HOLD_END_MS, LIST_PREVIOUS};
use crate::store::partition::{DUE_MS, Partition};
use crate::store::record::{self, STATE};
use crate::store::{Store, step};
use crate::time::list::{self, List};
use crate::time::wheel;

/// The lists of what has an end of its own.
const LISTS: [List; 3] = [List::Claimed, List::Enlisted, List::Locks];

/// Gives a record that is about to be listed its end. It has a timer that is not armed.
///
/// # Errors
///
/// [`crate::base::error::Need`] if the partition has no wheel yet and there is no block for one.
#[inline]
pub(crate) fn begin_hold<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    extension: Extension<'m>,
    end_ms: u64,
) -> Result<(), Error> {
    // Meaningless until the record is listed (R2).
    extension.init64(HOLD_END_MS, end_ms);
    wheel::expect(store, section, partition, end_ms)
}

/// Gives a listed record another end.
///
/// # Errors
///
/// As [`begin_hold`].
pub(crate) fn move_hold_end<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    (reference, extension): (u32, Extension<'m>),
    end_ms: u64,
) -> Result<(), Error> {
    wheel::set64(section, extension, HOLD_END_MS, end_ms);
    if wheel::is_armed(extension) {
        wheel::disarm(section, partition, reference);
        return wheel::arm(store, section, partition, reference, end_ms);
    }
    wheel::expect(store, section, partition, end_ms)
}

/// Arms the timers of all that is in somebody's hands in the partition. May commit the section in between: from the back of
/// the part that is not armed, so that what is left is its front.
pub(crate) fn arm_holds<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
) -> Result<(), Error> {
    for list in LISTS {
        let (mut last, count) = unarmed(section.view(), partition, list);
        for _ in 0..count {
            let Some((reference, extension)) = last else { break };
            step::commit_if_full(section)?;
            wheel::arm(store, section, partition, reference, extension.load64(HOLD_END_MS))?;
            last = list::extension_of(section.view(), extension.load(LIST_PREVIOUS))
                .map(|before| (extension.load(LIST_PREVIOUS), before));
        }
    }
    Ok(())
}

/// Whether a record is what an open transaction has, or a lock of one.
pub(crate) fn is_of_transaction(view: &View<'_>, reference: u32) -> bool {
    let state = record::header(view, reference).load(STATE);
    state == record::ENLISTED || state == record::LOCK
}

/// The last of the records of a list whose timers are not armed, and how many there are.
fn unarmed<'m>(
    view: &View<'m>,
    partition: Partition<'m>,
    list: List,
) -> (Option<(u32, Extension<'m>)>, usize) {
    let front = list::records(view, partition, list);
    let front = front.take_while(|(_, extension)| !wheel::is_armed(*extension));
    front.fold((None, 0), |(_, count), one| (Some(one), count + 1))
}

/// What is wrong with the ends of what is in somebody's hands in a partition, if anything; else the records whose timers are not
/// armed.
pub(crate) fn not_armed(view: &View<'_>, partition: Partition<'_>) -> Result<Vec<u32>, String> {
    let mut all = Vec::new();
    for list in LISTS {
        let count = unarmed(view, partition, list).1;
        for (index, (reference, extension)) in list::records(view, partition, list).enumerate() {
            let (end_ms, due_ms) = (extension.load64(HOLD_END_MS), partition.page().load64(DUE_MS));
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
