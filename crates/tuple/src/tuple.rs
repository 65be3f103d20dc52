//! Tuples, owned and borrowed. An entry is a tuple of a class, which names its fields (rule M7).

use std::ops::Deref;

use crate::value::Entry;
use crate::{Class, DecodeError, EncodeError, Field, TupleView, Value, ValueError};

/// An ordered sequence of values, owned. A slice of its fields in every respect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuple {
    fields: Vec<Value>,
    class: Option<&'static Class>,
}

impl Tuple {
    /// The tuple that `entry` is on its own, and not as a field of another.
    ///
    /// # Errors
    ///
    /// [`ValueError`] if its class cannot be had.
    pub fn from_entry(entry: Entry) -> Result<Self, ValueError> {
        let names = entry.fields().iter().map(|(name, _)| name);
        let class = Class::new(entry.name(), entry.bases(), names)?;
        let (_, _, fields) = entry.into_parts();
        Ok(Self {
            fields: fields.into_iter().map(|(_, value)| value).collect(),
            class: Some(class),
        })
    }

    /// The class, if this is an entry.
    pub const fn class(&self) -> Option<&'static Class> {
        self.class
    }

    /// The fields; the fields of an entry in the order of its class.
    pub fn into_fields(self) -> Vec<Value> {
        self.fields
    }

    /// Gives `use_tuple` the tuple in its borrowed form, as a put takes it.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if a field cannot be encoded; `use_tuple` was not called.
    pub fn with_ref<R>(&self, use_tuple: impl FnOnce(TupleRef<'_>) -> R) -> Result<R, EncodeError> {
        self.with_fields(|fields| use_tuple(TupleRef { fields, class: self.class }))
    }

    /// Gives `use_fields` the fields in their borrowed form.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if a field cannot be encoded; `use_fields` was not called.
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

/// Gives `use_tuples` all tuples in their borrowed form.
///
/// # Errors
///
/// As [`Tuple::with_fields`].
pub fn with_all_tuples<R>(
    tuples: &[Tuple],
    use_tuples: impl FnOnce(&[TupleRef<'_>]) -> R,
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
    let refs = tuples.iter().zip(&fields);
    let refs = refs.map(|(tuple, fields)| TupleRef { fields, class: tuple.class });
    Ok(use_tuples(&refs.collect::<Vec<_>>()))
}

impl From<Vec<Value>> for Tuple {
    fn from(fields: Vec<Value>) -> Self {
        Self { fields, class: None }
    }
}

impl FromIterator<Value> for Tuple {
    fn from_iter<I: IntoIterator<Item = Value>>(fields: I) -> Self {
        Self { fields: fields.into_iter().collect(), class: None }
    }
}

impl Deref for Tuple {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.fields
    }
}

/// A tuple, borrowed, for a put. A plain tuple has nothing but fields.
///
/// ```
/// use tupelo_tuple::{Class, TupleRef, fields};
///
/// let job = Class::new("Job", [""; 0], ["id", "status"])?;
/// let fields = fields![7, "new"];
/// assert_eq!(TupleRef::from(&fields).class, None);
/// assert_eq!(TupleRef::entry(job, &fields).fields.len(), 2);
/// # Ok::<(), tupelo_tuple::ValueError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TupleRef<'a> {
    /// The fields; the fields of an entry in the order of its class.
    pub fields: &'a [Field<'a>],
    /// The class, if this is an entry.
    pub class: Option<&'static Class>,
}

impl<'a> TupleRef<'a> {
    /// An entry of `class` with these fields, in the order of [`Class::fields`].
    ///
    /// # Panics
    ///
    /// If there are not as many as the class has.
    pub fn entry(class: &'static Class, fields: &'a [Field<'a>]) -> Self {
        assert_eq!(fields.len(), class.arity(), "{class:?} has other fields");
        Self { fields, class: Some(class) }
    }

    /// The tuple, owning its fields.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if an encoded field is damaged.
    pub fn to_tuple(&self) -> Result<Tuple, DecodeError> {
        let fields = self.fields.iter().map(Value::from_field).collect::<Result<_, _>>()?;
        Ok(Tuple { fields, class: self.class })
    }
}

impl<'a> From<&'a [Field<'a>]> for TupleRef<'a> {
    #[inline]
    fn from(fields: &'a [Field<'a>]) -> Self {
        Self { fields, class: None }
    }
}

impl<'a, const N: usize> From<&'a [Field<'a>; N]> for TupleRef<'a> {
    #[inline]
    fn from(fields: &'a [Field<'a>; N]) -> Self {
        Self { fields, class: None }
    }
}

impl<'a> From<&'a Vec<Field<'a>>> for TupleRef<'a> {
    #[inline]
    fn from(fields: &'a Vec<Field<'a>>) -> Self {
        Self { fields, class: None }
    }
}

impl TupleView<'_> {
    /// The tuple as values that own their bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if a field is damaged; it tells where in that field.
    pub fn to_tuple(&self) -> Result<Tuple, DecodeError> {
        let fields: Vec<Value> =
            self.fields().map(|field| Value::from_field(&field)).collect::<Result<_, _>>()?;
        if fields.len() < self.len() {
            return Err(DecodeError::new(0, "a field points outside the tuple"));
        }
        Ok(Tuple { fields, class: self.class() })
    }
}
