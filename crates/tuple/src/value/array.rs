//! Arrays: an element type, a shape, and contiguous little-endian data.

use super::{Value, ValueError};
use crate::encoding::{EncodeError, Reader, extension, write};

/// Most dimensions of an array; numpy's own limit was 32 until its version 2.
pub const DIMENSIONS_MAX: usize = 32;

/// Bytes of the payload before the shape: element type and number of dimensions.
const FIXED_BYTES: usize = 2;

macro_rules! dtypes {
    ($($name:ident = $code:literal, $text:literal, $bytes:literal, $doc:literal;)*) => {
        /// The type of an array's elements.
        ///
        /// The numbers are part of the encoding: append, never renumber.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum DType { $(#[doc = $doc] $name = $code,)* }

        impl DType {
            /// Every element type, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name, as numpy writes it without the byte order.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The size of one element, in bytes.
            pub const fn item_bytes(self) -> usize {
                match self { $(Self::$name => $bytes,)* }
            }
        }
    };
}
dtypes! {
    Bool = 0, "b1", 1, "A truth value in a byte.";
    I8 = 1, "i1", 1, "Signed, 8 bits.";
    I16 = 2, "i2", 2, "Signed, 16 bits.";
    I32 = 3, "i4", 4, "Signed, 32 bits.";
    I64 = 4, "i8", 8, "Signed, 64 bits.";
    U8 = 5, "u1", 1, "Unsigned, 8 bits.";
    U16 = 6, "u2", 2, "Unsigned, 16 bits.";
    U32 = 7, "u4", 4, "Unsigned, 32 bits.";
    U64 = 8, "u8", 8, "Unsigned, 64 bits.";
    F16 = 9, "f2", 2, "IEEE 754 binary16.";
    F32 = 10, "f4", 4, "IEEE 754 binary32.";
    F64 = 11, "f8", 8, "IEEE 754 binary64.";
    C64 = 12, "c8", 8, "Complex: two binary32.";
    C128 = 13, "c16", 16, "Complex: two binary64.";
}

impl DType {
    /// The element type with this number, or `None`.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The element type with this name, or `None`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.name() == name)
    }
}

/// An array, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    dtype: DType,
    shape: Vec<u64>,
    data: Vec<u8>,
}

impl Array {
    /// An array of `data`: contiguous, the last dimension fastest, every element little-endian.
    ///
    /// # Errors
    ///
    /// [`ValueError`] if there are too many dimensions, or `data` is not as long as they say.
    pub fn new(dtype: DType, shape: &[u64], data: Vec<u8>) -> Result<Self, ValueError> {
        if shape.len() > DIMENSIONS_MAX {
            return Err(ValueError::ArrayDimensions { dimensions: shape.len() });
        }
        let expected = data_bytes(dtype, shape.iter().copied());
        if expected != Some(data.len()) {
            return Err(ValueError::ArrayLength { bytes: data.len(), expected });
        }
        Ok(Self { dtype, shape: shape.to_vec(), data })
    }

    /// The type of the elements.
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// The size of each dimension, in elements.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The elements, contiguous.
    pub fn data(&self) -> &[u8] {
        &self.data
    }
}

impl From<Array> for Value {
    fn from(array: Array) -> Self {
        Self::Array(array)
    }
}

/// The size of the data of such an array, in bytes; `None` beyond counting. That of an array with a dimension of
/// zero has to be countable without it too: no language has the others (V3).
fn data_bytes(dtype: DType, shape: impl Iterator<Item = u64> + Clone) -> Option<usize> {
    let mut sizes = shape.clone().filter(|size| *size != 0);
    let bytes = sizes.try_fold(dtype.item_bytes(), |bytes, size| {
        bytes
            .checked_mul(usize::try_from(size).ok()?)
            .filter(|bytes| isize::try_from(*bytes).is_ok())
    })?;
    Some(if shape.into_iter().any(|size| size == 0) { 0 } else { bytes })
}

/// The encoding of an array up to its data: with the data as `body`, an [`crate::Encoded`] field that
/// leaves the data where it is.
///
/// # Errors
///
/// [`EncodeError::ArrayDimensions`] if there are too many, [`EncodeError::TooLong`] of 4 GiB of data or more.
pub fn array_head(
    dtype: DType,
    shape: impl ExactSizeIterator<Item = u64> + Clone,
) -> Result<Vec<u8>, EncodeError> {
    let too_many = EncodeError::ArrayDimensions { dimensions: shape.len() };
    if shape.len() > DIMENSIONS_MAX {
        return Err(too_many);
    }
    let dimensions = u8::try_from(shape.len()).map_err(|_| too_many)?;
    let data_bytes = data_bytes(dtype, shape.clone()).unwrap_or(usize::MAX);
    let payload_bytes = data_bytes.saturating_add(FIXED_BYTES + 8 * shape.len());
    let mut head = Vec::with_capacity(8 + 8 * shape.len());
    write::extension_header(&mut head, extension::ARRAY, payload_bytes)?;
    head.extend([dtype as u8, dimensions]);
    for size in shape {
        head.extend(size.to_be_bytes());
    }
    Ok(head)
}

/// An array inside its encoding.
#[derive(Clone, Copy, Debug)]
pub struct ArrayView<'a> {
    dtype: DType,
    /// Eight bytes per dimension, most significant first.
    shape: &'a [u8],
    data: &'a [u8],
}

impl<'a> ArrayView<'a> {
    /// Looks at the encoding of an array, copying nothing; `None` if it is not one.
    pub fn parse(encoding: &'a [u8]) -> Option<Self> {
        Self::from_payload(Reader::new(encoding).sole_payload(extension::ARRAY)?).ok()
    }

    pub(crate) fn from_payload(payload: &'a [u8]) -> Result<Self, &'static str> {
        let [dtype, dimensions, rest @ ..] = payload else {
            return Err("an array begins with its element type and number of dimensions");
        };
        let dtype = DType::from_number(*dtype).ok_or("an element type that is not known here")?;
        let dimensions = usize::from(*dimensions);
        if dimensions > DIMENSIONS_MAX {
            return Err("an array has at most 32 dimensions");
        }
        let (shape, data) =
            rest.split_at_checked(8 * dimensions).ok_or("the shape of an array is cut off")?;
        let view = Self { dtype, shape, data };
        if data_bytes(dtype, view.shape()) != Some(data.len()) {
            return Err("the data of an array is not as long as its element type and shape say");
        }
        Ok(view)
    }

    /// The type of the elements.
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// The size of each dimension, in elements.
    pub fn shape(&self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'a> {
        self.shape
            .chunks_exact(8)
            .map(|size| size.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// The elements, contiguous.
    pub const fn data(&self) -> &'a [u8] {
        self.data
    }

    pub(crate) fn to_owned(self) -> Array {
        Array { dtype: self.dtype, shape: self.shape().collect(), data: self.data.to_vec() }
    }
}

/// The number of bytes of an array's encoding before its data, by the beginning of the encoding alone. `None` if that
/// is not the beginning of an array.
pub(crate) fn data_offset(head: &[u8]) -> Option<usize> {
    let header_bytes = match head.first()? {
        0xd4..=0xd8 => 2,
        0xc7 => 3,
        0xc8 => 4,
        0xc9 => 6,
        _ => return None,
    };
    let dimensions = usize::from(*head.get(header_bytes + 1)?);
    Some(header_bytes + FIXED_BYTES + 8 * dimensions)
}
