//! Verbs for many tuples at one moment, or one after the other.

use std::sync::Arc;

use tupelo_tuple::{Template, TemplateRef, TupleRef, TupleView};

use crate::Engine;
use crate::base::error::Error;
use crate::base::terms::LeaseTerms;
use crate::operations::scan::{self, Scan};
use crate::operations::{bulk, take_many, transfer};

impl Engine {
    /// Stores all tuples, or none; they become visible together (rule O5). Returns how many.
    ///
    /// # Errors
    ///
    /// As [`Engine::put`], and [`Error::TransactionTooBig`] for more than one step can change: nothing was
    /// stored.
    pub fn put_all<'f>(&self, tuples: &[impl Into<TupleRef<'f>> + Copy]) -> Result<usize, Error> {
        bulk::put_all(self, tuples)
    }

    /// As [`Engine::put_all`], on terms that hold for each of them.
    ///
    /// # Errors
    ///
    /// As [`Engine::put_all`].
    pub fn put_all_leased<'f>(
        &self,
        tuples: &[impl Into<TupleRef<'f>> + Copy],
        terms: &LeaseTerms,
    ) -> Result<usize, Error> {
        bulk::put_all_leased(self, tuples, terms)
    }

    /// The number of matches at one moment.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn count(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        bulk::count(self, template)
    }

    /// The number of matches at one moment, and how many of them an open transaction keeps from being taken, since it has
    /// read them (rule X3).
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn count_with_read(&self, template: &[TemplateRef<'_>]) -> Result<(u64, u64), Error> {
        bulk::count_with_read(self, template)
    }

    /// Whether a match is in the space, or held by somebody who may give it back (rule O9).
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn present(&self, template: &[TemplateRef<'_>]) -> Result<bool, Error> {
        bulk::present(self, template)
    }

    /// Copies matches of one moment, up to `limit`, the oldest of each shape first.
    ///
    /// # Errors
    ///
    /// What the memory says, and what `visitor` says.
    pub fn read_all<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        limit: Option<usize>,
        visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        bulk::read_all(self, template, limit, visitor)
    }

    /// Begins a scan.
    pub fn scan(self: &Arc<Self>, template: Template) -> Scan {
        scan::scan(self, template)
    }

    /// Removes the matches of one moment, up to `limit`, the oldest of each shape first.
    ///
    /// # Errors
    ///
    /// The errors of the memory, and [`Error::TransactionTooBig`]: nothing was removed. The error of `visitor`: nothing
    /// was removed, if a tuple is large or has a field that its language may be unable to represent. Otherwise the
    /// tuples are put back, as new ones without a lease. They are lost if others have taken the room for them by then.
    pub fn take_all<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        limit: Option<usize>,
        visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        take_many::take_all(self, template, limit, visitor)
    }

    /// Removes between `at_least` and `at_most` matches of one moment; `None`, and nothing removed, if there
    /// are fewer. The visitor may get tuples that others take before this call can.
    ///
    /// # Errors
    ///
    /// As [`Engine::take_all`].
    pub fn try_take_many<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        at_least: usize,
        at_most: usize,
        visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Vec<R>>, E> {
        take_many::try_take_many(self, template, at_least, at_most, visitor)
    }

    /// Moves every match into `other`. Returns how many. Into the space itself: nothing changes.
    ///
    /// # Errors
    ///
    /// As [`Engine::put`] of `other` and [`Engine::take_all`] of this space: nothing was moved.
    pub fn move_to(&self, other: &Self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        transfer::move_to(self, other, template)
    }

    /// Copies every match into `other`. Returns how many.
    ///
    /// # Errors
    ///
    /// As [`Engine::put`] of `other`: nothing was copied.
    pub fn copy_to(&self, other: &Self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        transfer::copy_to(self, other, template)
    }

    /// Whether `other` is an engine over this very space.
    pub fn is_same_space(&self, other: &Self) -> bool {
        transfer::is_same_space(self, other)
    }
}
