//! What a keyed request was answered is known if and only if it has had its effect, at whichever instruction its process dies
//! (rules C1, C3).

use std::sync::Arc;

use crate::shared::{
    contents, int, kill_once_and_twice, put, shown, space_journalled, space_with_keys,
};
use crate::support::replay::Replay;
use tupelo_engine::{Claim, ClaimTerms, Engine, Order, RequestKey, keyed, keyed_take};
use tupelo_tuple::TemplateRef;

const REQUEST: RequestKey = RequestKey { key: 7 << 64 | 1, who: 5, answer: 1 };

/// Kills in `script`, which puts `(5, 1)` for the request, and whoever cleans up after it: the tuple is there if and only if
/// the key is known.
fn put_if_and_only_if_known(script: impl Fn(&Arc<Engine>)) {
    let engine = space_with_keys(8 << 20);
    put(&engine, 1, 1);
    let before = contents(&engine);
    let after = [&before[..], &["5,1".to_owned()]].concat();
    kill_once_and_twice(&engine, script, |found, ended| {
        let known = engine.answer_to(REQUEST.key, REQUEST.who).unwrap();
        let expected = if known.is_some() { &after } else { &before };
        assert_eq!(&found.tuples, expected, "the answer is {known:?}");
        assert!(!ended || known == Some(1));
    });
}

#[test]
fn a_keyed_put_has_happened_if_and_only_if_its_key_is_known_c1() {
    put_if_and_only_if_known(|engine| keyed(REQUEST, || put(engine, 5, 1)));
}

#[test]
fn a_keyed_put_unless_something_is_there_has_happened_if_and_only_if_its_key_is_known_c1() {
    let unless = [int(5), int(1)];
    put_if_and_only_if_known(|engine| {
        let tuple = [tupelo_tuple::Field::Int(5), tupelo_tuple::Field::Int(1)];
        let put = || engine.put_if_absent(&tuple, &[TemplateRef::new(&unless)]);
        assert!(keyed(REQUEST, put).unwrap());
    });
}

#[test]
fn what_a_keyed_take_has_found_stays_held_for_its_key_alone_if_its_process_dies_c3() {
    let engine = space_with_keys(8 << 20);
    put(&engine, 5, 1);
    put(&engine, 5, 2);
    let before = contents(&engine);
    let terms = ClaimTerms { ttl: std::time::Duration::from_secs(3600), attempts_max: None };
    let take = |engine: &Arc<Engine>| {
        let template = [int(5), int(1)];
        let template = [TemplateRef::new(&template)];
        keyed_take((REQUEST.key, REQUEST.who), || {
            std::mem::forget(engine.try_claim(&template, Order::Fifo, &terms, shown).unwrap());
        });
    };
    kill_once_and_twice(&engine, take, |found, ended| {
        let adopted = Claim::adopt(&engine, (REQUEST.key, REQUEST.who), shown).unwrap();
        let Some((claim, tuple)) = adopted else {
            assert_eq!((&found.tuples, ended), (&before, false));
            return;
        };
        assert_eq!((tuple.as_str(), found.report.held()), ("5,1", 1));
        assert_eq!(found.tuples, ["5,2"]);
        claim.give_back().unwrap();
        assert_eq!(contents(&engine), before);
    });
}

#[test]
fn a_journal_is_told_of_a_key_if_and_only_if_it_is_told_of_its_put_c3_c4() {
    let engine = space_journalled(8 << 20, 1 << 20);
    assert_eq!(engine.keep_keys(), Ok(true));
    put(&engine, 1, 1);
    let mut before = Replay::default();
    before.drain(&engine);
    kill_once_and_twice(
        &engine,
        |engine| keyed(REQUEST, || put(engine, 5, 1)),
        |found, ended| {
            let mut now = before.clone();
            now.visit(&engine.try_drain().unwrap().unwrap());
            now.assert_is_in(&engine);
            let has_happened = now.answered == [REQUEST];
            assert!(has_happened || now.answered.is_empty(), "{:?}", now.answered);
            let known = engine.answer_to(REQUEST.key, REQUEST.who).unwrap();
            assert_eq!(known, has_happened.then_some(REQUEST.answer));
            assert_eq!(found.tuples.contains(&"5,1".to_owned()), has_happened);
            assert!(!ended || has_happened);
        },
    );
}
