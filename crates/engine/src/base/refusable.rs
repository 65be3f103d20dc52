//! Kinds with values that a language may refuse to take. The language of this process may not represent them:
//! nanoseconds, types of elements, keys of a map. Or code of that language makes them, which may be interrupted, as
//! decimals and UUIDs in Python. An integer or a text is always made, and at once.
//!
//! A tuple that might be refused is held while its taker looks at it, so that it can go back (rule V3), and freed
//! in a second section. So a binding that has met nothing of a kind that it can not represent says so.

use std::sync::atomic::AtomicU16;
use std::sync::atomic::Ordering::Relaxed;

use tupelo_tuple::{Kind, KindSet};

/// As bits of a [`KindSet`]. One for the process, since the language is.
static REFUSABLE: AtomicU16 = AtomicU16::new(
    KindSet::of(Kind::Timestamp)
        .or(KindSet::of(Kind::Decimal))
        .or(KindSet::of(Kind::Uuid))
        .or(KindSet::of(Kind::Array))
        .or(KindSet::of(Kind::List))
        .or(KindSet::of(Kind::Tuple))
        .or(KindSet::of(Kind::Map))
        .or(KindSet::of(Kind::Entry))
        .or(KindSet::of(Kind::Opaque))
        .bits(),
);

/// Promises that from now on this process can represent every value of these kinds, so that no visitor fails on a
/// field of them. A small tuple that a visitor refuses nevertheless is taken.
pub fn represents(kinds: KindSet) {
    REFUSABLE.fetch_and(!kinds.bits(), Relaxed);
}

/// The kinds that may be refused, as bits of a [`KindSet`].
#[inline]
pub(crate) fn refusable() -> u16 {
    REFUSABLE.load(Relaxed)
}
