//! The contents of a space, for people and programs.

use tupelo_engine::{Blocked, ClaimStat, ShapeNames, SubscriptionStat, TransactionStat, WhenFull};
use tupelo_tuple::Shape;

use crate::connect::Space;
use crate::error::Error;

/// Tuples of a shape whose names are looked at: a millisecond's work.
const NAMED_TUPLES_MAX: u64 = 20_000;

/// Figures of a space. Each is right at some moment of the call; together they belong to no one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    /// Tuples in the space.
    pub tuples: u64,
    /// Bytes in use for tuples and their indexes.
    pub bytes_used: u64,
    /// Bytes of memory that the space has.
    pub bytes_committed: u64,
    /// Bytes that the space may have.
    pub bytes_max: u64,
    /// Bytes of the largest piece of memory that is free, or can be had. A tuple of more than 32 KiB needs one piece.
    pub largest_free_bytes: u64,
    /// Tuples that the space may hold; `None`: as many as fit.
    pub tuples_max: Option<u64>,
    /// What becomes of a put for which there is no room.
    pub when_full: WhenFull,
    /// Tuples that were dropped for others so far.
    pub dropped: u64,
    /// Blocked callers, including callers that wait for room.
    pub waiters: u64,
    /// Callers that wait for room.
    pub waiting_for_room: u64,
    /// How often a condition (`where`) could not be told of a tuple, which was no match then (rule M9).
    pub where_errors: u64,
    /// The subscriptions (rule N1).
    pub subscriptions: Vec<SubscriptionStat>,
    /// Open transactions that have taken or read something here. Their future puts are not visible.
    pub transactions: Vec<TransactionStat>,
    /// The processes that use the space.
    pub processes: Vec<ProcessStat>,
    /// One entry per shape, in the order of their first use.
    pub shapes: Vec<ShapeStat>,
}

/// A process that uses a space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// Its process id.
    pub pid: u32,
    /// Whether it still runs; if not, no process has cleaned up after it yet.
    pub alive: bool,
}

/// Figures of one shape: arity and kinds, and the class of entries.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeStat {
    /// The shape itself.
    pub shape: Shape,
    /// Tuples of this shape.
    pub count: u64,
    /// Bytes of memory that its tuples and indexes have.
    pub bytes: u64,
    /// Blocked callers whose template selects this shape alone.
    pub waiting: u64,
    /// The claimants of tuples of this shape.
    pub claims: Vec<ClaimStat>,
    /// Tuples whose last attempt has failed (rule K5).
    pub dead: u64,
    /// Tuples that are not visible yet (rule L3).
    pub delayed: u64,
    /// Tuples whose lease ends (rule L1), wherever they are: also claimed, dead, or not yet visible ones.
    pub leased: u64,
    /// Tuples that open transactions have taken (rule X3).
    pub in_transactions: u64,
    /// Locks that open transactions have on tuples that they have read (rule X3).
    pub read_locks: u64,
    /// Tuples put so far.
    pub puts: u64,
    /// Tuples taken so far.
    pub takes: u64,
    /// The fields of each learned index.
    pub indexes: Vec<Vec<usize>>,
}

impl Space {
    /// The callers that wait for a tuple, to take or to read it: [`Space::explain`] of their templates tells why.
    /// Callers whose template has a condition look themselves, and are not among them.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceCorrupted`].
    pub fn blocked(&self) -> Result<Vec<Blocked>, Error> {
        let Some(engine) = self.local() else { return self.blocked_remotely() };
        Ok(engine.blocked()?)
    }

    /// The tuples of each shape by their name: the first field, where that is a text. Of a shape with more than some ten
    /// thousand tuples the oldest are looked at, and the others counted.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceCorrupted`].
    pub fn names(&self) -> Result<Vec<ShapeNames>, Error> {
        let Some(engine) = self.local() else { return self.names_remotely() };
        Ok(engine.names(NAMED_TUPLES_MAX)?)
    }

    /// As [`Space::names`], of all shapes: shapes whose tuples have no name are told without any. Of each, so many tuples are
    /// looked at: some twenty thousand in a millisecond, and other calls go on meanwhile. A server tells what [`Space::names`]
    /// does.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceCorrupted`].
    pub fn names_of_all(&self, tuples_max: u64) -> Result<Vec<ShapeNames>, Error> {
        let Some(engine) = self.local() else { return self.names_remotely() };
        Ok(engine.names_of_all(tuples_max)?)
    }

    /// The contents of the space.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceCorrupted`].
    pub fn stat(&self) -> Result<Stat, Error> {
        let Some(engine) = self.local() else { return self.stat_remotely() };
        let stat = engine.stat()?;
        let process = |alive| move |pid| ProcessStat { pid, alive };
        let alive = stat.pids.into_iter().map(process(true));
        let shape = |shape: tupelo_engine::ShapeStat| ShapeStat {
            shape: shape.shape,
            count: shape.count,
            bytes: shape.bytes,
            waiting: shape.waiting,
            claims: shape.claims,
            dead: shape.dead,
            delayed: shape.delayed,
            leased: shape.leased,
            in_transactions: shape.in_transactions,
            read_locks: shape.read_locks,
            puts: shape.puts,
            takes: shape.takes,
            indexes: shape.indexes,
        };
        Ok(Stat {
            tuples: stat.tuples,
            bytes_used: stat.bytes_used,
            bytes_committed: stat.bytes_committed,
            bytes_max: stat.bytes_max,
            tuples_max: stat.tuples_max,
            when_full: stat.when_full,
            dropped: stat.dropped,
            waiters: stat.waiters,
            waiting_for_room: stat.waiting_for_room,
            where_errors: stat.where_errors,
            largest_free_bytes: stat.largest_free_bytes,
            subscriptions: stat.subscriptions,
            transactions: stat.transactions,
            processes: alive.chain(stat.pids_dead.into_iter().map(process(false))).collect(),
            shapes: stat.shapes.into_iter().map(shape).collect(),
        })
    }
}
