//! Tuples that tell of something else than tuples: figures, and why nothing matches. They are written one after the other,
//! and read back so.

use std::time::Duration;

use tupelo_protocol::Fault;
use tupelo_tuple::{Class, Kind, Shape, Tuple, Value};

use crate::error::Error;

/// Writes one such tuple.
pub(crate) struct Row(Vec<Value>);

impl Row {
    /// A row whose first field names its subject.
    pub(crate) fn of(what: &str) -> Self {
        Self(vec![what.into()])
    }

    pub(crate) fn number(self, number: u64) -> Self {
        self.value(Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    pub(crate) fn numbers(self, numbers: &[u64]) -> Self {
        numbers.iter().fold(self, |row, number| row.number(*number))
    }

    pub(crate) fn optional(self, number: Option<u64>) -> Self {
        match number {
            Some(number) => self.number(number),
            None => self.value(Value::Null),
        }
    }

    pub(crate) fn time(self, time: Option<Duration>) -> Self {
        self.optional(time.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.value(text.into())
    }

    pub(crate) fn optional_text(self, text: Option<&str>) -> Self {
        self.value(text.map_or(Value::Null, Value::from))
    }

    /// The kinds of a shape, a byte each, and its class.
    pub(crate) fn shape(self, shape: &Shape) -> Self {
        let kinds: Vec<u8> = shape.kinds.iter().map(|kind| *kind as u8).collect();
        let class = shape.class.map(|class| class.encoding().to_owned());
        self.value(Value::Bytes(kinds)).value(class.map_or(Value::Null, Value::Bytes))
    }

    pub(crate) fn value(mut self, value: Value) -> Self {
        self.0.push(value);
        self
    }

    pub(crate) fn done(self) -> Tuple {
        self.0.into()
    }
}

/// Reads one such tuple, field by field.
pub(crate) struct Fields<'t> {
    fields: std::slice::Iter<'t, Value>,
}

/// A row that cannot be read.
fn unreadable() -> Error {
    Fault::protocol("a tuple that tells of a space can not be read").into()
}

impl<'t> Fields<'t> {
    /// All of the fields.
    pub(crate) fn at(tuple: &'t Tuple) -> Self {
        Self { fields: tuple.iter() }
    }

    /// The fields behind the first, and that.
    pub(crate) fn of(tuple: &'t Tuple) -> Result<(&'t str, Self), Error> {
        let mut fields = tuple.iter();
        match fields.next() {
            Some(Value::Str(what)) => Ok((what, Self { fields })),
            _ => Err(unreadable()),
        }
    }

    pub(crate) fn value(&mut self) -> Result<&'t Value, Error> {
        self.fields.next().ok_or_else(unreadable)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Error> {
        self.optional()?.ok_or_else(unreadable)
    }

    pub(crate) fn small(&mut self) -> Result<u32, Error> {
        u32::try_from(self.number()?).map_err(|_| unreadable())
    }

    pub(crate) fn optional(&mut self) -> Result<Option<u64>, Error> {
        match self.value()? {
            Value::Null => Ok(None),
            Value::Int(number) => u64::try_from(*number).map(Some).map_err(|_| unreadable()),
            _ => Err(unreadable()),
        }
    }

    pub(crate) fn time(&mut self) -> Result<Option<Duration>, Error> {
        Ok(self.optional()?.map(Duration::from_nanos))
    }

    pub(crate) fn text(&mut self) -> Result<String, Error> {
        self.optional_text()?.ok_or_else(unreadable)
    }

    pub(crate) fn optional_text(&mut self) -> Result<Option<String>, Error> {
        match self.value()? {
            Value::Null => Ok(None),
            Value::Str(text) => Ok(Some(text.clone())),
            _ => Err(unreadable()),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<Option<&'t [u8]>, Error> {
        match self.value()? {
            Value::Null => Ok(None),
            Value::Bytes(bytes) => Ok(Some(bytes)),
            _ => Err(unreadable()),
        }
    }

    pub(crate) fn shape(&mut self) -> Result<Shape, Error> {
        let kinds = self.bytes()?.ok_or_else(unreadable)?;
        let kinds = kinds.iter().map(|kind| Kind::from_number(*kind).ok_or_else(unreadable));
        let kinds = kinds.collect::<Result<Vec<_>, _>>()?;
        let class = self.bytes()?.map(Class::decode).transpose().map_err(|_| unreadable())?;
        Ok(Shape { kinds, class })
    }

    /// A default for a field that is missing, or of another kind.
    pub(crate) fn or_unreadable<T>(value: Option<T>) -> Result<T, Error> {
        value.ok_or_else(unreadable)
    }
}
