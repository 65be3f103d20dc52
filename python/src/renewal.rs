//! A connection that goes on in another space when its own was removed: `connect(..., on_removed="reconnect")`.
//!
//! It has a connection of its own per space: the *pinned* one, which is refused for good once its space was removed. A
//! verb works on that. If the verb is refused for this reason it has had no effect that anybody could still see. So the space
//! of the name is opened anew, and the verb begins anew. Objects that a verb makes (claims, leases, transactions,
//! subscriptions, futures) are of the pinned connection, and end with its space.
//!
//! What is composed of several verbs in Python is given the pinned connection, too, and decides itself what it repeats.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyIterator, PyList, PyString};

use tupelo::{ConnectOptions, Error, LimitsAsked, Space};

use crate::call::{Argument, Call, Given, Verb};
use crate::errors::Failure;
use crate::objects::Objects;
use crate::space::{Handle, Place};
use crate::timeout;

/// The connection so far, and how to make the next.
pub(crate) struct Renewal {
    url: String,
    options: ConnectOptions,
    asked: LimitsAsked,
    objects: Objects,
    current: Mutex<Current>,
}

struct Current {
    pinned: Py<Handle>,
    is_closed: bool,
}

impl Renewal {
    /// Begins with the connection `pinned`, which was made with these options.
    pub(crate) fn new(
        pinned: Py<Handle>,
        (url, objects): (&str, Objects),
        options: &ConnectOptions,
        asked: LimitsAsked,
    ) -> Self {
        // What others have put in the next space stays.
        let options = ConnectOptions { fresh: false, ..options.clone() };
        let current = Mutex::new(Current { pinned, is_closed: false });
        Self { url: url.to_owned(), options, asked, objects, current }
    }

    /// Locked for a moment only, with the interpreter's lock: so no other thread forks meanwhile. Never while Python code runs or
    /// a connection is made.
    fn locked(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The URL, which all its spaces have.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The space that it is connected to by now.
    pub(crate) fn space(&self) -> Space {
        self.locked().pinned.get().space().into_owned()
    }

    /// The connection to that space.
    pub(crate) fn pinned<'py>(&self, py: Python<'py>) -> Bound<'py, Handle> {
        self.locked().pinned.bind(py).clone()
    }

    /// Ends it: no other connection follows. Returns the space, for the caller to close.
    pub(crate) fn end(&self) -> Space {
        let mut current = self.locked();
        current.is_closed = true;
        current.pinned.get().space().into_owned()
    }

    /// In the child of a fork, as [`Handle::stay_behind`].
    pub(crate) fn stay_behind(&self) {
        self.locked().pinned.get().stay_behind();
    }

    /// Connects to the space that has the name now, if that of `old` was removed. Returns whether it is another one than `old` by
    /// now. It is not if the space of `old` is still there, or if there is no other one and none may be made.
    ///
    /// # Errors
    ///
    /// Those of opening a space.
    pub(crate) fn renew(&self, old: &Bound<'_, Handle>) -> Result<bool, Failure> {
        let py = old.py();
        if !self.pinned(py).is(old) {
            return Ok(true); // another thread was faster
        }
        let is_known = match old.get().space().require_there() {
            Err(Error::SpaceRemoved { .. }) => true,
            // The token may not look: then the next connection shows it.
            Err(Error::AccessDenied { .. }) => false,
            _ => return Ok(false),
        };
        let connected: Result<Space, Error> = py.detach(|| {
            let space = Space::connect(&self.url, &self.options)?;
            space.require_limits(&self.asked)?;
            Ok(space.at_once())
        });
        let space = match connected {
            Err(Error::SpaceNotFound { .. }) => return Ok(false),
            connected => connected?,
        };
        if !is_known && space.is_same(&old.get().space()) {
            space.close();
            return Ok(false);
        }
        let next = Bound::new(py, Handle::new(Place::Here(space), self.objects))?;
        let mut current = self.locked();
        if current.is_closed {
            drop(current);
            next.get().space().close();
            return Ok(false);
        }
        let mut replaced = next.unbind();
        if current.pinned.is(old) {
            std::mem::swap(&mut current.pinned, &mut replaced);
        }
        // Dropped behind the lock, since dropping an object can run code.
        drop(current);
        drop(replaced);
        Ok(true)
    }
}

/// Refuses a space that was removed, or whose name another one has. All else is told by what is done in it.
///
/// # Errors
///
/// [`Error::SpaceRemoved`].
pub(crate) fn refuse_removed(space: &Space) -> Result<(), Error> {
    match space.require_there() {
        Err(error @ Error::SpaceRemoved { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// Calls a verb, and calls it again as long as a space was removed for which there is another one. That is the space of `renewal`,
/// if the call has one, or another space among the arguments.
///
/// # Errors
///
/// Those of the verb, and those of opening a space.
pub(crate) fn call<'py, V: Verb>(
    renewal: Option<&Renewal>,
    given: &Given<'_, 'py>,
) -> Result<Bound<'py, PyAny>, Failure> {
    let begin = Instant::now();
    let (py, names) = (given.py, given.keyword_names);
    let listed = listed::<V>(given)?;
    let fields = match &listed {
        Some(list) => vec![list.as_any().as_borrowed()],
        None => given.fields.to_vec(),
    };
    let limit = limit_of(given)?;
    let mut is_again = false;
    loop {
        let left = limit.filter(|_| is_again).map(|(at, limit)| {
            (at, PyFloat::new(py, limit.saturating_sub(begin.elapsed()).as_secs_f64()))
        });
        let mut values = given.keyword_values.to_vec();
        if let Some((at, left)) = &left {
            values[*at] = left.as_any().as_borrowed();
        }
        let pinned = match renewal {
            Some(renewal) => renewal.pinned(py),
            None => given.object.cast::<Handle>().map_err(PyErr::from)?.to_owned(),
        };
        let others = renewing_among(py, &fields);
        let object = pinned.as_any().as_borrowed();
        let Place::Here(space) = pinned.get().place() else {
            unreachable!("a pinned connection is to one space")
        };
        let again = Given {
            py,
            object,
            handle: pinned.get(),
            fields: &fields,
            keyword_names: names,
            keyword_values: &values,
        };
        let done = match Call::of::<V>(&again, given.object, space) {
            Ok(call) => V::call(&call),
            Err(why) => Err(why.into()),
        };
        let failure = match done {
            Err(failure) if is_of_removed::<V>(py, &failure)? => failure,
            done => return done,
        };
        let mut goes_on = renewal.map_or(Ok(false), |renewal| renewal.renew(&pinned))?;
        for (other, pinned) in &others {
            if let Some(other) = other.get().renewal() {
                goes_on |= other.renew(pinned)?;
            }
        }
        if !goes_on {
            return Err(failure);
        }
        is_again = true;
    }
}

/// Whether a verb has failed since a space was removed. What is composed of several verbs raises the exception; it may have renewed
/// the connection before, and then it was raised by what the caller has passed. The steps of a verb that goes through an iterator are
/// not repeated: some have happened.
fn is_of_removed<V: Verb>(py: Python<'_>, failure: &Failure) -> PyResult<bool> {
    match failure {
        Failure::Space(error) => Ok(matches!(error, Error::SpaceRemoved { .. })),
        Failure::Raised(_) if V::ITERATES || V::RENEWS => Ok(false),
        Failure::Raised(exception) => {
            let removed = py.import("tupelo.errors")?.getattr("SpaceRemoved")?;
            Ok(exception.is_instance(py, &removed))
        }
    }
}

/// The tuples of a verb that goes through an iterator, which can not be done twice. Steps of their own are not repeated.
fn listed<'py, V: Verb>(given: &Given<'_, 'py>) -> PyResult<Option<Bound<'py, PyList>>> {
    let [sole] = given.fields else { return Ok(None) };
    if !V::ITERATES || sole.cast::<PyIterator>().is_err() {
        return Ok(None);
    }
    if let Some((_, atomic)) = keyword(given, "atomic")?
        && !atomic.is_truthy()?
    {
        return Ok(None);
    }
    let list = PyList::empty(given.py);
    for item in sole.try_iter()? {
        list.append(item?)?;
    }
    Ok(Some(list))
}

/// Where the keywords have a time in seconds after which the call ends.
fn limit_of(given: &Given<'_, '_>) -> PyResult<Option<(usize, Duration)>> {
    let Some((at, value)) = keyword(given, "timeout")? else { return Ok(None) };
    // What is no time is refused by the verb.
    let seconds = timeout::seconds("timeout", Some(&value)).unwrap_or_default();
    Ok(seconds.map(|seconds| (at, seconds)))
}

fn keyword<'a, 'py>(
    given: &Given<'a, 'py>,
    sought: &str,
) -> PyResult<Option<(usize, Argument<'a, 'py>)>> {
    let names = given.keyword_names.iter().flat_map(|names| names.iter_borrowed());
    for (at, name) in names.enumerate() {
        if name.cast::<PyString>()?.to_str()? == sought {
            return Ok(Some((at, given.keyword_values[at])));
        }
    }
    Ok(None)
}

/// The other spaces of a call that reconnect, with their connections so far.
fn renewing_among<'py>(
    py: Python<'py>,
    fields: &[Argument<'_, 'py>],
) -> Vec<(Bound<'py, Handle>, Bound<'py, Handle>)> {
    let other = |field: &Argument<'_, 'py>| {
        let space = field.cast::<Handle>().ok()?.to_owned();
        let pinned = space.get().renewal()?.pinned(py);
        Some((space, pinned))
    };
    fields.iter().filter_map(other).collect()
}

/// The connection of `space` to the space that it is in by now: that ends when this one is removed. `space` itself, if it does
/// so.
#[pyfunction]
pub(crate) fn pinned<'py>(space: &Bound<'py, Handle>) -> Bound<'py, Handle> {
    space.get().renewal().map_or_else(|| space.clone(), |renewal| renewal.pinned(space.py()))
}

/// After `connection`, the pinned one of `space`, was refused: connect to the space that has the name now. Return whether there
/// is another connection by now.
#[pyfunction]
pub(crate) fn renewed(space: &Bound<'_, Handle>, connection: &Bound<'_, Handle>) -> PyResult<bool> {
    let Some(renewal) = space.get().renewal() else { return Ok(false) };
    renewal.renew(connection).map_err(|failure| space.get().exception(space.py(), failure))
}
