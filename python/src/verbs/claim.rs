//! `claim` and `try_claim`, and the tuples whose attempts have all failed: `dead`, `requeue`.

use std::ffi::CStr;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyTuple};

use tupelo::{ClaimTerms, DeadLetterRecord, Order, Outcome, TemplateRef, TupleView};

use crate::arguments::{self, Source};
use crate::call::{Argument, Call, Verb};
use crate::claim::Claim as ClaimObject;
use crate::errors::Failure;
use crate::order;
use crate::results;
use crate::space::Handle;
use crate::timeout;
use crate::values;
use crate::waiting::{self, Deadline};

/// How long the holder of a claim may be silent, if the caller does not say.
const TTL: Duration = Duration::from_secs(30);

/// `claim(*template, ttl=30, timeout=None, max_attempts=None, order="fifo", sync=None, where=None)`
pub(crate) struct Claim;

impl Verb for Claim {
    const NAME: &'static CStr = c"claim";
    const CHANGES: bool = true;
    const DOC: &'static CStr = c"claim($self, /, *template, ttl=30, timeout=None, max_attempts=None, order='fifo', sync=None, where=None)
--

Take a tuple that matches so that it comes back unless it is done with; wait if there is none.

Nobody else sees the tuple meanwhile. It goes back to its old place if the claim is aborted, and at
once if this process dies. It also goes back when ttl has passed without a sign of life (rule K2). As
a context manager the claim gives the tuple. It renews itself as long as the block runs, and is done
at the end of the block. An exception in the block aborts the claim and goes on.

Args:
    template: as for `take`.
    ttl: how long the claim runs without being renewed, in seconds.
    timeout: longest wait for a match, in seconds. None waits for ever; 0 does not wait.
    max_attempts: after so many attempts that failed, the tuple goes to the dead letters (K5) and
        `dead` shows it. None for never.
    order: as for `take`.
    sync: when the end of the claim returns, as for `put`.
    where: as for `take`.

Returns:
    The Claim: tuple, fence, attempt, done(), abort(reason), extend(ttl), put(*fields).

Raises:
    Timeout: nothing matched in time.
    ClaimLost: at the end of the block: the tuple is another's work now, or will be (K3).

If the call ends early:
    Timeout, or interruption by a signal handler that raises: no tuple was claimed. A tuple on its way
        goes back to its place. An interrupted block aborts the claim.
    Death of this process: the tuple is back at its place at once. That counts as a failed attempt.

>>> space.put(\"order\", 7)
>>> with space.claim(\"order\", int, ttl=30) as (_, order):
...     space.put(\"shipped\", order)
>>> claim = space.claim(\"shipped\", int)
>>> claim.tuple, claim.attempt
(('shipped', 7), 1)
>>> claim.put(\"billed\", 7)
>>> claim.done()
>>> space.take(\"billed\", int)
('billed', 7)
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [ttl, timeout, attempts_max, order] =
            call.keywords(["ttl", "timeout", "max_attempts", "order"])?;
        let terms = terms(ttl, attempts_max)?;
        let order = order::order(order)?;
        let timeout = timeout::seconds("timeout", timeout)?;
        call.give_up_after(timeout);
        call.with_template_in(order, |template| {
            if let Some(claim) = claim_now(call, template, order, &terms)? {
                return Ok(claim);
            }
            let space = call.space();
            if timeout != Some(Duration::ZERO) {
                let deadline = Deadline::after(timeout);
                let mut waiter = space.claimant(template, &terms)?;
                while waiting::last_wait(call.py, &waiter, &deadline)? {
                    match waiter.finish_claim(&terms, |view| call.tuple(view))? {
                        Outcome::Waits(again) => waiter = again,
                        Outcome::Done(claimed) => {
                            return Ok(object(call.py, call.handle_object(), claimed)?.into_any());
                        }
                    }
                }
            }
            Err(space.timeout("claim", template, timeout.unwrap_or_default()).into())
        })
    }
}

/// `try_claim(*template, ttl=30, max_attempts=None, order="fifo", sync=None, where=None)`
pub(crate) struct TryClaim;

impl Verb for TryClaim {
    const NAME: &'static CStr = c"try_claim";
    const CHANGES: bool = true;
    const DOC: &'static CStr =
        c"try_claim($self, /, *template, ttl=30, max_attempts=None, order='fifo', sync=None, where=None)
--

Claim a tuple that matches, or return None at once if there is none (rule O4).

The arguments are those of `claim`.

If the call ends early:
    It does not wait. An interrupted block aborts the claim.
    Death of this process: the tuple is back at its place at once. That counts as a failed attempt.

>>> space.try_claim(\"order\", int) is None
True
>>> space.put(\"order\", 7)
>>> claim = space.try_claim(\"order\", int)
>>> with claim as (_, order):
...     claim.put(\"shipped\", order)
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [ttl, attempts_max, order] = call.keywords(["ttl", "max_attempts", "order"])?;
        let terms = terms(ttl, attempts_max)?;
        let order = order::order(order)?;
        let claim =
            call.with_template_in(order, |template| claim_now(call, template, order, &terms))?;
        Ok(claim.unwrap_or_else(|| call.none()))
    }
}

/// Claims a match, if there is one.
fn claim_now<'py>(
    call: &Call<'_, 'py>,
    template: &[TemplateRef<'_>],
    order: Order,
    terms: &ClaimTerms,
) -> Result<Option<Bound<'py, PyAny>>, Failure> {
    let claimed = call.space().try_claim(template, order, terms, |view| call.tuple(view))?;
    let claim = claimed.map(|claimed| object(call.py, call.handle_object(), claimed));
    Ok(claim.transpose()?.map(Bound::into_any))
}

/// Claim a match as far as it can be read, waiting for one. For a server that answers every request.
///
/// If Python cannot represent a field, an exception with the reason stands in its place.
#[pyfunction]
#[pyo3(signature = (space, /, *template, ttl, timeout))]
pub(crate) fn claim_partly<'py>(
    space: &Bound<'py, Handle>,
    template: &Bound<'py, PyTuple>,
    ttl: &Bound<'py, PyAny>,
    timeout: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, ClaimObject>> {
    let (py, handle) = (space.py(), space.get());
    let terms = terms(Some(&ttl.as_borrowed()), None)?;
    let timeout = timeout::seconds("timeout", Some(&timeout.as_borrowed()))?;
    let template: Vec<Argument<'_, '_>> = template.iter_borrowed().collect();
    let claimed = arguments::with_template(py, (Source::Positional, &template), |template| {
        let deadline = Deadline::after(timeout);
        let mut waiter = handle.space().claimant(template, &terms)?;
        while waiting::last_wait(py, &waiter, &deadline)? {
            let partly = |view: TupleView<'_>| results::partly(py, view, handle.objects());
            match waiter.finish_claim(&terms, partly)? {
                Outcome::Waits(again) => waiter = again,
                Outcome::Done(claimed) => return Ok(claimed),
            }
        }
        Err(handle.space().timeout("claim", template, timeout.unwrap_or_default()).into())
    });
    object(py, space.clone().unbind(), claimed.map_err(|failure| handle.exception(py, failure))?)
}

/// What Python gets of a claim and its tuple.
pub(crate) fn object<'py>(
    py: Python<'py>,
    space: Py<Handle>,
    (claim, tuple): (tupelo::Claim, Bound<'py, PyAny>),
) -> PyResult<Bound<'py, ClaimObject>> {
    Bound::new(py, ClaimObject::new(claim, tuple.unbind(), space))
}

/// The terms in the arguments `ttl` and `max_attempts`.
pub(crate) fn terms(
    ttl: Option<&Argument<'_, '_>>,
    attempts_max: Option<&Argument<'_, '_>>,
) -> PyResult<ClaimTerms> {
    Ok(ClaimTerms {
        ttl: timeout::TTL.or(ttl, TTL)?,
        attempts_max: attempts_max.map_or(Ok(None), |count| attempts("max_attempts", count))?,
    })
}

/// The number of attempts in the argument `name`; `None` for any number.
fn attempts(name: &str, argument: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    if argument.is_none() {
        return Ok(None);
    }
    // Shown only where it is wrong: that runs code of its class, and looks for signals.
    let shown = || values::shown(argument);
    let number: Option<i128> =
        if argument.is_instance_of::<PyBool>() { None } else { argument.extract().ok() };
    let number = number.ok_or_else(|| {
        PyTypeError::new_err(format!("{name} is {}: give how many, as an int, or None", shown()))
    })?;
    match u32::try_from(number) {
        Ok(number) if number > 0 => Ok(Some(number)),
        _ => Err(PyValueError::new_err(format!(
            "{name} is {}: give a number from 1 to {}, or None for no limit",
            shown(),
            u32::MAX
        ))),
    }
}

/// `dead(*template, where=None)`
pub(crate) struct Dead;

impl Verb for Dead {
    const NAME: &'static CStr = c"dead";
    const DOC: &'static CStr = c"dead($self, /, *template, where=None)
--

Return the tuples that match and whose last attempt has failed (rule K5). They stay where they are.

Only claims with `max_attempts` make tuples dead. No other verb sees dead tuples, except `requeue`.

Args:
    template: as for `take`.
    where: as for `take`.

Returns:
    A list of DeadLetter: the tuple, the number of failed attempts, and their reasons, the oldest
    first. Of many long reasons the newest are kept.

If the call ends early:
    It neither waits nor changes the space: nothing is left to undo.

>>> space.put(\"order\", 7)
>>> space.claim(\"order\", int, max_attempts=1).abort(\"no such customer\")
>>> space.dead(\"order\", int)
[DeadLetter(tuple=('order', 7), attempts=1, reasons=['no such customer'])]
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        call.no_keywords()?;
        let class = call.py.import("tupelo.dead_letters")?.getattr("DeadLetter")?;
        let letters = call.with_template(|template| {
            call.space().dead(template, |view, dead_letter| {
                let DeadLetterRecord { attempts, reasons } = dead_letter;
                let reasons: Vec<_> = reasons.into_iter().map(|one| one.reason).collect();
                Ok::<_, Failure>(class.call1((call.tuple(view)?, attempts, reasons))?)
            })
        })?;
        Ok(PyList::new(call.py, letters)?.into_any())
    }
}

/// `requeue(*template, sync=None, where=None)`
pub(crate) struct Requeue;

impl Verb for Requeue {
    const NAME: &'static CStr = c"requeue";
    const CHANGES: bool = true;
    const DOC: &'static CStr = c"requeue($self, /, *template, sync=None, where=None)
--

Put the dead tuples that match back at their old places, with no attempts counted (rule K5).

Args:
    template: as for `take`.
    sync: as for `put`.
    where: as for `take`.

Returns:
    How many there were.

Raises:
    SpaceFull: there was no room. None was put back. The call does not wait for room, and no tuple is
        dropped for it.
    TransactionTooBig: there are more than one step can change. None was put back.

If the call ends early:
    It does not wait.
    Death of this process: all of the tuples are back at their places, or none.

>>> space.put(\"order\", 7)
>>> space.claim(\"order\", int, max_attempts=1).abort()
>>> space.requeue(\"order\", ...)
1
>>> space.take(\"order\", int)
('order', 7)
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        call.no_keywords()?;
        let count = call.with_template(|template| Ok(call.space().requeue(template)?))?;
        Ok(count.into_pyobject(call.py).map_err(PyErr::from)?.into_any())
    }
}
