//! Tuples that came as bytes and are used without values of their own in between. They are borrowed from the bytes, as
//! a put takes them, or an image, as a take shows them.

use super::decode::{ascending, value};
use super::{DecodeError, Item, Reader};
use crate::image::{self, ARITY_MAX, Write};
use crate::{Class, Encoded, Field, Kind, TupleRef, TupleView};

/// A tuple, borrowed from its canonical encoding.
#[derive(Clone, Debug)]
pub struct Decoded<'a> {
    fields: Vec<Field<'a>>,
    class: Option<&'static Class>,
}

impl<'a> Decoded<'a> {
    /// Reads a tuple, or an entry.
    ///
    /// ```
    /// use tupelo_tuple::encoding::{Decoded, Reader};
    ///
    /// let bytes = [0x92, 0xa3, b'j', b'o', b'b', 0x07];
    /// let decoded = Decoded::read(&mut Reader::new(&bytes))?;
    /// assert_eq!(decoded.as_ref().to_tuple()?.to_string(), r#"("job", 7)"#);
    /// # Ok::<(), tupelo_tuple::DecodeError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if no tuple in its canonical encoding stands there.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let error = reader.error("a tuple is an array of up to 64 fields, or an entry");
        match reader.item()? {
            Item::List(arity) if arity <= ARITY_MAX => {
                let fields = (0..arity).map(|_| field(reader)).collect::<Result<_, _>>()?;
                Ok(Self { fields, class: None })
            }
            Item::Entry(payload) => Self::entry(payload),
            _ => Err(error),
        }
    }

    fn entry(mut payload: Reader<'a>) -> Result<Self, DecodeError> {
        const SHAPE: &str = "an entry is an array of name, bases and a map of its fields";
        let error = payload.error(SHAPE);
        if payload.expect_list(SHAPE)? != 3 {
            return Err(error);
        }
        let name = payload.expect_str(SHAPE)?;
        let base_count = payload.expect_list(SHAPE)?;
        let mut bases = Vec::new();
        for _ in 0..base_count {
            bases.push(payload.expect_str(SHAPE)?);
        }
        let Item::Map(count) = payload.item()? else { return Err(error) };
        if count > ARITY_MAX {
            return Err(error);
        }
        let (mut names, mut fields) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut previous: &[u8] = &[];
        for _ in 0..count {
            let at = payload.at();
            names.push(payload.expect_str("the name of a field is text")?);
            previous = ascending(previous, payload.since(at), at)?;
            fields.push(field(&mut payload)?);
        }
        payload.finish()?;
        let reason = "an entry on its own has at most 64 fields, and 4000 bytes of names";
        let at = payload.at();
        let class = Class::new(name, bases, names).map_err(|_| DecodeError::new(at, reason))?;
        Ok(Self { fields, class: Some(class) })
    }

    /// The tuple, as a put takes it.
    pub fn as_ref(&self) -> TupleRef<'_> {
        TupleRef { fields: &self.fields, class: self.class }
    }

    /// The tuple, as a take shows it.
    pub fn to_image(&self) -> TupleImage {
        let size = image::size(&self.fields, 0);
        let mut bytes = vec![0; size.bytes];
        image::write(&self.fields, 0, size.wide, &mut Buffer(&mut bytes));
        let kinds = self.fields.iter().map(Field::kind).collect();
        TupleImage { kinds, bytes, wide: size.wide, class: self.class }
    }
}

/// A tuple in memory of its own, in the form in which a take shows it.
#[derive(Clone, Debug)]
pub struct TupleImage {
    kinds: Vec<Kind>,
    bytes: Vec<u8>,
    wide: bool,
    class: Option<&'static Class>,
}

impl TupleImage {
    /// The tuple.
    pub fn view(&self) -> TupleView<'_> {
        TupleView::new(&self.kinds, &self.bytes, self.wide).of_class(self.class)
    }
}

/// Reads a field. A nested value is looked at in full, and stays where it is.
fn field<'a>(reader: &mut Reader<'a>) -> Result<Field<'a>, DecodeError> {
    let (start, at_start) = (reader.at(), *reader);
    let kind = match reader.item()? {
        Item::Null => return Ok(Field::Null),
        Item::Bool(value) => return Ok(Field::Bool(value)),
        Item::Int(value) => return Ok(Field::Int(value)),
        Item::Float(value) => return Ok(Field::Float(value)),
        Item::Str(text) => return Ok(Field::Str(text)),
        Item::Bytes(bytes) => return Ok(Field::Bytes(bytes)),
        Item::Array(array) => {
            // In two pieces, so that the data is aligned where it is stored.
            let bytes = reader.since(start);
            let (head, body) = bytes.split_at(bytes.len() - array.data().len());
            return Ok(Field::Encoded(Encoded { kind: Kind::Array, head, body }));
        }
        // An item that is complete is in its canonical form.
        Item::BigInt(_) => Kind::Int,
        Item::Decimal(_) => Kind::Decimal,
        Item::Timestamp(_) => Kind::Timestamp,
        Item::Uuid(_) => Kind::Uuid,
        _ => {
            *reader = at_start;
            value(reader)?.kind()
        }
    };
    Ok(Field::Encoded(Encoded::whole(kind, reader.since(start))))
}

/// Plain memory that an image is written to.
struct Buffer<'b>(&'b mut [u8]);

impl Write for Buffer<'_> {
    fn word(&mut self, index: usize, word: u64) {
        self.0[8 * index..8 * index + 8].copy_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}
