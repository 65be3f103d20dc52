//! The keyword `order=`: which of several matches (rule T2).

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use tupelo::Order;

use crate::call::Argument;
use crate::formals::FieldOrder;
use crate::values;

/// The order in the argument, by default the oldest first.
///
/// # Errors
///
/// `TypeError` or `ValueError` if it is none, with the ones there are.
#[inline]
pub(crate) fn order(argument: Option<&Argument<'_, '_>>) -> PyResult<Order> {
    argument.map_or(Ok(Order::Fifo), |argument| given(argument))
}

#[cold]
fn given(argument: &Bound<'_, PyAny>) -> PyResult<Order> {
    const ORDERS: &str = r#""fifo", "lifo", "random", "any", F.max(i) or F.min(i)"#;
    if let Ok(by_field) = argument.cast::<FieldOrder>() {
        return Ok(by_field.get().order());
    }
    // Shown only where it is wrong: that runs code of its class, and looks for signals.
    let wrong = || format!("order is {}: give {ORDERS}", values::shown(argument));
    let Ok(name) = argument.cast::<PyString>() else {
        return Err(PyTypeError::new_err(wrong()));
    };
    match name.to_str()? {
        "fifo" => Ok(Order::Fifo),
        "lifo" => Ok(Order::Lifo),
        "random" => Ok(Order::Random),
        "any" => Ok(Order::Any),
        _ => Err(PyValueError::new_err(wrong())),
    }
}
