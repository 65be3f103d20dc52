//! What a request has left open for its client: leases, claims, transactions, subscriptions, scans. It ends with the connection (rule L5).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tupelo::{Claim, Error, Lease, Scan, Transaction};
use tupelo_protocol::Fault;

use crate::answers::Answer;
use crate::asked::events::HostedSubscription;
use crate::hosted::Hosted;
use crate::session::Session;

/// Bytes of one connection that are put and not there yet: under claims, in transactions; and of what transactions have
/// taken and the client has not acknowledged (rule B2).
const PENDING_BYTES_MAX: usize = 256 << 20;
/// Why an attempt has failed whose holder's connection has ended.
const GONE: &str = "the connection of its holder has ended";

/// What a request has left open.
pub(crate) enum Kept {
    Lease(Lease),
    /// With the space that it is in.
    Claim(Claim, Rc<Hosted>, Share),
    Transaction(Open),
    Subscription(Box<HostedSubscription>),
    Scan(RefCell<Scan>, Last),
}

/// The last answer of what is told once: over another connection of the session the same request has it again.
#[derive(Default)]
pub(crate) struct Last {
    answer: RefCell<Option<(u64, Answer)>>,
}

impl Last {
    /// What the request was answered before.
    pub(crate) fn of(&self, id: u64) -> Option<Answer> {
        let answer = self.answer.borrow();
        answer.as_ref().filter(|(last, _)| *last == id).map(|(_, answer)| answer.clone())
    }

    /// Notes what a request is answered, if its session may need it again.
    pub(crate) fn note(&self, session: &Session, id: u64, answer: &Answer) {
        if session.outlives.get() {
            self.answer.replace(Some((id, answer.clone())));
        }
    }

    /// What the request was answered before, or else what it is answered now.
    pub(crate) fn once(
        &self,
        session: &Session,
        id: u64,
        answer: impl FnOnce() -> Result<Answer, Fault>,
    ) -> Result<Answer, Fault> {
        if let Some(answer) = self.of(id) {
            return Ok(answer);
        }
        let answer = answer()?;
        self.note(session, id, &answer);
        Ok(answer)
    }
}

/// A transaction, and the spaces that it is over.
pub(crate) struct Open {
    pub(crate) transaction: Transaction,
    pub(crate) spaces: Vec<Rc<Hosted>>,
    pub(crate) puts: Share,
}

impl Kept {
    /// Whether nothing is left of it that could be ended.
    pub(crate) fn is_ended(&self) -> bool {
        match self {
            Self::Lease(_) | Self::Subscription(_) | Self::Scan(..) => false,
            Self::Claim(claim, ..) => claim.is_settled(),
            Self::Transaction(open) => open.transaction.is_ended(),
        }
    }

    /// The client lets it go: it was interrupted before it had it, or is done with it.
    pub(crate) fn let_go(&self) {
        // What can not be given back is back already, or the space says why at the next call.
        let _ = match self {
            Self::Lease(_) | Self::Subscription(_) | Self::Scan(..) => Ok(()),
            Self::Claim(claim, ..) => claim.give_back(),
            Self::Transaction(open) => open.transaction.abort(),
        };
    }

    /// The connection has ended: that of a claim is a failed attempt, as the death of a holder is (rule K5).
    pub(crate) fn end(&self) {
        if let Self::Claim(claim, ..) = self {
            let _ = claim.abort(GONE);
        } else {
            self.let_go();
        }
    }
}

/// The bytes that a connection has pending.
#[derive(Clone, Default)]
pub(crate) struct Pending {
    bytes: Rc<Cell<usize>>,
}

/// The part of them that one claim or transaction has. Dropped, it is none.
pub(crate) struct Share {
    all: Pending,
    own: Cell<usize>,
}

impl Pending {
    /// No part yet.
    pub(crate) fn share(&self) -> Share {
        Share { all: self.clone(), own: Cell::new(0) }
    }
}

impl Share {
    /// Adds so many bytes.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the connection would have more than it may: nothing was added.
    pub(crate) fn add(&self, bytes: usize) -> Result<(), Fault> {
        let all = self.all.bytes.get() + bytes;
        if all > PENDING_BYTES_MAX {
            return Err(Fault::limit(
                format!(
                    "what one connection has put under claims and in transactions is limited to {PENDING_BYTES_MAX} bytes"
                ),
                "end some of these, or put less in each",
            ));
        }
        self.all.bytes.set(all);
        self.own.set(self.own.get() + bytes);
        Ok(())
    }

    /// What was added is not pending any more.
    pub(crate) fn clear(&self) {
        self.all.bytes.set(self.all.bytes.get() - self.own.take());
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Tuples that a client was given, and may give back.
pub(crate) enum Held {
    /// One.
    One(Claim),
    /// Those of one moment.
    Many(Transaction),
    /// Those that a transaction has taken.
    Inside {
        /// The transaction, which is one.
        kept: Rc<Kept>,
        /// In which of its spaces.
        at: usize,
        /// What it has taken.
        tuples: Vec<u8>,
        /// What that counts for.
        _share: Share,
    },
}

impl Held {
    /// They are the client's.
    pub(crate) fn done(&self) -> Result<(), Error> {
        match self {
            Self::One(claim) => claim.done(),
            Self::Many(transaction) => transaction.commit(),
            Self::Inside { .. } => Ok(()),
        }
    }

    /// They go back as they were; to a transaction, as if it had put them.
    pub(crate) fn give_back(&self) {
        // What can not be given back is back already, or the space says why at the next call.
        let _ = match self {
            Self::One(claim) => claim.give_back(),
            Self::Many(transaction) => transaction.abort(),
            Self::Inside { kept, at, tuples, .. } => {
                crate::asked::inside::put_back(kept, *at, tuples);
                Ok(())
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::{PENDING_BYTES_MAX, Pending};

    #[test]
    fn what_is_pending_is_bounded_for_all_together_and_ends_with_what_has_put_it_b2() {
        let pending = Pending::default();
        let (one, other) = (pending.share(), pending.share());
        one.add(PENDING_BYTES_MAX - 10).unwrap();
        other.add(10).unwrap();
        let refused = other.add(1).unwrap_err();
        assert!(refused.code == "TUP-017" && refused.message.contains("268435456"), "{refused}");
        drop(one);
        other.add(PENDING_BYTES_MAX - 10).unwrap();
        other.clear();
        assert_eq!(pending.bytes.get(), 0);
    }
}
