//! The seam: a space that is not in this process's memory, whatever it is behind.
//!
//! Small and object-safe: what the facade makes of a space is made of these two calls. The client of a server is one; an
//! engine upon another system is another.

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::time::Duration;

use tupelo_tuple::{TupleView, WhenFull};

use crate::fault::Fault;
use crate::operation::Operation;

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
    /// What messages call the engine, as in `unix://`.
    fn engine(&self) -> &'static str;

    /// What becomes of a put for which there is no room: as the space was created.
    fn when_full(&self) -> WhenFull;

    /// Equal for two handles of the same space, and of no others.
    fn identity(&self) -> (u64, u64);

    /// Does an operation that does not wait.
    ///
    /// # Errors
    ///
    /// A [`Fault`]: it had no effect, unless the code says otherwise.
    fn call(&self, operation: &Operation<'_>, visit: Visitor<'_>) -> Result<Found, Fault>;

    /// Begins an operation that may wait.
    ///
    /// # Errors
    ///
    /// As [`Remote::call`].
    fn wait(&self, operation: &Operation<'_>) -> Result<Box<dyn Pending>, Fault>;
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
pub trait Pending: Debug + Send + Sync {
    /// Waits until there is something, or `timeout` has passed (`None`: for ever). Returns whether there is.
    ///
    /// # Errors
    ///
    /// A [`Fault`]: the wait has ended.
    fn ready(&self, timeout: Option<Duration>, at_end: AtEnd) -> Result<bool, Fault>;

    /// Shows what there is to `visit`, without waiting; gives itself back if there is nothing.
    ///
    /// # Errors
    ///
    /// As [`Pending::ready`].
    fn pick_up(self: Box<Self>, visit: Visitor<'_>) -> Result<PickedUp, Fault>;
}

/// What [`Pending::pick_up`] came to.
#[derive(Debug)]
pub enum PickedUp {
    /// The visitor has seen the tuple.
    Seen,
    /// The visitor has broken off: the tuple is back.
    BrokenOff,
    /// There is none: it waits.
    Waits(Box<dyn Pending>),
}
