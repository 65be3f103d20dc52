//! A full space survives the death of who waits for room, who makes it, and who drops the oldest (B1, C1, C2).

use std::sync::Arc;
use std::time::Duration;

use crate::shared::{
    FIRST_KILLS_THOROUGH, SECOND_KILLS_THOROUGH, contents, experiment, hitting, put, register,
    shown, space_within, take,
};
use tupelo_crashtest::{Death, Script, fork, shared_words, thorough};
use tupelo_engine::{Engine, Error, EventKind, Limits, SubscribeTerms, WhenFull};
use tupelo_tuple::{Field, PatternRef, TemplateRef};

const NOW: Option<Duration> = Some(Duration::ZERO);
/// Far beyond what any of these waits needs: who waits so long was forgotten.
const FORGOTTEN: Option<Duration> = Some(Duration::from_secs(60));
const INT: PatternRef<'static> = crate::shared::INT;

/// A space with two tuples, `(1, 1)` and `(2, 2)`, and no room for a third.
fn full(when_full: WhenFull) -> Arc<Engine> {
    let engine = space_within(&Limits { size_bytes: 8 << 20, tuples_max: Some(2), when_full });
    (1..=2).for_each(|number| put(&engine, number, number));
    engine
}

/// Kills a process at every instruction of `script`, lets another clean up, and judges what is there; and once more with the one
/// killed, too, that cleans up.
fn kill_everywhere(
    engine: &Arc<Engine>,
    script: impl Fn(&Arc<Engine>),
    judge: impl Fn(Vec<String>, bool),
) {
    let come = || {
        engine.check().unwrap();
        Arc::clone(engine)
    };
    let script = Script::new(come, |engine| script(engine));
    let kills = if thorough() { 10_000 } else { 16 };
    let check = |ended| {
        engine.sweep().unwrap();
        engine.check().unwrap();
        judge(contents(engine), ended);
        engine.check().unwrap();
    };
    let once = experiment(engine).with_kills(kills);
    hitting(|| once.kill_at_every_instruction(&script, |death| check(death.steps == death.of)));

    let recoverer = Script::new(|| register(engine), |()| engine.sweep().unwrap());
    let (first, second) =
        if thorough() { (FIRST_KILLS_THOROUGH, SECOND_KILLS_THOROUGH) } else { (4, 4) };
    let twice = experiment(engine).with_kills(first).with_recoverer_kills(second).centred();
    let ended = |first: Death, _| check(first.steps == first.of);
    hitting(|| twice.double_kill(&script, &recoverer, || true, ended));
}

#[test]
fn who_dies_in_line_for_room_leaves_the_line_whole() {
    let engine = full(WhenFull::Error);
    let (first, third) = (engine.room().unwrap(), engine.room().unwrap());
    let script = |engine: &Arc<Engine>| {
        let room = engine.room().unwrap();
        assert!(room.with_grant(|| engine.put(&[Field::Int(3), Field::Int(3)])).is_err());
        drop(room);
    };
    kill_everywhere(&engine, script, |tuples, _| {
        assert_eq!(tuples, ["1,1", "2,2"]);
        assert_eq!(engine.stat().unwrap().waiting_for_room, 2);
        assert!(take(&engine, &[INT, INT]).is_some());
        assert!(first.wait(FORGOTTEN).unwrap());
        first.with_grant(|| engine.put(&[Field::Int(3), Field::Int(3)])).unwrap();
    });
    drop((first, third));
    assert_eq!(engine.stat().unwrap().waiters, 0);
}

#[test]
fn a_removal_that_is_killed_wakes_who_waits_for_room_or_has_not_happened() {
    let engine = full(WhenFull::Error);
    let room = engine.room().unwrap();
    let script = |engine: &Arc<Engine>| assert!(take(engine, &[INT, INT]).is_some());
    kill_everywhere(&engine, script, |tuples, ended| {
        assert!(!ended || tuples == ["2,2"]);
        if tuples == ["2,2"] {
            // Told, or after a slice of its sleep.
            assert!(room.wait(FORGOTTEN).unwrap());
            room.with_grant(|| engine.put(&[Field::Int(3), Field::Int(3)])).unwrap();
        } else {
            assert_eq!(tuples, ["1,1", "2,2"]);
        }
    });
    drop(room);
}

#[test]
fn a_put_that_is_killed_drops_one_tuple_at_most_and_stores_its_own_once_and_says_so_n1() {
    let engine = full(WhenFull::DropOldest);
    let template = [INT, INT];
    let terms = SubscribeTerms::new(EventKind::ALL, 8);
    let subscription = engine.subscribe(&[TemplateRef::new(&template)], &terms).unwrap();
    let next = || subscription.try_next(|event| Ok::<_, Error>((event.kind, shown(event.tuple)?)));
    let expired = (EventKind::Expire, "1,1".to_owned());
    let was_put = (EventKind::Put, "3,3".to_owned());
    let script = |engine: &Arc<Engine>| put(engine, 3, 3);
    kill_everywhere(&engine, script, |tuples, ended| {
        let heard: Vec<_> = std::iter::from_fn(|| next().unwrap()).collect();
        let legal = [
            (vec!["1,1", "2,2"], vec![]),
            (vec!["2,2"], vec![expired.clone()]),
            (vec!["2,2", "3,3"], vec![expired.clone(), was_put.clone()]),
        ];
        let found = (tuples.iter().map(String::as_str).collect(), heard);
        assert!(legal.contains(&found), "{found:?}");
        assert!(!ended || tuples == ["2,2", "3,3"]);
        put(&engine, 4, 4);
        put(&engine, 5, 5);
        assert_eq!(contents(&engine), ["4,4", "5,5"]);
    });
}

#[test]
fn what_one_takes_that_is_killed_over_it_is_no_room_until_it_is_certain_b1_c1() {
    let limits = Limits { size_bytes: 8 << 20, tuples_max: Some(10), when_full: WhenFull::Error };
    let engine = space_within(&limits);
    (0..10).for_each(|number| put(&engine, number, number));
    let register = || {
        engine.check().unwrap();
        Arc::clone(&engine)
    };
    let take_all = |engine: &mut Arc<Engine>| {
        let template = [INT, INT];
        engine.take_all(&[TemplateRef::new(&template)], None, shown).unwrap();
    };
    let script = Script::new(register, take_all);
    let kills = if thorough() { 10_000 } else { 16 };
    let experiment = experiment(&engine).with_kills(kills);
    let check = |_| {
        // Of another shape, before anybody has cleaned up.
        while engine.put(&[Field::Int(7)]).is_ok() {}
        engine.sweep().unwrap();
        engine.check().unwrap();
        assert_eq!(contents(&engine).len(), 10);
    };
    hitting(|| experiment.kill_at_every_instruction(&script, check));
}

/// Runs `act` with a process that has just been told that there is room for it, before another.
fn first_queued(act: impl FnOnce(&Arc<Engine>, tupelo_crashtest::Child)) {
    let engine = full(WhenFull::Error);
    let has_looked = shared_words(1);
    let first = fork(|| {
        let room = engine.room().unwrap();
        room.wait(None).unwrap();
        has_looked[0].store(1, std::sync::atomic::Ordering::SeqCst);
        loop {
            std::thread::park();
        }
    });
    while engine.stat().unwrap().waiting_for_room == 0 {
        std::thread::yield_now();
    }
    let second = engine.room().unwrap();
    assert!(!second.wait(NOW).unwrap());
    assert!(take(&engine, &[INT, INT]).is_some());
    while has_looked[0].load(std::sync::atomic::Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    act(&engine, first);
    // Until its turn comes, or the other's has run out.
    while second.with_grant(|| engine.put(&[Field::Int(3), Field::Int(3)])).is_err() {
        second.wait(FORGOTTEN).unwrap();
    }
    drop(second);
    engine.check().unwrap();
}

#[test]
fn the_turn_of_who_is_killed_goes_to_the_next() {
    first_queued(|engine, first| {
        first.kill();
        engine.sweep().unwrap();
        assert_eq!(engine.stat().unwrap().waiting_for_room, 1);
    });
}

#[test]
fn the_turn_of_who_is_stopped_runs_out() {
    let mut stopped = None;
    first_queued(|_, first| {
        first.signal(19);
        stopped = Some(first);
    });
    stopped.unwrap().kill();
}
