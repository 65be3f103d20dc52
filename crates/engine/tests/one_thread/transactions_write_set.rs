//! What a transaction finds of its own, and what it gives back unchanged (rules X2, X3, V3).

use std::cell::Cell;

use crate::support::transactions::{begin, contents, jobs, read, take, take_in};
use crate::support::{any, any_job, job, number, this_job, try_take};
use tupelo_engine::{Error, LeaseTerms, Order, Transaction, Want};
use tupelo_tuple::{Field, Kind, PatternRef, TemplateRef, TupleView};

/// A visitor for which no tuple is right.
fn refuse(_: TupleView<'_>) -> Result<(), Error> {
    Err(Error::Template("no".into()))
}

#[test]
fn what_a_visitor_refuses_is_back_v3() {
    let engine = jobs([1, 2]);
    let mut transaction = begin(&engine);
    let template = any_job();
    let template = [TemplateRef::new(&template)];
    transaction.try_take(0, &template, Order::Fifo, refuse).unwrap_err();
    assert_eq!(contents(&engine), [1, 2]);
    transaction.take_all(0, &template, None, refuse).unwrap_err();
    assert_eq!(contents(&engine), [1, 2]);
    transaction.put(0, &job(3)).unwrap();
    assert_eq!(transaction.take_all(0, &template, None, number).unwrap(), [1, 2, 3]);
}

#[test]
fn what_a_visitor_refuses_is_still_locked_if_it_was_read_before_x3() {
    let engine = jobs([1, 2]);
    let mut transaction = begin(&engine);
    let template = any_job();
    let template = [TemplateRef::new(&template)];
    transaction.try_read(0, &template, Order::Fifo, refuse).unwrap_err();
    transaction.read_all(0, &template, None, refuse).unwrap_err();
    assert!(!transaction.has_read(0), "what was not read is not locked");
    assert_eq!(read(&mut transaction, &this_job(1)), Some(1));
    for order in [Order::Fifo, Order::Min(1)] {
        transaction.try_take(0, &template, order, refuse).unwrap_err();
    }
    transaction.take_all(0, &template, None, refuse).unwrap_err();
    assert_eq!(contents(&engine), [1, 2]);
    assert_eq!(
        try_take(&engine, &any_job()),
        Some(2),
        "others may take what it has not read alone"
    );
    assert_eq!(try_take(&engine, &any_job()), None);
    assert_eq!(take(&mut transaction, &any_job()), Some(1));
    transaction.abort().unwrap();
    assert_eq!(try_take(&engine, &any_job()), Some(1));
    engine.check().unwrap();
}

#[test]
fn a_blocked_read_is_served_by_what_comes_back_locked_x4() {
    let engine = jobs([1]);
    let mut transaction = begin(&engine);
    assert_eq!(read(&mut transaction, &any_job()), Some(1));
    let patterns = any_job();
    let template = [TemplateRef::new(&patterns)];
    let waiter = Cell::new(None);
    let wait_and_refuse = |tuple: TupleView<'_>| {
        waiter.set(Some(engine.waiter(&template, Want::Read).unwrap()));
        refuse(tuple)
    };
    transaction.try_take(0, &template, Order::Fifo, wait_and_refuse).unwrap_err();
    assert_eq!(waiter.take().unwrap().finish(number).unwrap(), 1);
    assert_eq!(try_take(&engine, &any_job()), None, "it is locked still");
}

#[test]
fn a_transaction_finds_its_own_tuples_however_many_there_are_x2() {
    let engine = jobs([]);
    let mut transaction = begin(&engine);
    for number in (0..100).chain(50..60) {
        transaction.put(0, &job(number)).unwrap();
        transaction.put(0, &[Field::Int(number)]).unwrap();
    }
    let count = |transaction: &mut Transaction, patterns: &[PatternRef<'_>]| {
        transaction.count(0, &[TemplateRef::new(patterns)]).unwrap()
    };
    assert_eq!(
        (take(&mut transaction, &any_job()), take_in(&mut transaction, Order::Lifo)),
        (Some(0), Some(59))
    );
    assert_eq!(take(&mut transaction, &this_job(70)), Some(70));
    assert_eq!(take(&mut transaction, &this_job(70)), None);
    // An index over the number is there by now, and follows.
    assert_eq!(take(&mut transaction, &this_job(55)), Some(55));
    assert_eq!(count(&mut transaction, &this_job(55)), 1);
    transaction.put(0, &job(55)).unwrap();
    assert_eq!(count(&mut transaction, &this_job(55)), 2);
    for expected in [Some(55), Some(55), None] {
        assert_eq!(take(&mut transaction, &this_job(55)), expected);
    }
    assert_eq!(
        (take_in(&mut transaction, Order::Max(1)), take_in(&mut transaction, Order::Min(1))),
        (Some(99), Some(1))
    );
    let (some, none) = (this_job(50), this_job(1));
    let either = [TemplateRef::new(&some), TemplateRef::new(&none), TemplateRef::new(&some)];
    assert_eq!(transaction.take_all(0, &either, None, number).unwrap(), [50, 50]);
    assert_eq!(count(&mut transaction, &[any(Kind::Int)]), 110);
    transaction.commit().unwrap();
    let left = [2..50, 51..70, 71..99].into_iter().flatten().chain(51..59).filter(|one| *one != 55);
    let left: Vec<i64> = left.collect();
    assert_eq!(contents(&engine), left);
}

#[test]
fn a_few_of_its_own_of_several_shapes_are_put_as_they_were_x2() {
    let engine = jobs([]);
    let mut transaction = begin(&engine);
    for number in 0..9 {
        transaction.put(0, &job(number)).unwrap();
        transaction.put(0, &[Field::Int(number)]).unwrap();
        transaction.put(0, &[]).unwrap();
        // There are never many at once, and more than many in all.
        assert_eq!(take(&mut transaction, &this_job(number)), Some(number));
        let own = transaction.take_all(0, &[TemplateRef::new(&[])], None, |_| Ok::<_, Error>(()));
        assert_eq!(own.unwrap().len(), 1);
        assert_eq!(take(&mut transaction, &this_job(number)), None);
    }
    assert_eq!(transaction.count(0, &[TemplateRef::new(&[any(Kind::Int)])]).unwrap(), 9);
    transaction.commit().unwrap();
    assert_eq!(contents(&engine), []);
    assert_eq!(engine.count(&[TemplateRef::new(&[any(Kind::Int)])]).unwrap(), 9);
    assert_eq!(engine.count(&[TemplateRef::new(&[])]).unwrap(), 0);
}

#[test]
fn what_is_put_for_want_of_a_match_is_put_if_there_is_none_at_the_commit_o8() {
    let engine = jobs([1]);
    let (any, terms) = (any_job(), LeaseTerms::default());
    let unless = [TemplateRef::new(&any)];
    let mut transaction = begin(&engine);
    assert!(!transaction.put_if_absent(0, &job(2), &unless, &terms).unwrap());
    assert_eq!(take(&mut transaction, &any), Some(1));
    assert!(transaction.put_if_absent(0, &job(2), &unless, &terms).unwrap());
    assert!(!transaction.put_if_absent(0, &job(3), &unless, &terms).unwrap());
    transaction.commit().unwrap();
    assert_eq!(contents(&engine), [2]);

    let mut transaction = begin(&engine);
    assert_eq!(take(&mut transaction, &any), Some(2));
    assert!(transaction.put_if_absent(0, &job(3), &unless, &terms).unwrap());
    engine.put(&job(4)).unwrap();
    assert!(matches!(transaction.commit(), Err(Error::NotAbsent)));
    assert!(matches!(transaction.commit(), Err(Error::TransactionEnded { committed: false })));
    assert_eq!(contents(&engine), [2, 4]);
    engine.check().unwrap();
}
