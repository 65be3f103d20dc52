//! The records of a partition that are in somebody's hands beyond a call, or dead: lists through their extensions.

use tupelo_shm::{Section, View, Word};

use crate::store::extension::{self, Extension, LIST_NEXT, LIST_PREVIOUS};
use crate::store::partition::{CLAIMED, DEAD, ENLISTED, LOCKS, Partition};
use crate::store::record;

/// A list of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// What somebody has claimed.
    Claimed,
    /// What was given up after its last attempt.
    Dead,
    /// What an open transaction has taken.
    Enlisted,
    /// What an open transaction has of those it has read: a lock on each.
    Locks,
}

impl List {
    /// The word of the partition with the first record.
    fn first(self) -> usize {
        match self {
            Self::Claimed => CLAIMED,
            Self::Dead => DEAD,
            Self::Enlisted => ENLISTED,
            Self::Locks => LOCKS,
        }
    }

    /// The state of the records in it.
    pub(crate) fn state(self) -> u32 {
        match self {
            Self::Claimed => record::CLAIMED,
            Self::Dead => record::DEAD,
            Self::Enlisted => record::ENLISTED,
            Self::Locks => record::LOCK,
        }
    }

    /// Whether `reference` is the record that came last.
    #[inline]
    pub(crate) fn begins_with(self, partition: Partition<'_>, reference: u32) -> bool {
        partition.page().load(self.first()) == reference
    }

    /// Whether a partition has any.
    pub(crate) fn is_empty(self, partition: Partition<'_>) -> bool {
        partition.page().load(self.first()) == 0
    }
}

/// Words that linking or unlinking a record changes.
pub(crate) const LINK_WORDS: usize = 4;

/// Links a record at the front.
pub(crate) fn push<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    list: List,
    (reference, extension): (u32, Extension<'m>),
) {
    let head = partition.page().place(list.first());
    let first = head.load();
    section.set_words([
        (extension.place(LIST_NEXT), first),
        (extension.place(LIST_PREVIOUS), 0),
        (head, reference),
    ]);
    if let Some(other) = extension_of(section.view(), first) {
        section.set(other, LIST_PREVIOUS, reference);
    }
}

/// As [`push`], for a record that is on no list, where its words for one mean nothing: they are filled without the log (R2).
/// Stores three other words with it.
#[inline(always)]
pub(crate) fn push_unlisted<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    list: List,
    (reference, extension): (u32, Extension<'m>),
    [one, two, three]: [(Word<'m>, u32); 3],
) {
    let head = partition.page().place(list.first());
    let first = head.load();
    extension.init(LIST_NEXT, first);
    extension.init(LIST_PREVIOUS, 0);
    section.set_words([(head, reference), one, two, three]);
    if let Some(other) = extension_of(section.view(), first) {
        section.set(other, LIST_PREVIOUS, reference);
    }
}

/// Unlinks a record.
#[inline(always)]
pub(crate) fn remove<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    list: List,
    extension: Extension<'m>,
) {
    let (next, previous) = (extension.load(LIST_NEXT), extension.load(LIST_PREVIOUS));
    let from = match extension_of(section.view(), previous) {
        Some(other) => other.place(LIST_NEXT),
        None => partition.page().place(list.first()),
    };
    section.set_word(from, next);
    if let Some(other) = extension_of(section.view(), next) {
        section.set(other, LIST_PREVIOUS, previous);
    }
}

/// The extension of the record at `reference`; `None` for reference 0.
#[inline(always)]
pub(crate) fn extension_of<'m>(view: &View<'m>, reference: u32) -> Option<Extension<'m>> {
    if reference == 0 {
        return None;
    }
    let found = extension::of(view, record::header(view, reference));
    if found.is_none() {
        // A record in a list without the words for it.
        view.violate();
    }
    found
}

/// The records of a list, the last that came first. It ends where one does not know of the one before: where a damaged list
/// leads back into itself.
pub(crate) fn records<'v, 'm>(
    view: &'v View<'m>,
    partition: Partition<'m>,
    list: List,
) -> impl Iterator<Item = (u32, Extension<'m>)> + use<'v, 'm> {
    let mut next = partition.page().load(list.first());
    let mut previous = 0;
    std::iter::from_fn(move || {
        let (reference, extension) = (next, extension_of(view, next)?);
        if extension.load(LIST_PREVIOUS) != previous {
            view.violate();
            return None;
        }
        (previous, next) = (reference, extension.load(LIST_NEXT));
        Some((reference, extension))
    })
}

/// Where a claimed record is, and the fence of the claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) scope: u32,
    pub(crate) reference: u32,
    pub(crate) fence: u64,
}
