//! A record: the block that holds one tuple, its links and its image.
//!
//! | bytes | what |
//! |---:|---|
//! | 0 | state |
//! | 4 | link of the free list ([`crate::store::blocks`]); nothing else |
//! | 8 | bytes of the image |
//! | 12 | shape; bits 16 to 23: the index slots that it is linked in; bit 24: an open transaction has read it; bit 31: the image is wide |
//! | 16 | sequence number: the order of puts (two words; [`crate::store::stamps`]) |
//! | 24 | block with what few records have ([`crate::store::extension`]), 0 if none |
//! | 28 | who holds it: wait node, or participant + 1 |
//! | 32, 36 | previous and next in the order of puts |
//! | 40, 56 | index links 0 and 1: tag, next leader in the bucket, next and previous with the same key |
//! | 72 | the image ([`tupelo_tuple::image`]) |

use tupelo_shm::{CopyBuffer, Fresh, GRANULE, Span, View};
use tupelo_tuple::few::{self, Ask};
use tupelo_tuple::{Field, Kind, PatternRef, TupleRef, TupleView, image};

use crate::store::extension::{self, Extension, INLINE_LINKS};

/// The first two granules of a record: the fixed part, and the beginning of the image. Every record has
/// them, since the fixed part alone needs a second granule.
pub(crate) type Header<'m> = Span<'m, WINDOW_BYTES>;
const WINDOW_BYTES: usize = 2 * GRANULE;
/// Bytes of the fixed part.
pub(crate) const HEADER_BYTES: usize = 72;
const _: () = assert!(GRANULE < HEADER_BYTES && HEADER_BYTES < WINDOW_BYTES);

pub(crate) const STATE: usize = 0;
pub(crate) const FREE_NEXT: usize = 4;
pub(crate) const IMAGE_BYTES: usize = 8;
pub(crate) const SHAPE: usize = 12;
pub(crate) const SEQUENCE: usize = 16;
pub(crate) const EXTENSION: usize = 24;
pub(crate) const HOLDER: usize = 28;
pub(crate) const PREVIOUS: usize = 32;
pub(crate) const NEXT: usize = 36;
const LINKS: usize = 40;

/// Where the image begins.
pub(crate) const IMAGE: usize = HEADER_BYTES;
/// The image's place relative to a cache line, for the alignment of arrays.
pub(crate) const IMAGE_ORIGIN: usize = IMAGE % GRANULE;

/// The block is free.
pub(crate) const FREE: u32 = 0;
/// In the base list and the indexes.
pub(crate) const LIVE: u32 = 1;
/// Given to a waiter that has not picked it up.
pub(crate) const HANDED: u32 = 2;
/// Being filled by a put; not visible yet.
pub(crate) const RESERVED: u32 = 3;
/// Taken out for a take that is still copying it.
pub(crate) const TAKEN: u32 = 4;
/// A copy that a reader is picking up: freed, not put back, if its owner dies.
pub(crate) const COPIED: u32 = 5;
/// Somebody's, until the claim is settled or runs out (rule K1).
pub(crate) const CLAIMED: u32 = 6;
/// Given up after its last attempt (rule K5).
pub(crate) const DEAD: u32 = 7;
/// Not visible yet (rule L3).
pub(crate) const DELAYED: u32 = 8;
/// Taken by a transaction that is open (rule X3).
pub(crate) const ENLISTED: u32 = 9;
/// No tuple: a transaction's lock on one that it has read ([`crate::protocols::transaction::lock`]).
pub(crate) const LOCK: u32 = 10;

/// No tuple: what a wait node has outside of itself ([`crate::recovery::node_memory`]).
pub(crate) const NODE_MEMORY: u32 = 11;

/// Whether a block that begins with this word is a tuple's. No index begins with one so small, which is a reference there.
pub(crate) fn is_tuple(state: u32) -> bool {
    (LIVE..LOCK).contains(&state)
}

/// The image is wide.
pub(crate) const WIDE: u32 = 1 << 31;
/// An open transaction has read the record: whoever takes passes it over (rule X3).
pub(crate) const READ_MARK: u32 = 1 << 24;
/// The extension stands behind the image, in the record's own block.
pub(crate) const EXTENDED_INSIDE: u32 = 1 << 25;
const SHAPE_NUMBER: u32 = 0xffff;

/// The fixed part of the block at `reference`.
#[inline(always)]
pub(crate) fn header<'m>(view: &View<'m>, reference: u32) -> Header<'m> {
    view.at(reference)
}

/// The header of the record that a word names which another lock guards, if it is of `shape`, whose lock the caller has. Any
/// other may be newer than the view.
pub(crate) fn header_of_shape<'m>(
    view: &View<'m>,
    reference: u32,
    shape: u32,
) -> Option<Header<'m>> {
    let header = view.window_at(reference)?;
    (shape_of(header).0 == shape).then_some(header)
}

/// A record, as a reference to it and a window on its fixed part: found once, then passed on.
#[derive(Clone, Copy)]
pub(crate) struct Record<'m> {
    pub(crate) reference: u32,
    pub(crate) header: Header<'m>,
}

/// The record at `reference`.
#[inline(always)]
pub(crate) fn at<'m>(view: &View<'m>, reference: u32) -> Record<'m> {
    Record { reference, header: header(view, reference) }
}

/// Index links of a record: four words.
pub(crate) type Link<'m> = Span<'m, LINK_BYTES>;
pub(crate) const LINK_BYTES: usize = 16;
/// Hash of the key.
pub(crate) const TAG: usize = 0;
/// Next leader in the same bucket's overflow.
pub(crate) const BUCKET_NEXT: usize = 4;
/// Neighbours among the records of the same tag, oldest first, in a ring.
pub(crate) const RING_NEXT: usize = 8;
pub(crate) const RING_PREVIOUS: usize = 12;

/// Whether index slot `slot` needs the extension.
#[inline]
pub(crate) const fn is_extended(slot: usize) -> bool {
    slot >= INLINE_LINKS
}

/// The links of index slot `slot`.
#[inline]
pub(crate) fn link<'m>(view: &View<'m>, reference: u32, slot: usize) -> Link<'m> {
    link_of(view, header(view, reference), slot)
}

/// The links of index slot `slot` of the record with this header.
#[inline]
pub(crate) fn link_of<'m>(view: &View<'m>, header: Header<'m>, slot: usize) -> Link<'m> {
    match slot {
        0 => header.part(LINKS),
        1 => header.part(LINKS + LINK_BYTES),
        _ => extended_link(view, header.load(EXTENSION), slot),
    }
}

#[cold]
#[inline(never)]
fn extended_link<'m>(view: &View<'m>, extension: u32, slot: usize) -> Link<'m> {
    let extension: Extension<'m> = view.at(extension);
    extension.part(extension::LINKS + (slot - INLINE_LINKS) * LINK_BYTES)
}

/// What a record of the tuple of `fields` takes, in bytes, and whether its image is wide.
#[inline]
pub(crate) fn size(sizer: image::Sizer, fields: &[Field<'_>]) -> image::Size {
    let mut size = sizer.size(fields, IMAGE_ORIGIN);
    size.bytes += HEADER_BYTES;
    size
}

/// Fills a fresh block: everything but its links, its state and its place in the order.
#[inline]
pub(crate) fn fill(header: Header<'_>, shape: u32, size: image::Size) {
    header.init(IMAGE_BYTES, u32::try_from(size.bytes - HEADER_BYTES).unwrap_or(0));
    header.init(SHAPE, shape | if size.wide { WIDE } else { 0 });
    // Both at once: no extension, and no holder.
    const { assert!(HOLDER == EXTENSION + 4 && EXTENSION.is_multiple_of(8)) };
    header.init64(EXTENSION, 0);
}

/// Writes the image of `fields`, whose size is `size`, into a block that only this caller can reach.
#[inline(always)]
pub(crate) fn write_image(
    view: &View<'_>,
    record: Record<'_>,
    fields: &[Field<'_>],
    size: image::Size,
) {
    if size.bytes <= WINDOW_BYTES && !size.wide {
        image::write(fields, IMAGE_ORIGIN, false, &mut ShortTarget(record.header));
    } else {
        let write =
            |tuple: TupleRef<'_>| write_long_image(view, record.reference, tuple.fields, size);
        TupleRef::from(fields).apart(write);
    }
}

/// As [`write_image`], for an image that does not end in the window on the header.
#[inline(never)]
pub(crate) fn write_long_image(
    view: &View<'_>,
    reference: u32,
    fields: &[Field<'_>],
    size: image::Size,
) {
    let start = reference as usize * GRANULE + IMAGE;
    if let Some(target) = view.fresh(start, size.bytes - HEADER_BYTES) {
        image::write(fields, IMAGE_ORIGIN, size.wide, &mut Target(target));
    }
}

/// Writes the image of `fields`, whose size is `size`, at `offset`, a granule, outside of any record.
pub(crate) fn write_fields(
    view: &View<'_>,
    offset: usize,
    fields: &[Field<'_>],
    size: image::Size,
) {
    if let Some(target) = view.fresh(offset, size.bytes) {
        image::write(fields, 0, size.wide, &mut Target(target));
    }
}

/// Where a short image is written to: the window that is there already, so that its places need no check where they are
/// known when the caller is compiled.
struct ShortTarget<'m>(Header<'m>);

impl image::Write for ShortTarget<'_> {
    #[inline(always)]
    fn word(&mut self, index: usize, word: u64) {
        self.0.init64(IMAGE + 8 * index, word);
    }

    #[inline(always)]
    fn bytes(&mut self, at: usize, bytes: &[u8]) {
        if bytes.len() <= 8 && at.is_multiple_of(8) {
            if !bytes.is_empty() {
                self.word(at / 8, padded_word(bytes));
            }
        } else {
            Target(self.0.rest(IMAGE)).long(at, bytes);
        }
    }
}

/// Where an image is written to.
struct Target<'m>(Fresh<'m>);

impl image::Write for Target<'_> {
    #[inline]
    fn word(&mut self, index: usize, word: u64) {
        self.0.init(index, word);
    }

    #[inline]
    fn bytes(&mut self, at: usize, bytes: &[u8]) {
        if bytes.len() <= 8 && at.is_multiple_of(8) {
            if !bytes.is_empty() {
                self.word(at / 8, padded_word(bytes));
            }
        } else {
            self.long(at, bytes);
        }
    }
}

impl Target<'_> {
    /// What is no single word: the words, then the padding with the last bytes in it.
    #[inline(never)]
    fn long(&self, at: usize, bytes: &[u8]) {
        if !at.is_multiple_of(8) {
            // The second piece of an encoding.
            self.0.copy_in_at(at, bytes);
            let end = at + bytes.len();
            self.0.copy_in_at(end, &[0; 8][..end.next_multiple_of(8) - end]);
            return;
        }
        let (words, rest) = bytes.split_at(bytes.len() / 8 * 8);
        self.0.copy_in_at(at, words);
        if !rest.is_empty() {
            self.0.init((at + words.len()) / 8, padded_word(rest));
        }
    }
}

/// Up to eight bytes as a word, the rest zeros. Two or three loads that may overlap cover any length, and where
/// they do they agree.
#[inline(always)]
fn padded_word(chunk: &[u8]) -> u64 {
    match *chunk {
        [] => 0,
        [a, b, c, d, ref rest @ ..] => {
            let low = u64::from(u32::from_le_bytes([a, b, c, d]));
            let last = chunk.last_chunk::<4>().map_or(0, |last| u32::from_le_bytes(*last));
            low | u64::from(last) << (8 * rest.len().min(4))
        }
        [first, ..] => {
            let (middle, last) = (chunk.len() / 2, chunk.len() - 1);
            let at = |index: usize| u64::from(chunk[index]) << (8 * index);
            u64::from(first) | at(middle) | at(last)
        }
    }
}

/// The shape of a record, and whether its image is wide.
#[inline]
pub(crate) fn shape_of(header: Header<'_>) -> (u32, bool) {
    let word = header.load(SHAPE);
    (word & SHAPE_NUMBER, is_wide(word))
}

/// Whether a record whose shape and marks are in `word` has a wide image.
#[inline(always)]
pub(crate) fn is_wide(word: u32) -> bool {
    word & WIDE != 0
}

/// Whether the extension of the record with this header is freed with its block.
#[inline]
pub(crate) fn is_extended_inside(header: Header<'_>) -> bool {
    header.load(SHAPE) & EXTENDED_INSIDE != 0
}

/// The bytes of the image, bounded by the block it lies in.
#[inline]
pub(crate) fn image_bytes(header: Header<'_>) -> usize {
    header.load(IMAGE_BYTES) as usize
}

/// Whether the image is copied inside of the critical section.
#[inline]
pub(crate) fn is_short(header: Header<'_>) -> bool {
    image_bytes(header) <= ImageBuffer::SHORT_BYTES
}

/// Whether the record, whose image may be wide, looks like `patterns`. The kinds fit already: the shape was chosen by
/// them; there may be fewer patterns than fields (rule M1).
pub(crate) fn matches(
    view: &View<'_>,
    (record, is_wide): (Record<'_>, bool),
    kinds: &[Kind],
    patterns: &[PatternRef<'_>],
) -> bool {
    patterns.iter().enumerate().all(|(index, pattern)| match pattern {
        PatternRef::Kinds(_) => true,
        PatternRef::Actual(actual) => is(view, (record, is_wide), kinds, index, actual),
        PatternRef::Test(_) => matches_copy(view, record.reference, kinds, index, pattern),
    })
}

/// As [`matches()`], if there are no predicates.
#[inline(always)]
pub(crate) fn matches_fixed<'m>(
    view: &View<'m>,
    (record, is_wide): (Record<'m>, bool),
    kinds: &[Kind],
    patterns: &[PatternRef<'_>],
) -> bool {
    few::each(patterns, &mut Fixed { view, record: (record, is_wide), kinds })
}

/// Whether a record has the fields that patterns fix.
struct Fixed<'r, 'm> {
    view: &'r View<'m>,
    record: (Record<'m>, bool),
    kinds: &'r [Kind],
}

impl Ask<PatternRef<'_>> for Fixed<'_, '_> {
    #[inline(always)]
    fn ask(&mut self, index: usize, pattern: &PatternRef<'_>) -> bool {
        match pattern {
            PatternRef::Actual(actual) => is(self.view, self.record, self.kinds, index, actual),
            PatternRef::Kinds(_) | PatternRef::Test(_) => true,
        }
    }
}

/// Whether the fields in `mask` are those of `actuals`, whose kinds they have.
pub(crate) fn matches_actuals(
    view: &View<'_>,
    reference: u32,
    actuals: &TupleView<'_>,
    mask: u32,
) -> bool {
    let record = at(view, reference);
    let (_, is_wide) = shape_of(record.header);
    bits(mask).all(|index| {
        let actual = actuals.field(index);
        actual.is_some_and(|actual| is(view, (record, is_wide), actuals.kinds(), index, &actual))
    })
}

/// The numbers of the bits in `mask`.
#[inline]
pub(crate) fn bits(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let first = (left != 0).then(|| left.trailing_zeros() as usize);
        // Without the lowest bit that is set.
        left &= left.wrapping_sub(1);
        first
    })
}

/// Whether field `index` is `actual`, whose kind it has.
#[inline(always)]
fn is(
    view: &View<'_>,
    (record, is_wide): (Record<'_>, bool),
    kinds: &[Kind],
    index: usize,
    actual: &Field<'_>,
) -> bool {
    let slot = image_word(view, record, index);
    // What most keys are made of first: two comparisons, not a jump through a table.
    match actual {
        Field::Int(value) if !is_wide => slot == value.cast_unsigned(),
        Field::Str(text) => same_bytes(view, record, slot, text.as_bytes()),
        // A copy, so that the caller keeps its field (see `few`).
        other => is_rarer(view, record, kinds, (index, slot), &{ *other }),
    }
}

/// As [`is`], for a field of a kind that is seldom in a key, with its eight bytes.
#[cold] // As a rule: what is kept in registers for others is worth more.
#[inline(never)]
fn is_rarer(
    view: &View<'_>,
    record: Record<'_>,
    kinds: &[Kind],
    (index, slot): (usize, u64),
    actual: &Field<'_>,
) -> bool {
    match actual {
        Field::Null => true,
        Field::Bool(value) => slot == u64::from(*value),
        Field::Float(value) => Field::Float(f64::from_bits(slot)).same(&Field::Float(*value)),
        Field::Str(text) => same_bytes(view, record, slot, text.as_bytes()),
        Field::Bytes(data) => same_bytes(view, record, slot, data),
        Field::Int(_) | Field::Encoded(_) => {
            matches_copy(view, record.reference, kinds, index, &PatternRef::Actual(*actual))
        }
    }
}

/// Compares bytes in the heap with `bytes`, a word at a time; both are padded with zeros.
#[inline(always)]
fn same_bytes(view: &View<'_>, record: Record<'_>, slot: u64, bytes: &[u8]) -> bool {
    #[expect(clippy::cast_possible_truncation, reason = "the low half of the slot is the offset")]
    let first = slot as u32 as usize / 8;
    if (slot >> 32) as usize != bytes.len() {
        return false;
    }
    match bytes.len() {
        0 => true,
        1..=8 => image_word(view, record, first) == padded_word(bytes),
        _ => same_long_bytes(view, record, first, bytes),
    }
}

#[cold] // As a rule: what is kept in registers for others is worth more.
#[inline(never)]
fn same_long_bytes(view: &View<'_>, record: Record<'_>, first: usize, bytes: &[u8]) -> bool {
    bytes
        .chunks(8)
        .enumerate()
        .all(|(index, chunk)| image_word(view, record, first + index) == padded_word(chunk))
}

/// Double word number `index` of the image: in the window that is there already, or beyond it.
#[inline(always)]
fn image_word(view: &View<'_>, record: Record<'_>, index: usize) -> u64 {
    if index < (WINDOW_BYTES - IMAGE) / 8 {
        record.header.load64(IMAGE + 8 * index)
    } else {
        late_image_word(view, record, index)
    }
}

#[cold] // As a rule: what is kept in registers for others is worth more.
#[inline(never)]
fn late_image_word(view: &View<'_>, record: Record<'_>, index: usize) -> u64 {
    let start = record.reference as usize * GRANULE + IMAGE;
    let word: Span<'_, 8> = view.span(start + 8 * index);
    word.load64(0)
}

/// Whether field `index` fits `pattern`, on a copy: what is compared must not change meanwhile.
#[cold]
fn matches_copy(
    view: &View<'_>,
    reference: u32,
    kinds: &[Kind],
    index: usize,
    pattern: &PatternRef<'_>,
) -> bool {
    let mut copy = ImageBuffer::new();
    let tuple = copy.copy(view, reference, kinds);
    tuple.field(index).is_some_and(|field| pattern.matches(&field))
}

/// A place for a copy of an image.
pub(crate) struct ImageBuffer(CopyBuffer);

impl ImageBuffer {
    /// Images up to this size are copied inside the critical section; copying them takes about as long as
    /// the section itself.
    pub(crate) const SHORT_BYTES: usize = CopyBuffer::SHORT_BYTES;

    /// An empty buffer.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self(CopyBuffer::new())
    }

    /// Copies the image of the record at `reference`, whose fields have `kinds`.
    #[inline]
    pub(crate) fn copy<'b>(
        &'b mut self,
        view: &View<'_>,
        reference: u32,
        kinds: &'b [Kind],
    ) -> TupleView<'b> {
        self.copy_of(view, at(view, reference), kinds)
    }

    /// Copies the image of `record`, whose fields have `kinds`.
    #[inline(always)]
    pub(crate) fn copy_of<'b>(
        &'b mut self,
        view: &View<'_>,
        record: Record<'_>,
        kinds: &'b [Kind],
    ) -> TupleView<'b> {
        self.copy_sized(view, record, image_bytes(record.header), kinds)
    }

    /// As [`ImageBuffer::copy_of`], of an image of `bytes`: without the lock the record says perhaps something else by now.
    #[inline(always)]
    pub(crate) fn copy_sized<'b>(
        &'b mut self,
        view: &View<'_>,
        record: Record<'_>,
        bytes: usize,
        kinds: &'b [Kind],
    ) -> TupleView<'b> {
        const WINDOW_IMAGE_BYTES: usize = WINDOW_BYTES - IMAGE;
        let (_, is_wide) = shape_of(record.header);
        let image = if bytes <= WINDOW_IMAGE_BYTES {
            self.0.copy_window(record.header.part::<WINDOW_IMAGE_BYTES>(IMAGE), bytes)
        } else {
            self.0.copy(view, record.reference as usize * GRANULE + IMAGE, bytes)
        };
        TupleView::new(kinds, image, is_wide)
    }

    /// The image that was copied last; empty if there was none.
    #[inline]
    pub(crate) fn copied(&self) -> &[u8] {
        self.0.copied()
    }
}

/// Bytes of a large image that are copied at once: a few microseconds.
const COPY_BYTES: usize = 64 << 10;

/// Copies the large image of a record that nobody holds, which may go meanwhile; `None` if `is_same` says on the way that
/// it has gone.
pub(crate) fn copy_large_image(
    view: &View<'_>,
    (reference, bytes): (u32, usize),
    is_same: impl Fn() -> bool,
) -> Option<Vec<u8>> {
    let start = reference as usize * GRANULE + IMAGE;
    // The size is another process's word: it is checked before anything is allocated for it.
    if !view.reaches(start, bytes) {
        return None;
    }
    let mut image = vec![0; bytes];
    for (number, part) in image.chunks_mut(COPY_BYTES).enumerate() {
        if !is_same() {
            return None;
        }
        view.copy_out(start + number * COPY_BYTES, part);
    }
    Some(image)
}

/// Whether a match is taken in hand, and copied after the section rather than in it. Large ones are, so that others do not
/// wait for the copy. Those that the visitor may be unable to represent are, so that they can go back.
#[inline]
pub(crate) fn must_be_held(header: Header<'_>, is_refusable: bool) -> bool {
    !is_short(header) || is_refusable
}

/// Copies the image of one record into another that has room for it.
pub(crate) fn copy_image(view: &View<'_>, from: u32, to: u32) {
    let bytes = image_bytes(header(view, from));
    let place = |reference: u32| reference as usize * GRANULE + IMAGE;
    view.copy_across(place(from), place(to), bytes.next_multiple_of(8));
}
