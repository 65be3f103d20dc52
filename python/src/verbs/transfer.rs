//! Between two spaces: `move_to` and `copy_to`.

use std::ffi::CStr;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::call::{Argument, Call, Verb};
use crate::errors::Failure;
use crate::known;
use crate::space::Handle;

/// `move_to(other, *template, sync=None, where=None)`
pub(crate) struct MoveTo;

impl Verb for MoveTo {
    const NAME: &'static CStr = c"move_to";
    const CHANGES: bool = true;
    const HAS_OTHERS: bool = true;
    const DOC: &'static CStr = c"move_to($self, other, /, *template, sync=None, where=None)
--

Move the tuples that match now into another space, in one step for both (rule O7).

Args:
    other: the target space, `mem://` or `shm://`, whichever this one is.
    template: as for `take`.
    sync: as for `put`.
    where: as for `take`.

Returns:
    How many there were.

Raises:
    SpaceFull: there is no room in the other space. Nothing was moved, and nothing is dropped for it.
    TransactionTooBig: there are more than one step can change. Nothing was moved.
    TypeError: `other` is no space.

If the call ends early:
    It does not wait.
    Death of this process: all of the tuples were moved, or none.

>>> other = ts.connect(\"mem://attic\")
>>> space.put_all((\"job\", n) for n in range(3))
3
>>> space.move_to(other, \"job\", int)
3
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        call.no_keywords()?;
        let (other, template) = target("move_to", call)?;
        let moved = call.with_template_of(template, |template| {
            Ok(call.space().move_to(&call.beside(&other.get().space()), template)?)
        })?;
        Ok(moved.into_pyobject(call.py).map_err(PyErr::from)?.into_any())
    }
}

/// `copy_to(other, *template, sync=None, where=None)`
pub(crate) struct CopyTo;

impl Verb for CopyTo {
    const NAME: &'static CStr = c"copy_to";
    const CHANGES: bool = true;
    const HAS_OTHERS: bool = true;
    const DOC: &'static CStr = c"copy_to($self, other, /, *template, sync=None, where=None)
--

Copy the tuples that match now into another space, in one step for both (rule O7).

The arguments are those of `move_to`.

Returns:
    How many there were.

Raises:
    SpaceFull: there is no room in the other space. Nothing was copied, and nothing is dropped for it.
    TransactionTooBig: there are more than one step can change. Nothing was copied.
    TypeError: `other` is no space.

If the call ends early:
    It does not wait.
    Death of this process: all of the tuples were copied, or none.

>>> other = ts.connect(\"mem://attic\")
>>> space.put(\"job\", 1)
>>> space.copy_to(other, \"job\", int)
1
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        call.no_keywords()?;
        let (other, template) = target("copy_to", call)?;
        let copied = call.with_template_of(template, |template| {
            Ok(call.space().copy_to(&call.beside(&other.get().space()), template)?)
        })?;
        Ok(copied.into_pyobject(call.py).map_err(PyErr::from)?.into_any())
    }
}

/// The other space, and the template behind it.
fn target<'a, 'py>(
    verb: &str,
    call: &Call<'a, 'py>,
) -> PyResult<(Borrowed<'a, 'py, Handle>, &'a [Argument<'a, 'py>])> {
    let expected =
        format!("{verb}() begins with the other space, as in {verb}(other, \"job\", int)");
    let [other, template @ ..] = call.fields else {
        return Err(PyTypeError::new_err(expected));
    };
    other.cast::<Handle>().map(|other| (other, template)).map_err(|_| {
        let class = known::class_name(other);
        PyTypeError::new_err(format!("{expected}; this has the type {class}"))
    })
}
