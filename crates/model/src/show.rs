//! Operations and answers in one line each, tuples and templates in the text notation.

use std::fmt::{self, Display, Formatter};

use crate::history::Call;
use crate::operation::{Answer, Operation};
use crate::waiting::Want;
use crate::{ClaimTerms, DeadLetterRecord, Event, LeaseTerms, Order, Tuple};

impl Display for Operation {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put { tuple } => write!(out, "put {tuple}"),
            Self::PutAll { tuples } => write!(out, "put_all {}", List(tuples)),
            Self::PutIfAbsent { tuple, unless, terms } => {
                write!(out, "put_if_absent {tuple} unless {unless} {terms}")
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
            Self::Search { template, want: Want::Take } => write!(out, "search {template}"),
            Self::Search { template, want: Want::Read } => write!(out, "search to read {template}"),
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
            held => held.fmt_held(out),
        }
    }
}

impl Operation {
    /// The operations on leases, claims and transactions, and time.
    fn fmt_held(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::PutLeased { label, tuple, terms } => {
                write!(out, "put `{label}`: {tuple} {terms}")
            }
            Self::PutAllLeased { tuples, terms } => {
                write!(out, "put_all {} {terms}", List(tuples))
            }
            Self::Renew { label, lease_ms } => write!(out, "renew `{label}` {}", Length(*lease_ms)),
            Self::CancelLease { label } => write!(out, "cancel the lease `{label}`"),
            Self::LeaseEnds { label } => write!(out, "does the lease `{label}` end?"),
            Self::Claim { label, template, order, terms } => {
                write!(out, "claim `{label}`: {template} {order} {terms}")
            }
            Self::FinishClaim { call, label, terms } => {
                write!(out, "finish `{call}` as claim `{label}` {terms}")
            }
            Self::PutUnder { label, tuple } => write!(out, "put {tuple} under the claim `{label}`"),
            Self::Done { label } => write!(out, "done `{label}`"),
            Self::Abort { label, reason } => write!(out, "abort `{label}`: {reason:?}"),
            Self::Extend { label, ttl_ms } => write!(out, "extend `{label}` {ttl_ms} ms"),
            Self::Newer { label, than } => write!(out, "is claim `{label}` newer than `{than}`?"),
            Self::Dead { template } => write!(out, "dead {template}"),
            Self::Requeue { template } => write!(out, "requeue {template}"),
            Self::Begin { label, ttl_ms } => write!(out, "begin `{label}` for {ttl_ms} ms"),
            Self::Inside { label, operation } => write!(out, "inside `{label}`: {operation}"),
            Self::Commit { label } => write!(out, "commit `{label}`"),
            Self::RollBack { label } => write!(out, "roll back `{label}`"),
            Self::Subscribe { label, template, on, buffer } => {
                write!(out, "subscribe `{label}`: {template} on {}, {buffer} may wait", List(on))
            }
            Self::Events { label } => write!(out, "events `{label}`"),
            Self::Unsubscribe { label } => write!(out, "unsubscribe `{label}`"),
            Self::Pass { ms } => write!(out, "{ms} ms pass"),
            _ => unreachable!("the others are shown above"),
        }
    }
}

impl Display for LeaseTerms {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "for {}", Length(self.lease_ms))?;
        self.after_ms.map_or(Ok(()), |after_ms| write!(out, ", after {after_ms} ms"))
    }
}

impl Display for ClaimTerms {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "for {} ms", self.ttl_ms)?;
        self.attempts_max.map_or(Ok(()), |most| write!(out, ", at most {most} attempts"))
    }
}

impl Display for Event {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { kind, tuple, sequence, missed } = self;
        write!(out, "{sequence}: {kind} {tuple}")?;
        if *missed == 0 { Ok(()) } else { write!(out, " after {missed} that were missed") }
    }
}

impl Display for DeadLetterRecord {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { tuple, attempts, reasons } = self;
        write!(out, "{tuple} after {attempts} attempts: {reasons:?}")
    }
}

/// As it is shown: people read the output of a failed test.
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
            Self::Claimed { tuple, attempt } => write!(out, "{tuple}, attempt {attempt}"),
            Self::Dead(dead) => write!(out, "{}", List(dead)),
            Self::Events(events) => write!(out, "{}", List(events)),
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
            Self::MaxOf(name) => write!(out, "max {name}"),
            Self::MinOf(name) => write!(out, "min {name}"),
            Self::Min(field) => write!(out, "min {field}"),
        }
    }
}

/// One after the other.
struct List<'a, T>(&'a [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(T::to_string).collect();
        write!(out, "[{}]", all.join(", "))
    }
}

/// How long a lease is.
struct Length(Option<u64>);

impl Display for Length {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => write!(out, "ever"),
            Some(ms) => write!(out, "{ms} ms"),
        }
    }
}

struct Limit(Option<usize>);

impl Display for Limit {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |limit| write!(out, " limit {limit}"))
    }
}
