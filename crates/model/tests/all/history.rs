//! Histories of several callers that no order of their calls explains, and their neighbours that one does.

use tupelo_model::{
    Answer, Call, Event, EventKind, LeaseTerms, Operation, Order, Place, Space, State,
    linearization, template, tuple,
};

/// A call in the space that nearly all is about; the two numbers are its beginning and its end.
fn call(invoked: u64, returned: u64, operation: Operation, answer: Answer) -> Call {
    Call { at: Place::Main, operation, answer, invoked, returned }
}

fn put(text: &str) -> Operation {
    Operation::Put { tuple: tuple(text) }
}

fn try_take(text: &str) -> Operation {
    Operation::TryTake { template: template(text), order: Order::Fifo }
}

fn count(text: &str) -> Operation {
    Operation::Count { template: template(text) }
}

fn found(text: &str) -> Answer {
    Answer::Tuple(tuple(text))
}

fn explained(first: &[&str], calls: &[Call]) -> bool {
    let mut space = Space::new();
    space.put_all(first.iter().map(|text| tuple(text)).collect()).expect("there is no limit");
    linearization(calls, &State::new(space, Space::new())).is_some()
}

#[test]
fn one_tuple_is_taken_by_one_caller_t1() {
    let both = |second| [call(1, 3, try_take("a"), found("a")), call(2, 4, try_take("a"), second)];
    assert!(explained(&["a"], &both(Answer::Nothing)));
    assert!(!explained(&["a"], &both(found("a"))));
    assert!(explained(&["a", "a"], &both(found("a"))));
}

#[test]
fn a_put_that_has_returned_is_seen_o2() {
    let then = |invoked| {
        [call(1, 3, put("a"), Answer::Done), call(invoked, 9, try_take("a"), Answer::Nothing)]
    };
    assert!(explained(&[], &then(2)));
    assert!(!explained(&[], &then(4)));
}

#[test]
fn nobody_sees_half_of_a_put_all_o5() {
    let put_all = Operation::PutAll { tuples: vec![tuple("a"), tuple("b")] };
    let seen = |number| {
        [
            call(1, 4, put_all.clone(), Answer::Count(2)),
            call(2, 3, count("_"), Answer::Count(number)),
        ]
    };
    assert!(explained(&[], &seen(0)));
    assert!(!explained(&[], &seen(1)));
    assert!(explained(&[], &seen(2)));
}

#[test]
fn a_count_sees_one_moment_o6() {
    // A tuple is put before another is taken: at every moment there is one at least.
    let meanwhile = |number| {
        [
            call(1, 6, count("_"), Answer::Count(number)),
            call(2, 3, put("new"), Answer::Done),
            call(4, 5, try_take("old"), found("old")),
        ]
    };
    assert!(!explained(&["old"], &meanwhile(0)));
    assert!(explained(&["old"], &meanwhile(1)));
    assert!(explained(&["old"], &meanwhile(2)));
}

#[test]
fn a_miss_over_several_shapes_is_a_miss_at_one_moment_o4() {
    let miss = [
        call(1, 6, try_take("job, _"), Answer::Nothing),
        call(2, 3, put("job, 1"), Answer::Done),
        call(4, 5, try_take("job, :str"), found("job, one")),
    ];
    assert!(!explained(&["job, one"], &miss));
}

#[test]
fn of_two_racers_one_puts_o8() {
    let race = |unless: &str, wins| {
        let put = || Operation::PutIfAbsent {
            tuple: tuple("leader"),
            unless: template(unless),
            terms: LeaseTerms::default(),
        };
        [call(1, 3, put(), Answer::Flag(true)), call(2, 4, put(), Answer::Flag(wins))]
    };
    assert!(explained(&[], &race("leader", false)));
    assert!(!explained(&[], &race("leader", true)));
    assert!(explained(&[], &race("other", true)));
}

#[test]
fn the_oldest_is_taken_first_also_by_several_callers_t2() {
    let takes = |one: &str, other: &str| {
        [
            call(1, 2, try_take("job, _"), found(one)),
            call(3, 6, try_take("job, _"), found(other)),
            call(4, 5, put("job, 3"), Answer::Done),
        ]
    };
    assert!(explained(&["job, 1", "job, 2"], &takes("job, 1", "job, 2")));
    assert!(!explained(&["job, 1", "job, 2"], &takes("job, 2", "job, 1")));
    assert!(!explained(&["job, 1", "job, 2"], &takes("job, 1", "job, 3")));
}

/// A call at the end that says what a subscription has heard of everything.
fn heard(events: &[(EventKind, &str)]) -> Call {
    let events = (1..).zip(events).map(|(sequence, (kind, text))| Event {
        kind: *kind,
        tuple: tuple(text),
        sequence,
        missed: 0,
    });
    let asked = Operation::Events { label: "all".to_owned() };
    call(90, 91, asked, Answer::Events(events.collect()))
}

fn subscribe() -> Operation {
    let (label, template) = ("all".to_owned(), template("..."));
    Operation::Subscribe { label, template, on: EventKind::ALL.to_vec(), buffer: 9 }
}

#[test]
fn what_is_heard_comes_in_the_order_of_the_calls_n1() {
    use EventKind::{Put, Take};
    // Of two shapes, which the answer to the last call does not compare with each other.
    let history = |second_begins, events: &[(EventKind, &str)]| {
        let begins = call(0, 1, subscribe(), Answer::Done);
        let one = call(2, 4, put("a"), Answer::Done);
        let other = call(second_begins, second_begins + 4, put("b, 1"), Answer::Done);
        [begins, one, other, heard(events)]
    };
    let in_order = [(Put, "a"), (Put, "b, 1")];
    let turned = [(Put, "b, 1"), (Put, "a")];
    assert!(explained(&[], &history(3, &in_order)));
    assert!(explained(&[], &history(3, &turned)), "they overlap");
    assert!(explained(&[], &history(5, &in_order)));
    assert!(!explained(&[], &history(5, &turned)));
    assert!(!explained(&[], &history(5, &in_order[..1])), "one is missing");
    assert!(explained(&[], &history(92, &in_order[..1])), "it was asked before");
    assert!(!explained(&[], &history(5, &[in_order[0], in_order[0]])));
    assert!(!explained(&[], &history(5, &[in_order[0], in_order[1], (Take, "a")])), "one too many");
}

#[test]
fn events_of_one_call_stay_together_in_any_order_of_their_shapes_n1_o5() {
    use EventKind::Put;
    let history = |events: &[(EventKind, &str)]| {
        let both = Operation::PutAll { tuples: vec![tuple("a"), tuple("b, 1")] };
        let begins = call(0, 1, subscribe(), Answer::Done);
        let other = call(2, 9, put("c"), Answer::Done);
        [begins, call(2, 9, both, Answer::Count(2)), other, heard(events)]
    };
    assert!(explained(&[], &history(&[(Put, "c"), (Put, "a"), (Put, "b, 1")])));
    assert!(explained(&[], &history(&[(Put, "b, 1"), (Put, "a"), (Put, "c")])));
    assert!(!explained(&[], &history(&[(Put, "a"), (Put, "c"), (Put, "b, 1")])));
}
