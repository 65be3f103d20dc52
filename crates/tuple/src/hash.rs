//! Hashes of fields, frozen: they stand in segments that processes of different builds share.
//!
//! One 64 x 64 -> 128 bit multiply per scalar and per 16 bytes of text, folded by exclusive or. Fields
//! that match by M2 hash alike, nested ones too: NaNs are folded to one, -0.0 to 0.0, decimals hash by value.

use crate::field::folded_bits;
use crate::value::data_offset;
use crate::{Encoded, Field, Kind, encoding};

/// Odd constants with about as many ones as zeros, one per use, so that equal bits of different kinds
/// part ways. Any would do; these can no longer change.
const SEEDS: [u64; 8] = [
    0x2d35_8dcc_aa6c_78a5,
    0x8bb8_4b93_962e_acc9,
    0x4b33_a62e_d433_d4a3,
    0x4d5a_2da5_1de1_aa47,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x9e37_79b9_7f4a_7c15,
    0xd6e8_feb8_6659_fd93,
];

/// Folds two words into one: the high and the low half of their product, xored.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a call would cost more than the multiplication")]
#[expect(clippy::cast_possible_truncation, reason = "the two halves of the product are meant")]
pub const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// The hash of one field.
#[inline]
pub fn field(field: &Field<'_>) -> u64 {
    // What most keys are made of first: two comparisons, not a jump through a table.
    match field {
        Field::Int(value) => fold(value.cast_unsigned() ^ SEEDS[6], SEEDS[7]),
        Field::Str(value) => of_bytes(value.as_bytes(), SEEDS[2]),
        other => rarer(other),
    }
}

/// The hash of a field of a kind that is seldom in a key.
#[inline(never)]
fn rarer(field: &Field<'_>) -> u64 {
    match field {
        Field::Null => SEEDS[0],
        Field::Bool(value) => SEEDS[1].rotate_left(u32::from(*value)),
        Field::Int(value) => fold(value.cast_unsigned() ^ SEEDS[6], SEEDS[7]),
        Field::Float(value) => fold(folded_bits(*value) ^ SEEDS[4], SEEDS[5]),
        Field::Str(value) => of_bytes(value.as_bytes(), SEEDS[2]),
        Field::Bytes(value) => of_bytes(value, SEEDS[3]),
        Field::Encoded(value) => encoded(value),
    }
}

/// The hash of a sequence of fields that ends with `field` and had `hash` before it: what an index over several fields is
/// keyed with. One multiply per field: values of different kinds need not be told apart, since an index is over one shape.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "on the path of every operation, beside a look at the same kind"
)]
pub fn join(hash: u64, field: &Field<'_>) -> u64 {
    // What most keys are made of first: two comparisons, not a jump through a table.
    match field {
        Field::Int(value) => fold(hash ^ value.cast_unsigned(), SEEDS[7]),
        Field::Str(value) => of_bytes(value.as_bytes(), hash ^ SEEDS[2]),
        // A copy, so that the caller keeps its field (see `few`).
        other => combine(hash, rarer(&{ *other })),
    }
}

/// The hash of a sequence that ends with an element of hash `field_hash` and had `hash` before it.
#[inline]
pub const fn combine(hash: u64, field_hash: u64) -> u64 {
    fold(hash ^ field_hash, SEEDS[1])
}

/// Reads eight bytes at `at`, which the caller has checked.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[inline]
fn half_word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u64::from(u32::from_le_bytes(word))
}

/// The hash of a run of bytes. Up to 16 bytes are read as two overlapping words, without a loop.
#[inline(always)]
#[expect(clippy::inline_always, reason = "part of the hash of a field")]
pub(crate) fn of_bytes(bytes: &[u8], seed: u64) -> u64 {
    let len = bytes.len();
    let (low, high) = match len {
        0 => (0, 0),
        1..4 => (
            u64::from(bytes[0]) << 16 | u64::from(bytes[len / 2]) << 8 | u64::from(bytes[len - 1]),
            0,
        ),
        4..8 => (half_word(bytes, 0), half_word(bytes, len - 4)),
        8..=16 => (word(bytes, 0), word(bytes, len - 8)),
        _ => return long(bytes, seed),
    };
    fold(low ^ seed, high ^ SEEDS[4] ^ len as u64)
}

/// The hash of more than 16 bytes: a multiply per 16, the last 16 read overlapping.
#[inline(never)]
fn long(bytes: &[u8], seed: u64) -> u64 {
    let len = bytes.len();
    let mut hash = seed;
    let mut at = 0;
    while at + 16 < len {
        hash = fold(word(bytes, at) ^ SEEDS[5], word(bytes, at + 8) ^ hash);
        at += 16;
    }
    fold(word(bytes, len - 16) ^ hash, word(bytes, len - 8) ^ SEEDS[4] ^ len as u64)
}

/// The hash of an encoded field: by its value, not by its bytes, where the two differ.
#[cold]
fn encoded(value: &Encoded<'_>) -> u64 {
    // The only case of two pieces that is common, and whose data is worth not copying.
    if value.kind == Kind::Array && data_offset(value.head) == Some(value.head.len()) {
        return array(value.head, value.body);
    }
    encoding::hash(&value.contiguous())
}

/// The hash of an array, by the encoding before its data and by the data.
pub(crate) fn array(head: &[u8], data: &[u8]) -> u64 {
    combine(of_bytes(head, kind_seed(Kind::Array)), of_bytes(data, kind_seed(Kind::Array)))
}

/// The beginning of the hashes of encoded values of this kind.
pub(crate) const fn kind_seed(kind: Kind) -> u64 {
    SEEDS[0].rotate_left(kind as u32)
}
