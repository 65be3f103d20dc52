//! Spaces that are elsewhere: the verbs as [`Operation`]s, and their answers as the verbs return them.

use std::ops::ControlFlow;
use std::sync::Arc;

use tupelo_client::{OpenOptions, RemoteSpace, Server};
use tupelo_engine::{LeaseTerms, Order};
use tupelo_protocol::{Action, Amount, Fault, Found, Operation, PutTerms, Remote};
use tupelo_protocol::{TemplateBytes, Tuples, Watched};
use tupelo_tuple::image::ARITY_MAX;
use tupelo_tuple::{EncodeError, TemplateRef, TupleRef, TupleView};

use crate::connect::{Backend, ConnectOptions, Space};
use crate::error::Error;
use crate::wait::{Waiter, Want, Watch};

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

/// What the spaces of `engine` do not do.
#[cold]
pub(crate) fn unsupported(what: &str, engine: &str) -> Error {
    Error::Unsupported {
        problem: format!("there is no way yet to have {what} over {engine}"),
        hint: "a server's spaces have put, take, read, their try_ forms, put_all, put_if_absent, take_all, read_all, \
               take_many, swap, count and wait_none; on the server's machine, shm://NAME has everything"
            .into(),
    }
}

impl Space {
    /// What answers, for a space that is not [local](Space::local).
    fn remote(&self) -> Result<&dyn Remote, Error> {
        self.require_open()?;
        match &self.inner.backend {
            Backend::Remote(remote) => Ok(&**remote),
            Backend::Local(_) => unreachable!("who has an engine asks that"),
        }
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
        let tuples = encoded(tuples)?;
        let unless = unless.map(TemplateBytes::encode).transpose()?;
        let LeaseTerms { lease, after } = *terms;
        let put = self.count_of(&Operation::Put {
            tuples: Tuples::of_encoding(&tuples),
            terms: PutTerms { lease, after },
            unless: unless.as_deref().map(TemplateBytes::of_encoding),
        })?;
        Ok(usize::try_from(put).unwrap_or(usize::MAX))
    }

    /// As [`Space::count`].
    #[cold]
    pub(crate) fn count_remotely(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        let template = TemplateBytes::encode(template)?;
        self.count_of(&Operation::Count { template: TemplateBytes::of_encoding(&template) })
    }

    /// As [`Space::present`].
    #[cold]
    pub(crate) fn present_remotely(&self, template: &[TemplateRef<'_>]) -> Result<bool, Error> {
        let template = TemplateBytes::encode(template)?;
        let present = Operation::Present { template: TemplateBytes::of_encoding(&template) };
        Ok(self.count_of(&present)? > 0)
    }

    /// The number that an operation is answered by.
    fn count_of(&self, operation: &Operation<'_>) -> Result<u64, Error> {
        let found = self.remote()?.call(operation, &mut |_| ControlFlow::Break(()))?;
        let Found::Count(count) = found else {
            let problem = format!("a number was due for {}, and not {found:?}", operation.name());
            return Err(Fault::protocol(problem).into());
        };
        Ok(count)
    }

    /// As [`Space::try_take`] and [`Space::try_read`].
    #[cold]
    #[inline(never)]
    pub(crate) fn find_remotely<R, E: From<Error>>(
        &self,
        (action, order): (Action, Order),
        template: &[TemplateRef<'_>],
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let template = TemplateBytes::encode(template).map_err(Error::from)?;
        let find = find((action, order), Amount::One, &template, false);
        let mut sink = Some(sink);
        let found = self.tuples_of(&find, |tuple| sink.take().map(|sink| sink(tuple)))?;
        Ok(found.and_then(|found| found.into_iter().next()))
    }

    /// As [`Space::read_all`], [`Space::take_all`] and [`Space::try_take_many`].
    #[cold]
    #[inline(never)]
    pub(crate) fn find_all_remotely<R, E: From<Error>>(
        &self,
        action: Action,
        (at_least, at_most): (usize, Option<usize>),
        template: &[TemplateRef<'_>],
        mut sink: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Vec<R>>, E> {
        let template = TemplateBytes::encode(template).map_err(Error::from)?;
        let amount = Amount::Many { at_least, at_most };
        let find = find((action, Order::Fifo), amount, &template, false);
        self.tuples_of(&find, |tuple| Some(sink(tuple)))
    }

    /// As [`Space::try_swap`].
    #[cold]
    #[inline(never)]
    pub(crate) fn swap_remotely<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        to: TupleRef<'_>,
        mut sink: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let template = TemplateBytes::encode(template).map_err(Error::from)?;
        let to = encoded(std::iter::once(to))?;
        let swap = Operation::Swap {
            template: TemplateBytes::of_encoding(&template),
            to: Tuples::of_encoding(&to),
        };
        let found = self.tuples_of(&swap, |tuple| Some(sink(tuple)))?;
        Ok(found.and_then(|found| found.into_iter().next()))
    }

    /// What `sink` makes of the tuples that an operation is answered by; `None` if nothing matches, or not enough. A tuple
    /// for which it returns nothing is one too many.
    fn tuples_of<R, E: From<Error>>(
        &self,
        operation: &Operation<'_>,
        mut sink: impl FnMut(TupleView<'_>) -> Option<Result<R, E>>,
    ) -> Result<Option<Vec<R>>, E> {
        let (mut results, mut refused) = (Vec::new(), None);
        let mut visit = |tuple: TupleView<'_>| match sink(tuple) {
            Some(Ok(result)) => {
                results.push(result);
                ControlFlow::Continue(())
            }
            Some(Err(error)) => {
                refused = Some(error);
                ControlFlow::Break(())
            }
            None => ControlFlow::Break(()),
        };
        let found = self.remote()?.call(operation, &mut visit).map_err(Error::from)?;
        match (found, refused) {
            (_, Some(refused)) => Err(refused),
            (Found::Tuples, None) => Ok(Some(results)),
            (Found::Nothing, None) => Ok(None),
            (found, None) => {
                let name = operation.name();
                let problem = format!("tuples were due for {name}, and not {found:?}");
                Err(Error::from(Fault::protocol(problem)).into())
            }
        }
    }

    /// Gets in line at the server, as [`Space::take_or_wait`] and [`Space::read_or_wait`]. What there is already comes to
    /// who waits: nothing is asked first.
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
        Ok(Waiter::remote(self, pending, Some(want)))
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
        Ok(Waiter::remote(self, self.remote()?.wait(&watch)?, None))
    }
}

/// Tuples as they are sent.
fn encoded<'t>(tuples: impl ExactSizeIterator<Item = TupleRef<'t>>) -> Result<Vec<u8>, Error> {
    Tuples::encode(tuples).map_err(|error| match error {
        // As an engine says it.
        EncodeError::TooManyFields { .. } => {
            let (what, limit) = ("fields in a tuple", ARITY_MAX);
            tupelo_engine::Error::LimitExceeded { what, limit }.into()
        }
        error => error.into(),
    })
}

fn find(
    (action, order): (Action, Order),
    amount: Amount,
    template: &[u8],
    waits: bool,
) -> Operation<'_> {
    Operation::Find { action, order, amount, waits, template: TemplateBytes::of_encoding(template) }
}
