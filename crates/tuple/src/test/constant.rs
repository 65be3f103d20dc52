//! A value inside a predicate, ready to be compared with fields.

use super::PatternError;
use crate::{Field, Value};

/// A value that can be borrowed as a field without work: it was encoded once, when the predicate was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constant {
    value: Value,
    /// Empty for the kinds that are fields as they are.
    encoding: Vec<u8>,
}

impl Constant {
    /// # Errors
    ///
    /// [`PatternError::Value`] if the value cannot be encoded.
    pub(crate) fn new(value: Value) -> Result<Self, PatternError> {
        let encoding = value.side_encoding().map_err(PatternError::Value)?;
        Ok(Self { value, encoding })
    }

    pub(crate) fn field(&self) -> Field<'_> {
        self.value.as_field(&self.encoding)
    }

    pub(crate) const fn value(&self) -> &Value {
        &self.value
    }

    pub(crate) fn into_value(self) -> Value {
        self.value
    }
}
