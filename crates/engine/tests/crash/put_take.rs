//! A put or a take happens whole or not at all, at whichever instruction its process is killed (C1 to C3).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::shared::{
    BLOCKS_OF_EXTENT, BLOCKS_OF_SLAB, BYTES, INT, STR, contents, either, int, kill_everywhere,
    learn, one_of, put, read, region, space, take, text,
};
use tupelo_crashtest::{Experiment, Script, shared_words, thorough};
use tupelo_engine::{Engine, LeaseTerms, Order};
use tupelo_tuple::{Class, Field, Form, Named, TemplateRef, TupleRef, TupleView};

/// Fewer steps than it takes to split a bucket of which little moves, and more than one put differs from the next.
const SPLIT_STEPS_MIN: usize = 10;

/// 100 tuples under 10 keys, and an index over the keys.
fn indexed() -> Arc<Engine> {
    let engine = space(8 << 20);
    for value in 0..100 {
        put(&engine, value % 10, value);
    }
    learn(&engine, &[int(9), INT]);
    engine
}

/// The contents of `engine` without one tuple.
fn without(engine: &Engine, tuple: &str) -> Vec<String> {
    contents(engine).into_iter().filter(|one| one != tuple).collect()
}

/// The contents of `engine` with one tuple more.
fn with(engine: &Engine, tuple: &str) -> Vec<String> {
    contents(engine).into_iter().chain([tuple.to_owned()]).collect()
}

#[test]
fn a_put_under_a_new_key_happens_or_not() {
    let engine = indexed();
    let legal = [contents(&engine), with(&engine, "77,1")];
    one_of(&engine, |engine| put(engine, 77, 1), &legal);
}

#[test]
fn a_put_under_a_known_key_happens_or_not() {
    let engine = indexed();
    let legal = [contents(&engine), with(&engine, "5,1")];
    one_of(&engine, |engine| put(engine, 5, 1), &legal);
}

/// The hashes of what deaths inside `script` leave. One experiment kills at every instruction (in an ordinary run, at a
/// sample of them), and another tells deaths apart.
fn left_by_deaths(
    engine: &Arc<Engine>,
    stride: usize,
    script: impl Fn(&Arc<Engine>),
) -> [Vec<usize>; 2] {
    const PLACES: usize = 4096;
    // A script that is run when something is due once a second may take another path.
    const MISSED_MAX: usize = 2;
    let come = || {
        engine.check().unwrap();
        Arc::clone(engine)
    };
    let script = Script::new(come, |engine| script(engine));
    let every = Experiment::new(region(engine));
    let every = every.with_stride(if thorough() { 1 } else { stride });
    [every, Experiment::new(region(engine)).with_named_deaths()].map(|experiment| {
        let seen = shared_words(PLACES);
        let summary = experiment.kill_at_every_instruction(&script, |_| {
            let mut hasher = DefaultHasher::new();
            let found = engine.check().unwrap();
            format!("{found:?} {:?}", contents(engine)).hash(&mut hasher);
            let place = hasher.finish() % PLACES as u64;
            seen[usize::try_from(place).unwrap()].fetch_add(1, Ordering::Relaxed);
        });
        // What only deaths at a step that was missed leave would seem to be passed over.
        assert!(summary.missed <= MISSED_MAX, "{summary:?}");
        let is_seen = |index: &usize| seen[*index].load(Ordering::Relaxed) > 0;
        (0..seen.len()).filter(is_seen).collect()
    })
}

/// What the harness passes over is nothing that anybody finds.
#[test]
fn deaths_that_are_told_apart_leave_all_that_deaths_leave_c1() {
    let takes_and_puts = |engine: &Arc<Engine>| {
        // In two sections: it may die with the tuple in an in-flight slot.
        assert_eq!(take(engine, &[int(5), INT]), Some("5,5".into()));
        put(engine, 77, 1);
    };
    // The first of its shape: with a new entry of the registry, and an extent.
    let begins_a_shape = |engine: &Arc<Engine>| engine.put(&[Field::Float(0.5)]).unwrap();
    // The second is ten times as long.
    for (name, states, [every, apart]) in [
        ("takes and puts", 3, left_by_deaths(&indexed(), 37, takes_and_puts)),
        ("begins a shape", 2, left_by_deaths(&indexed(), 251, begins_a_shape)),
    ] {
        assert!(every.len() >= states, "{name}: before, while it is done, after: {every:?}");
        assert!(every.iter().all(|one| apart.contains(one)), "{name}: {every:?} and {apart:?}");
    }
}

#[test]
fn a_put_that_splits_a_bucket_happens_or_not() {
    let engine = indexed();
    // The table starts with 8 buckets and splits one when there are more than four keys in each: the first split
    // allocates the second segment as well.
    for key in 10..31 {
        put(&engine, key, 0);
    }
    let legal = [contents(&engine), with(&engine, "31,0")];
    let without_split = one_of(&engine, |engine| put(engine, 31, 0), &legal);
    put(&engine, 31, 0);
    let legal = [contents(&engine), with(&engine, "32,0")];
    let with_split = one_of(&engine, |engine| put(engine, 32, 0), &legal);
    let lengths = (without_split.steps, with_split.steps);
    assert!(lengths.1 > lengths.0 + SPLIT_STEPS_MIN, "a split is part of the script: {lengths:?}");
}

#[test]
fn a_take_of_the_first_middle_or_last_of_a_key_happens_or_not() {
    for value in [5, 55, 95] {
        let engine = indexed();
        let legal = [contents(&engine), without(&engine, &format!("5,{value}"))];
        one_of(&engine, |engine| assert!(take(engine, &[int(5), int(value)]).is_some()), &legal);
    }
}

#[test]
fn a_take_of_the_only_one_of_a_key_happens_or_not() {
    let engine = indexed();
    put(&engine, 77, 1);
    let legal = [contents(&engine), without(&engine, "77,1")];
    one_of(&engine, |engine| assert!(take(engine, &[int(77), INT]).is_some()), &legal);
}

#[test]
fn a_take_of_the_oldest_happens_or_not() {
    let engine = indexed();
    let legal = [contents(&engine), without(&engine, "0,0")];
    one_of(&engine, |engine| assert!(take(engine, &[INT, INT]).is_some()), &legal);
}

#[test]
fn a_put_that_takes_an_extent_leaks_none() {
    let engine = space(8 << 20);
    let last = BLOCKS_OF_SLAB + BLOCKS_OF_EXTENT;
    for value in 0..last {
        put(&engine, value, value);
    }
    let before = engine.check().unwrap().extents_owned;
    let legal = [contents(&engine), with(&engine, &format!("{last},{last}"))];
    kill_everywhere(
        &engine,
        |engine| put(engine, last, last),
        |found, ended| {
            assert!(legal.contains(&found.tuples));
            let is_put = found.tuples.len() == legal[1].len();
            assert!(is_put || !ended, "it had ended");
            assert_eq!(found.extents_owned(), before + u64::from(is_put));
        },
    );
}

#[test]
fn a_take_that_returns_an_extent_leaks_none() {
    let engine = space(8 << 20);
    let last = BLOCKS_OF_SLAB + BLOCKS_OF_EXTENT;
    for value in 0..=last {
        put(&engine, value, value);
    }
    // The first of these is kept as a spare block; the second gives the first slab room, so that the last extent is
    // not the only one that has some when it becomes empty.
    for value in [0, 1] {
        assert!(take(&engine, &[int(value), INT]).is_some());
    }
    let before = engine.check().unwrap().extents_owned;
    let legal = [contents(&engine), without(&engine, &format!("{last},{last}"))];
    kill_everywhere(
        &engine,
        |engine| assert!(take(engine, &[int(last), INT]).is_some()),
        |found, ended| {
            let state = legal.iter().position(|state| *state == found.tuples);
            let state = state.unwrap_or_else(|| panic!("{} tuples", found.tuples.len()));
            assert!(!ended || state == 1, "it had ended");
            assert_eq!(found.extents_owned(), before - state as u64);
        },
    );
}

#[test]
fn the_first_put_of_a_shape_happens_or_not() {
    let engine = indexed();
    let script = |engine: &Arc<Engine>| engine.put(&[Field::Str("new"), Field::Int(1)]).unwrap();
    let legal = [contents(&engine), with(&engine, "new,1")];
    one_of(&engine, script, &legal);
}

/// The names of the class are written before the shape is published; who dies between leaves no half shape.
#[test]
fn the_first_put_of_a_class_of_entries_happens_or_not_m7() {
    let engine = indexed();
    let class = Class::new("Job", ["Base"], ["id", "status"]).unwrap();
    let fields = [Field::Int(1), Field::Str("new")];
    let script = |engine: &Arc<Engine>| engine.put(TupleRef::entry(class, &fields)).unwrap();
    let legal = [contents(&engine), with(&engine, "1,new")];
    one_of(&engine, script, &legal);
}

#[test]
fn a_take_of_an_entry_happens_or_not_m7() {
    let engine = indexed();
    let class = Class::new("Job", ["Base"], ["id", "status"]).unwrap();
    let named = Named::new("Base", vec!["id".into()]);
    for id in 0..3 {
        engine.put(TupleRef::entry(class, &[Field::Int(id), Field::Str("new")])).unwrap();
    }
    let legal = [contents(&engine), without(&engine, "1,new")];
    let script = |engine: &Arc<Engine>| {
        let template =
            [TemplateRef { patterns: &[int(1)], form: Form::Entry(&named), condition: None }];
        let size = |tuple: TupleView<'_>| Ok::<_, tupelo_engine::Error>(tuple.image().len());
        assert!(engine.try_take(&template, Order::Fifo, size).unwrap().is_some());
    };
    one_of(&engine, script, &legal);
}

#[test]
fn a_large_put_happens_or_not() {
    let engine = indexed();
    let legal = [contents(&engine), with(&engine, "large,100000xSome(9)")];
    let large = vec![9; 100_000];
    let script = |engine: &Arc<Engine>| {
        engine.put(&[Field::Str("large"), Field::Bytes(&large)]).unwrap();
    };
    one_of(&engine, script, &legal);
}

#[test]
fn a_large_take_whose_taker_dies_goes_back() {
    let engine = indexed();
    let large = vec![9; 100_000];
    for name in ["a", "b", "c"] {
        engine.put(&[Field::Str(name), Field::Bytes(&large)]).unwrap();
    }
    let legal = [contents(&engine), without(&engine, "b,100000xSome(9)")];
    // A visitor that only looks at the size: the copy itself takes too many instructions.
    let script = |engine: &Arc<Engine>| {
        let template = [text("b"), BYTES];
        let taken = engine.try_take(&[TemplateRef::new(&template)], Order::Fifo, |tuple| {
            Ok::<_, tupelo_engine::Error>(tuple.image().len())
        });
        assert!(taken.unwrap().is_some());
    };
    one_of(&engine, script, &legal);
}

#[test]
fn building_an_index_loses_nothing() {
    let engine = space(8 << 20);
    for value in 0..100 {
        put(&engine, value, value % 3);
    }
    let before = contents(&engine);
    // Twice a hundred looks in vain are more than the price of an index.
    assert!(read(&engine, &[int(99), INT]).is_some());
    let script = |engine: &Arc<Engine>| assert!(read(engine, &[int(99), INT]).is_some());
    let summary = kill_everywhere(&engine, script, |found, ended| {
        assert_eq!(found.tuples, before);
        let indexes = found.report.shapes[1].indexes.len();
        assert!(indexes == 1 || !ended, "it was to be learned");
        learn_again(&engine, indexes);
    });
    assert!(summary.steps > 1_000, "the build is part of the script");
}

/// Whoever comes later finishes what was begun.
fn learn_again(engine: &Arc<Engine>, indexes: usize) {
    if indexes == 0 {
        learn(engine, &[int(99), INT]);
    }
}

#[test]
fn dropping_an_index_for_another_loses_nothing() {
    let engine = space(8 << 20);
    let fields = |value: i64| [value, value + 1, value + 2, value + 3].map(Field::Int);
    for value in 0..70 {
        engine.put(&fields(value)).unwrap();
    }
    let template = |mask: u32| {
        std::array::from_fn::<_, 4, _>(|index| {
            let value = 69 + i64::try_from(index).unwrap();
            if mask >> index & 1 == 1 { int(value) } else { INT }
        })
    };
    // Single fields first would serve the larger sets as well.
    for mask in [15, 7, 11, 13, 14, 3, 5, 6] {
        learn(&engine, &template(mask));
    }
    let before = contents(&engine);
    assert!(read(&engine, &template(8)).is_some());
    let script = |engine: &Arc<Engine>| {
        for _ in 0..2 {
            assert!(read(engine, &template(8)).is_some());
        }
    };
    kill_everywhere(&engine, script, |found, ended| {
        assert_eq!(found.tuples, before);
        let indexes = &found.report.shapes[1].indexes;
        assert!(!ended || (indexes.contains(&1) && indexes.len() == 8), "{indexes:?}");
    });
}

#[test]
fn tuples_of_several_shapes_come_together_or_not_at_all() {
    let engine = indexed();
    engine.put(&[Field::Str("a"), Field::Int(0)]).unwrap();
    engine.put(&[Field::Str("a"), Field::Str("b")]).unwrap();
    let before = contents(&engine);
    let (ints, rest) = before.split_at(100);
    let after = [
        ints,
        &["5,1".into(), "78,1".into()],
        &rest[..1],
        &["b,1".into()],
        &rest[1..],
        &["c,d".into()],
    ]
    .concat();
    let script = |engine: &Arc<Engine>| {
        let tuples: [&[Field<'_>]; 4] = [
            &[Field::Str("c"), Field::Str("d")],
            &[Field::Int(5), Field::Int(1)],
            &[Field::Str("b"), Field::Int(1)],
            &[Field::Int(78), Field::Int(1)],
        ];
        assert_eq!(engine.put_all(&tuples).unwrap(), 4);
    };
    one_of(&engine, script, &[before.clone(), after]);
}

#[test]
fn a_swap_replaces_or_not() {
    let engine = indexed();
    engine.put(&[Field::Str("a"), Field::Int(0)]).unwrap();
    let script = |engine: &Arc<Engine>| {
        let template = [int(5), INT];
        let swapped = engine.try_swap(
            &[TemplateRef::new(&template)],
            &[Field::Str("b"), Field::Int(1)],
            crate::shared::shown,
        );
        assert_eq!(swapped.unwrap(), Some("5,5".into()));
    };
    let mut after = without(&engine, "5,5");
    after.push("b,1".into());
    one_of(&engine, script, &[contents(&engine), after]);
}

#[test]
fn taking_many_takes_all_or_none() {
    let engine = indexed();
    let script = |engine: &Arc<Engine>| {
        let template = [int(5), INT];
        let taken =
            engine.try_take_many(&[TemplateRef::new(&template)], 3, 3, crate::shared::shown);
        assert_eq!(taken.unwrap().unwrap(), ["5,5", "5,15", "5,25"]);
    };
    let taken = ["5,5", "5,15", "5,25"].map(String::from);
    let after = contents(&engine).into_iter().filter(|one| !taken.contains(one)).collect();
    one_of(&engine, script, &[contents(&engine), after]);
}

#[test]
fn a_put_if_absent_happens_or_not() {
    let engine = space(8 << 20);
    let script = |engine: &Arc<Engine>| {
        let template = [STR, INT];
        let unless = [TemplateRef::new(&template)];
        assert!(engine.put_if_absent(&[Field::Str("a"), Field::Int(1)], &unless).unwrap());
    };
    either(&engine, script, &["a,1"]);
}

#[test]
fn a_put_if_absent_with_a_lease_happens_or_not() {
    let engine = space(8 << 20);
    let script = |engine: &Arc<Engine>| {
        let template = [STR, INT];
        let unless = [TemplateRef::new(&template)];
        let hour = LeaseTerms { lease: Some(Duration::from_secs(3_600)), after: None };
        let tuple = [Field::Str("a"), Field::Int(1)];
        assert!(engine.put_if_absent_leased(&tuple, &unless, &hour).unwrap().is_some());
    };
    either(&engine, script, &["a,1"]);
}
