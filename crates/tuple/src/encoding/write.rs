//! Writing single items in their one canonical form.

use super::{EncodeError, extension};
use crate::value::{BigInt, Decimal, Timestamp};

/// The length as the format's widest length field holds it.
fn length_u32(length: usize) -> Result<u32, EncodeError> {
    u32::try_from(length).map_err(|_| EncodeError::TooLong { length })
}

/// Appends nil.
pub fn null(out: &mut Vec<u8>) {
    out.push(0xc0);
}

/// Appends a truth value.
pub fn bool(out: &mut Vec<u8>, value: bool) {
    out.push(if value { 0xc3 } else { 0xc2 });
}

/// Appends an integer in its shortest form.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "each arm's range is that of the type it is cut to"
)]
pub fn int(out: &mut Vec<u8>, value: i64) {
    match value {
        0.. => unsigned(out, value as u64),
        -32..0 => out.push(value as u8),
        -0x80..-32 => out.extend([0xd0, value as u8]),
        -0x8000..-0x80 => {
            out.push(0xd1);
            out.extend((value as i16).to_be_bytes());
        }
        -0x8000_0000..-0x8000 => {
            out.push(0xd2);
            out.extend((value as i32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend(value.to_be_bytes());
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "each arm's range is that of the type")]
fn unsigned(out: &mut Vec<u8>, value: u64) {
    match value {
        ..0x80 => out.push(value as u8),
        0x80..0x100 => out.extend([0xcc, value as u8]),
        0x100..0x1_0000 => {
            out.push(0xcd);
            out.extend((value as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(0xce);
            out.extend((value as u32).to_be_bytes());
        }
        _ => {
            out.push(0xcf);
            out.extend(value.to_be_bytes());
        }
    }
}

/// An integer beyond `i64`. If it fits in 64 bits without a sign it has `MessagePack`'s own form.
pub(crate) fn big_int(out: &mut Vec<u8>, value: &BigInt) -> Result<(), EncodeError> {
    if let (false, Ok(bytes)) = (value.is_negative(), <[u8; 8]>::try_from(value.magnitude())) {
        unsigned(out, u64::from_be_bytes(bytes));
        return Ok(());
    }
    extension_header(out, extension::WIDE_INT, 1 + value.magnitude().len())?;
    out.push(u8::from(value.is_negative()));
    out.extend(value.magnitude());
    Ok(())
}

pub(crate) fn float(out: &mut Vec<u8>, value: f64) {
    out.push(0xcb);
    out.extend(value.to_bits().to_be_bytes());
}

/// Appends text.
///
/// # Errors
///
/// [`EncodeError::TooLong`] beyond 2^32 - 1. Nothing was written.
#[expect(clippy::cast_possible_truncation, reason = "each arm's range is that of the type")]
pub fn str(out: &mut Vec<u8>, text: &str) -> Result<(), EncodeError> {
    match length_u32(text.len())? {
        length @ ..32 => out.push(0xa0 | length as u8),
        length @ 32..0x100 => out.extend([0xd9, length as u8]),
        length => wide_length(out, [0xda, 0xdb], length),
    }
    out.extend(text.as_bytes());
    Ok(())
}

/// Appends a run of bytes.
///
/// # Errors
///
/// [`EncodeError::TooLong`] beyond 2^32 - 1. Nothing was written.
pub fn bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), EncodeError> {
    bytes_header(out, bytes.len())?;
    out.extend(bytes);
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "the arm's range is that of the type")]
pub(crate) fn bytes_header(out: &mut Vec<u8>, length: usize) -> Result<(), EncodeError> {
    match length_u32(length)? {
        length @ ..0x100 => out.extend([0xc4, length as u8]),
        length => wide_length(out, [0xc5, 0xc6], length),
    }
    Ok(())
}

/// How many bytes each of `count` places takes: the fewest that hold them all.
pub(super) const fn place_bytes(count: usize) -> usize {
    match count {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// A permutation of as many places, as a run of bytes: one, two or four for each, the most significant first.
pub(super) fn places(out: &mut Vec<u8>, places: &[u32]) -> Result<(), EncodeError> {
    let width = place_bytes(places.len());
    bytes_header(out, width * places.len())?;
    for place in places {
        out.extend(&place.to_be_bytes()[4 - width..]);
    }
    Ok(())
}

/// Appends the beginning of a list of `count` items.
///
/// # Errors
///
/// [`EncodeError::TooLong`] beyond 2^32 - 1. Nothing was written.
#[expect(clippy::cast_possible_truncation, reason = "the arm's range is that of the type")]
pub fn array_header(out: &mut Vec<u8>, count: usize) -> Result<(), EncodeError> {
    match length_u32(count)? {
        count @ ..16 => out.push(0x90 | count as u8),
        count => wide_length(out, [0xdc, 0xdd], count),
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "the arm's range is that of the type")]
pub(crate) fn map_header(out: &mut Vec<u8>, count: usize) -> Result<(), EncodeError> {
    match length_u32(count)? {
        count @ ..16 => out.push(0x80 | count as u8),
        count => wide_length(out, [0xde, 0xdf], count),
    }
    Ok(())
}

/// A length of 16 or 32 bits, behind the marker for that width.
fn wide_length(out: &mut Vec<u8>, markers: [u8; 2], length: u32) {
    if let Ok(length) = u16::try_from(length) {
        out.push(markers[0]);
        out.extend(length.to_be_bytes());
    } else {
        out.push(markers[1]);
        out.extend(length.to_be_bytes());
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the arm's range is that of the type")]
pub(crate) fn extension_header(
    out: &mut Vec<u8>,
    code: i8,
    length: usize,
) -> Result<(), EncodeError> {
    match length_u32(length)? {
        1 => out.push(0xd4),
        2 => out.push(0xd5),
        4 => out.push(0xd6),
        8 => out.push(0xd7),
        16 => out.push(0xd8),
        length @ ..0x100 => out.extend([0xc7, length as u8]),
        length => wide_length(out, [0xc8, 0xc9], length),
    }
    out.push(code.cast_unsigned());
    Ok(())
}

/// An extension whose payload is what `payload` appends.
///
/// The length stands before the payload and its width depends on it, so the payload is written first
/// and moved up once. Rejected: measuring first, a second walk over every nested value.
pub(crate) fn extension<E: From<EncodeError>>(
    out: &mut Vec<u8>,
    code: i8,
    payload: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    payload(out)?;
    let mut header = Vec::with_capacity(6);
    extension_header(&mut header, code, out.len() - start)?;
    out.splice(start..start, header);
    Ok(())
}

pub(crate) fn decimal(out: &mut Vec<u8>, value: &Decimal) -> Result<(), EncodeError> {
    extension(out, extension::DECIMAL, |out| {
        out.extend(value.as_ref().canonical_text().as_bytes());
        Ok(())
    })
}

/// Appends a UUID.
pub fn uuid(out: &mut Vec<u8>, value: &[u8; 16]) {
    out.extend([0xd8, extension::UUID.cast_unsigned()]);
    out.extend(value);
}

/// A moment in the smallest of `MessagePack`'s three forms that holds it.
pub(crate) fn timestamp(out: &mut Vec<u8>, value: Timestamp) {
    let code = extension::TIMESTAMP.cast_unsigned();
    let (seconds, nanoseconds) = value.parts();
    match (u32::try_from(seconds), u64::try_from(seconds)) {
        (Ok(seconds), _) if nanoseconds == 0 => {
            out.extend([0xd6, code]);
            out.extend(seconds.to_be_bytes());
        }
        (_, Ok(seconds)) if seconds >> 34 == 0 => {
            out.extend([0xd7, code]);
            out.extend((u64::from(nanoseconds) << 34 | seconds).to_be_bytes());
        }
        _ => {
            out.extend([0xc7, 12, code]);
            out.extend(nanoseconds.to_be_bytes());
            out.extend(seconds.to_be_bytes());
        }
    }
}
