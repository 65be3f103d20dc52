//! Transactions: operations on one or several spaces that take effect together, or not at all (rules X1 to X6).

mod inside;

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use atomic_refcell::{AtomicRefCell, AtomicRefMut};
use smallvec::SmallVec;
use tupelo_engine::TransactionEnd;

use crate::connect::Space;
use crate::durable::Durability;
use crate::error::Error;
use crate::remote::transaction::RemoteTransaction;
pub use inside::Inside;

/// Operations that take effect at [`commit`](Transaction::commit), all of them at one moment, or not at all. None takes
/// effect if the transaction is [aborted](Transaction::abort) or dropped, if the process dies, or if it is open for
/// longer than its `ttl`.
///
/// No other caller can read or take the tuples that it has taken. Others may read the tuples that it has read, and not
/// take them (rule X3). Its own puts are not visible to others (X2). It belongs to the thread that began it.
///
/// ```
/// # use std::time::Duration;
/// # use tupelo::*;
/// # let space = Space::connect("mem://accounts", &ConnectOptions::default())?;
/// # space.put(&fields!["account", "alice", 100])?;
/// let transaction = space.transaction(&[], Duration::from_secs(30))?;
/// let accounts = transaction.on(&space)?;
/// let alice = [template!["account", "alice", Kind::Int]];
/// let account = accounts.take(&alice, Order::Fifo, None, |tuple| Ok::<_, Error>(tuple.to_tuple()?))?;
/// assert_eq!(account.to_string(), r#"("account", "alice", 100)"#);
/// accounts.put(&fields!["account", "alice", 90])?;
/// assert_eq!(space.count(&alice)?, 0);
/// transaction.commit()?;
/// assert_eq!(space.count(&alice)?, 1);
/// # Ok::<(), Error>(())
/// ```
pub struct Transaction {
    /// One, as a rule.
    spaces: SmallVec<[Space; 1]>,
    held: Held,
    /// What [`Transaction::is_open`] and [`Transaction::is_ended`] say, for any thread: as of the last call.
    is_open: AtomicBool,
    is_ended: AtomicBool,
    /// The thread that began it, by its number.
    owner: u64,
}

/// Where a transaction is.
enum Held {
    /// Here, and when its time is over. Borrowed while one of its calls runs, by its thread alone: a call that finds it
    /// borrowed comes from within a call.
    Here(AtomicRefCell<tupelo_engine::Transaction>, TransactionEnd),
    /// Elsewhere.
    There(RemoteTransaction),
}

/// The transaction while one of its calls runs.
enum Way<'t> {
    Here(Call<'t>),
    There(&'t RemoteTransaction),
}

/// The transaction itself while one of its calls runs. News of it is noted at the end of the call.
struct Call<'t> {
    transaction: &'t Transaction,
    inner: AtomicRefMut<'t, tupelo_engine::Transaction>,
}

impl Space {
    /// Begins a transaction over this space and `others`, which may be open for `ttl`.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] if `others` are not of the same kind (all `mem://`, or all `shm://`). Also if one is named
    /// twice (rule X1). [`Error::LimitExceeded`] for more than 16 spaces.
    pub fn transaction(&self, others: &[&Self], ttl: Duration) -> Result<Transaction, Error> {
        let all = std::iter::once(self).chain(others.iter().copied());
        let spaces: SmallVec<[Self; 1]> = all.cloned().collect();
        for (index, space) in spaces.iter().enumerate() {
            require_fit(&spaces[..index], space)?;
        }
        spaces.iter().try_for_each(Self::require_open)?;
        let held = if self.is_here() {
            let inner = tupelo_engine::Transaction::begin(&spaces, ttl).map_err(|error| {
                Error::from(error).with_given("spaces in one transaction", spaces.len())
            })?;
            let end = inner.end();
            Held::Here(AtomicRefCell::new(inner), end)
        } else {
            Held::There(RemoteTransaction::begin(&spaces, ttl)?)
        };
        let (is_open, is_ended) = (AtomicBool::new(true), AtomicBool::new(false));
        Ok(Transaction { spaces, held, is_open, is_ended, owner: own_number() })
    }
}

/// The number of the calling thread, which no other thread of the process ever has. The standard library's number comes
/// with a counted reference to everything known of the thread.
fn own_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        /// 0 until it is asked for.
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    if NUMBER.get() == 0 {
        NUMBER.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
    }
    NUMBER.get()
}

/// Refuses a space that cannot change together with `spaces` before it.
fn require_fit(spaces: &[Space], space: &Space) -> Result<(), Error> {
    let Some(first) = spaces.first() else { return Ok(()) };
    spaces.iter().try_for_each(|other| other.require_one_file(space))?;
    let (url, first_url) = (space.url(), first.url());
    if space.is_private() != first.is_private() || !space.is_beside(first) {
        return Err(Error::Misuse {
            problem: format!("a transaction over {first_url} can not include {url}"),
            hint: Some("take spaces that are all mem://, all shm:// and the spaces of one file, or all of one server".into()),
        });
    }
    if spaces.iter().any(|other| other.is_same(space)) {
        return Err(Error::Misuse {
            problem: format!("{url} is in the transaction twice"),
            hint: Some("name every space once".into()),
        });
    }
    Ok(())
}

impl Transaction {
    /// The space as the transaction sees it.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] if the transaction was not begun over it.
    pub fn on(&self, space: &Space) -> Result<Inside<'_>, Error> {
        let at = self.spaces.iter().position(|own| own.is_same(space));
        let at = at.ok_or_else(|| Error::Misuse {
            problem: format!("{} is not in this transaction", space.url()),
            hint: Some("begin it with all its spaces: first.transaction(second, …)".into()),
        })?;
        Ok(self.at(at))
    }

    /// Space number `at` as the transaction sees it; the first, which it was begun on, is 0.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub fn at(&self, at: usize) -> Inside<'_> {
        assert!(at < self.spaces.len(), "the transaction has {} spaces", self.spaces.len());
        Inside { transaction: self, at }
    }

    /// Makes everything happen at one moment. The taken tuples are consumed. The new tuples appear in the order of
    /// their puts. The tuples that it has read may be taken by others (rule X1).
    ///
    /// # Errors
    ///
    /// [`Error::Aborted`] if the `ttl` has passed: nothing happened. As [`Space::put_all`], for any of the spaces:
    /// nothing happened yet, and the transaction is open still. [`Error::SpaceClosed`] if one of the handles was
    /// closed: nothing happened, and nothing will. [`Error::Misuse`] if it was ended before.
    pub fn commit(&self) -> Result<(), Error> {
        self.commit_in_memory()?;
        self.spaces.iter().try_for_each(|space| space.settled(()))
    }

    /// As [`Transaction::commit`], returning when `sync` says, and not when the handles of the spaces do (rule C4).
    ///
    /// # Errors
    ///
    /// As [`Transaction::commit`].
    pub fn commit_with_sync(&self, sync: Durability) -> Result<(), Error> {
        self.commit_in_memory()?;
        self.spaces.iter().try_for_each(|space| space.with_sync(sync).settled(()))
    }

    fn commit_in_memory(&self) -> Result<(), Error> {
        // The puts of a closed handle are dropped, as in any other call on it.
        self.spaces.iter().try_for_each(Space::require_open)?;
        match self.way()? {
            Way::Here(mut call) => Ok(call.commit()?),
            Way::There(transaction) => self.ended(transaction.commit()),
        }
    }

    /// Undoes everything: the taken tuples are back with identity, age and place (rule X5). If the `ttl` has passed,
    /// that has happened.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] if it was ended before.
    pub fn abort(&self) -> Result<(), Error> {
        match self.way()? {
            Way::Here(mut call) => Ok(call.abort()?),
            Way::There(transaction) => {
                // The close of a handle has rolled it back.
                let is_closed = self.spaces.iter().any(|space| space.require_open().is_err());
                self.ended(if is_closed { Ok(()) } else { transaction.abort() })
            }
        }
    }

    /// Whether it was neither committed nor aborted, nor found to be over. Any thread may ask; a call that is under way
    /// counts when it has ended.
    pub fn is_open(&self) -> bool {
        // Relaxed: no code concludes from it anything about the contents of a space.
        self.is_open.load(Ordering::Relaxed)
            && !matches!(&self.held, Held::There(transaction) if transaction.is_over())
    }

    /// Whether [`Transaction::commit`] or [`Transaction::abort`] has ended it. One whose `ttl` has passed is over, and
    /// says so at each further call. Any thread may ask, as for [`Transaction::is_open`].
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// How long it may still be open.
    pub fn time_left(&self) -> Duration {
        match &self.held {
            Held::Here(_, end) => end.time_left(),
            Held::There(transaction) => transaction.time_left(),
        }
    }

    /// The transaction, for the thread that began it.
    fn way(&self) -> Result<Way<'_>, Error> {
        if own_number() != self.owner {
            return Err(Error::Misuse {
                problem: format!(
                    "this transaction in {} belongs to the thread that began it",
                    self.spaces[0].url()
                ),
                hint: Some("begin one in each thread: each of them is atomic on its own".into()),
            });
        }
        match &self.held {
            Held::Here(inner, _) => match inner.try_borrow_mut() {
                Ok(inner) => Ok(Way::Here(Call { transaction: self, inner })),
                Err(_) => Err(Error::Misuse {
                    problem: "this transaction is in a call that this one came from".into(),
                    hint: Some(
                        "let a visitor make what it makes of the tuple, and nothing else".into(),
                    ),
                }),
            },
            Held::There(transaction) => {
                transaction.require_open(self.is_ended())?;
                Ok(Way::There(transaction))
            }
        }
    }

    /// Notes that a call elsewhere has ended the transaction, if it has.
    fn ended(&self, result: Result<(), Error>) -> Result<(), Error> {
        if result.is_ok() {
            self.is_open.store(false, Ordering::Relaxed);
            self.is_ended.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not its inside: that is borrowed by its own thread alone.
        f.debug_struct("Transaction")
            .field("spaces", &self.spaces)
            .field("is_open", &self.is_open())
            .finish_non_exhaustive()
    }
}

impl Deref for Call<'_> {
    type Target = tupelo_engine::Transaction;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl DerefMut for Call<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.transaction.is_open.store(self.inner.is_open(), Ordering::Relaxed);
        self.transaction.is_ended.store(self.inner.is_ended(), Ordering::Relaxed);
    }
}
