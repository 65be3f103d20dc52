//! Tuples and templates as they stand in a frame: looked at when they are read, not before.

use tupelo_tuple::encoding::{Decoded, Reader, encode_tuple_ref, write};
use tupelo_tuple::{
    DecodeError, EncodeError, Template, TemplateRef, TupleRef, encode_template_refs,
};

use crate::wire::read_raw;

/// Several tuples in their canonical encoding: a list. Looked at when they are read, not before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuples<'a>(pub(crate) &'a [u8]);

impl<'a> Tuples<'a> {
    /// The encoding of some tuples, for [`Tuples::of_encoding`].
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if one of them can not be encoded.
    pub fn encode<'t>(
        tuples: impl ExactSizeIterator<Item = TupleRef<'t>>,
    ) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        write::array_header(&mut out, tuples.len())?;
        for tuple in tuples {
            encode_tuple_ref(&mut out, tuple)?;
        }
        Ok(out)
    }

    /// What [`Tuples::encode`] has made.
    pub const fn of_encoding(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The encoding.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        read_raw(reader).map(Self)
    }

    /// The tuples, one after the other.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is no list. What the iterator returns may be one too.
    pub fn read_each(&self) -> Result<TuplesIter<'a>, DecodeError> {
        let mut reader = Reader::new(self.0);
        let left = reader.expect_list("tuples are a list")?;
        Ok(TuplesIter { reader, left })
    }

    /// All of the tuples.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is no list of tuples.
    pub fn decode(&self) -> Result<Vec<Decoded<'a>>, DecodeError> {
        self.read_each()?.collect()
    }
}

/// Goes through [`Tuples`].
#[derive(Debug)]
pub struct TuplesIter<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl TuplesIter<'_> {
    /// How many are left, as far as the list says.
    pub const fn len(&self) -> usize {
        self.left
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for TuplesIter<'a> {
    type Item = Result<Decoded<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let decoded = Decoded::read(&mut self.reader);
        if decoded.is_err() {
            self.left = 0;
        }
        Some(decoded)
    }
}

/// A template in its canonical encoding. Looked at when it is decoded, not before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateBytes<'a>(pub(crate) &'a [u8]);

impl<'a> TemplateBytes<'a> {
    /// The encoding of a template, for [`TemplateBytes::of_encoding`].
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if it is over the limits.
    pub fn encode(template: &[TemplateRef<'_>]) -> Result<Vec<u8>, EncodeError> {
        encode_template_refs(template)
    }

    /// What [`TemplateBytes::encode`] has made.
    pub const fn of_encoding(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        read_raw(reader).map(Self)
    }

    /// The template.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is none.
    pub fn decode(&self) -> Result<Template, DecodeError> {
        Template::decode(self.0)
    }
}
