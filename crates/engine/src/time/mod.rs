//! What happens by itself when its time has come (rules L1, L3, L4, K2): a lease ends, a tuple becomes visible, a
//! claim runs out.
//!
//! There is no daemon. An operation that enters a partition first lets everything happen there that is due
//! ([`enter`](mod@enter), [`crate::recovery::enter`], [`crate::protocols::due`]). So it never sees a tuple whose lease
//! has ended, whether or not it was cleared away. Blocked callers see to it that it also happens while nobody comes by
//! ([`crate::waiters::timer_leader`]). What most probably ends before its time has its timer armed late ([`holds`]).
//!
//! Time is the machine's monotonic clock in milliseconds. An end is rounded up to the next one; that of a lease or a claim may be
//! the one after.

pub(crate) mod bounded_lock;
pub(crate) mod earliest;
pub(crate) mod enter;
pub(crate) mod holds;
pub(crate) mod list;
pub(crate) mod wheel;
