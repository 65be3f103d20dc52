//! Entries: instances of classes with named fields (rule M7).
//!
//! `tupelo/entries.py` describes a class when it is first met; the description is kept. An entry from a space finds its
//! class by name. The class of the call comes first, then one that was met before, then one derived from those. Last
//! comes the class of that name in the imported modules.

use std::collections::{HashMap, HashSet};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};

use tupelo::{Alternative, Class, Entry, Pattern, Value};

use crate::call::Argument;
use crate::errors::{self, Failure};
use crate::keywords::RESERVED;
use crate::objects::Objects;
use crate::refusal::Refusal;
use crate::space::Handle;
use crate::{carried, patterns, values};

/// A class of entries.
pub(crate) struct EntryClass {
    class: Py<PyType>,
    names: &'static Class,
    /// In the order in which they are declared.
    fields: Vec<FieldOf>,
    /// For each field of `names`, its place among `fields`.
    declared: Vec<usize>,
    how: How,
    /// Why no instance can be made of stored fields, if that is so: then none is stored.
    why_never_made: Option<String>,
}

struct FieldOf {
    name: Py<PyString>,
    /// Its place among the fields of the class's names.
    index: usize,
    /// The argument of the constructor; `None` if it is set afterwards.
    argument: Option<Py<PyString>>,
    has_default: bool,
}

/// How instances are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Positions,
    Keywords,
    /// A `NamedTuple`, as any tuple.
    Tuple,
    /// A `NamedTuple` that has a `_make` of its own: by that.
    Sequence,
}

/// The classes that were met, by address (they are kept, so that no other can come to have it) and by name.
#[derive(Default)]
struct Met {
    by_class: HashMap<usize, Arc<EntryClass>>,
    by_name: HashMap<String, Arc<EntryClass>>,
    /// The names whose class was given: `connect(schema=...)`.
    given: HashSet<String>,
    /// The class that was chosen for a stored class, by address, if the fields differ. Until one more class is met.
    chosen: HashMap<usize, Arc<EntryClass>>,
}

static MET: Mutex<Option<Met>> = Mutex::new(None);

/// Locked for a moment only, never while Python code runs.
fn with_met<R>(use_met: impl FnOnce(&mut Met) -> R) -> R {
    let mut met: MutexGuard<'_, _> = MET.lock().unwrap_or_else(PoisonError::into_inner);
    use_met(met.get_or_insert_default())
}

/// The names of the fields of a class that was met; `None` if none with this name was.
pub(crate) fn fields_of(class: &str) -> Option<Vec<String>> {
    let met = with_met(|met| met.by_name.get(class).cloned())?;
    Some(met.names.fields().map(str::to_owned).collect())
}

/// The class of entries that `object` is, or is an instance of, and whether it is the class itself.
///
/// # Errors
///
/// What Python raises, and `ValueError` for a class with names beyond the limits.
#[inline]
pub(crate) fn of_object(object: &Bound<'_, PyAny>) -> PyResult<Option<(Arc<EntryClass>, bool)>> {
    let (class, is_class) = match object.cast::<PyType>() {
        Ok(class) => (class.clone(), true),
        Err(_) => (object.get_type(), false),
    };
    // SAFETY: a type, alive.
    let flags = unsafe { ffi::PyType_GetFlags(class.as_type_ptr()) };
    // Built-in classes and classes of C extensions are none.
    if flags & ffi::Py_TPFLAGS_HEAPTYPE == 0 {
        return Ok(None);
    }
    Ok(of_class(&class)?.map(|entry| (entry, is_class)))
}

/// The class of entries that `class` is, if it is one.
fn of_class(class: &Bound<'_, PyType>) -> PyResult<Option<Arc<EntryClass>>> {
    let address = class.as_ptr().addr();
    if let Some(met) = with_met(|met| met.by_class.get(&address).cloned()) {
        return Ok(Some(met));
    }
    for sign in ["__dataclass_fields__", "_field_defaults", "__attrs_attrs__", "__struct_fields__"]
    {
        if class.getattr_opt(sign)?.is_some() {
            return describe(class);
        }
    }
    Ok(None)
}

type Description<'py> = (
    String,
    Vec<String>,
    Vec<(Py<PyString>, Option<Py<PyString>>, bool)>,
    String,
    bool,
    Option<String>,
);

#[cold]
fn describe(class: &Bound<'_, PyType>) -> PyResult<Option<Arc<EntryClass>>> {
    let py = class.py();
    let described = py.import("tupelo.entries")?.getattr("describe")?.call1((class,))?;
    let Some(described) = described.extract::<Option<Description<'_>>>()? else { return Ok(None) };
    let (name, bases, fields, how, never_fails, why_never_made) = described;
    let field_names = fields.iter().map(|(name, ..)| name.bind(py).to_str().map(str::to_owned));
    let field_names: Vec<String> = field_names.collect::<PyResult<_>>()?;
    let names = Class::new(&name, bases, &field_names).map_err(|why| {
        PyTypeError::new_err(format!("{name} can not be a class of entries: {why}"))
    })?;
    let index_of = |field: &String| names.index_of(field).unwrap_or_default();
    let mut declared = vec![0; names.arity()];
    let fields = fields.into_iter().zip(&field_names).enumerate();
    let fields = fields.map(|(place, ((name, argument, has_default), text))| {
        let index = index_of(text);
        declared[index] = place;
        FieldOf { name, index, argument, has_default }
    });
    let fields = fields.collect();
    let how = match how.as_str() {
        "tuple" => How::Tuple,
        "sequence" => How::Sequence,
        "keywords" => How::Keywords,
        _ => How::Positions,
    };
    let class_kept = class.clone().unbind();
    let entry = EntryClass { class: class_kept, names, fields, declared, how, why_never_made };
    let entry = Arc::new(entry);
    with_met(|met| {
        met.by_class.insert(class.as_ptr().addr(), Arc::clone(&entry));
        met.given.remove(&name);
        met.by_name.insert(name, Arc::clone(&entry));
        met.chosen.clear();
        let others = || met.by_class.values().filter(|other| other.is_namesake_of(&entry));
        names.set_constructible(never_fails && others().next().is_none());
        // Either may be asked for, or met, where the space holds entries of the other.
        others().for_each(|other| other.names.set_constructible(false));
    });
    Ok(Some(entry))
}

impl EntryClass {
    /// The names of the class.
    pub(crate) const fn names(&self) -> &'static Class {
        self.names
    }

    /// Whether this is another class that goes by the same name.
    fn is_namesake_of(&self, other: &Self) -> bool {
        self.names.name() == other.names.name() && !self.class.is(&other.class)
    }

    /// Whether it has the name and the fields of the class `stored`.
    fn is_like(&self, stored: &Class) -> bool {
        self.names.name() == stored.name() && self.names.fields().eq(stored.fields())
    }

    /// Whether there is a field with this name.
    pub(crate) fn has_field(&self, name: &str) -> bool {
        self.names.index_of(name).is_some()
    }

    /// `Job(id, status)`, as it is declared.
    fn shown(&self, py: Python<'_>) -> String {
        let fields: Vec<String> =
            self.fields.iter().map(|field| field.name.bind(py).to_string()).collect();
        format!("{}({})", self.names.name(), fields.join(", "))
    }

    /// The error for a field that the class has not: TUP-009.
    #[cold]
    pub(crate) fn no_field(&self, py: Python<'_>, name: &str) -> PyErr {
        let fields: Vec<String> =
            self.fields.iter().map(|field| field.name.bind(py).to_string()).collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let nearest = errors::nearest(py, name, &fields)
            .map_or_else(String::new, |nearest| format!("; did you mean {nearest:?}?"));
        let message = format!("{} has no field {name:?}{nearest}", self.names.name());
        let hint = format!("fields: {}", fields.join(", "));
        errors::make(py, "UnknownField", &message, Some(&hint), None)
    }

    /// Refuses a class whose fields could not be told from the keywords of a verb.
    pub(crate) fn require_clear(&self) -> PyResult<()> {
        let Some(name) = RESERVED.into_iter().find(|name| self.has_field(name)) else {
            return Ok(());
        };
        let class = self.names.name();
        Err(PyTypeError::new_err(format!(
            "{class} has a field {name:?}, which is also a keyword of the verbs: give like({class}, {name}=...), \
             which takes any field name"
        )))
    }

    /// Refuses to store an instance that could never be made again: every take of its class would fail at it.
    pub(crate) fn require_made_again(&self) -> Result<(), Refusal> {
        let Some(why) = &self.why_never_made else { return Ok(()) };
        Err(Refusal::new(
            format!("an entry {}, which can not be made again: {why}", self.names.name()),
            "give the constructor the fields, and defaults for all else; or put the parts as a plain tuple",
        ))
    }

    /// The fields of `instance`, in the order of the names.
    pub(crate) fn values<'py>(
        &self,
        instance: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = instance.py();
        if let (How::Sequence, Ok(tuple)) = (self.how, instance.cast::<PyTuple>()) {
            return self.declared.iter().map(|place| tuple.get_item(*place)).collect();
        }
        let field = |place: &usize| instance.getattr(self.fields[*place].name.bind(py));
        self.declared.iter().map(field).collect()
    }

    /// The stored form of `instance`: its class and its fields in their order. An instance that carries fields of
    /// another version of its class is stored with them (M7).
    pub(crate) fn stored<'py>(
        &self,
        instance: &Bound<'py, PyAny>,
    ) -> PyResult<(&'static Class, Vec<Bound<'py, PyAny>>)> {
        let values = self.values(instance)?;
        match carried::of(instance)? {
            None => Ok((self.names, values)),
            Some(others) => carried::together(self.names, values, &others),
        }
    }

    /// Whether it has all fields of the class `stored`.
    fn covers(&self, stored: &Class) -> bool {
        stored.fields().all(|name| self.has_field(name))
    }

    /// Why entries of the stored class `stored` cannot be instances of this one, if that is so. Instances carry the
    /// fields that the class does not know.
    fn mismatch(&self, py: Python<'_>, stored: &Class) -> Option<String> {
        let absent = self.fields.iter().find(|field| {
            let is_stored = stored.index_of(&field.name.bind(py).to_string_lossy()).is_some();
            !is_stored && !field.has_default
        })?;
        let name = absent.name.bind(py);
        Some(format!("give the new field a default ({name} = ...) and both can live together"))
    }

    /// An instance with the fields that `field` gives, by their numbers in the class `stored`.
    pub(crate) fn make<'py>(
        &self,
        py: Python<'py>,
        stored: &'static Class,
        mut field: impl FnMut(usize) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let class = self.class.bind(py);
        if stored.fields().len() != self.fields.len() || !stored.fields().eq(self.names.fields()) {
            if let Some(hint) = self.mismatch(py, stored) {
                return Err(schema_mismatch(py, &self.shown(py), &shown(stored), &hint, None));
            }
            return self.make_partly(py, stored, field);
        }
        if self.how == How::Keywords || self.fields.iter().any(|field| field.argument.is_none()) {
            return self.make_partly(py, stored, field);
        }
        let fields: Vec<_> =
            self.fields.iter().map(|one| field(one.index)).collect::<PyResult<_>>()?;
        let arguments = PyTuple::new(py, fields)?;
        match self.how {
            // By no code in Python, in which Ctrl-C could arrive: a taken tuple has left the space.
            How::Tuple => {
                py.get_type::<PyTuple>().getattr(intern!(py, "__new__"))?.call1((class, arguments))
            }
            How::Sequence => class.call_method1("_make", (arguments,)),
            _ => class.call1(arguments),
        }
    }

    /// The same by keywords: some fields are not stored and have a default, are set afterwards, or are carried.
    fn make_partly<'py>(
        &self,
        py: Python<'py>,
        stored: &Class,
        mut field: impl FnMut(usize) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = PyDict::new(py);
        let mut later = Vec::new();
        for one in &self.fields {
            let name = one.name.bind(py);
            let Some(index) = stored.index_of(&name.to_string_lossy()) else { continue };
            let value = field(index)?;
            match &one.argument {
                Some(argument) => arguments.set_item(argument, value)?,
                None => later.push((name, value)),
            }
        }
        let instance = self.class.bind(py).call((), Some(&arguments))?;
        if !later.is_empty() {
            // By way of `object`, since the class may be frozen.
            let set = py.get_type::<PyAny>().getattr("__setattr__")?;
            for (name, value) in later {
                set.call1((&instance, name, value))?;
            }
        }
        if !self.covers(stored) {
            let unknown = stored.fields().enumerate().filter(|(_, name)| !self.has_field(name));
            let unknown = unknown.map(|(index, name)| Ok((name, field(index)?)));
            carried::keep(&instance, &unknown.collect::<PyResult<Vec<_>>>()?)?;
        }
        Ok(instance)
    }
}

fn shown(class: &Class) -> String {
    format!("{}({})", class.name(), class.fields().collect::<Vec<_>>().join(", "))
}

#[cold]
fn schema_mismatch(
    py: Python<'_>,
    here: &str,
    there: &str,
    hint: &str,
    url: Option<&str>,
) -> PyErr {
    let message = format!("{here} here; the space holds {there}");
    errors::make(py, "SchemaMismatch", &message, Some(hint), url)
}

/// Refuses a class of entries whose fields could be mistaken for the keywords of a call, before the keywords are looked
/// at.
#[pyfunction]
#[pyo3(signature = (*template))]
pub(crate) fn require_clear(template: &Bound<'_, PyTuple>) -> PyResult<()> {
    if template.len() == 1
        && let Some((entry, true)) = of_object(&template.get_item(0)?)?
    {
        entry.require_clear()?;
    }
    Ok(())
}

/// Checks, when a class is first used in a space, whether the stored entries of its name can be its instances.
///
/// # Errors
///
/// `SchemaMismatch`.
pub(crate) fn meet(py: Python<'_>, handle: &Handle, entry: &EntryClass) -> Result<(), Failure> {
    let address = entry.class.as_ptr().addr();
    if handle.has_met(address) {
        return Ok(());
    }
    let space = handle.space();
    for stored in space.classes_named(entry.names.name())? {
        let Some(hint) = entry.mismatch(py, stored) else { continue };
        let stat = space.stat()?;
        let of_class = stat.shapes.iter().filter(|one| one.shape.class == Some(stored));
        let count: u64 = of_class.map(|shape| shape.count).sum();
        if count > 0 {
            let there = format!("{count} {}", shown(stored));
            let (here, url) = (entry.shown(py), Some(space.url()));
            return Err(schema_mismatch(py, &here, &there, &hint, url).into());
        }
    }
    handle.meet(address);
    Ok(())
}

/// The template of a class with patterns for some fields, or of an instance: all its fields are actuals.
///
/// # Errors
///
/// `TemplateError` or `NotEncodable` naming the field that is no pattern, and for a field that the class has not.
pub(crate) fn template(
    object: &Bound<'_, PyAny>,
    (entry, is_class): (&EntryClass, bool),
    named: &[(String, Argument<'_, '_>)],
) -> PyResult<tupelo::Template> {
    let py = object.py();
    let fields: Vec<(String, Pattern)> = if is_class {
        let pattern = |(name, value): &(String, Argument<'_, '_>)| {
            if !entry.has_field(name) {
                return Err(entry.no_field(py, name));
            }
            Ok((name.clone(), patterns::pattern_of(value, name)?))
        };
        named.iter().map(pattern).collect::<PyResult<_>>()?
    } else {
        if let Some((name, _)) = named.first() {
            return Err(PyTypeError::new_err(format!(
                "{name}= follows an instance of {}: give the class, as in like({0}, {name}=...)",
                entry.names.name()
            )));
        }
        let values = entry.values(object)?;
        let fields = entry.names.fields().zip(&values);
        let field = |(name, value): (&str, &Bound<'_, PyAny>)| {
            let value = values::value(value, Objects::Compared)
                .map_err(|why| why.into_exception(py, format_args!("field {name}")))?;
            Ok((name.to_owned(), Pattern::Actual(value)))
        };
        fields.map(field).collect::<PyResult<_>>()?
    };
    let alternative = Alternative::entry(entry.names.name(), fields)
        .map_err(|why| PyTypeError::new_err(why.to_string()))?;
    Ok(alternative.into())
}

/// The value of an instance that is a field of a tuple.
pub(crate) fn value(
    object: &Bound<'_, PyAny>,
    mut convert: impl FnMut(&Bound<'_, PyAny>) -> Result<Value, Refusal>,
) -> Result<Option<Value>, Refusal> {
    let Some((entry, false)) = of_object(object)? else { return Ok(None) };
    entry.require_made_again()?;
    let (names, values) = entry.stored(object)?;
    let fields = names.fields().zip(&values).map(|(name, value)| {
        let value = convert(value).map_err(|why| why.within(|| format!(".{name}")))?;
        Ok((name.to_owned(), value))
    });
    let fields = fields.collect::<Result<Vec<_>, Refusal>>()?;
    let bases = names.bases().map(str::to_owned);
    let made = Entry::new(names.name(), bases, fields).map_err(Refusal::from_message)?;
    Ok(Some(Value::Entry(made)))
}

/// The instance for an entry of the class `stored`, of whose fields `field` gives each.
///
/// `asked` is the caller's template: it decides the class if it names one.
///
/// # Errors
///
/// `SchemaMismatch` if no class of that name is known, or several are, or its fields differ.
pub(crate) fn object<'py>(
    py: Python<'py>,
    stored: &'static Class,
    asked: &[Argument<'_, 'py>],
    field: impl FnMut(usize) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if let [sole] = asked
        && let Some((entry, _)) = of_object(sole)?
        && entry.names.name() == stored.name()
    {
        return entry.make(py, stored, field);
    }
    named(py, stored)?.make(py, stored, field)
}

/// The class to use for the name of `stored`. The class that was given at the start comes first. Then comes the class
/// with the same fields: of the classes that were met, their derived classes and those of the modules. Last comes the
/// class that was met last.
fn named(py: Python<'_>, stored: &'static Class) -> PyResult<Arc<EntryClass>> {
    let (name, address) = (stored.name(), ptr::from_ref(stored).addr());
    let (last, is_given) =
        with_met(|met| (met.by_name.get(name).cloned(), met.given.contains(name)));
    if let Some(entry) = &last
        && (is_given || entry.is_like(stored))
    {
        return Ok(Arc::clone(entry));
    }
    // The rest looks at all loaded modules.
    if let Some(entry) = with_met(|met| met.chosen.get(&address).cloned()) {
        return Ok(entry);
    }
    let entry = searched(py, stored, last)?;
    // A class that cannot stand in is refused, or does not know all; and the right one may be imported yet.
    if entry.covers(stored) && entry.mismatch(py, stored).is_none() {
        with_met(|met| met.chosen.insert(address, Arc::clone(&entry)));
    }
    Ok(entry)
}

/// The class with the name and the fields of `stored`, or else `last`.
#[cold]
fn searched(
    py: Python<'_>,
    stored: &Class,
    last: Option<Arc<EntryClass>>,
) -> PyResult<Arc<EntryClass>> {
    let fitting: Vec<Arc<EntryClass>> = with_met(|met| {
        met.by_class.values().filter(|entry| entry.is_like(stored)).cloned().collect()
    });
    if let [sole] = &fitting[..] {
        return Ok(Arc::clone(sole));
    }
    let mut classes: Vec<Bound<'_, PyType>> =
        with_met(|met| met.by_name.values().map(|entry| entry.class.bind(py).clone()).collect());
    let name_of = py.import("tupelo.entries")?.getattr("name_of")?;
    while let Some(class) = classes.pop() {
        // Classes of other names are not described: that may fail, and affect a call that gave its class.
        if name_of.call1((&class,))?.extract::<String>()? == stored.name()
            && let Some(entry) = of_class(&class)?
            && entry.is_like(stored)
        {
            return Ok(entry);
        }
        for derived in class.call_method0("__subclasses__")?.cast::<PyList>()? {
            classes.push(derived.cast_into::<PyType>()?);
        }
    }
    // One of the name may have been met on the way.
    let last = last.or_else(|| with_met(|met| met.by_name.get(stored.name()).cloned()));
    of_module(py, stored, last)
}

/// The class under the name of `stored` that the modules of this program have, if it is exactly one. If one was `met`
/// that has other fields, and stands in for it, the class must have the same fields.
///
/// # Errors
///
/// `SchemaMismatch`.
#[cold]
fn of_module(
    py: Python<'_>,
    stored: &Class,
    met: Option<Arc<EntryClass>>,
) -> PyResult<Arc<EntryClass>> {
    let name = stored.name();
    let fields: Vec<&str> = stored.fields().collect();
    let found = py.import("tupelo.entries")?.getattr("imported")?.call1((name, fields))?;
    let found = found.cast::<PyList>()?;
    if found.len() == 1
        && let Some(entry) = of_class(found.get_item(0)?.cast::<PyType>()?)?
        && (met.is_none() || entry.is_like(stored))
    {
        return Ok(entry);
    }
    if let Some(met) = met {
        return Ok(met);
    }
    let (problem, first) = match found.len() {
        0 => ("a class that this program has not".to_owned(), format!("import {name}, or")),
        several => (format!("and this program has {several} of them"), "take one, and".to_owned()),
    };
    let message = format!("the space holds an entry {name}, {problem}");
    let hint = format!("{first} give it at the start: connect(..., schema=[{name}])");
    Err(errors::make(py, "SchemaMismatch", &message, Some(&hint), None))
}

/// Registers classes of entries before their first use. For `connect(schema=...)`.
#[pyfunction]
pub(crate) fn register(handle: &Bound<'_, Handle>, schema: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = handle.py();
    for class in schema.try_iter()? {
        let class = class?;
        let Some((entry, true)) = of_object(&class)? else {
            let shown = values::shown(&class);
            return Err(PyTypeError::new_err(format!(
                "schema has {shown}, which is no class of entries: give dataclasses, NamedTuples, attrs or msgspec \
                 classes"
            )));
        };
        with_met(|met| {
            met.given.insert(entry.names.name().to_owned());
            met.by_name.insert(entry.names.name().to_owned(), Arc::clone(&entry));
            met.chosen.clear();
        });
        let url = handle.get().url();
        meet(py, handle.get(), &entry).map_err(|failure| failure.into_exception(py, url))?;
    }
    Ok(())
}
