//! A call whose time is over says so, also where the space can not be asked why (O3).

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::common::{ENGINES, Temporary, keep};
use tupelo::{Error, Kind, Order, Search, Template, Tuple, Value, Visits, fields, template};
use tupelo_model::Limits;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_timeout_is_one_also_where_its_reason_can_not_be_found_out_o3() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let closed = temporary.connect_again();
        closed.close();
        let template = [template!["job", Kind::Int], template!["stop"]];
        let error = closed.timeout("take", &template, SECOND);
        assert_eq!(error.code(), "TUP-003");
        let told = r#"nothing matched ("job", :int) | ("stop") within 1 s"#;
        assert_eq!(error.message().split(" in ").next(), Some(told));
        let hint = error.hint().unwrap();
        assert!(hint.contains("could not be found out: TUP-014: this handle"), "{hint}");
    }
}

#[test]
fn a_search_whose_time_is_over_tells_of_a_space_of_which_something_is_known() {
    for engine in ENGINES {
        let spaces = [(); 2].map(|()| Temporary::new(engine, Limits::default()));
        spaces[1].space.put(&fields!["job", "7"]).unwrap();
        let handles = spaces.iter().map(Temporary::connect_again).collect();
        let search = Search::new(handles, Visits::RoundRobin).unwrap();
        search.spaces()[0].close();
        match search.timeout("take", &[template!["job", Kind::Int]], SECOND) {
            Error::Timeout { url, explanation, .. } => {
                assert_eq!(url, format!("{} and 1 more", spaces[1].space.url()));
                assert!(explanation.nearest.is_some() && explanation.unknown.is_none());
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A template may have a book in it, and a message is for a person.
#[test]
fn a_message_has_the_begin_of_a_long_template() {
    let temporary = Temporary::new(ENGINES[0], Limits::default());
    let (long, other) = ("x".repeat(100_000), "y".repeat(100_000));
    temporary.space.put(&fields!["page", other.as_str()]).unwrap();
    let message =
        temporary.space.timeout("take", &[template!["page", long.as_str()]], SECOND).to_string();
    assert!(message.contains("xxx…") && message.contains("yyy…"), "{message}");
    assert!(message.chars().count() < 1_000, "{} characters", message.chars().count());
}

#[test]
fn tuples_that_are_too_large_are_not_compared_with_a_template() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let space = &temporary.space;
        let large = vec![7_u8; 2 << 20];
        (1..=3).for_each(|number| space.put(&fields!["frame", number, large.as_slice()]).unwrap());
        let template = [template!["frame", 7, Kind::Bytes]];
        let hint = || space.timeout("take", &template, SECOND).hint().unwrap();
        assert!(hint().contains("3 of them; too large to be compared"), "{}", hint());
        space.put(&fields!["frame", 8, &large[..10]]).unwrap();
        assert!(hint().contains("field 1 is 8 there, 7 in the template"), "{}", hint());
    }
}

/// The templates of a class match entries of those that are derived of it, too, and these may be many.
#[test]
fn entries_of_derived_classes_are_not_what_a_class_is_compared_by_m7() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let space = &temporary.space;
        let put = |text: &str| {
            let entry: Tuple = text.parse().unwrap();
            entry.with_ref(|entry| space.put(entry)).unwrap().unwrap();
        };
        (0..200).for_each(|_| put("Urgent(Job){id: 1, state: 'old', by: 'noon'}"));
        put("Job{id: 2, state: 'new'}");
        let template: Template = "Job{id: 7, state: 'new'}".parse().unwrap();
        let hint = template.with_refs(|refs| space.timeout("take", refs, SECOND).hint().unwrap());
        let told = "1 tuple Job{id: int, state: str}; field id is 2 there, 7 in the template";
        assert!(hint.as_ref().unwrap().contains(told), "{hint:?}");
    }
}

/// Its digits would be a second's work for each of them.
#[test]
fn of_a_long_int_the_size_is_told() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let long = Value::parse_int(&"7".repeat(5_000)).unwrap();
        let tuple: Tuple = [Value::from("n"), long].into_iter().collect();
        tuple.with_ref(|tuple| temporary.space.put(tuple)).unwrap().unwrap();
        let hint = temporary.space.timeout("take", &[template!["n", 7]], SECOND).hint().unwrap();
        assert!(hint.contains("field 1 is an int of 2"), "{hint}");
        assert!(hint.contains(" bytes there, 7 in the template"), "{hint}");
    }
}

#[test]
fn what_an_open_transaction_has_read_is_said_to_be_what_is_in_the_way_x3() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let space = &temporary.space;
        (1..=2).for_each(|number| space.put(&fields!["rate", number]).unwrap());
        let transaction = space.transaction(&[], SECOND * 60).unwrap();
        let second = [template!["rate", 2]];
        transaction.at(0).try_read(&second, Order::Fifo, keep).unwrap().unwrap();
        let both = [template!["rate", Kind::Int]];
        let told = [
            (&second, "1 tuple matches", ", which was read"),
            (&both, "2 tuples match", ", 1 of which was read"),
        ];
        for (template, counted, told) in told {
            let hint = space.timeout("take", template, SECOND).hint().unwrap();
            assert!(hint.contains(counted) && hint.contains(told), "{hint}");
            assert!(hint.contains("by an open transaction"), "{hint}");
        }
        transaction.commit().unwrap();
        let hint = space.timeout("take", &both, SECOND).hint().unwrap();
        assert!(hint.ends_with(" now"), "{hint}");
    }
}

/// A match that somebody takes while another looks is gone, and nobody has read it.
#[test]
fn what_others_take_meanwhile_is_not_said_to_be_read_by_a_transaction_x3() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let (space, others) = (&temporary.space, temporary.connect_again());
        let template = [template!["rate", Kind::Int]];
        let is_over = AtomicBool::new(false);
        let explained: Vec<_> = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    others.put(&fields!["rate", 1]).unwrap();
                    others.try_take(&template, Order::Fifo, keep).unwrap();
                }
            });
            let explained = (0..2_000).map(|_| space.explain(&template)).collect();
            is_over.store(true, Relaxed);
            explained
        });
        for explanation in explained {
            assert_eq!(explanation.unwrap().read, 0);
        }
    }
}
