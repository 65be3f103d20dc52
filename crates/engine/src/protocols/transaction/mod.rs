//! Transactions (rules X1 to X7): operations on one or several spaces that take effect together, or not at all.
//!
//! A transaction's puts stay in its process until it commits ([`write_set`]). Its takes ([`take`]) are held in the space, in
//! no list that a search goes through ([`hold`]). Its reads get a lock that all others' takes pass over ([`lock`]).
//! Takes and reads carry a timer, the end of the transaction's lease, and the process that has them, so that they come
//! back by themselves. Nothing is locked while the caller computes. A commit locks every partition concerned, checks that
//! all tuples are still held, and changes everything in one step ([`commit`]).

mod absent;
mod commit;
mod finish;
pub(crate) mod hold;
pub(crate) mod lock;
mod part;
mod take;
mod verbs;
mod write_set;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use part::Part;
use smallvec::SmallVec;
use tupelo_shm::GROUP_MAX;
use tupelo_shm::process::fork_generation;

use crate::base::abortion::Abortion;
use crate::base::clock;
use crate::base::error::Error;
use crate::protocols::claim::{Handle, Tenure};

/// Of spaces, tuples and the like: most transactions have one of each, which needs no allocation.
type Few<T> = SmallVec<[T; 1]>;

/// Operations on spaces that take effect together. Dropped before it commits, it is aborted: everything is as it was
/// (rule X5).
pub struct Transaction {
    /// Boxed: a transaction that is begun moves from place to place, and a part is large.
    parts: Few<Box<Part>>,
    ttl: Duration,
    begin_ms: u64,
    term: Term,
    state: State,
    /// When it was made, as forks are counted: a child's copy of it is not the child's.
    fork_generation: u32,
}

/// What is noted of a transaction wherever it holds something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    /// When its lease ends.
    end_ms: u64,
    /// Which of its process's transactions it is.
    number: u32,
    /// The number of the handle through which it does.
    handle: u32,
}

impl Term {
    fn tenure(self) -> Tenure {
        Tenure { handle: self.handle, end_ms: self.end_ms }
    }
}

/// The moment at which the lease of a transaction ends.
#[derive(Clone, Copy, Debug)]
pub struct End {
    end_ms: u64,
}

impl End {
    /// How long it is until then. Who waits for so long is told that the transaction is over.
    pub fn time_left(self) -> Duration {
        clock::exact_time_until(self.end_ms)
    }
}

/// How many transactions this process, or those that it was forked from, has begun, modulo 2^32.
static BEGUN: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Committed,
    Aborted,
    /// Its lease had ended when somebody looked.
    RunOut(Abortion),
}

impl std::fmt::Display for Abortion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (open_s, ttl_s) = (self.open.as_secs_f64(), self.ttl.as_secs_f64());
        let Self { takes, puts, .. } = self;
        write!(
            f,
            "the transaction was open for {open_s:.3} s (its ttl is {ttl_s} s) and was rolled back: "
        )?;
        let were = |count: usize, what: &str| {
            format!("{count} {what}{}", if count == 1 { " was" } else { "s were" })
        };
        write!(f, "{} undone, {} discarded", were(*takes, "take"), were(*puts, "put"))
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("spaces", &self.parts.len())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Transaction {
    /// Begins a transaction over the spaces of `handles`, each another one, which may be open for `ttl`.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] for too many spaces.
    pub fn begin<H: Handle>(
        handles: impl IntoIterator<Item = H>,
        ttl: Duration,
    ) -> Result<Self, Error> {
        let part = |handle: H| Box::new(Part::new(Arc::clone(handle.kept()), handle.number()));
        let parts: Few<Box<Part>> = handles.into_iter().map(part).collect();
        let limit = GROUP_MAX as usize;
        if parts.len() > limit {
            return Err(Error::LimitExceeded { what: "spaces in one transaction", limit });
        }
        let (begin_ms, end_ms) = clock::now_and_in(ttl);
        let (state, fork_generation) = (State::Open, fork_generation());
        let term = Term { end_ms, number: BEGUN.fetch_add(1, Ordering::Relaxed), handle: 0 };
        Ok(Self { parts, ttl, begin_ms, term, state, fork_generation })
    }

    /// What is noted of it in space number `at`.
    fn term_in(&self, at: usize) -> Term {
        Term { handle: self.parts[at].handle, ..self.term }
    }

    /// When every call says that it is over.
    pub fn end(&self) -> End {
        End { end_ms: self.term.end_ms }
    }

    /// Whether it was neither committed nor aborted, nor found to be over.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether it was committed or aborted by who began it. One whose lease has ended says so at each call.
    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Committed | State::Aborted)
    }

    /// Undoes everything (rule X5): what was taken is back at its place, what was put is forgotten. If the lease has
    /// ended, all that has happened.
    ///
    /// # Errors
    ///
    /// [`Error::TransactionEnded`]; what the memory says: the rest comes back when the lease ends.
    pub fn abort(&mut self) -> Result<(), Error> {
        match self.require_own_and_open() {
            Err(Error::Aborted(_)) => {
                self.state = State::Aborted;
                Ok(())
            }
            Err(error) => Err(error),
            Ok(()) => {
                self.state = State::Aborted;
                self.release()
            }
        }
    }

    /// Makes sure that it is open, and this process's.
    fn require_own_and_open(&self) -> Result<(), Error> {
        if self.fork_generation != fork_generation() {
            return Err(Error::TransactionForked);
        }
        match self.state {
            State::Open => Ok(()),
            State::RunOut(abortion) => Err(Error::Aborted(Box::new(abortion))),
            state => Err(Error::TransactionEnded { committed: state == State::Committed }),
        }
    }

    /// As [`Transaction::require_own_and_open`], and that its lease has not ended: else it is aborted.
    fn require_open(&mut self) -> Result<(), Error> {
        self.require_own_and_open()?;
        if clock::is_past(self.term.end_ms) { Err(self.run_out()?) } else { Ok(()) }
    }

    /// Aborts it, since its lease has ended. Returns the error that says so.
    fn run_out(&mut self) -> Result<Error, Error> {
        let abortion = Abortion {
            open: Duration::from_millis(clock::now_ms().saturating_sub(self.begin_ms)),
            ttl: self.ttl,
            takes: self.parts.iter().map(|part| part.takes()).sum(),
            puts: self.parts.iter().map(|part| part.puts()).sum(),
        };
        self.state = State::RunOut(abortion);
        self.release()?;
        Ok(Error::Aborted(Box::new(abortion)))
    }

    /// Gives everything back. What can not be given back now comes back when the lease ends; the first error says why.
    fn release(&mut self) -> Result<(), Error> {
        let released: Few<_> = self.parts.iter_mut().map(|part| part.release()).collect();
        released.into_iter().collect()
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.require_own_and_open().is_ok() {
            // If this fails, everything comes back when the lease ends, or the space says so at the next call.
            let _ = self.abort();
        }
    }
}
