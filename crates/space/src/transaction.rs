//! Transactions: operations on one or several spaces that take effect together, or not at all (rules X1 to X6).

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use atomic_refcell::{AtomicRefCell, AtomicRefMut};
use smallvec::SmallVec;
use tupelo_engine::{Handle, Order, TransactionEnd};
use tupelo_tuple::{TemplateRef, TupleRef, TupleView};

use crate::connect::Space;
use crate::error::{Error, TEMPLATE_CHARACTERS_MAX};
use crate::explain::shortened;
use crate::wait::{Lifted, Outcome, Waiter, Want, lift};

/// Operations that take effect at [`commit`](Transaction::commit), all of them at one moment, or not at all: if it is
/// [aborted](Transaction::abort) or dropped, if the process dies, or if it is open for longer than its `ttl`.
///
/// What it has taken nobody else can read or take meanwhile; what it has read, others may read and not take (rule X3).
/// What it has put is seen by nobody else (X2). It belongs to the thread that began it.
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
    /// Borrowed while one of its calls runs, by its thread alone: who finds it borrowed is in a call from within a call.
    inner: AtomicRefCell<tupelo_engine::Transaction>,
    /// What [`Transaction::is_open`] and [`Transaction::is_ended`] say, for any thread: as of the last call.
    is_open: AtomicBool,
    is_ended: AtomicBool,
    /// When its time is over.
    end: TransactionEnd,
    /// The thread that began it, by its number.
    owner: u64,
}

/// The transaction itself while one of its calls runs. What is known of it is noted at the end of the call.
struct Call<'t> {
    transaction: &'t Transaction,
    inner: AtomicRefMut<'t, tupelo_engine::Transaction>,
}

/// A space as a transaction sees it: what is there for everybody, without what the transaction has taken, and with what
/// it has put (rule X6).
#[derive(Clone, Copy, Debug)]
pub struct Inside<'t> {
    transaction: &'t Transaction,
    at: usize,
}

impl Space {
    /// Begins a transaction over this space and `others`, which may be open for `ttl`.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] if `others` are not of the same kind (all `mem://`, or all `shm://`), or one is named twice
    /// (rule X1). [`Error::LimitExceeded`] for more than 16 spaces.
    pub fn transaction(&self, others: &[&Self], ttl: Duration) -> Result<Transaction, Error> {
        let all = std::iter::once(self).chain(others.iter().copied());
        let spaces: SmallVec<[Self; 1]> = all.cloned().collect();
        for (index, space) in spaces.iter().enumerate() {
            require_fit(&spaces[..index], space)?;
        }
        for space in &spaces {
            space.engine_for("transactions")?; // it is open
        }
        let engines = spaces.iter().map(|space| Arc::clone(space.kept()));
        let inner = tupelo_engine::Transaction::begin(engines, ttl).map_err(|error| {
            Error::from(error).with_given("spaces in one transaction", spaces.len())
        })?;
        let (end, owner) = (inner.end(), own_number());
        let (is_open, is_ended) = (AtomicBool::new(true), AtomicBool::new(false));
        Ok(Transaction { spaces, inner: AtomicRefCell::new(inner), is_open, is_ended, end, owner })
    }
}

/// The number of the calling thread, which no other thread of the process ever has. The standard library's number of it comes with
/// a reference to all that is known of the thread, which is counted.
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

/// Refuses a space that can not change together with `spaces` before it.
fn require_fit(spaces: &[Space], space: &Space) -> Result<(), Error> {
    let Some(first) = spaces.first() else { return Ok(()) };
    let (url, first_url) = (space.url(), first.url());
    if space.is_private() != first.is_private() {
        return Err(Error::Misuse {
            problem: format!("a transaction over {first_url} can not include {url}"),
            hint: Some("take spaces that are all mem:// or all shm://".into()),
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

    /// Makes everything happen at one moment: what was taken is consumed, what was put is there, in the order of the
    /// puts, and what was read may be taken by others (rule X1).
    ///
    /// # Errors
    ///
    /// [`Error::Aborted`] if the `ttl` has passed: nothing happened. As [`Space::put_all`], for any of the spaces:
    /// nothing happened yet, and the transaction is open still. [`Error::SpaceClosed`] if one of the handles was closed:
    /// nothing happened, and nothing will. [`Error::Misuse`] if it was ended before.
    pub fn commit(&self) -> Result<(), Error> {
        // What a closed handle was to put is not put, as in any other call on it.
        self.spaces.iter().try_for_each(|space| space.engine().map(drop))?;
        Ok(self.inner()?.commit()?)
    }

    /// Undoes everything: what was taken is back with its identity, age and place (rule X5). If the `ttl` has passed,
    /// that has happened.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] if it was ended before.
    pub fn abort(&self) -> Result<(), Error> {
        Ok(self.inner()?.abort()?)
    }

    /// Whether it was neither committed nor aborted, nor found to be over. Any thread may ask; a call that is under way
    /// counts when it has ended.
    pub fn is_open(&self) -> bool {
        // Relaxed: nobody concludes from it what is in a space.
        self.is_open.load(Ordering::Relaxed)
    }

    /// Whether [`Transaction::commit`] or [`Transaction::abort`] has ended it. One whose `ttl` has passed is over, and
    /// says so at each further call. Any thread may ask, as for [`Transaction::is_open`].
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// How long it may still be open.
    pub fn time_left(&self) -> Duration {
        self.end.time_left()
    }

    /// The transaction itself, for the thread that began it.
    fn inner(&self) -> Result<Call<'_>, Error> {
        if own_number() != self.owner {
            return Err(Error::Misuse {
                problem: format!(
                    "this transaction in {} belongs to the thread that began it",
                    self.spaces[0].url()
                ),
                hint: Some("begin one in each thread: each of them is atomic on its own".into()),
            });
        }
        match self.inner.try_borrow_mut() {
            Ok(inner) => Ok(Call { transaction: self, inner }),
            Err(_) => Err(Error::Misuse {
                problem: "this transaction is in a call that this one came from".into(),
                hint: Some("let a sink make what it makes of the tuple, and nothing else".into()),
            }),
        }
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

impl<'t> Inside<'t> {
    /// The number of the space in the transaction.
    pub fn number(&self) -> usize {
        self.at
    }

    /// The space.
    pub fn space(&self) -> &'t Space {
        &self.transaction.spaces[self.at]
    }

    /// Whether the time of the transaction has run out. A call that waits ends with [`Inside::timeout`] then.
    pub fn is_over(&self) -> bool {
        self.transaction.time_left().is_zero()
    }

    fn inner(&self) -> Result<Call<'t>, Error> {
        // A closed handle is refused as everywhere.
        self.space().engine()?;
        self.transaction.inner()
    }

    /// Stores a tuple at commit (rule X2).
    ///
    /// # Errors
    ///
    /// [`Error::SpaceFull`] for a tuple larger than the space, [`Error::LimitExceeded`]; whether there is room is known
    /// at commit.
    pub fn put<'f>(&self, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        Ok(self.inner()?.put(self.at, tuple)?)
    }

    /// Stores all tuples at commit, or none.
    ///
    /// # Errors
    ///
    /// As [`Inside::put`]: none of them is put.
    pub fn put_all(&self, tuples: &[TupleRef<'_>]) -> Result<(), Error> {
        tuples.iter().try_for_each(|tuple| self.check(*tuple))?;
        tuples.iter().try_for_each(|tuple| self.put(*tuple))
    }

    /// Checks a tuple that is to be put: for who changes something else first.
    ///
    /// # Errors
    ///
    /// As [`Inside::put`].
    pub fn check<'f>(&self, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        Ok(self.inner()?.check(self.at, tuple)?)
    }

    /// Whether the transaction has read something here. Then a take that finds nothing has to watch ([`Want::Read`])
    /// and try again: what it has read itself, nobody hands over when others unlock it.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] in another thread.
    pub fn has_read(&self) -> Result<bool, Error> {
        Ok(self.inner()?.has_read(self.at))
    }

    /// Takes a match, if there is one that no other transaction has, and gives it to `sink` (rule X4). What the
    /// transaction has put itself is younger than everything else.
    ///
    /// # Errors
    ///
    /// [`Error::Aborted`] if the `ttl` has passed. What `sink` says: then the tuple is back.
    pub fn try_take<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let mut inner = self.inner()?;
        lift(inner.try_take(self.at, template, order, |tuple| sink(tuple).map_err(Lifted::caller)))
    }

    /// Copies a match, if there is one, which nobody else can take from now on (rule X3).
    ///
    /// # Errors
    ///
    /// As [`Inside::try_take`].
    pub fn try_read<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let mut inner = self.inner()?;
        lift(inner.try_read(self.at, template, order, |tuple| sink(tuple).map_err(Lifted::caller)))
    }

    /// Takes a match, waiting for one up to `timeout`, or until another transaction gives one back (rule X4).
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]: the transaction goes on. [`Error::Aborted`], naming what was waited for, if its `ttl` ends
    /// first, as it does in a deadlock (X6).
    pub fn take<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        timeout: Option<Duration>,
        mut sink: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        if let Some(taken) = self.try_take(template, order, &mut sink)? {
            return Ok(taken);
        }
        if timeout == Some(Duration::ZERO) {
            return Err(self.timeout("take", template, Duration::ZERO).into());
        }
        if self.has_read()? {
            return self
                .retry(("take", template), timeout, || self.try_take(template, order, &mut sink));
        }
        let end = self.end_of_wait(timeout);
        let mut waiter = self.waiter(template, Want::Take)?;
        loop {
            match self.finish_take(waiter, &mut sink)? {
                Outcome::Done(taken) => return Ok(taken),
                Outcome::Waits(again) => waiter = again,
            }
            // Something may have been handed over when it was too late.
            if self.is_over()
                || !waiter.last_wait(Some(end.saturating_duration_since(Instant::now())))?
            {
                drop(waiter);
                return Err(self.timeout("take", template, timeout.unwrap_or_default()).into());
            }
        }
    }

    /// Tries again whenever a match was put, given back or unlocked.
    fn retry<R, E: From<Error>>(
        &self,
        (verb, template): (&'static str, &[TemplateRef<'_>]),
        timeout: Option<Duration>,
        mut attempt: impl FnMut() -> Result<Option<R>, E>,
    ) -> Result<R, E> {
        let end = self.end_of_wait(timeout);
        let puts = self.waiter(template, Want::Read)?;
        while !self.is_over() {
            if let Some(done) = attempt()? {
                return Ok(done);
            }
            if !puts.wait(Some(end.saturating_duration_since(Instant::now())))? {
                break;
            }
        }
        drop(puts);
        Err(self.timeout(verb, template, timeout.unwrap_or_default()).into())
    }

    /// Copies a match, waiting for one up to `timeout`; nobody else can take it from then on (rule X3).
    ///
    /// # Errors
    ///
    /// As [`Inside::take`].
    pub fn read<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        timeout: Option<Duration>,
        mut sink: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        if let Some(read) = self.try_read(template, order, &mut sink)? {
            return Ok(read);
        }
        if timeout == Some(Duration::ZERO) {
            return Err(self.timeout("read", template, Duration::ZERO).into());
        }
        self.retry(("read", template), timeout, || self.try_read(template, order, &mut sink))
    }

    /// How long a call that may wait for `timeout` can wait: not longer than the transaction may be open.
    pub fn wait_at_most(&self, timeout: Option<Duration>) -> Duration {
        let left = self.transaction.time_left();
        timeout.map_or(left, |timeout| timeout.min(left))
    }

    /// When a call that began now has waited long enough.
    fn end_of_wait(&self, timeout: Option<Duration>) -> Instant {
        // First the length: a wait that ends with the transaction must not end before it.
        let length = self.wait_at_most(timeout);
        Instant::now() + length
    }

    /// Takes the matches of one moment, up to `limit`: the oldest of each shape first, then what the transaction has
    /// put.
    ///
    /// # Errors
    ///
    /// As [`Inside::try_take`]: then all are back.
    pub fn take_all<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        limit: Option<usize>,
        mut sink: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let mut inner = self.inner()?;
        lift(inner.take_all(self.at, template, limit, |tuple| sink(tuple).map_err(Lifted::caller)))
    }

    /// Takes between `at_least` and `at_most` matches of one moment; `None`, and nothing taken, if there are fewer.
    ///
    /// # Errors
    ///
    /// As [`Inside::take_all`].
    pub fn try_take_many<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        at_least: usize,
        at_most: usize,
        mut sink: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Vec<R>>, E> {
        let mut inner = self.inner()?;
        let sink = |tuple: TupleView<'_>| sink(tuple).map_err(Lifted::caller);
        lift(inner.try_take_many(self.at, template, (at_least, at_most), sink))
    }

    /// Copies the matches of one moment, up to `limit`; nobody else can take them from then on (rule X3).
    ///
    /// # Errors
    ///
    /// As [`Inside::try_read`].
    pub fn read_all<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        limit: Option<usize>,
        mut sink: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let mut inner = self.inner()?;
        lift(inner.read_all(self.at, template, limit, |tuple| sink(tuple).map_err(Lifted::caller)))
    }

    /// The number of matches. Locks nothing: others may change it.
    ///
    /// # Errors
    ///
    /// As [`Inside::try_read`].
    pub fn count(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        Ok(self.inner()?.count(self.at, template)?)
    }

    /// Gets in line to take a match, for [`Inside::finish_take`]; or watches for one to be put or given back, for
    /// another [`Inside::try_read`]. For callers who wait in their own manner, no longer than
    /// [`Transaction::time_left`].
    ///
    /// # Errors
    ///
    /// As [`Space::waiter`]; [`Error::Aborted`] if the `ttl` has passed.
    pub fn waiter(&self, template: &[TemplateRef<'_>], want: Want) -> Result<Waiter, Error> {
        let waiter = self.inner()?.waiter(self.at, template, want == Want::Take)?;
        Ok(Waiter::new(self.space(), waiter))
    }

    /// Takes what a waiter that is to take was handed. If there is nothing, or the transaction's time has run out, the
    /// waiter stays in line.
    ///
    /// # Errors
    ///
    /// As [`Inside::try_take`]; [`Error::Misuse`] for a waiter that does not take, or that is in line elsewhere.
    pub fn finish_take<R, E: From<Error>>(
        &self,
        waiter: Waiter,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        waiter.require_take()?;
        if !waiter.space().is_same(self.space()) {
            return Err(self.elsewhere(&waiter).into());
        }
        if self.is_over() {
            return Ok(Outcome::Waits(waiter));
        }
        let mut inner = self.inner()?;
        let (space, waiter) = waiter.into_parts("transactions")?;
        let outcome =
            lift(inner.finish_take(self.at, waiter, |tuple| sink(tuple).map_err(Lifted::caller)))?;
        Ok(space.outcome(outcome))
    }

    #[cold]
    fn elsewhere(&self, waiter: &Waiter) -> Error {
        Error::Misuse {
            problem: format!("this place in line is one in {}", waiter.space().url()),
            hint: Some(format!(
                "get in line in {} by waiter() of the transaction",
                self.space().url()
            )),
        }
    }

    /// The error of a call that has waited in vain for `timeout`, or until the transaction's time had run out: then it
    /// is aborted (rule X6).
    #[cold]
    pub fn timeout(
        &self,
        verb: &'static str,
        template: &[TemplateRef<'_>],
        timeout: Duration,
    ) -> Error {
        let (space, at) = (self.space(), self.at);
        let over = self.inner().and_then(|mut inner| Ok(inner.waiter(at, template, false)?));
        match (over, space.timeout(verb, template, timeout)) {
            (Ok(_), timed_out) => timed_out,
            (Err(Error::Aborted { problem, .. }), Error::Timeout { template, url, .. }) => {
                let template = shortened(&template, TEMPLATE_CHARACTERS_MAX);
                Error::Aborted { problem, waited_for: Some(format!("{template} in {url}")) }
            }
            (Err(error), _) => error,
        }
    }
}
