//! Tests that no field satisfies: a take by one would wait for ever.
//!
//! It finds common mistakes: an empty set of values, bounds the wrong way round, parts of an AND that exclude each
//! other. It does not look for others: `not` of a test, an OR as a part, gaps between two numbers or texts.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::ops::Bound::{self, Excluded, Included, Unbounded};

use super::constant::Constant;
use super::range::{Range, compare};
use super::{Node, Test};
use crate::{KindSet, Value};

/// Whether no field at all can satisfy a test of this kind, as far as that is looked for.
pub(super) fn is_impossible(node: &Node, kinds: KindSet) -> bool {
    if kinds == KindSet::EMPTY {
        return true;
    }
    match node {
        Node::Range(range) => crossed(range.low(), range.high()),
        Node::Any(tests) => tests.iter().all(Test::is_impossible),
        Node::All(tests) => tests.iter().any(Test::is_impossible) || exclude_each_other(tests),
        Node::Actual(_)
        | Node::Kinds(_)
        | Node::In(_)
        | Node::Prefix(_)
        | Node::Glob(_)
        | Node::Class(_)
        | Node::Not(_) => false,
    }
}

/// Whether tests that have kinds in common have no field in common.
fn exclude_each_other(tests: &[Test]) -> bool {
    let holds = |value: &Constant| tests.iter().all(|test| test.matches(&value.field()));
    let finite = tests.iter().find_map(|test| match test.node() {
        Node::Actual(actual) => Some(holds(actual)),
        Node::In(members) => Some(members.iter().any(holds)),
        _ => None,
    });
    if let Some(is_possible) = finite {
        return !is_possible;
    }
    let ranges = || {
        tests.iter().filter_map(|test| match test.node() {
            Node::Range(range) => Some(range),
            _ => None,
        })
    };
    // All have kinds in common, so that their bounds can be compared.
    ranges().any(|low| ranges().any(|high: &Range| crossed(low.low(), high.high())))
}

/// Whether nothing lies between two bounds.
fn crossed(low: &Bound<Value>, high: &Bound<Value>) -> bool {
    let (is_closed, low, high) = match (low, high) {
        (Unbounded, _) | (_, Unbounded) => return false,
        (Included(low), Included(high)) => (true, low, high),
        (Included(low) | Excluded(low), Included(high) | Excluded(high)) => (false, low, high),
    };
    match low.with_field(|low| compare(&low, high)) {
        Ok(Some(Greater)) => true,
        Ok(Some(Equal)) => !is_closed,
        Ok(Some(Less) | None) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::Template;

    #[test]
    fn what_can_never_match_is_known_and_what_can_is_not_among_it() {
        let impossible = |text: &str| text.parse::<Template>().unwrap().impossible().is_some();
        for text in [
            "9..3",
            "3..<3",
            "3<..3",
            "3.5..3",
            r#""b".."a""#,
            "> 3 & < 2",
            "> 3 & < 3",
            "(> 3 | > 5) & :str",
            ":int & :str",
            ":str & > 3",
            "7 & > 8",
            "9..3 | 8..4",
            r#""job", 9..3"#,
            "5, 4, 9..3, _",
        ] {
            assert!(impossible(text), "{text}");
        }
        for text in [
            "3..9",
            "3..3",
            "> 3 & < 5",
            "9..3 | :str",
            "> 3 & 3..4",
            "7 & > 6",
            ":int",
            "_",
            "!7",
            r#""job", > 3"#,
            "9..3 | 3..9",
            r#""a".."b""#,
            "1.5..2",
            "1..1.0",
        ] {
            assert!(!impossible(text), "{text}");
        }
    }
}
