//! The seam: a space that is not in this process's memory, whatever it is behind.
//!
//! Small and object-safe: what the facade makes of a space is made of these two calls. The client of a server is one; an
//! engine upon another system is another.

use std::any::Any;
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use tupelo_tuple::{TupleView, WhenFull};

use crate::fault::Fault;
use crate::operation::{Operation, SpaceId};

/// Gets to see the tuples of an answer, one after the other. Who breaks off has not got them: what was taken goes back
/// (rule V3).
pub type Visitor<'v> = &'v mut dyn FnMut(TupleView<'_>) -> ControlFlow<()>;

/// What a call came to that does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// So many, or 1 for yes and 0 for no.
    Count(u64),
    /// The visitor has seen all tuples.
    Tuples,
    /// The visitor has broken off.
    BrokenOff,
    /// Nothing matches, or not enough.
    Nothing,
}

/// A space of another process, machine or system.
pub trait Remote: Debug + Send + Sync {
    /// What becomes of a put for which there is no room: as the space was created.
    fn when_full(&self) -> WhenFull;

    /// Equal for two handles of the same space, and of no others.
    fn identity(&self) -> SpaceId;

    /// Does an operation that does not wait.
    ///
    /// # Errors
    ///
    /// A [`Fault`]: it had no effect, unless the code says otherwise.
    fn call(&self, operation: &Operation<'_>, visit: Visitor<'_>) -> Result<Found, Fault>;

    /// Does an operation that leaves something open ([`Kept`]), if there is anything to leave open.
    ///
    /// # Errors
    ///
    /// As [`Remote::call`].
    fn open(&self, operation: &Operation<'_>, visit: Visitor<'_>) -> Result<Opened, Fault>;

    /// Something by which one owner waits for many calls.
    ///
    /// # Errors
    ///
    /// As [`Remote::call`].
    fn notifier(&self) -> Result<Box<dyn Notifier>, Fault>;

    /// Begins an operation that may wait.
    ///
    /// # Errors
    ///
    /// As [`Remote::call`].
    fn wait(&self, operation: &Operation<'_>) -> Result<Box<dyn Pending>, Fault>;
}

/// What [`Remote::open`] came to, and what it has left open unless that is nothing.
pub type Opened = (Found, Option<Box<dyn Kept>>);

/// What an operation has left open where the space is: a lease, a claim, a transaction. Dropped, it is let go.
pub trait Kept: Debug + Send + Sync {
    /// Does an operation on it that does not wait; in the space number `at` of a transaction, and else 0.
    ///
    /// # Errors
    ///
    /// As [`Remote::call`].
    fn call(&self, at: u32, operation: &Operation<'_>, visit: Visitor<'_>) -> Result<Found, Fault>;

    /// Begins an operation on it that may wait.
    ///
    /// # Errors
    ///
    /// As [`Remote::call`].
    fn wait(&self, at: u32, operation: &Operation<'_>) -> Result<Box<dyn Pending>, Fault>;

    /// Has an operation done on it, and does not wait for the answer: for who lets it go.
    fn post(&self, operation: &Operation<'_>);
}

/// What [`Pending::ready`] does when its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// Nothing: it is the end of a part of a longer wait.
    Nothing,
    /// Looks once more where the space is: what has come there by then has come in time.
    Look,
    /// As `Look`, and ends the wait: nothing comes after it.
    End,
}

/// A call that waits. Dropped, it gives up without effect: a tuple goes back with its identity, age and place (rule T5).
pub trait Pending: Any + Debug + Send + Sync {
    /// Waits until there is something, or `timeout` has passed (`None`: for ever). Returns whether there is.
    ///
    /// # Errors
    ///
    /// A [`Fault`]: the wait has ended.
    fn ready(&self, timeout: Option<Duration>, at_end: AtEnd) -> Result<bool, Fault>;

    /// Whether it is known to have ended, so that nothing comes for it any more.
    fn has_ended(&self) -> bool;

    /// Shows what there is to `visit`, without waiting; gives itself back if there is nothing.
    ///
    /// # Errors
    ///
    /// As [`Pending::ready`].
    fn pick_up(self: Box<Self>, visit: Visitor<'_>) -> Result<PickedUp, Fault>;

    /// Runs `act` for this place in the wait queue for room: puts in it are made in its grant.
    fn with_grant(&self, act: &mut dyn FnMut());

    /// Lets what comes for this call also end a wait of `watch`. Returns false if that is not to be had for the two.
    fn wakes(&self, watch: &dyn Pending) -> bool;
}

/// One owner of many calls that wait: an event loop, or a thread. It waits for the descriptor to be readable, or sleeps.
pub trait Notifier: Debug + Send + Sync {
    /// Has the owner told of what comes for a call, by the number that this returns; without a call, at once. `None` if the
    /// call is none of this system.
    fn add(&self, pending: Option<&dyn Pending>) -> Option<u32>;

    /// Forgets a call. To be done before it goes.
    fn remove(&self, number: u32);

    /// The calls that something may have come for since this was asked last; perhaps in vain.
    fn drain(&self) -> Vec<u32>;

    /// Says that the owner is about to wait for the descriptor. Returns false if there is something already: then drain, and
    /// listen again.
    fn listen(&self) -> bool;

    /// Sleeps until there is something, or for `slice`.
    fn sleep(&self, slice: Duration);

    /// Says that the owner does not wait any more, until it listens or sleeps again.
    fn rest(&self);

    /// What is readable when there is something.
    fn descriptor(&self) -> BorrowedFd<'_>;
}

/// What [`Pending::pick_up`] came to.
#[derive(Debug)]
pub enum PickedUp {
    /// The visitor has seen the tuple.
    Seen,
    /// The visitor has seen the tuples, and this is left open.
    Opened(Box<dyn Kept>),
    /// The visitor has broken off: the tuple is back.
    BrokenOff,
    /// There is none: it waits.
    Waits(Box<dyn Pending>),
}
