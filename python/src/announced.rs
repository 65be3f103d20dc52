//! What programs say that they do for others: which functions they serve.

use pyo3::prelude::*;

use crate::errors;
use crate::space::Handle;

/// Visible to all processes, until it is dropped or the process ends.
#[pyclass(frozen, name = "Announcement", module = "tupelo._native")]
pub(crate) struct AnnouncementObject {
    _held: tupelo::Announcement,
}

/// Announce that this process does `what`; None in a space that is not `shm://`, which has no announcements.
#[pyfunction]
pub(crate) fn announce(
    space: &Bound<'_, Handle>,
    what: &str,
) -> PyResult<Option<AnnouncementObject>> {
    let handle = space.get();
    let held = handle.space().announce(what);
    let held = held.map_err(|error| errors::from_space(space.py(), &error, handle.url()))?;
    Ok(held.map(|held| AnnouncementObject { _held: held }))
}

/// Whether a living process has announced that it does `what`; None where that is unknown.
#[pyfunction]
pub(crate) fn is_announced(space: &Bound<'_, Handle>, what: &str) -> PyResult<Option<bool>> {
    let handle = space.get();
    let answer = handle.space().is_announced(what);
    answer.map_err(|error| errors::from_space(space.py(), &error, handle.url()))
}
