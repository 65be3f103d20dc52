//! Verbs for one tuple.

use std::sync::Arc;

use tupelo_tuple::{TemplateRef, TupleRef, TupleView};

use crate::Engine;
use crate::base::error::Error;
use crate::index::find::Order;
use crate::operations::wait::Outcome;
use crate::operations::{exchange, put, read, take};

impl Engine {
    /// Stores a tuple unless something matches `unless`; held tuples count as present (rule O9). Returns
    /// whether it was stored: of any number of racing callers, one is told so.
    ///
    /// # Errors
    ///
    /// As [`Engine::put`].
    pub fn put_if_absent<'f>(
        &self,
        tuple: impl Into<TupleRef<'f>>,
        unless: &[TemplateRef<'_>],
    ) -> Result<bool, Error> {
        exchange::put_if_absent(self, tuple, unless)
    }

    /// Replaces the oldest match of the first shape that has one, and gives the old tuple to `visitor`; `None`
    /// if nothing matches. Nobody sees a moment with both or neither.
    ///
    /// # Errors
    ///
    /// As [`Engine::put`]: nothing changed. What `visitor` says: nothing changed, if the old tuple is large or has a
    /// field that its language may have no like of: then the visitor gets a copy. It may get several in turn, if others
    /// take the tuples. The accepted one is replaced. Else the swap has happened.
    pub fn try_swap<'f, R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        to: impl Into<TupleRef<'f>>,
        visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        exchange::try_swap(self, template, to, visitor)
    }

    /// Stores a tuple. When it returns, every later operation sees the tuple, or a waiter has it.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceFull`], [`Error::TooLarge`] and [`Error::LimitExceeded`]: nothing was stored.
    #[inline]
    pub fn put<'f>(&self, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        put::put(self, tuple)
    }

    /// Copies a match and gives it to `visitor`; `None` if nothing matches. Does not wait.
    ///
    /// # Errors
    ///
    /// What the memory says, and what `visitor` says.
    #[inline(always)]
    pub fn try_read<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        read::try_read(self, template, order, visitor)
    }

    /// Copies a match and gives it to `visitor`, as [`Engine::try_read`]; if nothing matches, joins the wait queue for one.
    ///
    /// What a dead process holds is not looked for: it comes to whoever is in the wait queue (rule L5).
    ///
    /// # Errors
    ///
    /// As [`Engine::try_read`] and [`Engine::waiter`].
    #[inline]
    pub fn read_or_wait<R, E: From<Error>>(
        self: &Arc<Self>,
        template: &[TemplateRef<'_>],
        order: Order,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        read::read_or_wait(self, template, order, visitor)
    }

    /// Removes a match and gives it to `visitor`; `None` if nothing matches. Does not wait.
    ///
    /// # Errors
    ///
    /// What the memory says, and what `visitor` says. If the visitor fails on a large tuple or one with a
    /// field that its language may have no like of, the tuple is put back (rule V3).
    #[inline(always)]
    pub fn try_take<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        take::try_take(self, template, order, visitor)
    }

    /// Removes a match and gives it to `visitor`, as [`Engine::try_take`]; if nothing matches, joins the wait queue for it.
    ///
    /// What a dead process holds is not looked for: it comes to whoever is in the wait queue (rule L5).
    ///
    /// # Errors
    ///
    /// As [`Engine::try_take`] and [`Engine::waiter`].
    #[inline]
    pub fn take_or_wait<R, E: From<Error>>(
        self: &Arc<Self>,
        template: &[TemplateRef<'_>],
        order: Order,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        take::take_or_wait(self, template, order, visitor)
    }
}
