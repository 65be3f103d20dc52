//! What keyed requests were answered, as a later server finds it (rules C1, C3).

use crate::common::Temporary;
use tupelo::{ConnectOptions, Error, Kind, Order, RequestKey, Space, fields, keyed, template};

/// Answers of one handle that are kept.
const KEPT: u64 = 4095;

fn shared() -> Temporary {
    Temporary::with("shm", &ConnectOptions::default())
}

/// The space as a server opens it.
fn serve(shared: &Temporary) -> Space {
    let options = ConnectOptions { keeps_keys: true, ..ConnectOptions::default() };
    Space::connect(shared.space.url(), &options).unwrap()
}

fn request(number: u64) -> RequestKey {
    RequestKey { key: 9 << 64 | u128::from(number), who: 3, answer: number + 1 }
}

fn known(space: &Space, number: u64) -> Option<u64> {
    space.answer_to(request(number).key, 3).unwrap()
}

#[test]
fn an_answer_is_kept_with_its_put_and_is_nobody_elses_c3() {
    let shared = shared();
    let space = serve(&shared);
    keyed(request(1), || space.put(&fields!["job", 1])).unwrap();
    space.put(&fields!["job", 2]).unwrap();
    assert_eq!((known(&space, 1), known(&space, 2)), (Some(2), None));
    assert_eq!(space.answer_to(request(1).key, 4), Ok(None), "of another principal");
    let jobs = [template!["job", Kind::Int]];
    assert_eq!(keyed(request(3), || space.put_if_absent(&fields!["job", 1], &jobs)), Ok(false));
    space.put(&fields!["job", 3]).unwrap();
    assert_eq!(known(&space, 3), None, "it had no effect, and what comes after is not its");
    keyed(request(4), || space.put_all(&[&fields!["a"], &fields!["b"]])).unwrap();
    let long = "long".repeat(100_000);
    keyed(request(5), || space.put(&fields!["long", long.as_str()])).unwrap();
    let swap = || space.try_swap(&jobs, &fields!["done"], |_| Ok::<_, Error>(()));
    assert_eq!(keyed(request(6), swap), Ok(Some(())));
    assert_eq!([4, 5, 6].map(|number| known(&space, number)), [Some(5), Some(6), Some(7)]);
    assert_eq!(space.count(&jobs), Ok(2));
}

#[test]
fn a_handle_that_keeps_no_keys_notes_none() {
    let shared = shared();
    let kept = serve(&shared);
    let space = &shared.space;
    assert_eq!((space.keeper(), kept.keeper().is_some()), (None, true));
    assert_eq!(kept.keeper(), serve(&shared).keeper());
    keyed(request(1), || space.put(&fields!["job", 1])).unwrap();
    assert_eq!(known(space, 1), None);
}

#[test]
fn the_newest_answers_of_the_last_four_servers_are_kept() {
    let shared = shared();
    let put = |space: &Space, number| {
        keyed(request(number), || space.put(&fields!["job", 1])).unwrap();
        space.take(&[template!["job", 1]], Order::Fifo, None, |_| Ok::<_, Error>(())).unwrap();
    };
    let first = serve(&shared);
    (0..5000).for_each(|number| put(&first, number));
    let oldest = 5000 - KEPT;
    let kept = |space: &Space| [oldest - 1, oldest, 4999].map(|number| known(space, number));
    for number in 5000..5003 {
        let next = serve(&shared);
        put(&next, number);
        assert_eq!(kept(&next), [None, Some(oldest + 1), Some(5000)]);
    }
    let fifth = serve(&shared);
    put(&fifth, 5003);
    assert_eq!(kept(&fifth), [None, None, Some(5000)], "one took the place of the oldest");
    for number in 5000..5004 {
        assert_eq!(known(&first, number), Some(number + 1));
    }
}
