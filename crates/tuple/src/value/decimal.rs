//! Decimal numbers: digits and exponent, kept as written and compared by their value.
//!
//! The digits stay digits. Numbers of any size are then compared and hashed without arithmetic, so nothing can
//! overflow. Every language's decimal type reads and writes the encoding as text.

use std::cmp::Ordering;
use std::fmt;

use super::ValueError;
use crate::hash;

/// Most digits of a decimal: as many as the longest integer has, rounded up.
pub const DECIMAL_DIGITS_MAX: usize = 1 << 18;

/// Largest absolute exponent: what Python's `decimal` reaches.
pub const DECIMAL_EXPONENT_MAX: i64 = 999_999_999_999_999_999;

const EXPECTED: &str = "a decimal number such as -12.50 or 3E-7";

/// A decimal number: an integer times a power of ten. `1.0` and `1.00` are different decimals that
/// match each other (rules V4, M2). Always finite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    /// The integer's digits, without leading zeros.
    digits: String,
    exponent: i64,
}

/// A decimal number, borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecimalRef<'a> {
    negative: bool,
    digits: &'a str,
    exponent: i64,
}

impl Decimal {
    /// The number `digits` times ten to the `exponent`, negated if `negative`. Leading zeros are dropped.
    ///
    /// # Errors
    ///
    /// [`ValueError`] if `digits` are none, or too many, or the exponent is out of range.
    pub fn new(negative: bool, digits: &str, exponent: i64) -> Result<Self, ValueError> {
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(ValueError::Syntax { expected: EXPECTED, found: digits.to_owned() });
        }
        let significant = digits.trim_start_matches('0');
        let digits = if significant.is_empty() { "0" } else { significant };
        if digits.len() > DECIMAL_DIGITS_MAX
            || exponent.unsigned_abs() > DECIMAL_EXPONENT_MAX.unsigned_abs()
        {
            return Err(ValueError::DecimalRange);
        }
        Ok(Self { negative, digits: digits.to_owned(), exponent })
    }

    /// The number that `text` spells, such as `-12.50` or `3E-7`; the digits after the point are kept.
    ///
    /// # Errors
    ///
    /// [`ValueError`] if the text is not a finite decimal number, or out of range.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        let syntax = || ValueError::Syntax { expected: EXPECTED, found: text.to_owned() };
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let (number, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i64>().map_err(|_| syntax())?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_number = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || whole.len() + fraction.len() == 0 {
            return Err(syntax());
        }
        let places = i64::try_from(fraction.len()).map_err(|_| ValueError::DecimalRange)?;
        let exponent = exponent.checked_sub(places).ok_or(ValueError::DecimalRange)?;
        Self::new(negative, &format!("{whole}{fraction}"), exponent)
    }

    /// Whether there is a minus sign; zero can have one.
    pub const fn is_negative(&self) -> bool {
        self.negative
    }

    /// The digits of the integer that the power of ten multiplies, without leading zeros.
    pub fn digits(&self) -> &str {
        &self.digits
    }

    /// The power of ten.
    pub const fn exponent(&self) -> i64 {
        self.exponent
    }

    /// The same representation for every decimal that matches this one: no zeros at the end that the
    /// exponent can stand for, no negative zero.
    pub(crate) fn folded(&self) -> Self {
        if self.digits == "0" {
            return Self { negative: false, digits: "0".to_owned(), exponent: 0 };
        }
        let zeros = self.digits.len() - self.digits.trim_end_matches('0').len();
        // At the largest exponent the remaining zeros stay, in all equal numbers alike.
        let room = usize::try_from(DECIMAL_EXPONENT_MAX - self.exponent).unwrap_or(0);
        let dropped = zeros.min(room);
        let mut folded = self.clone();
        folded.digits.truncate(self.digits.len() - dropped);
        folded.exponent += i64::try_from(dropped).unwrap_or(0);
        folded
    }

    pub(crate) fn as_ref(&self) -> DecimalRef<'_> {
        DecimalRef { negative: self.negative, digits: &self.digits, exponent: self.exponent }
    }
}

impl<'a> DecimalRef<'a> {
    /// Reads the encoded form, `-?digits(E-?exponent)?`: no leading zeros, no exponent of zero.
    pub(crate) fn from_canonical(text: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(unsigned) => (true, unsigned),
            None => (false, text),
        };
        let (digits, exponent) = match unsigned.split_once('E') {
            Some((digits, exponent)) => (digits, canonical_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let is_shortest = digits == "0" || !digits.starts_with('0');
        (is_number && is_shortest && digits.len() <= DECIMAL_DIGITS_MAX).then_some(Self {
            negative,
            digits,
            exponent,
        })
    }

    /// The encoded form: what [`DecimalRef::from_canonical`] reads.
    pub(crate) fn canonical_text(self) -> String {
        let sign = if self.negative { "-" } else { "" };
        match self.exponent {
            0 => format!("{sign}{}", self.digits),
            exponent => format!("{sign}{}E{exponent}", self.digits),
        }
    }

    pub(crate) fn to_owned(self) -> Decimal {
        let Self { negative, digits, exponent } = self;
        Decimal { negative, digits: digits.to_owned(), exponent }
    }

    fn is_zero(self) -> bool {
        self.digits == "0"
    }

    /// The sign (0 for zero), the place of the first digit as a power of ten, and the digits without
    /// zeros at the end: equal for equal numbers. A sum of a length and an exponent fits easily.
    fn by_value(self) -> (i8, i64, &'a [u8]) {
        if self.is_zero() {
            return (0, 0, b"");
        }
        let place = self.exponent + i64::try_from(self.digits.len()).unwrap_or(i64::MAX / 2);
        let digits = self.digits.trim_end_matches('0').as_bytes();
        (if self.negative { -1 } else { 1 }, place, digits)
    }

    /// How the two order, as numbers.
    pub(crate) fn compare(self, other: DecimalRef<'_>) -> Ordering {
        let (sign, place, digits) = self.by_value();
        let (other_sign, other_place, other_digits) = other.by_value();
        sign.cmp(&other_sign).then_with(|| {
            // Without zeros at the end, digits order as fractions do: a prefix is the smaller.
            let absolute = place.cmp(&other_place).then_with(|| digits.cmp(other_digits));
            if sign < 0 { absolute.reverse() } else { absolute }
        })
    }

    /// A hash that is the same for equal numbers (rule M2).
    pub(crate) fn hash(self) -> u64 {
        let (sign, place, digits) = self.by_value();
        hash::combine(
            hash::of_bytes(digits, place.cast_unsigned()),
            i64::from(sign).cast_unsigned(),
        )
    }
}

fn canonical_exponent(text: &str) -> Option<i64> {
    let exponent: i64 = text.parse().ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_shortest = !digits.starts_with(['0', '+']);
    (is_shortest && exponent.unsigned_abs() <= DECIMAL_EXPONENT_MAX.unsigned_abs())
        .then_some(exponent)
}

impl fmt::Display for Decimal {
    /// With a point where that stays short, else with an exponent; [`Decimal::parse`] gives it back.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Zeros written before a number falls back to an exponent; the same as Python's `decimal`.
        const LEADING_ZEROS_MAX: usize = 6;
        let places = usize::try_from(self.exponent.saturating_neg()).unwrap_or(usize::MAX);
        let sign = if self.negative { "-" } else { "" };
        if self.exponent == 0 {
            write!(out, "{sign}{}", self.digits)
        } else if self.exponent > 0 || places - places.min(self.digits.len()) > LEADING_ZEROS_MAX {
            write!(out, "{sign}{}E{}", self.digits, self.exponent)
        } else {
            // Not by a width of the format, which ends at 65 535.
            let zeros = "0".repeat((places + 1).saturating_sub(self.digits.len()));
            let digits = format!("{zeros}{}", self.digits);
            let (whole, fraction) = digits.split_at(digits.len() - places);
            write!(out, "{sign}{whole}.{fraction}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(a: &str, b: &str) -> Ordering {
        Decimal::parse(a).unwrap().as_ref().compare(Decimal::parse(b).unwrap().as_ref())
    }

    #[test]
    fn decimals_order_as_numbers_whatever_their_exponents_m2() {
        assert_eq!(compare("1.0", "1.00"), Ordering::Equal);
        assert_eq!(compare("100", "1E2"), Ordering::Equal);
        assert_eq!(compare("0.00", "-0"), Ordering::Equal);
        assert_eq!(compare("9.99", "10"), Ordering::Less);
        assert_eq!(compare("-9.99", "-10"), Ordering::Greater);
        assert_eq!(compare("0.1", "0.11"), Ordering::Less);
        assert_eq!(compare("-1", "1E-999999999999999"), Ordering::Less);
        assert_eq!(compare("1E999999999999999", "9E999999999999998"), Ordering::Greater);
    }

    #[test]
    fn decimals_are_printed_with_the_digits_they_were_written_with_v4() {
        for text in ["12.50", "-0.00", "0.05", "1E3", "-7", "0", "5E-20", "0E5"] {
            assert_eq!(Decimal::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Decimal::parse("1.5E+3").unwrap().to_string(), "15E2");
        assert_eq!(Decimal::parse(".5").unwrap().to_string(), "0.5");
    }

    #[test]
    fn a_decimal_of_more_digits_than_a_format_can_pad_is_printed_as_it_was_written_v4() {
        // 65 535 is the widest that `std::fmt` pads to.
        for places in [65_534, 65_535, 70_000] {
            let text = format!("-0.{}", "7".repeat(places));
            assert_eq!(Decimal::parse(&text).unwrap().to_string(), text);
            let text = format!("0.00{}", "7".repeat(places));
            assert_eq!(Decimal::parse(&text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_finite_decimal_is_refused() {
        for text in
            ["", "-", ".", "1e", "nan", "inf", "1.2.3", "--1", "1E9999999999999999999", "0x1"]
        {
            assert!(Decimal::parse(text).is_err(), "{text}");
        }
        for bytes in ["", "-", "01", "1E0", "1E+2", "1E-0", "1E01", "1.5", " 1", "1e2"] {
            assert!(DecimalRef::from_canonical(bytes.as_bytes()).is_none(), "{bytes}");
        }
    }
}
