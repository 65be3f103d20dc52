//! A transaction happens as a whole or not at all, in one space and in several. That holds at whichever instruction its
//! process is killed, and whoever cleans up after it (rules C1, L5, X1, X3, X5).

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::shared::pair::Pair;
use crate::shared::{
    INT, contents, int, kill_once_and_twice, learn, one_of, put, shown, space, take,
};
use tupelo_crashtest::{Death, Script, fork, thorough};
use tupelo_engine::{Engine, Error, LeaseTerms, Order, Transaction};
use tupelo_tuple::{Alternative, Field, Form, Kind, KindSet, Pattern, TemplateRef};

const HOUR: Duration = Duration::from_secs(3600);

/// Twelve tuples under three keys, an index over the keys, and a timer that is far away.
fn indexed() -> Arc<Engine> {
    let engine = space(8 << 20);
    for value in 0..12 {
        put(&engine, value % 3, value);
    }
    learn(&engine, &[int(2), INT]);
    let terms = LeaseTerms { lease: Some(HOUR), after: None };
    engine.put_leased(&[Field::Int(9), Field::Int(9)], &terms).unwrap();
    engine
}

fn begin(engine: &Arc<Engine>) -> Transaction {
    Transaction::begin(vec![Arc::clone(engine)], HOUR).unwrap()
}

/// Takes `(key, value)` from space number `at`.
fn take_in(transaction: &mut Transaction, at: usize, key: i64, value: i64) {
    let template = [int(key), int(value)];
    let template = [TemplateRef::new(&template)];
    assert!(transaction.try_take(at, &template, Order::Fifo, shown).unwrap().is_some());
}

fn read_in(transaction: &mut Transaction, at: usize, key: i64, value: i64) {
    let template = [int(key), int(value)];
    let template = [TemplateRef::new(&template)];
    assert!(transaction.try_read(at, &template, Order::Fifo, shown).unwrap().is_some());
}

/// The contents without some, and with others at their end.
fn changed(engine: &Engine, without: &[&str], with: &[&str]) -> Vec<String> {
    let kept = contents(engine).into_iter().filter(|one| !without.contains(&one.as_str()));
    kept.chain(with.iter().map(ToString::to_string)).collect()
}

#[test]
fn what_a_dead_process_had_taken_and_read_is_everybodys_again_x5_l5() {
    let engine = indexed();
    let before = contents(&engine);
    let script = |engine: &Arc<Engine>| {
        let mut transaction = begin(engine);
        take_in(&mut transaction, 0, 1, 4);
        read_in(&mut transaction, 0, 2, 5);
        read_in(&mut transaction, 0, 0, 6);
        take_in(&mut transaction, 0, 0, 6);
        transaction.put(0, &[Field::Int(7), Field::Int(7)]).unwrap();
        std::mem::forget(transaction);
    };
    kill_once_and_twice(&engine, script, |found, _| {
        assert_eq!((found.report.held(), found.tuples), (0, before.clone()));
        // Nothing is locked any more.
        for tuple in ["2,5", "0,6"] {
            let (key, value) = tuple.split_once(',').unwrap();
            let template = [int(key.parse().unwrap()), int(value.parse().unwrap())];
            assert_eq!(take(&engine, &template).as_deref(), Some(tuple));
        }
    });
}

#[test]
fn a_commit_happens_as_a_whole_or_not_at_all_x1() {
    let engine = indexed();
    let after = changed(&engine, &["1,4", "2,2"], &["1,400", "7,7"]);
    let legal = [contents(&engine), after];
    let script = |engine: &Arc<Engine>| {
        let mut transaction = begin(engine);
        take_in(&mut transaction, 0, 1, 4);
        take_in(&mut transaction, 0, 2, 2);
        read_in(&mut transaction, 0, 2, 5);
        transaction.put(0, &[Field::Int(1), Field::Int(400)]).unwrap();
        transaction.put(0, &[Field::Int(7), Field::Int(7)]).unwrap();
        transaction.commit().unwrap();
    };
    one_of(&engine, script, &legal);
}

#[test]
fn the_first_look_after_a_death_within_a_commit_misses_nothing_l5() {
    let engine = indexed();
    let pair = [INT, INT];
    let template = [TemplateRef::new(&pair)];
    let all = contents(&engine).len();
    let worker = |engine: &Arc<Engine>| {
        let mut transaction = begin(engine);
        take_in(&mut transaction, 0, 1, 4);
        read_in(&mut transaction, 0, 2, 5);
        transaction.put(0, &[Field::Int(1), Field::Int(400)]).unwrap();
        transaction.commit().unwrap();
    };
    let register = || {
        engine.check().unwrap();
        Arc::clone(&engine)
    };
    let script = Script::new(register, |engine| worker(engine));
    let check = |death: Death| {
        let has = |key, value| crate::shared::read(&engine, &[int(key), int(value)]).is_some();
        // Whoever comes first is the one who has to see it.
        match death.steps % 4 {
            0 => assert_eq!(engine.count(&template).unwrap(), all as u64),
            1 => assert_eq!(engine.read_all(&template, None, shown).unwrap().len(), all),
            2 => assert!(has(1, 4) != has(1, 400)),
            _ => {
                let pattern = Pattern::Kinds(KindSet::of(Kind::Int));
                let patterns = vec![pattern.clone(), pattern];
                let mut scan = engine
                    .scan(Alternative { patterns, form: Form::Exact, condition: None }.into());
                let mut seen = 0;
                while let step @ 1.. = scan.next_batch(64, shown).unwrap().len() {
                    seen += step;
                }
                assert_eq!(seen, all);
            }
        }
        engine.sweep().unwrap();
        engine.check().unwrap();
    };
    let kills = if thorough() { 10_000 } else { 40 };
    let experiment = crate::shared::experiment(&engine).with_kills(kills);
    crate::shared::hitting(|| experiment.kill_at_every_instruction(&script, check));
}

#[test]
fn an_abort_restores_everything_x5() {
    let engine = indexed();
    let before = contents(&engine);
    let script = |engine: &Arc<Engine>| {
        let mut transaction = begin(engine);
        take_in(&mut transaction, 0, 1, 4);
        read_in(&mut transaction, 0, 2, 5);
        transaction.put(0, &[Field::Int(7), Field::Int(7)]).unwrap();
        transaction.abort().unwrap();
    };
    one_of(&engine, script, &[before]);
}

#[test]
fn a_take_that_is_refused_gives_back_the_tuple_and_the_lock_on_it_x3_x5() {
    let engine = indexed();
    let before = contents(&engine);
    let script = |engine: &Arc<Engine>| {
        let mut transaction = begin(engine);
        read_in(&mut transaction, 0, 1, 4);
        let template = [int(1), int(4)];
        let template = [TemplateRef::new(&template)];
        let refuse = |_: tupelo_tuple::TupleView<'_>| Err::<(), _>(Error::LeaseExpired);
        transaction.try_take(0, &template, Order::Fifo, refuse).unwrap_err();
        assert_eq!(take(engine, &[int(1), int(4)]), None);
        transaction.abort().unwrap();
    };
    one_of(&engine, script, &[before]);
}

#[test]
fn what_runs_out_comes_back_whoever_dies_over_it_x5_x6() {
    let engine = indexed();
    let before = contents(&engine);
    let brief = Duration::from_millis(1);
    let mut silent = Transaction::begin(vec![Arc::clone(&engine)], 40 * brief).unwrap();
    take_in(&mut silent, 0, 1, 4);
    read_in(&mut silent, 0, 2, 5);
    thread::sleep(50 * brief);
    let script = |engine: &Arc<Engine>| {
        assert_eq!(engine.count(&[TemplateRef::new(&[INT, INT])]).unwrap(), 13);
    };
    kill_once_and_twice(&engine, script, |found, _| {
        assert_eq!(found.tuples, before);
        assert_eq!(engine.check().unwrap().held(), 0);
    });
    assert!(matches!(silent.commit(), Err(Error::Aborted(_))));
}

/// Two spaces, and what is in them when [`change_both`] has happened.
fn over_two_spaces() -> (Pair, [Vec<String>; 2]) {
    let pair = Pair::new();
    for value in 0..9 {
        put(&pair.from, value % 3, value);
        put(&pair.into, value % 3, 10 + value);
    }
    learn(&pair.from, &[int(2), INT]);
    let after = [
        changed(&pair.from, &["1,4"], &["1,40"]),
        changed(&pair.into, &["2,15"], &["2,150", "2,151"]),
    ];
    (pair, after)
}

fn change_both(pair: &Pair) {
    let engines = vec![Arc::clone(&pair.from), Arc::clone(&pair.into)];
    let mut transaction = Transaction::begin(engines, HOUR).unwrap();
    take_in(&mut transaction, 0, 1, 4);
    take_in(&mut transaction, 1, 2, 15);
    read_in(&mut transaction, 1, 0, 10);
    transaction.put(0, &[Field::Int(1), Field::Int(40)]).unwrap();
    transaction.put(1, &[Field::Int(2), Field::Int(150)]).unwrap();
    transaction.put(1, &[Field::Int(2), Field::Int(151)]).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn two_spaces_change_both_or_neither_x1() {
    let (pair, after) = over_two_spaces();
    pair.kill_everywhere(change_both, &after);
}

#[test]
fn two_spaces_change_both_or_neither_also_if_the_recoverer_is_killed_x1() {
    let (pair, after) = over_two_spaces();
    pair.kill_twice(change_both, &after);
}

#[test]
fn the_child_of_a_fork_does_not_end_what_its_parent_has_begun_x1() {
    let engine = space(8 << 20);
    put(&engine, 1, 1);
    let mut transaction = begin(&engine);
    take_in(&mut transaction, 0, 1, 1);
    let mine = std::cell::Cell::new(Some(transaction));
    let child = fork(|| {
        // The child's copy, which it also drops.
        let mut copy = mine.take().unwrap();
        let refused = Err(Error::TransactionForked);
        assert_eq!((copy.commit(), copy.abort()), (refused.clone(), refused));
    });
    assert_eq!(child.wait(), tupelo_crashtest::Exit::Done);
    mine.take().unwrap().commit().unwrap();
    assert_eq!(contents(&engine), Vec::<String>::new());
    engine.check().unwrap();
}

#[test]
fn a_miss_gets_back_what_a_dead_transaction_had_locked_l5() {
    let engine = space(8 << 20);
    put(&engine, 1, 1);
    put(&engine, 1, 2);
    let dying = fork(|| {
        let mut transaction = begin(&engine);
        read_in(&mut transaction, 0, 1, 1);
        take_in(&mut transaction, 0, 1, 2);
        std::mem::forget(transaction);
        std::process::abort();
    });
    let ended = dying.wait();
    assert_eq!(ended, tupelo_crashtest::Exit::Killed(6), "{ended:?}");
    assert_eq!(take(&engine, &[int(1), int(1)]).as_deref(), Some("1,1"));
    assert_eq!(contents(&engine), ["1,2"]);
    engine.check().unwrap();
}

#[test]
fn who_looks_at_all_of_one_moment_sees_what_a_dead_process_had_l5() {
    let engine = space(8 << 20);
    let template = [INT, INT];
    let template = [TemplateRef::new(&template)];
    let looks: [(&str, &dyn Fn() -> usize); 5] = [
        ("count", &|| usize::try_from(engine.count(&template).unwrap()).unwrap()),
        ("read_all", &|| engine.read_all(&template, None, shown).unwrap().len()),
        ("take_many", &|| {
            engine.try_take_many(&template, 2, 2, shown).unwrap().map_or(0, |all| all.len())
        }),
        ("take_all", &|| engine.take_all(&template, None, shown).unwrap().len()),
        ("swap", &|| {
            let new = [Field::Str("new")];
            usize::from(engine.try_swap(&template, &new, shown).unwrap().is_some())
                + usize::from(engine.try_swap(&template, &new, shown).unwrap().is_some())
        }),
    ];
    for (name, look) in looks {
        put(&engine, 1, 1);
        put(&engine, 1, 2);
        let dying = fork(|| {
            let mut transaction = begin(&engine);
            read_in(&mut transaction, 0, 1, 1);
            take_in(&mut transaction, 0, 1, 2);
            std::mem::forget(transaction);
            std::process::abort();
        });
        dying.wait();
        assert_eq!(look(), 2, "{name}");
        engine.take_all(&template, None, shown).unwrap();
    }
    engine.check().unwrap();
}
