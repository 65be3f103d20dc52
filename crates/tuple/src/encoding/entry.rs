//! What an encoded entry says of its class.

use super::{DecodeError, Item, Reader};

/// Whether `bytes` are an entry of the class `class`, or of one that is derived from it (rule M5). Its fields are not looked
/// at. Damaged bytes are none.
pub(crate) fn is_of_class(bytes: &[u8], class: &str) -> bool {
    names(bytes, class).unwrap_or(false)
}

fn names(bytes: &[u8], class: &str) -> Result<bool, DecodeError> {
    const SHAPE: &str = "an entry is an array of name, bases and a map of its fields";
    let mut reader = Reader::new(bytes);
    let error = reader.error(SHAPE);
    let Item::Entry(mut payload) = reader.item()? else { return Err(error) };
    if payload.expect_list(SHAPE)? != 3 {
        return Err(error);
    }
    if payload.expect_str(SHAPE)? == class {
        return Ok(true);
    }
    for _ in 0..payload.expect_list(SHAPE)? {
        if payload.expect_str(SHAPE)? == class {
            return Ok(true);
        }
    }
    Ok(false)
}
