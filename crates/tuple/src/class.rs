//! Classes of entries: a name, the names of the bases, and the names of the fields (rule M7).
//!
//! Every class is kept once for the life of the process, as a class of a program is. So it is compared by its address,
//! and the owner of a tuple need not keep its class alive. There are at most [`CLASSES_MAX`], whatever other processes
//! write (rules B2, C5).

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockWriteGuard};

use crate::encoding::{Reader, write};
use crate::image::ARITY_MAX;
use crate::{DecodeError, EncodeError, Kind, ValueError, hash};

/// Most bytes of the names of a class, encoded: its own, and the names of its bases and fields (rule B2).
pub const CLASS_BYTES_MAX: usize = 4000;
/// Most classes that a process knows (rule B2).
pub const CLASSES_MAX: usize = 1 << 16;

/// The class of an entry. Two classes with the same names are the same object.
pub struct Class {
    name: Box<str>,
    bases: Box<[Box<str>]>,
    fields: Box<[Box<str>]>,
    encoding: Box<[u8]>,
    hash: u64,
    number: u32,
    is_constructible: AtomicBool,
}

/// The classes by their encoding.
static CLASSES: RwLock<Option<HashMap<&'static [u8], &'static Class>>> = RwLock::new(None);

/// The classes by their number, from 1, chunk by chunk, so that finding one needs no lock.
static NUMBERED: [OnceLock<Box<[OnceLock<&'static Class>]>>; CLASSES_MAX / CHUNK] =
    [const { OnceLock::new() }; CLASSES_MAX / CHUNK];
const CHUNK: usize = 256;

/// Locks the table of classes: see [`crate::before_fork`].
pub(crate) fn lock_classes() -> RwLockWriteGuard<'static, impl Sized> {
    CLASSES.write().unwrap_or_else(PoisonError::into_inner)
}

impl Class {
    /// The class `name` with these fields, which is derived from `bases`, nearest first.
    ///
    /// ```
    /// use tupelo_tuple::Class;
    ///
    /// let job = Class::new("Job", ["Base"], ["status", "id"])?;
    /// assert_eq!(job.fields().collect::<Vec<_>>(), ["id", "status"]);
    /// assert!(job.is("Job") && job.is("Base") && !job.is("Task"));
    /// assert!(std::ptr::eq(job, Class::new("Job", ["Base"], ["id", "status"])?));
    /// # Ok::<(), tupelo_tuple::ValueError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ValueError::Duplicate`] if two fields have the same name, [`ValueError::ClassTooLarge`] if there are too
    /// many fields or the names are too long, [`ValueError::TooManyClasses`].
    pub fn new(
        name: &str,
        bases: impl IntoIterator<Item: AsRef<str>>,
        fields: impl IntoIterator<Item: AsRef<str>>,
    ) -> Result<&'static Self, ValueError> {
        let boxed = |names: &mut dyn Iterator<Item = Box<str>>| names.collect::<Box<[_]>>();
        let bases = boxed(&mut bases.into_iter().map(|base| base.as_ref().into()));
        let mut fields = boxed(&mut fields.into_iter().map(|field| field.as_ref().into()));
        fields.sort_by(|a, b| compare_names(a, b));
        if let Some(twice) = fields.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ValueError::Duplicate { key: twice[0].to_string() });
        }
        let encoding = encode(name, &bases, &fields).map_err(ValueError::Key)?;
        if encoding.len() > CLASS_BYTES_MAX || fields.len() > ARITY_MAX {
            return Err(ValueError::ClassTooLarge { bytes: encoding.len(), fields: fields.len() });
        }
        let hash = hash::of_bytes(&encoding, hash::kind_seed(Kind::Entry));
        let is_constructible = AtomicBool::new(false);
        let encoding = encoding.into();
        let name = name.into();
        Self { name, bases, fields, encoding, hash, number: 0, is_constructible }.kept()
    }

    /// The class that `encoding` describes: an array of name, names of the bases, and names of the fields.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is not exactly one class as [`Class::encoding`] has it.
    pub fn decode(encoding: &[u8]) -> Result<&'static Self, DecodeError> {
        const SHAPE: &str = "a class is an array of its name, its bases and its fields";
        if let Some(known) = known(encoding) {
            return Ok(known);
        }
        let mut reader = Reader::new(encoding);
        let error = reader.error(SHAPE);
        if reader.expect_list(SHAPE)? != 3 {
            return Err(error);
        }
        let name = reader.expect_str(SHAPE)?;
        let mut names = || -> Result<Vec<&str>, DecodeError> {
            let count = reader.expect_list(SHAPE)?;
            (0..count).map(|_| reader.expect_str(SHAPE)).collect()
        };
        let (bases, fields) = (names()?, names()?);
        reader.finish()?;
        let class = Self::new(name, bases, fields).map_err(|_| error)?;
        // One whose fields are in another order is no class in its one form.
        if *class.encoding == *encoding { Ok(class) } else { Err(error) }
    }

    /// Keeps the class, or finds the same one.
    fn kept(mut self) -> Result<&'static Self, ValueError> {
        if let Some(known) = known(&self.encoding) {
            return Ok(known);
        }
        let mut classes = CLASSES.write().unwrap_or_else(PoisonError::into_inner);
        let classes = classes.get_or_insert_default();
        if let Some(known) = classes.get(&*self.encoding) {
            return Ok(known);
        }
        if classes.len() == CLASSES_MAX {
            return Err(ValueError::TooManyClasses);
        }
        let place = classes.len();
        self.number = u32::try_from(place + 1).map_err(|_| ValueError::TooManyClasses)?;
        let class: &'static Self = Box::leak(Box::new(self));
        let chunk =
            NUMBERED[place / CHUNK].get_or_init(|| (0..CHUNK).map(|_| OnceLock::new()).collect());
        chunk[place % CHUNK].get_or_init(|| class);
        classes.insert(&class.encoding, class);
        Ok(class)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the classes it is derived from, nearest first.
    pub fn bases(&self) -> impl ExactSizeIterator<Item = &str> {
        self.bases.iter().map(AsRef::as_ref)
    }

    /// The names of the fields, in the order in which an entry has them: shorter names first.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = &str> {
        self.fields.iter().map(AsRef::as_ref)
    }

    /// The number of fields.
    pub const fn arity(&self) -> usize {
        self.fields.len()
    }

    /// The number of the field with this name.
    pub fn index_of(&self, field: &str) -> Option<usize> {
        self.fields.binary_search_by(|name| compare_names(name, field)).ok()
    }

    /// Whether the class has this name, or is derived from a class that has (rule M7).
    pub fn is(&self, name: &str) -> bool {
        *self.name == *name || self.bases.iter().any(|base| **base == *name)
    }

    /// What [`Class::decode`] reads: the same for the same names.
    pub const fn encoding(&self) -> &[u8] {
        &self.encoding
    }

    /// A hash of all the names, the same in every process.
    pub const fn names_hash(&self) -> u64 {
        self.hash
    }

    /// The number of the class in this process, from 1: it is passed on where a reference takes too much room.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The class with this number; `None` if there is none, as for 0.
    pub fn with_number(number: u32) -> Option<&'static Self> {
        let place = (number as usize).checked_sub(1)?;
        NUMBERED.get(place / CHUNK)?.get()?[place % CHUNK].get().copied()
    }

    /// Whether this process has said that it can represent every entry of the class: then a take need not be
    /// prepared to put one back.
    pub fn is_constructible(&self) -> bool {
        // Relaxed: either answer is right at any time.
        self.is_constructible.load(Ordering::Relaxed)
    }

    /// Says whether this process can represent every entry of the class, whatever its fields are.
    pub fn set_constructible(&self, is_constructible: bool) {
        self.is_constructible.store(is_constructible, Ordering::Relaxed);
    }
}

impl PartialEq for Class {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Class {}

impl Hash for Class {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, bases, fields, .. } = self;
        write!(out, "{name}({})[{}]", bases.join(", "), fields.join(", "))
    }
}

/// The order of names in an entry: that of their encoded bytes, which begin with the length.
pub(crate) fn compare_names(a: &str, b: &str) -> std::cmp::Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn known(encoding: &[u8]) -> Option<&'static Class> {
    let classes = CLASSES.read().unwrap_or_else(PoisonError::into_inner);
    classes.as_ref().and_then(|classes| classes.get(encoding).copied())
}

fn encode(name: &str, bases: &[Box<str>], fields: &[Box<str>]) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    write::array_header(&mut out, 3)?;
    write::str(&mut out, name)?;
    for names in [bases, fields] {
        write::array_header(&mut out, names.len())?;
        names.iter().try_for_each(|name| write::str(&mut out, name))?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_what_its_encoding_says_and_nothing_else_is_accepted_v4_c5() {
        let job = Class::new("Job", ["Task", "Base"], ["status", "id"]).unwrap();
        assert_eq!(Class::decode(job.encoding()), Ok(job));
        let mut swapped = job.encoding().to_vec();
        let (id, status) = (b"\xa2id".len(), b"\xa6status".len());
        let end = swapped.len();
        swapped[end - id - status..].rotate_left(id);
        assert!(Class::decode(&swapped).is_err(), "the fields are not in order");
        for length in 0..job.encoding().len() {
            assert!(Class::decode(&job.encoding()[..length]).is_err());
        }
    }

    #[test]
    fn a_class_has_a_largest_size_and_no_field_twice_b2() {
        let none = std::iter::empty::<&str>;
        assert!(Class::new(&"x".repeat(CLASS_BYTES_MAX), none(), none()).is_err());
        assert!(Class::new("Wide", none(), (0..=ARITY_MAX).map(|n| n.to_string())).is_err());
        let twice = Class::new("Twice", none(), ["a", "b", "a"]);
        assert_eq!(twice, Err(ValueError::Duplicate { key: "a".to_owned() }));
    }

    #[test]
    fn the_same_names_are_the_same_class_m7() {
        let job = Class::new("Same", ["Base"], ["b", "a"]).unwrap();
        assert_eq!(Class::new("Same", ["Base"], ["a", "b"]).unwrap(), job);
        assert_ne!(Class::new("Same", ["Other"], ["a", "b"]).unwrap(), job);
        assert_eq!(Class::with_number(job.number()), Some(job));
        assert_eq!((Class::with_number(0), Class::with_number(u32::MAX)), (None, None));
        assert_eq!((job.index_of("b"), job.index_of("c")), (Some(1), None));
    }
}
