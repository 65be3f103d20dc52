//! What is asked of a space: the verbs, as data.

mod bytes;
mod frame;
mod parts;

use std::time::Duration;

use tupelo_tuple::Order;

pub use bytes::{TemplateBytes, Tuples, TuplesIter};

/// One call on a space, or on what an earlier one has left open there. Each is one step there (rule O1), but for the wait
/// of those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Stores tuples, all or none (rules O2, O5); unless something matches (O8). Answered by a count.
    ///
    /// On a claim: they appear when it is done (K4). In a transaction: when that commits (X2).
    Put {
        /// What is stored.
        tuples: Tuples<'a>,
        /// When it appears and disappears (rules L1, L3).
        terms: PutTerms,
        /// Store nothing if there is a match of this.
        unless: Option<TemplateBytes<'a>>,
    },
    /// Stores one tuple, and leaves its lease open (rules L1 to L3). Answered by a count; by nothing if something matches `unless`.
    PutLeased {
        /// What is stored.
        tuple: Tuples<'a>,
        /// When it appears and disappears.
        terms: PutTerms,
        /// Store nothing if there is a match of this (O8).
        unless: Option<TemplateBytes<'a>>,
    },
    /// Takes or reads matches (rules O3, O4, O6). Answered by tuples.
    Find {
        /// Which of the two.
        action: Action,
        /// Which of several matches.
        order: Order,
        /// How many.
        amount: Amount,
        /// Whether to join the wait queue if there is none. For one match alone.
        waits: bool,
        /// What matches.
        template: TemplateBytes<'a>,
    },
    /// Claims a match, and leaves the claim open (rule K1). Answered by two tuples: the fence and the attempt, and the match.
    Claim {
        /// Which of several matches.
        order: Order,
        /// How long the holder may be silent.
        ttl: Duration,
        /// After so many attempts that failed the tuple is dead (rule K5); `None`: never.
        attempts_max: Option<u32>,
        /// Whether to join the wait queue if there is none.
        waits: bool,
        /// What matches.
        template: TemplateBytes<'a>,
    },
    /// Replaces the oldest match (rule O8). Answered by the old tuple.
    Swap {
        /// What is replaced.
        template: TemplateBytes<'a>,
        /// By this one tuple.
        to: Tuples<'a>,
    },
    /// Counts the matches (rule O6).
    Count {
        /// What is counted.
        template: TemplateBytes<'a>,
    },
    /// Asks whether a match is there, or held (rule O9). Answered by a count of 0 or 1.
    Present {
        /// What is looked for.
        template: TemplateBytes<'a>,
    },
    /// Waits to be told that something has happened to a match; perhaps in vain. Answered again and again: after each
    /// answer by a request to [look](crate::Request::Look).
    Watch {
        /// Where it happens.
        template: TemplateBytes<'a>,
        /// What happens.
        on: Watched,
    },
    /// Joins the wait queue for room in a full space (rule B1), and is told when a put is worth trying, as a watch is. A put on this
    /// request, or a claim that is done in its grant, may use the room that is made for it.
    Room,
    /// The tuples whose last attempt has failed (rule K5). Answered by two tuples for each: how many attempts and why they
    /// failed, and the tuple.
    Dead {
        /// Which of them.
        template: TemplateBytes<'a>,
    },
    /// Puts dead tuples back (rule K5). Answered by a count.
    Requeue {
        /// Which of them.
        template: TemplateBytes<'a>,
    },
    /// Begins a transaction over the space and `others`, and leaves it open (rule X1).
    Begin {
        /// The other spaces, of the same server.
        others: SpaceIds<'a>,
        /// How long it may be open.
        ttl: Duration,
    },
    /// Begins to hear what happens to matches (rules N1 to N3), and leaves that open.
    Subscribe {
        /// Of which tuples.
        template: TemplateBytes<'a>,
        /// Of what: a bit for each kind of event (1 put, 2 take, 4 expire, 8 return).
        kinds: u32,
        /// How many events may wait.
        events_max: usize,
        /// In how many bytes; `None`: as the server likes.
        bytes_max: Option<usize>,
    },
    /// Begins to go through the matches (rule O6), and leaves that open.
    Scan {
        /// Which.
        template: TemplateBytes<'a>,
    },
    /// Moves or copies the matches of one moment into another space (rule O7). Answered by a count.
    Transfer {
        /// Which other space.
        to: SpaceId,
        /// Whether they are moved.
        moves: bool,
        /// What is transferred.
        template: TemplateBytes<'a>,
    },
    /// The figures of a space. Answered by tuples.
    Stat,
    /// The callers that wait for a tuple. Answered by tuples.
    Blocked,
    /// The tuples of each shape by their first field, where that is a text. Answered by tuples.
    Names,
    /// Why a template matches nothing, or how much it matches. Answered by tuples.
    Explain {
        /// The template.
        template: TemplateBytes<'a>,
    },
    /// The next matches of a scan. Answered by tuples; by nothing at the end.
    Next {
        /// So many at most.
        at_most: usize,
    },
    /// Waits for events of a subscription. Answered by two tuples for each: what happened, its number and how many were
    /// missed before it; and the tuple.
    Events {
        /// So many at most.
        at_most: usize,
    },
    /// How many events of a subscription wait. Answered by a count.
    Waiting,
    /// Asks for or moves the end of a lease or a claim (rules L2, K2).
    Term(Term),
    /// Ends a claim (rules K2 to K4) or a transaction (X1, X5).
    Settle(Settlement<'a>),
    /// Asks whether a transaction has read something here. Answered by a count of 0 or 1.
    HasRead,
    /// Says of a take of an earlier session, whose key the request has, whether its tuple has arrived: for who has said so to a server
    /// that has ended. If it has not, the tuple goes back. Answered by a count of 1 if the tuple was held, else 0.
    Taken {
        /// Whether it has.
        arrived: bool,
    },
    /// Refuses what could never be put: for who changes something else first.
    Check {
        /// What is to be put.
        tuples: Tuples<'a>,
    },
}

/// When a tuple appears and disappears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PutTerms {
    /// How long it stays once it is visible; `None`: for ever.
    pub lease: Option<Duration>,
    /// How long until it is visible.
    pub after: Option<Duration>,
}

/// What is done with a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is copied.
    Read,
    /// It is removed.
    Take,
}

/// How many matches are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// One.
    One,
    /// Those of one moment; none at all if there are not so many.
    Many {
        /// So many at least.
        at_least: usize,
        /// So many at most; `None`: all.
        at_most: Option<usize>,
    },
}

/// What is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A match was put.
    Put,
    /// A match was removed.
    Removal,
}

/// What becomes of the end of a lease or a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// It stays. Answered by how long that is, in nanoseconds; by nothing if it never comes. Of a lease.
    Left,
    /// It comes so long from now; `None`: never, for a lease.
    Renew(Option<Duration>),
    /// It comes so long from now, or later if it was to come later.
    Prolong(Duration),
    /// It comes now: the tuple is removed. Of a lease.
    Cancel,
}

/// How a claim or a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement<'a> {
    /// It is done, or commits; in the grant of a request for [room](Operation::Room).
    Done {
        /// The request.
        grant: Option<u64>,
    },
    /// It is aborted: the attempt has failed.
    Abort {
        /// Why.
        reason: &'a str,
    },
    /// The claimed tuple goes back as if it had not been claimed.
    GiveBack,
    /// What was put under the claim is discarded, and the claim goes on. Answered by how many tuples that were.
    Discard,
}

/// A space that a client has open: the client's number, and that of the space on its connection. A server refuses those of
/// other connections: a client that has lost one, and has spaces by numbers of the next, names no wrong ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceId {
    /// The client, as it was named in the handshake.
    pub client: u64,
    /// The space.
    pub space: u32,
}

/// Several spaces: those of a request that is written, or that was read.
#[derive(Clone, Copy, Debug)]
pub enum SpaceIds<'a> {
    /// By themselves.
    Plain(&'a [SpaceId]),
    /// By their encoding, which was checked.
    Encoded(&'a [u8]),
}

/// What an operation is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A space, by its number on the connection.
    Space(u32),
    /// What a request has left open: a lease, a claim, a transaction, a place in the wait queue for room.
    Kept {
        /// The request.
        request: u64,
        /// Which of the spaces of a transaction, from 0; else 0.
        at: u32,
    },
}

impl PartialEq for SpaceIds<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.to_vec() == other.to_vec()
    }
}

impl Eq for SpaceIds<'_> {}

impl Operation<'_> {
    /// Whether it may change something, so that it must not happen twice if it is sent twice.
    pub const fn changes(&self) -> bool {
        match self {
            Self::Put { .. }
            | Self::PutLeased { .. }
            | Self::Find { action: Action::Take, .. }
            | Self::Claim { .. }
            | Self::Swap { .. }
            | Self::Requeue { .. }
            | Self::Transfer { .. }
            | Self::Taken { .. }
            | Self::Settle(_) => true,
            Self::Term(term) => !matches!(term, Term::Left),
            Self::Find { action: Action::Read, .. }
            | Self::Count { .. }
            | Self::Present { .. }
            | Self::Watch { .. }
            | Self::Room
            | Self::Dead { .. }
            | Self::Begin { .. }
            | Self::Subscribe { .. }
            | Self::Scan { .. }
            | Self::Stat
            | Self::Blocked
            | Self::Names
            | Self::Explain { .. }
            | Self::Next { .. }
            | Self::Events { .. }
            | Self::Waiting
            | Self::HasRead
            | Self::Check { .. } => false,
        }
    }

    /// What people call it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Put { unless: Some(_), .. } | Self::PutLeased { unless: Some(_), .. } => {
                "put_if_absent"
            }
            Self::Put { .. } | Self::PutLeased { .. } => "put",
            Self::Find { action: Action::Take, .. } | Self::Taken { .. } => "take",
            Self::Find { action: Action::Read, .. } => "read",
            Self::Claim { .. } => "claim",
            Self::Swap { .. } => "swap",
            Self::Count { .. } => "count",
            Self::Present { .. } => "wait_none",
            Self::Watch { .. } => "watch",
            Self::Room => "room",
            Self::Dead { .. } => "dead",
            Self::Requeue { .. } => "requeue",
            Self::Begin { .. } => "transaction",
            Self::Subscribe { .. } => "subscribe",
            Self::Scan { .. } => "scan",
            Self::Transfer { moves: true, .. } => "move_to",
            Self::Transfer { .. } => "copy_to",
            Self::Stat => "stat",
            Self::Blocked => "blocked",
            Self::Names => "names",
            Self::Explain { .. } => "explain",
            Self::Next { .. } => "next",
            Self::Events { .. } => "events",
            Self::Waiting => "waiting",
            Self::Term(Term::Left) => "expires_in",
            Self::Term(Term::Cancel) => "cancel",
            Self::Term(_) => "renew",
            Self::Settle(Settlement::Done { .. }) => "done",
            Self::Settle(Settlement::Discard) => "discard_puts",
            Self::Settle(_) => "abort",
            Self::HasRead => "has_read",
            Self::Check { .. } => "check",
        }
    }
}
