//! What contradicts itself in a space ends calls with [`Error::Memory`] of damage, each of these at once (C5). None
//! goes round in it, and none takes memory for an impossible size. The damage tests with random words find such things,
//! seldom.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

use std::sync::Arc;
use std::time::Duration;

use tupelo_shm::GRANULE;
use tupelo_tuple::{Field, Kind, KindSet, PatternRef, TemplateRef};

use crate::base::error::Error;
use crate::store::extension::LIST_NEXT;
use crate::store::partition::Partition;
use crate::store::{arena, record};
use crate::time::list::{self, List};
use crate::waiters::events::ring::Ring;
use crate::waiters::{NEXT, OWNED, RING, STATE, node};
use crate::{
    ClaimTerms, Engine, EventKind, LeaseTerms, Order, SubscribeTerms, Subscription, Waiter, Want,
    testing,
};

const PAIR: [PatternRef<'static>; 2] = [PatternRef::Kinds(KindSet::of(Kind::Int)); 2];
const EVENTS_MAX: usize = 4;
const LONG: Duration = Duration::from_secs(3600);

fn engine() -> Arc<Engine> {
    Arc::new(testing::engine(8 << 20))
}

fn put(engine: &Engine) -> Result<(), Error> {
    engine.put(&[Field::Int(1), Field::Int(2)])
}

fn require_damage<R>(result: Result<R, Error>, after: &str) {
    let error = result.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("damaged"), "{after}: {error:?}");
}

/// A subscription whose ring is full.
fn subscribed(engine: &Arc<Engine>) -> Subscription {
    let terms = SubscribeTerms::new([EventKind::Put], EVENTS_MAX);
    let subscription = engine.subscribe(&[TemplateRef::new(&PAIR)], &terms).unwrap();
    for _ in 0..=EVENTS_MAX {
        put(engine).unwrap();
    }
    subscription
}

#[test]
fn a_subscription_that_is_not_in_line_but_in_a_chain() {
    let engine = engine();
    let subscription = subscribed(&engine);
    node(&engine.memory.view(), subscription.waiter().number()).init(STATE, OWNED);
    require_damage(put(&engine), "leads to one that is not in it");
}

#[test]
fn a_ring_whose_words_say_more_than_there_is_room_for() {
    for (word, name) in [(8, "head"), (12, "tail"), (16, "count")] {
        for value in [u32::MAX, u32::MAX - 8, 1 << 20] {
            let engine = engine();
            let subscription = subscribed(&engine);
            let view = engine.memory.view();
            let node = node(&view, subscription.waiter().number());
            assert!(Ring::of(&view, node).is_some());
            view.at::<GRANULE>(node.load(RING)).init(word, value);
            require_damage(put(&engine), name);
        }
    }
}

#[test]
fn a_chain_of_readers_that_leads_back_into_itself() {
    let engine = engine();
    put(&engine).unwrap();
    engine.try_take(&[TemplateRef::new(&PAIR)], Order::Fifo, |_| Ok::<_, Error>(())).unwrap();
    let readers: Vec<Waiter> =
        (0..3).map(|_| engine.waiter(&[TemplateRef::new(&PAIR)], Want::Read).unwrap()).collect();
    for reader in &readers {
        node(&engine.memory.view(), reader.number()).init(NEXT, reader.number());
    }
    // A view that was there before shows what no later one does.
    let view = engine.memory.view();
    let before = arena::line(&view).load(arena::COMMITTED);
    require_damage(put(&engine), "a chain that leads back");
    assert_eq!(arena::line(&view).load(arena::COMMITTED), before);
}

#[test]
fn a_tuple_that_is_longer_than_its_space_and_is_to_be_copied() {
    let engine = engine();
    let terms = LeaseTerms { lease: Some(LONG), after: None };
    let lease = engine.put_leased(&[Field::Int(1), Field::Int(2)], &terms).unwrap();
    let view = engine.memory.view();
    let before = arena::line(&view).load(arena::COMMITTED);
    record::header(&view, lease.block()).init(record::IMAGE_BYTES, u32::MAX / 2);
    require_damage(engine.waiter(&[TemplateRef::new(&PAIR)], Want::Read), "a long tuple");
    assert_eq!(arena::line(&view).load(arena::COMMITTED), before);
}

#[test]
fn a_list_of_claims_that_leads_back_into_itself() {
    let engine = engine();
    put(&engine).unwrap();
    let terms = ClaimTerms { ttl: LONG, attempts_max: None };
    let visitor = |_: tupelo_tuple::TupleView<'_>| Ok::<_, Error>(());
    let claimed =
        engine.try_claim(&[TemplateRef::new(&PAIR)], Order::Fifo, &terms, visitor).unwrap();
    let view = engine.memory.view();
    let partitions = (0..4).map(|shape| Partition::of_shape(&view, shape));
    let partition =
        partitions.into_iter().find(|partition| !List::Claimed.is_empty(*partition)).unwrap();
    let (reference, extension) = list::records(&view, partition, List::Claimed).next().unwrap();
    extension.init(LIST_NEXT, reference);
    require_damage(engine.stat(), "a list that leads back");
    drop(claimed);
}
