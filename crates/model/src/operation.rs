//! Operations and their answers as data: what a test sends to an engine, and what came back.

use crate::order::shape;
use crate::scan::{Scanned, same_multiset};
use crate::waiting::Want;
use crate::{Order, Template, Tuple};

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

/// An operation with its arguments, which are those of the method of [`crate::Space`] that is named.
///
/// What takes time is several operations that share a label, so that others can come in between.
#[derive(Clone)]
#[expect(missing_docs, reason = "the fields are the arguments of the methods")]
pub enum Operation {
    /// `put`.
    Put { tuple: Tuple },
    /// `put_all`.
    PutAll { tuples: Vec<Tuple> },
    /// `put_if_absent`.
    PutIfAbsent { tuple: Tuple, unless: Template },
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
    /// `end_scan`: the scan goes on to its end and answers all that it saw.
    EndScan { label: String },
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
    /// Several tuples: those of one shape in their order (T2).
    Tuples(Vec<Tuple>),
    /// Several tuples in any order.
    Unordered(Vec<Tuple>),
    /// What a scan may have returned: agrees with each [`Answer::Unordered`] that it allows.
    Scanned(Scanned),
    /// A number of tuples.
    Count(u64),
    /// Yes or no.
    Flag(bool),
    /// It is refused, with this code, and had no effect.
    Refused(String),
}

impl Answer {
    /// Whether the rules see the same answer: tuples of different shapes have no order among each other,
    /// and what is unordered has none at all.
    pub fn agrees_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Done, Self::Done) | (Self::Nothing, Self::Nothing) => true,
            (Self::Tuple(a), Self::Tuple(b)) => a == b,
            (Self::Tuples(a), Self::Tuples(b)) => by_shape(a) == by_shape(b),
            (Self::Unordered(a), Self::Unordered(b)) => same_multiset(a, b),
            (Self::Scanned(scanned), Self::Unordered(tuples)) => scanned.allows(tuples),
            (Self::Count(a), Self::Count(b)) => a == b,
            (Self::Flag(a), Self::Flag(b)) => a == b,
            (Self::Refused(a), Self::Refused(b)) => a == b,
            _ => false,
        }
    }

    /// The tuple, if the answer is one.
    pub fn into_tuple(self) -> Option<Tuple> {
        match self {
            Self::Tuple(tuple) => Some(tuple),
            _ => None,
        }
    }
}

fn by_shape(tuples: &[Tuple]) -> Vec<&Tuple> {
    let mut sorted: Vec<&Tuple> = tuples.iter().collect();
    sorted.sort_by_key(|tuple| shape(tuple)); // stable: the order within a shape stays
    sorted
}
