//! Waiting: blocked takes and reads, and watching for events.

use std::time::{Duration, Instant};

use tupelo_engine::{Order, Want as EngineWant, visitor_once};
use tupelo_protocol::{Action, AtEnd, Pending};
use tupelo_shm::process::fork_generation;
use tupelo_tuple::{TemplateRef, TupleView};

use crate::connect::Space;
pub(crate) use crate::elsewhere::Elsewhere;
use crate::error::Error;

/// A blocked caller's use of the match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Remove it: of all callers that wait for one tuple, the first in the wait queue gets it (rule T3).
    Take,
    /// Copy it: every waiting caller gets a copy.
    Read,
}

/// The news that a watcher waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// A match was put.
    Put,
    /// A match was removed.
    Removal,
}

/// A place in the wait queue for a match, or a watch. Dropped, it gives up without effect: a tuple that was handed
/// over already goes back with its identity, age and place (rule T5).
#[derive(Debug)]
pub struct Waiter {
    space: Space,
    inner: Place,
    /// When it was made, as forks are counted.
    fork_generation: u32,
}

/// Where a waiter is in the wait queue.
#[derive(Debug)]
pub(crate) enum Place {
    /// In an engine here.
    Local(tupelo_engine::Waiter),
    /// Elsewhere.
    Remote(Elsewhere),
}

/// Longest wait elsewhere between two looks whether the handle was closed.
const SLICE: Duration = Duration::from_millis(100);

/// The outcome of a call that joins the wait queue if there is no match.
#[derive(Debug)]
pub enum Outcome<R, W = Waiter> {
    /// There was a match.
    Done(R),
    /// There was none: the caller is in the wait queue for one.
    Waits(W),
}

impl Space {
    /// Joins the wait queue for a match. If there is one, it is handed over at once.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] at the maximum of blocked callers (rule B2).
    pub fn waiter(&self, template: &[TemplateRef<'_>], want: Want) -> Result<Waiter, Error> {
        let Some(engine) = self.local() else {
            let action = if want == Want::Take { Action::Take } else { Action::Read };
            return self.wait_remotely((action, Order::Fifo), template);
        };
        let want = match want {
            Want::Take => EngineWant::Take,
            Want::Read => EngineWant::Read,
        };
        Ok(Waiter::new(self, engine.waiter(template, want)?))
    }

    /// Watches for events: [`Waiter::wait`] returns true after each since the registration or the last wait
    /// (several may count as one). Nothing is handed over.
    ///
    /// # Errors
    ///
    /// As [`Space::waiter`].
    pub fn watch(&self, template: &[TemplateRef<'_>], on: Watch) -> Result<Waiter, Error> {
        let Some(engine) = self.local() else { return self.watch_remotely(template, on) };
        let want = match on {
            Watch::Put => EngineWant::Put,
            Watch::Removal => EngineWant::Removal,
        };
        Ok(Waiter::new(self, engine.waiter(template, want)?))
    }

    pub(crate) fn outcome<R>(&self, outcome: tupelo_engine::Outcome<R>) -> Outcome<R> {
        match outcome {
            tupelo_engine::Outcome::Done(result) => Outcome::Done(result),
            tupelo_engine::Outcome::Waits(waiter) => Outcome::Waits(Waiter::new(self, waiter)),
        }
    }
}

impl Waiter {
    pub(crate) fn new(space: &Space, waiter: tupelo_engine::Waiter) -> Self {
        let (space, inner) = (space.clone(), Place::Local(waiter));
        Self { space, inner, fork_generation: fork_generation() }
    }

    /// A place in the wait queue elsewhere.
    pub(crate) fn remote(space: &Space, place: Elsewhere) -> Self {
        let (space, inner) = (space.clone(), Place::Remote(place));
        Self { space, inner, fork_generation: fork_generation() }
    }

    /// Waits until there is something, or `timeout` has passed (`None`: for ever). Returns whether there is;
    /// if not, the place in the wait queue is kept, and the call may be repeated. A watch may also be woken in vain, so that
    /// it misses nothing that a process did that was killed over it: look, and wait again.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceClosed`] if the handle was closed meanwhile; [`Error::Misuse`] in a fork of the process that got
    /// in the wait queue; the errors of the memory.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        self.require_own()?;
        let happened = match &self.inner {
            Place::Local(waiter) => waiter.wait_while(timeout, || self.is_open())?,
            Place::Remote(place) => self.wait_elsewhere(&*place.pending, timeout, AtEnd::Look)?,
        };
        // A refused waiter leaves the wait queue, and its tuple goes back.
        self.space.require_open()?;
        Ok(happened)
    }

    /// As [`Waiter::wait`], by a caller that has more time than `part`. The caller looks at something else before it
    /// waits again, such as Ctrl-C. The end of a part is no answer, so a process that was stopped while it cleaned up
    /// after a dead one does not end the call (rule L5). The last part is a [`wait`](Waiter::wait).
    ///
    /// # Errors
    ///
    /// As [`Waiter::wait`].
    pub fn wait_part(&self, part: Duration) -> Result<bool, Error> {
        self.require_own()?;
        let happened = match &self.inner {
            Place::Local(waiter) => waiter.wait_part(part, || self.is_open())?,
            Place::Remote(place) => {
                self.wait_elsewhere(&*place.pending, Some(part), AtEnd::Nothing)?
            }
        };
        self.space.require_open()?;
        Ok(happened)
    }

    /// As [`Waiter::wait`], and ends the wait when `timeout` has passed ([`Waiter::end_wait`]): for a call that ends then.
    ///
    /// # Errors
    ///
    /// As [`Waiter::wait`].
    pub fn last_wait(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        self.require_own()?;
        let happened = match &self.inner {
            Place::Local(waiter) => waiter.last_wait(timeout, || self.is_open())?,
            Place::Remote(place) => self.wait_elsewhere(&*place.pending, timeout, AtEnd::End)?,
        };
        self.space.require_open()?;
        Ok(happened)
    }

    /// Is handed nothing from now on. A tuple that was handed over before has come in time, and is to be picked up. So
    /// a call that ends without a tuple has kept none from others meanwhile. Returns whether there is one; to wait
    /// again would be in vain.
    ///
    /// # Errors
    ///
    /// As [`Waiter::wait`].
    pub fn end_wait(&self) -> Result<bool, Error> {
        self.require_own()?;
        match &self.inner {
            Place::Local(waiter) => Ok(waiter.end_wait()?),
            Place::Remote(place) => Ok(place.pending.ready(Some(Duration::ZERO), AtEnd::End)?),
        }
    }

    fn is_open(&self) -> bool {
        self.space.require_open().is_ok()
    }

    /// Waits for something elsewhere, and looks now and then whether the handle was closed.
    fn wait_elsewhere(
        &self,
        pending: &dyn Pending,
        timeout: Option<Duration>,
        at_end: AtEnd,
    ) -> Result<bool, Error> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if let Some(left) = left.filter(|left| *left <= SLICE) {
                return Ok(pending.ready(Some(left), at_end)?);
            }
            if pending.ready(Some(SLICE), AtEnd::Nothing)? || !self.is_open() {
                return Ok(true);
            }
        }
    }

    /// Picks up the tuple that [`Waiter::wait`] announced. If its put died before it was certain, there is none: then
    /// this waits for another, for ever. A caller with a time limit uses [`Waiter::finish_now`], and waits again.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceClosed`]: the tuple is back. The errors of the memory, and the error of `visitor`; then the tuple of
    /// a take is back or gone as in [`Space::try_take`].
    pub fn finish<R, E: From<Error>>(
        self,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut once = visitor_once(visitor);
        let mut waiter = self;
        loop {
            // First: of the causes that a notifier was told of, or another waiter was woken for, this waiter has no
            // signal to wait for.
            match waiter.finish_now(&mut once)? {
                Outcome::Done(result) => return Ok(result),
                Outcome::Waits(again) => waiter = again,
            }
            waiter.wait(None)?;
        }
    }

    /// As [`Waiter::finish`], without waiting: if there is no tuple, the waiter stays in the wait queue.
    ///
    /// # Errors
    ///
    /// As [`Waiter::finish`].
    pub fn finish_now<R, E: From<Error>>(
        self,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        self.require_own()?;
        let Self { space, inner, fork_generation } = self;
        let place = match inner {
            Place::Local(waiter) => {
                let outcome = waiter.finish_now(|tuple| visitor(tuple).map_err(Lifted::caller));
                let outcome = space.outcome(lift(outcome)?);
                return space.settled(outcome);
            }
            Place::Remote(place) => place,
        };
        match place.pick_up(visitor)? {
            Outcome::Done(result) => Ok(Outcome::Done(result)),
            Outcome::Waits(place) => {
                let inner = Place::Remote(place);
                Ok(Outcome::Waits(Self { space, inner, fork_generation }))
            }
        }
    }

    /// Waits up to `timeout` until `finish` has picked something up; `None`, and out of the wait queue, if it has not by then. What
    /// was announced may not be there: its put has died, or it went to the next in the wait queue. Then only the time that is left
    /// is waited on.
    pub(crate) fn finish_within<R, E: From<Error>>(
        self,
        timeout: Option<Duration>,
        mut finish: impl FnMut(Self) -> Result<Outcome<R>, E>,
    ) -> Result<Option<R>, E> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut waiter = self;
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if !waiter.last_wait(left)? {
                return Ok(None);
            }
            match finish(waiter)? {
                Outcome::Done(result) => return Ok(Some(result)),
                Outcome::Waits(again) => waiter = again,
            }
        }
    }

    /// Refuses a closed handle, and the child of a fork: the place in the wait queue is its parent's.
    pub(crate) fn require_own(&self) -> Result<(), Error> {
        self.space.require_open()?;
        if self.fork_generation == fork_generation() {
            return Ok(());
        }
        Err(Error::Misuse {
            problem:
                "the place in the wait queue belongs to the process that this one was forked from"
                    .into(),
            hint: Some("wait in the process that does the work".into()),
        })
    }

    /// Whether it waits to take a tuple.
    pub fn takes(&self) -> bool {
        match &self.inner {
            Place::Local(waiter) => waiter.want() == EngineWant::Take,
            Place::Remote(place) => place.want == Some(Want::Take),
        }
    }

    /// Refuses a place in the wait queue that cannot be taken from: its tuple may be a copy, which cannot be held.
    pub(crate) fn require_take(&self) -> Result<(), Error> {
        self.require_own()?;
        if self.takes() {
            return Ok(());
        }
        Err(Error::Misuse {
            problem: "this place in the wait queue is not one to take".into(),
            hint: Some("join the wait queue by claimant(), or by waiter() with Want::Take".into()),
        })
    }

    /// Where it is in the wait queue.
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// The engine's part; `None` if it is in the wait queue elsewhere.
    pub(crate) fn local(&self) -> Option<&tupelo_engine::Waiter> {
        match &self.inner {
            Place::Local(waiter) => Some(waiter),
            Place::Remote(..) => None,
        }
    }

    /// The space, and where it is in the wait queue there.
    pub(crate) fn into_parts(self) -> (Space, Place) {
        (self.space, self.inner)
    }

    /// The place in the wait queue that is elsewhere; `None` if it is in an engine here.
    pub(crate) fn elsewhere(&self) -> Option<&Elsewhere> {
        match &self.inner {
            Place::Local(_) => None,
            Place::Remote(place) => Some(place),
        }
    }

    /// Lets what happens here also end a wait of `other`, a watch of the same space: one caller sleeps on several waiters.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] for one of a space elsewhere.
    pub fn wakes(&self, other: &Self) -> Result<(), Error> {
        let woken = match (&self.inner, &other.inner) {
            (Place::Local(one), Place::Local(other)) => {
                one.wakes(other);
                true
            }
            (Place::Remote(one), Place::Remote(other)) => one.pending.wakes(&*other.pending),
            _ => false,
        };
        if woken {
            return Ok(());
        }
        Err(Error::Misuse {
            problem: "these two places in the wait queue are in different spaces".into(),
            hint: Some("let one wake another of the same space, or wait by notifiers".into()),
        })
    }
}

/// An error of the engine, or one of the caller's visitor on its way through the engine. Small, since each hand that
/// a result passes through may copy it, and what could have been an error with it.
pub(crate) enum Lifted<E> {
    Engine(tupelo_engine::Error),
    Caller(Box<E>),
}

impl<E> Lifted<E> {
    /// The error of the caller's visitor.
    #[cold]
    pub(crate) fn caller(error: E) -> Self {
        Self::Caller(Box::new(error))
    }
}

impl<E> From<tupelo_engine::Error> for Lifted<E> {
    fn from(error: tupelo_engine::Error) -> Self {
        Self::Engine(error)
    }
}

/// The outcome of a call of the engine whose visitor may fail with the caller's own error.
#[inline(always)]
#[expect(clippy::inline_always, reason = "nearly always there is no error")]
pub(crate) fn lift<R, E: From<Error>>(result: Result<R, Lifted<E>>) -> Result<R, E> {
    result.map_err(|error| match error {
        Lifted::Engine(error) => Error::from(error).into(),
        Lifted::Caller(error) => *error,
    })
}
