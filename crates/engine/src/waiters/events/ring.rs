//! The ring of a subscription: the events that wait for it, oldest first, in memory of its own.
//!
//! A block, whose first granule is the allocator's. The second has the ring's words, which belong to the lock that the
//! subscription's wait node is in the wait queue under. Behind it lie the events, each in one piece, of a multiple of eight
//! bytes:
//!
//! | bytes | ring | | bytes | event |
//! |---:|---|-|---:|---|
//! | 0 | bytes for events | | 0 | its bytes; 0: the rest of the ring is skipped |
//! | 4 | most events | | 4 | kind; shape from bit 8; bit 31: the image is wide |
//! | 8, 12 | where the oldest begins, where the next will | | 8 | sequence number (two words) |
//! | 16 | events that wait | | 16 | bytes of the image |
//! | 20 | bytes of a tuple that is larger than the ring, 0 if none was | | 24 | the image |
//! | 24 | sequence number of the next event (two words) | | | |
//! | 32 | sequence number of the last one that was taken out (two words) | | | |
//! | 40 | events that were dropped (two words) | | | |
//! | 48.. | section that appended last, and the oldest, the next and the count before it | | | |
//!
//! An event is written without the log, where an undo of this section would leave nothing (R2). It is never written
//! over one that was there when the section began, also if it is dropped by now. The last four words remember what was
//! there, and mean nothing to any other section. So a section that appends events commits once.

use tupelo_shm::{CopyBuffer, GRANULE, Section, Span, View};

use crate::base::error::{Error, Need};
use crate::store::record::{self, Record};
use crate::time::wheel::{halves, set64};
use crate::waiters::events::EventKind;
use crate::waiters::{RING, SCOPE, WaitNode};

const DATA_BYTES: usize = 0;
const EVENTS_MAX: usize = 4;
const HEAD: usize = 8;
const TAIL: usize = 12;
const COUNT: usize = 16;
const TOO_LARGE: usize = 20;
const NEXT: usize = 24;
const GIVEN: usize = 32;
const DROPPED: usize = 40;
const SEEN_SECTION: usize = 48;
const SEEN_HEAD: usize = 52;
const SEEN_TAIL: usize = 56;
const SEEN_COUNT: usize = 60;

/// An event's words before its image.
type Event<'m> = Span<'m, { EVENT_BYTES as usize }>;
/// Bytes of an event before its image.
const EVENT_BYTES: u32 = 24;
const BYTES: usize = 0;
const WHAT: usize = 4;
const SEQUENCE: usize = 8;
const IMAGE_BYTES: usize = 16;
const SHAPE_SHIFT: u32 = 8;
const SHAPE_NUMBER: u32 = 0xffff;
const WIDE: u32 = 1 << 31;

/// Bytes of a ring before its events: its words.
const HEADER_BYTES: usize = GRANULE;
/// Bytes of its block before the ring.
const BLOCK_HEADER_BYTES: usize = GRANULE;

/// Bytes of the smallest block with room for an event of a tuple of so many.
pub(crate) fn bytes_for(image_bytes: u32) -> u64 {
    let event_bytes = u64::from(EVENT_BYTES) + u64::from(image_bytes).next_multiple_of(8);
    (BLOCK_HEADER_BYTES + HEADER_BYTES) as u64 + event_bytes
}
/// Words that an event changes: where the oldest and the next begin, how many wait, two words each for the next
/// number and the dropped ones.
pub(crate) const APPEND_WORDS: usize = 7;
/// The part of a ring that is made free at once when its bytes are short.
const SHARE: u32 = 8;

/// A ring, as a window on its words.
#[derive(Clone, Copy)]
pub(crate) struct Ring<'m> {
    words: Span<'m, GRANULE>,
    /// Where its events lie.
    start: usize,
    bytes: u32,
}

/// Which part of a ring has events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    head: u32,
    tail: u32,
    count: u32,
}

impl Extent {
    /// Whether some of its events lie in `bytes` bytes from `at`.
    fn touches(self, at: u32, bytes: u32) -> bool {
        let end = at + bytes;
        match self {
            Self { count: 0, .. } => false,
            Self { head, tail, .. } if head < tail => at < tail && head < end,
            Self { head, tail, .. } => at < tail || head < end,
        }
    }
}

/// An event as it lies in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) kind: EventKind,
    pub(crate) shape: u32,
    pub(crate) wide: bool,
    pub(crate) sequence: u64,
    /// Events since the last one that was taken out, which were dropped.
    pub(crate) missed: u64,
    /// Where its image begins in the segment, and how long it is.
    image: (usize, usize),
}

impl Waiting {
    /// Copies its image.
    pub(crate) fn copy<'b>(&self, buffer: &'b mut CopyBuffer, view: &View<'_>) -> &'b [u8] {
        let (start, bytes) = self.image;
        buffer.copy(view, start, bytes)
    }
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Appended {
    /// The ring was empty: its owner may sleep.
    First,
    /// Its owner knows of others already.
    Behind,
}

/// Fills the words of a ring at `granule`, the second of a block of so many bytes, that nobody can reach yet.
pub(crate) fn fill(view: &View<'_>, granule: u32, block_bytes: usize, events_max: u32) {
    let bytes = block_bytes - BLOCK_HEADER_BYTES - HEADER_BYTES;
    let words: Span<'_, GRANULE> = view.at(granule);
    for word in (0..GRANULE).step_by(8) {
        words.init64(word, 0);
    }
    words.init(DATA_BYTES, u32::try_from(bytes).unwrap_or(u32::MAX) & !7);
    words.init(EVENTS_MAX, events_max);
    words.init64(NEXT, 1);
}

impl<'m> Ring<'m> {
    /// The ring of a subscription's wait node; `None` if it has none, or a damaged one, of which the view knows.
    pub(crate) fn of(view: &View<'m>, node: WaitNode<'_>) -> Option<Self> {
        let granule = node.load(RING);
        if granule == 0 {
            return None;
        }
        let words: Span<'m, GRANULE> = view.at(granule);
        let (start, bytes) = (granule as usize * GRANULE + HEADER_BYTES, words.load(DATA_BYTES));
        let ring = Self { words, start, bytes };
        let Extent { head, tail, count } = ring.extent();
        if head > bytes || tail > bytes || count > bytes / EVENT_BYTES {
            view.violate();
            return None;
        }
        view.reaches(start, bytes as usize).then_some(ring)
    }

    /// How many events wait.
    pub(crate) fn count(self) -> u32 {
        self.words.load(COUNT)
    }

    /// How many may.
    pub(crate) fn events_max(self) -> u32 {
        self.words.load(EVENTS_MAX)
    }

    /// Bytes of its block, all told.
    pub(crate) fn bytes(self) -> usize {
        BLOCK_HEADER_BYTES + HEADER_BYTES + self.bytes as usize
    }

    /// How many events were dropped since the subscription began.
    pub(crate) fn dropped(self) -> u64 {
        self.words.load64(DROPPED)
    }

    /// Appends an event of a record; the oldest are dropped if there are too many. One that is larger than the ring is
    /// missed. The section is directed to the lock of the ring.
    ///
    /// # Errors
    ///
    /// [`Need::EventRoom`] if it would lie where events were when this section began.
    pub(crate) fn append(
        self,
        section: &mut Section<'m>,
        number: u32,
        record: Record<'_>,
        kind: EventKind,
    ) -> Result<Appended, Error> {
        let image_bytes = record::image_bytes(record.header).next_multiple_of(8);
        let size = u32::try_from(EVENT_BYTES as usize + image_bytes).unwrap_or(u32::MAX);
        let before = self.extent();
        if size > self.bytes {
            self.miss(section, record.header.load(record::IMAGE_BYTES));
            return Ok(if before.count == 0 { Appended::First } else { Appended::Behind });
        }
        let seen = self.seen(section);
        let (mut extent, mut dropped) = (before, 0);
        let place = loop {
            let has_place = extent.count < self.events_max() || extent.count == 0;
            match self.place(extent, size).filter(|_| has_place) {
                Some(place) => break place,
                None => extent = self.without_first(section.view(), extent)?,
            }
            dropped += 1;
        };
        let skips = place != extent.tail && extent.count != 0 && extent.tail != self.bytes;
        if seen.touches(place, size) || skips && seen.touches(extent.tail, 8) {
            return Err(Need::EventRoom { node: number, bytes: size }.into());
        }
        if skips {
            self.size_word(section.view(), extent.tail).init(BYTES, 0);
        }
        self.write(section.view(), (place, size), record, kind);
        let head = if extent.count == 0 { place } else { extent.head };
        let after = Extent { head, tail: place + size, count: extent.count + 1 };
        self.store(section, (before, after), dropped);
        Ok(if before.count == 0 { Appended::First } else { Appended::Behind })
    }

    /// The oldest event, if there is one.
    pub(crate) fn first(self, view: &View<'m>) -> Option<Waiting> {
        let extent = self.extent();
        if extent.count == 0 {
            return None;
        }
        let given = self.words.load64(GIVEN);
        let (waiting, _) = self.at(view, extent.head)?;
        let missed = waiting.sequence.wrapping_sub(given).wrapping_sub(1);
        Some(Waiting { missed, ..waiting })
    }

    /// Takes the oldest event out, of which there is one.
    pub(crate) fn remove_first(self, section: &mut Section<'m>) -> Result<(), Error> {
        let extent = self.extent();
        let Some((waiting, _)) = self.at(section.view(), extent.head) else { return Ok(()) };
        let after = self.without_first(section.view(), extent)?;
        section.set(self.words, HEAD, after.head);
        section.set(self.words, COUNT, after.count);
        set64(section, self.words, GIVEN, waiting.sequence);
        Ok(())
    }

    /// Takes note that a tuple was too large, if one was. Returns its bytes.
    pub(crate) fn take_too_large(self, section: &mut Section<'m>) -> Option<u32> {
        let bytes = self.words.load(TOO_LARGE);
        if bytes == 0 {
            return None;
        }
        section.set(self.words, TOO_LARGE, 0);
        Some(bytes)
    }

    /// Whether there is something for its owner.
    pub(crate) fn has_something(self) -> bool {
        self.count() != 0 || self.words.load(TOO_LARGE) != 0
    }

    /// Drops the oldest events until at least `bytes` bytes are free that were not, in a section that appends nothing.
    pub(crate) fn make_room(self, section: &mut Section<'m>, bytes: u32) -> Result<(), Error> {
        let before = self.extent();
        let (mut extent, mut freed, mut dropped) = (before, 0, 0);
        while extent.count != 0 && freed < bytes.max(self.bytes / SHARE) {
            let size = self.at(section.view(), extent.head).map_or(0, |(_, size)| size);
            extent = self.without_first(section.view(), extent)?;
            freed = freed.saturating_add(size);
            dropped += 1;
        }
        section.set(self.words, HEAD, extent.head);
        section.set(self.words, COUNT, extent.count);
        self.count_dropped(section, dropped);
        Ok(())
    }

    /// The events that wait, oldest first, with the bytes that each takes; ends at one that is damaged.
    pub(crate) fn all(self, view: &View<'m>) -> Vec<(Waiting, u32)> {
        let mut extent = self.extent();
        let mut all = Vec::new();
        while extent.count != 0 {
            let (Some(one), Ok(rest)) =
                (self.at(view, extent.head), self.without_first(view, extent))
            else {
                break;
            };
            all.push(one);
            extent = rest;
        }
        all
    }

    /// The sequence number of the next event.
    pub(crate) fn next(self) -> u64 {
        self.words.load64(NEXT)
    }

    fn extent(self) -> Extent {
        let word = |at| self.words.load(at);
        Extent { head: word(HEAD), tail: word(TAIL), count: word(COUNT) }
    }

    /// What was in the ring when this section began.
    fn seen(self, section: &Section<'m>) -> Extent {
        let section_number = section.view().section_number(section.focused());
        let words = self.words;
        if words.load(SEEN_SECTION) != section_number {
            let now = self.extent();
            words.init(SEEN_HEAD, now.head);
            words.init(SEEN_TAIL, now.tail);
            words.init(SEEN_COUNT, now.count);
            words.init(SEEN_SECTION, section_number);
            return now;
        }
        let word = |at| words.load(at);
        Extent { head: word(SEEN_HEAD), tail: word(SEEN_TAIL), count: word(SEEN_COUNT) }
    }

    /// Where an event of `size` bytes can lie behind the others, if it can.
    fn place(self, extent: Extent, size: u32) -> Option<u32> {
        let Extent { head, tail, count } = extent;
        if count != 0 && tail <= head {
            return (head - tail >= size).then_some(tail);
        }
        if self.bytes.checked_sub(tail).is_some_and(|room| room >= size) {
            return Some(tail);
        }
        (count == 0 || size <= head).then_some(0)
    }

    /// What is left without the oldest event.
    ///
    /// # Errors
    ///
    /// If the ring is damaged; the view knows, too.
    fn without_first(self, view: &View<'m>, extent: Extent) -> Result<Extent, Error> {
        let Some((_, size)) = self.at(view, extent.head) else {
            return Err(tupelo_shm::Error::corrupted("an event is damaged").into());
        };
        let count = extent.count - 1;
        let mut head = extent.head + size;
        if head == self.bytes || count != 0 && self.size_word(view, head).load(BYTES) == 0 {
            head = 0;
        }
        Ok(Extent { head, count, ..extent })
    }

    /// The event at a place, and its bytes; `None`, and a violation, if it is none.
    fn at(self, view: &View<'m>, place: u32) -> Option<(Waiting, u32)> {
        let size = self.size_word(view, place).load(BYTES);
        if size < EVENT_BYTES {
            view.violate();
            return None;
        }
        let event: Event<'m> = self.window(view, place);
        let what = event.load(WHAT);
        let image_bytes = event.load(IMAGE_BYTES);
        let kind = EventKind::of_bit(what & 0xff);
        let fits = size.is_multiple_of(8)
            && place.checked_add(size).is_some_and(|end| end <= self.bytes)
            && image_bytes <= size - EVENT_BYTES;
        let Some(kind) = kind.filter(|_| fits) else {
            view.violate();
            return None;
        };
        let image = self.start + (place + EVENT_BYTES) as usize;
        let waiting = Waiting {
            kind,
            shape: what >> SHAPE_SHIFT & SHAPE_NUMBER,
            wide: what & WIDE != 0,
            sequence: event.load64(SEQUENCE),
            missed: 0,
            image: (image, image_bytes as usize),
        };
        Some((waiting, size))
    }

    /// A window on `N` bytes of the ring from a place, which may be any number.
    fn window<const N: usize>(self, view: &View<'m>, place: u32) -> Span<'m, N> {
        let place = place as usize;
        if place + N > self.bytes as usize {
            // Zeros that are nobody's.
            return view.at(0);
        }
        view.span(self.start + place)
    }

    /// The word that says how long the event at a place is, or that the ring goes on at its beginning.
    fn size_word(self, view: &View<'m>, place: u32) -> Span<'m, 8> {
        self.window(view, place)
    }

    /// Writes an event where nothing is.
    fn write(
        self,
        view: &View<'m>,
        (place, size): (u32, u32),
        Record { reference, header }: Record<'_>,
        kind: EventKind,
    ) {
        let (shape, wide) = record::shape_of(header);
        let event: Event<'m> = self.window(view, place);
        event.init(BYTES, size);
        event.init(WHAT, kind.bit() | shape << SHAPE_SHIFT | if wide { WIDE } else { 0 });
        event.init64(SEQUENCE, self.next());
        event.init64(IMAGE_BYTES, u64::from(header.load(record::IMAGE_BYTES)));
        let (from, to) = (reference as usize * GRANULE + record::IMAGE, place + EVENT_BYTES);
        view.copy_across(from, self.start + to as usize, (size - EVENT_BYTES) as usize);
    }

    /// Makes an event that was written part of the ring.
    fn store(self, section: &mut Section<'m>, (before, after): (Extent, Extent), dropped: u32) {
        let [next_low, next_high] = halves(self.next() + 1);
        section.set_words([
            (self.words.place(TAIL), after.tail),
            (self.words.place(COUNT), after.count),
            (self.words.place(NEXT), next_low),
        ]);
        if next_low == 0 {
            section.set(self.words, NEXT + 4, next_high);
        }
        if after.head != before.head {
            section.set(self.words, HEAD, after.head);
        }
        if dropped != 0 {
            self.count_dropped(section, dropped);
        }
    }

    /// Counts an event that has no place.
    #[cold]
    fn miss(self, section: &mut Section<'m>, image_bytes: u32) {
        section.set(self.words, TOO_LARGE, image_bytes);
        set64(section, self.words, NEXT, self.next() + 1);
        self.count_dropped(section, 1);
    }

    fn count_dropped(self, section: &mut Section<'m>, dropped: u32) {
        set64(section, self.words, DROPPED, self.dropped() + u64::from(dropped));
    }
}

/// Where the lock of a wait node's ring is.
pub(crate) fn scope_of(node: WaitNode<'_>) -> u32 {
    node.load(SCOPE)
}

const _: () = assert!(SEEN_COUNT + 4 == GRANULE);
