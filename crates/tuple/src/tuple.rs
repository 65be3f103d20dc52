//! Tuples, owned.

use std::ops::Deref;

use crate::{DecodeError, EncodeError, Field, TupleView, Value};

/// An ordered sequence of values, owned. A slice of its fields in every respect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuple {
    fields: Vec<Value>,
}

impl Tuple {
    /// The fields.
    pub fn into_fields(self) -> Vec<Value> {
        self.fields
    }

    /// Gives `use_fields` the fields in their borrowed form, as a put takes them.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if a field can not be encoded; `use_fields` was not called.
    pub fn with_fields<R>(
        &self,
        use_fields: impl FnOnce(&[Field<'_>]) -> R,
    ) -> Result<R, EncodeError> {
        let encodings: Result<Vec<_>, _> = self.iter().map(Value::side_encoding).collect();
        let encodings = encodings?;
        let fields = self.iter().zip(&encodings).map(|(value, encoding)| value.as_field(encoding));
        Ok(use_fields(&fields.collect::<Vec<_>>()))
    }
}

/// Gives `use_tuples` the fields of all tuples in their borrowed form.
///
/// # Errors
///
/// As [`Tuple::with_fields`].
pub fn with_all_fields<R>(
    tuples: &[Tuple],
    use_tuples: impl FnOnce(&[&[Field<'_>]]) -> R,
) -> Result<R, EncodeError> {
    let encode = |tuple: &Tuple| tuple.iter().map(Value::side_encoding).collect();
    let encodings: Vec<Vec<Vec<u8>>> = tuples.iter().map(encode).collect::<Result<_, _>>()?;
    let fields: Vec<Vec<Field<'_>>> = tuples
        .iter()
        .zip(&encodings)
        .map(|(tuple, encodings)| {
            tuple.iter().zip(encodings).map(|(value, side)| value.as_field(side)).collect()
        })
        .collect();
    Ok(use_tuples(&fields.iter().map(Vec::as_slice).collect::<Vec<_>>()))
}

impl From<Vec<Value>> for Tuple {
    fn from(fields: Vec<Value>) -> Self {
        Self { fields }
    }
}

impl FromIterator<Value> for Tuple {
    fn from_iter<I: IntoIterator<Item = Value>>(fields: I) -> Self {
        Self { fields: fields.into_iter().collect() }
    }
}

impl Deref for Tuple {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.fields
    }
}

impl TupleView<'_> {
    /// The tuple as values that own their bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if a field is damaged; it tells where in that field.
    pub fn to_tuple(&self) -> Result<Tuple, DecodeError> {
        let fields: Tuple =
            self.fields().map(|field| Value::from_field(&field)).collect::<Result<_, _>>()?;
        if fields.len() < self.len() {
            return Err(DecodeError::new(0, "a field points outside the tuple"));
        }
        Ok(fields)
    }
}
