//! A hierarchical timing wheel per partition, after Varghese and Lauck (1987): arming, disarming and firing a timer
//! take the same few steps however many there are (rule L1).
//!
//! A slot of the lowest level is a millisecond; a slot of each further one is as long as the level below. A timer
//! stands in the level of the highest digit, to the base 64, in which its time differs from the wheel's own. It moves
//! down when that digit is reached. Every entry of a level is later than the wheel's time in that digit and equal in
//! all higher ones. So the first slot in use of each level is its next event. The highest level has no digits above it,
//! so it goes round: no entry is further ahead than half of it.
//!
//! | bytes | what |
//! |---:|---|
//! | 0 | the allocator's |
//! | 8 | the wheel's time: everything due until then has been fired, or stands in a slot of that moment (two words) |
//! | 16 | slots in use, a bit each: two words per level |
//! | 128 | first record of each slot |
//!
//! A timer is words of its record's extension: due (two), neighbours, and slot + 1, 0 if it is not armed. The first
//! of a slot has the last for its previous one, so that timers of one moment fire in the order in which they were
//! armed.

use std::collections::BTreeMap;

use tupelo_shm::{Section, Span, View, Word};

use crate::base::clock::{TIME_MS_MAX, now_ms};
use crate::base::error::Error;
use crate::base::layout::Layout;
use crate::store::extension::{self, Extension, TIMER, lease_end_ms};
use crate::store::partition::{DUE_MS, Partition, WHEEL};
use crate::store::record::{self, Record};
use crate::store::{Store, blocks};
use crate::time::earliest;

const DIGIT_BITS: u32 = 6;
const SLOTS: u32 = 1 << DIGIT_BITS;
/// Seven digits of milliseconds: 139 years.
const LEVELS: u32 = 7;

const TIME: usize = 8;
const IN_USE: usize = 16;
const HEADS: usize = 128;
pub(crate) const WHEEL_BYTES: usize = HEADS + 4 * (LEVELS * SLOTS) as usize;
const _: () = assert!(IN_USE + 8 * LEVELS as usize <= HEADS);

/// Words that arming or disarming a timer changes: its own, two neighbours' or the slot's and the bit.
pub(crate) const ARM_WORDS: usize = 5 + 2;
type Wheel<'m> = Span<'m, WHEEL_BYTES>;

/// A timer, as a window on its words.
type Timer<'m> = Span<'m, 24>;
const DUE: usize = 0;
const NEXT: usize = 8;
const PREVIOUS: usize = 12;
const SLOT: usize = 16;

/// The timer of a record, which has an extension.
fn timer<'m>(view: &View<'m>, reference: u32) -> Timer<'m> {
    let header = record::header(view, reference);
    let Some(extension) = extension::of(view, header) else {
        // A record in the wheel without the words for it.
        view.violate();
        return header.part(0);
    };
    extension.part(TIMER)
}

/// The wheel of a partition, if anything there was ever armed.
fn wheel<'m>(view: &View<'m>, partition: Partition<'m>) -> Option<Wheel<'m>> {
    match partition.page().load(WHEEL) {
        0 => None,
        block => Some(view.at(block)),
    }
}

/// The partition's wheel; a new one, whose time is `now_ms`, if it has none: only then is the clock read.
#[inline(always)]
fn ensure<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    now_ms: impl FnOnce() -> u64,
) -> Result<Wheel<'m>, Error> {
    if let Some(wheel) = wheel(section.view(), partition) {
        return Ok(wheel);
    }
    begin(section, layout, partition, now_ms)
}

/// Gives a partition its wheel.
#[cold]
#[inline(never)]
fn begin<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    now_ms: impl FnOnce() -> u64,
) -> Result<Wheel<'m>, Error> {
    let block = blocks::allocate_beyond(section, layout, partition, WHEEL_BYTES)?;
    let wheel: Wheel<'m> = section.view().at(block);
    wheel.init64(TIME, now_ms());
    (IN_USE..WHEEL_BYTES).step_by(8).for_each(|word| wheel.init64(word, 0));
    section.set(partition.page(), WHEEL, block);
    Ok(wheel)
}

const _: () = assert!(TIME_MS_MAX <= 1 << (DIGIT_BITS * LEVELS - 1));

/// Where a timer stands: number of the slot among all levels.
fn slot_for(time_ms: u64, due_ms: u64) -> u32 {
    // A damaged time may be at the end of all.
    let (next_ms, last_ms) = (time_ms.saturating_add(1), time_ms.saturating_add(TIME_MS_MAX));
    let due_ms = due_ms.clamp(next_ms, last_ms);
    let highest = (time_ms ^ due_ms).checked_ilog2().unwrap_or(0);
    let level = (highest / DIGIT_BITS).min(LEVELS - 1);
    level * SLOTS + digit(due_ms, level)
}

/// A digit of a time, to the base 64.
#[expect(clippy::cast_possible_truncation, reason = "masked to six bits")]
fn digit(time_ms: u64, level: u32) -> u32 {
    (time_ms >> (DIGIT_BITS * level)) as u32 & (SLOTS - 1)
}

fn head(slot: u32) -> usize {
    HEADS + 4 * slot as usize
}

/// The word with the bit of a slot, and the bit.
fn bit(slot: u32) -> (usize, u32) {
    (IN_USE + 4 * (slot / 32) as usize, 1 << (slot % 32))
}

/// Arms the timer of the record at `reference`, which has an extension and is not armed.
///
/// # Errors
///
/// [`crate::base::error::Need`] if the partition has no wheel yet and there is no block for one.
pub(crate) fn arm<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    due_ms: u64,
) -> Result<(), Error> {
    let wheel = ensure(section, &store.layout, partition, now_ms)?;
    link(section, wheel, reference, due_ms);
    note_due(store, partition, due_ms);
    Ok(())
}

/// Sees to it that the partition is looked at when it is `due_ms`, where a timer is to be armed by then. It has a wheel
/// afterwards.
///
/// # Errors
///
/// As [`arm`], which needs no more memory then.
#[inline]
pub(crate) fn expect<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    due_ms: u64,
) -> Result<(), Error> {
    if partition.page().load(WHEEL) == 0 {
        ensure(section, &store.layout, partition, now_ms)?;
    }
    note_due(store, partition, due_ms);
    Ok(())
}

/// As [`arm`], for a record that nobody can reach yet.
#[inline(always)]
pub(crate) fn arm_fresh<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    (reference, extension): (u32, Extension<'m>),
    due_ms: u64,
) -> Result<(), Error> {
    let wheel = ensure(section, &store.layout, partition, now_ms)?;
    let Some(place) = place_for(section.view(), wheel, reference, due_ms) else { return Ok(()) };
    // Not reachable before the wheel has it, so without the log (R2).
    let timer: Timer<'m> = extension.part(TIMER);
    timer.init64(DUE, due_ms);
    timer.init(NEXT, 0);
    timer.init(PREVIOUS, place.last);
    timer.init(SLOT, place.slot + 1);
    enter(section, wheel, place, reference);
    note_due(store, partition, due_ms);
    Ok(())
}

/// Sees to it that the partition is looked at when it is `due_ms`.
#[inline]
pub(crate) fn note_due(store: &Store, partition: Partition<'_>, due_ms: u64) {
    let known_ms = partition.page().load64(DUE_MS);
    if known_ms == 0 || due_ms < known_ms {
        // A lower bound: too low does no harm, so it is not undone.
        partition.page().init64(DUE_MS, due_ms);
        earliest::note_due(store, due_ms);
    }
}

/// Whether the timer of a record with this extension is armed.
pub(crate) fn is_armed(extension: Extension<'_>) -> bool {
    extension.load(TIMER + SLOT) != 0
}

/// Where a timer goes.
#[derive(Clone, Copy)]
struct Place<'m> {
    slot: u32,
    /// The first of the slot until now, if there is one.
    first: Option<Timer<'m>>,
    /// The last of the slot until now; of an empty one, the timer itself.
    last: u32,
}

/// The place of the timer of the record at `reference`; `None` if the slot is damaged.
#[inline(always)]
fn place_for<'m>(
    view: &View<'m>,
    wheel: Wheel<'m>,
    reference: u32,
    due_ms: u64,
) -> Option<Place<'m>> {
    let slot = slot_for(wheel.load64(TIME), due_ms);
    let first = match wheel.load(head(slot)) {
        0 => None,
        first => Some(timer(view, first)),
    };
    let last = first.map_or(reference, |first| first.load(PREVIOUS));
    if last == 0 {
        // A first timer that knows of no last one.
        view.violate();
        return None;
    }
    Some(Place { slot, first, last })
}

fn link<'m>(section: &mut Section<'m>, wheel: Wheel<'m>, reference: u32, due_ms: u64) {
    let Some(place) = place_for(section.view(), wheel, reference, due_ms) else { return };
    let timer = timer(section.view(), reference);
    let [low, high] = halves(due_ms);
    section.set_words([
        (timer.place(DUE), low),
        (timer.place(DUE + 4), high),
        (timer.place(NEXT), 0),
        (timer.place(PREVIOUS), place.last),
        (timer.place(SLOT), place.slot + 1),
    ]);
    enter(section, wheel, place, reference);
}

/// Makes a timer, which knows its place, the last of its slot.
#[inline(always)]
fn enter<'m>(section: &mut Section<'m>, wheel: Wheel<'m>, place: Place<'m>, reference: u32) {
    let Place { slot, first, last } = place;
    let stores = match first {
        None => {
            let (word, bit) = bit(slot);
            [(wheel.place(head(slot)), reference), (wheel.place(word), wheel.load(word) | bit)]
        }
        Some(first) => {
            let last = self::timer(section.view(), last);
            [(first.place(PREVIOUS), reference), (last.place(NEXT), reference)]
        }
    };
    section.set_words(stores);
}

/// Disarms the timer of a record, if it is armed.
pub(crate) fn disarm<'m>(section: &mut Section<'m>, partition: Partition<'m>, reference: u32) {
    let timer = timer(section.view(), reference);
    let slot = timer.load(SLOT);
    if slot == 0 {
        return;
    }
    let Some(wheel) = wheel(section.view(), partition) else { return section.view().violate() };
    if slot > LEVELS * SLOTS {
        return section.view().violate();
    }
    let (previous, next) = (timer.load(PREVIOUS), timer.load(NEXT));
    let first = wheel.load(head(slot - 1));
    let is_first = first == reference;
    if previous == 0 || first == 0 {
        return section.view().violate();
    }
    let from = if is_first {
        wheel.place(head(slot - 1))
    } else {
        self::timer(section.view(), previous).place(NEXT)
    };
    section.set_words([(timer.place(SLOT), 0), (from, next)]);
    if next == 0 && is_first {
        let (word, bit) = bit(slot - 1);
        section.set(wheel, word, wheel.load(word) & !bit);
    } else {
        // Of the last one, the first knows.
        let other = if next == 0 { first } else { next };
        section.set(self::timer(section.view(), other), PREVIOUS, previous);
    }
}

/// A level's next event: its slot, and when it is.
fn next_event(wheel: Wheel<'_>) -> Option<(u32, u64)> {
    let time_ms = wheel.load64(TIME);
    let of = |level: u32| {
        let in_use = wheel.load64(IN_USE + 8 * level as usize);
        // Of the highest level, what is later may have the smaller digit: it goes round.
        let reached = digit(time_ms, level);
        let ahead = in_use.rotate_right(reached).trailing_zeros();
        let reached_here = time_ms >> (DIGIT_BITS * level);
        let event_ms = reached_here.saturating_add(u64::from(ahead)) << (DIGIT_BITS * level);
        (in_use != 0).then_some((level * SLOTS + (reached + ahead) % SLOTS, event_ms))
    };
    (0..LEVELS).filter_map(of).min_by_key(|(_, event_ms)| *event_ms)
}

/// Brings the wheel forward to `now_ms` by one step: the record of a timer that is due by now and disarmed, or
/// `None` if there is no more. Timers of higher levels move down on the way; `between` is called before each
/// such step, and may commit the section.
///
/// # Errors
///
/// What `between` says.
pub(crate) fn pop<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    now_ms: u64,
    mut between: impl FnMut(&mut Section<'m>) -> Result<(), Error>,
) -> Result<Option<u32>, Error> {
    let Some(wheel) = wheel(section.view(), partition) else { return Ok(None) };
    loop {
        between(section)?;
        let event = next_event(wheel).filter(|(_, event_ms)| *event_ms <= now_ms);
        let time_ms = wheel.load64(TIME);
        let reached_ms = event.map_or(now_ms, |(_, event_ms)| event_ms);
        if reached_ms > time_ms {
            set64(section, wheel, TIME, reached_ms);
        }
        let Some((slot, _)) = event else { return Ok(None) };
        let reference = wheel.load(head(slot));
        if reference == 0 || section.view().violated() {
            // A slot in use without an entry.
            section.view().violate();
            return Ok(None);
        }
        let timer = timer(section.view(), reference);
        let due_ms = timer.load64(DUE);
        let moves = slot >= SLOTS && due_ms > reached_ms;
        let moves_down = || slot_for(reached_ms, due_ms) / SLOTS < slot / SLOTS;
        if timer.load(SLOT) != slot + 1 || moves && !moves_down() {
            // It stands elsewhere than it says, or would come to this slot again and again.
            section.view().violate();
            return Ok(None);
        }
        disarm(section, partition, reference);
        if !moves {
            return Ok(Some(reference));
        }
        link(section, wheel, reference, due_ms);
    }
}

/// When the timer of a record is due, or was if it has just been fired.
pub(crate) fn due_ms(view: &View<'_>, reference: u32) -> u64 {
    timer(view, reference).load64(DUE)
}

/// Every armed timer of a partition, with its time, after a check that each stands where it belongs. What is wrong
/// otherwise.
pub(crate) fn armed(
    view: &View<'_>,
    partition: Partition<'_>,
) -> Result<BTreeMap<u32, u64>, String> {
    let mut armed = BTreeMap::new();
    let Some(wheel) = wheel(view, partition) else { return Ok(armed) };
    let time_ms = wheel.load64(TIME);
    for slot in 0..LEVELS * SLOTS {
        let first = wheel.load(head(slot));
        let (mut previous, mut reference) = (0, first);
        let (word, bit) = bit(slot);
        if (wheel.load(word) & bit != 0) != (reference != 0) {
            return Err(format!("slot {slot} of a wheel is marked wrongly"));
        }
        while reference != 0 {
            let timer = timer(view, reference);
            let due_ms = timer.load64(DUE);
            // Nobody brings a wheel forward but who empties the slots of that moment.
            let belongs = slot_for(time_ms, due_ms) == slot || is_of_this_moment(time_ms, slot);
            let is_linked = reference == first || timer.load(PREVIOUS) == previous;
            let sound = timer.load(SLOT) == slot + 1 && is_linked;
            if !sound || !belongs || armed.insert(reference, due_ms).is_some() {
                return Err(format!(
                    "the timer of record {reference}, due at {due_ms}, stands in slot {slot} at {time_ms} wrongly"
                ));
            }
            (previous, reference) = (reference, timer.load(NEXT));
        }
        if first != 0 && self::timer(view, first).load(PREVIOUS) != previous {
            return Err(format!(
                "slot {slot} of a wheel ends with record {previous} unknown to its first"
            ));
        }
    }
    Ok(armed)
}

/// Whether a slot is the one that its level has come to.
fn is_of_this_moment(time_ms: u64, slot: u32) -> bool {
    digit(time_ms, slot / SLOTS) == slot % SLOTS
}

/// Notes when the partition's next timer is due, or what else is at `other_ms`, after everything due has been fired and the
/// section has committed.
pub(crate) fn note_next(view: &View<'_>, partition: Partition<'_>, other_ms: Option<u64>) {
    let next = wheel(view, partition).and_then(next_event).map(|(_, event_ms)| event_ms);
    partition.page().init64(DUE_MS, next.into_iter().chain(other_ms).min().unwrap_or(0));
}

pub(crate) fn set64<'m, const N: usize>(
    section: &mut Section<'m>,
    span: Span<'m, N>,
    at: usize,
    value: u64,
) {
    let [low, high] = halves(value);
    let stores: [(Word<'m>, u32); 2] = [(span.place(at), low), (span.place(at + 4), high)];
    section.set_words(stores);
}

/// The low and the high word of a double one.
#[expect(clippy::cast_possible_truncation, reason = "the halves are meant")]
pub(crate) const fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// Sets the timer of a record that has become visible, if its lease ends.
pub(crate) fn arm_lease<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
) -> Result<(), Error> {
    let end_ms = lease_end_ms(section.view(), record);
    if end_ms == 0 {
        return Ok(());
    }
    arm(store, section, partition, record.reference, end_ms)
}

#[cfg(test)]
mod tests;
