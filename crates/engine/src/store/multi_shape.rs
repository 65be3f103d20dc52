//! The line of the multi-shape waiters, as every section has to know it: their lock comes before that of the arena.

use tupelo_shm::{GRANULE, Section, Span, View};

use crate::base::error::Error;
use crate::base::layout::head;
use crate::store::partition::{MULTI_SHAPE_KNOWN, Partition};

/// Words of the line of multi-shape waiters.
pub(crate) type MultiShapeLine<'m> = Span<'m, 64>;

/// How many there are, with those in the wait queue for room; those among them that are told of removals; the first.
pub(crate) const MULTI_SHAPE_WAITING: usize = 0;

pub(crate) const MULTI_SHAPE_WATCHING_REMOVALS: usize = 4;

pub(crate) const MULTI_SHAPE_FIRST: usize = 8;

/// How many are in the wait queue for room; the first and the last of them.
pub(crate) const ROOM_WAITING: usize = 12;

pub(crate) const ROOM_FIRST: usize = 16;

pub(crate) const ROOM_LAST: usize = 20;

/// The wait node of who was told last that there may be room, and when, in coarse monotonic milliseconds modulo 2^32.
/// Hints, written without the log.
pub(crate) const ROOM_GRANT: usize = 24;

pub(crate) const ROOM_GRANT_MS: usize = 28;

/// The wait node of who has the grant and has tried, until it is told again. A hint, too.
pub(crate) const ROOM_TRIES: usize = 36;

/// When the row of grants began that its owner is in or was in last. A hint, too.
pub(crate) const ROOM_ROW_MS: usize = 52;

/// How many of them are subscriptions.
pub(crate) const MULTI_SHAPE_SUBSCRIBED: usize = 32;

/// How often somebody joined the wait queue here, or left it (two words); and the section that changed it last, a hint.
pub(crate) const MULTI_SHAPE_CHANGES: usize = 40;

pub(crate) const MULTI_SHAPE_TOUCHED: usize = 48;

/// Whether puts are stamped ([`crate::store::stamps`]). Set once, and for good.
pub(crate) const STAMPS: usize = 60;

pub(crate) fn multi_shape_line<'m>(view: &View<'m>) -> MultiShapeLine<'m> {
    view.span(head::MULTI_SHAPE)
}

/// Whether there may be multi-shape waiters. Asked inside a section over a partition. A multi-shape waiter joins the
/// wait queue while it holds every partition that could have a match. So it came before this section, and is seen, or
/// will look at what this section leaves.
///
/// A count of none is believed only if nobody was inside the lock meanwhile: whoever is may have served a
/// waiter, die, and so leave it waiting. So is what the partition knows: that none of them could match its tuples.
#[inline]
pub(crate) fn may_wait(view: &View<'_>, partition: Option<Partition<'_>>, count: usize) -> bool {
    let both: Span<'_, { 2 * GRANULE }> = view.span(head::MULTI_SHAPE - GRANULE);
    let (lock, words) = (both.part::<GRANULE>(0), both.part::<GRANULE>(GRANULE));
    let Some(sequence) = lock.begin_read() else { return true };
    let some = words.load(count) != 0
        && !partition.is_some_and(|partition| is_passed_over(partition, words));
    some || !lock.unchanged(sequence)
}

/// Whether it is known that none of the multi-shape waiters could match a tuple of the partition's shape. They have changed at least
/// once if there are any, so a partition that knows nothing does not pass them over.
#[inline]
pub(crate) fn is_passed_over(partition: Partition<'_>, line: MultiShapeLine<'_>) -> bool {
    let changes = line.load64(MULTI_SHAPE_CHANGES);
    changes != 0 && partition.page().load64(MULTI_SHAPE_KNOWN) == known(changes, false)
}

/// What a partition notes: the change that it knows of, and whether one of the multi-shape waiters could match then. A shift, since
/// the number may come from a damaged segment.
pub(crate) fn known(changes: u64, may_match: bool) -> u64 {
    changes << 1 | u64::from(may_match)
}

/// Whether there are multi-shape waiters, by who has no lock: a hint.
#[inline]
pub(crate) fn counts_any_multi_shape(view: &View<'_>) -> bool {
    multi_shape_line(view).load(MULTI_SHAPE_WAITING) != 0
}

/// Whether a section over a partition has to look at the multi-shape waiters.
///
/// Not if it holds the arena without their lock. Then there were none when it locked the arena ([`enter_multi_shape`]),
/// and whoever came since does not care for this partition, or would have waited for it.
#[inline]
pub(crate) fn concerns_multi_shape(section: &Section<'_>, partition: Partition<'_>) -> bool {
    concerns(section, Some(partition))
}

/// Whether a section over any partition may have to.
pub(crate) fn may_concern_multi_shape(section: &Section<'_>) -> bool {
    concerns(section, None)
}

#[inline]
pub(crate) fn concerns(section: &Section<'_>, partition: Option<Partition<'_>>) -> bool {
    may_wait(section.view(), partition, MULTI_SHAPE_WAITING)
        && (counts_multi_shape(section, partition, MULTI_SHAPE_WAITING)
            || !(section.holds(head::MULTI_SHAPE_SCOPE) || section.holds(head::ARENA_SCOPE)))
}

/// Whether a section that holds the lock of the multi-shape waiters, and so knows, counts some that could match.
pub(crate) fn counts_multi_shape(
    section: &Section<'_>,
    partition: Option<Partition<'_>>,
    count: usize,
) -> bool {
    let line = multi_shape_line(section.view());
    section.holds(head::MULTI_SHAPE_SCOPE)
        && line.load(count) != 0
        && !partition.is_some_and(|partition| is_passed_over(partition, line))
}

/// Locks the multi-shape waiters for the rest of the section, unless it holds them already.
pub(crate) fn enter_multi_shape(section: &mut Section<'_>) -> Result<(), Error> {
    if !section.holds(head::MULTI_SHAPE_SCOPE) {
        let before = section.focused();
        section.enter_also(head::MULTI_SHAPE_SCOPE)?;
        section.focus(before);
    }
    Ok(())
}
