//! How a verb is called: the arguments as borrowed slices, without a tuple or a dict in between.
//!
//! `PyO3` passes `*fields` as a tuple that it builds for each call, and sorts keywords by a table. That makes a put and
//! take of a small tuple take half as long again (measured: docs/decisions/python-boundary.md). So the verbs are plain
//! C functions behind one trampoline. It is the only place where pointers that Python passed are trusted.

use std::any::Any;
use std::cell::Cell;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

use tupelo::{Condition, Durability, Order, Space, TemplateRef, TupleView};

use crate::arguments::Source;
use crate::conditions;
use crate::entries::{self, EntryClass};
use crate::errors::{self, Failure};
use crate::keywords::{Keywords, SYNC, WHERE};
use crate::order;
use crate::space::{Handle, Place};
use crate::{arguments, renewal, results};

/// A borrowed argument. It lives as long as the call.
pub(crate) type Argument<'a, 'py> = Borrowed<'a, 'py, PyAny>;

/// An operation of a space as Python sees it.
pub(crate) trait Verb {
    /// The name of the method.
    const NAME: &'static CStr;
    /// Whether it has a template, and so the keyword `where` (rule M9).
    const HAS_TEMPLATE: bool = true;
    /// Whether it changes the space, and so has the keyword `sync` (rule C4).
    const CHANGES: bool = false;
    /// Whether its only argument is an iterable.
    const ITERATES: bool = false;
    /// Whether there may be other spaces among its arguments.
    const HAS_OTHERS: bool = false;
    /// Whether it renews the connection itself where its space was removed, as what is written in Python does.
    const RENEWS: bool = false;
    /// Its help text, which begins with the signature in the form that `inspect` reads.
    const DOC: &'static CStr;

    /// Does it.
    ///
    /// # Errors
    ///
    /// A refusal of the space, or an exception of Python; both reach the caller as an exception.
    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure>;
}

/// The arguments of one call, as they came.
pub(crate) struct Given<'a, 'py> {
    pub(crate) py: Python<'py>,
    /// The space as Python has it.
    pub(crate) object: Argument<'a, 'py>,
    /// The same.
    pub(crate) handle: &'a Handle,
    /// The positional arguments.
    pub(crate) fields: &'a [Argument<'a, 'py>],
    pub(crate) keyword_names: Option<Borrowed<'a, 'py, PyTuple>>,
    pub(crate) keyword_values: &'a [Argument<'a, 'py>],
}

/// The arguments of one call.
pub(crate) struct Call<'a, 'py> {
    pub(crate) py: Python<'py>,
    /// The space as Python has it; its pinned connection, if it reconnects.
    pub(crate) object: Argument<'a, 'py>,
    /// The space that the verb was called on.
    pub(crate) origin: Argument<'a, 'py>,
    /// The same as `object`.
    pub(crate) handle: &'a Handle,
    /// The space behind it.
    space: &'a Space,
    /// The positional arguments.
    pub(crate) fields: &'a [Argument<'a, 'py>],
    keyword_names: Option<Borrowed<'a, 'py, PyTuple>>,
    keyword_values: &'a [Argument<'a, 'py>],
    verb: &'static CStr,
    has_template: bool,
    changes: bool,
    /// The space as this call uses it, where the call says itself when it returns.
    synced: Option<Space>,
    /// What the keyword `where` says.
    condition: Option<&'a Argument<'a, 'py>>,
    /// After how long a look at many tuples is given up.
    look_max: Cell<Option<Duration>>,
}

impl<'a, 'py> Call<'a, 'py> {
    /// The call of `V` that was made of `origin`, on the space of `given`.
    ///
    /// # Errors
    ///
    /// As [`Handle::synced`].
    #[inline]
    pub(crate) fn of<V: Verb>(
        given: &Given<'a, 'py>,
        origin: Argument<'a, 'py>,
        space: &'a Space,
    ) -> PyResult<Self> {
        let Given { py, object, handle, fields, keyword_names, keyword_values } = *given;
        let mut call = Self {
            py,
            object,
            origin,
            handle,
            space,
            fields,
            keyword_names,
            keyword_values,
            verb: V::NAME,
            has_template: V::HAS_TEMPLATE,
            changes: V::CHANGES,
            synced: None,
            condition: None,
            look_max: Cell::new(None),
        };
        call.look_at_keywords()?;
        Ok(call)
    }

    /// The space.
    #[inline]
    pub(crate) fn space(&self) -> &Space {
        self.synced.as_ref().unwrap_or(self.space)
    }

    /// Refuses a call in a space that was removed, where the verb looks at the space only later: so one that reconnects does so
    /// now. The same goes for other spaces among the arguments.
    ///
    /// # Errors
    ///
    /// [`tupelo::Error::SpaceRemoved`].
    pub(crate) fn look_first(&self) -> Result<(), Failure> {
        if !self.origin.is(self.object) {
            renewal::refuse_removed(self.space())?;
        }
        for field in self.fields {
            if let Ok(other) = field.cast::<Handle>()
                && let Some(other) = other.get().renewal()
            {
                renewal::refuse_removed(&other.space())?;
            }
        }
        Ok(())
    }

    /// When the call returns, if it says so itself.
    pub(crate) fn sync(&self) -> Option<Durability> {
        self.synced.as_ref().map(Space::sync)
    }

    /// Another space, as the call uses it: with the durability of the call, if that says so itself.
    pub(crate) fn beside(&self, other: &Space) -> Space {
        self.sync().map_or_else(|| other.clone(), |sync| other.with_sync(sync))
    }

    /// Looks for the keywords of many verbs, once.
    #[inline]
    fn look_at_keywords(&mut self) -> PyResult<()> {
        match self.keyword_names {
            Some(names) => self.look_among(names),
            None => Ok(()),
        }
    }

    #[inline(never)]
    fn look_among(&mut self, names: Borrowed<'a, 'py, PyTuple>) -> PyResult<()> {
        for (name, value) in names.iter_borrowed().zip(self.keyword_values) {
            match name.cast::<PyString>()?.to_str()? {
                WHERE if self.has_template && !value.is_none() => self.condition = Some(value),
                SYNC if self.changes => self.synced = self.handle.synced(Some(&**value))?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives `use_template` the positional arguments as a template.
    ///
    /// # Errors
    ///
    /// As [`arguments::with_template`].
    #[inline]
    pub(crate) fn with_template<R>(
        &self,
        use_template: impl FnOnce(&[TemplateRef<'_>]) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.with_template_of(self.fields, use_template)
    }

    /// As [`Call::with_template`], for a call that asks for a match in this order.
    ///
    /// # Errors
    ///
    /// Also as [`order::require_numbers`].
    #[inline]
    pub(crate) fn with_template_in<R>(
        &self,
        order: Order,
        use_template: impl FnOnce(&[TemplateRef<'_>]) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.with_template(|template| {
            order::require_numbers(self.py, order, template)?;
            use_template(template)
        })
    }

    /// Gives `use_template` some of the positional arguments as a template, with the keywords that are fields of a
    /// class of entries.
    ///
    /// # Errors
    ///
    /// As [`arguments::with_template`].
    #[inline]
    pub(crate) fn with_template_of<R>(
        &self,
        fields: &[Argument<'_, 'py>],
        use_template: impl FnOnce(&[TemplateRef<'_>]) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        if let [sole] = fields
            && let Some((entry, is_class)) = entries::of_object(sole)?
        {
            entries::meet(self.py, self.handle, &entry)?;
            let template = self.entry_template(sole, (&entry, is_class))?;
            return self.with_refs(&template, use_template);
        }
        if let Some(condition) = self.condition()? {
            let template = arguments::owned_template(self.py, (Source::Positional, fields))?;
            let template = conditions::added(self.py, template, &condition)?;
            return self.with_refs(&template, use_template);
        }
        arguments::with_template(self.py, (Source::Positional, fields), use_template)
    }

    fn with_refs<R>(
        &self,
        template: &tupelo::Template,
        use_template: impl FnOnce(&[TemplateRef<'_>]) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let has_condition = template.alternatives().iter().any(|one| one.condition.is_some());
        // The caller has no lock but the interpreter's: the long look for a match of a condition lets go of that.
        let use_template = |refs: &[TemplateRef<'_>]| {
            if has_condition {
                let until = self.look_max.get().and_then(|max| Instant::now().checked_add(max));
                tupelo::in_steps(until, || use_template(refs))
            } else {
                use_template(refs)
            }
        };
        template
            .with_refs(use_template)
            .map_err(|why| errors::not_encodable(self.py, &why.to_string(), None))?
    }

    /// The condition over the whole tuple, if the call has one.
    #[inline]
    fn condition(&self) -> PyResult<Option<Condition>> {
        self.condition.map(|value| conditions::condition(value)).transpose()
    }

    /// Has a look at many tuples given up when the time of the call is over. A call that does not wait looks at all.
    #[inline]
    pub(crate) fn give_up_after(&self, timeout: Option<Duration>) {
        self.look_max.set(timeout.filter(|timeout| !timeout.is_zero()));
    }

    /// The positional arguments, and fields by keyword, as a template that is kept.
    ///
    /// # Errors
    ///
    /// As [`arguments::with_template`].
    pub(crate) fn owned_template(&self) -> PyResult<tupelo::Template> {
        if let [sole] = self.fields
            && let Some((entry, is_class)) = entries::of_object(sole)?
        {
            return self.entry_template(sole, (&entry, is_class));
        }
        let template = arguments::owned_template(self.py, (Source::Positional, self.fields))?;
        match self.condition()? {
            Some(condition) => conditions::added(self.py, template, &condition),
            None => Ok(template),
        }
    }

    fn entry_template(
        &self,
        sole: &Bound<'py, PyAny>,
        (entry, is_class): (&EntryClass, bool),
    ) -> PyResult<tupelo::Template> {
        if is_class {
            entry.require_clear()?;
        }
        let names = self.keyword_names.iter().flat_map(|names| names.iter_borrowed());
        let mut patterns = Vec::new();
        for (name, value) in names.zip(self.keyword_values) {
            let name = name.cast::<PyString>()?;
            let name = name.to_str()?;
            // The others are the verb's own: a class that gets here has no such field, and of an instance all are.
            if is_class && entry.has_field(name) {
                patterns.push((name.to_owned(), *value));
            }
        }
        let template = entries::template(sole, (entry, is_class), &patterns)?;
        match self.condition()? {
            Some(condition) => conditions::added_for(self.py, template, &condition, entry.names()),
            None => Ok(template),
        }
    }

    /// A matching tuple as the caller gets it.
    ///
    /// # Errors
    ///
    /// As [`results::tuple`].
    #[inline]
    pub(crate) fn tuple(&self, view: TupleView<'_>) -> Result<Bound<'py, PyAny>, Failure> {
        results::tuple(self.py, view, self.fields, self.handle.objects())
    }

    /// The space, for an object that the call makes and that keeps the connection open.
    pub(crate) fn handle_object(&self) -> Py<Handle> {
        // SAFETY: the method descriptor has checked that it is a `Handle`, as in `borrow`.
        unsafe { self.object.cast_unchecked::<Handle>() }.to_owned().unbind()
    }

    /// `None`.
    #[inline]
    pub(crate) fn none(&self) -> Bound<'py, PyAny> {
        self.py.None().into_bound(self.py)
    }

    /// The values of the keyword arguments `names`, in that order; `None` for a missing one.
    ///
    /// # Errors
    ///
    /// `TypeError` for any other keyword, naming it and the nearest valid one.
    #[inline]
    pub(crate) fn keywords<const N: usize>(
        &self,
        names: [&str; N],
    ) -> PyResult<[Option<&'a Argument<'a, 'py>>; N]> {
        let mut values = [None; N];
        if let Some(given) = self.keyword_names {
            self.sort_keywords(given, &names, &mut values)?;
        }
        Ok(values)
    }

    /// Refuses keyword arguments, for verbs that take none.
    #[inline]
    pub(crate) fn no_keywords(&self) -> PyResult<()> {
        self.keywords([]).map(|[]| ())
    }

    /// Refuses positional arguments, for verbs that take none.
    pub(crate) fn no_fields(&self) -> PyResult<()> {
        if self.fields.is_empty() {
            return Ok(());
        }
        let (verb, count) = (self.verb.to_string_lossy(), self.fields.len());
        Err(PyTypeError::new_err(format!("{verb}() takes no arguments, got {count}")))
    }

    #[cold]
    fn sort_keywords(
        &self,
        given: Borrowed<'a, 'py, PyTuple>,
        names: &[&str],
        values: &mut [Option<&'a Argument<'a, 'py>>],
    ) -> PyResult<()> {
        let verb = self.verb.to_string_lossy();
        let (has_template, changes) = (self.has_template, self.changes);
        let keywords = Keywords { verb: &verb, names, has_template, changes };
        keywords.require_clear(self.fields)?;
        for (name, value) in given.iter_borrowed().zip(self.keyword_values) {
            let name = name.cast::<PyString>()?;
            let name = name.to_str()?;
            match names.iter().position(|known| *known == name) {
                Some(index) => values[index] = Some(value),
                None => keywords.require_field(self.py, name, self.fields)?,
            }
        }
        Ok(())
    }
}

/// Puts the method for `V` on `class`, which must be that of [`Handle`].
///
/// On that class itself: `CPython` 3.11 and later call a method without any detour only under a condition. The class
/// that defines the method must be exactly the class of the object.
pub(crate) fn define<V: Verb>(class: &Bound<'_, PyType>) -> PyResult<()> {
    // Python keeps the pointer for as long as the type lives, that is for ever.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: V::NAME.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: trampoline::<V> },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: V::DOC.as_ptr(),
    }));
    // SAFETY: the type is a type, and the definition is complete and lives for ever. The method checks
    // that its first argument is an instance of `class`, so that `trampoline` gets a `Handle`.
    let method = unsafe { ffi::PyDescr_NewMethod(class.as_type_ptr(), definition) };
    // SAFETY: the call above returned a new reference, or null with an exception set.
    let method = unsafe { Bound::from_owned_ptr_or_err(class.py(), method) }?;
    class.setattr(PyString::new(class.py(), &V::NAME.to_string_lossy()), method)
}

/// The C function behind the method for `V`: borrows the arguments, calls, turns failures into exceptions.
unsafe extern "C" fn trampoline<V: Verb>(
    space: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    keyword_names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls its methods attached, and stays attached until they return.
    let py = unsafe { Python::assume_attached() };
    // A panic must not unwind into C.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: these are the pointers of the running call.
        let given = unsafe { borrow(py, space, arguments, positional, keyword_names) };
        let done = match given.handle.place() {
            Place::Renewing(renewal) => renewal::call::<V>(Some(renewal), &given),
            Place::Here(_) if V::HAS_OTHERS => renewal::call::<V>(None, &given),
            Place::Here(space) => match Call::of::<V>(&given, given.object, space) {
                Ok(call) => V::call(&call),
                Err(why) => Err(why.into()),
            },
        };
        match done {
            Ok(object) => object.into_ptr(),
            Err(failure) => raise(py, || given.handle.exception(py, failure)),
        }
    }));
    outcome.unwrap_or_else(|panic| raise(py, || panic_exception(panic.as_ref())))
}

/// The arguments of the running call.
///
/// # Safety
///
/// The pointers must be the ones that Python passed to a method put up by [`define`]. The `space` is an instance of
/// [`Handle`]. The `arguments` are an array of `positional` objects and as many more as there are names. The caller
/// keeps all of them alive until the method returns, and `'a` must end before that.
#[inline]
unsafe fn borrow<'a, 'py>(
    py: Python<'py>,
    space: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    keyword_names: *mut ffi::PyObject,
) -> Given<'a, 'py> {
    // SAFETY: not null, and alive during the call, by the contract of this function.
    let object = unsafe { Borrowed::from_ptr(py, space) };
    // SAFETY: an instance of `Handle`, which the method descriptor has checked.
    let handle = unsafe { object.cast_unchecked::<Handle>() }.get();
    // SAFETY: null or a tuple that is alive during the call.
    let keyword_names = unsafe { Borrowed::from_ptr_or_opt(py, keyword_names) };
    // SAFETY: Python passes the names as a tuple.
    let keyword_names = keyword_names.map(|names| unsafe { names.cast_unchecked::<PyTuple>() });
    let positional = positional.cast_unsigned();
    let count = positional + keyword_names.map_or(0, |names| names.len());
    // Without arguments the pointer may be null, which a slice must not be.
    let arguments = if count == 0 { ptr::NonNull::dangling().as_ptr() } else { arguments.cast() };
    // SAFETY: `Borrowed` is a transparent pointer to an object; there are `count` of them, alive during
    // the call.
    let arguments = unsafe { std::slice::from_raw_parts::<Argument<'a, 'py>>(arguments, count) };
    let (fields, keyword_values) = arguments.split_at(positional);
    Given { py, object, handle, fields, keyword_names, keyword_values }
}

/// Sets the exception. Attached by the book, since making it runs Python code. When the interpreter ends, no thread can
/// be attached to it anew, but finalizers may still call.
#[cold]
fn raise(py: Python<'_>, exception: impl FnOnce() -> PyErr) -> *mut ffi::PyObject {
    let mut exception = Some(exception);
    let mut restore = |py: Python<'_>| exception.take().map(|exception| exception().restore(py));
    if Python::try_attach(&mut restore).is_none() {
        restore(py);
    }
    ptr::null_mut()
}

fn panic_exception(panic: &(dyn Any + Send)) -> PyErr {
    let message = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
    PanicException::new_err(message.unwrap_or_else(|| "panic without a message".to_owned()))
}
