//! `scan`: all matches, one after the other, in bounded memory.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::sync::{Mutex, TryLockError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use tupelo::TupleView;

use crate::call::{Call, Verb};
use crate::errors::Failure;
use crate::objects::Objects;
use crate::results;

/// Tuples fetched at a time: few enough to stay fresh, enough to spread the cost of looking.
const BATCH: usize = 64;

/// `scan(*template, where=None)`
pub(crate) struct Scan;

impl Verb for Scan {
    const NAME: &'static CStr = c"scan";
    const DOC: &'static CStr = c"scan($self, /, *template, where=None)
--

Go through copies of all tuples that match, in no particular order and in bounded memory (rule O6).

A tuple that stays in the space throughout comes exactly once. A tuple that is put or taken meanwhile
may come or not. For one consistent moment use `read_all`. After the space is closed, the next step
raises `SpaceClosed`, unless the iterator was at its end.

Args:
    template: as for `take`.
    where: as for `take`.

Returns:
    An iterator of tuples.

If the call ends early:
    It does not wait. An iterator that you drop leaves nothing behind.
    Death of this process: the space is as before the call.

>>> space.put_all((\"job\", n) for n in range(3))
3
>>> sorted(n for _, n in space.scan(\"job\", int))
[0, 1, 2]
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        call.no_keywords()?;
        let template = call.owned_template()?;
        call.look_first()?;
        let walk =
            Walk { scan: call.space().scan(&template)?, fetched: VecDeque::new(), is_over: false };
        let scan = ScanIterator {
            walk: Mutex::new(walk),
            url: call.space().url().to_owned(),
            objects: call.handle.objects(),
        };
        Ok(Bound::new(call.py, scan)?.into_any())
    }
}

/// What `scan` returns.
#[pyclass(frozen, module = "tupelo", name = "ScanIterator")]
pub(crate) struct ScanIterator {
    walk: Mutex<Walk>,
    url: String,
    objects: Objects,
}

struct Walk {
    scan: tupelo::Scan,
    fetched: VecDeque<Py<PyAny>>,
    /// An iterator that has ended stays so, whatever happens to the space.
    is_over: bool,
}

#[pymethods]
impl ScanIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.next(py).map_err(|failure: Failure| failure.into_exception(py, &self.url))
    }
}

impl ScanIterator {
    fn next<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>, Failure> {
        // Not `lock`: loading a pickle may let other threads run, and a thread that waited here would hold the lock of
        // the interpreter for ever.
        let mut walk = match self.walk.try_lock() {
            Ok(walk) => walk,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let message = "another thread is in this iterator: give each thread its own scan";
                return Err(PyRuntimeError::new_err(message).into());
            }
        };
        if walk.is_over {
            return Ok(None);
        }
        walk.scan.require_open()?;
        if walk.fetched.is_empty() {
            let batch = walk.scan.next_batch(BATCH, |view: TupleView<'_>| {
                results::tuple(py, view, &[], self.objects).map(Bound::unbind)
            });
            walk.fetched = batch?.into();
            walk.is_over = walk.fetched.is_empty();
        }
        Ok(walk.fetched.pop_front().map(|tuple| tuple.into_bound(py)))
    }
}
