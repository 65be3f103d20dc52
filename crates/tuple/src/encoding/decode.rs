//! Decoding values and tuples, refusing whatever is not canonical.

use super::write::place_bytes;
use super::{DEPTH_MAX, DecodeError, Item, Reader};
use crate::field::folded_bits;
use crate::image::ARITY_MAX;
use crate::value::{Entry, Map, Opaque};
use crate::{Tuple, Value};

/// Elements that room is reserved for before the first is read. A longer list grows as it is read, so that a count
/// alone never makes us allocate more than this.
const RESERVED_MAX: usize = 64;

impl Value {
    /// The value that `bytes` encode.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if they are not exactly one value in its canonical encoding.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let value = value(&mut reader)?;
        reader.finish()?;
        Ok(value)
    }
}

impl Tuple {
    /// The tuple that `bytes` encode.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if they are not exactly one tuple in its canonical encoding.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        const SHAPE: &str = "a tuple is an array of its fields, or an entry";
        let mut reader = Reader::new(bytes);
        let arity = match reader.item()? {
            Item::List(arity) => arity,
            Item::Entry(_) => {
                let Value::Entry(entry) = Value::decode(bytes)? else {
                    return Err(DecodeError::new(0, SHAPE));
                };
                let reason = "an entry on its own has at most 64 fields, and 4000 bytes of names";
                return Self::from_entry(entry).map_err(|_| DecodeError::new(0, reason));
            }
            _ => return Err(DecodeError::new(0, SHAPE)),
        };
        if arity > ARITY_MAX {
            return Err(DecodeError::new(0, "a tuple has at most 64 fields"));
        }
        let fields: Result<Vec<Value>, _> = (0..arity).map(|_| value(&mut reader)).collect();
        reader.finish()?;
        Ok(Self::from(fields?))
    }
}

/// The allowed values at a place.
#[derive(Clone, Copy)]
struct Place {
    /// How many containers may still be nested.
    levels: usize,
    /// Whether this is a key of a map or inside one, where values are folded.
    key: bool,
}

impl Place {
    /// The place inside a container, which began at `start`.
    fn below(self, start: usize) -> Result<Self, DecodeError> {
        match self.levels.checked_sub(1) {
            Some(levels) => Ok(Self { levels, ..self }),
            None => Err(DecodeError::new(start, "values are nested over 128 levels")),
        }
    }
}

/// Reads one value.
pub(super) fn value(reader: &mut Reader<'_>) -> Result<Value, DecodeError> {
    value_at(reader, Place { levels: DEPTH_MAX, key: false })
}

fn value_at(reader: &mut Reader<'_>, place: Place) -> Result<Value, DecodeError> {
    let start = reader.at();
    let unfolded =
        DecodeError::new(start, "a key of a map is not folded (-0.0, NaN, trailing zeros)");
    Ok(match reader.item()? {
        Item::Null => Value::Null,
        Item::Bool(value) => Value::Bool(value),
        Item::Int(value) => Value::Int(value),
        Item::BigInt(value) => Value::BigInt(value.to_owned()),
        Item::Float(value) if place.key && folded_bits(value) != value.to_bits() => {
            return Err(unfolded);
        }
        Item::Float(value) => Value::Float(value),
        Item::Str(text) => Value::from(text),
        Item::Bytes(bytes) => Value::from(bytes),
        Item::Decimal(value) => {
            let value = value.to_owned();
            if place.key && value.folded() != value {
                return Err(unfolded);
            }
            Value::Decimal(value)
        }
        Item::Timestamp(value) => Value::Timestamp(value),
        Item::Uuid(value) => Value::Uuid(value),
        Item::Array(view) => Value::Array(view.to_owned()),
        Item::List(count) => Value::List(items(reader, count, place.below(start)?)?),
        Item::Map(count) => Value::Map(map(reader, count, place.below(start)?)?),
        Item::Tuple(mut payload) => {
            let count = payload.expect_list("a nested tuple is an array of its fields")?;
            let fields = items(&mut payload, count, place.below(start)?)?;
            payload.finish()?;
            Value::Tuple(fields)
        }
        Item::Entry(payload) => Value::Entry(entry(payload, place.below(start)?)?),
        Item::Opaque(payload) => Value::Opaque(opaque(payload)?),
        Item::OrderedMap(_) if place.key => {
            return Err(DecodeError::new(start, "a map in a key of a map has no order of its own"));
        }
        Item::OrderedMap(payload) => Value::Map(ordered_map(payload, place.below(start)?)?),
        Item::Pattern(..) => {
            return Err(DecodeError::new(start, "a pattern stands where a value must"));
        }
    })
}

fn items(reader: &mut Reader<'_>, count: usize, place: Place) -> Result<Vec<Value>, DecodeError> {
    let mut items = Vec::with_capacity(count.min(RESERVED_MAX));
    for _ in 0..count {
        items.push(value_at(reader, place)?);
    }
    Ok(items)
}

fn map(reader: &mut Reader<'_>, count: usize, place: Place) -> Result<Map, DecodeError> {
    let mut pairs = Vec::with_capacity(count.min(RESERVED_MAX));
    let mut previous: &[u8] = &[];
    for _ in 0..count {
        let start = reader.at();
        let key = value_at(reader, Place { key: true, ..place })?;
        previous = ascending(previous, reader.since(start), start)?;
        pairs.push((key, value_at(reader, place)?));
    }
    Ok(Map::from_canonical(pairs))
}

fn ordered_map(mut payload: Reader<'_>, place: Place) -> Result<Map, DecodeError> {
    let count = payload.expect_ordered_pairs()?;
    let map = map(&mut payload, count, place)?;
    let error = payload
        .error("the places of a map's pairs are each of them once, and not in ascending order");
    let Item::Bytes(places) = payload.item()? else { return Err(error) };
    payload.finish()?;
    let width = place_bytes(count);
    if places.len() != width * count {
        return Err(error);
    }
    let number = |place: &[u8]| place.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    map.with_order(places.chunks_exact(width).map(number).collect()).ok_or(error)
}

/// Checks that the encoded keys of a map ascend, which also makes them distinct.
pub(super) fn ascending<'a>(
    previous: &[u8],
    next: &'a [u8],
    at: usize,
) -> Result<&'a [u8], DecodeError> {
    if previous < next {
        Ok(next)
    } else {
        Err(DecodeError::new(at, "keys or members are not in ascending order of their bytes"))
    }
}

fn entry(mut payload: Reader<'_>, place: Place) -> Result<Entry, DecodeError> {
    const SHAPE: &str = "an entry is an array of name, bases and a map of its fields";
    let start = payload.at();
    let error = DecodeError::new(start, SHAPE);
    if payload.expect_list(SHAPE)? != 3 {
        return Err(error);
    }
    let name = payload.expect_str(SHAPE)?;
    let base_count = payload.expect_list(SHAPE)?;
    let mut bases = Vec::with_capacity(base_count.min(RESERVED_MAX));
    for _ in 0..base_count {
        bases.push(payload.expect_str(SHAPE)?.to_owned());
    }
    let Item::Map(field_count) = payload.item()? else { return Err(error) };
    let mut fields = Vec::with_capacity(field_count.min(RESERVED_MAX));
    let mut previous: &[u8] = &[];
    for _ in 0..field_count {
        let at = payload.at();
        let field = payload.expect_str("the name of a field is text")?;
        previous = ascending(previous, payload.since(at), at)?;
        fields.push((field.to_owned(), value_at(&mut payload, place)?));
    }
    payload.finish()?;
    Entry::new(name, bases, fields).map_err(|_| error)
}

fn opaque(mut payload: Reader<'_>) -> Result<Opaque, DecodeError> {
    const SHAPE: &str = "an opaque object is an array of codec, type name and bytes";
    let error = payload.error(SHAPE);
    if payload.expect_list(SHAPE)? != 3 {
        return Err(error);
    }
    let codec = payload.expect_str(SHAPE)?.to_owned();
    let type_name = payload.expect_str(SHAPE)?.to_owned();
    let Item::Bytes(bytes) = payload.item()? else { return Err(error) };
    payload.finish()?;
    Ok(Opaque { codec, type_name, bytes: bytes.to_vec() })
}
