//! Arrays: numpy's by what [`numpy`] sees of them, and by the buffer protocol all others, `array.array` and
//! `memoryview` among them, without importing numpy.
//!
//! A contiguous little-endian array is put from where it lies; any other is first copied into that form.
//! Back comes a `numpy.ndarray` when numpy can be imported, else a `memoryview` of the same shape; both
//! are copies that the caller may change (V2).

use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;
use std::slice;

use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyTuple};

use tupelo::{ArrayView, DType, Encoded, Field, Kind, Value, array_head};

use crate::refusal::Refusal;
use crate::{known, numpy};

/// An array that is put: what describes it, and its data.
pub(crate) struct ArrayArgument<'a> {
    head: Vec<u8>,
    data: Data<'a>,
}

enum Data<'a> {
    /// In the caller's own memory.
    Lent(&'a [u8]),
    /// The same, by a view of it.
    Shared(Buffer),
    /// Brought into order.
    Copied(Vec<u8>),
}

impl ArrayArgument<'_> {
    /// The array as a field.
    pub(crate) fn field(&self) -> Field<'_> {
        Field::Encoded(Encoded { kind: Kind::Array, head: &self.head, body: self.data() })
    }

    /// The array as a value, for a place inside a list.
    pub(crate) fn to_value(&self) -> Result<Value, Refusal> {
        Value::from_field(&self.field()).map_err(Refusal::from_message)
    }

    fn data(&self) -> &[u8] {
        match &self.data {
            Data::Lent(bytes) => bytes,
            Data::Shared(buffer) => buffer.bytes(),
            Data::Copied(bytes) => bytes,
        }
    }
}

/// The array that `object` is, if it is one of `NumPy`'s that is stored as it lies.
pub(crate) fn lent<'a>(object: &'a Bound<'_, PyAny>) -> Option<Result<ArrayArgument<'a>, Refusal>> {
    let array = numpy::contiguous(object)?;
    Some(
        head(array.dtype, array.shape)
            .map(|head| ArrayArgument { head, data: Data::Lent(array.data) }),
    )
}

/// The array that `object` is, or `None` if it has no buffer.
///
/// # Errors
///
/// [`Refusal`] if its elements are of a type that is not stored.
pub(crate) fn array<'a>(
    object: &'a Bound<'_, PyAny>,
) -> Result<Option<ArrayArgument<'a>>, Refusal> {
    if let Some(lent) = lent(object) {
        return lent.map(Some);
    }
    // SAFETY: the object is one; the call only looks at its type.
    if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 0 {
        return Ok(None);
    }
    let class = || known::class_name(object);
    refuse_subclass(object, &class)?;
    let buffer = Buffer::get(object, ffi::PyBUF_FULL_RO).map_err(|why| {
        if !why.is_instance_of::<PyException>(object.py()) {
            return Refusal::Raised(why);
        }
        let why = why.value(object.py());
        Refusal::new(format!("a {} that shows no elements: {why}", class()), ELEMENTS_HINT)
    })?;
    let (dtype, big_endian) =
        element_type(buffer.format(), buffer.item_bytes()).ok_or_else(|| {
            let format = buffer.format().to_string_lossy();
            Refusal::new(
                format!("a {} of elements {format:?}, which is not stored", class()),
                ELEMENTS_HINT,
            )
        })?;
    let head = head(dtype, buffer.shape())?;
    let data = if buffer.is_contiguous() && !big_endian {
        Data::Shared(buffer)
    } else {
        let mut bytes = buffer.to_contiguous(object.py())?;
        if big_endian {
            swap_bytes(dtype, &mut bytes);
        }
        Data::Copied(bytes)
    };
    Ok(Some(ArrayArgument { head, data }))
}

/// Refuses an array of numpy that is more than its elements, which alone would come back.
fn refuse_subclass(object: &Bound<'_, PyAny>, class: &dyn Fn() -> String) -> Result<(), Refusal> {
    if known::NDARRAY.is_class_of(object)? || !known::NDARRAY.is_instance(object)? {
        return Ok(());
    }
    if known::MASKED_ARRAY.is_instance(object)? {
        let hint = "put x.filled(0), or x.data and x.mask as two fields";
        return Err(Refusal::new("a masked array, whose mask would be lost", hint));
    }
    // Elements in a file are elements; where they are is no part of them.
    if known::MEMMAP.is_class_of(object)? {
        return Ok(());
    }
    Err(Refusal::new(
        format!("a {}, which would come back as a plain numpy array", class()),
        "put numpy.asarray(x), and what else it has in a field of its own",
    ))
}

/// What describes an array of this type and shape.
fn head(dtype: DType, shape: &[isize]) -> Result<Vec<u8>, Refusal> {
    let shape = shape.iter().map(|size| size.cast_unsigned() as u64);
    array_head(dtype, shape).map_err(Refusal::from_message)
}

const ELEMENTS_HINT: &str =
    "arrays hold bool, int, uint, float (16 to 64 bits) or complex: x.astype(...), or x.tolist()";

/// The element type for a format of the `struct` module, and whether its bytes stand in reverse.
fn element_type(format: &CStr, item_bytes: usize) -> Option<(DType, bool)> {
    let format = format.to_bytes();
    let big_endian = matches!(format, [b'>' | b'!', ..]);
    let prefixed = big_endian || matches!(format, [b'<' | b'=' | b'@' | b'|', ..]);
    let code = &format[usize::from(prefixed)..];
    // The same letter has another size in the native and the standard notation, hence the size.
    let dtype = match (code, item_bytes) {
        (b"?", 1) => DType::Bool,
        (b"b", 1) => DType::I8,
        (b"B" | b"c", 1) => DType::U8,
        (b"h", 2) => DType::I16,
        (b"H", 2) => DType::U16,
        (b"i" | b"l" | b"q" | b"n", 4) => DType::I32,
        (b"I" | b"L" | b"Q" | b"N", 4) => DType::U32,
        (b"i" | b"l" | b"q" | b"n", 8) => DType::I64,
        (b"I" | b"L" | b"Q" | b"N", 8) => DType::U64,
        (b"e", 2) => DType::F16,
        (b"f", 4) => DType::F32,
        (b"d", 8) => DType::F64,
        (b"Zf", 8) => DType::C64,
        (b"Zd", 16) => DType::C128,
        _ => return None,
    };
    Some((dtype, big_endian && item_bytes > 1))
}

/// The code of the `struct` module for an element type that `memoryview` can show.
const fn format_code(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "?",
        DType::I8 => "b",
        DType::I16 => "h",
        DType::I32 => "i",
        DType::I64 => "q",
        DType::U8 => "B",
        DType::U16 => "H",
        DType::U32 => "I",
        DType::U64 => "Q",
        DType::F32 => "f",
        DType::F64 => "d",
        _ => return None,
    })
}

/// Turns each number around; a complex one is two.
fn swap_bytes(dtype: DType, bytes: &mut [u8]) {
    let number_bytes = match dtype {
        DType::C64 | DType::C128 => dtype.item_bytes() / 2,
        _ => dtype.item_bytes(),
    };
    for number in bytes.chunks_exact_mut(number_bytes) {
        number.reverse();
    }
}

/// A new array of Python's with the elements of `array`.
///
/// # Errors
///
/// Its description (as in "field 2 is …") if nothing here can hold such elements, or show them in their shape.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    array: &ArrayView<'_>,
) -> Result<Bound<'py, PyAny>, Refusal> {
    if let Some(array) = numpy::copied(py, array)? {
        return Ok(array);
    }
    let Some(code) = format_code(array.dtype()) else {
        return Err(Refusal::new(
            format!("an array of {}, which only numpy can show", array.dtype().name()),
            "install numpy",
        ));
    };
    let shape = PyTuple::new(py, array.shape())?;
    // A view of bytes cannot be cast to a shape with a zero in it, nor to one without dimensions.
    if shape.len() != 1 && (array.data().is_empty() || shape.is_empty()) {
        return Err(Refusal::new(
            format!("an array of shape {shape}, which only numpy can show"),
            "install numpy",
        ));
    }
    let bytes = PyByteArray::new(py, array.data());
    let view = py.import("builtins")?.getattr("memoryview")?.call1((bytes,))?;
    Ok(if array.data().is_empty() {
        view.call_method1("cast", (code,))?
    } else {
        view.call_method1("cast", (code, shape))?
    })
}

/// A view of another object's memory, given back when dropped.
///
/// Not `PyO3`'s own, which refuses arrays without dimensions and allocates for each view.
struct Buffer {
    view: Box<ffi::Py_buffer>,
}

impl Buffer {
    fn get(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Self> {
        let mut view = Box::new(MaybeUninit::<ffi::Py_buffer>::uninit());
        // SAFETY: the object is one, and there is room for the view; it stays at its address.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: the call above succeeded, so the view is filled in.
        let view = unsafe { view.assume_init() };
        Ok(Self { view })
    }

    fn format(&self) -> &CStr {
        if self.view.format.is_null() {
            return c"B";
        }
        // SAFETY: not null, so it is a string that lives as long as the view.
        unsafe { CStr::from_ptr(self.view.format) }
    }

    fn item_bytes(&self) -> usize {
        self.view.itemsize.cast_unsigned()
    }

    fn len(&self) -> usize {
        self.view.len.cast_unsigned()
    }

    /// The size of each dimension; none for a single element.
    fn shape(&self) -> &[isize] {
        let dimensions = usize::try_from(self.view.ndim).unwrap_or(0);
        if dimensions == 0 {
            return &[];
        }
        // SAFETY: a view of `PyBUF_ND` with dimensions has the size of each.
        unsafe { slice::from_raw_parts(self.view.shape, dimensions) }
    }

    fn is_contiguous(&self) -> bool {
        const ORDER: c_char = b'C'.cast_signed();
        // SAFETY: the view is filled in.
        unsafe { ffi::PyBuffer_IsContiguous(&raw const *self.view, ORDER) != 0 }
    }

    /// The memory, which must be contiguous.
    fn bytes(&self) -> &[u8] {
        if self.len() == 0 {
            return &[];
        }
        // SAFETY: a contiguous view is `len` bytes at `buf`, which the object keeps where they are as
        // long as the view exists. Another thread may write to them only without the lock of the
        // interpreter, against the rules of that memory as much as of ours.
        unsafe { slice::from_raw_parts(self.view.buf.cast(), self.len()) }
    }

    /// The elements in a new run of bytes, the last dimension fastest.
    fn to_contiguous(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        const ORDER: c_char = b'C'.cast_signed();
        let mut bytes = vec![0; self.len()];
        // SAFETY: the view is filled in, and there is room for its `len` bytes.
        let status = unsafe {
            ffi::PyBuffer_ToContiguous(
                bytes.as_mut_ptr().cast(),
                &raw const *self.view,
                self.view.len,
                ORDER,
            )
        };
        if status == 0 { Ok(bytes) } else { Err(PyErr::fetch(py)) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: views live within one call of Python, which is attached; this one is given back once.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.view) };
    }
}
