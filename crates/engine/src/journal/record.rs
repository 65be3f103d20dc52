//! The bytes of a record in the ring: eight bytes a word, as the machine stores them.
//!
//! | words | what |
//! |---:|---|
//! | 1 | bytes of the record; how many changes |
//! | | and for each change: |
//! | 1 | its kind; its bytes, this word included |
//! | 1 | the id of the tuple (of one that is visible: its new id) |
//! | put | shape, and whether the image is wide; bytes of the image; then the terms and the image |
//! | visible | the id until now; then the terms |
//! | lease | the terms |
//! | attempts | how many have failed; 1 if it is dead; then why, as the block of the tuple has it |
//! | shared | the number of the other segment, its upper half in the place of the id |
//! | answered | the key, its upper half in the place of the id; whose it is; the answer |
//!
//! Terms are two words, in milliseconds of the monotonic clock: from when on, and until when; 0 for neither.

use tupelo_shm::{GRANULE, Note, View};
use tupelo_tuple::TupleView;

use crate::base::clock;
use crate::base::error::Error;
use crate::journal::ring::{Ring, Writer};
use crate::store::change::{Attempts, Change, Kept, KeptTerms};
use crate::store::changes::Kind;
use crate::store::extension::{self, ATTEMPTS, HISTORY, LEASE_END_MS};
use crate::store::keys::{RequestKey, halves, joined};
use crate::store::record::{self, Record, SEQUENCE, STATE};
use crate::store::{self, Store, history, registry};
use crate::time::wheel;

const WORD: usize = 8;
/// Words of every change.
const CHANGE_WORDS: usize = 2;
/// Bytes of what a request was answered.
const ANSWERED_BYTES: usize = (CHANGE_WORDS + 3) * WORD;
/// Bytes of the number of another segment.
const SHARED_BYTES: usize = (CHANGE_WORDS + 1) * WORD;

/// What a record tells of.
#[derive(Clone, Copy)]
pub(crate) struct Told<'n> {
    /// The changes.
    pub(crate) notes: &'n [Note],
    /// The request that is answered with them, and what.
    pub(crate) answered: Option<RequestKey>,
    /// The segments with which the step is shared.
    pub(crate) shared: &'n [u128],
}

/// What a record takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Its bytes.
    pub(crate) bytes: u64,
    /// What it leaves to others.
    pub(crate) leaves: Leaves,
}

/// What a record leaves of the ring to others, which can not wait as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// The reserve: tuples come with it.
    Reserve,
    /// What takes have that looked for room before.
    Takes,
    /// Nothing: it is a take that has looked.
    Nothing,
}

impl Size {
    /// What a record takes, of a take that `has_looked` for room, or of anything else.
    pub(crate) fn of(view: &View<'_>, told: Told<'_>, has_looked: bool) -> Self {
        let Told { notes, answered, shared } = told;
        let of_one = |note: &Note| change_bytes(view, note) as u64;
        let beside = answered.map_or(0, |_| ANSWERED_BYTES) + shared.len() * SHARED_BYTES;
        let bytes = (WORD + beside) as u64 + notes.iter().map(of_one).sum::<u64>();
        let leaves = if has_looked {
            Leaves::Nothing
        } else if notes.iter().any(|note| note.kind == Kind::Put.number()) {
            Leaves::Reserve
        } else {
            Leaves::Takes
        };
        Self { bytes, leaves }
    }
}

/// Bytes of one change.
fn change_bytes(view: &View<'_>, note: &Note) -> usize {
    let words = CHANGE_WORDS * WORD;
    match Kind::of_number(note.kind) {
        Some(Kind::Put) => words + 3 * WORD + image_bytes(record::at(view, note.reference)),
        Some(Kind::Visible) => words + 3 * WORD,
        Some(Kind::Lease) => words + 2 * WORD,
        Some(Kind::Attempts) => {
            words
                + WORD
                + reasons(view, record::at(view, note.reference)).map_or(0, |(_, bytes)| bytes)
        }
        Some(Kind::Taken | Kind::Answered | Kind::Shared) | None => words,
    }
}

/// Bytes that the image of a record has in the ring.
fn image_bytes(record: Record<'_>) -> usize {
    record::image_bytes(record.header).next_multiple_of(WORD)
}

/// Where the reasons of failed attempts stand, and their bytes in the ring; `None` if there are none.
fn reasons(view: &View<'_>, record: Record<'_>) -> Option<(usize, usize)> {
    let block = extension::of(view, record.header)?.load(HISTORY);
    let bytes =
        (block != 0).then(|| history::block_bytes(view, block).min(history::BLOCK_BYTES_MAX))?;
    Some((block as usize * GRANULE, bytes.next_multiple_of(WORD)))
}

/// Writes a record behind the end of the ring.
pub(crate) fn write<'m>(view: &View<'m>, ring: Ring<'m>, told: Told<'_>, size: Size) {
    let Told { notes, answered, shared } = told;
    let mut writer = Writer::new(view, ring);
    let half = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let changes = notes.len() + usize::from(answered.is_some()) + shared.len();
    writer.pair(u32::try_from(size.bytes).unwrap_or(u32::MAX), half(changes));
    for with in shared {
        writer.pair(Kind::Shared.number(), half(SHARED_BYTES));
        let (upper, lower) = halves(*with);
        for word in [upper, lower] {
            writer.word(word);
        }
    }
    for note in notes {
        writer.pair(note.kind, half(change_bytes(view, note)));
        write_change(view, &mut writer, note);
    }
    if let Some(request) = answered {
        writer.pair(Kind::Answered.number(), half(ANSWERED_BYTES));
        let (upper, lower) = halves(request.key);
        for word in [upper, lower, request.who, request.answer] {
            writer.word(word);
        }
    }
}

fn write_change<'m>(view: &View<'m>, writer: &mut Writer<'_, 'm>, note: &Note) {
    let Some(kind) = Kind::of_number(note.kind) else { return writer.word(note.number) };
    if kind == Kind::Taken {
        return writer.word(note.number);
    }
    let record = record::at(view, note.reference);
    match kind {
        Kind::Attempts | Kind::Lease => writer.word(note.number),
        _ => writer.word(record.header.load64(SEQUENCE)),
    }
    match kind {
        Kind::Put => {
            let (shape, is_wide) = record::shape_of(record.header);
            let image_bytes = u32::try_from(record::image_bytes(record.header)).unwrap_or(0);
            writer.pair(shape | if is_wide { record::WIDE } else { 0 }, image_bytes);
            write_terms(view, writer, record);
            writer
                .copy(note.reference as usize * GRANULE + record::IMAGE, self::image_bytes(record));
        }
        Kind::Visible => {
            writer.word(note.number);
            write_terms(view, writer, record);
        }
        Kind::Lease => write_terms(view, writer, record),
        Kind::Attempts => {
            let failed = extension::of(view, record.header).map_or(0, |one| one.load(ATTEMPTS));
            writer.pair(failed, u32::from(record.header.load(STATE) == record::DEAD));
            if let Some((from, bytes)) = reasons(view, record) {
                writer.copy(from, bytes);
            }
        }
        Kind::Taken | Kind::Answered | Kind::Shared => {}
    }
}

/// When the tuple of a record is there.
fn write_terms<'m>(view: &View<'m>, writer: &mut Writer<'_, 'm>, record: Record<'m>) {
    let (from_ms, until_ms) = moments(view, record);
    writer.word(from_ms);
    writer.word(until_ms);
}

/// From when on the tuple of a record is there, and until when, in milliseconds of the monotonic clock; 0 for neither.
fn moments(view: &View<'_>, record: Record<'_>) -> (u64, u64) {
    let Some(extension) = extension::of(view, record.header) else { return (0, 0) };
    let lease_ms = extension.load64(LEASE_END_MS);
    if record.header.load(STATE) != record::DELAYED {
        return (0, lease_ms);
    }
    let visible_ms = wheel::due_ms(view, record.reference);
    // Before a tuple is visible, that is how long its lease will be.
    (visible_ms, if lease_ms == 0 { 0 } else { visible_ms.saturating_add(lease_ms) })
}

/// What is known of a tuple that is there, beside its fields.
pub(crate) fn kept(view: &View<'_>, record: Record<'_>) -> Kept {
    let attempts = extension::of(view, record.header).map(|extension| Attempts {
        failed: extension.load(ATTEMPTS),
        is_dead: record.header.load(STATE) == record::DEAD,
        reasons: history::read(view, extension.load(HISTORY)),
    });
    Kept {
        id: record.header.load64(SEQUENCE),
        terms: terms_of(moments(view, record)),
        attempts: attempts.unwrap_or_default(),
    }
}

/// The same by the wall clock.
fn terms_of((from_ms, until_ms): (u64, u64)) -> KeptTerms {
    let moment = |ms: u64| (ms != 0).then(|| clock::wall_ns_of(ms));
    KeptTerms { hidden_until_ns: moment(from_ms), ends_at_ns: moment(until_ms) }
}

/// Reads the words of a record that was copied out of the ring.
pub(crate) struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.bytes.split_first_chunk::<WORD>()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*word))
    }

    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    fn pair(&mut self) -> Option<(u32, u32)> {
        self.word().map(|word| (word as u32, (word >> 32) as u32))
    }

    fn part(&mut self, bytes: usize) -> Option<&'b [u8]> {
        let (part, rest) = self.bytes.split_at_checked(bytes)?;
        self.bytes = rest;
        Some(part)
    }
}

/// How many bytes the record has that begins with this word, if it may be one.
pub(crate) fn bytes_of(first: [u8; WORD]) -> Option<u64> {
    let bytes = u64::from(Reader { bytes: &first }.pair()?.0);
    (bytes >= WORD as u64 && bytes.is_multiple_of(WORD as u64)).then_some(bytes)
}

/// Tells `visit` of the changes in a record that was copied out of the ring.
///
/// # Errors
///
/// Damage, and what `visit` says.
pub(crate) fn read<E: From<Error>>(
    store: &Store,
    view: &View<'_>,
    bytes: &[u8],
    mut visit: impl FnMut(Change<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let damaged = || store::damaged(store, "a record of the journal makes no sense");
    let mut all = Reader { bytes };
    let (_, count) = all.pair().ok_or_else(damaged)?;
    for _ in 0..count {
        let (kind, bytes) = all.pair().ok_or_else(damaged)?;
        let kind = Kind::of_number(kind).ok_or_else(damaged)?;
        let bytes = (bytes as usize).checked_sub(WORD).ok_or_else(damaged)?;
        let mut reader = Reader { bytes: all.part(bytes).ok_or_else(damaged)? };
        let mut visited = None;
        let understood = read_change(store, view, kind, &mut reader, |change| {
            visited = Some(visit(change));
        });
        understood.ok_or_else(damaged)?;
        visited.ok_or_else(damaged)??;
    }
    Ok(())
}

/// Tells `tell` of one change; `None` if there is none.
fn read_change(
    store: &Store,
    view: &View<'_>,
    kind: Kind,
    reader: &mut Reader<'_>,
    visitor: impl FnOnce(Change<'_>),
) -> Option<()> {
    let id = reader.word()?;
    let change = match kind {
        Kind::Taken => Change::Taken { id },
        Kind::Lease => Change::Lease { id, terms: read_terms(reader)? },
        Kind::Visible => {
            let before = reader.word()?;
            Change::Visible { id: before, new_id: id, terms: read_terms(reader)? }
        }
        Kind::Attempts => {
            let (failed, is_dead) = reader.pair()?;
            let reasons = history::of_block(reader.bytes);
            let attempts = Attempts { failed, is_dead: is_dead != 0, reasons };
            Change::Attempts { id, attempts }
        }
        Kind::Shared => Change::Shared { with: joined(id, reader.word()?) },
        Kind::Answered => {
            let key = joined(id, reader.word()?);
            Change::Answered(RequestKey { key, who: reader.word()?, answer: reader.word()? })
        }
        Kind::Put => {
            let (shape, image_bytes) = reader.pair()?;
            let terms = read_terms(reader)?;
            let image = reader.part(image_bytes as usize)?;
            let kinds = registry::kinds_of(store, view, shape & !record::WIDE)?;
            let tuple = TupleView::new(kinds.as_slice(), image, record::is_wide(shape));
            visitor(Change::Put { id, tuple: tuple.of_class(kinds.class()), terms });
            return Some(());
        }
    };
    visitor(change);
    Some(())
}

fn read_terms(reader: &mut Reader<'_>) -> Option<KeptTerms> {
    Some(terms_of((reader.word()?, reader.word()?)))
}
