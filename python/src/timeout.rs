//! Times that Python gives as seconds or as a `timedelta`.

use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::call::Argument;
use crate::values;

/// Longest time that is counted, in seconds: about 31 years.
const SECONDS_MAX: f64 = 1e9;

/// The time in the argument `name`; `None` for ever, also for more than 31 years: `math.inf`, the sum of several.
///
/// # Errors
///
/// `TypeError` if it is not a time, `ValueError` if it is negative or not a number; both name the argument.
#[inline]
pub(crate) fn seconds(
    name: &str,
    argument: Option<&Argument<'_, '_>>,
) -> PyResult<Option<Duration>> {
    let wait = Time { name, none: Some("wait for ever"), zero: true, endless: true };
    argument.map_or(Ok(None), |argument| wait.of(argument))
}

/// `lease=`: how long a tuple stays.
pub(crate) const LEASE: Time<'static> =
    Time { name: "lease", none: Some("keep the tuple for ever"), zero: false, endless: false };
/// `after=`: how long until a tuple is visible.
pub(crate) const AFTER: Time<'static> =
    Time { name: "after", none: Some("show it at once"), zero: true, endless: false };
/// `ttl=` of a claim: how long its holder may be silent.
pub(crate) const TTL: Time<'static> = Time { name: "ttl", none: None, zero: false, endless: false };
/// The same, when the claim has one.
pub(crate) const TTL_AGAIN: Time<'static> =
    Time { name: "ttl", none: Some(AS_BEFORE), zero: false, endless: false };
/// The renewal time of a lease.
pub(crate) const RENEWAL: Time<'static> =
    Time { name: "seconds", none: Some(AS_BEFORE), zero: false, endless: false };

const AS_BEFORE: &str = "have as many as at first";

/// An argument that is a time.
#[derive(Clone, Copy)]
pub(crate) struct Time<'n> {
    name: &'n str,
    /// What `None` is given to do, where it may be given.
    none: Option<&'static str>,
    /// Whether no time at all is one.
    zero: bool,
    /// Whether a time over the limit is as good as `None`.
    endless: bool,
}

impl Time<'_> {
    /// The time that was given, or `None`.
    ///
    /// # Errors
    ///
    /// As [`seconds`], and `TypeError` for a `None` that means nothing here.
    #[cold]
    pub(crate) fn of(self, value: &Bound<'_, PyAny>) -> PyResult<Option<Duration>> {
        if value.is_none() && self.none.is_some() {
            return Ok(None);
        }
        let seconds = self.as_seconds(value)?;
        if self.endless && seconds > SECONDS_MAX {
            return Ok(None);
        }
        self.checked(seconds, value).map(Some)
    }

    /// The time that was given; `default` if none was.
    ///
    /// # Errors
    ///
    /// As [`Time::of`].
    pub(crate) fn or(
        self,
        argument: Option<&Argument<'_, '_>>,
        default: Duration,
    ) -> PyResult<Duration> {
        argument.map_or(Ok(default), |argument| self.duration(argument))
    }

    fn duration(self, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
        self.checked(self.as_seconds(value)?, value)
    }

    /// The time of so many seconds, which `value` stands for.
    fn checked(self, seconds: f64, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
        let name = self.name;
        let is_too_short = if self.zero { seconds < 0.0 } else { seconds <= 0.0 };
        if seconds.is_nan() || is_too_short {
            let least = if self.zero { "from 0 on" } else { "above 0" };
            let or_none = self.or_none();
            let shown =
                if seconds.is_infinite() { values::shown(value) } else { seconds.to_string() };
            return Err(PyValueError::new_err(format!(
                "{name} is {shown}: give seconds {least}{or_none}"
            )));
        }
        if seconds > SECONDS_MAX {
            // An integer beyond the floats is shown as it is.
            let (shown, or_none) = (values::shown(value), self.or_none());
            return Err(PyValueError::new_err(format!(
                "{name} is {shown}, over the limit of {SECONDS_MAX} seconds (31 years): give less{or_none}"
            )));
        }
        Ok(Duration::from_secs_f64(seconds))
    }

    fn as_seconds(self, value: &Bound<'_, PyAny>) -> PyResult<f64> {
        let is_number = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>();
        if is_number && !value.is_instance_of::<PyBool>() {
            // An integer too large for a float is beyond reason too, on its side of 0.
            return value
                .extract()
                .or_else(|_| Ok(if value.lt(0)? { f64::NEG_INFINITY } else { f64::INFINITY }));
        }
        // A `timedelta`, or whatever else can say how long it is.
        if let Ok(method) = value.getattr("total_seconds") {
            return method.call0()?.extract();
        }
        let (name, class) = (self.name, value.get_type().name()?);
        let forms = self.none.map_or_else(
            || "seconds as int, float or timedelta".to_owned(),
            |none| format!("seconds as int or float, a timedelta, or None to {none}"),
        );
        Err(PyTypeError::new_err(format!("{name} has the type {class}: give {forms}")))
    }

    fn or_none(self) -> String {
        self.none.map_or_else(String::new, |none| format!(", or None to {none}"))
    }
}
