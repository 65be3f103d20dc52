//! A tuple on its way into a space.

use std::sync::atomic::Ordering;

use tupelo_tuple::{Field, image};

use crate::base::terms::{LeaseTerms, Terms};
use crate::store::record::{self, ImageBuffer};
use crate::store::registry::Kinds;
use crate::store::{NEXT_FENCE, Store, space_line};

/// A tuple on its way in.
pub(crate) struct Incoming<'f> {
    pub(crate) fields: &'f [Field<'f>],
    pub(crate) kinds: Kinds,
    pub(crate) size: image::Size,
    /// From when to when it is there, if not from now for ever.
    pub(crate) terms: Option<Terms>,
    /// Whether it adds to what the space holds, and is not there for a tuple that goes in the same section.
    pub(crate) takes_room: bool,
}

impl Incoming<'_> {
    /// Whether it is copied outside of the critical section.
    #[inline]
    pub(crate) fn is_long(&self) -> bool {
        self.size.bytes - record::HEADER_BYTES > ImageBuffer::SHORT_BYTES
    }
}

/// The terms of a tuple, with a number that no other tuple of the space has.
pub(crate) fn numbered(store: &Store, terms: &LeaseTerms) -> Terms {
    let view = store.memory.view();
    // Out of the same numbers as fences: no two are the same.
    let number = space_line(&view).double(NEXT_FENCE).fetch_add(1, Ordering::Relaxed) + 1;
    Terms { lease: terms.lease, after: terms.after, number }
}
