//! The line of the wide waiters, as every section has to know it: their lock comes before that of the arena.

use tupelo_shm::{GRANULE, Section, Span, View};

use crate::base::error::Error;
use crate::base::layout::head;
use crate::store::partition::{Partition, WIDE_KNOWN};

/// Words of the line of wide waiters.
pub(crate) type WideLine<'m> = Span<'m, 64>;

/// How many there are, with those in line for room; those among them that are told of removals; the first.
pub(crate) const WIDE_WAITING: usize = 0;

pub(crate) const WIDE_WATCHING_REMOVALS: usize = 4;

pub(crate) const WIDE_FIRST: usize = 8;

/// How many are in line for room; the first and the last of them.
pub(crate) const ROOM_WAITING: usize = 12;

pub(crate) const ROOM_FIRST: usize = 16;

pub(crate) const ROOM_LAST: usize = 20;

/// The wait node of who was told last that there may be room, and when, in coarse monotonic milliseconds modulo 2^32.
/// Hints, written without the log.
pub(crate) const ROOM_TURN: usize = 24;

pub(crate) const ROOM_TURN_MS: usize = 28;

/// The wait node of who has the turn and has tried, until it is told again. A hint, too.
pub(crate) const ROOM_TRIES: usize = 36;

/// When the row of turns began that its owner is in or was in last. A hint, too.
pub(crate) const ROOM_ROW_MS: usize = 52;

/// How many of them are subscriptions.
pub(crate) const WIDE_SUBSCRIBED: usize = 32;

/// How often somebody got in line here, or left it (two words); and the section that changed it last, a hint.
pub(crate) const WIDE_CHANGES: usize = 40;

pub(crate) const WIDE_TOUCHED: usize = 48;

pub(crate) fn wide_line<'m>(view: &View<'m>) -> WideLine<'m> {
    view.span(head::WIDE)
}

/// Whether there may be wide waiters. Asked inside a section over a partition. A wide waiter gets in line while it
/// holds every partition that could have a match, so it came before this section, and is seen, or will look at
/// what this section leaves.
///
/// A count of none is believed only if nobody was inside the lock meanwhile: whoever is may have served a
/// waiter, die, and so leave it waiting. So is what the partition knows: that none of them could match its tuples.
#[inline]
pub(crate) fn may_wait(view: &View<'_>, partition: Option<Partition<'_>>, count: usize) -> bool {
    let both: Span<'_, { 2 * GRANULE }> = view.span(head::WIDE - GRANULE);
    let (lock, words) = (both.part::<GRANULE>(0), both.part::<GRANULE>(GRANULE));
    let Some(sequence) = lock.begin_read() else { return true };
    let some = words.load(count) != 0
        && !partition.is_some_and(|partition| is_passed_over(partition, words));
    some || !lock.unchanged(sequence)
}

/// Whether it is known that none of the wide waiters could match a tuple of the partition's shape. They have changed at least
/// once if there are any, so a partition that knows nothing does not pass them over.
#[inline]
pub(crate) fn is_passed_over(partition: Partition<'_>, line: WideLine<'_>) -> bool {
    let changes = line.load64(WIDE_CHANGES);
    changes != 0 && partition.page().load64(WIDE_KNOWN) == known(changes, false)
}

/// What a partition notes: the change that it knows of, and whether one of the wide waiters could match then. A shift, since
/// the number may come from a damaged segment.
pub(crate) fn known(changes: u64, may_match: bool) -> u64 {
    changes << 1 | u64::from(may_match)
}

/// Whether there are wide waiters, by who has no lock: a hint.
#[inline]
pub(crate) fn counts_any_wide(view: &View<'_>) -> bool {
    wide_line(view).load(WIDE_WAITING) != 0
}

/// Whether a section over a partition has to look at the wide waiters.
///
/// Not if it holds the arena without their lock: then there were none when it locked the arena ([`enter_wide`]),
/// and whoever came since does not care for this partition, or would have waited for it.
#[inline]
pub(crate) fn concerns_wide(section: &Section<'_>, partition: Partition<'_>) -> bool {
    concerns(section, Some(partition))
}

/// Whether a section over any partition may have to.
pub(crate) fn may_concern_wide(section: &Section<'_>) -> bool {
    concerns(section, None)
}

#[inline]
pub(crate) fn concerns(section: &Section<'_>, partition: Option<Partition<'_>>) -> bool {
    may_wait(section.view(), partition, WIDE_WAITING)
        && (counts_wide(section, partition, WIDE_WAITING)
            || !(section.holds(head::WIDE_SCOPE) || section.holds(head::ARENA_SCOPE)))
}

/// Whether a section that holds the lock of the wide waiters, and so knows, counts some that could match.
pub(crate) fn counts_wide(
    section: &Section<'_>,
    partition: Option<Partition<'_>>,
    count: usize,
) -> bool {
    let line = wide_line(section.view());
    section.holds(head::WIDE_SCOPE)
        && line.load(count) != 0
        && !partition.is_some_and(|partition| is_passed_over(partition, line))
}

/// Locks the wide waiters for the rest of the section, unless it holds them already.
pub(crate) fn enter_wide(section: &mut Section<'_>) -> Result<(), Error> {
    if !section.holds(head::WIDE_SCOPE) {
        let before = section.focused();
        section.enter_also(head::WIDE_SCOPE)?;
        section.focus(before);
    }
    Ok(())
}
