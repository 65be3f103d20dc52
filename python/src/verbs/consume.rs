//! `consume` and `finish`: typed and named here, composed of other verbs in `tupelo/consuming.py`.

use std::ffi::CStr;

use pyo3::prelude::*;

use crate::call::{Call, Verb};
use crate::errors::Failure;
use crate::template::Template;
use crate::timeout;

/// `consume(*template, idle=None, where=None)`
pub(crate) struct Consume;

impl Verb for Consume {
    const NAME: &'static CStr = c"consume";
    const RENEWS: bool = true;
    const DOC: &'static CStr = c"consume($self, /, *template, idle=None, where=None)
--

Take one match after the other, waiting for more, until `finish` was called and none is left.

Any number of processes may consume the same template; each tuple goes to one of them. All of them
see the end, also processes that begin after `finish`. Tuples that are put when a finished batch is
empty are the next batch: a `consume` that finds one waits for the next `finish`.

Args:
    template: as for `take`; `finish` is called with an equal one.
    idle: also end when no tuple came for so many seconds. None waits for ever.
    where: as for `take`; `finish` is called with the same.

Returns:
    An iterator of tuples.

If the call ends early:
    Interruption of a step, by a signal handler that raises: the step removed no tuple.
    Death of this process: a tuple that it was not yet handed stays in the space. A tuple that it was
        handed is lost with it: use `claim` to have it back.

>>> space.put_all((\"square\", n) for n in range(3))
3
>>> space.finish(\"square\", int)
>>> [n * n for _, n in space.consume(\"square\", int)]
[0, 1, 4]
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [idle] = call.keywords(["idle"])?;
        // Here, so that a mistake shows at the call and not at the first step of the iterator.
        let idle_s = timeout::seconds("idle", idle)?.map(|idle| idle.as_secs_f64());
        let template = Template::from(call.owned_template()?);
        let consume = call.py.import("tupelo.consuming")?.getattr("consume")?;
        Ok(consume.call1((call.origin, template, idle_s))?)
    }
}

/// `finish(*template, where=None)`
pub(crate) struct Finish;

impl Verb for Finish {
    const NAME: &'static CStr = c"finish";
    const RENEWS: bool = true;
    const DOC: &'static CStr = c"finish($self, /, *template, where=None)
--

End every `consume` of an equal template, in all processes, once nothing matches any more.

It puts a mark: the tuple (\"tupelo.finish\", False, text of the template, number). When nothing is
left, False becomes True, and a `consume` still ends at once. The first `consume` that finds a later
tuple removes the mark, and the batch of that tuple ends with the next `finish`. To have consumers
wait for the first tuple of a new batch, take the mark away before:
`space.take_all(\"tupelo.finish\", bool, str, int)`.

Args:
    template: as for `consume`.
    where: as for `consume`.

Raises:
    SpaceFull: there was no room for the mark.

If the call ends early:
    It does not wait.
    Death of this process: the mark was put or not; call `finish` again.

>>> space.finish(\"square\", int)
>>> list(space.consume(\"square\", int))
[]
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        call.no_keywords()?;
        let template = Template::from(call.owned_template()?);
        let finish = call.py.import("tupelo.consuming")?.getattr("finish")?;
        Ok(finish.call1((call.origin, template))?)
    }
}
