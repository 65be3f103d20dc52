//! One owner of many waiters: an event loop, or a thread that serves thousands of calls.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::connect::Space;
use crate::error::Error;
use crate::subscribe::{Inner as Events, Subscription};
use crate::wait::Waiter;

/// Tells its one owner which of many waiters have something. An event loop [listens](Bell::listen) and then waits
/// for the [file descriptor](AsFd) to be readable, with all else that it waits for; a thread [sleeps](Bell::sleep).
/// Either way it looks around in time ([`Bell::next_look`], [`Bell::look`]), as every blocked caller does.
///
/// ```
/// # use tupelo::*;
/// # let space = Space::connect("mem://bells", &ConnectOptions::default())?;
/// let bell = space.bell()?;
/// let template = [template!["job", Kind::Int]];
/// let waiter = space.waiter(&template, Want::Take)?;
/// let number = bell.add(&waiter);
/// space.put(&fields!["job", 7])?;
/// assert_eq!(bell.drain(), [number]);
/// let Outcome::Done(job) = waiter.finish_now(|tuple| Ok::<_, Error>(tuple.to_tuple()?))? else {
///     panic!("the bell rang, so there is a tuple")
/// };
/// assert_eq!(job.to_string(), r#"("job", 7)"#);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Bell {
    space: Space,
    inner: Inner,
}

/// Whose calls it is rung for.
#[derive(Debug)]
enum Inner {
    /// The waiters of an engine in this process.
    Here(tupelo_engine::Bell),
    /// The waiters of a space that is elsewhere.
    There(Box<dyn tupelo_protocol::Bell>),
}

/// How long the owner of a bell that waits elsewhere may wait before it looks around, whether the handle was closed.
const NEXT_LOOK: Duration = Duration::from_millis(100);

impl Space {
    /// Gets a bell.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] at the maximum of blocked callers (rule B2); [`Error::System`] if there can be no
    /// socket.
    pub fn bell(&self) -> Result<Bell, Error> {
        let inner = match self.local() {
            Some(engine) => Inner::Here(engine.bell()?),
            None => Inner::There(self.remote()?.bell()?),
        };
        Ok(Bell { space: self.clone(), inner })
    }
}

impl Bell {
    /// Lets what happens to `waiter`, one of the same space, ring this bell. Returns the number under which it is
    /// told of.
    ///
    /// # Panics
    ///
    /// If it is one of a space of another kind.
    pub fn add(&self, waiter: &Waiter) -> u32 {
        match (&self.inner, waiter.local(), waiter.elsewhere()) {
            (Inner::Here(bell), Some(waiter), _) => bell.add(waiter),
            (Inner::There(bell), _, Some(place)) => foreign(bell.add(Some(&*place.pending))),
            _ => foreign(None),
        }
    }

    /// As [`Bell::add`], of a subscription of the same space.
    pub fn add_subscription(&self, subscription: &Subscription) -> u32 {
        match (&self.inner, subscription.inner()) {
            (Inner::Here(bell), Events::Here(events)) => bell.add(events.waiter()),
            (Inner::There(bell), Events::There(events)) => foreign(events.ring(&**bell)),
            _ => foreign(None),
        }
    }

    /// Forgets the waiter or the subscription with this number. To be called before the waiter itself goes.
    pub fn remove(&self, number: u32) {
        match &self.inner {
            Inner::Here(bell) => bell.remove(number),
            Inner::There(bell) => bell.remove(number),
        }
    }

    /// The waiters that something may have happened to since the last call; one may be told of in vain.
    pub fn drain(&self) -> Vec<u32> {
        match &self.inner {
            Inner::Here(bell) => bell.drain(),
            Inner::There(bell) => bell.drain(),
        }
    }

    /// Says that the owner is about to wait for the file descriptor. Returns false if something has happened
    /// already: then drain, and listen again.
    #[must_use]
    pub fn listen(&self) -> bool {
        match &self.inner {
            Inner::Here(bell) => bell.listen(),
            Inner::There(bell) => bell.listen(),
        }
    }

    /// Sleeps until the bell rings, or for `slice`.
    pub fn sleep(&self, slice: Duration) {
        match &self.inner {
            Inner::Here(bell) => bell.sleep(slice),
            Inner::There(bell) => bell.sleep(slice),
        }
    }

    /// How long the owner may wait before it looks around.
    pub fn next_look(&self) -> Duration {
        match &self.inner {
            Inner::Here(bell) => bell.next_look(),
            Inner::There(_) => NEXT_LOOK,
        }
    }

    /// Says that the owner does not wait any more, until it listens or sleeps again: another thread then keeps the
    /// time.
    pub fn rest(&self) {
        match &self.inner {
            Inner::Here(bell) => bell.rest(),
            Inner::There(bell) => bell.rest(),
        }
    }

    /// Does what blocked callers do now and then, and returns the waiters that have a tuple, whether or not the
    /// bell rang for them, and all watches: a process that was killed before it could ring is made up for.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceClosed`] if the handle was closed meanwhile; the errors of the memory.
    pub fn look(&self) -> Result<Vec<u32>, Error> {
        self.space.require_open()?;
        match &self.inner {
            Inner::Here(bell) => Ok(bell.look()?),
            Inner::There(bell) => Ok(bell.drain()),
        }
    }

    /// As [`Bell::look`], for an owner with a waiter that has waited long enough. Tuples that a process held that died
    /// just now also reach the first in line (rule L5).
    ///
    /// # Errors
    ///
    /// As [`Bell::look`].
    pub fn last_look(&self) -> Result<Vec<u32>, Error> {
        self.space.require_open()?;
        match &self.inner {
            Inner::Here(bell) => Ok(bell.last_look()?),
            Inner::There(bell) => Ok(bell.drain()),
        }
    }
}

/// The number of a waiter that is one of the bell's space.
fn foreign(number: Option<u32>) -> u32 {
    let Some(number) = number else { panic!("a bell is rung for waiters of its own space") };
    number
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.inner {
            Inner::Here(bell) => bell.as_fd(),
            Inner::There(bell) => bell.descriptor(),
        }
    }
}
