//! A table that has no room for more buckets: its chains grow.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

use std::sync::Arc;
use std::time::Duration;

use tupelo_tuple::{Field, Kind, KindSet, PatternRef, TemplateRef, TupleView};

use crate::store::key;
use crate::store::partition::scope_of;
use crate::{Engine, Error, LeaseTerms, Order, Transaction, testing};

/// No test takes so long.
const LONG: Duration = Duration::from_secs(3600);
/// More than were once taken for damage.
const KEYS: usize = 4_200;
const INT: PatternRef<'static> = PatternRef::Kinds(KindSet::of(Kind::Int));

/// Numbers that belong to the same bucket of a table of 16, which is as large as one gets in its first extent.
fn numbers(engine: &Engine) -> Vec<i64> {
    let tag = |number| key::tag_of_fields(&[Field::Int(number), Field::Int(0)], 1, engine.seed);
    (0..).filter(|number| tag(*number) % 16 == 0).take(KEYS).collect()
}

#[test]
fn what_comes_back_to_a_full_space_makes_a_chain_as_long_as_it_has_keys_x5_c5() {
    let engine = Arc::new(testing::engine(8 << 20));
    let visitor = |_: TupleView<'_>| Ok::<_, Error>(());
    let numbers = numbers(&engine);
    // With a lease, a tuple has in its own block what its holder needs: it gives no room back with the tuple.
    let terms = LeaseTerms { lease: Some(LONG), after: None };
    for number in &numbers {
        engine.put_leased(&[Field::Int(*number), Field::Int(0)], &terms).unwrap();
    }
    let mut transaction = Transaction::begin([Arc::clone(&engine)], LONG).unwrap();
    let both = [INT, INT];
    let any = [TemplateRef::new(&both)];
    while transaction.try_take(0, &any, Order::Fifo, visitor).unwrap().is_some() {}
    // An index is learned while there is one tuple.
    engine.put(&[Field::Int(-1), Field::Int(0)]).unwrap();
    let patterns = [PatternRef::Actual(Field::Int(numbers[0])), INT];
    let first = [TemplateRef::new(&patterns)];
    for _ in 0..100 {
        assert_eq!(engine.try_read(&first, Order::Fifo, visitor).unwrap(), None);
    }
    assert_eq!(engine.check().unwrap().shapes[0].indexes, [1]);
    testing::fill(&engine);
    transaction.abort().unwrap();
    assert_eq!(engine.check().unwrap().shapes[0].tuples, KEYS as u64 + 1);
    assert_eq!(engine.try_read(&first, Order::Fifo, visitor).unwrap(), Some(()));
    // The table grows later, when there is room.
    let filler = [PatternRef::Kinds(KindSet::of(Kind::Bytes))];
    engine.take_all(&[TemplateRef::new(&filler)], None, visitor).unwrap();
    for number in 2..200 {
        engine.put(&[Field::Int(-number), Field::Int(0)]).unwrap();
    }
    engine.check().unwrap();
    assert_eq!(engine.try_take(&first, Order::Fifo, visitor).unwrap(), Some(()));
}

/// It looks for some in the whole space, and in one partition there is somebody who does not leave.
#[test]
fn a_put_does_without_more_buckets_also_where_another_shape_is_stalled_b1() {
    // Four keys per bucket: so many fill a table of 1024 buckets, and a segment of 64 KiB is the next.
    const KEYS: i64 = 4 * 1024;
    let engine = testing::engine(8 << 20);
    (0..KEYS).for_each(|key| engine.put(&[Field::Int(key), Field::Int(0)]).unwrap());
    crate::recovery::learning::learn(&engine, scope_of(0), 1).unwrap();
    // Of a key that is there: an extent with room for more.
    engine.put(&[Field::Int(0), Field::Int(0)]).unwrap();
    testing::fill(&engine);
    let (more, is_waited_for) = testing::beside_one_who_stays(&engine, scope_of(1), || {
        let more = [KEYS, KEYS + 1].map(|key| engine.put(&[Field::Int(key), Field::Int(0)]));
        (more, engine.memory.is_waited_for(scope_of(1)))
    });
    assert_eq!(more, [Ok(()), Ok(())]);
    assert!(!is_waited_for, "no put waits for an index");
    engine.check().unwrap();
}
