//! Integers beyond 64 bits: sign and magnitude, enough to keep, compare, print and parse them.
//!
//! Deliberately no arithmetic: a space computes nothing. Rejected: a big-number crate for the two loops
//! between base 2 and base 10.

use std::cmp::Ordering;
use std::fmt::{self, Write};

use super::{Value, ValueError};

/// Largest magnitude of an integer, in bytes: 524 288 bits, far beyond any key in use, and printing one
/// (quadratic in its length) still takes under a second.
pub const BIG_INT_BYTES_MAX: usize = 1 << 16;

/// The decimal digits handled per step: the most that fit 32 bits.
const CHUNK_DIGITS: usize = 9;
const CHUNK: u64 = 1_000_000_000;

/// An integer that does not fit in an `i64`. Made by [`Value::int_from_sign_magnitude`] and [`Value::parse_int`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BigInt {
    negative: bool,
    /// Most significant byte first; the first is not zero.
    magnitude: Vec<u8>,
}

/// An integer that does not fit in an `i64`, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BigIntRef<'a> {
    pub(crate) negative: bool,
    /// Most significant byte first; the first is not zero.
    pub(crate) magnitude: &'a [u8],
}

impl BigInt {
    /// Whether the integer is below zero.
    pub const fn is_negative(&self) -> bool {
        self.negative
    }

    /// The absolute value, most significant byte first, without leading zeros.
    pub fn magnitude(&self) -> &[u8] {
        &self.magnitude
    }

    /// An integer of a machine's own size that was found not to fit in an `i64`.
    pub(crate) fn beyond_64_bits(negative: bool, magnitude: &[u8]) -> Self {
        let zeros = magnitude.iter().take_while(|byte| **byte == 0).count();
        Self { negative, magnitude: magnitude[zeros..].to_vec() }
    }

    pub(crate) fn as_ref(&self) -> BigIntRef<'_> {
        BigIntRef { negative: self.negative, magnitude: &self.magnitude }
    }
}

impl Value {
    /// The integer with this sign and magnitude (most significant byte first, leading zeros allowed):
    /// [`Value::Int`] if it fits, else [`Value::BigInt`].
    ///
    /// # Errors
    ///
    /// [`ValueError::IntegerTooLong`] above [`BIG_INT_BYTES_MAX`].
    pub fn int_from_sign_magnitude(negative: bool, magnitude: &[u8]) -> Result<Self, ValueError> {
        let zeros = magnitude.iter().take_while(|byte| **byte == 0).count();
        let magnitude = &magnitude[zeros..];
        if magnitude.len() > BIG_INT_BYTES_MAX {
            return Err(ValueError::IntegerTooLong { bytes: magnitude.len() });
        }
        let integer = BigIntRef { negative, magnitude };
        Ok(match integer.to_i64() {
            Some(small) => Self::Int(small),
            None => Self::BigInt(integer.to_owned()),
        })
    }

    /// The integer that `text` spells in decimal digits, with an optional `-` before them.
    ///
    /// # Errors
    ///
    /// [`ValueError::Syntax`] for anything else, [`ValueError::IntegerTooLong`] above [`BIG_INT_BYTES_MAX`].
    pub fn parse_int(text: &str) -> Result<Self, ValueError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            let found = text.to_owned();
            return Err(ValueError::Syntax { expected: "an integer such as -17", found });
        }
        if let Ok(small) = text.parse::<i64>() {
            return Ok(Self::Int(small));
        }
        // log2(10) > 3.32: more digits than this cannot fit, and are not worth the quadratic loop.
        let digits_max = BIG_INT_BYTES_MAX * 8 * 100 / 332 + 1;
        if digits.len() > digits_max {
            return Err(ValueError::IntegerTooLong { bytes: digits.len() * 332 / 800 });
        }
        Self::int_from_sign_magnitude(negative, &magnitude_of(digits.as_bytes()))
    }
}

/// The bytes of a number given in decimal digits, most significant first, leading zeros possible.
fn magnitude_of(digits: &[u8]) -> Vec<u8> {
    // Least significant limb first.
    let mut limbs: Vec<u32> = Vec::new();
    let (first, rest) = digits.split_at(digits.len() % CHUNK_DIGITS);
    let chunks = std::iter::once(first).chain(rest.chunks(CHUNK_DIGITS));
    for chunk in chunks {
        let mut carry =
            chunk.iter().fold(0_u64, |value, digit| value * 10 + u64::from(digit - b'0'));
        for limb in &mut limbs {
            let product = u64::from(*limb) * CHUNK + carry;
            *limb = low_half(product);
            carry = product >> 32;
        }
        if carry != 0 {
            limbs.push(low_half(carry));
        }
    }
    limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
const fn low_half(word: u64) -> u32 {
    word as u32
}

impl BigIntRef<'_> {
    pub(crate) fn to_owned(self) -> BigInt {
        BigInt { negative: self.negative, magnitude: self.magnitude.to_vec() }
    }

    pub(crate) fn fits_i64(self) -> bool {
        self.to_i64().is_some()
    }

    fn to_i64(self) -> Option<i64> {
        if self.magnitude.len() > 8 {
            return None;
        }
        let magnitude =
            self.magnitude.iter().fold(0_i128, |value, byte| value << 8 | i128::from(*byte));
        i64::try_from(if self.negative { -magnitude } else { magnitude }).ok()
    }

    /// How the two order. Both are in shortest form, so the longer magnitude is the larger.
    pub(crate) fn compare(self, other: BigIntRef<'_>) -> Ordering {
        let magnitudes = |a: &[u8], b: &[u8]| a.len().cmp(&b.len()).then_with(|| a.cmp(b));
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => magnitudes(self.magnitude, other.magnitude),
            (true, true) => magnitudes(other.magnitude, self.magnitude),
        }
    }

    /// How the integer orders against a float, exactly; `None` for NaN.
    pub(crate) fn compare_float(self, float: f64) -> Option<Ordering> {
        if float.is_nan() {
            return None;
        }
        if self.negative != float.is_sign_negative() {
            return Some(if self.negative { Ordering::Less } else { Ordering::Greater });
        }
        let absolute = self.compare_magnitude(float.abs());
        Some(if self.negative { absolute.reverse() } else { absolute })
    }

    /// How the absolute value orders against a float that is not negative.
    ///
    /// A float of at least 2^63 is `significand * 2^shift` with a whole significand of 53 bits. So it is compared bit
    /// by bit from the top, where `shift` zero bits follow the significand.
    fn compare_magnitude(self, float: f64) -> Ordering {
        const SIGNIFICAND_BITS: usize = 53;
        if float.is_infinite() {
            return Ordering::Less;
        }
        if float < 9_223_372_036_854_775_808.0 {
            return Ordering::Greater;
        }
        let bits = float.to_bits();
        let exponent = usize::try_from(bits >> 52 & 0x7ff).unwrap_or(usize::MAX);
        let shift = exponent - 1075;
        let significand = bits & ((1 << 52) - 1) | 1 << 52;
        let leading = self.magnitude.first().map_or(0, |byte| byte.leading_zeros()) as usize;
        let own_bits = self.magnitude.len() * 8 - leading;
        own_bits.cmp(&(SIGNIFICAND_BITS + shift)).then_with(|| {
            let mut top = [0; 16];
            let taken = self.magnitude.len().min(16);
            top[..taken].copy_from_slice(&self.magnitude[..taken]);
            let top = u128::from_be_bytes(top) << leading;
            let rest_is_zero = top << SIGNIFICAND_BITS == 0
                && self.magnitude[taken..].iter().all(|byte| *byte == 0);
            let top = top >> (128 - SIGNIFICAND_BITS);
            top.cmp(&u128::from(significand)).then(if rest_is_zero {
                Ordering::Equal
            } else {
                Ordering::Greater
            })
        })
    }
}

impl fmt::Display for BigInt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Least significant limb first; the first chunk of bytes may be short.
        let mut limbs: Vec<u32> = self
            .magnitude
            .rchunks(4)
            .map(|chunk| chunk.iter().fold(0, |limb, byte| limb << 8 | u32::from(*byte)))
            .collect();
        let mut chunks = Vec::new();
        while !limbs.is_empty() {
            let mut remainder = 0;
            for limb in limbs.iter_mut().rev() {
                let dividend = remainder << 32 | u64::from(*limb);
                *limb = low_half(dividend / CHUNK);
                remainder = dividend % CHUNK;
            }
            chunks.push(remainder);
            while limbs.last() == Some(&0) {
                limbs.pop();
            }
        }
        let mut digits = String::with_capacity(chunks.len() * CHUNK_DIGITS);
        for chunk in chunks.iter().rev() {
            let width = if digits.is_empty() { 0 } else { CHUNK_DIGITS };
            write!(digits, "{chunk:0width$}")?;
        }
        out.pad_integral(!self.negative, "", &digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn big(text: &str) -> BigInt {
        match Value::parse_int(text).unwrap() {
            Value::BigInt(integer) => integer,
            other => panic!("{other:?} fits 64 bits"),
        }
    }

    #[test]
    fn integers_beyond_64_bits_are_printed_as_they_were_parsed_v1() {
        for text in [
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
            "1000000000000000000000000000",
            "-340282366920938463463374607431768211456",
        ] {
            assert_eq!(big(text).to_string(), text);
        }
        assert_eq!(Value::parse_int("-9223372036854775808"), Ok(Value::Int(i64::MIN)));
        assert!(Value::parse_int("12a").is_err());
        for wrong in ["-", "+", "", "+7", "+9223372036854775808", "--7", "-+7", " 7"] {
            assert!(Value::parse_int(wrong).is_err(), "{wrong}");
        }
        assert!(Value::parse_int(&"9".repeat(400_000)).is_err());
    }

    #[test]
    fn big_integers_compare_exactly_with_floats_m5() {
        let two_to_64 = 18_446_744_073_709_551_616.0;
        assert_eq!(
            big("18446744073709551616").as_ref().compare_float(two_to_64),
            Some(Ordering::Equal)
        );
        assert_eq!(
            big("18446744073709551617").as_ref().compare_float(two_to_64),
            Some(Ordering::Greater)
        );
        assert_eq!(
            big("18446744073709551615").as_ref().compare_float(two_to_64),
            Some(Ordering::Less)
        );
        assert_eq!(
            big("-18446744073709551617").as_ref().compare_float(-two_to_64),
            Some(Ordering::Less)
        );
        assert_eq!(
            big("18446744073709551615").as_ref().compare_float(f64::MAX),
            Some(Ordering::Less)
        );
        assert_eq!(big("9223372036854775808").as_ref().compare_float(9.3e18), Some(Ordering::Less));
        assert_eq!(big("9223372036854775808").as_ref().compare_float(0.5), Some(Ordering::Greater));
        assert_eq!(big("9223372036854775808").as_ref().compare_float(f64::NAN), None);
        let huge = format!("1{}", "0".repeat(400));
        assert_eq!(big(&huge).as_ref().compare_float(f64::MAX), Some(Ordering::Greater));
        assert_eq!(big(&huge).as_ref().compare_float(f64::INFINITY), Some(Ordering::Less));
    }
}
