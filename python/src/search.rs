//! Searches as objects of Python (rule O10): `Search`, its finds, and for `tupelo.aio` its place in the wait queue.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use tupelo::{Error, Found as Hit, Search, SearchWaiter, Space, TemplateRef, Visits, Want};

use crate::arguments::{self, Source};
use crate::call::Argument;
use crate::entries;
use crate::errors::{self, Failure};
use crate::renewal;
use crate::results;
use crate::space::Handle;
use crate::template;
use crate::timeout;
use crate::verbs::notifier::NotifierObject;
use crate::waiting::{self, Deadline};

/// Several spaces, to find a tuple that is in one of them. Public as `tupelo.Search`.
#[pyclass(frozen, subclass, module = "tupelo._native", name = "Search")]
pub(crate) struct SearchObject {
    handles: Vec<Py<Handle>>,
    /// The value of `Found.space` for each: the space itself, or the space of `tupelo.aio` that has it.
    shown: Vec<Py<PyAny>>,
    /// Whether one of them goes on in the next space of its name.
    reconnects: bool,
    current: Mutex<Arc<Searched>>,
}

/// The spaces that the connections led to at a moment.
struct Searched {
    search: Search,
    pinned: Vec<Py<Handle>>,
}

/// The find of a search: the tuple, its space, and the cost.
#[pyclass(frozen, generic, module = "tupelo", name = "Found", get_all)]
pub(crate) struct Found {
    /// The tuple, as it was put.
    tuple: Py<PyAny>,
    /// The space of the tuple: one of the given spaces.
    space: Py<PyAny>,
    /// How many looks into a space it took. A search that waits has looked into each space twice.
    visited: usize,
    /// The time that the search waited for it, in seconds; 0.0 if a space had it.
    waited_s: f64,
}

#[pymethods]
impl Found {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (tuple, space) = (self.tuple.bind(py).repr()?, self.space.bind(py).repr()?);
        let (visited, waited_s) = (self.visited, self.waited_s);
        Ok(format!("Found(tuple={tuple}, space={space}, visited={visited}, waited_s={waited_s:?})"))
    }

    /// No `__clear__`: a cycle leads through something that was changed after this was made, which has one.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.tuple)?;
        visit.call(&self.space)
    }
}

type Sought<'a, 'py> = (&'a Bound<'py, PyTuple>, Option<&'a Bound<'py, PyDict>>);

impl Searched {
    /// The template that a verb of a space would get from these arguments and keywords; all spaces have met its class.
    fn given<'py>(&self, sought: Sought<'_, 'py>) -> Result<Bound<'py, PyTuple>, Failure> {
        let given = template::sought(self.pinned[0].get(), sought)?;
        if sought.0.len() == 1
            && let Some((entry, _)) = entries::of_object(&sought.0.get_item(0)?)?
        {
            for handle in &self.pinned[1..] {
                entries::meet(sought.0.py(), handle.get(), &entry)?;
            }
        }
        Ok(given)
    }
}

impl SearchObject {
    /// A search by these connections. It begins in the spaces that they are `pinned` to.
    fn over(
        search: Search,
        spaces: Vec<Bound<'_, Handle>>,
        pinned: Vec<Py<Handle>>,
        shown: Vec<Py<PyAny>>,
    ) -> Self {
        let reconnects = spaces.iter().any(|space| space.get().renewal().is_some());
        let current = Mutex::new(Arc::new(Searched { search, pinned }));
        Self {
            handles: spaces.into_iter().map(Bound::unbind).collect(),
            shown,
            reconnects,
            current,
        }
    }

    /// Locked for a moment only, with the interpreter's lock.
    fn locked(&self) -> MutexGuard<'_, Arc<Searched>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The spaces that the connections lead to by now.
    fn searched(&self, py: Python<'_>) -> Result<Arc<Searched>, Failure> {
        let searched = Arc::clone(&self.locked());
        if !self.reconnects {
            return Ok(searched);
        }
        let pinned = pinned_by(self.handles.iter().map(|handle| handle.bind(py)));
        if pinned.iter().zip(&searched.pinned).all(|(now, before)| now.is(before)) {
            return Ok(searched);
        }
        let search = searched.search.in_place(spaces_of(&pinned))?;
        let next = Arc::new(Searched { search, pinned });
        let before = mem::replace(&mut *self.locked(), Arc::clone(&next));
        // Dropped behind the lock, since dropping an object can run code.
        drop(before);
        Ok(next)
    }

    /// After a search failed: connects to the next space in the place of each that was removed. Returns whether there is one.
    fn goes_on(
        &self,
        py: Python<'_>,
        searched: &Searched,
        failure: &Failure,
    ) -> Result<bool, Failure> {
        let mut goes_on = false;
        if self.reconnects && matches!(failure, Failure::Space(Error::SpaceRemoved { .. })) {
            for (handle, pinned) in self.handles.iter().zip(&searched.pinned) {
                if let Some(renewal) = handle.get().renewal() {
                    goes_on |= renewal.renew(pinned.bind(py))?;
                }
            }
        }
        Ok(goes_on)
    }

    /// Gives `use_template` the spaces, the template of a call, and the arguments that it came from: again as long as a space was
    /// removed for which there is another one.
    fn with_template<'py, R>(
        &self,
        sought: Sought<'_, 'py>,
        use_template: impl Fn(&Searched, &[TemplateRef<'_>], &[Argument<'_, 'py>]) -> Result<R, Failure>,
    ) -> PyResult<R> {
        let py = sought.0.py();
        let attempt = |searched: &Searched| {
            let given = searched.given(sought)?;
            let given: Vec<Argument<'_, 'py>> = given.iter_borrowed().collect();
            arguments::with_template(py, (Source::Positional, &given), |template| {
                use_template(searched, template, &given)
            })
        };
        let attempts = || loop {
            let searched = self.searched(py)?;
            match attempt(&searched) {
                Err(failure) if self.goes_on(py, &searched, &failure)? => {}
                done => return done,
            }
        };
        attempts().map_err(|failure| self.exception(py, failure))
    }

    /// The exception for an error of one of the spaces.
    #[cold]
    fn exception(&self, py: Python<'_>, failure: Failure) -> PyErr {
        let handles = || self.handles.iter().map(Py::get);
        let speaker = match &failure {
            Failure::Space(Error::SpaceClosed { url }) => {
                handles().find(|handle| handle.url() == url)
            }
            _ => None,
        };
        speaker.unwrap_or(self.handles[0].get()).exception(py, failure)
    }

    fn found<'py>(
        &self,
        py: Python<'py>,
        hit: Hit<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Found>> {
        let found = Found {
            tuple: hit.result.unbind(),
            space: self.shown[hit.place].clone_ref(py),
            visited: hit.visited,
            waited_s: hit.waited.as_secs_f64(),
        };
        Bound::new(py, found)
    }

    fn try_find<'py>(
        &self,
        (searched, want): (&Searched, Want),
        template: &[TemplateRef<'_>],
        given: &[Argument<'_, 'py>],
        py: Python<'py>,
    ) -> Result<Option<Bound<'py, Found>>, Failure> {
        let visitor = |place: usize, view: tupelo::TupleView<'_>| {
            results::tuple(py, view, given, self.handles[place].get().objects())
        };
        let hit = match want {
            Want::Take => searched.search.try_take(template, visitor)?,
            Want::Read => searched.search.try_read(template, visitor)?,
        };
        Ok(hit.map(|hit| self.found(py, hit)).transpose()?)
    }

    /// Picks up the tuple that was handed over to `line`.
    fn finish_now<'py>(
        &self,
        py: Python<'py>,
        waiter: &mut SearchWaiter,
        given: &[Argument<'_, 'py>],
    ) -> Result<Option<Bound<'py, Found>>, Failure> {
        let hit = waiter.finish_now(|place, view| {
            results::tuple(py, view, given, self.handles[place].get().objects())
        })?;
        Ok(hit.map(|hit| self.found(py, hit)).transpose()?)
    }

    fn find<'py>(
        &self,
        want: Want,
        sought: Sought<'_, 'py>,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Found>> {
        let py = sought.0.py();
        let timeout = timeout::seconds("timeout", timeout.map(Bound::as_borrowed).as_ref())?;
        let deadline = Deadline::after(timeout);
        self.with_template(sought, |searched, template, given| {
            if let Some(found) = self.try_find((searched, want), template, given, py)? {
                return Ok(found);
            }
            if !deadline.is_now() {
                let mut waiter = searched.search.waiter(template, want)?;
                loop {
                    let is_over = deadline.is_over();
                    if is_over {
                        waiter.end_wait()?;
                    }
                    if let Some(found) = self.finish_now(py, &mut waiter, given)? {
                        return Ok(found);
                    }
                    if is_over {
                        break;
                    }
                    let last = |rest| waiter.wait(Some(rest));
                    waiting::in_slices(py, &deadline, |part| waiter.wait_part(part), last)?;
                }
            }
            Err(searched.search.timeout(verb(want), template, deadline.timeout()).into())
        })
    }
}

#[pymethods]
impl SearchObject {
    #[new]
    #[pyo3(signature = (spaces, order, shown = None))]
    fn new(
        py: Python<'_>,
        spaces: Vec<Bound<'_, Handle>>,
        order: &str,
        shown: Option<Vec<Py<PyAny>>>,
    ) -> PyResult<Self> {
        let visits = match order {
            "round robin" => Visits::RoundRobin,
            "success factor" => Visits::SuccessFactor,
            other => {
                let message = format!("order is {other:?}: give 'round robin' or 'success factor'");
                return Err(PyValueError::new_err(message));
            }
        };
        let pinned = pinned_by(&spaces);
        let search = Search::new(spaces_of(&pinned), visits)
            .map_err(|error| errors::from_space(py, &error, ""))?;
        let shown = shown.unwrap_or_else(|| {
            spaces.iter().map(|space| space.clone().into_any().unbind()).collect()
        });
        if shown.len() != spaces.len() {
            return Err(PyTypeError::new_err("as many spaces are to be shown as searched"));
        }
        Ok(Self::over(search, spaces, pinned, shown))
    }

    /// The same search by other connections, each in the place of one of these. For `tupelo.aio`.
    fn in_place(&self, py: Python<'_>, spaces: Vec<Bound<'_, Handle>>) -> PyResult<Self> {
        let pinned = pinned_by(&spaces);
        let search = Arc::clone(&self.locked()).search.in_place(spaces_of(&pinned));
        let search = search.map_err(|error| self.exception(py, error.into()))?;
        let shown = self.shown.iter().map(|one| one.clone_ref(py)).collect();
        Ok(Self::over(search, spaces, pinned, shown))
    }

    /// The spaces, in the order of the list that was given.
    #[getter]
    fn spaces<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shown)
    }

    /// Take a match from one of the spaces, waiting for one in all of them.
    ///
    /// Exactly one tuple is taken. A tuple that another space had handed over meanwhile goes back to its place (T5).
    ///
    /// Args:
    ///     template: as for `Space.take`.
    ///     timeout: longest wait, in seconds. None waits for ever; 0 does not wait.
    ///     where: a condition over the whole tuple (rule M9).
    ///
    /// Returns:
    ///     The find: a `Found`, with the tuple, its space, and how many looks it took.
    ///
    /// Raises:
    ///     `Timeout`: nothing matched in any space in time. No space has changed.
    ///     `SpaceClosed`: one of the spaces was closed. No space has changed.
    #[pyo3(signature = (*template, timeout = None, **fields))]
    fn take<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        timeout: Option<&Bound<'py, PyAny>>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Found>> {
        self.find(Want::Take, (template, fields), timeout)
    }

    /// Return a copy of a match from one of the spaces, waiting for one in all of them. The tuple stays in its space.
    ///
    /// The arguments and the exceptions are those of `take`.
    #[pyo3(signature = (*template, timeout = None, **fields))]
    fn read<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        timeout: Option<&Bound<'py, PyAny>>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Found>> {
        self.find(Want::Read, (template, fields), timeout)
    }

    /// Take a match from one of the spaces, or return None at once if there is none. Looks into each space once.
    #[pyo3(signature = (*template, **fields))]
    fn try_take<'py>(
        &self,
        py: Python<'py>,
        template: &Bound<'py, PyTuple>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, Found>>> {
        self.with_template((template, fields), |searched, template, given| {
            self.try_find((searched, Want::Take), template, given, py)
        })
    }

    /// Return a copy of a match from one of the spaces, or None at once if there is none.
    #[pyo3(signature = (*template, **fields))]
    fn try_read<'py>(
        &self,
        py: Python<'py>,
        template: &Bound<'py, PyTuple>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, Found>>> {
        self.with_template((template, fields), |searched, template, given| {
            self.try_find((searched, Want::Read), template, given, py)
        })
    }

    /// Join the wait queue in all spaces, for a caller that has looked before and waits in a manner of its own. For
    /// `tupelo.aio`.
    #[pyo3(signature = (want, /, *template, **fields))]
    fn waiter(
        slf: &Bound<'_, Self>,
        want: &str,
        template: &Bound<'_, PyTuple>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<SearchWaiterObject> {
        let this = slf.get();
        let want = if want == "read" { Want::Read } else { Want::Take };
        let waiter = this.with_template((template, fields), |searched, template, _| {
            Ok(searched.search.waiter(template, want)?)
        })?;
        Ok(SearchWaiterObject { waiter: Mutex::new(Some(waiter)), search: slf.clone().unbind() })
    }

    /// The exception of a search that waited in vain.
    #[pyo3(signature = (want, seconds, /, *template, **fields))]
    fn timed_out(
        &self,
        want: &str,
        seconds: f64,
        template: &Bound<'_, PyTuple>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyErr> {
        let verb = if want == "read" { "read" } else { "take" };
        let error = self.with_template((template, fields), |searched, template, _| {
            Ok(searched.search.timeout(verb, template, std::time::Duration::from_secs_f64(seconds)))
        })?;
        Ok(self.exception(template.py(), error.into()))
    }

    fn __repr__(&self) -> String {
        let urls: Vec<_> = self.handles.iter().map(|handle| handle.get().url()).collect();
        format!("<Search {}>", urls.join(", "))
    }

    /// No `__clear__`: a cycle leads through an object that was changed after this was made. An example is an attribute
    /// of a space of `tupelo.aio`, which has one. None leads through a pinned connection, which refers to nothing.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.handles.iter().try_for_each(|handle| visit.call(handle))?;
        self.shown.iter().try_for_each(|space| visit.call(space))
    }
}

/// A place in the wait queue in several spaces. Cancelled when it is forgotten.
#[pyclass(frozen, module = "tupelo._native", name = "SearchWaiter")]
pub(crate) struct SearchWaiterObject {
    /// None once it was finished or cancelled.
    waiter: Mutex<Option<SearchWaiter>>,
    search: Py<SearchObject>,
}

impl SearchWaiterObject {
    fn locked(&self) -> MutexGuard<'_, Option<SearchWaiter>> {
        self.waiter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done() -> PyErr {
        PyRuntimeError::new_err("this line is done")
    }
}

#[pymethods]
impl SearchWaiterObject {
    /// Let the notifier in the place of each space tell of its events. Return where it is in the wait queue, and the
    /// number under which that notifier tells of it.
    #[expect(clippy::needless_pass_by_value, reason = "a list of Python arrives as a vector")]
    fn ring(&self, notifiers: Vec<Bound<'_, NotifierObject>>) -> PyResult<Vec<(usize, u32)>> {
        let waiter = self.locked();
        let places = waiter.as_ref().ok_or_else(Self::done)?.places();
        let ring = |(place, waiter): (usize, &tupelo::Waiter)| {
            let notifier =
                notifiers.get(place).ok_or_else(|| PyTypeError::new_err("a notifier per space"))?;
            Ok((place, notifier.get().ring_for(waiter)?))
        };
        places.map(ring).collect()
    }

    /// End the wait: nothing is handed over from now on. An earlier tuple is to be picked up.
    fn end_wait(&self, py: Python<'_>) -> PyResult<()> {
        let waiter = self.locked();
        let ended = waiter.as_ref().ok_or_else(Self::done)?.end_wait();
        ended.map_err(|error| self.search.get().exception(py, error.into()))
    }

    /// Pick up a tuple and give up all other places; None if there is none yet.
    fn finish_now<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Found>>> {
        let search = self.search.get();
        let mut waiter = self.locked().take().ok_or_else(Self::done)?;
        let found = search.finish_now(py, &mut waiter, &[]);
        let found = found.map_err(|failure| search.exception(py, failure))?;
        if found.is_none() {
            *self.locked() = Some(waiter);
        }
        Ok(found)
    }

    /// Give up. A tuple that was handed over goes back to its place (T5).
    fn cancel(&self) {
        let waiter = self.locked().take();
        drop(waiter);
    }

    /// No `__clear__`, as for the search.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.search)
    }
}

/// The connections to the spaces of the moment.
fn pinned_by<'a, 'py: 'a>(
    spaces: impl IntoIterator<Item = &'a Bound<'py, Handle>>,
) -> Vec<Py<Handle>> {
    spaces.into_iter().map(|space| renewal::pinned(space).unbind()).collect()
}

fn spaces_of(pinned: &[Py<Handle>]) -> Vec<Space> {
    pinned.iter().map(|one| one.get().space().into_owned()).collect()
}

const fn verb(want: Want) -> &'static str {
    match want {
        Want::Take => "take",
        Want::Read => "read",
    }
}
