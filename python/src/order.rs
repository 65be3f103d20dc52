//! The keyword `order=`: which of several matches (rule T2).

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use tupelo::{Form, Order, TemplateRef};

use crate::call::Argument;
use crate::entries;
use crate::formals::{FieldOrder, template_error};
use crate::known;
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

/// Refuses an order by the number of a field that does not exist: for entries, and for tuples with fewer fields. Fields
/// of entries go by names: their numbers in the store mean nothing to the declaring program.
///
/// # Errors
///
/// `TemplateError`, with what would do instead.
#[inline]
pub(crate) fn require_numbers(
    py: Python<'_>,
    order: Order,
    template: &[TemplateRef<'_>],
) -> PyResult<()> {
    let is_by_number = matches!(order, Order::Max(_) | Order::Min(_));
    if is_by_number && template.iter().any(|one| matches!(one.form, Form::Entry(_))) {
        return Err(template_error(
            py,
            "entries have no field numbers, by which F.max and F.min could order them",
            Some("name the field, as in take(Job, order=F.max(\"priority\"))"),
        ));
    }
    if let Some(name) = order.field_name() {
        return require_name(py, name, order, template);
    }
    match order.beyond(template) {
        None => Ok(()),
        Some((field, fields)) => Err(template_error(
            py,
            &format!("order= goes by field {field}, and what is asked for has {fields} fields"),
            Some("fields are numbered from 0, as in take(\"job\", int, order=F.max(1))"),
        )),
    }
}

/// Refuses an order by the name of a field that matches have not.
#[cold]
fn require_name(
    py: Python<'_>,
    name: &str,
    order: Order,
    template: &[TemplateRef<'_>],
) -> PyResult<()> {
    if order.unnamed(template).is_some() {
        return Err(template_error(
            py,
            &format!("order= goes by the field {name:?}, and only fields of entries have names"),
            Some("give its number, from 0 on, as in take(\"job\", int, order=F.max(1))"),
        ));
    }
    for one in template {
        let Form::Entry(named) = one.form else { continue };
        let Some(fields) = entries::fields_of(named.class()) else { continue };
        if !fields.iter().any(|field| field == name) {
            let fields_shown = fields.join(", ");
            let meant = tupelo::nearest(name, fields.iter().map(String::as_str));
            let hint = meant.map(|meant| format!("did you mean {meant:?}?"));
            let class = named.class();
            let message = format!(
                "order= goes by the field {name:?}, which {class} has not ({fields_shown})"
            );
            return Err(template_error(py, &message, hint.as_deref()));
        }
    }
    Ok(())
}

#[cold]
fn given(argument: &Bound<'_, PyAny>) -> PyResult<Order> {
    const ORDERS: &str = r#""fifo", "lifo", "random", "any", F.max(field) or F.min(field)"#;
    if let Ok(by_field) = argument.cast::<FieldOrder>() {
        return Ok(by_field.get().order());
    }
    // Shown only where it is wrong: that runs code of its class, and looks for signals.
    let wrong = || format!("order is {}: give {ORDERS}", values::shown(argument));
    if !argument.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(wrong()));
    }
    match known::text("order", argument)? {
        "fifo" => Ok(Order::Fifo),
        "lifo" => Ok(Order::Lifo),
        "random" => Ok(Order::Random),
        "any" => Ok(Order::Any),
        _ => Err(PyValueError::new_err(wrong())),
    }
}
