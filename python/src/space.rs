//! The class `Space`, without its verbs: opening, closing, listing, removing.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use tupelo::{ConnectOptions, Durability, Error, LimitsAsked, Space, WhenFull};

use crate::errors::{self, Failure};
use crate::known;
use crate::objects::Objects;
use crate::renewal::Renewal;

/// A connection to a space. Threads may share it; the child of a fork connects anew by itself.
///
/// Made by `connect`. As a context manager it closes itself; the tuples stay in the space.
#[pyclass(frozen, subclass, weakref, module = "tupelo", name = "Space")]
pub(crate) struct Handle {
    place: Place,
    /// What becomes of objects of no other kind.
    objects: Objects,
    /// Whether this process is a fork of the process that the space lives in.
    forked: AtomicBool,
    /// The classes of entries that were used here, by address.
    met: Mutex<HashSet<usize>>,
}

/// Where a connection leads.
pub(crate) enum Place {
    /// To one space.
    Here(Space),
    /// To the space of a name, also when that was removed and another one made.
    Renewing(Arc<Renewal>),
}

/// The class, the URL, whether objects are pickled, and what becomes of it when the space is removed.
type Reconnect<'py> = (Bound<'py, PyType>, String, bool, &'static str);

impl Handle {
    /// The connection to a place.
    pub(crate) fn new(place: Place, objects: Objects) -> Self {
        Self { place, objects, forked: AtomicBool::new(false), met: Mutex::default() }
    }

    /// The exception for a verb of this space that failed.
    #[cold]
    pub(crate) fn exception(&self, py: Python<'_>, failure: Failure) -> PyErr {
        let url = self.url();
        match failure {
            Failure::Space(Error::SpaceClosed { .. }) if self.forked.load(Ordering::Relaxed) => {
                let message = format!("{url} stayed in the process that this one was forked from");
                let name = self.name();
                let hint = format!("use shm://{name}, which forked processes share");
                errors::make(py, "SpaceClosed", &message, Some(&hint), Some(url))
            }
            failure => failure.into_exception(py, url),
        }
    }

    /// In the child of a fork: closes the connection to the parent's space. A new connection gets another space.
    pub(crate) fn stay_behind(&self) {
        self.forked.store(true, Ordering::Relaxed);
        match &self.place {
            Place::Here(space) => space.leave(),
            Place::Renewing(renewal) => renewal.stay_behind(),
        }
    }

    /// Whether a class of entries was used here before.
    pub(crate) fn has_met(&self, class: usize) -> bool {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).contains(&class)
    }

    /// Notes that a class of entries was used here.
    pub(crate) fn meet(&self, class: usize) {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).insert(class);
    }

    /// The space as a call uses it that says itself when it returns; `None` if it does not say so.
    ///
    /// # Errors
    ///
    /// `TypeError`, `ValueError`: the call says nothing that is known; or the space is in no file of this machine.
    pub(crate) fn synced(&self, sync: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Space>> {
        let Some(sync) = self.sync(sync)? else { return Ok(None) };
        Ok(Some(self.space().with_sync(sync)))
    }

    /// When a call returns that says so itself.
    ///
    /// # Errors
    ///
    /// As [`Handle::synced`].
    pub(crate) fn sync(&self, sync: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Durability>> {
        let Some(sync) = sync.filter(|sync| !sync.is_none()) else { return Ok(None) };
        let durability = durability(sync)?;
        if self.space().is_kept() {
            return Ok(Some(durability));
        }
        let (sync, url) = (durability.name(), self.url());
        Err(PyValueError::new_err(format!(
            "sync is {sync:?}, and {url} is kept in no file: leave it out, or open a space file:///path"
        )))
    }

    /// Where it leads.
    #[inline]
    pub(crate) const fn place(&self) -> &Place {
        &self.place
    }

    /// The space itself, of which it has been told by now.
    #[inline]
    pub(crate) fn space(&self) -> Cow<'_, Space> {
        match &self.place {
            Place::Here(space) => Cow::Borrowed(space),
            Place::Renewing(renewal) => Cow::Owned(renewal.space()),
        }
    }

    /// What reconnects it, if it does.
    pub(crate) fn renewal(&self) -> Option<&Renewal> {
        match &self.place {
            Place::Here(_) => None,
            Place::Renewing(renewal) => Some(renewal.as_ref()),
        }
    }

    /// What becomes of objects of no other kind.
    #[inline]
    pub(crate) const fn objects(&self) -> Objects {
        self.objects
    }
}

/// What becomes of a put for which there is no room, by its name.
fn policy(when_full: &Bound<'_, PyAny>) -> PyResult<WhenFull> {
    let when_full = known::text("when_full", when_full)?;
    WhenFull::ALL.into_iter().find(|one| one.name() == when_full).ok_or_else(|| {
        let message = "give 'error', 'wait' or 'drop-oldest'";
        PyValueError::new_err(format!("when_full is {when_full:?}: {message}"))
    })
}

/// When calls that change a space of a file return, by its name.
fn durability(sync: &Bound<'_, PyAny>) -> PyResult<Durability> {
    let sync = known::text("sync", sync)?;
    Durability::named(sync)
        .ok_or_else(|| PyValueError::new_err(format!("sync is {sync:?}: give 'group' or 'none'")))
}

#[pymethods]
impl Handle {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keyword-only options of the public API")]
    #[pyo3(signature = (url, *, create, fresh, size_bytes, tuples_max, when_full, pickle, sync, on_removed = "error"))]
    fn open(
        url: &Bound<'_, PyAny>,
        create: bool,
        fresh: bool,
        size_bytes: Option<u64>,
        tuples_max: Option<u64>,
        when_full: Option<&Bound<'_, PyAny>>,
        pickle: bool,
        sync: Option<&Bound<'_, PyAny>>,
        on_removed: &str,
    ) -> PyResult<Self> {
        let (py, url) = (url.py(), known::text("url", url)?);
        let when_full = when_full.map(policy).transpose()?;
        let sync = sync.map_or(Ok(Durability::default()), durability)?;
        let asked = LimitsAsked { size_bytes, tuples_max, when_full };
        let default = ConnectOptions::default();
        let options = ConnectOptions {
            create,
            fresh,
            size_bytes: size_bytes.unwrap_or(default.size_bytes),
            tuples_max,
            when_full: when_full.unwrap_or(default.when_full),
            sync,
            keeps_keys: default.keeps_keys,
        };
        let space = py
            .detach(|| {
                let space = Space::connect(url, &options)?;
                space.require_limits(&asked)?;
                Ok(space)
            })
            .map_err(|error| errors::from_space(py, &error, url))?;
        let objects = if pickle { Objects::Pickled } else { Objects::Refused };
        // Waiting for room is done without the interpreter's lock, in `waiting`.
        let connection = Self::new(Place::Here(space.at_once()), objects);
        if on_removed != "reconnect" {
            return Ok(connection);
        }
        let pinned = Py::new(py, connection)?;
        let renewal = Renewal::new(pinned, (url, objects), &options, asked);
        Ok(Self::new(Place::Renewing(Arc::new(renewal)), objects))
    }

    /// Where the space is, as given to `connect`.
    #[getter]
    pub(crate) fn url(&self) -> &str {
        match &self.place {
            Place::Here(space) => space.url(),
            Place::Renewing(renewal) => renewal.url(),
        }
    }

    /// What becomes of this connection when the space is removed, as given to `connect`: "error" or "reconnect".
    #[getter]
    fn on_removed(&self) -> &'static str {
        if self.renewal().is_some() { "reconnect" } else { "error" }
    }

    /// When calls that change the space return, as given to `connect`: "group" or "none"; None if it is kept in no file here.
    #[getter(sync)]
    fn sync_policy(&self) -> Option<&'static str> {
        self.space().is_kept().then(|| self.space().sync().name())
    }

    /// The name of the space, without the scheme and the options of its URL.
    #[getter]
    fn name(&self) -> String {
        self.space().name().to_owned()
    }

    /// What becomes of objects of no kind of field, as given to `connect`: "pickle" or "strict".
    #[getter(objects)]
    fn objects_policy(&self) -> &'static str {
        match self.objects {
            Objects::Pickled => "pickle",
            Objects::Refused | Objects::Compared => "strict",
        }
    }

    /// Wait until all that anybody has changed in the space by now is on disk.
    ///
    /// For a space that is kept in no file there is nothing to wait for. If this is interrupted by a signal, its handler runs
    /// when the call is done.
    ///
    /// Raises:
    ///     `StorageError`: it can not be. The changes are in memory, and come to the file when that is possible.
    ///     `SpaceClosed`: this connection was closed.
    ///
    ///     >>> space.put("job", 1)
    ///     >>> space.flush()
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.space().flush().map_err(|error| self.exception(py, error.into()))
    }

    /// End a subscription that was begun with `resume`, for good: its events are dropped. Return whether there was one.
    ///
    /// Args:
    ///     name: as for `subscribe`.
    ///
    /// Raises:
    ///     `Unsupported`: the space is kept in no file here.
    ///     `StorageError`: the file can not be written.
    ///
    /// If the call ends early:
    ///     It does not wait.
    ///     Death of this process: the subscription has ended or not.
    ///
    ///     >>> import tempfile
    ///     >>> with tempfile.TemporaryDirectory() as folder:
    ///     ...     with ts.connect(f"file://{folder}/jobs.tupelo") as kept:
    ///     ...         kept.subscribe("alarm", str, resume="pager").close()
    ///     ...         print(kept.unsubscribe("pager"), kept.unsubscribe("pager"))
    ///     ...     ts.remove(kept.url)
    ///     True False
    fn unsubscribe(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        let name = known::text("name", name)?;
        self.space().unsubscribe(name).map_err(|error| self.exception(py, error.into()))
    }

    /// Ends the connection. Calls that wait, and later calls, raise `SpaceClosed`; the tuples stay.
    ///
    /// What was begun through it ends at once. Claimed tuples are back, as after a failed attempt. Transactions are rolled
    /// back. Subscriptions and futures end.
    fn close(&self, py: Python<'_>) {
        let space = match &self.place {
            Place::Here(space) => space.clone(),
            Place::Renewing(renewal) => renewal.end(),
        };
        py.detach(|| space.close());
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<Space {}>", self.url())
    }

    /// The state for a pickle: where the space is, so that another process connects to it.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Reconnect<'py>)> {
        let py = slf.py();
        let handle = slf.get();
        let url = handle.url();
        if url.starts_with("mem://") {
            return Err(PyTypeError::new_err(format!(
                "{url} lives in this process and can not be sent to another: use shm://{}",
                handle.name()
            )));
        }
        let reconnect = py.import("tupelo.space")?.getattr("reconnect")?;
        let pickles = handle.objects == Objects::Pickled;
        Ok((reconnect, (slf.get_type(), url.to_owned(), pickles, handle.on_removed())))
    }
}

/// Another object for the connection of `space`, of the class `Space` itself: for a subclass that wraps its verbs.
///
/// Closing one closes both.
#[pyfunction]
pub(crate) fn plain(space: &Bound<'_, Handle>) -> Handle {
    let handle = space.get();
    let place = match &handle.place {
        Place::Here(space) => Place::Here(space.clone()),
        Place::Renewing(renewal) => Place::Renewing(Arc::clone(renewal)),
    };
    Handle::new(place, handle.objects)
}

/// Another object for the connection of `space`, whose calls do not wait for the disk: for a caller that waits itself. None for
/// a space that is kept in no file here.
///
/// Closing one closes both.
#[pyfunction]
pub(crate) fn at_once(space: &Bound<'_, Handle>) -> Option<Handle> {
    let handle = space.get();
    let space = handle.space();
    space
        .is_kept()
        .then(|| Handle::new(Place::Here(space.with_sync(Durability::None)), handle.objects))
}

/// Up to which position the journal of a file has to be on disk for what this thread has changed in the space; None if it is.
#[pyfunction]
pub(crate) fn unsettled(space: &Bound<'_, Handle>) -> Option<u64> {
    space.get().space().unsettled()
}

/// Whether the journal is on disk up to a position.
#[pyfunction]
pub(crate) fn is_on_disk(space: &Bound<'_, Handle>, position: u64) -> bool {
    space.get().space().journal_stat().is_none_or(|stat| stat.drained >= position)
}

/// Refuse a value of `sync`, or the keyword where the space is kept in no file.
#[pyfunction]
pub(crate) fn require_sync(space: &Bound<'_, Handle>, sync: &Bound<'_, PyAny>) -> PyResult<()> {
    space.get().sync(Some(sync)).map(drop)
}

/// Wait until the journal is on disk up to a position, for another thread.
///
/// Raises:
///     `DurabilityUnknown`: it can not be. The changes are in effect, and come to the file when that is possible.
#[pyfunction]
pub(crate) fn settle_up_to(space: &Bound<'_, Handle>, position: u64) -> PyResult<()> {
    let (py, handle) = (space.py(), space.get());
    handle.space().settle_up_to(position).map_err(|error| handle.exception(py, error.into()))
}

/// Whether two connections are to one and the same space: a name may have been given to another one in between.
#[pyfunction]
pub(crate) fn is_same(one: &Bound<'_, Handle>, other: &Bound<'_, Handle>) -> bool {
    one.get().space().is_same(&other.get().space())
}

/// Remove the space at `url` with everything in it.
///
/// Programs that are connected get `SpaceRemoved`; a later connection finds a new, empty space. A `file://` URL without
/// `?space=` removes the file with all its spaces.
///
/// Args:
///     url: the space, as for `connect`.
///
/// Raises:
///     `SpaceNotFound`: there is none.
///     `AccessDenied`: its file is not this user's to remove.
///     `ValueError`: the text names no space.
///
///     >>> ts.connect("mem://attic").close()
///     >>> ts.remove("mem://attic")
///     >>> ts.remove("mem://attic")
///     Traceback (most recent call last):
///     ...
///     tupelo.SpaceNotFound: TUP-013: there is no space mem://attic
///       a mem:// space is one of this process alone; connect creates one unless create is false
#[pyfunction]
pub(crate) fn remove(url: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, url) = (url.py(), known::text("url", url)?);
    py.detach(|| tupelo::remove(url)).map_err(|error| errors::from_space(py, &error, url))
}

/// Take over a `shm://` space of another PID namespace, of which all processes have ended. For `connect(adopt=True)`.
#[pyfunction]
pub(crate) fn adopt(py: Python<'_>, url: &str) -> PyResult<()> {
    py.detach(|| tupelo::adopt(url)).map_err(|error| errors::from_space(py, &error, url))
}

/// Bring what spaces of files have in memory alone to their files, as far as that is possible: for the end of the program.
#[pyfunction]
pub(crate) fn flush_files(py: Python<'_>) -> PyResult<()> {
    tupelo::flush().map_err(|error| errors::from_space(py, &error, "file://"))
}

/// The spaces in shared memory that belong to this user: a list of dicts (name, bytes, modified).
///
/// Each opens as `shm://` and its name; `modified` is in seconds since 1970, as from `time.time()`.
///
/// Raises:
///     `TupeloError`: the folder of shared memory cannot be read.
///
///     >>> import os
///     >>> name = f"example-of-spaces-{os.getpid()}"
///     >>> ts.connect(f"shm://{name}").close()
///     >>> name in [one["name"] for one in ts.spaces()]
///     True
///     >>> ts.remove(f"shm://{name}")
#[pyfunction]
pub(crate) fn spaces(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let entries = py.detach(tupelo::spaces);
    let entries = entries.map_err(|error| errors::from_space(py, &error, "shm://"))?;
    let entry = |entry: tupelo::SpaceEntry| {
        let since_1970 = entry.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let dict = PyDict::new(py);
        dict.set_item("name", entry.name)?;
        dict.set_item("bytes", entry.bytes)?;
        dict.set_item("modified", since_1970.as_secs_f64())?;
        Ok(dict)
    };
    entries.into_iter().map(entry).collect()
}
