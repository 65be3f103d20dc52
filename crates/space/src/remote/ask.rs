//! The verbs as operations, and their answers as the verbs return them, for every kind of answerer.

use std::ops::ControlFlow;

use tupelo_engine::{LeaseTerms, Order};
use tupelo_protocol::{Action, Amount, Fault, Found, Kept, Operation, Pending, PutTerms, Remote};
use tupelo_protocol::{TemplateBytes, Tuples, Visitor};
use tupelo_tuple::image::ARITY_MAX;
use tupelo_tuple::{EncodeError, TemplateRef, TupleRef, TupleView};

use crate::error::Error;

/// The answerer of operations: a space that is elsewhere, or an object that was left open there.
#[derive(Clone, Copy)]
pub(crate) enum Ask<'a> {
    Space(&'a dyn Remote),
    /// In the space with this number, of a transaction.
    Kept(&'a dyn Kept, u32),
}

impl Ask<'_> {
    pub(crate) fn call(
        &self,
        operation: &Operation<'_>,
        visit: Visitor<'_>,
    ) -> Result<Found, Fault> {
        match self {
            Self::Space(remote) => remote.call(operation, visit),
            Self::Kept(kept, at) => kept.call(*at, operation, visit),
        }
    }

    pub(crate) fn wait(&self, operation: &Operation<'_>) -> Result<Box<dyn Pending>, Fault> {
        match self {
            Self::Space(remote) => remote.wait(operation),
            Self::Kept(kept, at) => kept.wait(*at, operation),
        }
    }

    /// Counts the matches.
    pub(crate) fn count(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        let template = TemplateBytes::encode(template)?;
        self.count_of(&Operation::Count { template: TemplateBytes::of_encoding(&template) })
    }

    /// The number that an operation is answered by.
    pub(crate) fn count_of(&self, operation: &Operation<'_>) -> Result<u64, Error> {
        match self.call(operation, &mut |_| ControlFlow::Break(()))? {
            Found::Count(count) => Ok(count),
            found => Err(not_due(operation, "a number", found)),
        }
    }

    /// Takes or reads one match.
    pub(crate) fn find<R, E: From<Error>>(
        &self,
        (action, order): (Action, Order),
        template: &[TemplateRef<'_>],
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let template = TemplateBytes::encode(template).map_err(Error::from)?;
        let find = find((action, order), Amount::One, &template, false);
        let mut visitor = Some(visitor);
        let found = self.tuples_of(&find, |tuple| visitor.take().map(|visitor| visitor(tuple)))?;
        Ok(found.and_then(|found| found.into_iter().next()))
    }

    /// Takes or reads the matches of one moment; `None` if there are too few.
    pub(crate) fn find_all<R, E: From<Error>>(
        &self,
        action: Action,
        (at_least, at_most): (usize, Option<usize>),
        template: &[TemplateRef<'_>],
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Vec<R>>, E> {
        let template = TemplateBytes::encode(template).map_err(Error::from)?;
        let amount = Amount::Many { at_least, at_most };
        let find = find((action, Order::Fifo), amount, &template, false);
        self.tuples_of(&find, |tuple| Some(visitor(tuple)))
    }

    /// What `visitor` makes of the tuples that an operation is answered by; `None` if nothing matches, or not enough. A tuple
    /// for which it returns nothing is one too many.
    pub(crate) fn tuples_of<R, E: From<Error>>(
        &self,
        operation: &Operation<'_>,
        visitor: impl FnMut(TupleView<'_>) -> Option<Result<R, E>>,
    ) -> Result<Option<Vec<R>>, E> {
        let (found, results) = collect(visitor, |visit| self.call(operation, visit))?;
        match found {
            Found::Tuples => Ok(Some(results)),
            Found::Nothing => Ok(None),
            found => Err(not_due(operation, "tuples", found).into()),
        }
    }
}

/// Runs `call` with a visitor that collects the results of `visitor`. An error of the visitor comes first.
pub(crate) fn collect<T, R, E: From<Error>>(
    mut visitor: impl FnMut(TupleView<'_>) -> Option<Result<R, E>>,
    call: impl FnOnce(Visitor<'_>) -> Result<T, Fault>,
) -> Result<(T, Vec<R>), E> {
    let (mut results, mut refused) = (Vec::new(), None);
    let mut visit = |tuple: TupleView<'_>| match visitor(tuple) {
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
    let called = call(&mut visit).map_err(Error::from);
    match refused {
        Some(refused) => Err(refused),
        None => Ok((called?, results)),
    }
}

/// An answer of another kind than is due.
#[cold]
pub(crate) fn not_due(operation: &Operation<'_>, what: &str, found: Found) -> Error {
    let problem = format!("{what} was due for {}, and not {found:?}", operation.name());
    Fault::protocol(problem).into()
}

pub(crate) fn put_terms(terms: &LeaseTerms) -> PutTerms {
    let LeaseTerms { lease, after } = *terms;
    PutTerms { lease, after }
}

/// Tuples as they are sent.
pub(crate) fn encoded<'t>(
    tuples: impl ExactSizeIterator<Item = TupleRef<'t>>,
) -> Result<Vec<u8>, Error> {
    Tuples::encode(tuples).map_err(|error| match error {
        // As an engine says it.
        EncodeError::TooManyFields { .. } => {
            let (what, limit) = ("fields in a tuple", ARITY_MAX);
            tupelo_engine::Error::LimitExceeded { what, limit }.into()
        }
        error => error.into(),
    })
}

pub(crate) fn find(
    (action, order): (Action, Order),
    amount: Amount,
    template: &[u8],
    waits: bool,
) -> Operation<'_> {
    Operation::Find { action, order, amount, waits, template: TemplateBytes::of_encoding(template) }
}
