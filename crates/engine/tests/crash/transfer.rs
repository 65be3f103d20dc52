//! `move_to` happens in both spaces or in none, at whichever instruction its process is killed, and whoever
//! cleans up after it, in whichever space they come first: every tuple is in exactly one of the two (C1, O7).

use crate::shared::pair::Pair;
use crate::shared::{INT, STR, contents, int, learn, put};
use tupelo_engine::Engine;
use tupelo_tuple::{Field, PatternRef, TemplateRef};

/// Tuples of two shapes, indexed in the space that they are moved from.
fn mixed() -> Pair {
    let pair = Pair::new();
    for value in 0..30 {
        put(&pair.from, value % 5, value);
    }
    learn(&pair.from, &[int(4), INT]);
    for name in ["a", "b"] {
        pair.from.put(&[Field::Str(name), Field::Int(7)]).unwrap();
    }
    put(&pair.into, 3, 100);
    pair.into.put(&[Field::Float(0.25)]).unwrap();
    pair
}

fn move_all(from: &Engine, into: &Engine, patterns: &[&[PatternRef<'_>]]) -> u64 {
    let templates: Vec<TemplateRef<'_>> =
        patterns.iter().map(|patterns| TemplateRef::new(patterns)).collect();
    from.move_to(into, &templates).unwrap()
}

/// The contents of both when what `goes` chooses has moved; in order of the shapes of `into`.
fn moved(pair: &Pair, goes: impl Fn(&str) -> bool, into: &[&str]) -> [Vec<String>; 2] {
    let from = contents(&pair.from).into_iter().filter(|tuple| !goes(tuple)).collect();
    [from, into.iter().map(ToString::to_string).collect()]
}

#[test]
fn tuples_of_one_shape_are_in_exactly_one_of_two_spaces() {
    let pair = mixed();
    let into = ["3,100", "3,3", "3,8", "3,13", "3,18", "3,23", "3,28", "0.25"];
    let after = moved(&pair, |tuple| tuple.starts_with("3,"), &into);
    let script = |pair: &Pair| {
        assert_eq!(move_all(&pair.from, &pair.into, &[&[int(3), INT]]), 6);
    };
    pair.kill_everywhere(script, &after);
}

#[test]
fn tuples_of_several_shapes_are_in_exactly_one_of_two_spaces() {
    let pair = mixed();
    let into = ["3,100", "4,4", "4,9", "4,14", "4,19", "4,24", "4,29", "0.25", "a,7", "b,7"];
    let after = moved(
        &pair,
        |tuple| {
            tuple.starts_with("4,")
                || tuple.ends_with(",7") && tuple.len() == 3 && !tuple.starts_with('2')
        },
        &into,
    );
    let script = |pair: &Pair| {
        assert_eq!(move_all(&pair.from, &pair.into, &[&[int(4), INT], &[STR, INT]]), 8);
    };
    pair.kill_everywhere(script, &after);
}

#[test]
fn more_tuples_than_a_short_log_can_note_are_in_exactly_one_of_two_spaces() {
    let pair = Pair::new();
    for value in 0..50 {
        put(&pair.from, 1, value);
    }
    put(&pair.into, 1, 50);
    // Both threads' logs are long before the script: that is an experiment of its own.
    let script = |pair: &Pair| assert_eq!(move_all(&pair.from, &pair.into, &[&[int(1), INT]]), 50);
    let into: Vec<String> =
        [50].into_iter().chain(0..50).map(|value| format!("1,{value}")).collect();
    pair.kill_everywhere(script, &[Vec::new(), into]);
}

#[test]
fn a_transfer_survives_the_death_of_the_recoverer_too() {
    let pair = mixed();
    let into = ["3,100", "3,3", "3,8", "3,13", "3,18", "3,23", "3,28", "0.25"];
    let after = moved(&pair, |tuple| tuple.starts_with("3,"), &into);
    let script = |pair: &Pair| assert_eq!(move_all(&pair.from, &pair.into, &[&[int(3), INT]]), 6);
    pair.kill_twice(script, &after);
}
