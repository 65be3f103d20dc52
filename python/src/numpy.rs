//! `NumPy` arrays by the C interface of `NumPy`, which is twice as fast as its Python one. To read an array of 32
//! numbers takes 280 ns and not 540. To put and take it takes 610 ns and not 1 150 (measured on a busy machine).
//!
//! Every compiled extension finds that interface in the same way, as a table of functions in a capsule. Here it is
//! looked up when an array is first met, so nothing is linked, and `NumPy` stays optional. The places in the table, and
//! the fields of an array that are read here, are the same in `NumPy` 1 and 2
//! (<https://numpy.org/doc/stable/reference/c-api/types-and-structures.html>). An interface of another version is not
//! used.

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::{mem, ptr, slice};

use pyo3::exceptions::{PyImportError, PyModuleNotFoundError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCapsule;

use tupelo::{ArrayView, DType, Kind, KindSet};

use crate::known;
use crate::refusal::Refusal;

/// What an array begins with.
#[repr(C)]
struct ArrayObject {
    head: ffi::PyObject,
    data: *const u8,
    dimensions: c_int,
    shape: *const isize,
    strides: *const isize,
    base: *const c_void,
    descriptor: *const Descriptor,
    flags: c_int,
}

/// The beginning of the description of an element.
#[repr(C)]
struct Descriptor {
    head: ffi::PyObject,
    scalar: *const c_void,
    kind: c_char,
    letter: c_char,
    byte_order: c_char,
    flags: c_char,
    number: c_int,
}

/// The flag of an array whose elements lie one behind the other, the last dimension fastest.
const C_CONTIGUOUS: c_int = 0x1;

type AbiVersion = unsafe extern "C" fn() -> c_uint;
type DescriptorFromType = unsafe extern "C" fn(c_int) -> *mut c_void;
type NewFromDescriptor = unsafe extern "C" fn(
    class: *mut c_void,
    descriptor: *mut c_void,
    dimensions: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *mut c_void,
    flags: c_int,
    prototype: *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// The versions of the binary interface that look as described here: of `NumPy` 1 and of 2.
const ABI_VERSIONS: [c_uint; 2] = [0x0100_0009, 0x0200_0000];

/// Places of the table up to the last used one.
const PLACES: usize = 95;

/// The part of the interface that is used.
struct Interface {
    /// `numpy.ndarray`; the module that owns it is never unloaded.
    class: *mut c_void,
    descriptor_from_type: DescriptorFromType,
    new_from_descriptor: NewFromDescriptor,
}

// SAFETY: addresses of functions and of a class, which do not change; they are used attached to the interpreter.
unsafe impl Send for Interface {}
// SAFETY: as above.
unsafe impl Sync for Interface {}

/// The result of the look-up; `None` in it if `NumPy` is not installed.
static INTERFACE: PyOnceLock<Option<Interface>> = PyOnceLock::new();

impl Interface {
    /// The interface, `NumPy` imported if need be; `None` where it is not installed.
    ///
    /// # Errors
    ///
    /// What importing it raises, other than that it is not there; or that its interface is another one.
    fn get(py: Python<'_>) -> Result<Option<&'static Self>, Refusal> {
        Ok(INTERFACE.get_or_try_init(py, || Self::find(py))?.as_ref())
    }

    fn find(py: Python<'_>) -> Result<Option<Self>, Refusal> {
        if let Err(why) = py.import("numpy") {
            return if why.is_instance_of::<PyImportError>(py) {
                Ok(None)
            } else {
                Err(why.into())
            };
        }
        let module = py.import("numpy._core._multiarray_umath").or_else(|why| {
            // Where `NumPy` 1 has it.
            let absent = why.is_instance_of::<PyModuleNotFoundError>(py);
            if absent { py.import("numpy.core._multiarray_umath") } else { Err(why) }
        })?;
        let capsule =
            module.getattr("_ARRAY_API")?.cast_into::<PyCapsule>().map_err(PyErr::from)?;
        let table = capsule.pointer_checked(None)?.cast::<*mut c_void>();
        // SAFETY: the table of every version has these places; it lives as long as the module, which stays.
        let table = unsafe { slice::from_raw_parts(table.as_ptr(), PLACES) };
        // SAFETY: the function at this place in every version.
        let version = unsafe { mem::transmute::<*mut c_void, AbiVersion>(table[0]) };
        // SAFETY: it takes no arguments.
        let version = unsafe { version() };
        if !ABI_VERSIONS.contains(&version) {
            let what = format!("an array, and the C interface of numpy has version {version:#x}");
            return Err(Refusal::new(what, "install a numpy whose version begins with 1 or 2"));
        }
        tupelo::represents(KindSet::of(Kind::Array));
        Ok(Some(Self {
            class: table[2],
            // SAFETY: the function at this place in the table of these versions.
            descriptor_from_type: unsafe {
                mem::transmute::<*mut c_void, DescriptorFromType>(table[45])
            },
            // SAFETY: as above.
            new_from_descriptor: unsafe {
                mem::transmute::<*mut c_void, NewFromDescriptor>(table[94])
            },
        }))
    }
}

/// An array as it lies in memory.
pub(crate) struct Contiguous<'a> {
    pub(crate) dtype: DType,
    pub(crate) shape: &'a [isize],
    pub(crate) data: &'a [u8],
}

/// The elements of a `numpy.ndarray` that are stored as they lie; `None` for any other object. An interface that can
/// not be used is no matter here: the buffer protocol shows all of them.
pub(crate) fn contiguous<'a>(object: &'a Bound<'_, PyAny>) -> Option<Contiguous<'a>> {
    let interface = match INTERFACE.get(object.py()) {
        Some(found) => found.as_ref()?,
        // Without importing it if the program did not.
        None if known::NDARRAY.is_class_of(object).ok()? => Interface::get(object.py()).ok()??,
        None => return None,
    };
    if object.get_type_ptr().cast::<c_void>() != interface.class {
        return None;
    }
    // SAFETY: of this very class, and the interface is of a version whose arrays begin so.
    let array = unsafe { &*object.as_ptr().cast::<ArrayObject>() };
    // SAFETY: each array has a description of its elements, which begins so.
    let descriptor = unsafe { &*array.descriptor };
    let byte_order = descriptor.byte_order.cast_unsigned();
    if array.flags & C_CONTIGUOUS == 0 || !matches!(byte_order, b'=' | b'|' | b'<') {
        return None;
    }
    let dtype = dtype(descriptor.number)?;
    let shape: &[isize] = match usize::try_from(array.dimensions) {
        Ok(1..) => {
            let dimensions = array.dimensions.cast_unsigned() as usize;
            // SAFETY: an array with dimensions has the size of each.
            unsafe { slice::from_raw_parts(array.shape, dimensions) }
        }
        _ => &[],
    };
    let elements: isize = shape.iter().product();
    let bytes = elements.cast_unsigned() * dtype.item_bytes();
    if bytes == 0 {
        return Some(Contiguous { dtype, shape, data: &[] });
    }
    // SAFETY: contiguous, so that many bytes. They stay where they are as long as an object uses the array: `resize`
    // refuses then. Another thread may write to them, or resize without the check, only without the lock of the
    // interpreter or against the rules of that memory.
    let data = unsafe { slice::from_raw_parts(array.data, bytes) };
    Some(Contiguous { dtype, shape, data })
}

/// A new `numpy.ndarray` with the elements of `array`; `None` where `NumPy` is not installed.
///
/// # Errors
///
/// An error: there is no memory for it, or `NumPy` cannot be used.
pub(crate) fn copied<'py>(
    py: Python<'py>,
    array: &ArrayView<'_>,
) -> Result<Option<Bound<'py, PyAny>>, Refusal> {
    let Some(interface) = Interface::get(py)? else { return Ok(None) };
    let mut shape = [0_isize; tupelo::DIMENSIONS_MAX];
    let mut dimensions: c_int = 0;
    for (place, size) in shape.iter_mut().zip(array.shape()) {
        dimensions += 1;
        // No size is over that of the data, but beside a zero; such an array is refused by the call below.
        *place = isize::try_from(size).unwrap_or(isize::MAX);
    }
    let Some(number) = number(array.dtype()) else {
        let what = format!("an array of {}, which numpy can not show", array.dtype().name());
        return Err(Refusal::new(what, "read it on the command line, with `tupelo read`"));
    };
    // SAFETY: attached, and the number of a type that every version has.
    let descriptor = unsafe { (interface.descriptor_from_type)(number) };
    // SAFETY: a class, a description that the call takes over, and the sizes; the rest may be absent.
    let object = unsafe {
        (interface.new_from_descriptor)(
            interface.class,
            descriptor,
            dimensions,
            shape.as_ptr(),
            ptr::null(),
            ptr::null_mut(),
            0,
            ptr::null_mut(),
        )
    };
    // SAFETY: the call above returned a new reference, or null with an exception set.
    let object = unsafe { Bound::from_owned_ptr_or_err(py, object) }?;
    // SAFETY: an array of this interface, so it begins so.
    let target = unsafe { (*object.as_ptr().cast::<ArrayObject>()).data };
    // SAFETY: a new array of the same type and shape has room for as many bytes, and no other code has seen it.
    unsafe { fill(target.cast_mut(), array.data()) };
    Ok(Some(object))
}

/// How much of an array is copied at once.
const COPY_BYTES: usize = 1024;

/// Copies `bytes` to `target`.
///
/// In parts: glibc before 2.39 copies more than 2 KiB by an instruction that is five times slower on Zen 3 and 4. It is
/// slow when source and target lie alike within their pages, as here they often do.
///
/// # Safety
///
/// There is room for them, and no other thread uses it.
unsafe fn fill(target: *mut u8, bytes: &[u8]) {
    for (index, part) in bytes.chunks(COPY_BYTES).enumerate() {
        // SAFETY: the part begins inside of that room.
        let target = unsafe { target.add(index * COPY_BYTES) };
        // SAFETY: room for this part.
        unsafe { ptr::copy_nonoverlapping(part.as_ptr(), target, part.len()) };
    }
}

/// Whether C's `long` has 64 bits; of the types of one size `NumPy` takes `long` for its own.
const LONG_IS_64_BITS: bool = mem::size_of::<c_long>() == 8;

/// The number of an element type in `NumPy`.
const fn number(dtype: DType) -> Option<c_int> {
    Some(match dtype {
        DType::Bool => 0,
        DType::I8 => 1,
        DType::U8 => 2,
        DType::I16 => 3,
        DType::U16 => 4,
        DType::I32 => 5,
        DType::U32 => 6,
        DType::I64 if LONG_IS_64_BITS => 7,
        DType::U64 if LONG_IS_64_BITS => 8,
        DType::I64 => 9,
        DType::U64 => 10,
        DType::F32 => 11,
        DType::F64 => 12,
        DType::C64 => 14,
        DType::C128 => 15,
        DType::F16 => 23,
        _ => return None,
    })
}

/// The element types by their numbers in `NumPy`, if they have only one number.
const TYPES: [Option<DType>; 24] = {
    let mut types = [None; 24];
    let mut index = 0;
    while index < DType::ALL.len() {
        let dtype = DType::ALL[index];
        if let Some(number) = number(dtype) {
            types[number.cast_unsigned() as usize] = Some(dtype);
        }
        index += 1;
    }
    types
};

/// The element type that has this number, or whose size the `long` of this number has; `None` if it is not stored.
fn dtype(number: c_int) -> Option<DType> {
    match number {
        7 if !LONG_IS_64_BITS => Some(DType::I32),
        8 if !LONG_IS_64_BITS => Some(DType::U32),
        9 => Some(DType::I64),
        10 => Some(DType::U64),
        number => TYPES.get(usize::try_from(number).ok()?).copied().flatten(),
    }
}
