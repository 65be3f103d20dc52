//! A completely full space can be emptied by everything that takes, in one step (B1, O6, O7).

use std::thread;
use std::time::Duration;

use crate::common::{ENGINES, Temporary, keep};
use tupelo::{ClaimTerms, ConnectOptions, Error, EventKind, Field, Kind, Order, Space};
use tupelo::{SubscribeTerms, fields, template};
use tupelo_model::Limits;

/// The smallest arena.
const SIZE_BYTES: u64 = 2 << 20;

/// A space that has no room for one tuple more, with so many tuples `(number, number % 5)`, and indexes over both.
fn full(engine: &str) -> (Temporary, u64) {
    let options = ConnectOptions { size_bytes: SIZE_BYTES, ..ConnectOptions::default() };
    let temporary = Temporary::with(engine, &options);
    let space = &temporary.space;
    (0..100).for_each(|number: i64| space.put(&fields![number, number % 5]).unwrap());
    for number in 0..100_i64 {
        for by in [template![number, Kind::Int], template![Kind::Int, -1]] {
            space.try_read(&[by], Order::Fifo, keep).unwrap();
        }
    }
    let count = fill(space, 100);
    (temporary, count)
}

/// Puts tuples, from this number on, until there is no room for one more. Returns how many there are then.
fn fill(space: &Space, first: i64) -> u64 {
    let mut number = first;
    let refused = loop {
        match space.put(&fields![number, number % 5]) {
            Ok(()) => number += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::SpaceFull { .. }), "{refused}");
    number.cast_unsigned()
}

/// It is empty, and as good as new.
fn assert_reusable(space: &Space, count: u64) {
    assert_eq!(space.count(&[template![_, _]]).unwrap(), 0);
    for number in 0..count.cast_signed() {
        space.put(&fields![number, number % 5]).unwrap();
    }
    let stat = space.stat().unwrap();
    assert!(stat.bytes_used <= SIZE_BYTES, "{} bytes in use", stat.bytes_used);
}

#[test]
fn the_message_of_a_full_space_has_the_figures_of_what_is_there_b1() {
    for engine in ENGINES {
        let options = ConnectOptions { tuples_max: Some(10), ..ConnectOptions::default() };
        let temporary = Temporary::with(engine, &options);
        let space = &temporary.space;
        (0..7).for_each(|number: i64| space.put(&fields![number]).unwrap());
        let five = [0; 5].map(|number: i64| fields![number]);
        let refused = space.put_all(&five.each_ref()).unwrap_err();
        let told = "has no room for so many more: 7 tuples, and it was created for 10";
        assert!(refused.to_string().contains(told), "{refused}");
        assert_eq!(space.count(&[template![Kind::Int]]).unwrap(), 7);
    }
}

#[test]
fn what_is_moved_copied_or_committed_is_refused_with_the_figures_of_what_is_there_b1() {
    let told = "has no room for so many more: 7 tuples, and it was created for 10";
    for engine in ENGINES {
        let options = ConnectOptions { tuples_max: Some(10), ..ConnectOptions::default() };
        let (from, into) =
            (Temporary::new(engine, Limits::default()), Temporary::with(engine, &options));
        (0..5).for_each(|number: i64| from.space.put(&fields![number]).unwrap());
        (0..7).for_each(|number: i64| into.space.put(&fields![number]).unwrap());
        let transaction = from.space.transaction(&[&into.space], TERMS.ttl).unwrap();
        transaction.at(0).put(&fields![7]).unwrap();
        (0..5).for_each(|number: i64| transaction.at(1).put(&fields![number]).unwrap());
        let int = [template![Kind::Int]];
        let all = [
            from.space.move_to(&into.space, &int).map(|_| ()),
            from.space.copy_to(&into.space, &int).map(|_| ()),
            into.space.copy_to(&into.space, &int).map(|_| ()),
            transaction.commit(),
        ];
        for refused in all {
            let refused = refused.unwrap_err();
            assert!(refused.to_string().contains(told), "{refused}");
        }
        transaction.abort().unwrap();
        let counts = [from, into].map(|one| one.space.count(&int).unwrap());
        assert_eq!(counts, [5, 7]);
    }
}

#[test]
fn what_another_space_can_never_hold_is_not_moved_there_and_does_not_wait_b1_o7() {
    for engine in ENGINES {
        let options = ConnectOptions { tuples_max: Some(1), ..ConnectOptions::default() };
        let (from, into) =
            (Temporary::new(engine, Limits::default()), Temporary::with(engine, &options));
        (0..2).for_each(|number: i64| from.space.put(&fields![number]).unwrap());
        let refused = from.space.move_to(&into.space, &[template![Kind::Int]]).unwrap_err();
        assert!(matches!(refused, Error::SpaceFull { may_pass: false, .. }), "{refused:?}");
        let counts = [from, into].map(|one| one.space.count(&[template![..]]).unwrap());
        assert_eq!(counts, [2, 0]);
    }
}

#[test]
fn everything_is_taken_from_a_full_space_in_one_step_o6() {
    for engine in ENGINES {
        let (temporary, count) = full(engine);
        let taken = temporary.space.take_all(&[template![_, _]], None, keep).unwrap();
        assert_eq!(taken.len() as u64, count);
        assert_reusable(&temporary.space, count);
    }
}

#[test]
fn a_part_is_taken_from_a_full_space_in_one_step_o6() {
    for engine in ENGINES {
        let (temporary, count) = full(engine);
        let space = &temporary.space;
        let all = [template![_, _]];
        let third = usize::try_from(count / 3).unwrap();
        assert_eq!(space.take_all(&all, Some(third), keep).unwrap().len(), third);
        let taken = space.try_take_many(&all, third, third, keep).unwrap();
        assert_eq!(taken.unwrap().len(), third);
        let rest = space.take_all(&[template![Kind::Int, Kind::Int]], None, keep).unwrap();
        assert_eq!((rest.len() + 2 * third) as u64, count);
        assert_reusable(space, count);
    }
}

#[test]
fn everything_is_moved_out_of_a_full_space_in_one_step_o7() {
    for engine in ENGINES {
        let (temporary, count) = full(engine);
        let other = Temporary::new(engine, Limits::default());
        let moved = temporary.space.move_to(&other.space, &[template![_, _]]).unwrap();
        assert_eq!(moved, count);
        assert_eq!(other.space.count(&[template![_, _]]).unwrap(), count);
        assert_reusable(&temporary.space, count);
    }
}

#[test]
fn what_long_logs_needed_is_no_room_for_tuples_b1() {
    for engine in ENGINES {
        let (temporary, count) = full(engine);
        let space = &temporary.space;
        for _ in 0..3 {
            let taken = space.take_all(&[template![_, _]], None, keep).unwrap();
            assert!(
                (taken.len() as u64).abs_diff(count) < count / 10,
                "{}, not {count}",
                taken.len()
            );
            fill(space, 0);
            assert!(space.stat().unwrap().bytes_used <= SIZE_BYTES);
        }
    }
}

const TERMS: ClaimTerms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };

#[test]
fn who_claims_waits_or_has_a_transaction_is_served_in_a_full_space_b1() {
    for engine in ENGINES {
        let (temporary, count) = full(engine);
        let space = &temporary.space;
        let all = [template![Kind::Int, Kind::Int]];
        let claim = || space.try_claim(&all, Order::Fifo, &TERMS, keep).unwrap().unwrap().0;
        claim().abort("later").unwrap();
        let two = [claim(), claim()];
        let short = Some(Duration::from_millis(1));
        let waited = space.take(&[template![-1_i64, Kind::Int]], Order::Fifo, short, keep);
        assert!(matches!(waited, Err(Error::Timeout { .. })), "{waited:?}");
        // What its owner chose the size of counts.
        let heard = space.subscribe(&all, &SubscribeTerms::new([EventKind::Put], 10_000));
        assert!(matches!(heard, Err(Error::SpaceFull { .. })), "{heard:?}");
        let transaction = space.transaction(&[], TERMS.ttl).unwrap();
        assert!(transaction.at(0).try_read(&all, Order::Fifo, keep).unwrap().is_some());
        assert!(transaction.at(0).try_take(&all, Order::Fifo, keep).unwrap().is_some());
        transaction.commit().unwrap();
        for claim in two {
            claim.done().unwrap();
        }
        assert_eq!(space.count(&[template![_, _]]).unwrap(), count - 3);
    }
}

#[test]
fn a_claim_ends_in_a_full_space_also_where_somebody_waits_to_read_the_tuple_k2() {
    for engine in ENGINES {
        let (temporary, _) = full(engine);
        let space = &temporary.space;
        let (claim, _) = space
            .try_claim(&[template![7_i64, Kind::Int]], Order::Fifo, &TERMS, keep)
            .unwrap()
            .unwrap();
        thread::scope(|scope| {
            let reader = temporary.connect_again();
            let waiting = scope.spawn(move || {
                reader.read(&[template![7_i64, Kind::Int]], Order::Fifo, None, keep)
            });
            while space.stat().unwrap().waiters == 0 {
                thread::yield_now();
            }
            claim.abort("later").unwrap();
            waiting.join().unwrap().unwrap();
        });
        assert!(
            space.try_take(&[template![7_i64, Kind::Int]], Order::Fifo, keep).unwrap().is_some()
        );
    }
}

#[test]
fn what_claims_need_is_no_room_for_tuples_b1() {
    for engine in ENGINES {
        let options = ConnectOptions { size_bytes: SIZE_BYTES, ..ConnectOptions::default() };
        let temporary = Temporary::with(engine, &options);
        let space = &temporary.space;
        // As large as what a claim needs.
        let text = "x".repeat(80);
        let put = |number: i64| space.put(&fields![number, text.as_str()]);
        while put(0).is_ok() {}
        let count = space.count(&[template![_, _]]).unwrap();
        for _ in 0..100 {
            let all = [template![Kind::Int, Kind::Str]];
            let (held, _) = space.try_claim(&all, Order::Fifo, &TERMS, keep).unwrap().unwrap();
            assert!(matches!(put(1), Err(Error::SpaceFull { .. })));
            held.done().unwrap();
            put(1).unwrap();
        }
        assert_eq!(space.count(&[template![_, _]]).unwrap(), count);
    }
}

#[test]
fn what_never_fits_beside_the_claimed_tuple_does_not_wait_for_room_b1_k4() {
    for engine in ENGINES {
        let options = ConnectOptions { size_bytes: SIZE_BYTES, ..ConnectOptions::default() };
        let temporary = Temporary::with(engine, &options);
        let space = &temporary.space;
        let bytes = vec![0_u8; 1_200_000];
        space.put(&[Field::Str("job"), Field::Bytes(&bytes)]).unwrap();
        let any = [template!["job", Kind::Bytes]];
        let (claim, _) = space.try_claim(&any, Order::Fifo, &TERMS, keep).unwrap().unwrap();
        claim.put(&[Field::Str("answer"), Field::Bytes(&bytes)]).unwrap();
        let refused = claim.done().unwrap_err();
        assert!(matches!(refused, Error::SpaceFull { may_pass: false, .. }), "{refused:?}");
        assert_eq!(claim.discard_puts(), 1);
        claim.put(&fields!["answer", "too large"]).unwrap();
        claim.done().unwrap();
        assert_eq!(space.count(&[template![..]]).unwrap(), 1);
    }
}
