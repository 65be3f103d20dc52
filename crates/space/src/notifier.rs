//! One owner of many waiters: an event loop, or a thread that serves thousands of calls.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::connect::Space;
use crate::error::Error;
use crate::subscribe::{Inner as Events, Subscription};
use crate::wait::Waiter;

/// Tells its one owner which of many waiters have something. An event loop [listens](Notifier::listen) and then waits
/// for the [file descriptor](AsFd) to be readable, with all else that it waits for; a thread [sleeps](Notifier::sleep).
/// Either way it looks around in time ([`Notifier::next_look`], [`Notifier::look`]), as every blocked caller does.
///
/// ```
/// # use tupelo::*;
/// # let space = Space::connect("mem://notifiers", &ConnectOptions::default())?;
/// let notifier = space.notifier()?;
/// let template = [template!["job", Kind::Int]];
/// let waiter = space.waiter(&template, Want::Take)?;
/// let number = notifier.add(&waiter);
/// space.put(&fields!["job", 7])?;
/// assert_eq!(notifier.drain(), [number]);
/// let Outcome::Done(job) = waiter.finish_now(|tuple| Ok::<_, Error>(tuple.to_tuple()?))? else {
///     panic!("the notifier told of it, so there is a tuple")
/// };
/// assert_eq!(job.to_string(), r#"("job", 7)"#);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Notifier {
    space: Space,
    inner: Inner,
}

/// Whose calls it tells of.
#[derive(Debug)]
enum Inner {
    /// The waiters of an engine in this process.
    Here(tupelo_engine::Notifier),
    /// The waiters of a space that is elsewhere.
    There(Box<dyn tupelo_protocol::Notifier>),
}

/// How long the owner of a notifier that waits elsewhere may wait before it looks around, whether the handle was closed.
const NEXT_LOOK: Duration = Duration::from_millis(100);

impl Space {
    /// Gets a notifier.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] at the maximum of blocked callers (rule B2); [`Error::System`] if there can be no
    /// socket.
    pub fn notifier(&self) -> Result<Notifier, Error> {
        let inner = match self.local() {
            Some(engine) => Inner::Here(engine.notifier()?),
            None => Inner::There(self.remote()?.notifier()?),
        };
        Ok(Notifier { space: self.clone(), inner })
    }
}

impl Notifier {
    /// Lets this notifier tell of what happens to `waiter`, one of the same space. Returns the number under which it
    /// does.
    ///
    /// # Panics
    ///
    /// If it is one of a space of another kind.
    pub fn add(&self, waiter: &Waiter) -> u32 {
        match (&self.inner, waiter.local(), waiter.elsewhere()) {
            (Inner::Here(notifier), Some(waiter), _) => notifier.add(waiter),
            (Inner::There(notifier), _, Some(place)) => {
                foreign(notifier.add(Some(&*place.pending)))
            }
            _ => foreign(None),
        }
    }

    /// As [`Notifier::add`], of a subscription of the same space.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceClosed`] if its handle was closed; [`Error::Misuse`] in a fork of the process that subscribed.
    ///
    /// # Panics
    ///
    /// As [`Notifier::add`].
    pub fn add_subscription(&self, subscription: &Subscription) -> Result<u32, Error> {
        Ok(match (&self.inner, &*subscription.inner()?) {
            (Inner::Here(notifier), Events::Here(events)) => notifier.add(events.waiter()),
            (Inner::Here(notifier), Events::InFile(events)) => {
                notifier.add(events.doorbell().waiter())
            }
            (Inner::There(notifier), Events::There(events)) => foreign(events.ring(&**notifier)),
            _ => foreign(None),
        })
    }

    /// Forgets the waiter or the subscription with this number. To be called before the waiter itself goes.
    pub fn remove(&self, number: u32) {
        match &self.inner {
            Inner::Here(notifier) => notifier.remove(number),
            Inner::There(notifier) => notifier.remove(number),
        }
    }

    /// The waiters that something may have happened to since the last call; one may be told of in vain.
    pub fn drain(&self) -> Vec<u32> {
        match &self.inner {
            Inner::Here(notifier) => notifier.drain(),
            Inner::There(notifier) => notifier.drain(),
        }
    }

    /// Says that the owner is awake, and [collects](Notifier::collect) soon what has happened: whoever has something for it
    /// meanwhile need not wake it.
    pub fn attend(&self) {
        if let Inner::Here(notifier) = &self.inner {
            notifier.attend();
        }
    }

    /// As [`Notifier::drain`], for an owner that [attends](Notifier::attend).
    pub fn collect(&self) -> Vec<u32> {
        match &self.inner {
            Inner::Here(notifier) => notifier.collect(),
            Inner::There(notifier) => notifier.drain(),
        }
    }

    /// Says that the owner is about to wait for the file descriptor. Returns false if something has happened
    /// already: then drain, and listen again.
    #[must_use]
    pub fn listen(&self) -> bool {
        match &self.inner {
            Inner::Here(notifier) => notifier.listen(),
            Inner::There(notifier) => notifier.listen(),
        }
    }

    /// Sleeps until the notifier has something to tell, or for `slice`.
    pub fn sleep(&self, slice: Duration) {
        match &self.inner {
            Inner::Here(notifier) => notifier.sleep(slice),
            Inner::There(notifier) => notifier.sleep(slice),
        }
    }

    /// How long the owner may wait before it looks around.
    pub fn next_look(&self) -> Duration {
        match &self.inner {
            Inner::Here(notifier) => notifier.next_look(),
            Inner::There(_) => NEXT_LOOK,
        }
    }

    /// Says that the owner does not wait any more, until it listens or sleeps again: another thread then keeps the
    /// time.
    pub fn rest(&self) {
        match &self.inner {
            Inner::Here(notifier) => notifier.rest(),
            Inner::There(notifier) => notifier.rest(),
        }
    }

    /// Does what blocked callers do now and then, and returns the waiters that have a tuple, whether or not the
    /// notifier was told of them, and all watches: so nothing is lost with a process that was killed before it told.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceClosed`] if the handle was closed meanwhile; the errors of the memory.
    pub fn look(&self) -> Result<Vec<u32>, Error> {
        self.space.require_open()?;
        match &self.inner {
            Inner::Here(notifier) => Ok(notifier.look()?),
            Inner::There(notifier) => Ok(notifier.drain()),
        }
    }

    /// As [`Notifier::look`], for an owner with a waiter that has waited long enough. Tuples that a process held that died
    /// just now also reach the first in the wait queue (rule L5).
    ///
    /// # Errors
    ///
    /// As [`Notifier::look`].
    pub fn last_look(&self) -> Result<Vec<u32>, Error> {
        self.space.require_open()?;
        match &self.inner {
            Inner::Here(notifier) => Ok(notifier.last_look()?),
            Inner::There(notifier) => Ok(notifier.drain()),
        }
    }
}

/// The number of a waiter that is one of the notifier's space.
fn foreign(number: Option<u32>) -> u32 {
    let Some(number) = number else { panic!("a notifier is rung for waiters of its own space") };
    number
}

impl AsFd for Notifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.inner {
            Inner::Here(notifier) => notifier.as_fd(),
            Inner::There(notifier) => notifier.descriptor(),
        }
    }
}
