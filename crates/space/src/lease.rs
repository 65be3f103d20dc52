//! Leases: tuples that disappear, or appear, by themselves (rules L1 to L4).

use std::sync::Arc;
use std::time::Duration;

use tupelo_engine::{Engine, LeaseTerms};
use tupelo_protocol::{Kept, Term};
use tupelo_tuple::{TemplateRef, TupleRef};

use crate::connect::Space;
use crate::durable::Durability;
use crate::error::Error;
use crate::lease_renewer::{KeepAlive, Renew, RenewalOutcome};
use crate::remote::lease as elsewhere;

/// A tuple that was put on terms: it can be renewed, and cancelled. The tuple stays whatever becomes of this handle.
#[derive(Clone, Debug)]
pub struct Lease {
    space: Space,
    held: Held,
    length: Option<Duration>,
}

/// Where a lease is kept.
#[derive(Clone, Debug)]
enum Held {
    /// In an engine here.
    Here(tupelo_engine::Lease),
    /// Elsewhere.
    There(Arc<dyn Kept>),
}

/// Renews a lease, whatever becomes of its handle.
struct Renewal {
    engine: Arc<Engine>,
    lease: tupelo_engine::Lease,
    length: Duration,
}

impl Renew for Renewal {
    fn renew(&self) -> RenewalOutcome {
        match self.engine.try_prolong(&self.lease, self.length) {
            Ok(false) => RenewalOutcome::Later,
            Err(tupelo_engine::Error::LeaseExpired) => RenewalOutcome::Ended,
            Ok(true) | Err(_) => RenewalOutcome::Renewed,
        }
    }
}

/// As [`Renewal`], of a lease that is elsewhere.
struct RemoteRenewal {
    lease: Arc<dyn Kept>,
    length: Duration,
}

impl Renew for RemoteRenewal {
    fn renew(&self) -> RenewalOutcome {
        match elsewhere::change(&*self.lease, Term::Prolong(self.length)) {
            Err(Error::LeaseExpired { .. } | Error::Misuse { .. }) => RenewalOutcome::Ended,
            Ok(()) | Err(_) => RenewalOutcome::Renewed,
        }
    }
}

impl Space {
    /// Stores a tuple that disappears when its lease ends, becomes visible later, or both. The length of a lease
    /// counts from when the tuple is visible.
    ///
    /// # Errors
    ///
    /// As [`Space::put`].
    #[inline]
    pub fn put_leased<'f>(
        &self,
        tuple: impl Into<TupleRef<'f>>,
        terms: &LeaseTerms,
    ) -> Result<Lease, Error> {
        let tuple = tuple.into();
        let held = match self.local().map(|engine| engine.put_leased(tuple, terms)) {
            Some(Ok(lease)) => Held::Here(lease),
            Some(Err(error)) => {
                Held::Here(self.put_leased_patiently(tuple, terms, error.into())?)
            }
            None => match self.put_leased_remotely(tuple, terms, None)? {
                Some(held) => Held::There(held),
                None => unreachable!("only a put with `unless` may put nothing"),
            },
        };
        self.settled(Lease { space: self.clone(), held, length: terms.lease })
    }

    /// As [`Space::put_otherwise`].
    #[cold]
    #[inline(never)]
    fn put_leased_patiently(
        &self,
        tuple: TupleRef<'_>,
        terms: &LeaseTerms,
        error: Error,
    ) -> Result<tupelo_engine::Lease, Error> {
        let engine = self.engine()?;
        self.unless_full(error, || Ok(engine.put_leased(tuple, terms)?))
    }

    /// As [`Space::put_leased`], unless something matches `unless`, as for [`Space::put_if_absent`] (rules L1, O8). Returns `None`
    /// then, and nothing was stored: of any number of racing callers, one has the lease.
    ///
    /// # Errors
    ///
    /// As [`Space::put`].
    pub fn put_if_absent_leased<'f>(
        &self,
        tuple: impl Into<TupleRef<'f>>,
        unless: &[TemplateRef<'_>],
        terms: &LeaseTerms,
    ) -> Result<Option<Lease>, Error> {
        let tuple = tuple.into();
        let held = match self.local() {
            Some(engine) => self
                .patiently(|| Ok(engine.put_if_absent_leased(tuple, unless, terms)?))?
                .map(Held::Here),
            None => self.put_leased_remotely(tuple, terms, Some(unless))?.map(Held::There),
        };
        let space = self.clone();
        self.settled(held.map(|held| Lease { space, held, length: terms.lease }))
    }

    /// As [`Space::put_all`], on terms that hold for each of the tuples.
    ///
    /// # Errors
    ///
    /// As [`Space::put_all`].
    pub fn put_all_leased<'f>(
        &self,
        tuples: &[impl Into<TupleRef<'f>> + Copy],
        terms: &LeaseTerms,
    ) -> Result<usize, Error> {
        let Some(engine) = self.local() else {
            let tuples = tuples.iter().map(|&tuple| tuple.into());
            return self.put_remotely(tuples, terms, None);
        };
        let count = self.patiently(|| Ok(engine.put_all_leased(tuples, terms)?))?;
        self.settled(count)
    }
}

impl Lease {
    /// How long the tuple will stay; `None`: for ever.
    ///
    /// # Errors
    ///
    /// [`Error::LeaseExpired`] if it is not there any more.
    pub fn expires_in(&self) -> Result<Option<Duration>, Error> {
        self.space.require_open()?;
        match &self.held {
            Held::Here(lease) => Ok(self.space.engine()?.expires_in(lease)?),
            Held::There(lease) => elsewhere::expires_in(&**lease),
        }
    }

    /// Lets the tuple stay for `length` from now; `None`: for ever (rule L2).
    ///
    /// # Errors
    ///
    /// [`Error::LeaseExpired`]: the lease has ended, or the tuple was taken.
    pub fn renew(&self, length: Option<Duration>) -> Result<(), Error> {
        self.space.require_open()?;
        match &self.held {
            Held::Here(lease) => {
                self.space.engine()?.renew(lease, length)?;
                self.space.settled(())
            }
            Held::There(lease) => elsewhere::change(&**lease, Term::Renew(length)),
        }
    }

    /// As [`Lease::renew`], and never shortens it: for a program that renews it beside others.
    ///
    /// # Errors
    ///
    /// As [`Lease::renew`].
    pub fn prolong(&self, length: Duration) -> Result<(), Error> {
        self.space.require_open()?;
        match &self.held {
            Held::Here(lease) => {
                self.space.engine()?.prolong(lease, length)?;
                self.space.settled(())
            }
            Held::There(lease) => elsewhere::change(&**lease, Term::Prolong(length)),
        }
    }

    /// As [`Lease::renew`], for as long as at first.
    ///
    /// # Errors
    ///
    /// As [`Lease::renew`].
    pub fn renew_as_before(&self) -> Result<(), Error> {
        self.renew(self.length)
    }

    /// The same lease, whose changes return when `sync` says, and not when the handle of the space does (rule C4).
    #[must_use]
    pub fn with_sync(&self, sync: Durability) -> Self {
        Self { space: self.space.with_sync(sync), ..self.clone() }
    }

    /// Removes the tuple (rule L2).
    ///
    /// # Errors
    ///
    /// [`Error::LeaseExpired`] if the tuple is gone, or held: claimed, taken in an open transaction, or handed to a
    /// blocked take. Nothing has changed then, and its lease goes on.
    pub fn cancel(&self) -> Result<(), Error> {
        self.space.require_open()?;
        match &self.held {
            Held::Here(lease) => {
                self.space.engine()?.cancel(lease)?;
                self.space.settled(())
            }
            Held::There(lease) => elsewhere::change(&**lease, Term::Cancel),
        }
    }

    /// Renews the lease, and does so again by a thread of its own as long as the returned guard lives. This goes on
    /// after this handle and the space's handle have gone. A lease that was renewed for longer stays so.
    ///
    /// # Errors
    ///
    /// [`Error::LeaseExpired`]: the lease has ended, or the tuple was taken. [`Error::Misuse`] if the lease never ends;
    /// [`Error::System`] if there can be no thread.
    pub fn keep_alive(&self) -> Result<KeepAlive, Error> {
        let length = self.length.ok_or_else(|| Error::Misuse {
            problem: "this lease never ends: there is nothing to keep alive".into(),
            hint: Some("put the tuple with a lease".into()),
        })?;
        // As in [`Claim::keep_alive`](crate::Claim::keep_alive): less may be left than until the thread renews it.
        self.prolong(length)?;
        match &self.held {
            Held::Here(lease) => {
                let engine = Arc::clone(self.space.engine()?);
                self.space.lease_renewer().keep(Renewal { engine, lease: *lease, length }, length)
            }
            Held::There(lease) => {
                let lease = Arc::clone(lease);
                self.space.lease_renewer().keep(RemoteRenewal { lease, length }, length)
            }
        }
    }
}
