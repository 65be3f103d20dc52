//! Encoding values and tuples.

use super::{DEPTH_MAX, EncodeError, extension, write};
use crate::image::ARITY_MAX;
use crate::value::{Map, Opaque, array_head};
use crate::{Class, Field, Tuple, TupleRef, TupleView, Value};

impl Value {
    /// The canonical encoding of the value (rule V4).
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if values are nested over [`DEPTH_MAX`] levels, or a length is over 4 GiB.
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        self.encode_to(&mut out)?;
        Ok(out)
    }

    /// Appends the canonical encoding of the value.
    pub(crate) fn encode_to(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        value(out, self, DEPTH_MAX)
    }
}

impl Tuple {
    /// The canonical encoding of the tuple: an array of its fields; of an entry, that of the value (rule V4).
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if there are too many fields, or one of them cannot be encoded.
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        if self.len() > ARITY_MAX {
            return Err(EncodeError::TooManyFields { arity: self.len() });
        }
        let mut out = Vec::new();
        if let Some(class) = self.class() {
            let fields = class.fields().zip(self.iter());
            let names = (class.name(), class.bases());
            write::extension(&mut out, extension::ENTRY, |out| {
                entry(out, names, fields, below(DEPTH_MAX)?)
            })?;
            return Ok(out);
        }
        write::array_header(&mut out, self.len())?;
        for field in self.iter() {
            field.encode_to(&mut out)?;
        }
        Ok(out)
    }
}

/// Appends the canonical encoding of a tuple in its borrowed form: [`Decoded::read`](super::Decoded::read) reads it.
///
/// # Errors
///
/// [`EncodeError`] if there are too many fields, or a length is over 4 GiB.
pub fn encode_tuple_ref(out: &mut Vec<u8>, tuple: TupleRef<'_>) -> Result<(), EncodeError> {
    write_fields(out, (tuple.class, tuple.fields.len()), tuple.fields.iter().copied())
}

/// As [`encode_tuple_ref`], of a tuple that a take shows.
///
/// # Errors
///
/// As [`encode_tuple_ref`].
pub fn encode_tuple_view(out: &mut Vec<u8>, tuple: TupleView<'_>) -> Result<(), EncodeError> {
    write_fields(out, (tuple.class(), tuple.len()), tuple.fields())
}

fn write_fields<'f>(
    out: &mut Vec<u8>,
    (class, arity): (Option<&Class>, usize),
    mut fields: impl Iterator<Item = Field<'f>>,
) -> Result<(), EncodeError> {
    if arity > ARITY_MAX {
        return Err(EncodeError::TooManyFields { arity });
    }
    let Some(class) = class else {
        write::array_header(out, arity)?;
        return fields.try_for_each(|field| write_field(out, &field));
    };
    write::extension(out, extension::ENTRY, |out| {
        write::array_header(out, 3)?;
        write::str(out, class.name())?;
        write::array_header(out, class.bases().len())?;
        class.bases().try_for_each(|base| write::str(out, base))?;
        write::map_header(out, arity)?;
        class.fields().zip(fields).try_for_each(|(name, field)| {
            write::str(out, name)?;
            write_field(out, &field)
        })
    })
}

fn write_field(out: &mut Vec<u8>, field: &Field<'_>) -> Result<(), EncodeError> {
    match field {
        Field::Null => write::null(out),
        Field::Bool(value) => write::bool(out, *value),
        Field::Int(value) => write::int(out, *value),
        Field::Float(value) => write::float(out, *value),
        Field::Str(text) => write::str(out, text)?,
        Field::Bytes(bytes) => write::bytes(out, bytes)?,
        Field::Encoded(encoded) => {
            out.extend(encoded.head);
            out.extend(encoded.body);
        }
    }
    Ok(())
}

/// Appends a value that may hold containers `levels` deep.
fn value(out: &mut Vec<u8>, value: &Value, levels: usize) -> Result<(), EncodeError> {
    match value {
        Value::Null => write::null(out),
        Value::Bool(value) => write::bool(out, *value),
        Value::Int(value) => write::int(out, *value),
        Value::Float(value) => write::float(out, *value),
        Value::Timestamp(value) => write::timestamp(out, *value),
        Value::Uuid(value) => write::uuid(out, value),
        Value::BigInt(value) => write::big_int(out, value)?,
        Value::Str(text) => write::str(out, text)?,
        Value::Bytes(bytes) => write::bytes(out, bytes)?,
        Value::Decimal(value) => write::decimal(out, value)?,
        Value::Array(array) => {
            out.extend(array_head(array.dtype(), array.shape().iter().copied())?);
            out.extend(array.data());
        }
        Value::Opaque(object) => opaque(out, object)?,
        Value::List(items) => list(out, items, below(levels)?)?,
        Value::Tuple(items) => {
            let levels = below(levels)?;
            write::extension(out, extension::TUPLE, |out| list(out, items, levels))?;
        }
        Value::Map(map) => {
            let levels = below(levels)?;
            match map.order() {
                None => pairs(out, map, levels)?,
                Some(order) => write::extension(out, extension::ORDERED_MAP, |out| {
                    write::array_header(out, 2)?;
                    pairs(out, map, levels)?;
                    write::places(out, order)
                })?,
            }
        }
        Value::Entry(record) => {
            let levels = below(levels)?;
            let bases = record.bases().iter().map(String::as_str);
            let fields = record.fields().iter().map(|(name, item)| (name.as_str(), item));
            write::extension(out, extension::ENTRY, |out| {
                entry(out, (record.name(), bases), fields, levels)
            })?;
        }
    }
    Ok(())
}

/// The levels that are left inside a container.
fn below(levels: usize) -> Result<usize, EncodeError> {
    levels.checked_sub(1).ok_or(EncodeError::TooDeep)
}

fn list(out: &mut Vec<u8>, items: &[Value], levels: usize) -> Result<(), EncodeError> {
    write::array_header(out, items.len())?;
    items.iter().try_for_each(|item| value(out, item, levels))
}

/// The pairs of a map, sorted.
fn pairs(out: &mut Vec<u8>, map: &Map, levels: usize) -> Result<(), EncodeError> {
    write::map_header(out, map.pairs().len())?;
    for (key, item) in map.pairs() {
        value(out, key, levels)?;
        value(out, item, levels)?;
    }
    Ok(())
}

fn entry<'a>(
    out: &mut Vec<u8>,
    (name, bases): (&str, impl ExactSizeIterator<Item = &'a str>),
    fields: impl ExactSizeIterator<Item = (&'a str, &'a Value)>,
    levels: usize,
) -> Result<(), EncodeError> {
    write::array_header(out, 3)?;
    write::str(out, name)?;
    write::array_header(out, bases.len())?;
    for base in bases {
        write::str(out, base)?;
    }
    write::map_header(out, fields.len())?;
    for (name, item) in fields {
        write::str(out, name)?;
        value(out, item, levels)?;
    }
    Ok(())
}

fn opaque(out: &mut Vec<u8>, object: &Opaque) -> Result<(), EncodeError> {
    write::extension(out, extension::OPAQUE, |out| {
        write::array_header(out, 3)?;
        write::str(out, &object.codec)?;
        write::str(out, &object.type_name)?;
        write::bytes(out, &object.bytes)
    })
}
