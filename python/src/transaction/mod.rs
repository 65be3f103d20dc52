//! Transactions as objects of Python (rules X1 to X7).

mod inside;
mod waits;

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use tupelo::Transaction as Held;

use crate::call::Argument;
use crate::errors;
use crate::refusal::stays_here;
use crate::renewal::pinned;
use crate::space::Handle;
pub(crate) use inside::InsideObject;

/// Operations on one or several spaces that take effect together, or not at all.
///
/// Made by `Space.transaction`. As a context manager it commits at the end of its block; an exception aborts it. Its own
/// verbs work on the space that it was made by, and `on` gives the others. It belongs to the thread that began it.
///
///     >>> space.put("account", "alice", 100)
///     >>> with space.transaction() as t:
///     ...     _, _, money = t.take("account", "alice", int)
///     ...     t.put("account", "alice", money - 10)
///     >>> space.take("account", "alice", int)
///     ('account', 'alice', 90)
#[pyclass(frozen, extends = InsideObject, module = "tupelo", name = "Transaction")]
pub(crate) struct TransactionObject {
    spaces: Vec<Py<Handle>>,
}

/// The object for a transaction over `spaces`.
pub(crate) fn object(
    py: Python<'_>,
    held: Held,
    spaces: Vec<Py<Handle>>,
) -> PyResult<Bound<'_, TransactionObject>> {
    let first = InsideObject { held: Arc::new(held), at: 0, space: spaces[0].clone_ref(py) };
    let initial = PyClassInitializer::from(first).add_subclass(TransactionObject { spaces });
    Bound::new(py, initial)
}

#[pymethods]
impl TransactionObject {
    /// Another space of the transaction, as the transaction sees it.
    ///
    /// Raises:
    ///     `TypeError`: it is no space.
    ///     `ValueError`: the transaction was not begun over it.
    fn on(slf: &Bound<'_, Self>, space: &Bound<'_, PyAny>) -> PyResult<InsideObject> {
        let Ok(space) = space.cast::<Handle>() else {
            let class = crate::known::class_name(space);
            return Err(PyTypeError::new_err(format!(
                "on() is given a space of this transaction, not a {class}"
            )));
        };
        let first = slf.as_super().get();
        let inside = first.held.on(&space.get().space());
        let at = inside.map_err(|error| first.exception(slf.py(), error.into()))?.number();
        let space = slf.get().spaces[at].clone_ref(slf.py());
        Ok(InsideObject { held: Arc::clone(&first.held), at, space })
    }

    /// Make everything happen at one moment (rule X1). `sync` says when the call returns, as for `Space.put`.
    ///
    /// Raises:
    ///     `Aborted`: the ttl has passed, and everything is as it was.
    ///     `SpaceFull`: there is no room. Nothing happened, and the transaction goes on.
    ///     `TransactionTooBig`: it changes more than one step can, some 600 000 tuples. Nothing happened, and the transaction goes on.
    ///     `ValueError`: it was committed or aborted before.
    #[pyo3(signature = (*, sync = None))]
    fn commit(slf: &Bound<'_, Self>, sync: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let first = slf.as_super().get();
        let committed = match first.space.get().sync(sync)? {
            Some(sync) => first.held.commit_with_sync(sync),
            None => first.held.commit(),
        };
        committed.map_err(|error| first.exception(slf.py(), error.into()))
    }

    /// Undo everything: the taken tuples are back with identity, age and place (rule X5).
    ///
    /// Raises:
    ///     `ValueError`: it was committed or aborted before.
    fn abort(slf: &Bound<'_, Self>) -> PyResult<()> {
        let first = slf.as_super().get();
        first.held.abort().map_err(|error| first.exception(slf.py(), error.into()))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Commit, unless the block has committed or aborted; abort if it raised. A block that has gone on after `Aborted`
    /// ends with it: it had no effect.
    #[pyo3(signature = (_kind, exception, _traceback, /))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        _kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if slf.as_super().get().held.is_ended() {
            return Ok(());
        }
        if !exception.is_none() {
            return Self::abort(slf);
        }
        let committed = Self::commit(slf, None);
        if let Err(why) = &committed
            && slf.as_super().get().held.is_open()
            // No call is left that could try again.
            && let Err(error) = Self::abort(slf)
        {
            errors::add_note(slf.py(), why, &error)?;
        }
        committed
    }

    /// Refused.
    #[expect(clippy::unused_self, reason = "a method of the protocol of pickle")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(stays_here("a transaction", "begin one in the other process"))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let first = slf.as_super().get();
        let state = if first.held.is_open() { "open" } else { "ended" };
        format!("<Transaction {}, {state}>", first.inside().space().url())
    }
}

/// The spaces of a transaction that `first` begins over `others` too.
///
/// # Errors
///
/// `TypeError` for an object that is no space.
pub(crate) fn spaces(first: Py<Handle>, others: &[Argument<'_, '_>]) -> PyResult<Vec<Py<Handle>>> {
    let mut spaces = vec![first];
    for other in others {
        let Ok(space) = other.cast::<Handle>() else {
            let class = crate::known::class_name(other);
            return Err(PyTypeError::new_err(format!(
                "transaction() is given the other spaces that it is over, not a {class}"
            )));
        };
        spaces.push(pinned(&space).unbind());
    }
    Ok(spaces)
}
