//! Indexes that are learned while others are faster, where there is no room, or where there is damage.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

use std::thread;
use std::time::Duration;

use tupelo_shm::Section;
use tupelo_tuple::{Field, Kind, KindSet, PatternRef, TemplateRef, TupleView};

use super::note;
use crate::index::{self, BUILDING, READY, STATE};
use crate::store::partition::{self, FIRST, LAST, Partition};
use crate::store::record::{self, NEXT};
use crate::{Engine, Error, LeaseTerms, Order, testing};

/// A space with so many tuples of its first shape.
fn filled(tuples: i64) -> Engine {
    let engine = testing::engine(2 << 20);
    for number in 0..tuples {
        engine.put(&[Field::Int(number), Field::Int(0)]).unwrap();
    }
    engine
}

/// The state of the first index of the first shape.
fn state(engine: &Engine) -> u32 {
    let view = engine.memory.view();
    index::at(Partition::of_shape(&view, 0), 0).words.load(STATE)
}

#[test]
fn a_build_that_takes_longer_than_its_steps_is_no_damage_and_goes_on_later_o1_c5() {
    let engine = filled(2_000);
    let scope = partition::scope_of(0);
    crate::recovery::learning::learn_within(&engine, scope, 1, 2).unwrap();
    crate::store::require_sound(&engine).unwrap();
    assert_eq!(state(&engine), BUILDING);
    engine.check().unwrap();
    crate::recovery::learning::learn(&engine, scope, 1).unwrap();
    assert_eq!(state(&engine), READY);
    engine.check().unwrap();
}

#[test]
fn a_list_that_leads_back_into_itself_is_damage_c5() {
    let engine = filled(100);
    let scope = partition::scope_of(0);
    let mut section = Section::enter(&engine.memory, scope).unwrap();
    let partition = Partition::of_scope(section.view(), scope);
    let last = record::header(section.view(), partition.page().load(LAST));
    section.set(last, NEXT, partition.page().load(FIRST));
    section.finish().unwrap();
    assert!(matches!(crate::recovery::learning::learn(&engine, scope, 1), Err(Error::Memory(_))));
    assert!(crate::store::require_sound(&engine).is_err());
}

#[test]
fn an_index_that_finds_no_room_has_to_earn_it_anew_b1() {
    let engine = filled(100);
    testing::fill(&engine);
    let view = engine.memory.view();
    let partition = Partition::of_shape(&view, 0);
    while !note(partition, 1, 10) {}
    crate::recovery::learning::learn(&engine, partition.scope(), 1).unwrap();
    assert_eq!(index::ready(partition).count(), 0, "there is no room for one");
    assert!(!note(partition, 1, 10), "the price is to be paid again");
}

/// It looks for room in the whole space, and in one partition there is somebody who does not leave, although something is due.
#[test]
fn an_index_for_which_no_room_can_be_looked_for_fails_no_lookup_b1() {
    let engine = filled(100);
    let terms = LeaseTerms { lease: Some(Duration::from_secs(3600)), after: None };
    let lease = engine.put_leased(&[Field::Int(1)], &terms).unwrap();
    testing::fill(&engine);
    engine.renew(&lease, Some(Duration::from_millis(1))).unwrap();
    let view = engine.memory.view();
    let partition = Partition::of_shape(&view, 0);
    while !note(partition, 1, 10) {}
    let other = partition::scope_of(1);
    while !partition::is_behind(Partition::of_shape(&view, 1)) {
        thread::sleep(Duration::from_millis(1));
    }
    let (learned, is_waited_for) = testing::beside_one_who_stays(&engine, other, || {
        (
            crate::recovery::learning::learn(&engine, partition.scope(), 1),
            engine.memory.is_waited_for(other),
        )
    });
    assert_eq!(learned, Ok(()));
    assert!(!is_waited_for, "no lookup waits for one");
    assert_eq!(index::ready(partition).count(), 0);
    assert!(!note(partition, 1, 10), "the price is to be paid again");
}

/// It would link what is left into the few buckets that it has otherwise, and look through a chain of all for each.
#[test]
fn a_build_that_finds_no_room_for_its_table_ends_and_goes_on_when_there_is_some_b1() {
    let engine = filled(2_000);
    let bytes = [PatternRef::Kinds(KindSet::of(Kind::Bytes))];
    let filler = [TemplateRef::new(&bytes)];
    let visitor = |_: TupleView<'_>| Ok::<_, Error>(());
    testing::fill(&engine);
    // One extent, of some six that the table needs.
    engine.try_take(&filler, Order::Fifo, visitor).unwrap().unwrap();
    let view = engine.memory.view();
    let partition = Partition::of_shape(&view, 0);
    crate::recovery::learning::learn(&engine, partition.scope(), 1).unwrap();
    assert_eq!(index::ready(partition).count(), 0);
    engine.check().unwrap();
    engine.take_all(&filler, None, visitor).unwrap();
    crate::recovery::learning::learn(&engine, partition.scope(), 1).unwrap();
    assert_eq!(state(&engine), READY);
    engine.check().unwrap();
}
