//! What changed in a space, as its journal tells it to whoever keeps it elsewhere (rule C4).
//!
//! A journalled space has a ring in its segment. Every step that changes which tuples are there appends one *record*
//! to it: all changes of the step, in order, in the very section that makes them. So a record is there if and only if
//! its changes happened, whoever is killed when. A transaction, a `put_all`, a `swap` is one step. The order of
//! records is the order of commits: nothing that builds upon a change stands before it.
//!
//! What is not in it: claims, what a transaction has taken before it commits, who waits. They end with the segment, and
//! their tuples are there again. A tuple that a put has handed over is `Put` by the put, and [`Change::Taken`] by the take
//! once that picks it up.
//!
//! How it is used (all of it in `face/journal.rs`):
//!
//! ```text
//! Engine::initialise_journalled(mapping, &limits, journal_bytes)     a new segment with a ring of so many bytes
//! engine.restore(kept, tuple)           fills it, in ascending order of ids, before anybody else attaches
//! engine.restored(next_id, next_fence)  says that this was all; ids and fences go on behind these numbers
//! engine.journal_position()             where this thread's last change of this space stands; 0: it has changed nothing
//! engine.try_drain()?                   the right to drain, if nobody has it: robust, one at a time
//!     drain.each(|position, change| ..)?    visits what is not drained yet, oldest first; nothing is freed
//!     drain.release(position)               frees it up to there, and wakes who waits for that
//!     Drain::ends(&[&drain, ..])?           one moment of several journals, for steps over several spaces
//! engine.wait_drained(position, before, until)  waits until somebody has released `position`, or may drain
//! engine.set_drainer(|engine| ..)       what an operation does that finds the ring full
//! ```

use std::time::Duration;

use tupelo_tuple::TupleView;

use crate::base::clock;
use crate::base::terms::LeaseTerms;
use crate::store::history::Attempt;
use crate::store::keys::RequestKey;

/// One change. Ids name tuples: each is given once in the life of a file, since `Engine::restore` gives a tuple
/// the id that it had. Of two tuples of one shape the one with the smaller id is older (rule T2).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change<'a> {
    /// A tuple is there. It may be in the hands of a waiter already.
    Put {
        /// Its id, larger than that of any tuple of its shape before it.
        id: u64,
        /// The tuple, with its class. `tupelo_tuple::encoding::encode_tuple_view` makes its canonical encoding (V4).
        tuple: TupleView<'a>,
        /// When it is there.
        terms: KeptTerms,
    },
    /// A tuple that was put for later is visible (rule L3): from now on its id is `new_id`, since it is the youngest.
    Visible {
        /// Its id until now.
        id: u64,
        /// Its id from now on.
        new_id: u64,
        /// When it is there, from now on.
        terms: KeptTerms,
    },
    /// A tuple is gone: taken, consumed with a claim, dropped for others, cancelled, or its lease has ended.
    Taken {
        /// Its id.
        id: u64,
    },
    /// The lease of a tuple was moved (rule L2).
    Lease {
        /// Its id.
        id: u64,
        /// When it is there, from now on.
        terms: KeptTerms,
    },
    /// An attempt at a tuple has failed, or it was put back from the dead ones (rules K2, K5): what is known of its attempts now.
    Attempts {
        /// Its id.
        id: u64,
        /// That.
        attempts: Attempts,
    },
    /// What the keyed request is answered whose put stands before it in the record (rule C3): who keeps the tuple keeps the key.
    Answered(RequestKey),
    /// The step happened together with one in another journalled space, whose record is in the journal there: whoever keeps one of them
    /// keeps both, or neither. It stands before all other changes of the record.
    Shared {
        /// The segment of the other space, by its number that no other has.
        with: u128,
    },
}

/// When a tuple is visible, in nanoseconds since 1970 by the wall clock of the program that reads this. While a space
/// is used, its ends go by the monotonic clock (rule L4), which does not outlive the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptTerms {
    /// From when on; `None`: since it was put.
    pub hidden_until_ns: Option<u64>,
    /// Until when; `None`: for ever. Of a tuple that is not visible yet: when its lease will end, if it is made
    /// visible on time.
    pub ends_at_ns: Option<u64>,
}

impl KeptTerms {
    /// What is left of them now, in lengths; `None` if the lease has ended.
    pub fn left(&self) -> Option<LeaseTerms> {
        let now_ns = clock::wall_ns();
        let after_ns = self.hidden_until_ns.map_or(0, |from_ns| from_ns.saturating_sub(now_ns));
        let after = (after_ns != 0).then(|| Duration::from_nanos(after_ns));
        let lease = match self.ends_at_ns {
            None => None,
            Some(until_ns) => {
                let left_ns = until_ns.saturating_sub(now_ns).saturating_sub(after_ns);
                if left_ns == 0 {
                    return None;
                }
                Some(Duration::from_nanos(left_ns))
            }
        };
        Some(LeaseTerms { lease, after })
    }
}

/// What became of the attempts at a tuple.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// How many have failed.
    pub failed: u32,
    /// Whether the last one was its last: it is a dead letter.
    pub is_dead: bool,
    /// Why they failed, as far as it is kept: the newest are.
    pub reasons: Vec<Attempt>,
}

/// What a tuple had when its space was used last, for `Engine::restore`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Its id.
    pub id: u64,
    /// When it is there.
    pub terms: KeptTerms,
    /// What became of the attempts at it.
    pub attempts: Attempts,
}

/// How far a journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalStat {
    /// The position of the last record; 0 if there is none yet. Positions count bytes, and only their order means anything.
    pub appended: u64,
    /// The position up to which records were released.
    pub drained: u64,
    /// How many bytes the ring has.
    pub bytes: u64,
    /// In how many batches records were released.
    pub batches: u64,
}
