//! Spaces that are elsewhere: the verbs as [`Operation`]s, and their answers as the verbs return them.

mod ask;
pub(crate) mod claim;
pub(crate) mod lease;
mod looks;
mod rows;
pub(crate) mod scan;
mod spaces;
pub(crate) mod subscription;
pub(crate) mod transaction;

use std::sync::Arc;

use tupelo_client::{OpenOptions, RemoteSpace, Server};
use tupelo_engine::{LeaseTerms, Order};
use tupelo_protocol::{Action, Amount, Fault, Operation, Remote, TemplateBytes, Tuples, Watched};
use tupelo_tuple::{TemplateRef, TupleRef, TupleView};

use crate::connect::{Backend, ConnectOptions, Space};
use crate::error::Error;
use crate::wait::{Elsewhere, Waiter, Want, Watch};
pub(crate) use ask::{Ask, collect, encoded, find, not_due, put_terms};
pub use looks::names_to_tuples;
pub use spaces::{ServerSpace, spaces_of};

/// Opens the space `name` of `server`.
pub(crate) fn connect(
    server: &Server,
    (name, url): (&str, &str),
    options: &ConnectOptions,
) -> Result<Arc<dyn Remote>, Error> {
    let open = OpenOptions {
        name: name.into(),
        create: options.create,
        fresh: options.fresh,
        size_bytes: Some(options.size_bytes),
        tuples_max: options.tuples_max,
        when_full: options.when_full,
    };
    let space = RemoteSpace::open(server.clone(), open).map_err(|fault| named(fault, url))?;
    Ok(Arc::new(space))
}

/// Removes the space `name` of `server`.
pub(crate) fn remove(server: &Server, (name, url): (&str, &str)) -> Result<(), Error> {
    tupelo_client::remove(server, name).map_err(|fault| named(fault, url))
}

/// The server names its own space, and the caller knows it by another URL.
fn named(fault: Fault, url: &str) -> Error {
    match Error::from(fault) {
        Error::SpaceNotFound { .. } => Error::SpaceNotFound { url: url.into() },
        error => error,
    }
}

impl Space {
    /// What answers, for a space that is not [local](Space::local).
    pub(crate) fn remote(&self) -> Result<&dyn Remote, Error> {
        self.require_open()?;
        match &self.inner.backend {
            Backend::Remote(remote) => Ok(&**remote),
            Backend::Local(_) => unreachable!("who has an engine asks that"),
        }
    }

    fn ask(&self) -> Result<Ask<'_>, Error> {
        self.remote().map(Ask::Space)
    }

    /// As [`Space::put_all_leased`] and [`Space::put_if_absent`]. Returns how many were put.
    #[cold]
    #[inline(never)]
    pub(crate) fn put_remotely<'t>(
        &self,
        tuples: impl ExactSizeIterator<Item = TupleRef<'t>>,
        terms: &LeaseTerms,
        unless: Option<&[TemplateRef<'_>]>,
    ) -> Result<usize, Error> {
        let (tuples, unless) = (encoded(tuples)?, unless.map(TemplateBytes::encode).transpose()?);
        let put = Operation::Put {
            tuples: Tuples::of_encoding(&tuples),
            terms: put_terms(terms),
            unless: unless.as_deref().map(TemplateBytes::of_encoding),
        };
        let put = self.patiently(|| self.ask()?.count_of(&put))?;
        Ok(usize::try_from(put).unwrap_or(usize::MAX))
    }

    /// As [`Space::count`].
    #[cold]
    pub(crate) fn count_remotely(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        self.ask()?.count(template)
    }

    /// As [`Space::present`].
    #[cold]
    pub(crate) fn present_remotely(&self, template: &[TemplateRef<'_>]) -> Result<bool, Error> {
        let template = TemplateBytes::encode(template)?;
        let present = Operation::Present { template: TemplateBytes::of_encoding(&template) };
        Ok(self.ask()?.count_of(&present)? > 0)
    }

    /// As [`Space::try_take`] and [`Space::try_read`].
    #[cold]
    #[inline(never)]
    pub(crate) fn find_remotely<R, E: From<Error>>(
        &self,
        how: (Action, Order),
        template: &[TemplateRef<'_>],
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        self.ask()?.find(how, template, visitor)
    }

    /// As [`Space::read_all`], [`Space::take_all`] and [`Space::try_take_many`].
    #[cold]
    #[inline(never)]
    pub(crate) fn find_all_remotely<R, E: From<Error>>(
        &self,
        action: Action,
        numbers: (usize, Option<usize>),
        template: &[TemplateRef<'_>],
        visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Vec<R>>, E> {
        self.ask()?.find_all(action, numbers, template, visitor)
    }

    /// As [`Space::try_swap`].
    #[cold]
    #[inline(never)]
    pub(crate) fn swap_remotely<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        to: TupleRef<'_>,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let template = TemplateBytes::encode(template).map_err(Error::from)?;
        let to = encoded(std::iter::once(to))?;
        let swap = Operation::Swap {
            template: TemplateBytes::of_encoding(&template),
            to: Tuples::of_encoding(&to),
        };
        let found = self.ask()?.tuples_of(&swap, |tuple| Some(visitor(tuple)))?;
        Ok(found.and_then(|found| found.into_iter().next()))
    }

    /// Joins the wait queue at the server, as [`Space::take_or_wait`] and [`Space::read_or_wait`]. A tuple that the server has
    /// already comes to the waiter: no question is asked first.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait_remotely(
        &self,
        how: (Action, Order),
        template: &[TemplateRef<'_>],
    ) -> Result<Waiter, Error> {
        let template = TemplateBytes::encode(template)?;
        let pending = self.remote()?.wait(&find(how, Amount::One, &template, true))?;
        let want = if how.0 == Action::Take { Want::Take } else { Want::Read };
        Ok(Waiter::remote(self, Elsewhere::for_tuple(pending, want, template)))
    }

    /// As [`Space::watch`].
    #[cold]
    #[inline(never)]
    pub(crate) fn watch_remotely(
        &self,
        template: &[TemplateRef<'_>],
        on: Watch,
    ) -> Result<Waiter, Error> {
        let template = TemplateBytes::encode(template)?;
        let on = match on {
            Watch::Put => Watched::Put,
            Watch::Removal => Watched::Removal,
        };
        let watch = Operation::Watch { template: TemplateBytes::of_encoding(&template), on };
        Ok(Waiter::remote(self, Elsewhere::watch(self.remote()?.wait(&watch)?)))
    }

    /// As [`Space::room`].
    #[cold]
    pub(crate) fn room_remotely(&self) -> Result<Waiter, Error> {
        Ok(Waiter::remote(self, Elsewhere::watch(self.remote()?.wait(&Operation::Room)?)))
    }
}
