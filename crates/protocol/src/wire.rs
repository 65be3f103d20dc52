//! How the parts of a frame are written and read: what both requests and replies are made of.

use std::time::Duration;

use tupelo_tuple::encoding::{Reader, write};
use tupelo_tuple::{DecodeError, EncodeError};

/// Appends a number. Those that are sent are below 2^63: what is counted here, and times in nanoseconds.
pub(crate) fn number(out: &mut Vec<u8>, number: u64) {
    write::int(out, i64::try_from(number).unwrap_or(i64::MAX));
}

/// Appends what there is, or nil.
pub(crate) fn optional<T>(
    out: &mut Vec<u8>,
    value: Option<T>,
    write: impl FnOnce(&mut Vec<u8>, T),
) {
    match value {
        None => write::null(out),
        Some(value) => write(out, value),
    }
}

/// Appends a text, or nil.
pub(crate) fn optional_text(out: &mut Vec<u8>, text: Option<&str>) -> Result<(), EncodeError> {
    match text {
        None => {
            write::null(out);
            Ok(())
        }
        Some(text) => write::str(out, text),
    }
}

/// Appends a time in nanoseconds.
pub(crate) fn time(out: &mut Vec<u8>, time: Duration) {
    number(out, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

pub(crate) fn read_number(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    reader.expect_count("an integer from 0 on is due here")
}

/// A number that counts something in memory.
pub(crate) fn read_count(reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
    let error = reader.error("the number is too large for this machine");
    usize::try_from(read_number(reader)?).map_err(|_| error)
}

pub(crate) fn read_u32(reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
    let error = reader.error("the number is over 2^32 - 1");
    u32::try_from(read_number(reader)?).map_err(|_| error)
}

pub(crate) fn read_text<'a>(reader: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    reader.expect_str("text is due here")
}

pub(crate) fn read_flag(reader: &mut Reader<'_>) -> Result<bool, DecodeError> {
    reader.expect_bool("a truth value is due here")
}

pub(crate) fn read_uuid(reader: &mut Reader<'_>) -> Result<u128, DecodeError> {
    Ok(u128::from_be_bytes(reader.expect_uuid("a UUID is due here")?))
}

pub(crate) fn read_time(reader: &mut Reader<'_>) -> Result<Duration, DecodeError> {
    Ok(Duration::from_nanos(read_number(reader)?))
}

/// What is there, or `None` for nil.
pub(crate) fn read_optional<'a, T>(
    reader: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<Option<T>, DecodeError> {
    if reader.skip_null() { Ok(None) } else { read(reader).map(Some) }
}

/// The bytes of one value, whatever it is.
pub(crate) fn read_raw<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let start = reader.at();
    reader.skip()?;
    Ok(reader.since(start))
}

/// Reads the list that a frame is, and its number. `read` reads the rest of it, and is told how many items there are.
pub(crate) fn read_frame<'a, T>(
    bytes: &'a [u8],
    read: impl FnOnce(u64, usize, &mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let mut reader = Reader::new(bytes);
    let error = reader.error("a frame is a list that begins with its number");
    let count = reader.expect_list("a frame is a list that begins with its number")?;
    let items = count.checked_sub(1).ok_or(error)?;
    let number = read_number(&mut reader)?;
    let result = read(number, items, &mut reader)?;
    reader.finish()?;
    Ok(result)
}
