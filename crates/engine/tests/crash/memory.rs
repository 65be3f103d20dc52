//! Getting memory and giving it back survive the death of whoever does it, and of its recoverer, at any instruction
//! (C1, B1). The cases: growth, extents, long logs, indexes, and what a full space gathers.

use std::sync::Arc;

use crate::shared::{
    BLOCKS_OF_EXTENT, BLOCKS_OF_SLAB, BYTES, Found, INT, STR, contents, int, kill_everywhere,
    kill_twice, learn, put, read, space,
};
use crate::shared::{experiment, hitting, shown, take, text};
use tupelo_crashtest::{Death, Script, thorough};
use tupelo_engine::{Engine, Report};
use tupelo_tuple::{Field, TemplateRef};

const EXTENT_BYTES: usize = 64 << 10;
/// A large tuple has one extent.
const LARGE_BYTES: usize = EXTENT_BYTES - 1_000;

fn put_large(engine: &Engine, name: &str) {
    engine.put(&[Field::Str(name), Field::Bytes(&vec![7; LARGE_BYTES])]).unwrap();
}

/// Extents that tuples leave free where the space may grow.
const RESERVE_EXTENTS: u64 = 8;
/// All that a space of 2 MiB has for tuples.
const EXTENTS_MAX: u64 = 32;

/// Puts large tuples until `is_full`.
fn fill(engine: &Engine, is_full: impl Fn(&Report) -> bool) {
    for number in 0.. {
        if is_full(&engine.check().unwrap()) {
            return;
        }
        put_large(engine, &number.to_string());
    }
}

/// Fills a space of 2 MiB.
fn fill_entirely(engine: &Engine) {
    fill(engine, |report| report.extents_owned == EXTENTS_MAX);
}

/// A space all of whose memory that tuples may have is in use, and that may grow; the next small tuple needs an extent.
fn without_a_free_extent() -> Arc<Engine> {
    let engine = space(16 << 20);
    for value in 0..BLOCKS_OF_SLAB + BLOCKS_OF_EXTENT {
        put(&engine, value, value);
    }
    fill(&engine, |report| report.extents_free == RESERVE_EXTENTS);
    engine
}

/// What is there when `tuple` is there as well, the youngest of the small ones.
fn with_small(before: &[String], tuple: &str) -> Vec<String> {
    let small = usize::try_from(BLOCKS_OF_SLAB + BLOCKS_OF_EXTENT).unwrap();
    let (small, large) = before.split_at(small);
    [small, &[tuple.to_owned()], large].concat()
}

/// The contents are `before`, or `after`; at the end, `after`.
fn judge_by(before: Vec<String>, after: Vec<String>) -> impl Fn(Found, bool) {
    move |found, ended| {
        assert!(
            found.tuples == after || (!ended && found.tuples == before),
            "{:?} is neither what was nor what should be",
            found.tuples
        );
        assert_eq!(found.report.held(), 0, "nobody is left to hold anything");
    }
}

#[test]
fn a_put_that_grows_the_space_happens_or_not() {
    let engine = without_a_free_extent();
    let before = contents(&engine);
    let after = with_small(&before, "5,1");
    let summary = kill_everywhere(&engine, |engine| put(engine, 5, 1), judge_by(before, after));
    assert!(summary.steps > 100, "growth is part of the script");
}

#[test]
fn growth_survives_the_death_of_the_recoverer_too() {
    let engine = without_a_free_extent();
    let before = contents(&engine);
    let after = with_small(&before, "5,1");
    let judge = judge_by(before, after);
    let script = |engine: &Arc<Engine>| put(engine, 5, 1);
    // The recoverer meets the same end of the memory.
    let recoverer = |engine: &Arc<Engine>| engine.put(&[Field::Str("recoverer")]).unwrap();
    let judge = |mut found: Found, ended: bool| {
        found.tuples.retain(|tuple| tuple != "recoverer");
        judge(found, ended);
    };
    kill_twice(&engine, script, recoverer, judge);
    kill_twice(&engine, script, |engine| engine.sweep().unwrap(), judge);
}

#[test]
fn extents_that_are_taken_and_returned_survive_the_death_of_the_recoverer_too() {
    let engine = space(8 << 20);
    // A small slab and two extents, the second with one tuple.
    let last = BLOCKS_OF_SLAB + BLOCKS_OF_EXTENT;
    for value in 0..=last {
        put(&engine, value, value);
    }
    // One block is kept as a spare, the other gives the small slab room: only then does the second extent go back.
    for value in [0, 1] {
        assert!(take(&engine, &[int(value), INT]).is_some());
    }
    let owned = engine.check().unwrap().extents_owned;
    let before = contents(&engine);
    let without_last = before[..before.len() - 1].to_vec();
    let script = |engine: &Arc<Engine>| {
        assert!(take(engine, &[int(last), INT]).is_some());
        // The spare block, the one in the small slab, and one of an extent that is taken anew.
        (last + 1..last + 4).for_each(|value| put(engine, value, value));
    };
    let mut legal = vec![before, without_last.clone()];
    for value in last + 1..last + 4 {
        let mut next = legal.last().unwrap().clone();
        next.push(format!("{value},{value}"));
        legal.push(next);
    }
    let judge = |found: Found, ended: bool| {
        let state = legal.iter().position(|state| *state == found.tuples);
        let state = state.unwrap_or_else(|| panic!("{} tuples", found.tuples.len()));
        assert!(!ended || state == 4);
        let expected = if matches!(state, 0 | 4) { owned } else { owned - 1 };
        assert_eq!(found.extents_owned(), expected, "after step {state}");
    };
    kill_twice(&engine, script, |engine| engine.sweep().unwrap(), judge);
    kill_twice(&engine, script, |engine| assert!(take(engine, &[STR]).is_none()), judge);
}

#[test]
fn memory_goes_back_to_the_system_at_any_instruction_or_stays() {
    let engine = space(8 << 20);
    put(&engine, 1, 1);
    for number in 0..100 {
        put_large(&engine, &number.to_string());
    }
    assert_eq!(
        engine.take_all(&[TemplateRef::new(&[STR, BYTES])], None, shown).unwrap().len(),
        100
    );
    // From here on they have been seen to be free.
    engine.sweep().unwrap();
    let script = |engine: &Arc<Engine>| engine.sweep().unwrap();
    let before = contents(&engine);
    let judge = judge_by(before.clone(), before);
    kill_everywhere(&engine, script, judge);
}

#[test]
fn a_step_that_needs_a_longer_log_happens_or_not() {
    let engine = space(8 << 20);
    put(&engine, 1, 1);
    let before = contents(&engine);
    let number = |value: i64| [Field::Int(value), Field::Int(value)];
    let numbers: Vec<_> = (100..150).map(number).collect();
    let after: Vec<String> = ["1,1".to_owned()]
        .into_iter()
        .chain((100..150).map(|value| format!("{value},{value}")))
        .collect();
    let owned = engine.check().unwrap().extents_owned;
    let script = |engine: &Arc<Engine>| {
        let slices: Vec<&[Field<'_>]> = numbers.iter().map(<[_; 2]>::as_slice).collect();
        assert_eq!(engine.put_all(&slices).unwrap(), 50);
    };
    let is_whole = judge_by(before.clone(), after.clone());
    let judge = |found: Found, ended: bool| {
        // The log of the dead is given back. One extent may be the survivor's own tuple's.
        assert!(found.report.extents_owned <= owned + 1, "{}", found.report.extents_owned);
        is_whole(found, ended);
    };
    let summary = kill_everywhere(&engine, script, judge);
    assert!(summary.steps > 1_000, "it begins again with a longer log");
    kill_twice(&engine, script, |engine| engine.sweep().unwrap(), judge);

    script(&engine);
    let take_all = |engine: &Arc<Engine>| {
        let all = [int(1), INT];
        let late = [INT, INT];
        let templates = [TemplateRef::new(&all), TemplateRef::new(&late)];
        assert_eq!(engine.take_all(&templates, None, shown).unwrap().len(), 51);
    };
    kill_everywhere(&engine, take_all, judge_by(after, Vec::new()));
}

#[test]
fn a_long_step_in_a_full_space_happens_or_not_o6() {
    let engine = space(2 << 20);
    let ints = [INT, INT];
    let ints = [TemplateRef::new(&ints)];
    let put_ints = || (0..60).for_each(|value| put(&engine, value, value));
    put_ints();
    fill_entirely(&engine);
    // Once before: growth is an experiment of its own, and a long one.
    assert_eq!(engine.take_all(&ints, None, shown).unwrap().len(), 60);
    put_ints();
    let before = contents(&engine);
    let after = before[60..].to_vec();
    let prepare = || {
        engine.check().unwrap();
        Arc::clone(&engine)
    };
    let script = Script::new(prepare, |engine: &mut Arc<Engine>| {
        assert_eq!(engine.take_all(&ints, None, shown).unwrap().len(), 60);
    });
    // Nobody has room to come by with a tuple.
    let check = |death: Death| {
        engine.sweep().unwrap();
        let report = engine.check().unwrap();
        assert!(report.extents_owned <= 32, "the log of the dead is given back");
        let ended = death.steps == death.of;
        judge_by(before.clone(), after.clone())(Found { tuples: contents(&engine), report }, ended);
        let everything = TemplateRef::beginning(&[]);
        engine.take_all(&[everything], None, shown).unwrap();
        assert_eq!(contents(&engine), Vec::<String>::new());
    };
    let kills = if thorough() { 2_000 } else { 6 };
    let experiment = experiment(&engine).with_kills(kills);
    hitting(|| experiment.kill_at_every_instruction(&script, check));
}

#[test]
fn what_a_full_space_gathers_survives_the_death_of_the_gatherer() {
    let engine = space(2 << 20);
    // Blocks of many sizes, and what is kept of them when they are gone.
    for bytes in [100, 500, 1_000, 2_000, 4_000, 8_000, 30_000] {
        engine.put(&[Field::Str("size"), Field::Bytes(&vec![7; bytes])]).unwrap();
    }
    while take(&engine, &[text("size"), BYTES]).is_some() {}
    fill_entirely(&engine);
    let before = contents(&engine);
    let after = [before.clone(), vec!["6000xSome(7)".to_owned()]].concat();
    // No small slab is enough for it.
    let script = |engine: &Arc<Engine>| engine.put(&[Field::Bytes(&[7; 6_000])]).unwrap();
    let judge = judge_by(before, after);
    let summary = kill_everywhere(&engine, script, &judge);
    assert!(summary.steps > 300, "gathering is part of the script");
    kill_twice(&engine, script, |engine| engine.sweep().unwrap(), &judge);
}

#[test]
fn building_an_index_survives_the_death_of_the_recoverer_too() {
    let engine = space(8 << 20);
    for value in 0..70 {
        put(&engine, value, value % 3);
    }
    let before = contents(&engine);
    // Two looks at all are more than the price of an index.
    assert!(read(&engine, &[int(69), INT]).is_some());
    let script = |engine: &Arc<Engine>| assert!(read(engine, &[int(69), INT]).is_some());
    let judge = |found: Found, _| {
        assert_eq!(found.tuples, before);
        for value in 0..70 {
            assert!(read(&engine, &[int(value), INT]).is_some());
        }
    };
    kill_twice(&engine, script, script, judge);
}

#[test]
fn tuples_that_are_moved_for_another_are_there_at_every_instruction_b1() {
    let engine = space(2 << 20);
    // Eight extents of them, 512 in each, and in the end a few in each: a large tuple finds two side by side, too.
    let values = 4_096;
    let put_some =
        |some: std::ops::Range<i64>| some.for_each(|value| put(&engine, value % 3, value));
    put_some(0..12);
    // One index: a tuple in several has an extension, and stays where it is.
    learn(&engine, &[INT, int(7)]);
    put_some(12..values);
    fill_entirely(&engine);
    let stays = |value: &i64| value % 205 < 2;
    for value in (0..values).filter(|value| !stays(value)) {
        assert!(take(&engine, &[INT, int(value)]).is_some());
    }
    let before = contents(&engine);
    let after = [before.clone(), vec!["6000xSome(7)".to_owned()]].concat();
    // No small slab is enough for it.
    let script = |engine: &Arc<Engine>| engine.put(&[Field::Bytes(&[7; 6_000])]).unwrap();
    let owned = engine.check().unwrap().extents_owned;
    assert_eq!(owned, EXTENTS_MAX);
    let judge = judge_by(before, after);
    let judge = |found: Found, ended: bool| {
        judge(found, ended);
        for value in (0..values).filter(stays) {
            let found = read(&engine, &[INT, int(value)]);
            assert_eq!(found, Some(format!("{},{value}", value % 3)), "by its index");
        }
    };
    let summary = kill_everywhere(&engine, script, judge);
    assert!(summary.steps > 200, "moving is part of the script");
    kill_twice(&engine, script, |engine| engine.sweep().unwrap(), judge);
}
