//! Where wait nodes are linked: per partition in a table by mask and tag, in the one list of multi-shape waiters, or in the wait queue for room.

use tupelo_shm::{GRANULE, Section, Span, View};

use super::{
    EVENT_KINDS, LINKED, MASK, NEXT, OWNED, PREVIOUS, SCOPE, STATE, TAG, WANT, WaitNode, node,
    stored,
};
use crate::base::error::Error;
use crate::base::layout::{WAITERS_MAX, head};
use crate::base::want::Want;
use crate::store::multi_shape::{
    MULTI_SHAPE_CHANGES, MULTI_SHAPE_FIRST, MULTI_SHAPE_SUBSCRIBED, MULTI_SHAPE_TOUCHED,
    MULTI_SHAPE_WAITING, MULTI_SHAPE_WATCHING_REMOVALS, MultiShapeLine, ROOM_FIRST, ROOM_LAST,
    ROOM_WAITING, counts_multi_shape, is_passed_over, known, may_wait, multi_shape_line,
};
use crate::store::partition::{
    MULTI_SHAPE_KNOWN, Partition, SUBSCRIBED, WAITER_MASKS, WAITER_MASKS_MAX, WAITER_TABLE,
    WAITING, WATCHING_REMOVALS,
};
use crate::store::registry::Kinds;
use crate::store::{Store, blocks};
use crate::time::wheel::set64;
use crate::waiters::events;

/// Chains of a partition's table: short ones with a thousand waiters on distinct keys.
pub(crate) const CHAINS: u32 = 1024;
/// Bytes of the table.
pub(crate) const TABLE_BYTES: usize = 4 * CHAINS as usize;

const _: () = assert!(
    head::MULTI_SHAPE == (head::MULTI_SHAPE_SCOPE as usize + 1) * GRANULE,
    "one window on both"
);

/// Whether the partition does not know of the last change of the multi-shape waiters, and may: not if the section has changed them
/// itself, which may be undone. The section holds both locks.
pub(crate) fn can_note_multi_shape(view: &View<'_>, partition: Partition<'_>) -> bool {
    let line = multi_shape_line(view);
    partition.page().load64(MULTI_SHAPE_KNOWN) >> 1 != line.load64(MULTI_SHAPE_CHANGES)
        && line.load(MULTI_SHAPE_TOUCHED) != view.section_number(head::MULTI_SHAPE_SCOPE)
}

/// Notes in a partition whether one of the multi-shape waiters could match a tuple of `kinds`, its shape. The section holds both locks.
pub(crate) fn note_multi_shape(view: &View<'_>, partition: Partition<'_>, kinds: &Kinds) {
    let changes = multi_shape_line(view).load64(MULTI_SHAPE_CHANGES);
    partition.page().init64(MULTI_SHAPE_KNOWN, known(changes, may_match(view, kinds)));
}

/// Whether one of the multi-shape waiters could match a tuple of `kinds`, or waits for room, which any can give.
fn may_match(view: &View<'_>, kinds: &Kinds) -> bool {
    waiting_for_room(view) != 0
        || multi_shape(view).any(|(_, node)| stored::may_match(view, node, kinds))
}

/// Checks what the partition knows of the multi-shape waiters.
pub(crate) fn knows_the_multi_shape(
    view: &View<'_>,
    partition: Partition<'_>,
    kinds: &Kinds,
) -> bool {
    !is_passed_over(partition, multi_shape_line(view)) || !may_match(view, kinds)
}

fn note_change<'m>(section: &mut Section<'m>, line: MultiShapeLine<'m>) {
    line.init(MULTI_SHAPE_TOUCHED, section.view().section_number(head::MULTI_SHAPE_SCOPE));
    set64(section, line, MULTI_SHAPE_CHANGES, line.load64(MULTI_SHAPE_CHANGES).wrapping_add(1));
}

/// Whether all the multi-shape waiters are subscriptions, and nobody is in the wait queue for room. Asked under the lock.
pub(crate) fn only_subscribed(view: &View<'_>) -> bool {
    let line = multi_shape_line(view);
    line.load(MULTI_SHAPE_WAITING) == line.load(MULTI_SHAPE_SUBSCRIBED)
}

/// How many are in the wait queue for room. A hint without the lock.
pub(crate) fn waiting_for_room(view: &View<'_>) -> u32 {
    multi_shape_line(view).load(ROOM_WAITING)
}

/// The first in the wait queue for room. Asked under the lock.
pub(crate) fn first_for_room(view: &View<'_>) -> Option<u32> {
    Some(multi_shape_line(view).load(ROOM_FIRST)).filter(|first| *first != 0)
}

/// How many wait nodes are in the wait queue, all told; those that watch removals; those that are subscriptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) all: u32,
    pub(crate) watching_removals: u32,
    pub(crate) subscribed: u32,
}

impl Counts {
    /// Blocked callers.
    pub(crate) fn waiting(self) -> u32 {
        self.all.saturating_sub(self.subscribed)
    }
}

/// How many multi-shape waiters there are.
pub(crate) fn multi_shape_counts(view: &View<'_>) -> Counts {
    let word = |at| multi_shape_line(view).load(at);
    Counts {
        all: word(MULTI_SHAPE_WAITING),
        watching_removals: word(MULTI_SHAPE_WATCHING_REMOVALS),
        subscribed: word(MULTI_SHAPE_SUBSCRIBED),
    }
}

/// How many wait in one partition.
pub(crate) fn counts(partition: Partition<'_>) -> Counts {
    let word = |at| partition.page().load(at);
    Counts {
        all: word(WAITING),
        watching_removals: word(WATCHING_REMOVALS),
        subscribed: word(SUBSCRIBED),
    }
}

/// Whether a wait node is told of removals.
pub(crate) fn watches_removals(node: WaitNode<'_>) -> bool {
    let want = node.load(WANT);
    Want::watches_removals(want)
        || is_subscription(node) && node.load(EVENT_KINDS) & events::REMOVALS != 0
}

/// Whether a wait node is a subscription's.
pub(crate) fn is_subscription(node: WaitNode<'_>) -> bool {
    node.load(WANT) == Want::Events.number()
}

/// Whether anybody, multi-shape or of this partition, waits for a removal.
#[inline(always)]
pub(crate) fn watching_removals(section: &Section<'_>, partition: Partition<'_>) -> bool {
    partition.page().load(WATCHING_REMOVALS) != 0
        || (may_wait(section.view(), Some(partition), MULTI_SHAPE_WATCHING_REMOVALS)
            && (counts_multi_shape(section, Some(partition), MULTI_SHAPE_WATCHING_REMOVALS)
                || !section.holds(head::MULTI_SHAPE_SCOPE)))
}

/// Whether a subscription, multi-shape or of this partition, may have heard of something in this section.
pub(crate) fn is_published(section: &Section<'_>, partition: Partition<'_>) -> bool {
    partition.page().load(SUBSCRIBED) != 0 || section.holds(head::MULTI_SHAPE_SCOPE)
}

/// A word that holds the first wait node of a chain.
#[derive(Clone, Copy)]
struct Head<'m> {
    pair: Span<'m, 8>,
    at: usize,
}

impl<'m> Head<'m> {
    fn new(view: &View<'m>, offset: usize) -> Self {
        Self { pair: view.span(offset & !7), at: offset & 4 }
    }

    fn first(self) -> u32 {
        self.pair.load(self.at)
    }
}

/// Whether wait nodes can be linked into `partition` as it is: somebody has waited there before.
pub(crate) fn has_table(partition: Partition<'_>) -> bool {
    partition.page().load(WAITER_TABLE) != 0
}

fn head_of<'m>(view: &View<'m>, partition: Partition<'m>, tag: u32) -> Head<'m> {
    let table = partition.page().load(WAITER_TABLE);
    if table == 0 {
        view.violate();
    }
    Head::new(view, table as usize * tupelo_shm::GRANULE + 4 * (tag % CHAINS) as usize)
}

/// Mask and count of entry `number` of the partition's list of masks. Entry 0 is the empty mask, under which
/// a template goes whose own mask finds no entry.
pub(crate) fn mask_entry(number: usize) -> (usize, usize) {
    let at = WAITER_MASKS + 8 * number;
    (at, at + 4)
}

/// The masks under which wait nodes of the partition are filed.
#[inline]
pub(crate) fn masks_in_use(partition: Partition<'_>) -> impl Iterator<Item = u32> {
    // Each wait node is counted under one: when all are, the rest is not in use.
    let mut left = partition.page().load(WAITING);
    let counted = (0..WAITER_MASKS_MAX).map(mask_entry).map_while(move |(mask, count)| {
        let before = left;
        let count = partition.page().load(count);
        left = left.saturating_sub(count);
        (before != 0).then_some((mask, count))
    });
    counted.filter(|(_, count)| *count != 0).map(move |(mask, _)| partition.page().load(mask))
}

/// The wait nodes of the chain of `tag`: those that are filed under it, and others that share the chain.
pub(crate) fn filed<'v, 'm>(
    view: &'v View<'m>,
    partition: Partition<'m>,
    tag: u32,
) -> Chain<'v, 'm> {
    Chain { view, next: head_of(view, partition, tag).first(), remaining: WAITERS_MAX }
}

/// The waiters for room, in the order in which they came.
pub(crate) fn for_room<'v, 'm>(view: &'v View<'m>) -> Chain<'v, 'm> {
    Chain { view, next: multi_shape_line(view).load(ROOM_FIRST), remaining: WAITERS_MAX }
}

/// The multi-shape waiters.
pub(crate) fn multi_shape<'v, 'm>(view: &'v View<'m>) -> Chain<'v, 'm> {
    Chain { view, next: multi_shape_line(view).load(MULTI_SHAPE_FIRST), remaining: WAITERS_MAX }
}

/// A bounded walk over a chain.
pub(crate) struct Chain<'v, 'm> {
    view: &'v View<'m>,
    next: u32,
    remaining: usize,
}

impl<'m> Iterator for Chain<'_, 'm> {
    type Item = (u32, WaitNode<'m>);

    fn next(&mut self) -> Option<Self::Item> {
        let number = self.next;
        if number == 0 {
            return None;
        }
        if self.remaining == 0 {
            self.view.violate();
            return None;
        }
        self.remaining -= 1;
        let node = node(self.view, number);
        self.next = node.load(NEXT);
        Some((number, node))
    }
}

/// Links a filled wait node into `partition`, whose lock the section holds. `tag_of` gives the tag of its
/// template under a mask.
pub(crate) fn file<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    number: u32,
    mask: u32,
    tag_of: impl Fn(u32) -> u32,
) -> Result<(), Error> {
    if partition.page().load(WAITER_TABLE) == 0 {
        let table = new_table(store, section, partition)?;
        section.set(partition.page(), WAITER_TABLE, table);
    }
    let mask = count_mask(section, partition, mask);
    let tag = tag_of(mask);
    let node = node(section.view(), number);
    node.init(SCOPE, partition.scope());
    node.init(MASK, mask);
    node.init(TAG, tag);
    let head = head_of(section.view(), partition, tag);
    link(section, head, number);
    section.add(partition.page(), WAITING, 1);
    if watches_removals(node) {
        section.add(partition.page(), WATCHING_REMOVALS, 1);
    }
    if is_subscription(node) {
        section.add(partition.page(), SUBSCRIBED, 1);
    }
    Ok(())
}

fn new_table<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
) -> Result<u32, Error> {
    let block = blocks::allocate_beyond(section, &store.layout, partition, 4 * CHAINS as usize)?;
    let table: Span<'m, { 4 * CHAINS as usize }> = section.view().at(block);
    for word in
        (0..4 * CHAINS as usize).step_by(4).filter(|word| *word != crate::store::record::FREE_NEXT)
    {
        table.init(word, 0);
    }
    // The allocator's link until now: with the log.
    section.set(table, crate::store::record::FREE_NEXT, 0);
    Ok(block)
}

/// Links a filled wait node into the list of multi-shape waiters, whose lock the section holds.
pub(crate) fn file_multi_shape(section: &mut Section<'_>, number: u32) {
    let node = node(section.view(), number);
    node.init(SCOPE, head::MULTI_SHAPE_SCOPE);
    node.init(MASK, 0);
    node.init(TAG, 0);
    let line = multi_shape_line(section.view());
    let head = Head::new(section.view(), head::MULTI_SHAPE + MULTI_SHAPE_FIRST);
    link(section, head, number);
    section.add(line, MULTI_SHAPE_WAITING, 1);
    note_change(section, line);
    if watches_removals(node) {
        section.add(line, MULTI_SHAPE_WATCHING_REMOVALS, 1);
    }
    if is_subscription(node) {
        section.add(line, MULTI_SHAPE_SUBSCRIBED, 1);
    }
}

/// Links a filled wait node at the end of the wait queue for room; the section holds the lock of the multi-shape waiters.
pub(crate) fn file_for_room(section: &mut Section<'_>, number: u32) {
    let this = node(section.view(), number);
    let line = multi_shape_line(section.view());
    let last = line.load(ROOM_LAST);
    this.init(SCOPE, head::MULTI_SHAPE_SCOPE);
    this.init(NEXT, 0);
    this.init(PREVIOUS, last);
    if last == 0 {
        section.set(line, ROOM_FIRST, number);
    } else {
        let other = node(section.view(), last);
        section.set(other, NEXT, number);
    }
    section.set(line, ROOM_LAST, number);
    section.set(this, STATE, LINKED);
    count_for_room(section, line, 1);
}

fn count_for_room<'m>(section: &mut Section<'m>, line: MultiShapeLine<'m>, by: i32) {
    for count in [MULTI_SHAPE_WAITING, MULTI_SHAPE_WATCHING_REMOVALS, ROOM_WAITING] {
        section.add(line, count, by);
    }
    note_change(section, line);
}

/// Takes a wait node out of the wait queue for room.
fn unfile_for_room(section: &mut Section<'_>, number: u32) {
    let this = node(section.view(), number);
    let line = multi_shape_line(section.view());
    let (previous, next) = (this.load(PREVIOUS), this.load(NEXT));
    if previous == 0 {
        section.set(line, ROOM_FIRST, next);
    } else {
        let other = node(section.view(), previous);
        section.set(other, NEXT, next);
    }
    if next == 0 {
        section.set(line, ROOM_LAST, previous);
    } else {
        let other = node(section.view(), next);
        section.set(other, PREVIOUS, previous);
    }
    section.set(this, STATE, OWNED);
    count_for_room(section, line, -1);
}

/// Words that taking a wait node out of its chain changes: two neighbours and the state, four counts, two words for the number
/// of changes.
pub(crate) const UNFILE_WORDS: usize = 9;

/// Takes a linked wait node out of its chain; the section holds the lock that the wait node names.
pub(crate) fn unfile(section: &mut Section<'_>, number: u32) {
    let node = node(section.view(), number);
    let scope = node.load(SCOPE);
    if node.load(WANT) == Want::Room.number() {
        unfile_for_room(section, number);
        return;
    }
    let (removal, subscribed) = (watches_removals(node), is_subscription(node));
    if scope == head::MULTI_SHAPE_SCOPE {
        let line = multi_shape_line(section.view());
        let head = Head::new(section.view(), head::MULTI_SHAPE + MULTI_SHAPE_FIRST);
        unlink(section, head, number);
        section.add(line, MULTI_SHAPE_WAITING, -1);
        note_change(section, line);
        if removal {
            section.add(line, MULTI_SHAPE_WATCHING_REMOVALS, -1);
        }
        if subscribed {
            section.add(line, MULTI_SHAPE_SUBSCRIBED, -1);
        }
        return;
    }
    let partition = Partition::of_scope(section.view(), scope);
    let head = head_of(section.view(), partition, node.load(TAG));
    unlink(section, head, number);
    section.add(partition.page(), WAITING, -1);
    let mask = node.load(MASK);
    let entries = (0..WAITER_MASKS_MAX).map(mask_entry);
    let entry = entries.into_iter().find(|(at, count)| {
        partition.page().load(*at) == mask && partition.page().load(*count) != 0
    });
    if let Some((_, count)) = entry {
        section.add(partition.page(), count, -1);
    }
    if removal {
        section.add(partition.page(), WATCHING_REMOVALS, -1);
    }
    if subscribed {
        section.add(partition.page(), SUBSCRIBED, -1);
    }
}

/// Counts one more wait node under `mask`, or under the empty mask if there are too many masks. Returns which.
fn count_mask<'m>(section: &mut Section<'m>, partition: Partition<'m>, mask: u32) -> u32 {
    let page = partition.page();
    let in_use = |number: &usize| page.load(mask_entry(*number).1) != 0;
    let same = (1..WAITER_MASKS_MAX)
        .find(|number| in_use(number) && page.load(mask_entry(*number).0) == mask);
    let unused = || (1..WAITER_MASKS_MAX).find(|number| !in_use(number));
    let number = if mask == 0 { 0 } else { same.or_else(unused).unwrap_or(0) };
    let (at, count) = mask_entry(number);
    let filed_under = if number == 0 { 0 } else { mask };
    section.set(page, at, filed_under);
    section.add(page, count, 1);
    filed_under
}

fn link<'m>(section: &mut Section<'m>, head: Head<'m>, number: u32) {
    let first = head.first();
    let this = node(section.view(), number);
    this.init(NEXT, first);
    this.init(PREVIOUS, 0);
    if first != 0 {
        let other = node(section.view(), first);
        section.set(other, PREVIOUS, number);
    }
    section.set(head.pair, head.at, number);
    section.set(this, STATE, LINKED);
}

fn unlink<'m>(section: &mut Section<'m>, head: Head<'m>, number: u32) {
    let this = node(section.view(), number);
    let (previous, next) = (this.load(PREVIOUS), this.load(NEXT));
    if previous == 0 {
        section.set(head.pair, head.at, next);
    } else {
        let other = node(section.view(), previous);
        section.set(other, NEXT, next);
    }
    if next != 0 {
        let other = node(section.view(), next);
        section.set(other, PREVIOUS, previous);
    }
    section.set(this, STATE, OWNED);
}
