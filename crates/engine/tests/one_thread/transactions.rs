//! Transactions on one engine and on several (rules X1 to X7).

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::support::transactions::{LONG, begin, contents, jobs, read, take, take_in};
use crate::support::{
    any, any_job, count, engine, job, number, this_job, try_claim, try_read, try_take,
};
use tupelo_engine::{Error, Order, Outcome, SHAPES_MAX, Transaction, Waiter, Want};
use tupelo_tuple::{Field, Kind, PatternRef, TemplateRef};

const BRIEF: Duration = Duration::from_millis(100);

/// Lets every transaction that began with [`BRIEF`] run out.
fn let_it_run_out() {
    thread::sleep(BRIEF + Duration::from_millis(10));
}

#[test]
fn what_is_put_is_visible_inside_and_outside_only_after_commit_x2() {
    let engine = jobs([1]);
    let mut transaction = begin(&engine);
    transaction.put(0, &job(2)).unwrap();
    assert_eq!((contents(&engine), read(&mut transaction, &this_job(2))), (vec![1], Some(2)));
    assert_eq!(transaction.count(0, &[TemplateRef::new(&any_job())]).unwrap(), 2);
    engine.put(&job(3)).unwrap();
    transaction.put(0, &job(4)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(contents(&engine), [1, 3, 2, 4], "in the order of the commit, then of the puts");
    assert_eq!(transaction.commit(), Err(Error::TransactionEnded { committed: true }));
    assert_eq!(transaction.abort(), Err(Error::TransactionEnded { committed: true }));
}

#[test]
fn what_is_put_and_taken_inside_is_never_outside_x2() {
    let engine = jobs([]);
    let mut transaction = begin(&engine);
    transaction.put(0, &job(2)).unwrap();
    assert_eq!(take(&mut transaction, &any_job()), Some(2));
    assert_eq!(take(&mut transaction, &any_job()), None);
    transaction.commit().unwrap();
    assert_eq!(contents(&engine), []);
}

#[test]
fn what_is_taken_is_nobody_elses_and_gone_with_the_commit_x3() {
    let engine = jobs([1, 2]);
    let mut transaction = begin(&engine);
    assert_eq!(take(&mut transaction, &any_job()), Some(1));
    assert_eq!((contents(&engine), try_take(&engine, &this_job(1))), (vec![2], None));
    assert!(try_claim(&engine, &this_job(1), &crate::support::LONG).is_none());
    assert!(engine.present(&[TemplateRef::new(&this_job(1))]).unwrap(), "O9");
    transaction.commit().unwrap();
    assert!(!engine.present(&[TemplateRef::new(&this_job(1))]).unwrap());
    assert_eq!(contents(&engine), [2]);
}

#[test]
fn an_abort_restores_identity_age_and_place_x5() {
    let engine = jobs(1..=5);
    let mut transaction = begin(&engine);
    assert_eq!(take(&mut transaction, &this_job(3)), Some(3));
    assert_eq!(take(&mut transaction, &any_job()), Some(1));
    assert_eq!(read(&mut transaction, &this_job(2)), Some(2));
    transaction.put(0, &job(9)).unwrap();
    transaction.abort().unwrap();
    assert_eq!(contents(&engine), [1, 2, 3, 4, 5]);
    assert_eq!(transaction.put(0, &job(9)), Err(Error::TransactionEnded { committed: false }));
    let mut dropped = begin(&engine);
    assert_eq!(take(&mut dropped, &any_job()), Some(1));
    drop(dropped);
    assert_eq!(contents(&engine), [1, 2, 3, 4, 5]);
    assert_eq!(try_claim(&engine, &any_job(), &crate::support::LONG).unwrap().0.attempt(), 1);
}

#[test]
fn fifty_thousand_takes_of_one_key_are_undone_x5() {
    const TAKES: i64 = 50_000;
    let engine = engine(64 << 20);
    for number in 0..100 {
        engine.put(&[Field::Str("other"), Field::Int(number)]).unwrap();
    }
    (0..100).for_each(|number| engine.put(&job(number)).unwrap());
    for _ in 0..5 {
        assert_eq!(try_read(&engine, &any_job()), Some(0));
    }
    assert_eq!(engine.check().unwrap().shapes[0].indexes, [1]);
    (100..TAKES).for_each(|number| engine.put(&job(number)).unwrap());
    // All of them, and then the older half of twice as many: what comes back is close to the end, or to neither end.
    for there in [TAKES, 2 * TAKES] {
        (TAKES..there).for_each(|number| engine.put(&job(number)).unwrap());
        let mut transaction = begin(&engine);
        for number in 0..TAKES {
            assert_eq!(take(&mut transaction, &any_job()), Some(number));
        }
        transaction.abort().unwrap();
        assert!(contents(&engine).into_iter().eq(0..there), "all in their order");
    }
}

#[test]
fn what_is_read_may_be_read_by_others_and_not_taken_x3() {
    let engine = jobs([1, 2]);
    let mut transaction = begin(&engine);
    assert_eq!(read(&mut transaction, &any_job()), Some(1));
    assert_eq!(read(&mut transaction, &any_job()), Some(1), "a lock is enough");
    assert_eq!((try_read(&engine, &any_job()), count(&engine)), (Some(1), 2));
    let mut other = begin(&engine);
    assert_eq!(read(&mut other, &any_job()), Some(1));
    assert_eq!(contents(&engine), [1, 2]);
    other.commit().unwrap();
    assert_eq!((try_take(&engine, &any_job()), contents(&engine)), (Some(2), vec![1]));
    transaction.commit().unwrap();
    assert_eq!((try_take(&engine, &any_job()), contents(&engine)), (Some(1), vec![]));
}

#[test]
fn every_verb_that_removes_passes_over_what_was_read_x3() {
    let engine = jobs([1, 2]);
    let template = any_job();
    let template = [TemplateRef::new(&template)];
    let (mut transaction, mut other) = (begin(&engine), begin(&engine));
    assert_eq!(read(&mut transaction, &any_job()), Some(1));
    for order in [Order::Fifo, Order::Lifo, Order::Random, Order::Any, Order::Max(1), Order::Min(1)]
    {
        let patterns = this_job(1);
        let this = [TemplateRef::new(&patterns)];
        assert_eq!(engine.try_take(&this, order, number).unwrap(), None, "{order:?}");
        assert!(engine.try_claim(&this, order, &crate::support::LONG, number).unwrap().is_none());
        assert_eq!(other.try_take(0, &this, order, number).unwrap(), None, "{order:?}");
    }
    assert_eq!(engine.try_swap(&template, &job(7), number).unwrap(), Some(2));
    assert_eq!(engine.take_all(&template, None, number).unwrap(), [7]);
    assert_eq!(engine.try_take_many(&template, 1, 9, number).unwrap(), None);
    let union = [TemplateRef::new(&[]), template[0]];
    assert_eq!(engine.try_take(&union, Order::Fifo, number).unwrap(), None);
    let target = jobs([]);
    assert_eq!(engine.move_to(&target, &template).unwrap(), 0);
    assert_eq!(engine.copy_to(&target, &template).unwrap(), 1);
    assert_eq!((try_take(&engine, &any_job()), contents(&engine)), (None, vec![1]));
}

#[test]
fn a_transaction_takes_what_it_alone_has_read_x3() {
    let engine = jobs(1..=4);
    for ends_well in [false, true] {
        let (mut transaction, mut other) = (begin(&engine), begin(&engine));
        assert_eq!(read(&mut transaction, &this_job(1)), Some(1));
        assert_eq!(read(&mut transaction, &this_job(2)), Some(2));
        assert_eq!(read(&mut other, &this_job(1)), Some(1));
        assert_eq!(take_in(&mut transaction, Order::Fifo), Some(2), "another has read 1");
        assert_eq!(contents(&engine), [1, 3, 4]);
        assert_eq!(take_in(&mut transaction, Order::Max(1)), Some(4));
        other.abort().unwrap();
        let template = any_job();
        let all = transaction.take_all(0, &[TemplateRef::new(&template)], Some(1), number).unwrap();
        assert_eq!(all, [1]);
        if ends_well {
            transaction.commit().unwrap();
        } else {
            transaction.abort().unwrap();
        }
        assert_eq!(contents(&engine), if ends_well { vec![3] } else { vec![1, 2, 3, 4] });
    }
    assert_eq!(try_take(&engine, &any_job()), Some(3), "no mark is left");
}

#[test]
fn an_own_put_may_come_between_what_another_has_read_and_what_is_left_t2_x3() {
    let engine = jobs([7, 9]);
    let (mut transaction, mut other) = (begin(&engine), begin(&engine));
    assert_eq!(read(&mut other, &this_job(9)), Some(9));
    assert_eq!(read(&mut transaction, &this_job(7)), Some(7));
    transaction.put(0, &job(8)).unwrap();
    assert_eq!(take_in(&mut transaction, Order::Max(1)), Some(8), "9 is passed over, 7 preceded");
    assert_eq!(try_take(&engine, &any_job()), None, "7 is locked still");
    assert_eq!(take_in(&mut transaction, Order::Max(1)), Some(7));
    transaction.abort().unwrap();
    other.abort().unwrap();
    assert_eq!(contents(&engine), [7, 9]);
}

#[test]
fn orders_are_kept_over_what_it_has_put_itself_t2() {
    let engine = jobs([5, 3]);
    let mut transaction = begin(&engine);
    for number in [4, 9] {
        transaction.put(0, &job(number)).unwrap();
    }
    assert_eq!(take_in(&mut transaction, Order::Lifo), Some(9));
    assert_eq!(take_in(&mut transaction, Order::Min(1)), Some(3));
    assert_eq!(take_in(&mut transaction, Order::Min(1)), Some(4), "its own is less");
    assert_eq!(contents(&engine), [5], "and 5 is not held for it");
    assert_eq!(take_in(&mut transaction, Order::Fifo), Some(5));
    transaction.put(0, &job(6)).unwrap();
    let template = any_job();
    let template = [TemplateRef::new(&template)];
    assert_eq!(transaction.read_all(0, &template, None, number).unwrap(), [6]);
    assert_eq!(transaction.try_take_many(0, &template, 2, 2, number).unwrap(), None);
    assert_eq!(transaction.try_take_many(0, &template, 1, 2, number).unwrap(), Some(vec![6]));
    transaction.abort().unwrap();
    assert_eq!(contents(&engine), [5, 3]);
}

#[test]
fn what_was_read_stays_locked_when_an_own_put_is_preferred_x3() {
    let engine = jobs([1]);
    let mut transaction = begin(&engine);
    assert_eq!(read(&mut transaction, &any_job()), Some(1));
    transaction.put(0, &job(2)).unwrap();
    assert_eq!(take_in(&mut transaction, Order::Max(1)), Some(2));
    assert_eq!((try_take(&engine, &any_job()), contents(&engine)), (None, vec![1]));
    transaction.commit().unwrap();
    assert_eq!(try_take(&engine, &any_job()), Some(1));
}

#[test]
fn many_are_taken_and_read_at_one_moment_o6() {
    let engine = jobs(1..=100);
    let template = any_job();
    let template = [TemplateRef::new(&template)];
    let mut transaction = begin(&engine);
    assert_eq!(transaction.read_all(0, &template, Some(60), number).unwrap().len(), 60);
    let numbers = |numbers: std::ops::RangeInclusive<i64>| numbers.collect::<Vec<_>>();
    assert_eq!(engine.take_all(&template, Some(10), number).unwrap(), numbers(61..=70));
    let taken = transaction.take_all(0, &template, Some(70), number).unwrap();
    assert_eq!(taken, [numbers(1..=60), numbers(71..=80)].concat());
    assert_eq!(contents(&engine), numbers(81..=100));
    transaction.commit().unwrap();
    assert_eq!(contents(&engine), numbers(81..=100));
}

#[test]
fn a_blocked_caller_gets_what_a_transaction_gives_back_or_unlocks_x4() {
    let engine = jobs([1]);
    let template = any_job();
    let waiter = || engine.waiter(&[TemplateRef::new(&template)], Want::Take).unwrap();
    let mut transaction = begin(&engine);
    assert_eq!(take(&mut transaction, &any_job()), Some(1));
    let waiting = waiter();
    assert!(!waiting.wait(Some(Duration::ZERO)).unwrap());
    transaction.abort().unwrap();
    assert_eq!(waiting.finish(number).unwrap(), 1);
    engine.put(&job(2)).unwrap();
    let (mut first, mut second) = (begin(&engine), begin(&engine));
    assert_eq!((read(&mut first, &any_job()), read(&mut second, &any_job())), (Some(2), Some(2)));
    let waiting = waiter();
    first.commit().unwrap();
    assert!(!waiting.wait(Some(Duration::ZERO)).unwrap(), "the other has it still");
    second.commit().unwrap();
    assert_eq!(waiting.finish(number).unwrap(), 2);
    assert_eq!(contents(&engine), []);
}

#[test]
fn who_has_read_a_tuple_too_hears_that_it_is_the_only_one_left_x4() {
    let engine = jobs([1]);
    let template = any_job();
    let template = [TemplateRef::new(&template)];
    let (mut first, mut second) = (begin(&engine), begin(&engine));
    assert_eq!((read(&mut first, &any_job()), read(&mut second, &any_job())), (Some(1), Some(1)));
    assert!(first.has_read(0) && take(&mut first, &any_job()).is_none());
    let watch = first.waiter(0, &template, false).unwrap();
    assert!(!watch.wait(Some(Duration::ZERO)).unwrap());
    second.abort().unwrap();
    assert!(watch.is_ready());
    assert_eq!(take(&mut first, &any_job()), Some(1));
    first.commit().unwrap();
    assert_eq!(contents(&engine), []);
}

#[test]
fn who_is_blocked_gets_the_oldest_of_what_comes_back_t2() {
    for ends_well in [false, true] {
        let engine = jobs(1..=6);
        let mut transaction = begin(&engine);
        for number in [5, 2, 6, 1, 4, 3] {
            let is_read = ends_well || number % 2 == 0;
            let call = if is_read { read } else { take };
            assert_eq!(call(&mut transaction, &this_job(number)), Some(number));
        }
        let template = any_job();
        let waiter = |_| engine.waiter(&[TemplateRef::new(&template)], Want::Take).unwrap();
        let waiters: Vec<Waiter> = (0..6).map(waiter).collect();
        if ends_well {
            transaction.commit().unwrap();
        } else {
            transaction.abort().unwrap();
        }
        let served: Vec<i64> =
            waiters.into_iter().map(|waiter| waiter.finish(number).unwrap()).collect();
        assert_eq!(served, [1, 2, 3, 4, 5, 6]);
    }
}

#[test]
fn a_blocked_caller_gets_what_is_committed_t3() {
    let engine = jobs([]);
    let template = any_job();
    let wait = |want| engine.waiter(&[TemplateRef::new(&template)], want).unwrap();
    let (taker, reader) = (wait(Want::Take), wait(Want::Read));
    let mut transaction = begin(&engine);
    transaction.put(0, &job(1)).unwrap();
    transaction.put(0, &job(2)).unwrap();
    assert!(!taker.wait(Some(Duration::ZERO)).unwrap());
    transaction.commit().unwrap();
    assert_eq!((taker.finish(number).unwrap(), reader.finish(number).unwrap()), (1, 1));
    assert_eq!(contents(&engine), [2]);
}

#[test]
fn a_transaction_waits_in_line_and_holds_what_it_gets_x6() {
    let engine = jobs([]);
    let mut transaction = begin(&engine);
    let template = any_job();
    let template = [TemplateRef::new(&template)];
    let waiter = transaction.waiter(0, &template, true).unwrap();
    let Outcome::Waits(waiter) = transaction.finish_take(0, waiter, number).unwrap() else {
        panic!("there is nothing");
    };
    engine.put(&job(1)).unwrap();
    assert!(waiter.wait(Some(LONG)).unwrap());
    let Outcome::Done(1) = transaction.finish_take(0, waiter, number).unwrap() else {
        panic!("it was handed over");
    };
    assert_eq!((contents(&engine), engine.check().unwrap().held()), (vec![], 1));
    transaction.abort().unwrap();
    assert_eq!(contents(&engine), [1]);
}

#[test]
fn a_transaction_that_runs_out_is_undone_and_says_so_x6() {
    let engine = jobs(1..=3);
    let mut transaction = Transaction::begin(vec![Arc::clone(&engine)], BRIEF).unwrap();
    assert_eq!(take(&mut transaction, &any_job()), Some(1));
    assert_eq!(read(&mut transaction, &any_job()), Some(2));
    transaction.put(0, &job(9)).unwrap();
    let_it_run_out();
    assert_eq!(try_take(&engine, &any_job()), Some(1), "it was back before anybody said so");
    assert_eq!(try_take(&engine, &any_job()), Some(2));
    let Err(Error::Aborted(abortion)) = transaction.commit() else { panic!("it is over") };
    assert_eq!((abortion.takes, abortion.puts, abortion.ttl), (1, 1, BRIEF));
    assert!(abortion.open >= BRIEF);
    // Whoever has not heard it the first time hears it again.
    assert!(!transaction.is_ended());
    assert_eq!(transaction.put(0, &job(9)), Err(Error::Aborted(abortion.clone())));
    assert_eq!(transaction.commit(), Err(Error::Aborted(abortion)));
    transaction.abort().unwrap();
    assert_eq!(transaction.commit(), Err(Error::TransactionEnded { committed: false }));
    assert_eq!(contents(&engine), [3]);
}

#[test]
fn a_shape_too_many_is_told_at_commit_unless_the_time_is_over_x5() {
    let engine = engine(16 << 20);
    engine.put(&[Field::Null]).unwrap();
    let is_there = [TemplateRef::new(&[PatternRef::Actual(Field::Null)])];
    // Sixteen fields of two kinds make as many shapes as there may be. That the tuple is not put costs no memory.
    let mut shapes = 1;
    let refused = (0..SHAPES_MAX).find_map(|shape| {
        let field = |bit| if shape >> bit & 1 == 0 { Field::Int(1) } else { Field::Null };
        let tuple = std::array::from_fn::<_, 16, _>(field);
        let put = engine.put_if_absent(&tuple[..], &is_there);
        shapes += usize::from(put == Ok(false));
        put.err()
    });
    let Some(Error::TooManyShapes(many)) = &refused else { panic!("{refused:?}") };
    assert_eq!((many.limit, many.count, many.arity), (shapes, shapes - 1, 16));
    let mut transaction = begin(&engine);
    transaction.put(0, &job(1)).unwrap();
    assert_eq!(transaction.commit().err(), refused);
    assert!(transaction.is_open());
    engine.put(&[Field::Str("tupelo.lock"), Field::Str("a")]).unwrap();
    assert_eq!(SHAPES_MAX - shapes, 64, "these are kept for locks and the like");
    let mut brief = Transaction::begin(vec![Arc::clone(&engine)], BRIEF).unwrap();
    brief.put(0, &job(1)).unwrap();
    let_it_run_out();
    assert!(matches!(brief.commit(), Err(Error::Aborted(_))));
}

#[test]
fn who_waits_gets_what_runs_out_while_nobody_comes_by_t6() {
    let engine = jobs([1, 2]);
    let mut transaction = Transaction::begin(vec![Arc::clone(&engine)], BRIEF).unwrap();
    assert_eq!(take(&mut transaction, &any_job()), Some(1));
    assert_eq!(read(&mut transaction, &any_job()), Some(2));
    let wait = |number| engine.waiter(&[TemplateRef::new(&this_job(number))], Want::Take).unwrap();
    let finish = |waiter: Waiter| waiter.finish(number).unwrap();
    assert_eq!((finish(wait(1)), finish(wait(2))), (1, 2));
    assert_eq!(contents(&engine), []);
}

#[test]
fn several_spaces_change_together_x1() {
    let (one, two) = (jobs([1]), jobs([]));
    let engines = || vec![Arc::clone(&one), Arc::clone(&two)];
    for ends_well in [false, true] {
        let mut transaction = Transaction::begin(engines(), LONG).unwrap();
        assert_eq!(take(&mut transaction, &any_job()), Some(1));
        transaction.put(1, &job(1)).unwrap();
        assert_eq!((contents(&one), contents(&two)), (vec![], vec![]));
        if ends_well {
            transaction.commit().unwrap();
        }
        drop(transaction);
        let expected = if ends_well { (vec![], vec![1]) } else { (vec![1], vec![]) };
        assert_eq!((contents(&one), contents(&two)), expected);
    }
    let too_many = std::iter::repeat_with(|| Arc::clone(&one)).take(17);
    let refused = Transaction::begin(too_many, LONG).unwrap_err();
    assert_eq!(refused, Error::LimitExceeded { what: "spaces in one transaction", limit: 16 });
}

#[test]
fn a_tuple_whose_lease_ends_goes_although_it_was_read_l1() {
    let engine = jobs([]);
    let terms = tupelo_engine::LeaseTerms { lease: Some(BRIEF), after: None };
    engine.put_leased(&job(1), &terms).unwrap();
    engine.put(&job(2)).unwrap();
    let mut transaction = begin(&engine);
    assert_eq!(read(&mut transaction, &any_job()), Some(1));
    let_it_run_out();
    assert_eq!(contents(&engine), [2]);
    // Its block may be another's by now, and the lock means nothing to that one.
    engine.put(&job(3)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(contents(&engine), [2, 3]);
    assert_eq!((try_take(&engine, &any_job()), try_take(&engine, &any_job())), (Some(2), Some(3)));
}

#[test]
fn a_full_space_refuses_the_commit_and_loses_nothing_b1() {
    let engine = crate::support::engine_for(16 << 20, Some(2));
    engine.put(&job(1)).unwrap();
    engine.put(&job(2)).unwrap();
    let mut transaction = begin(&engine);
    transaction.put(0, &job(3)).unwrap();
    assert!(matches!(transaction.commit(), Err(Error::SpaceFull(_))));
    assert_eq!(take(&mut transaction, &any_job()), Some(1), "it is still open");
    transaction.commit().unwrap();
    assert_eq!(contents(&engine), [2, 3]);
}

#[test]
fn a_space_that_drops_its_oldest_drops_nothing_that_was_read_x3_b1() {
    let limits = tupelo_engine::Limits {
        size_bytes: 16 << 20,
        tuples_max: Some(3),
        when_full: tupelo_engine::WhenFull::DropOldest,
    };
    let engine = crate::support::engine_with(&limits);
    (1..=3).for_each(|number| engine.put(&job(number)).unwrap());
    let mut transaction = begin(&engine);
    assert_eq!(read(&mut transaction, &this_job(1)), Some(1));
    engine.put(&job(4)).unwrap();
    assert_eq!(contents(&engine), [1, 3, 4]);
    let template = any_job();
    transaction.read_all(0, &[TemplateRef::new(&template)], None, number).unwrap();
    assert!(matches!(engine.put(&job(5)), Err(Error::SpaceFull(_))), "all were read");
    transaction.abort().unwrap();
    let mut transaction = begin(&engine);
    transaction.put(0, &job(6)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(contents(&engine), [3, 4, 6], "a commit makes room as a put does");
}

#[test]
fn a_commit_takes_the_room_of_what_it_consumes_and_nobody_elses_b1() {
    let engine = crate::support::engine_for(16 << 20, Some(2));
    (1..=2).for_each(|number| engine.put(&job(number)).unwrap());
    let mut transaction = begin(&engine);
    assert_eq!(take(&mut transaction, &this_job(1)), Some(1));
    let room = engine.room().unwrap();
    assert_eq!(try_take(&engine, &this_job(2)), Some(2), "which is room for who waits");
    transaction.put(0, &job(3)).unwrap();
    transaction.commit().unwrap();
    room.with_grant(|| engine.put(&job(5))).unwrap();
    assert_eq!(contents(&engine), [3, 5]);
}

#[test]
fn a_large_tuple_is_taken_like_a_small_one_x3() {
    let engine = engine(64 << 20);
    let bytes = vec![7; 1 << 20];
    engine.put(&[Field::Bytes(&bytes)]).unwrap();
    let patterns = [any(Kind::Bytes)];
    let template = [TemplateRef::new(&patterns)];
    let length = |tuple: tupelo_tuple::TupleView<'_>| match tuple.field(0) {
        Some(Field::Bytes(bytes)) => Ok::<_, Error>(bytes.len()),
        other => panic!("{other:?}"),
    };
    let mut transaction = begin(&engine);
    assert_eq!(transaction.try_take(0, &template, Order::Fifo, length).unwrap(), Some(1 << 20));
    transaction.put(0, &[Field::Bytes(&bytes[1..])]).unwrap();
    assert_eq!(engine.count(&template).unwrap(), 0);
    transaction.commit().unwrap();
    assert_eq!(engine.try_take(&template, Order::Fifo, length).unwrap(), Some((1 << 20) - 1));
    engine.check().unwrap();
}

#[test]
fn money_is_neither_made_nor_lost_by_threads_that_transfer_it_x1() {
    const ACCOUNTS: i64 = 6;
    let engine = engine(16 << 20);
    let account = |name: i64, money: i64| [Field::Int(name), Field::Int(money)];
    (0..ACCOUNTS).for_each(|name| engine.put(&account(name, 100)).unwrap());
    let money = |tuple: tupelo_tuple::TupleView<'_>| match tuple.field(1) {
        Some(Field::Int(money)) => Ok::<_, Error>(money),
        other => panic!("{other:?}"),
    };
    let transfer = |from: i64, into: i64, amount: i64| {
        let mut transaction = begin(&engine);
        for (name, change) in [(from, -amount), (into, amount)] {
            let patterns = [PatternRef::Actual(Field::Int(name)), any(Kind::Int)];
            let template = [TemplateRef::new(&patterns)];
            let Some(had) = transaction.try_take(0, &template, Order::Fifo, money).unwrap() else {
                return false;
            };
            transaction.put(0, &account(name, had + change)).unwrap();
        }
        transaction.commit().unwrap();
        true
    };
    thread::scope(|scope| {
        for thread in 0..3_i64 {
            scope.spawn(move || {
                let mut done = 0;
                for round in 0_i64.. {
                    let from = (thread + round) % ACCOUNTS;
                    done += u32::from(transfer(from, (from + 1 + round % 5) % ACCOUNTS, 1));
                    if done == 300 {
                        break;
                    }
                }
            });
        }
        scope.spawn(|| {
            let patterns = [any(Kind::Int), any(Kind::Int)];
            let template = [TemplateRef::new(&patterns)];
            for _ in 0..300 {
                let mut transaction = begin(&engine);
                let seen = transaction.read_all(0, &template, None, money).unwrap();
                transaction.commit().unwrap();
                // What is in another's hands is not seen; all that is there is of one moment.
                assert!(seen.len() < 6 || seen.iter().sum::<i64>() == 100 * ACCOUNTS, "{seen:?}");
            }
        });
    });
    let patterns = [any(Kind::Int), any(Kind::Int)];
    let all = engine.read_all(&[TemplateRef::new(&patterns)], None, money).unwrap();
    assert_eq!((all.len(), all.iter().sum::<i64>()), (6, 100 * ACCOUNTS));
    engine.check().unwrap();
}

#[test]
fn a_commit_that_begins_anew_leaves_an_index_as_it_was_c2() {
    let mut jobs = jobs(0..64);
    for _ in 0..500 {
        assert_eq!(try_read(&jobs, &this_job(-1)), None);
    }
    let indexed = jobs.check().unwrap().shapes.iter().any(|shape| !shape.indexes.is_empty());
    assert!(indexed, "an index over the numbers");
    let own = &mut jobs;
    for read_first in 0..24 {
        let mut transaction = begin(own);
        assert_eq!(read(&mut transaction, &this_job(read_first)), Some(read_first));
        // In the wait queue for what the transaction has read: it leaves its place as that ends.
        let patterns = this_job(read_first);
        let waiter = own.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
        let first = 1_000 * (read_first + 1);
        for value in first..first + 60 {
            transaction.put(0, &job(value)).unwrap();
        }
        transaction.commit().unwrap();
        own.check().unwrap();
        assert_eq!(crate::support::done(waiter.finish_now(number)), read_first);
        assert_eq!(try_read(own, &this_job(first + 59)), Some(first + 59));
    }
}

#[test]
fn a_commit_of_more_than_the_space_may_hold_drops_nothing_b1() {
    let limits = tupelo_engine::Limits {
        size_bytes: 2 << 20,
        when_full: tupelo_engine::WhenFull::DropOldest,
        ..Default::default()
    };
    let engine = crate::support::engine_with(&limits);
    engine.put(&job(1)).unwrap();
    let mut transaction = begin(&engine);
    let bytes = vec![7; 60_000];
    for _ in 0..40 {
        transaction.put(0, &[Field::Bytes(&bytes)]).unwrap();
    }
    let refused = transaction.commit();
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
    assert_eq!(contents(&engine), [1]);
}
