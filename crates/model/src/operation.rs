//! Operations and their answers as data: a test sends operations to an engine, and the answers come back.

use crate::order::shape;
use crate::scan::{Scanned, same_multiset};
use crate::waiting::Want;
use crate::{ClaimTerms, DeadLetterRecord, Event, EventKind, LeaseTerms, Order, Template, Tuple};

/// Which of two spaces an operation is for. Two, so that tuples can be moved between them (O7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Place {
    /// The space that nearly all is about.
    #[default]
    Main,
    /// The other one.
    Other,
}

impl Place {
    /// The space that this one is not.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Main => Self::Other,
            Self::Other => Self::Main,
        }
    }
}

/// An operation with its arguments, which are those of the [`crate::Space`] method of that name.
///
/// What takes time is several operations that share a label, so that others can come in between.
#[derive(Clone)]
#[expect(missing_docs, reason = "the fields are the arguments of the methods")]
pub enum Operation {
    /// `put`.
    Put { tuple: Tuple },
    /// `put_all`.
    PutAll { tuples: Vec<Tuple> },
    /// `put_if_absent`, or `put_if_absent_leased` if the terms say something.
    PutIfAbsent { tuple: Tuple, unless: Template, terms: LeaseTerms },
    /// `try_take`.
    TryTake { template: Template, order: Order },
    /// `try_read`.
    TryRead { template: Template, order: Order },
    /// `take`, a blocking call, with a timeout of 0: it does not wait (O3).
    TakeNoWait { template: Template, order: Order },
    /// `read`, a blocking call, with a timeout of 0: it does not wait (O3).
    ReadNoWait { template: Template, order: Order },
    /// `count`.
    Count { template: Template },
    /// `present`.
    Present { template: Template },
    /// `read_all`.
    ReadAll { template: Template, limit: Option<usize> },
    /// `take_all`.
    TakeAll { template: Template, limit: Option<usize> },
    /// `try_take_many`.
    TryTakeMany { template: Template, at_least: usize, at_most: usize },
    /// `try_swap`.
    TrySwap { template: Template, to: Tuple },
    /// `move_to`, from the operation's space to the other one.
    MoveTo { template: Template },
    /// `copy_to`, from the operation's space to the other one.
    CopyTo { template: Template },
    /// A search that takes or reads, from the operation's space on, with a timeout of 0: it does not wait (O10).
    Search { template: Template, want: Want },
    /// `wait`: a blocking take or read begins.
    Start { label: String, want: Want, template: Template },
    /// `served`: whether the blocking call can return.
    Served { label: String },
    /// `finish`: the blocking call returns.
    Finish { label: String },
    /// `cancel`: the blocking call gives up.
    Cancel { label: String },
    /// `begin_scan`.
    BeginScan { label: String, template: Template },
    /// The scan goes on by about so many tuples.
    ContinueScan { label: String, at_most: usize },
    /// `end_scan`: the scan goes on to its end and answers every tuple that it saw.
    EndScan { label: String },
    /// `put_leased`: the label is the lease's.
    PutLeased { label: String, tuple: Tuple, terms: LeaseTerms },
    /// `put_all_leased`.
    PutAllLeased { tuples: Vec<Tuple>, terms: LeaseTerms },
    /// `renew`.
    Renew { label: String, lease_ms: Option<u64> },
    /// `cancel_lease`.
    CancelLease { label: String },
    /// `lease_ends`: whether the tuple's lease ends at all.
    LeaseEnds { label: String },
    /// `try_claim`, as a blocking call with a timeout of 0; the label is the claim's.
    Claim { label: String, template: Template, order: Order, terms: ClaimTerms },
    /// `finish_claim`: the blocking call returns with a claim.
    FinishClaim { call: String, label: String, terms: ClaimTerms },
    /// A tuple is put under the claim: `done` brings it along.
    PutUnder { label: String, tuple: Tuple },
    /// `done`.
    Done { label: String },
    /// `abort`.
    Abort { label: String, reason: String },
    /// `extend`.
    Extend { label: String, ttl_ms: u64 },
    /// Whether a claim's fence is greater than that of an earlier one (K1).
    Newer { label: String, than: String },
    /// `dead`.
    Dead { template: Template },
    /// `requeue`.
    Requeue { template: Template },
    /// A transaction over both spaces begins.
    Begin { label: String, ttl_ms: u64 },
    /// Another operation, as the transaction does it: an operation that puts, takes, reads or counts. Or `finish`, of a
    /// take, with a tuple of the transaction's own.
    Inside { label: String, operation: Box<Operation> },
    /// `commit`.
    Commit { label: String },
    /// `roll_back`.
    RollBack { label: String },
    /// `subscribe`: the label is the subscription's.
    Subscribe { label: String, template: Template, on: Vec<EventKind>, buffer: usize },
    /// `events`: all waiting events.
    Events { label: String },
    /// `unsubscribe`.
    Unsubscribe { label: String },
    /// `pass`, in both spaces: so much time and perhaps a little more.
    Pass { ms: u64 },
}

/// Soon-due events are over after [`PASS_MS`]. Nothing else that is ever due is less than minutes away. So it does not
/// matter that an engine's time is a little later than it was told to be.
pub const BRIEF_MS: u64 = 1;

/// Time that is certainly longer than [`BRIEF_MS`], rounded up, from when an operation has returned.
pub const PASS_MS: u64 = 3;

impl Operation {
    /// Whether it makes something due that soon that an engine may let it happen before the next operation.
    pub fn is_brief(&self) -> bool {
        let is_brief = |length_ms: &Option<u64>| *length_ms == Some(BRIEF_MS);
        match self {
            Self::PutLeased { terms, .. }
            | Self::PutAllLeased { terms, .. }
            | Self::PutIfAbsent { terms, .. } => {
                is_brief(&terms.lease_ms) || is_brief(&terms.after_ms)
            }
            Self::Renew { lease_ms, .. } => is_brief(lease_ms),
            Self::Claim { terms, .. } | Self::FinishClaim { terms, .. } => terms.ttl_ms == BRIEF_MS,
            Self::Extend { ttl_ms, .. } | Self::Begin { ttl_ms, .. } => *ttl_ms == BRIEF_MS,
            _ => false,
        }
    }
}

/// What an operation answers.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It is done, and there is nothing to say.
    Done,
    /// Nothing matches, or not enough.
    Nothing,
    /// A tuple.
    Tuple(Tuple),
    /// Several tuples: tuples of one shape in their order (T2).
    Tuples(Vec<Tuple>),
    /// Several tuples in any order.
    Unordered(Vec<Tuple>),
    /// The allowed result of a scan: agrees with each [`Answer::Unordered`] that it allows.
    Scanned(Scanned),
    /// A number of tuples.
    Count(u64),
    /// Yes or no.
    Flag(bool),
    /// A claim.
    Claimed {
        /// Its tuple.
        tuple: Tuple,
        /// Which attempt at the tuple it is, from 1.
        attempt: usize,
    },
    /// Dead tuples: tuples of one shape in their order.
    Dead(Vec<DeadLetterRecord>),
    /// Events: of the tuples of one shape in its order. (Of several shapes also. But a call that takes or moves tuples
    /// of several shapes does so in any order of the shapes, which the model does not follow.)
    Events(Vec<Event>),
    /// It is refused, with this code, and had no effect.
    Refused(String),
}

impl Answer {
    /// Whether the rules see the same answer: tuples of different shapes have no order among each other, and unordered
    /// answers have none at all.
    pub fn agrees_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Done, Self::Done) | (Self::Nothing, Self::Nothing) => true,
            (Self::Tuple(a), Self::Tuple(b)) => a == b,
            (Self::Tuples(a), Self::Tuples(b)) => by_shape(a) == by_shape(b),
            (Self::Unordered(a), Self::Unordered(b)) => same_multiset(a, b),
            (Self::Scanned(scanned), Self::Unordered(tuples)) => scanned.allows(tuples),
            (Self::Count(a), Self::Count(b)) => a == b,
            (Self::Flag(a), Self::Flag(b)) => a == b,
            (Self::Claimed { tuple, attempt }, Self::Claimed { tuple: b, attempt: of_b }) => {
                (tuple, attempt) == (b, of_b)
            }
            (Self::Dead(a), Self::Dead(b)) => {
                let a = in_groups(a, |dead: &DeadLetterRecord| shape(&dead.tuple));
                let b = in_groups(b, |dead: &DeadLetterRecord| shape(&dead.tuple));
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.agrees_with(b))
            }
            (Self::Events(a), Self::Events(b)) => events_agree(a, b),
            (Self::Refused(a), Self::Refused(b)) => a == b,
            _ => false,
        }
    }

    /// The tuple, if the answer is one.
    pub fn into_tuple(self) -> Option<Tuple> {
        match self {
            Self::Tuple(tuple) | Self::Claimed { tuple, .. } => Some(tuple),
            _ => None,
        }
    }
}

/// Whether the same happened to the tuples of each shape, with the same numbers in all.
pub(crate) fn events_agree(a: &[Event], b: &[Event]) -> bool {
    let numbers = |events: &[Event]| -> Vec<_> {
        events.iter().map(|event| (event.sequence, event.missed)).collect()
    };
    let of_a = in_groups(a, |event: &Event| shape(&event.tuple));
    let of_b = in_groups(b, |event: &Event| shape(&event.tuple));
    let same = |(a, b): (&&Event, &&Event)| (a.kind, &a.tuple) == (b.kind, &b.tuple);
    numbers(a) == numbers(b) && of_a.iter().zip(&of_b).all(same)
}

fn by_shape(tuples: &[Tuple]) -> Vec<&Tuple> {
    in_groups(tuples, shape)
}

fn in_groups<'a, T, K: Ord>(all: &'a [T], key: impl Fn(&'a T) -> K) -> Vec<&'a T> {
    let mut sorted: Vec<&T> = all.iter().collect();
    sorted.sort_by_key(|one| key(one)); // stable: the order within a group stays
    sorted
}
