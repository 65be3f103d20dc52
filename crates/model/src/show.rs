//! Operations and answers in one line each, tuples and templates in the text notation.

use std::fmt::{self, Display, Formatter};

use crate::history::Call;
use crate::operation::{Answer, Operation};
use crate::waiting::Want;
use crate::{Order, Tuple};

impl Display for Operation {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put { tuple } => write!(out, "put {tuple}"),
            Self::PutAll { tuples } => write!(out, "put_all {}", List(tuples)),
            Self::PutIfAbsent { tuple, unless } => {
                write!(out, "put_if_absent {tuple} unless {unless}")
            }
            Self::TryTake { template, order } => write!(out, "try_take {template} {order}"),
            Self::TryRead { template, order } => write!(out, "try_read {template} {order}"),
            Self::TakeNoWait { template, order } => write!(out, "take {template} {order}"),
            Self::ReadNoWait { template, order } => write!(out, "read {template} {order}"),
            Self::Count { template } => write!(out, "count {template}"),
            Self::Present { template } => write!(out, "present {template}"),
            Self::ReadAll { template, limit } => {
                write!(out, "read_all {template}{}", Limit(*limit))
            }
            Self::TakeAll { template, limit } => {
                write!(out, "take_all {template}{}", Limit(*limit))
            }
            Self::TryTakeMany { template, at_least, at_most } => {
                write!(out, "take_many {template} at least {at_least}, at most {at_most}")
            }
            Self::TrySwap { template, to } => write!(out, "try_swap {template} to {to}"),
            Self::MoveTo { template } => write!(out, "move_to {template}"),
            Self::CopyTo { template } => write!(out, "copy_to {template}"),
            Self::Start { label, want: Want::Take, template } => {
                write!(out, "start `{label}`: take {template}")
            }
            Self::Start { label, want: Want::Read, template } => {
                write!(out, "start `{label}`: read {template}")
            }
            Self::Served { label } => write!(out, "served `{label}`"),
            Self::Finish { label } => write!(out, "finish `{label}`"),
            Self::Cancel { label } => write!(out, "cancel `{label}`"),
            Self::BeginScan { label, template } => write!(out, "begin_scan `{label}`: {template}"),
            Self::ContinueScan { label, at_most } => {
                write!(out, "continue_scan `{label}` by {at_most}")
            }
            Self::EndScan { label } => write!(out, "end_scan `{label}`"),
        }
    }
}

/// As it is shown: what a failed test prints is read by people.
impl fmt::Debug for Operation {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, out)
    }
}

impl Display for Answer {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => write!(out, "done"),
            Self::Nothing => write!(out, "nothing"),
            Self::Tuple(tuple) => write!(out, "{tuple}"),
            Self::Tuples(tuples) => write!(out, "{}", List(tuples)),
            Self::Unordered(tuples) => write!(out, "{} in any order", List(tuples)),
            Self::Scanned(scanned) => {
                let meanwhile = scanned.meanwhile.iter().map(|stored| stored.tuple.clone());
                let meanwhile: Vec<Tuple> = meanwhile.collect();
                write!(out, "{} and perhaps {}", List(&scanned.least()), List(&meanwhile))
            }
            Self::Count(count) => write!(out, "{count}"),
            Self::Flag(flag) => write!(out, "{flag}"),
            Self::Refused(code) => write!(out, "refused: {code}"),
        }
    }
}

impl Display for Call {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { operation, answer, invoked, returned, .. } = self;
        write!(out, "{invoked:>4} to {returned:<4} {operation} -> {answer}")
    }
}

impl Display for Order {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fifo => write!(out, "fifo"),
            Self::Lifo => write!(out, "lifo"),
            Self::Random => write!(out, "random"),
            Self::Any => write!(out, "any"),
            Self::Max(field) => write!(out, "max {field}"),
            Self::Min(field) => write!(out, "min {field}"),
        }
    }
}

/// Tuples one after the other.
struct List<'a>(&'a [Tuple]);

impl Display for List<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let tuples: Vec<String> = self.0.iter().map(Tuple::to_string).collect();
        write!(out, "[{}]", tuples.join(", "))
    }
}

struct Limit(Option<usize>);

impl Display for Limit {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |limit| write!(out, " limit {limit}"))
    }
}
