//! Moments in UTC, in nanoseconds, and their text (RFC 3339).

use std::fmt;

use super::ValueError;

const NANOSECONDS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// 0001-01-01T00:00:00Z, and the last second of the year 9999: what every language's date type holds.
const SECONDS_MIN: i64 = -62_135_596_800;
const SECONDS_MAX: i64 = 253_402_300_799;

const EXPECTED: &str = "a moment such as 2031-05-04T16:20:00.5Z";

/// A moment in UTC with nanoseconds, in the years 1 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanoseconds: u32,
}

impl Timestamp {
    /// The moment `ns` nanoseconds after 1970-01-01 UTC.
    ///
    /// # Errors
    ///
    /// [`ValueError::TimestampRange`] outside the years 1 to 9999.
    pub fn from_ns(ns: i128) -> Result<Self, ValueError> {
        let seconds = i64::try_from(ns.div_euclid(NANOSECONDS_PER_SECOND));
        let nanoseconds = u32::try_from(ns.rem_euclid(NANOSECONDS_PER_SECOND));
        seconds
            .ok()
            .zip(nanoseconds.ok())
            .and_then(|(seconds, nanoseconds)| Self::from_parts(seconds, nanoseconds))
            .ok_or(ValueError::TimestampRange)
    }

    /// Nanoseconds since 1970-01-01 UTC; negative before.
    pub fn ns(self) -> i128 {
        i128::from(self.seconds) * NANOSECONDS_PER_SECOND + i128::from(self.nanoseconds)
    }

    pub(crate) fn from_parts(seconds: i64, nanoseconds: u32) -> Option<Self> {
        ((SECONDS_MIN..=SECONDS_MAX).contains(&seconds) && nanoseconds < 1_000_000_000)
            .then_some(Self { seconds, nanoseconds })
    }

    pub(crate) const fn parts(self) -> (i64, u32) {
        (self.seconds, self.nanoseconds)
    }

    /// The moment that `text` spells by RFC 3339: `2031-05-04T16:20:00Z`. It may have up to nine digits after the
    /// seconds, and an offset such as `+02:00` in place of `Z`.
    ///
    /// # Errors
    ///
    /// [`ValueError`] if the text is no such moment, has no zone, or is out of range.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        parse_parts(text.as_bytes())
            .ok_or_else(|| ValueError::Syntax { expected: EXPECTED, found: text.to_owned() })
            .and_then(|(seconds, nanoseconds)| {
                Self::from_parts(seconds, nanoseconds).ok_or(ValueError::TimestampRange)
            })
    }
}

fn parse_parts(text: &[u8]) -> Option<(i64, u32)> {
    let (date_time, rest) = text.split_at_checked(19)?;
    let [date @ .., b'T' | b't' | b' ', _, _, b':', _, _, b':', _, _] = date_time else {
        return None;
    };
    let [_, _, _, _, b'-', _, _, b'-', _, _] = date else { return None };
    let year = number(&date[..4], 0, 9999)?;
    let month = number(&date[5..7], 1, 12)?;
    let day = number(&date[8..], 1, days_in_month(year, month))?;
    let hour = number(&date_time[11..13], 0, 23)?;
    let minute = number(&date_time[14..16], 0, 59)?;
    let second = number(&date_time[17..], 0, 59)?;
    let (nanoseconds, zone) = match rest {
        [b'.', rest @ ..] => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if !(1..=9).contains(&digits) {
                return None;
            }
            let fraction = number(&rest[..digits], 0, i64::MAX)?;
            let scale = 10_i64.pow(u32::try_from(9 - digits).ok()?);
            (u32::try_from(fraction * scale).ok()?, &rest[digits..])
        }
        _ => (0, rest),
    };
    let offset_minutes = match zone {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), hours @ .., b':', m1, m0] if hours.len() == 2 => {
            let minutes = number(hours, 0, 23)? * 60 + number(&[*m1, *m0], 0, 59)?;
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    let of_day = (hour * 60 + minute - offset_minutes) * 60 + second;
    Some((days_from_date(year, month, day) * SECONDS_PER_DAY + of_day, nanoseconds))
}

/// The number in a run of digits, if it is within the bounds.
fn number(digits: &[u8], least: i64, most: i64) -> Option<i64> {
    let mut value = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    (least..=most).contains(&value).then_some(value)
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of 400 years, after which the Gregorian calendar repeats.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01, where the eras are counted from, to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_468;

/// Days from 1970-01-01 to a date. Years are counted from March, so that the leap day is the last.
const fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - DAYS_TO_EPOCH
}

/// Year, month and day, so many days from 1970-01-01.
const fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_EPOCH;
    let era = days.div_euclid(DAYS_PER_ERA);
    let day_of_era = days.rem_euclid(DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_from_days(self.seconds.div_euclid(SECONDS_PER_DAY));
        let of_day = self.seconds.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanoseconds != 0 {
            let fraction = format!("{:09}", self.nanoseconds);
            write!(out, ".{}", fraction.trim_end_matches('0'))?;
        }
        out.write_str("Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_printed_as_they_were_parsed_v1() {
        for text in [
            "1970-01-01T00:00:00Z",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999999Z",
            "2000-02-29T12:34:56.7Z",
            "1969-12-31T23:59:59.5Z",
            "1900-03-01T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Timestamp::parse("1969-12-31T23:59:59.5Z").unwrap().ns(), -500_000_000);
        assert_eq!(
            Timestamp::parse("2001-09-09T01:46:40Z").unwrap().ns(),
            1_000_000_000 * 1_000_000_000
        );
    }

    #[test]
    fn an_offset_is_taken_off_and_a_missing_zone_refused_v4() {
        let moment = Timestamp::parse("2024-01-01T01:30:00+02:00").unwrap();
        assert_eq!(moment.to_string(), "2023-12-31T23:30:00Z");
        for text in [
            "2024-01-01T01:30:00",
            "2024-02-30T00:00:00Z",
            "2024-01-01",
            "2024-01-01T24:00:00Z",
            "",
        ] {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
        assert!(Timestamp::from_ns(i128::MAX).is_err());
    }
}
