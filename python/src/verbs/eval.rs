//! `eval`: typed and named here, composed in `tupelo/tasks/evaluation.py`.

use std::ffi::CStr;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::call::{Call, Verb};
use crate::errors::Failure;

/// `eval(*fields, on=None)`
pub(crate) struct Eval;

impl Verb for Eval {
    const NAME: &'static CStr = c"eval";
    const HAS_TEMPLATE: bool = false;
    const DOC: &'static CStr = c"eval($self, /, *fields, on=None)
--

Put a tuple as soon as a worker has computed its active fields; return at once.

An active field is a `call`. One worker computes all active fields of a tuple, in their order. The
work is a claim (rule K2): if the worker is killed, it is done again, and the tuple appears once.

Args:
    fields: the fields of the tuple, at least one of them a `tupelo.call`.
    on: the kind of workers. \"processes\" are as many as there are processors; they start on demand
        and end with this program. \"threads\" are threads of this process. \"workers\" are the
        processes that serve the function of the first call (`tupelo worker MODULE:FUNCTION`),
        wherever they are. By default processes, and threads for a `mem://` space, which no other
        process sees.

Returns:
    A `concurrent.futures.Future` of the tuple. If a call failed, it raises `RemoteError`, with the
    worker's traceback. Then there is no tuple, and a dead letter `(\"tupelo.dead\", queue, …)`.
    `cancel()` succeeds as long as no worker has begun.

Raises:
    TypeError: no field is a call, or a worker could not find the function of one.
    NotEncodable: a field or an argument cannot be stored.

If the call ends early:
    It does not wait. Timeout of `result`: the work goes on.
    Death of a worker: its work is done again, by another.

A program that ends waits for the tasks that it has begun, except on \"workers\".

>>> import math
>>> later = space.eval(\"sqrt\", 2.0, ts.call(math.sqrt, 2.0))
>>> space.take(\"sqrt\", 2.0, float)
('sqrt', 2.0, 1.4142135623730951)
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [on] = call.keywords(["on"])?;
        let evaluate = call.py.import("tupelo.tasks.evaluation")?.getattr("evaluate")?;
        let fields = PyTuple::new(call.py, call.fields)?;
        Ok(evaluate.call1((call.object, fields, on))?)
    }
}
