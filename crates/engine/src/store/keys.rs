//! The keys of requests, with what the requests were answered, in the segment: where they stand, and what a process keeps of them.
//!
//! There are a few rings of entries. A server has one, and the next server the next one: so the answers of a server that was
//! killed stay while its successors give theirs. In a ring the newest entry takes the place of the oldest.
//!
//! | bytes of an entry | what |
//! |---:|---|
//! | 0 | the key (two words of eight bytes, the upper one first) |
//! | 16 | whose key it is: a hash, so that nobody has the answer of another principal |
//! | 24 | what a put was answered |
//! | 32 | of a take: the scope of the partition and the record of what it has found, which is claimed; else 0 |
//! | 40 | the fence of that claim |
//!
//! | bytes of the head's line | what |
//! |---:|---|
//! | 0 | how many rings were given out, modulo 2^32 |
//! | 8 | of each ring, how many entries were ever written (two words each) |

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use tupelo_shm::{Section, Span, View};

use crate::base::error::{Error, Need};
use crate::base::layout::{self, head};

/// Rings of a space: so many servers, one after the other, leave their answers.
pub(crate) const RINGS: u32 = 4;
/// Entries of a ring.
pub(crate) const ENTRIES: u32 = 4096;
/// Answers of a ring that are known: at the place of the end there may be anything.
pub(crate) const KEPT_OF_RING: usize = ENTRIES as usize - 1;
/// Answers of an earlier life of the space that are known: the rings of the first server and of those before it.
pub const ANSWERS_RESTORED_MAX: usize = (RINGS as usize - 1) * KEPT_OF_RING;
/// Bytes of an entry.
pub(crate) const ENTRY_BYTES: usize = 48;
/// Bytes of a ring.
pub(crate) const RING_BYTES: usize = ENTRIES as usize * ENTRY_BYTES;

const GIVEN_OUT: usize = 0;
const ENDS: usize = 8;
const KEY: usize = 0;
const WHO: usize = 16;
const ANSWER: usize = 24;
const SCOPE: usize = 32;
const REFERENCE: usize = 36;
const FENCE: usize = 40;

/// The key of a request, whose it is, and what it is answered if it has its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestKey {
    /// The key.
    pub key: u128,
    /// A hash of the name of whoever asks.
    pub who: u64,
    /// The answer, in the terms of the caller.
    pub answer: u64,
}

/// The halves of a number, the upper one first.
#[expect(clippy::cast_possible_truncation, reason = "the two halves")]
pub(crate) const fn halves(number: u128) -> (u64, u64) {
    ((number >> 64) as u64, number as u64)
}

/// The number that has these halves.
pub(crate) fn joined(upper: u64, lower: u64) -> u128 {
    u128::from(upper) << 64 | u128::from(lower)
}

/// Where a take has found something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenAt {
    pub(crate) scope: u32,
    pub(crate) reference: u32,
    pub(crate) fence: u64,
}

/// What a request with a key came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    /// It has put something, and was answered so.
    Put(u64),
    /// It has taken what is there.
    Taken(TakenAt),
}

/// A request for which a thread works.
#[derive(Clone, Copy)]
enum UnderWay {
    Put(RequestKey),
    Take { key: u128, who: u64 },
}

thread_local! {
    /// What the calling thread does for whom.
    static UNDER_WAY: Cell<Option<UnderWay>> = const { Cell::new(None) };
}

/// Runs `operation` for a request: the first section of this thread that puts something, in a space that keeps keys, notes the
/// answer together with that.
pub fn keyed<R>(request: RequestKey, operation: impl FnOnce() -> R) -> R {
    during(UnderWay::Put(request), operation)
}

/// Runs `operation` for a take with this key: what it claims outlives the process, in a space that keeps keys. After the death of the
/// process it stays claimed, until it is [adopted](crate::Claim::adopt) by the key, and counts as taken if it is not.
pub fn keyed_take<R>((key, who): (u128, u64), operation: impl FnOnce() -> R) -> R {
    during(UnderWay::Take { key, who }, operation)
}

fn during<R>(under_way: UnderWay, operation: impl FnOnce() -> R) -> R {
    struct End(Option<UnderWay>);
    impl Drop for End {
        fn drop(&mut self) {
            UNDER_WAY.set(self.0);
        }
    }
    let _end = End(UNDER_WAY.replace(Some(under_way)));
    operation()
}

/// The put for which the calling thread works, whose answer is noted nowhere yet.
pub(crate) fn put_under_way() -> Option<RequestKey> {
    match UNDER_WAY.get() {
        Some(UnderWay::Put(request)) => Some(request),
        _ => None,
    }
}

/// The take for which the calling thread works.
pub(crate) fn take_under_way() -> Option<RequestKey> {
    match UNDER_WAY.get() {
        Some(UnderWay::Take { key, who }) => Some(RequestKey { key, who, answer: 0 }),
        _ => None,
    }
}

/// The answer is noted.
pub(crate) fn end() {
    UNDER_WAY.set(None);
}

/// What a process keeps of the keys of a space.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// The ring of this process, and 1; 0: it keeps none.
    ring: AtomicU32,
}

impl Keys {
    /// Whether this process notes answers.
    pub(crate) fn is_on(&self) -> bool {
        self.ring.load(Ordering::Relaxed) != 0
    }

    /// From now on it does, in this ring.
    pub(crate) fn begin(&self, ring: u32) {
        self.ring.store(ring + 1, Ordering::Relaxed);
    }
}

fn line<'m>(view: &View<'m>) -> Span<'m, 64> {
    view.span(head::KEYS)
}

const fn end_of(ring: u32) -> usize {
    ENDS + 8 * ring as usize
}

fn entry<'m>(view: &View<'m>, ring: u32, number: u64) -> Span<'m, ENTRY_BYTES> {
    #[expect(clippy::cast_possible_truncation, reason = "far fewer")]
    let at = (number % u64::from(ENTRIES)) as usize;
    view.span(layout::KEYS + ring as usize * RING_BYTES + at * ENTRY_BYTES)
}

/// Gives out the ring that was given out longest ago. The section has the lock of the keys.
pub(crate) fn give_out(section: &mut Section<'_>) -> u32 {
    let line = line(section.view());
    let given_out = line.load(GIVEN_OUT);
    section.set_word(line.place(GIVEN_OUT), given_out.wrapping_add(1));
    given_out % RINGS
}

/// Words that noting an answer changes: where its ring ends.
const APPEND_WORDS: usize = 2;

/// Writes an entry behind the end of the ring of this process, where it means nothing; where the end is, is logged. The section has the
/// lock of the keys from here on, and goes on where it was.
///
/// # Errors
///
/// [`Need::Log`], and what the lock says.
pub(crate) fn append(
    keys: &Keys,
    section: &mut Section<'_>,
    (request, taken): (RequestKey, Option<TakenAt>),
) -> Result<(), Error> {
    if section.room() < 2 * APPEND_WORDS {
        return Err(Need::Log.into());
    }
    let focused = section.focused();
    section.enter_also(head::KEYS_SCOPE)?;
    write(keys, section, (request, taken));
    section.focus(focused);
    Ok(())
}

fn write(keys: &Keys, section: &mut Section<'_>, (request, taken): (RequestKey, Option<TakenAt>)) {
    let ring = keys.ring.load(Ordering::Relaxed).saturating_sub(1) % RINGS;
    let (view, line) = (section.view(), line(section.view()));
    let end = line.load64(end_of(ring));
    fill(entry(view, ring, end), request, taken);
    let next = end + 1;
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    let (low, high) = (next as u32, (next >> 32) as u32);
    section.set_words([(line.place(end_of(ring)), low), (line.place(end_of(ring) + 4), high)]);
}

/// Writes an entry where it means nothing yet.
fn fill(entry: Span<'_, ENTRY_BYTES>, request: RequestKey, taken: Option<TakenAt>) {
    let (upper, lower) = halves(request.key);
    entry.init64(KEY, upper);
    entry.init64(KEY + 8, lower);
    entry.init64(WHO, request.who);
    entry.init64(ANSWER, request.answer);
    let taken = taken.unwrap_or(TakenAt { scope: 0, reference: 0, fence: 0 });
    entry.init(SCOPE, taken.scope);
    entry.init(REFERENCE, taken.reference);
    entry.init64(FENCE, taken.fence);
}

/// Fills a ring of a new space, which nobody else uses yet and whose memory is there, with up to [`KEPT_OF_RING`] answers.
pub(crate) fn restore(view: &View<'_>, ring: u32, answered: &[RequestKey]) {
    for (number, request) in (0..).zip(answered) {
        fill(entry(view, ring, number), *request, None);
    }
    line(view).init64(end_of(ring), answered.len() as u64);
}

/// What a request with this key came to last. Under the lock of the keys.
pub(crate) fn noted(view: &View<'_>, (key, who): (u128, u64)) -> Option<Noted> {
    let is_it = |entry: &Span<'_, ENTRY_BYTES>| {
        let known = joined(entry.load64(KEY), entry.load64(KEY + 8));
        known == key && entry.load64(WHO) == who
    };
    (0..RINGS).find_map(|ring| {
        let end = line(view).load64(end_of(ring));
        // At the place of the end there may be anything: a section may have written there that did not commit.
        let begin = end.saturating_sub(u64::from(ENTRIES) - 1);
        let found = (begin..end).rev().map(|number| entry(view, ring, number)).find(is_it)?;
        let (scope, reference) = (found.load(SCOPE), found.load(REFERENCE));
        Some(match reference {
            0 => Noted::Put(found.load64(ANSWER)),
            _ => Noted::Taken(TakenAt { scope, reference, fence: found.load64(FENCE) }),
        })
    })
}
