//! A search takes or reads exactly one match from one of several spaces, and leaves all else as it was (O10, T1, T5).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{ENGINES, Temporary, keep, with_tuple};
use tupelo::{
    Condition, ConnectOptions, Error, Found, Kind, LeaseTerms, Order, SEARCHED_MAX, Search, Space,
    Tuple, TupleView, Visits, Want, fields, template,
};
use tupelo_crashtest::{Exit, fork};
use tupelo_model::Limits;

/// Far beyond what any of these waits needs: who waits so long was forgotten.
const FORGOTTEN: Option<Duration> = Some(Duration::from_secs(60));
const NOW: Option<Duration> = Some(Duration::ZERO);

/// Spaces of these engines, and a search in them.
fn searched(engines: &[&str], visits: Visits) -> (Vec<Temporary>, Search) {
    let spaces: Vec<_> =
        engines.iter().map(|engine| Temporary::new(engine, Limits::default())).collect();
    let handles = spaces.iter().map(|one| one.space.clone()).collect();
    (spaces, Search::new(handles, visits).unwrap())
}

/// Lists of three: of each engine, and of both.
const LISTS: [[&str; 3]; 3] = [["mem"; 3], ["shm"; 3], ["mem", "shm", "mem"]];

fn kept(_: usize, view: TupleView<'_>) -> Result<Tuple, Error> {
    keep(view)
}

fn text(found: &Found<Tuple>) -> (String, usize, usize) {
    (found.result.to_string(), found.place, found.visited)
}

fn put_back(space: &Space) -> Vec<String> {
    let all = space.take_all(&[template![..]], None, keep).unwrap();
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn the_spaces_are_asked_in_turn_and_every_look_counts_o10() {
    for list in LISTS {
        let (spaces, search) = searched(&list, Visits::RoundRobin);
        let template = [template!["job", Kind::Int]];
        assert_eq!(search.try_take(&template, kept).unwrap(), None);
        spaces[2].space.put(&fields!["job", 2]).unwrap();
        spaces[1].space.put(&fields!["job", 1]).unwrap();
        let read = search.try_read(&template, kept).unwrap().unwrap();
        assert_eq!(text(&read), (r#"("job", 1)"#.into(), 1, 2));
        let taken = search.take(&template, NOW, kept).unwrap();
        assert_eq!(text(&taken), (r#"("job", 1)"#.into(), 1, 2));
        assert_eq!(taken.waited, Duration::ZERO);
        let taken = search.take(&template, None, kept).unwrap();
        assert_eq!(text(&taken), (r#"("job", 2)"#.into(), 2, 3));
        let refused = search.take(&template, Some(Duration::from_millis(2)), kept).unwrap_err();
        assert!(matches!(&refused, Error::Timeout { url, .. } if url.ends_with(" and 2 more")));
        assert!(spaces.iter().all(|one| one.space.stat().unwrap().waiters == 0));
    }
}

#[test]
fn a_search_that_waits_is_served_by_whichever_space_a_match_comes_to_t6() {
    for list in LISTS {
        for place in 0..3 {
            let (spaces, search) = searched(&list, Visits::RoundRobin);
            let template = [template!["job", Kind::Int]];
            let found = thread::scope(|scope| {
                let waits = scope.spawn(|| search.take(&template, FORGOTTEN, kept));
                while spaces[place].space.stat().unwrap().waiters == 0 {
                    thread::yield_now();
                }
                spaces[place].space.put(&fields!["job", 7]).unwrap();
                waits.join().unwrap().unwrap()
            });
            assert_eq!((found.result.to_string().as_str(), found.place), (r#"("job", 7)"#, place));
            assert!((4..=6).contains(&found.visited), "{} looks", found.visited);
            for one in &spaces {
                assert_eq!((one.space.len(), one.space.stat().unwrap().waiters), (0, 0));
            }
        }
    }
}

/// So many tuples.
trait Length {
    fn len(&self) -> u64;
}

impl Length for Space {
    fn len(&self) -> u64 {
        self.count(&[template![..]]).unwrap()
    }
}

#[test]
fn of_two_that_are_handed_over_one_goes_back_to_its_place_t5() {
    for list in LISTS {
        for want in [Want::Take, Want::Read] {
            let (spaces, search) = searched(&list, Visits::RoundRobin);
            let template = [template!["job", Kind::Int]];
            let mut line = search.waiter(&template, want).unwrap();
            assert!(line.finish_now(kept).unwrap().is_none());
            for (place, one) in spaces.iter().enumerate() {
                for number in 0..3 {
                    one.space
                        .put(&fields!["job", 10 * i64::try_from(place).unwrap() + number])
                        .unwrap();
                }
            }
            let found = line.finish_now(kept).unwrap().unwrap();
            assert_eq!(text(&found), (r#"("job", 0)"#.into(), 0, 6));
            drop(line);
            let first = usize::from(want == Want::Take);
            for (place, one) in spaces.iter().enumerate() {
                let begin = if place == 0 { first } else { 0 };
                let expected: Vec<String> = (begin..3)
                    .map(|number| format!(r#"("job", {})"#, 10 * place + number))
                    .collect();
                assert_eq!(put_back(&one.space), expected, "in their order, in space {place}");
            }
        }
    }
}

#[test]
fn a_line_that_is_given_up_loses_nothing_t5() {
    for list in LISTS {
        let (spaces, search) = searched(&list, Visits::RoundRobin);
        let line = search.waiter(&[template!["job", _]], Want::Take).unwrap();
        assert_eq!(line.places().count(), 3);
        for one in &spaces {
            one.space.put(&fields!["job", 1]).unwrap();
        }
        assert_eq!(spaces.iter().map(|one| one.space.len()).sum::<u64>(), 0, "all are held");
        drop(line);
        assert_eq!(spaces.iter().map(|one| one.space.len()).sum::<u64>(), 3);
    }
}

#[test]
fn who_gets_in_line_where_a_match_is_goes_no_further() {
    let (spaces, search) = searched(&["mem", "shm", "mem"], Visits::RoundRobin);
    spaces[1].space.put(&fields!["job", 1]).unwrap();
    let mut line = search.waiter(&[template!["job", _]], Want::Take).unwrap();
    assert_eq!(line.places().count(), 2);
    assert_eq!(text(&line.finish_now(kept).unwrap().unwrap()), (r#"("job", 1)"#.into(), 1, 5));
}

#[test]
fn a_tuple_that_the_visitor_refuses_goes_back_and_so_do_the_others_v3() {
    let (spaces, search) = searched(&["mem", "shm"], Visits::RoundRobin);
    let template = [template!["job", _]];
    let refuse = |_: usize, _: TupleView<'_>| -> Result<Tuple, Error> {
        Err(Error::Misuse { problem: "no".into(), hint: None })
    };
    let mut line = search.waiter(&template, Want::Take).unwrap();
    // A moment may be more than a language can represent; a number never is.
    let tuple: Tuple = r#"("job", timestamp("2026-01-01T00:00:00Z"))"#.parse().unwrap();
    for one in &spaces {
        with_tuple(&tuple, |tuple| one.space.put(tuple)).unwrap();
    }
    assert!(matches!(line.finish_now(refuse), Err(Error::Misuse { .. })));
    assert_eq!([spaces[0].space.len(), spaces[1].space.len()], [1, 1]);
    assert!(matches!(search.take(&template, None, refuse), Err(Error::Misuse { .. })));
    assert_eq!([spaces[0].space.len(), spaces[1].space.len()], [1, 1]);
}

#[test]
fn a_search_with_a_condition_waits_for_a_tuple_that_fulfils_it_m9() {
    for list in LISTS {
        let (spaces, search) = searched(&list, Visits::RoundRobin);
        let condition = Condition::new("f[1] % 2 == 0").unwrap();
        let template = template!["job", Kind::Int].to_template().unwrap();
        let template = template.with_condition(&condition).unwrap();
        let found = thread::scope(|scope| {
            let waits = scope
                .spawn(|| template.with_refs(|refs| search.take(refs, FORGOTTEN, kept)).unwrap());
            while spaces[2].space.stat().unwrap().waiters == 0 {
                thread::yield_now();
            }
            spaces[1].space.put(&fields!["job", 1]).unwrap();
            spaces[2].space.put(&fields!["job", 2]).unwrap();
            waits.join().unwrap().unwrap()
        });
        assert_eq!((found.result.to_string().as_str(), found.place), (r#"("job", 2)"#, 2));
        let soon = Some(Duration::from_millis(2));
        let vain = template.with_refs(|refs| search.take(refs, soon, kept)).unwrap();
        assert!(matches!(vain, Err(Error::Timeout { .. })), "{vain:?}");
        assert_eq!(spaces[1].space.len(), 1);
    }
}

#[test]
fn what_becomes_visible_while_all_sleep_is_found_l3_t6() {
    for list in LISTS {
        let (spaces, search) = searched(&list, Visits::RoundRobin);
        let later = LeaseTerms { after: Some(Duration::from_millis(20)), lease: None };
        spaces[1].space.put_leased(&fields!["job", 1], &later).unwrap();
        let found = search.take(&[template!["job", _]], FORGOTTEN, kept).unwrap();
        assert_eq!(found.place, 1);
        assert!(found.waited > Duration::ZERO);
    }
}

#[test]
fn the_same_search_waits_again_and_in_many_threads_at_once() {
    let (spaces, search) = searched(&["mem", "shm", "mem"], Visits::SuccessFactor);
    let template = [template!["job", Kind::Int]];
    for one in &spaces {
        let found: BTreeSet<String> = thread::scope(|scope| {
            let search = &search;
            let template = &template;
            let waits: Vec<_> =
                (0..4).map(|_| scope.spawn(|| search.take(template, FORGOTTEN, kept))).collect();
            for number in 0..4 {
                one.space.put(&fields!["job", number]).unwrap();
            }
            waits.into_iter().map(|wait| wait.join().unwrap().unwrap().result.to_string()).collect()
        });
        let expected: BTreeSet<_> = (0..4).map(|number| format!(r#"("job", {number})"#)).collect();
        assert_eq!(found, expected, "T1");
    }
}

#[test]
fn searches_beside_takes_lose_and_double_nothing_t1() {
    const EACH: i64 = 2_000;
    for list in LISTS {
        let (spaces, search) = searched(&list, Visits::RoundRobin);
        let template = [template!["job", Kind::Int]];
        let over = AtomicBool::new(false);
        let soon = Some(Duration::from_micros(200));
        let mut numbers: Vec<i64> = thread::scope(|scope| {
            let takers: Vec<_> = (0..3)
                .map(|taker| {
                    let (search, spaces, over, template) = (&search, &spaces, &over, &template);
                    scope.spawn(move || {
                        let mut own = Vec::new();
                        while !over.load(Ordering::Relaxed) {
                            let found = if taker == 0 {
                                let space = &spaces[own.len() % 3].space;
                                space.try_take(template, Order::Fifo, keep).unwrap()
                            } else {
                                match search.take(template, soon, kept) {
                                    Ok(found) => Some(found.result),
                                    Err(Error::Timeout { .. }) => None,
                                    Err(error) => panic!("{error}"),
                                }
                            };
                            own.extend(found);
                        }
                        own
                    })
                })
                .collect();
            for number in 0..EACH {
                let place = usize::try_from(number * 7 % 3).unwrap();
                spaces[place].space.put(&fields!["job", number]).unwrap();
            }
            over.store(true, Ordering::Relaxed);
            // All have returned before it is looked what is left.
            let taken: Vec<_> =
                takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect();
            let left = spaces
                .iter()
                .flat_map(|one| one.space.take_all(&template, None, keep).unwrap())
                .collect::<Vec<_>>();
            taken
                .into_iter()
                .chain(left)
                .map(|tuple| tuple[1].to_string().parse().unwrap())
                .collect()
        });
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..EACH), "{} of {EACH}", numbers.len());
    }
}

#[test]
fn by_success_factor_the_space_where_most_searches_ended_is_asked_first() {
    let (spaces, search) = searched(&["mem", "shm", "mem"], Visits::SuccessFactor);
    let visited = |name: &str, place: usize| {
        spaces[place].space.put(&fields![name, 1]).unwrap();
        search.take(&[template![name, Kind::Int]], NOW, kept).unwrap().visited
    };
    // Four may be chance.
    assert_eq!([(); 6].map(|()| visited("border", 2)), [3, 3, 3, 3, 3, 1]);
    // Until enough is known of the name, the shape says where to look: in the last space, where it was found most,
    // then in the first of the list, or where it was found since.
    assert_eq!([(); 6].map(|()| visited("panel", 1)), [3, 2, 2, 2, 2, 1]);
    assert_eq!([visited("border", 2), visited("panel", 1), visited("border", 2)], [1, 1, 1]);
    // A name that was not searched for yet is sought where its shape was found most.
    assert_eq!(visited("other", 2), 1);
}

#[test]
fn by_success_factor_the_order_of_the_list_stays_while_the_difference_may_be_chance() {
    let (spaces, search) = searched(&["mem", "shm", "mem"], Visits::SuccessFactor);
    let template = [template!["border", Kind::Int]];
    for place in [2, 0, 1, 2, 1, 2, 0, 2, 1, 2, 2, 0] {
        spaces[place].space.put(&fields!["border", 1]).unwrap();
        assert_eq!(search.take(&template, NOW, kept).unwrap().visited, place + 1);
    }
}

#[test]
fn a_list_that_makes_no_sense_is_refused() {
    let refused = |spaces| Search::new(spaces, Visits::RoundRobin).unwrap_err().to_string();
    assert!(refused(Vec::new()).contains("no space to search in\n  give at least one"));
    let one = Temporary::new("mem", Limits::default());
    let twice = refused(vec![one.space.clone(), one.connect_again()]);
    assert!(twice.contains("is to be searched twice\n  name every space once"), "{twice}");
    assert!(
        refused(vec![one.space.clone(); SEARCHED_MAX + 1])
            .contains("257 spaces, the maximum is 256")
    );
}

#[test]
fn a_space_that_is_closed_ends_the_search() {
    for engine in ENGINES {
        let (spaces, search) = searched(&[engine; 2], Visits::RoundRobin);
        let template = [template!["job", _]];
        let ended = thread::scope(|scope| {
            let waits = scope.spawn(|| search.take(&template, FORGOTTEN, kept));
            while spaces[1].space.stat().unwrap().waiters == 0 {
                thread::yield_now();
            }
            search.spaces()[1].close();
            waits.join().unwrap()
        });
        assert!(matches!(ended, Err(Error::SpaceClosed { .. })), "{ended:?}");
        spaces[0].space.put(&fields!["job", 1]).unwrap();
        assert_eq!(spaces[0].space.len(), 1, "nobody is in the wait queue any more");
        let options = ConnectOptions::default();
        let again = Space::connect(spaces[1].space.url(), &options).unwrap();
        again.put(&fields!["job", 1]).unwrap();
        assert_eq!(again.len(), 1);
    }
}

#[test]
fn the_child_of_a_fork_does_not_wait_in_its_parents_place_t6() {
    let (spaces, search) = searched(&["shm"; 2], Visits::RoundRobin);
    let mut line = search.waiter(&[template!["job", Kind::Int]], Want::Take).unwrap();
    let child = fork(|| {
        assert!(matches!(line.wait(FORGOTTEN), Err(Error::Misuse { .. })));
    });
    assert_eq!(child.wait(), Exit::Done);
    spaces[1].space.put(&fields!["job", 7]).unwrap();
    assert!(line.wait(FORGOTTEN).unwrap());
    assert_eq!(line.finish_now(kept).unwrap().unwrap().place, 1);
}

#[test]
fn a_search_goes_on_in_a_space_that_takes_the_place_of_a_removed_one_and_knows_what_it_knew_o10() {
    let (spaces, search) = searched(&["shm", "shm"], Visits::SuccessFactor);
    let template = [template!["job", Kind::Int]];
    for number in 0..10 {
        spaces[1].space.put(&fields!["job", number]).unwrap();
        search.take(&template, NOW, kept).unwrap();
    }
    tupelo::remove(spaces[1].space.url()).unwrap();
    let refused = search.try_take(&template, kept).unwrap_err();
    assert!(matches!(refused, Error::SpaceRemoved { .. }), "{refused}");
    let next = Space::connect(spaces[1].space.url(), &ConnectOptions::default()).unwrap();
    next.put(&fields!["job", 7]).unwrap();
    let search = search.in_place(vec![spaces[0].space.clone(), next.clone()]).unwrap();
    let found = search.try_take(&template, kept).unwrap().unwrap();
    assert_eq!(text(&found), (r#"("job", 7)"#.into(), 1, 1));
    for wrong in [vec![next.clone()], vec![next.clone(), next]] {
        let refused = search.in_place(wrong).unwrap_err();
        assert!(matches!(refused, Error::Misuse { .. }), "{refused}");
    }
}
