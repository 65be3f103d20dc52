//! A change of a space and its record in the journal happen together or not at all (rules C1, C4). A process that
//! changes the space, or that reads the journal, may be killed at any instruction.

use std::sync::Arc;
use std::time::Duration;

use crate::shared::{
    INT, contents, int, kill_everywhere, kill_once_and_twice, learn, put, shown, space_journalled,
    take,
};
use crate::support::replay::Replay;
use tupelo_engine::{Claim, ClaimTerms, Engine, Error, LeaseTerms, Order, Transaction, Want};
use tupelo_tuple::{Field, TemplateRef, TupleRef};

const LONG: ClaimTerms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
const HOUR: Duration = Duration::from_secs(3600);

/// Twelve tuples under three keys, an index over the keys, and a timer that is far away.
fn indexed() -> Arc<Engine> {
    let engine = space_journalled(8 << 20, 1 << 20);
    for value in 0..12 {
        put(&engine, value % 3, value);
    }
    learn(&engine, &[int(2), INT]);
    let terms = LeaseTerms { lease: Some(HOUR), after: None };
    engine.put_leased(&[Field::Int(9), Field::Int(9)], &terms).unwrap();
    engine
}

/// Kills inside of `script`, and of who cleans up after it. Whatever is there then, the journal has told of.
fn is_told(engine: &Arc<Engine>, script: impl Fn(&Arc<Engine>)) {
    let mut before = Replay::default();
    before.drain(engine);
    before.assert_is_in(engine);
    kill_once_and_twice(engine, script, |found, _| {
        assert_eq!(found.report.held(), 0, "nobody is left to hold anything");
        let mut now = before.clone();
        // Not released: the next one finds it as well.
        now.visit(&engine.try_drain().unwrap().unwrap());
        now.assert_is_in(engine);
        let unseen = engine.count_unseen().unwrap();
        assert_eq!(now.tuples.len() as u64, found.report.tuples() + unseen);
    });
}

fn claim(engine: &Arc<Engine>, key: i64, value: i64, terms: &ClaimTerms) -> Claim {
    let template = [int(key), int(value)];
    let claimed = engine.try_claim(&[TemplateRef::new(&template)], Order::Fifo, terms, shown);
    claimed.unwrap().unwrap().0
}

#[test]
fn a_put_and_a_take_are_told_or_have_not_happened_c4() {
    is_told(&indexed(), |engine| put(engine, 77, 1));
    is_told(&indexed(), |engine| assert!(take(engine, &[int(1), int(4)]).is_some()));
}

#[test]
fn a_put_on_terms_is_told_with_them_or_has_not_happened_c4() {
    let engine = indexed();
    let terms = LeaseTerms { lease: Some(HOUR), after: Some(HOUR) };
    is_told(&engine, |engine| {
        engine.put_leased(&[Field::Int(5), Field::Int(5)], &terms).unwrap();
    });
}

#[test]
fn what_is_handed_over_and_picked_up_is_told_c4() {
    let engine = indexed();
    is_told(&engine, |engine| {
        let patterns = [int(50), INT];
        let waiter = engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
        put(engine, 50, 1);
        assert_eq!(waiter.finish(shown), Ok("50,1".into()));
    });
}

#[test]
fn a_claim_that_is_done_with_is_told_with_what_it_puts_k4_c4() {
    let engine = indexed();
    is_told(&engine, |engine| {
        let fields = [Field::Int(7), Field::Int(101)];
        claim(engine, 1, 4, &LONG).done(&[TupleRef::from(&fields)]).unwrap();
    });
}

#[test]
fn a_claim_that_fails_is_told_with_its_reason_k5_c4() {
    let engine = indexed();
    let twice = ClaimTerms { attempts_max: Some(2), ..LONG };
    is_told(&engine, |engine| {
        claim(engine, 1, 4, &twice).abort("no disk").unwrap();
        claim(engine, 1, 4, &twice).abort("no disk again").unwrap();
    });
}

#[test]
fn a_commit_is_told_as_a_whole_x1_c4() {
    let engine = indexed();
    is_told(&engine, |engine| {
        let mut transaction = Transaction::begin(vec![Arc::clone(engine)], HOUR).unwrap();
        for (key, value) in [(1, 4), (2, 2)] {
            let template = [int(key), int(value)];
            let template = [TemplateRef::new(&template)];
            assert!(transaction.try_take(0, &template, Order::Fifo, shown).unwrap().is_some());
        }
        transaction.put(0, &[Field::Int(1), Field::Int(400)]).unwrap();
        transaction.put(0, &[Field::Int(7), Field::Int(7)]).unwrap();
        transaction.commit().unwrap();
    });
}

#[test]
fn who_drains_and_dies_leaves_it_to_the_next_one_c4() {
    let engine = indexed();
    let mut before = Replay::default();
    before.drain(&engine);
    let released = engine.journal_stat().unwrap().drained;
    put(&engine, 77, 1);
    let mut after = before.clone();
    let end = after.visit(&engine.try_drain().unwrap().unwrap());
    let tuples = contents(&engine);
    let script = |engine: &Arc<Engine>| {
        let drain = engine.try_drain().unwrap().unwrap();
        let end = drain.each(u64::MAX, |_, _| Ok::<_, Error>(())).unwrap();
        drain.release(end).unwrap();
    };
    kill_everywhere(&engine, script, |found, ended| {
        assert_eq!(found.tuples, tuples);
        let drained = engine.journal_stat().unwrap().drained;
        assert!(drained == end || !ended && drained == released);
        let mut now = if drained == end { after.clone() } else { before.clone() };
        now.visit(&engine.try_drain().unwrap().unwrap());
        now.assert_is_in(&engine);
    });
}
