//! Waiting for room in a full space (rule B1).

use std::time::{Duration, Instant};

use crate::connect::{Backend, Space};
use crate::error::Error;
use crate::wait::Waiter;
use tupelo_engine::WhenFull;

impl Space {
    /// What becomes of a put for which there is no room: as the space was created.
    pub fn when_full(&self) -> WhenFull {
        match &self.inner.backend {
            Backend::Local(engine) => engine.when_full(),
            Backend::Remote(remote) => remote.when_full(),
        }
    }

    /// A handle of the same space whose puts never wait for room, also if the space was created with that policy. For
    /// callers that wait in their own manner, with [`Space::room`].
    #[must_use]
    pub fn at_once(&self) -> Self {
        Self { waits: false, ..self.clone() }
    }

    /// Joins the wait queue for room. [`Waiter::wait`] returns true when it is worth trying, also in vain: try with
    /// [`Waiter::with_grant`], and wait again. Blocked puts are served in FIFO order: no other put takes the room that was
    /// made for the first. Dropped, it leaves the wait queue, and the next one is told.
    ///
    /// ```
    /// # use tupelo::*;
    /// # let options = ConnectOptions { tuples_max: Some(1), ..ConnectOptions::default() };
    /// # let space = Space::connect("mem://room", &options)?;
    /// space.put(&fields!["job", 1])?;
    /// let room = space.room()?;
    /// assert!(room.with_grant(|| space.put(&fields!["job", 2])).is_err());
    /// space.try_take(&[template!["job", Kind::Int]], Order::Fifo, |_| Ok::<_, Error>(()))?;
    /// assert!(room.wait(None)?);
    /// room.with_grant(|| space.put(&fields!["job", 2]))?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] at the maximum of blocked callers (rule B2).
    pub fn room(&self) -> Result<Waiter, Error> {
        let Some(engine) = self.local() else { return self.room_remotely() };
        Ok(Waiter::new(self, engine.room()?))
    }

    /// Runs `put`, any verb that may find the space full, until it finds room, whatever the policy of the space. It
    /// waits for room up to `timeout` (`None`: for ever). `put` gets a handle that does not wait itself.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tupelo::*;
    /// # let space = Space::connect("mem://when-room", &ConnectOptions::default())?;
    /// let second = Some(Duration::from_secs(1));
    /// space.when_room(second, |space| space.put_all(&[&fields!["job", 1], &fields!["job", 2]]))?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What `put` says at the end; [`Error::SpaceFull`] also after the time has run out. Nothing was stored.
    pub fn when_room<R>(
        &self,
        timeout: Option<Duration>,
        mut put: impl FnMut(&Self) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let at_once = self.at_once();
        self.put_when_room(timeout, || put(&at_once))
    }

    fn put_when_room<R>(
        &self,
        timeout: Option<Duration>,
        mut put: impl FnMut() -> Result<R, Error>,
    ) -> Result<R, Error> {
        match put() {
            Err(full) if full.may_pass() && timeout != Some(Duration::ZERO) => {}
            done => return done,
        }
        let begin = Instant::now();
        let room = self.room()?;
        loop {
            match room.with_grant(&mut put) {
                Err(full) if full.may_pass() => {
                    let left = timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()));
                    if !room.wait(left)? {
                        return Err(full);
                    }
                }
                done => return done,
            }
        }
    }

    /// Runs `put`; if it finds no room in a space whose puts wait, until it does.
    #[inline]
    pub(crate) fn patiently<R>(
        &self,
        mut put: impl FnMut() -> Result<R, Error>,
    ) -> Result<R, Error> {
        match put() {
            Err(error) => self.unless_full(error, put),
            done => done,
        }
    }

    /// As [`Space::patiently`], after a first attempt that ended with `error`.
    #[cold]
    pub(crate) fn unless_full<R>(
        &self,
        error: Error,
        put: impl FnMut() -> Result<R, Error>,
    ) -> Result<R, Error> {
        if self.waits && error.may_pass() { self.put_when_room(None, put) } else { Err(error) }
    }
}

impl Waiter {
    /// Runs a put for this place in the wait queue for room ([`Space::room`]): what room was made for it, it may use.
    pub fn with_grant<R>(&self, put: impl FnOnce() -> R) -> R {
        match (self.local(), self.elsewhere()) {
            (Some(waiter), _) => waiter.with_grant(put),
            (None, None) => put(),
            (None, Some(place)) => {
                let (mut put, mut result) = (Some(put), None);
                place.pending.with_grant(&mut || result = put.take().map(|put| put()));
                match result {
                    Some(result) => result,
                    None => unreachable!("a grant runs what it is given"),
                }
            }
        }
    }
}
