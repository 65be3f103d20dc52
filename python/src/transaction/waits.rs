//! How the verbs of a transaction look for matches, and wait for them.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use tupelo::{Order, Outcome, TemplateRef, Want};

use super::inside::InsideObject;
use crate::arguments::{self, Source};
use crate::call::Argument;
use crate::errors::Failure;
use crate::order;
use crate::results;
use crate::space::Handle;
use crate::template;
use crate::waiting::{self, Deadline};

impl InsideObject {
    /// Gives `use_template` the template of a call, and what to build the result with.
    pub(super) fn with_template<'py, R>(
        &self,
        sought: (&Bound<'py, PyTuple>, Option<&Bound<'py, PyDict>>),
        use_template: impl FnOnce(&[TemplateRef<'_>], &Visitor<'_, 'py>) -> Result<R, Failure>,
    ) -> PyResult<R> {
        let (py, handle) = (sought.0.py(), self.handle());
        let given = template::sought(handle, sought).map_err(|why| self.exception(py, why))?;
        let given: Vec<Argument<'_, 'py>> = given.iter_borrowed().collect();
        let visitor = Visitor { py, fields: &given, handle };
        arguments::with_template(py, (Source::Positional, &given), |template| {
            use_template(template, &visitor)
        })
        .map_err(|failure| self.exception(py, failure))
    }

    /// Waits to take a match.
    pub(super) fn wait_to_take<'py>(
        &self,
        template: &[TemplateRef<'_>],
        (order, visitor): (Order, &Visitor<'_, 'py>),
        (verb, timeout): (&'static str, Option<Duration>),
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let inside = self.inside();
        if inside.has_read()? {
            return self.retry(template, visitor.py, (verb, timeout), || {
                self.take_now(template, order, visitor)
            });
        }
        let deadline = Deadline::after(Some(inside.wait_at_most(timeout)));
        let mut waiter = inside.waiter(template, Want::Take)?;
        loop {
            match inside.finish_take(waiter, |view| visitor.tuple(view))? {
                Outcome::Done(tuple) => return Ok(tuple),
                Outcome::Waits(again) => waiter = again,
            }
            // Something may have been handed over when it was too late.
            if inside.is_over() || !waiting::last_wait(visitor.py, &waiter, &deadline)? {
                drop(waiter);
                return Err(inside.timeout(verb, template, timeout.unwrap_or_default()).into());
            }
        }
    }

    /// Tries again whenever something was put or given back.
    pub(super) fn retry<R>(
        &self,
        template: &[TemplateRef<'_>],
        py: Python<'_>,
        (verb, timeout): (&'static str, Option<Duration>),
        attempt: impl Fn() -> Result<Option<R>, Failure>,
    ) -> Result<R, Failure> {
        if let Some(done) = attempt()? {
            return Ok(done);
        }
        let inside = self.inside();
        if timeout != Some(Duration::ZERO) {
            let deadline = Deadline::after(Some(inside.wait_at_most(timeout)));
            let puts = inside.waiter(template, Want::Read)?;
            loop {
                if !inside.is_over()
                    && let Some(done) = attempt()?
                {
                    return Ok(done);
                }
                if !waiting::wait(py, &puts, &deadline)? {
                    break;
                }
            }
        }
        Err(inside.timeout(verb, template, timeout.unwrap_or_default()).into())
    }

    pub(super) fn take_now<'py>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        visitor: &Visitor<'_, 'py>,
    ) -> Result<Option<Bound<'py, PyAny>>, Failure> {
        order::require_numbers(visitor.py, order, template)?;
        self.inside().try_take(template, order, |view| visitor.tuple(view))
    }
}

/// What makes tuples of Python.
pub(super) struct Visitor<'a, 'py> {
    pub(super) py: Python<'py>,
    pub(super) fields: &'a [Argument<'a, 'py>],
    pub(super) handle: &'a Handle,
}

impl<'py> Visitor<'_, 'py> {
    pub(super) fn tuple(&self, view: tupelo::TupleView<'_>) -> Result<Bound<'py, PyAny>, Failure> {
        results::tuple(self.py, view, self.fields, self.handle.objects())
    }
}
