//! Times that Python gives as seconds or as a `timedelta`.

use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::call::Argument;

/// Longest time that can be asked for, in seconds: about 31 years. More is a mistake for `None`.
const SECONDS_MAX: f64 = 1e9;

/// The time in the argument `name`; `None` for ever.
///
/// # Errors
///
/// `TypeError` if it is not a time, `ValueError` if it is negative, not a number or beyond reason; both
/// name the argument.
#[inline]
pub(crate) fn seconds(
    name: &str,
    argument: Option<&Argument<'_, '_>>,
) -> PyResult<Option<Duration>> {
    argument.map_or(Ok(None), |argument| given(name, argument))
}

#[cold]
fn given(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Duration>> {
    if value.is_none() { Ok(None) } else { duration(name, value).map(Some) }
}

fn duration(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds = as_seconds(name, value)?;
    if seconds.is_nan() || seconds < 0.0 {
        return Err(PyValueError::new_err(format!(
            "{name} is {seconds}: give seconds from 0 on, or None to wait for ever"
        )));
    }
    if seconds > SECONDS_MAX {
        return Err(PyValueError::new_err(format!(
            "{name} is {seconds}, over the limit of {SECONDS_MAX} seconds: None waits for ever"
        )));
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn as_seconds(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let is_number = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>();
    if is_number && !value.is_instance_of::<PyBool>() {
        // An integer too large for a float is beyond reason too.
        return Ok(value.extract().unwrap_or(f64::INFINITY));
    }
    // A `timedelta`, or whatever else can say how long it is.
    if let Ok(method) = value.getattr("total_seconds") {
        return method.call0()?.extract();
    }
    let class = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "{name} has the type {class}: give seconds as int or float, a timedelta, or None to wait for ever"
    )))
}
