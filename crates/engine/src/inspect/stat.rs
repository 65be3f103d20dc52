//! What is in a space: figures for people and programs.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tupelo_shm::{ParticipantInfo, View};
use tupelo_tuple::Shape;

use crate::base::clock;
use crate::base::error::Error;
use crate::base::layout::EXTENT_BYTES;
use crate::index;
use crate::inspect::blocked::pid_of;
use crate::protocols::claim;
use crate::recovery::full::WhenFull;
use crate::recovery::{enter, sweep};
use crate::store::extension::{self, Extension, HOLD_END_MS};
use crate::store::partition::{self, LIVE, NEXT_SEQUENCE, Partition, TAKES};
use crate::store::{self, DROPPED, Store, WHERE_ERRORS, arena, record, registry, slab, space_line};
use crate::time::list::{self, List};
use crate::waiters::events::ring::Ring;
use crate::waiters::{self, chain, nodes, timer_leader};

/// Figures of a space. Each is right at some moment of the call; together they belong to no one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Tuples in the space.
    pub tuples: u64,
    /// Bytes of the arena that belong to shapes.
    pub bytes_used: u64,
    /// Bytes of memory that the arena has.
    pub bytes_committed: u64,
    /// Bytes that the arena may have.
    pub bytes_max: u64,
    /// Bytes of the largest piece of memory that is free, or can be had. A tuple of more than 32 KiB needs one piece.
    pub largest_free_bytes: u64,
    /// Tuples that the space may hold; `None`: as many as fit.
    pub tuples_max: Option<u64>,
    /// What becomes of a put for which there is no room.
    pub when_full: WhenFull,
    /// Tuples that were dropped for others so far.
    pub dropped: u64,
    /// Blocked callers, with those that wait for room.
    pub waiters: u64,
    /// Callers that wait for room.
    pub waiting_for_room: u64,
    /// How often a condition (`where`) could not be told of a tuple, which was no match then (rule M9).
    pub where_errors: u64,
    /// Who is told of what happens.
    pub subscriptions: Vec<SubscriptionStat>,
    /// Open transactions that have taken or read something here. What they are going to put, nobody sees.
    pub transactions: Vec<TransactionStat>,
    /// Living processes that use the space.
    pub pids: Vec<u32>,
    /// Dead ones that nobody has cleaned up after yet.
    pub pids_dead: Vec<u32>,
    /// One entry per shape, in the order of their first use.
    pub shapes: Vec<ShapeStat>,
}

/// Figures of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeStat {
    /// The shape itself.
    pub shape: Shape,
    /// Tuples of this shape.
    pub count: u64,
    /// Bytes of memory that its tuples and indexes have.
    pub bytes: u64,
    /// Blocked callers whose template selects this shape alone.
    pub waiting: u64,
    /// Who has claimed tuples of this shape.
    pub claims: Vec<ClaimStat>,
    /// Tuples whose last attempt has failed (rule K5).
    pub dead: u64,
    /// Tuples that are not visible yet (rule L3).
    pub delayed: u64,
    /// Tuples whose lease ends (rule L1), wherever they are: also those that are claimed, dead, or not visible yet.
    pub leased: u64,
    /// Tuples that open transactions have taken (rule X3).
    pub in_transactions: u64,
    /// Locks that open transactions have on tuples that they have read (rule X3).
    pub read_locks: u64,
    /// Tuples put so far.
    pub puts: u64,
    /// Tuples taken so far.
    pub takes: u64,
    /// The fields of each learned index.
    pub indexes: Vec<Vec<usize>>,
}

/// A claim, as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimStat {
    /// The process that holds the tuple; 0 if it is not known any more.
    pub pid: u32,
    /// The number of the claim.
    pub fence: u64,
    /// Which attempt at the tuple it is, from 1.
    pub attempt: u32,
    /// How long it runs if it is not renewed.
    pub expires_in: Duration,
}

/// A subscription, as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionStat {
    /// The process that listens; 0 if it is not known any more.
    pub pid: u32,
    /// Events that it has not picked up yet.
    pub waiting: u64,
    /// How many may wait before the oldest are dropped.
    pub buffer: u64,
    /// Bytes of memory for them.
    pub buffer_bytes: u64,
    /// Events that it was told of so far, or was not since they were dropped.
    pub events: u64,
    /// Those that were dropped: it was too slow.
    pub dropped: u64,
}

/// An open transaction, as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionStat {
    /// The process that began it; 0 if it is not known any more.
    pub pid: u32,
    /// Tuples that it has taken here.
    pub taken: u64,
    /// Tuples that it has read here.
    pub read: u64,
    /// How long it may still be open.
    pub expires_in: Duration,
}

/// Transactions by their processes' numbers, and their own in them.
type Transactions = BTreeMap<(u32, u32), TransactionStat>;

/// The sum of what shared memory says, which may be damaged.
fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// As [`crate::Engine::stat`] says.
pub(crate) fn stat(store: &Store) -> Result<Stat, Error> {
    match sweep::settle_the_dead(store) {
        Err(Error::SpaceFull(_)) => {}
        settled => settled?,
    }
    // What has ended is not there. Who is stopped inside a partition is not waited for.
    timer_leader::catch_up_where_free(store)?;
    let view = store.memory.view();
    let line = arena::line(&view);
    let committed = line.load(arena::COMMITTED);
    let bytes = |extents: u32| u64::from(extents) * EXTENT_BYTES as u64;
    let mut bytes_by_owner = std::collections::HashMap::<u32, u64>::new();
    let mut extent = 0_u32;
    while extent < committed.min(store.layout.extents_all) {
        let extents = slab::owners(&view, &store.layout, extent, |owner, bytes| {
            *bytes_by_owner.entry(owner).or_default() += bytes;
        });
        extent = extent.saturating_add(extents);
    }
    let mut transactions = Transactions::new();
    let shape = |number| {
        let bytes = bytes_by_owner.get(&partition::scope_of(number)).copied().unwrap_or(0);
        shape_stat(store, number, bytes, &mut transactions)
    };
    let shapes: Vec<ShapeStat> =
        (0..registry::count(&view)).filter_map(shape).collect::<Result<_, Error>>()?;
    let participants = store.memory.participants();
    let transactions = with_pids(transactions, &participants);
    let (alive, dead): (Vec<_>, Vec<_>) = participants.into_iter().partition(|one| one.alive);
    require_whole(store, &view)?;
    Ok(Stat {
        tuples: total(shapes.iter().map(|shape| shape.count)),
        bytes_used: bytes(committed.saturating_sub(line.load(arena::FREE))),
        bytes_committed: bytes(committed),
        bytes_max: bytes(store.layout.extents_max),
        largest_free_bytes: bytes(arena::longest_run(&view, &store.layout)),
        tuples_max: (store.tuples_max != 0).then_some(store.tuples_max),
        when_full: store.when_full,
        dropped: space_line(&view).load64(DROPPED),
        waiting_for_room: u64::from(chain::waiting_for_room(&view)),
        subscriptions: subscription_stats(store),
        waiters: u64::from(chain::multi_shape_counts(&view).waiting())
            + total(shapes.iter().map(|shape| shape.waiting)),
        where_errors: space_line(&view).double(WHERE_ERRORS).load(Relaxed),
        transactions,
        pids: pids(&alive),
        pids_dead: pids(&dead),
        shapes,
    })
}

fn shape_stat(
    store: &Store,
    number: u32,
    bytes: u64,
    transactions: &mut Transactions,
) -> Option<Result<ShapeStat, Error>> {
    let view = store.memory.view();
    let kinds = registry::kinds_of(store, &view, number)?;
    let held = claim_stats(store, number)
        .and_then(|claims| Ok((claims, count_in_transactions(store, number, transactions)?)));
    let (claims, (in_transactions, read_locks)) = match held {
        Ok(held) => held,
        Err(error) => return Some(Err(error)),
    };
    let partition = Partition::of_shape(&view, number);
    let fields = |index: index::Index<'_>| {
        let mask = index.words.load(index::MASK);
        (0..32).filter(|field| mask >> field & 1 == 1).collect()
    };
    Some(Ok(ShapeStat {
        claims,
        dead: u64::from(partition.page().load(partition::DEAD_COUNT)),
        delayed: u64::from(partition.page().load(partition::DELAYED_COUNT)),
        leased: u64::from(partition.page().load(partition::LEASED_COUNT)),
        in_transactions,
        read_locks,
        shape: kinds.to_shape(),
        count: u64::from(partition.page().load(LIVE)),
        bytes,
        waiting: u64::from(chain::counts(partition).waiting()),
        puts: partition.page().load64(NEXT_SEQUENCE),
        takes: partition.page().load64(TAKES),
        indexes: index::ready(partition).map(fields).collect(),
    }))
}

/// The subscriptions, in the order of their wait nodes.
fn subscription_stats(store: &Store) -> Vec<SubscriptionStat> {
    let view = store.memory.view();
    let participants = store.memory.participants();
    let stat = |number| {
        let node = waiters::node(&view, number);
        let is_one = chain::is_subscription(node) && node.load(waiters::STATE) != waiters::FREE;
        let ring = if is_one { Ring::of(&view, node) } else { None }?;
        Some(SubscriptionStat {
            pid: pid_of(&participants, node.load(waiters::OWNER)),
            waiting: u64::from(ring.count()),
            buffer: u64::from(ring.events_max()),
            buffer_bytes: ring.bytes() as u64,
            events: ring.next().saturating_sub(1),
            dropped: ring.dropped(),
        })
    };
    (1..=nodes::used(&view)).filter_map(stat).collect()
}

/// Who has claimed tuples of shape `number`, the last first.
fn claim_stats(store: &Store, number: u32) -> Result<Vec<ClaimStat>, Error> {
    let view = store.memory.view();
    if Partition::of_shape(&view, number).page().load(partition::CLAIMED) == 0 {
        return Ok(Vec::new());
    }
    let section = enter::enter(store, partition::scope_of(number))?;
    let partition = Partition::of_shape(section.view(), number);
    let stat = |(reference, extension): (u32, Extension<'_>)| ClaimStat {
        pid: claim::holder_pid(store, record::header(section.view(), reference)),
        fence: extension.load64(extension::FENCE),
        attempt: extension.load(extension::ATTEMPTS).saturating_add(1),
        expires_in: clock::time_until(extension.load64(HOLD_END_MS)),
    };
    let claims = list::records(section.view(), partition, List::Claimed).map(stat).collect();
    section.finish()?;
    Ok(claims)
}

/// How many tuples of shape `number` open transactions have taken, and how many locks they have on such; counts them
/// for each in `transactions`, too.
fn count_in_transactions(
    store: &Store,
    number: u32,
    transactions: &mut Transactions,
) -> Result<(u64, u64), Error> {
    let view = store.memory.view();
    let partition = Partition::of_shape(&view, number);
    if List::Enlisted.is_empty(partition) && List::Locks.is_empty(partition) {
        return Ok((0, 0));
    }
    let section = enter::enter(store, partition::scope_of(number))?;
    let (view, partition) = (section.view(), Partition::of_shape(section.view(), number));
    let mut count = |list, count_one: fn(&mut TransactionStat)| {
        let mut counted = 0;
        for (reference, extension) in list::records(view, partition, list) {
            let holder = record::header(view, reference).load(record::HOLDER);
            let one = (holder, extension.load(extension::TRANSACTION));
            let stat = transactions.entry(one).or_insert_with(|| {
                let expires_in = clock::time_until(extension.load64(HOLD_END_MS));
                TransactionStat { pid: 0, taken: 0, read: 0, expires_in }
            });
            count_one(stat);
            counted += 1;
        }
        counted
    };
    let taken = count(List::Enlisted, |stat| stat.taken += 1);
    let read = count(List::Locks, |stat| stat.read += 1);
    section.finish()?;
    Ok((taken, read))
}

/// As [`crate::Engine::shapes_present`] says.
pub(crate) fn shapes_present(store: &Store) -> Result<Vec<(Shape, u64)>, Error> {
    let view = store.memory.view();
    let one = |number| {
        let count = Partition::of_shape(&view, number).page().load(LIVE);
        if count == 0 {
            return None;
        }
        Some((registry::kinds_of(store, &view, number)?.to_shape(), u64::from(count)))
    };
    let present = (0..registry::count(&view)).filter_map(one).collect();
    require_whole(store, &view).map(|()| present)
}

/// As [`crate::Engine::count_unseen`] says.
pub(crate) fn count_unseen(store: &Store) -> Result<u64, Error> {
    let view = store.memory.view();
    let words = [partition::HELD, partition::DEAD_COUNT, partition::DELAYED_COUNT];
    let of_shape = |number| {
        let page = Partition::of_shape(&view, number).page();
        words.into_iter().map(|word| u64::from(page.load(word))).sum::<u64>()
    };
    let unseen = (0..registry::count(&view)).map(of_shape).sum();
    require_whole(store, &view).map(|()| unseen)
}

/// An error if what was seen in `view` contradicts itself, or damage was found before, or the space was removed.
pub(crate) fn require_whole(store: &Store, view: &View<'_>) -> Result<(), Error> {
    // First: a space that was removed meanwhile shows nothing.
    store::require_sound(store)?;
    if view.violated() {
        return Err(tupelo_shm::Error::corrupted("the tables contradict each other").into());
    }
    Ok(())
}

/// The transactions, with the processes that began them.
fn with_pids(transactions: Transactions, participants: &[ParticipantInfo]) -> Vec<TransactionStat> {
    let with_pid =
        |((holder, _), stat)| TransactionStat { pid: pid_of(participants, holder), ..stat };
    transactions.into_iter().map(with_pid).collect()
}

/// The process ids, each once: a process may have registered twice.
fn pids(participants: &[ParticipantInfo]) -> Vec<u32> {
    let mut pids: Vec<u32> = participants.iter().map(|one| one.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}
