//! For people and tools: `stat` and `explain`.

use std::ffi::CStr;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use tupelo::{Shape, ShapeStat, Stat as Figures};

use crate::call::{Call, Verb};
use crate::errors::Failure;

/// `stat()`
pub(crate) struct Stat;

impl Verb for Stat {
    const NAME: &'static CStr = c"stat";
    const HAS_TEMPLATE: bool = false;
    const DOC: &'static CStr = c"stat($self, /)
--

Return figures of the space as a dict, each of some moment during the call.

Keys:

* memory and limits: tuples, bytes_used, bytes_committed, bytes_max, tuples_max, when_full,
  largest_free_bytes (what a tuple of more than 32 KiB can have, in one piece);
* counts: dropped (tuples, for want of room), waiters (blocked callers), waiting_for_room (blocked
  puts), where_errors (how often a `where` had no answer for a tuple, which was no match then);
* subscriptions, a list of dicts: pid, waiting, buffer, buffer_bytes, the events so far, and the
  dropped ones;
* transactions, the open ones that have taken or read a tuple here, a list of dicts: pid, taken, read,
  expires_in_s;
* processes, a list of dicts: pid, alive;
* shapes, a list of dicts: kinds, entry and fields (the name of the class of entries and the names of
  its fields, or None), count, bytes, waiting, claims, dead, delayed (by `after=`), leased (by
  `lease=`), in_transactions (tuples taken there), read_locks (on tuples read there), puts, takes,
  indexes.

A claim is a dict: pid, fence, attempt, expires_in_s. An index is the list of its fields.

If the call ends early:
    It neither waits nor changes the space: nothing is left to undo.

>>> space.put(\"job\", 17)
>>> space.stat()[\"shapes\"][0][\"kinds\"]
('str', 'int')
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        call.no_keywords()?;
        call.no_fields()?;
        Ok(figures(call.py, &call.space().stat()?)?.into_any())
    }
}

fn figures<'py>(py: Python<'py>, stat: &Figures) -> PyResult<Bound<'py, PyDict>> {
    let processes: Vec<_> = stat
        .processes
        .iter()
        .map(|process| {
            let dict = PyDict::new(py);
            dict.set_item("pid", process.pid)?;
            dict.set_item("alive", process.alive)?;
            Ok(dict)
        })
        .collect::<PyResult<_>>()?;
    let transactions: Vec<_> = stat
        .transactions
        .iter()
        .map(|transaction| {
            let dict = PyDict::new(py);
            dict.set_item("pid", transaction.pid)?;
            dict.set_item("taken", transaction.taken)?;
            dict.set_item("read", transaction.read)?;
            dict.set_item("expires_in_s", transaction.expires_in.as_secs_f64())?;
            Ok(dict)
        })
        .collect::<PyResult<_>>()?;
    let shapes: Vec<_> =
        stat.shapes.iter().map(|shape| shape_figures(py, shape)).collect::<PyResult<_>>()?;
    let dict = PyDict::new(py);
    dict.set_item("tuples", stat.tuples)?;
    dict.set_item("bytes_used", stat.bytes_used)?;
    dict.set_item("bytes_committed", stat.bytes_committed)?;
    dict.set_item("bytes_max", stat.bytes_max)?;
    dict.set_item("largest_free_bytes", stat.largest_free_bytes)?;
    dict.set_item("tuples_max", stat.tuples_max)?;
    dict.set_item("when_full", stat.when_full.name())?;
    dict.set_item("dropped", stat.dropped)?;
    dict.set_item("waiters", stat.waiters)?;
    dict.set_item("where_errors", stat.where_errors)?;
    dict.set_item("waiting_for_room", stat.waiting_for_room)?;
    dict.set_item("subscriptions", subscriptions(py, stat)?)?;
    dict.set_item("transactions", transactions)?;
    dict.set_item("processes", processes)?;
    dict.set_item("shapes", shapes)?;
    Ok(dict)
}

fn subscriptions<'py>(py: Python<'py>, stat: &Figures) -> PyResult<Bound<'py, PyList>> {
    let figures = stat.subscriptions.iter().map(|subscription| {
        let dict = PyDict::new(py);
        dict.set_item("pid", subscription.pid)?;
        dict.set_item("waiting", subscription.waiting)?;
        dict.set_item("buffer", subscription.buffer)?;
        dict.set_item("buffer_bytes", subscription.buffer_bytes)?;
        dict.set_item("events", subscription.events)?;
        dict.set_item("dropped", subscription.dropped)?;
        Ok(dict)
    });
    PyList::new(py, figures.collect::<PyResult<Vec<_>>>()?)
}

fn shape_figures<'py>(py: Python<'py>, shape: &ShapeStat) -> PyResult<Bound<'py, PyDict>> {
    let claims: Vec<_> = shape
        .claims
        .iter()
        .map(|claim| {
            let dict = PyDict::new(py);
            dict.set_item("pid", claim.pid)?;
            dict.set_item("fence", claim.fence)?;
            dict.set_item("attempt", claim.attempt)?;
            dict.set_item("expires_in_s", claim.expires_in.as_secs_f64())?;
            Ok(dict)
        })
        .collect::<PyResult<_>>()?;
    let dict = PyDict::new(py);
    dict.set_item("kinds", kinds(py, &shape.shape)?)?;
    dict.set_item("entry", shape.shape.class.map(tupelo::Class::name))?;
    dict.set_item("fields", fields(py, &shape.shape)?)?;
    dict.set_item("count", shape.count)?;
    dict.set_item("bytes", shape.bytes)?;
    dict.set_item("waiting", shape.waiting)?;
    dict.set_item("claims", claims)?;
    dict.set_item("dead", shape.dead)?;
    dict.set_item("delayed", shape.delayed)?;
    dict.set_item("leased", shape.leased)?;
    dict.set_item("in_transactions", shape.in_transactions)?;
    dict.set_item("read_locks", shape.read_locks)?;
    dict.set_item("puts", shape.puts)?;
    dict.set_item("takes", shape.takes)?;
    dict.set_item("indexes", PyList::new(py, &shape.indexes)?)?;
    Ok(dict)
}

fn kinds<'py>(py: Python<'py>, shape: &Shape) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, shape.kinds.iter().map(|kind| kind.name()))
}

/// The names of the fields of entries; None of plain tuples.
fn fields<'py>(py: Python<'py>, shape: &Shape) -> PyResult<Option<Bound<'py, PyTuple>>> {
    shape.class.map(|class| PyTuple::new(py, class.fields())).transpose()
}

/// `explain(*template, where=None)`
pub(crate) struct Explain;

impl Verb for Explain {
    const NAME: &'static CStr = c"explain";
    const DOC: &'static CStr = c"explain($self, /, *template, where=None)
--

Say why nothing matches: the shapes of the space, the nearest one, and the field that differs.

Args:
    template: as for `take`.
    where: as for `take`.

Returns:
    An `Explanation`: print it, or use its attributes `template`, `matches`, `shapes` (pairs of
    kinds and count), `nearest` (the kinds of the nearest shape) and `differences` (triples of field,
    present value and pattern).

If the call ends early:
    It neither waits nor changes the space: nothing is left to undo.

>>> space.put(\"job\", \"17\")
>>> explanation = space.explain(\"job\", int)
>>> explanation.nearest, explanation.differences
(('str', 'str'), [(1, 'str', ':int')])
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        call.no_keywords()?;
        let explanation = call.with_template(|template| Ok(call.space().explain(template)?))?;
        Ok(Bound::new(call.py, Explanation { explanation })?.into_any())
    }
}

/// Why nothing matches, or how much does. Made by `Space.explain`.
///
///     >>> space.put("job", "17")
///     >>> explanation = space.explain("job", int)
///     >>> explanation.matches, explanation.shapes
///     (0, [(('str', 'str'), 1)])
///     >>> print(explanation)
///     nearest: there is 1 tuple (str, str); field 1 is str there, :int in the template
#[pyclass(frozen, module = "tupelo", name = "Explanation")]
pub(crate) struct Explanation {
    explanation: tupelo::Explanation,
}

#[pymethods]
impl Explanation {
    /// The template, in the text notation.
    #[getter]
    fn template(&self) -> &str {
        self.explanation.template()
    }

    /// How many tuples match now.
    #[getter]
    const fn matches(&self) -> u64 {
        self.explanation.matches
    }

    /// The shapes that have tuples, most first: pairs of kinds and count.
    #[getter]
    fn shapes<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyTuple>, u64)>> {
        let shapes = self.explanation.shapes.iter();
        shapes.map(|(shape, count)| Ok((kinds(py, shape)?, *count))).collect()
    }

    /// The kinds of the nearest shape; None if a tuple matches, or the space is empty.
    #[getter]
    fn nearest<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.explanation.nearest.as_ref().map(|nearest| kinds(py, &nearest.shape)).transpose()
    }

    /// The differences of the nearest shape: triples of field, present value, pattern of the template.
    #[getter]
    fn differences(&self) -> Vec<(usize, &str, &str)> {
        let nearest = self.explanation.nearest.iter();
        let differences = nearest.flat_map(|nearest| &nearest.differences);
        differences.map(|one| (one.field, one.found.as_str(), one.wanted.as_str())).collect()
    }

    fn __str__(&self) -> String {
        self.explanation.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Explanation {}>", self.explanation)
    }
}
