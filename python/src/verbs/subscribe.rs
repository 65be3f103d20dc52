//! `subscribe`: being told what happens to tuples (rules N1 to N3).

use std::ffi::CStr;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use tupelo::{EventKind, SubscribeTerms};

use crate::call::{Argument, Call, Verb};
use crate::errors::Failure;
use crate::known;
use crate::subscription::Subscription;
use crate::values;

/// How many events may wait, if the caller does not say.
const BUFFER: usize = 1024;
/// How many events wait in the file, if the caller does not say.
const KEEP: u64 = 10_000;

/// `subscribe(*template, on="put", buffer=1024, buffer_bytes=None, resume=None, keep=None, where=None)`
pub(crate) struct Subscribe;

impl Verb for Subscribe {
    const NAME: &'static CStr = c"subscribe";
    const DOC: &'static CStr = c"subscribe($self, /, *template, on='put', buffer=1024, buffer_bytes=None, resume=None, keep=None, where=None)
--

Get the events of tuples that match: each event once, in the space's order (rule N1).

You get every event after a moment of this call, and none before it (N3). Events that happen while you
are busy wait. If more than `buffer` events wait, the oldest are dropped, and the next one says how
many you have missed (N2). Puts and takes never wait for a subscription.

Args:
    template: as for `take`.
    on: the kinds of events, one or several. 'put': a tuple becomes visible. 'take': a caller has it
        for good; for a claim, when it is done; for a transaction, at its commit. 'expire': no caller
        gets the tuple any more. Its lease ended or was cancelled, the last attempt at it failed, or
        it was dropped for another. 'return': it is back from a claim or a transaction that failed.
    buffer: how many events may wait, at most 1 048 576.
    buffer_bytes: bytes of memory of the space for them. By default 256 for each, at least 16 KiB. Fewer
        than `buffer` events wait if their tuples are larger: give the bytes of a tuple and 100 for each.
    resume: a name, by which a later subscriber goes on where this one stopped, also after a restart of
        the machine. For a space that is kept in a file, and for puts. To ask for an event is to be done
        with those before it. After a crash some come again.
    keep: how many of these events wait in the file at most; older ones count as missed. By default 10 000.
    where: as for `take`. It is evaluated when you ask for the next event. For missed events the answer
        is unknown, and they all count.

Returns:
    The Subscription: an iterator that waits for the next Event(kind, tuple, seq, missed), and a
    context manager that ends it. Its `next(timeout)` gives up in time, its `try_next()` does not wait.

Raises:
    SpaceFull: there is no room for the buffer.
    LimitExceeded: there are too many subscriptions and blocked callers, or the buffer is too large.
    ValueError: `buffer` is 0, or `on` has a name that is no event.

If the call ends early:
    Timeout or interruption of `next`: no event is lost, the next call gets it.
    Death of this process: the subscription ends, and the space has the memory of its buffer back. One
        with `resume` goes on, and its events wait in the file.

>>> with space.subscribe(\"alarm\", str, on={\"put\", \"take\"}) as alarms:
...     space.put(\"alarm\", \"smoke\")
...     _ = space.take(\"alarm\", str)
...     for event in alarms:
...         print(event.seq, event.kind, event.tuple)
...         if event.kind == \"take\":
...             break
1 put ('alarm', 'smoke')
2 take ('alarm', 'smoke')
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [on, buffer, buffer_bytes, resume, keep] =
            call.keywords(["on", "buffer", "buffer_bytes", "resume", "keep"])?;
        let resumed = resumed(resume, keep)?;
        let kinds = on.map_or_else(|| Ok(vec![EventKind::Put]), |on| kinds(on))?;
        let events_max = buffer.map_or(Ok(Some(BUFFER)), |count| number("buffer", count, false))?;
        let bytes_max =
            buffer_bytes.map_or(Ok(None), |count| number("buffer_bytes", count, true))?;
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let names = names.join(" or ");
        let terms = SubscribeTerms::new(kinds, events_max.unwrap_or(BUFFER)).with_bytes(bytes_max);
        let (subscription, heard) = call.with_template(|template| {
            let alternatives: Vec<String> = template.iter().map(ToString::to_string).collect();
            let heard = format!("{names} of {}", alternatives.join(" | "));
            let subscription = match resumed {
                Some(resumed) => call.space().subscribe_resumed(template, &terms, resumed)?,
                None => call.space().subscribe(template, &terms)?,
            };
            Ok((subscription, heard))
        })?;
        let subscription = Subscription::new(subscription, call.handle_object(), heard);
        Ok(Bound::new(call.py, subscription)?.into_any())
    }
}

/// The name by which a subscription goes on, and how many of its events are kept.
fn resumed<'a>(
    resume: Option<&'a Argument<'_, '_>>,
    keep: Option<&Argument<'_, '_>>,
) -> PyResult<Option<(&'a str, u64)>> {
    let keep = keep.map_or(Ok(None), |keep| number("keep", keep, true))?;
    match (resume.filter(|name| !name.is_none()), keep) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(PyValueError::new_err(
            "keep is given, and no event is kept without resume: give resume=\"name\", too",
        )),
        (Some(name), keep) => {
            let keep = keep.map_or(KEEP, |keep| u64::try_from(keep).unwrap_or(u64::MAX));
            Ok(Some((known::text("resume", name)?, keep)))
        }
    }
}

/// The kinds of events that `on` names: a name, or several.
fn kinds(on: &Bound<'_, PyAny>) -> PyResult<Vec<EventKind>> {
    if on.is_instance_of::<PyString>() {
        return Ok(vec![kind(on)?]);
    }
    let names = on.try_iter().map_err(|_| {
        let shown = values::shown(on);
        PyTypeError::new_err(format!("on is {shown}: give names of events, such as {{'put'}}"))
    })?;
    names.map(|name| kind(&name?)).collect()
}

fn kind(name: &Bound<'_, PyAny>) -> PyResult<EventKind> {
    let known = name.cast::<PyString>().ok().and_then(|text| {
        let text = text.to_string_lossy();
        EventKind::ALL.into_iter().find(|kind| kind.name() == text)
    });
    known.ok_or_else(|| {
        let shown = values::shown(name);
        let all = EventKind::ALL.map(EventKind::name).join("', '");
        PyValueError::new_err(format!("on has {shown}, which is no event: give some of '{all}'"))
    })
}

/// A number from 0 on; `None` where that is one.
fn number(name: &str, argument: &Bound<'_, PyAny>, or_none: bool) -> PyResult<Option<usize>> {
    if or_none && argument.is_none() {
        return Ok(None);
    }
    let shown = values::shown(argument);
    let number: i128 =
        if argument.is_instance_of::<PyBool>() { None } else { argument.extract().ok() }
            .ok_or_else(|| PyTypeError::new_err(format!("{name} is {shown}: give an int")))?;
    match usize::try_from(number) {
        Ok(number) if number > 0 => Ok(Some(number)),
        _ if number > 0 => {
            Err(PyValueError::new_err(format!("{name} is {shown}: no space has room for that")))
        }
        _ => Err(PyValueError::new_err(format!("{name} is {shown}: give a number from 1 on"))),
    }
}
