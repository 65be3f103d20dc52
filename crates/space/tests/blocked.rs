//! Who is blocked, and for what.
#![allow(clippy::unwrap_used, reason = "a step that fails, fails the test")]

mod common;

use common::{ENGINES, Temporary};
use tupelo::{Field, Kind, KindSet, PatternRef, Template, TemplateRef, Want, Watch, template};
use tupelo_model::Limits;

/// What is said to be waited for, with the processes.
fn blocked(temporary: &Temporary) -> Vec<(u32, String)> {
    let all = temporary.space.blocked().unwrap();
    all.into_iter().map(|one| (one.pid, one.template.to_string())).collect()
}

#[test]
fn each_template_is_told_as_it_was_given_until_nobody_waits() {
    let long = "x".repeat(100_000);
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let space = &temporary.space;
        let (actual, of) = (PatternRef::Actual, |kind| PatternRef::Kinds(KindSet::of(kind)));
        let patterns: Vec<Vec<PatternRef<'_>>> = vec![
            vec![actual(Field::Str("job")), actual(Field::Int(7)), of(Kind::Str)],
            vec![of(Kind::Int), actual(Field::Int(-1)), actual(Field::Float(2.5))],
            // In words of their own: longer than a cell, of several kinds, and of any.
            vec![actual(Field::Str(&long)), of(Kind::Int)],
            vec![actual(Field::Str("any")), PatternRef::ANY],
        ];
        let waiters: Vec<_> = patterns
            .iter()
            .zip([Want::Take, Want::Read, Want::Take, Want::Read])
            .map(|(patterns, want)| space.waiter(&[TemplateRef::new(patterns)], want).unwrap())
            .collect();
        let watch = space.watch(&[template!["watched"]], Watch::Put).unwrap();

        let told = blocked(&temporary);
        let texts: Vec<String> =
            patterns.iter().map(|patterns| TemplateRef::new(patterns).to_string()).collect();
        let expected: Vec<_> = texts.into_iter().map(|text| (std::process::id(), text)).collect();
        assert_eq!(told, expected);
        let own: Vec<Template> =
            space.blocked().unwrap().into_iter().map(|one| one.template).collect();
        for (one, patterns) in own.iter().zip(&patterns) {
            assert_eq!(*one, TemplateRef::new(patterns).to_template().unwrap());
        }

        drop((waiters, watch));
        assert_eq!(blocked(&temporary), []);
    }
}
