//! Blocked callers: a put hands the tuple straight to the one that has waited longest (rules T3 to T6).
//!
//! A blocked caller owns a *wait node*. If its template selects one shape, it is linked into that shape's partition. It
//! stands in a table by the mask and tag of the template's actual fields, so that a put looks only at wait nodes that could
//! match. The wait node of any other template stands in the list of *multi-shape* waiters. A put that finds a waiter stores the
//! tuple's reference in the wait node, in the section that stores the tuple. It never links the tuple anywhere else; after
//! the section it wakes the waiter if that sleeps.
//!
//! | word | wait node |
//! |---:|---|
//! | 0 | state |
//! | 4 | the record that was handed over, 0 if none |
//! | 12 | participant that owns it, + 1 |
//! | 16 | what it waits for |
//! | 20 | scope of the lock that its links belong to |
//! | 24, 28 | mask and tag that it is filed under |
//! | 32, 36 | next and previous in its chain: wait node number + 1 |
//! | 40 | ticket: the order of arrival (two words) |
//! | 48, 52 | form and bytes of the stored template |
//! | 56 | link of the free list |
//! | 60 | wait node whose owner is woken instead, 0 for this one; bit 31: it is a notifier ([`crate::operations::wait::notifier`]) |
//! | 64, 68 | the ring of a subscription, 0 if it has none, and the events that it hears ([`crate::waiters::events`]) |
//! | 72, 80 | how long a tuple that is handed over is kept for it, and until when, in milliseconds; 0: for ever ([`hand_off`]; two words each) |
//! | 88.. | the template, or the granule where it begins |
//! | 192 | signal: awake, asleep, or something happened. A futex; written without the log. In a line of its own: who waits looks at it all the time, and must not take the other lines from who serves it |

pub(crate) mod chain;
pub(crate) mod deliver;
pub(crate) mod events;
pub(crate) mod grants;
pub(crate) mod hand_off;
pub(crate) mod nodes;
pub(crate) mod spin;
pub(crate) mod stored;
#[cfg(test)]
mod tests;
pub(crate) mod timer_leader;
pub(crate) mod wake;

use std::time::Duration;

use tupelo_shm::{Span, View};

use crate::base::layout::{self, NODE_BYTES, WAITERS_MAX};

pub(crate) type WaitNode<'m> = Span<'m, NODE_BYTES>;

pub(crate) const STATE: usize = 0;
pub(crate) const RECORD: usize = 4;
pub(crate) const SIGNAL: usize = 192;
pub(crate) const OWNER: usize = 12;
pub(crate) const WANT: usize = 16;
pub(crate) const SCOPE: usize = 20;
pub(crate) const MASK: usize = 24;
pub(crate) const TAG: usize = 28;
pub(crate) const NEXT: usize = 32;
pub(crate) const PREVIOUS: usize = 36;
pub(crate) const TICKET: usize = 40;
pub(crate) const FORM: usize = 48;
pub(crate) const TEMPLATE_BYTES: usize = 52;
pub(crate) const FREE_NEXT: usize = 56;
pub(crate) const WAKES: usize = 60;
pub(crate) const RING: usize = 64;
pub(crate) const EVENT_KINDS: usize = 68;
pub(crate) const HAND_OFF_MS: usize = 72;
pub(crate) const PICK_UP_MS: usize = 80;
pub(crate) const TEMPLATE: usize = 88;
/// Bytes of a template that fit into the wait node.
pub(crate) const TEMPLATE_INLINE: usize = SIGNAL - TEMPLATE;

/// Nobody's.
pub(crate) const FREE: u32 = 0;
/// Somebody's, linked nowhere: before waiting, or after a tuple was handed over.
pub(crate) const OWNED: u32 = 1;
/// In a chain.
pub(crate) const LINKED: u32 = 2;

/// Longest sleep without looking around: a put that died between its commit and its wake-up, or a dead
/// process, is noticed after this (rule L5).
pub(crate) const SLICE: Duration = Duration::from_millis(SLICE_MS);
/// The same in milliseconds.
pub(crate) const SLICE_MS: u64 = 100;

/// The wait node of number `number`, from 1.
#[inline]
pub(crate) fn node<'m>(view: &View<'m>, number: u32) -> WaitNode<'m> {
    if number == 0 || number as usize > WAITERS_MAX {
        // Zeros that are nobody's.
        return view.at(0);
    }
    view.span(layout::node(number - 1))
}
