//! Values from Rust's own types.

use super::{BigInt, Decimal, Entry, Map, Opaque, Timestamp, Value};

macro_rules! value_from {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}
value_from!(
    bool => Bool, i8 => Int, i16 => Int, i32 => Int, i64 => Int, u8 => Int, u16 => Int, u32 => Int,
    f32 => Float, f64 => Float, &str => Str, String => Str, &String => Str, char => Str,
    &[u8] => Bytes, Vec<u8> => Bytes, BigInt => BigInt, Decimal => Decimal, Timestamp => Timestamp,
    Map => Map, Entry => Entry, Opaque => Opaque,
);

impl<const N: usize> From<&[u8; N]> for Value {
    fn from(bytes: &[u8; N]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

macro_rules! value_from_wide {
    ($($from:ty),*) => {$(
        impl From<$from> for Value {
            /// [`Value::Int`] if it fits, else [`Value::BigInt`].
            fn from(value: $from) -> Self {
                match i64::try_from(value) {
                    Ok(small) => Self::Int(small),
                    // `cmp` and not `<`, which would always be false for the unsigned types.
                    Err(_) => Self::BigInt(BigInt::beyond_64_bits(
                        value.cmp(&0).is_lt(),
                        &value.abs_diff(0).to_be_bytes(),
                    )),
                }
            }
        }
    )*};
}
value_from_wide!(u64, i128, u128, usize, isize);
