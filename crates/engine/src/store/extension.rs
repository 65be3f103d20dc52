//! The extension of a record: a block with what only few records have. Links of the index slots beyond the
//! second, and all that has to do with time: when the tuple's lease ends, who has claimed it, what became of
//! earlier attempts.
//!
//! | bytes | what |
//! |---:|---|
//! | 0 | the allocator's ([`crate::store::blocks`]) |
//! | 8 | the timer: due, neighbours, slot ([`crate::time`]) |
//! | 28 | block with what became of earlier attempts, 0 if none ([`crate::store::history`]) |
//! | 32 | when the lease ends, in milliseconds of the monotonic clock, 0 for never (two words); of a tuple that is not visible yet, how long the lease will be |
//! | 40 | fence of the claim that has it, or had it last (two words) |
//! | 48 | attempts that failed |
//! | 52 | most attempts that the claim allows, 0 for any number, 2^32 - 1 for a take that outlives its process; or which of its process's transactions has it |
//! | 56, 60 | next and previous in the partition's list of claimed, or of dead, records |
//! | 64 | index links 2 to 7 |
//! | 160 | number of the lease (two words) |
//! | 168 | locks of transactions that have read the record |
//! | 176 | when the claim ends that has it, or the hold or lock of a transaction, in milliseconds (two words) |
//! | 184 | the number of the handle, in its process, through which it was claimed, or taken or read in a transaction |
//!
//! A tuple that is put on terms has it in its own block, behind the image. Another tuple gets a block for it when it is
//! first wanted, which is freed with the record.
//!
//! The words of a claim and of the list mean nothing while the record is in the base list. So they are stored without
//! the log when a claim begins (R2).

use tupelo_shm::{GRANULE, Section, Span, View};

use crate::base::error::Error;
use crate::base::layout::Layout;
use crate::store::partition::{INDEXES_MAX, LEASED_COUNT, Partition};
use crate::store::record::{EXTENDED_INSIDE, EXTENSION, Header, Record, SHAPE};
use crate::store::{blocks, extension};

/// Links that fit into the header of a record itself.
pub(crate) const INLINE_LINKS: usize = 2;
const LINKS_BYTES: usize = (INDEXES_MAX - INLINE_LINKS) * crate::store::record::LINK_BYTES;

/// The timer's words begin here.
pub(crate) const TIMER: usize = 8;
pub(crate) const HISTORY: usize = 28;
pub(crate) const LEASE_END_MS: usize = 32;
pub(crate) const FENCE: usize = 40;
pub(crate) const ATTEMPTS: usize = 48;
pub(crate) const ATTEMPTS_MAX: usize = 52;
/// As most attempts: a take has it whose process it outlives.
pub(crate) const OUTLIVES: u32 = u32::MAX;
/// Of a record that a transaction has, and of its locks.
pub(crate) const TRANSACTION: usize = ATTEMPTS_MAX;
pub(crate) const LIST_NEXT: usize = 56;
pub(crate) const LIST_PREVIOUS: usize = 60;
pub(crate) const LINKS: usize = GRANULE;
pub(crate) const LEASE_NUMBER: usize = LINKS + LINKS_BYTES;
pub(crate) const LOCKS: usize = LEASE_NUMBER + 8;
pub(crate) const HOLD_END_MS: usize = LOCKS + 8;
pub(crate) const HANDLE: usize = HOLD_END_MS + 8;

/// Bytes of the block.
pub(crate) const EXTENSION_BYTES: usize = 3 * GRANULE;
const _: () = assert!(HANDLE + 4 <= EXTENSION_BYTES);

/// An extension, as a window on it.
pub(crate) type Extension<'m> = Span<'m, EXTENSION_BYTES>;

/// The extension of the record with this header, if it has one.
#[inline]
pub(crate) fn of<'m>(view: &View<'m>, header: Header<'m>) -> Option<Extension<'m>> {
    match header.load(EXTENSION) {
        0 => None,
        block => Some(view.at(block)),
    }
}

/// As [`of`], for a block that begins with the state of a record. Only a table of waiters may do so, too, and its words are
/// numbers of wait nodes, which are no granules of the arena.
#[inline]
pub(crate) fn of_any<'m>(
    view: &View<'m>,
    layout: &Layout,
    header: Header<'m>,
) -> Option<Extension<'m>> {
    let is_in_arena = layout.extent_of(header.load(EXTENSION)) < layout.extents_all;
    if is_in_arena { of(view, header) } else { None }
}

/// The extension of the record with this header, which gets one if it has none.
///
/// # Errors
///
/// [`crate::base::error::Need`] if there is no block for it.
#[inline]
pub(crate) fn ensure<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    header: Header<'m>,
) -> Result<Extension<'m>, Error> {
    if let Some(extension) = of(section.view(), header) {
        return Ok(extension);
    }
    let block = blocks::allocate(section, layout, partition, EXTENSION_BYTES)?;
    Ok(add(section, header, block))
}

/// As [`ensure`], for who takes the record, or reads it in a transaction: in a full space, too.
#[inline]
pub(crate) fn ensure_beyond<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    header: Header<'m>,
) -> Result<Extension<'m>, Error> {
    if let Some(extension) = of(section.view(), header) {
        return Ok(extension);
    }
    let block = blocks::allocate_extension_beyond(section, layout, partition)?;
    Ok(add(section, header, block))
}

fn add<'m>(section: &mut Section<'m>, header: Header<'m>, block: u32) -> Extension<'m> {
    let extension: Extension<'m> = section.view().at(block);
    clear(extension);
    section.set(header, EXTENSION, block);
    extension
}

/// Bytes of a block for a record of `bytes` bytes and its extension.
pub(crate) const fn bytes_with(bytes: usize) -> usize {
    bytes.next_multiple_of(GRANULE) + EXTENSION_BYTES
}

/// Gives a fresh record of `bytes` bytes, whose block has [`bytes_with`] as many, its extension there.
#[expect(clippy::cast_possible_truncation, reason = "a block has far fewer granules")]
pub(crate) fn begin_inside(
    view: &View<'_>,
    Record { reference, header }: Record<'_>,
    bytes: usize,
) {
    let block = reference + (bytes.div_ceil(GRANULE)) as u32;
    clear(view.at(block));
    header.init(EXTENSION, block);
    header.init(SHAPE, header.load(SHAPE) | EXTENDED_INSIDE);
}

/// Makes all of it mean nothing.
fn clear(extension: Extension<'_>) {
    for word in (TIMER..LINKS).step_by(8) {
        extension.init64(word, 0);
    }
    extension.init64(LEASE_NUMBER, 0);
    extension.init(LOCKS, 0);
}

/// Keeps count of the tuples whose lease ends, before that of this one `ends` or not any more. One that is freed has none.
#[inline]
pub(crate) fn recount<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    extension: Extension<'m>,
    ends: bool,
) {
    let ended = extension.load64(LEASE_END_MS) != 0;
    if ends != ended {
        section.add(partition.page(), LEASED_COUNT, if ends { 1 } else { -1 });
    }
}

/// When the lease of a record ends; 0 for never.
pub(crate) fn lease_end_ms(view: &View<'_>, record: Record<'_>) -> u64 {
    extension::of(view, record.header).map_or(0, |extension| extension.load64(LEASE_END_MS))
}
