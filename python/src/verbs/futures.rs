//! `take_future` and `read_future`: typed and named here, composed in `tupelo/futures.py`.

use std::ffi::CStr;

use pyo3::prelude::*;

use crate::call::{Call, Verb};
use crate::errors::Failure;
use crate::template::Template;

/// `take_future(*template, where=None)`
pub(crate) struct TakeFuture;

impl Verb for TakeFuture {
    const NAME: &'static CStr = c"take_future";
    const DOC: &'static CStr = c"take_future($self, /, *template, where=None)
--

Join the wait queue to take a match, and return at once.

Args:
    template: as for `take`.
    where: as for `take`.

Returns:
    A `concurrent.futures.Future` of the tuple: `result(timeout)` waits for it, `done()` says whether
    it came, and `cancel()` leaves the wait queue. Then a tuple on its way goes back to its place.
    Cancel a future that you do not need any more: if it is forgotten it stays in the wait queue, and gets its
    tuple.

Raises:
    LimitExceeded: too many callers wait in this space.

If the call ends early:
    Timeout of `result`: the future stays in the wait queue.
    Death of this process: it leaves the wait queue at once. A tuple that it was handed is lost with it.

>>> answers = [space.take_future(\"answer\", n, str) for n in range(2)]
>>> space.put(\"answer\", 1, \"one\")
>>> space.put(\"answer\", 0, \"none\")
>>> [answer.result() for answer in answers]
[('answer', 0, 'none'), ('answer', 1, 'one')]
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        dispatch(call, "take")
    }
}

/// `read_future(*template, where=None)`
pub(crate) struct ReadFuture;

impl Verb for ReadFuture {
    const NAME: &'static CStr = c"read_future";
    const DOC: &'static CStr = c"read_future($self, /, *template, where=None)
--

Join the wait queue to read a match, and return at once: as `take_future`, for a copy.

The arguments are those of `take_future`.

Returns:
    A `concurrent.futures.Future` of the copy.

Raises:
    LimitExceeded: too many callers wait in this space.

If the call ends early:
    Timeout of `result`: the future stays in the wait queue.
    Death of this process: it leaves the wait queue at once. The space is as before the call.

>>> later = space.read_future(\"config\", \"rate\", float)
>>> space.put(\"config\", \"rate\", 0.5)
>>> later.result()
('config', 'rate', 0.5)
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        dispatch(call, "read")
    }
}

fn dispatch<'py>(call: &Call<'_, 'py>, want: &str) -> Result<Bound<'py, PyAny>, Failure> {
    call.no_keywords()?;
    let template = Template::from(call.owned_template()?);
    let dispatch = call.py.import("tupelo.futures")?.getattr("dispatch")?;
    Ok(dispatch.call1((call.object, want, template))?)
}
