//! Comparing numbers of different kinds exactly, without rounding either (rule M5).

use std::cmp::Ordering;

/// How an integer orders against a float, by their exact values; `None` for NaN.
///
/// Not `int as f64`: beyond 2^53 that rounds, and `2^53 + 1` would equal `2^53`.
pub(crate) fn compare_int_float(int: i64, float: f64) -> Option<Ordering> {
    /// 2^63, the first float above every `i64`; its negative is exactly the least `i64`.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if float.is_nan() {
        return None;
    }
    if float >= BEYOND {
        return Some(Ordering::Less);
    }
    if float < -BEYOND {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    #[expect(clippy::cast_possible_truncation, reason = "a whole number within the range of i64")]
    let by_whole = int.cmp(&(whole as i64));
    // Equal in the whole part: the rest of the float decides, towards its own side of zero.
    Some(by_whole.then_with(|| whole.total_cmp(&float)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_floats_compare_exactly_beyond_two_to_the_53_m5() {
        let limit = 1_i64 << 53;
        assert_eq!(compare_int_float(limit + 1, 9_007_199_254_740_992.0), Some(Ordering::Greater));
        assert_eq!(compare_int_float(limit, 9_007_199_254_740_992.0), Some(Ordering::Equal));
        assert_eq!(compare_int_float(i64::MAX, 9_223_372_036_854_775_808.0), Some(Ordering::Less));
        assert_eq!(
            compare_int_float(i64::MIN, -9_223_372_036_854_775_808.0),
            Some(Ordering::Equal)
        );
        assert_eq!(compare_int_float(i64::MIN, f64::NEG_INFINITY), Some(Ordering::Greater));
        assert_eq!(compare_int_float(i64::MAX, f64::INFINITY), Some(Ordering::Less));
    }

    #[test]
    fn fractions_decide_between_equal_whole_parts() {
        assert_eq!(compare_int_float(3, 3.5), Some(Ordering::Less));
        assert_eq!(compare_int_float(-3, -3.5), Some(Ordering::Greater));
        assert_eq!(compare_int_float(0, -0.5), Some(Ordering::Greater));
        assert_eq!(compare_int_float(0, -0.0), Some(Ordering::Equal));
        assert_eq!(compare_int_float(0, f64::NAN), None);
    }
}
