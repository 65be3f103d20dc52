//! A value inside a predicate, ready to be compared with fields.

use super::PatternError;
use crate::{Field, Value};

/// A value that can be borrowed as a field without work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constant {
    value: Value,
}

impl Constant {
    #[expect(clippy::unnecessary_wraps, reason = "kinds that are stored encoded can fail here")]
    pub(crate) fn new(value: Value) -> Result<Self, PatternError> {
        Ok(Self { value })
    }

    pub(crate) fn field(&self) -> Field<'_> {
        self.value.as_plain_field().unwrap_or(Field::Null)
    }

    pub(crate) fn into_value(self) -> Value {
        self.value
    }
}
