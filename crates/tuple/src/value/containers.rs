//! Entries and languages' own objects.

use super::{Value, ValueError};
use crate::class::compare_names;

/// A named record with named fields, in no order of their own (rule M7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    name: String,
    bases: Vec<String>,
    /// Sorted by the encoded bytes of the names: shorter names first.
    fields: Vec<(String, Value)>,
}

impl Entry {
    /// A record of the class `name`, which is derived from the classes `bases`.
    ///
    /// # Errors
    ///
    /// [`ValueError::Duplicate`] if two fields have the same name.
    pub fn new(
        name: impl Into<String>,
        bases: impl IntoIterator<Item = String>,
        fields: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<Self, ValueError> {
        let mut fields: Vec<_> = fields.into_iter().collect();
        fields.sort_by(|(a, _), (b, _)| compare_names(a, b));
        if let Some(twice) = fields.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ValueError::Duplicate { key: twice[0].0.clone() });
        }
        Ok(Self { name: name.into(), bases: bases.into_iter().collect(), fields })
    }

    /// The name of the class.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the classes it is derived from, nearest first.
    pub fn bases(&self) -> &[String] {
        &self.bases
    }

    /// The fields, sorted: shorter names first.
    pub fn fields(&self) -> &[(String, Value)] {
        &self.fields
    }

    /// Name, bases, and the sorted fields.
    pub fn into_parts(self) -> (String, Vec<String>, Vec<(String, Value)>) {
        (self.name, self.bases, self.fields)
    }

    fn folded(self) -> Self {
        let fold = |(name, value): (String, Value)| (name, value.into_folded());
        Self { fields: self.fields.into_iter().map(fold).collect(), ..self }
    }
}

/// An object of one language, as that language's own bytes. Matched by its kind (rule V1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opaque {
    /// What can read the bytes, such as `pickle`.
    pub codec: String,
    /// The name of the object's type in its language.
    pub type_name: String,
    /// The object.
    pub bytes: Vec<u8>,
}

impl Value {
    /// The value that stands for all values that match this one, as a key of a map does.
    pub(crate) fn into_folded(self) -> Self {
        match self {
            Self::Float(value) => Self::Float(f64::from_bits(crate::field::folded_bits(value))),
            Self::Decimal(value) => Self::Decimal(value.folded()),
            Self::List(items) => Self::List(items.into_iter().map(Self::into_folded).collect()),
            Self::Tuple(items) => Self::Tuple(items.into_iter().map(Self::into_folded).collect()),
            Self::Map(map) => Self::Map(map.folded()),
            Self::Entry(entry) => Self::Entry(entry.folded()),
            other => other,
        }
    }
}
