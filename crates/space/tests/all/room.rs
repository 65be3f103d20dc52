//! Waiting for room in a full space: first come first served, and nobody is woken in vain (B1, T4).

use std::thread;
use std::time::Duration;

use crate::common::{ENGINES, Temporary, keep};
use tupelo::{
    ClaimTerms, ConnectOptions, Error, Field, Kind, LeaseTerms, Order, Space, WhenFull, fields,
    template,
};

const NOW: Option<Duration> = Some(Duration::ZERO);
/// Far beyond what any of these waits needs: who waits so long was forgotten.
const FORGOTTEN: Option<Duration> = Some(Duration::from_secs(60));

/// A space of `(n)` from 0 on, as many as fit.
fn full(engine: &str, tuples_max: i64, when_full: WhenFull) -> Temporary {
    let options = ConnectOptions {
        tuples_max: Some(tuples_max.cast_unsigned()),
        when_full,
        ..ConnectOptions::default()
    };
    let temporary = Temporary::with(engine, &options);
    (0..tuples_max).for_each(|number| temporary.space.put(&fields![number]).unwrap());
    temporary
}

fn take(space: &Space) -> i64 {
    let taken = space.try_take(&[template![Kind::Int]], Order::Fifo, keep).unwrap().unwrap();
    taken.to_string().trim_matches(['(', ',', ')']).parse().unwrap()
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// Waits until so many are in the wait queue for room.
fn in_line(space: &Space, count: u64) {
    until(|| space.stat().unwrap().waiting_for_room == count);
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::SpaceFull { .. })
}

#[test]
fn puts_that_wait_are_served_in_the_order_in_which_they_came_b1() {
    for engine in ENGINES {
        let target = full(engine, 1, WhenFull::Wait);
        let space = &target.space;
        thread::scope(|scope| {
            for number in 1..6_u64 {
                let put = target.connect_again();
                scope.spawn(move || put.put(&fields![number.cast_signed()]).unwrap());
                in_line(space, number);
            }
            for number in 0..6 {
                until(|| space.count(&[template![Kind::Int]]).unwrap() == 1);
                assert_eq!(take(space), number);
            }
        });
        assert_eq!(space.stat().unwrap().waiters, 0);
    }
}

#[test]
fn a_removal_tells_the_first_in_line_alone_and_others_leave_it_the_room_t4() {
    for engine in ENGINES {
        let target = full(engine, 2, WhenFull::Error);
        let space = &target.space;
        let (first, second) = (space.room().unwrap(), space.room().unwrap());
        assert!(!first.wait(NOW).unwrap());
        take(space);
        assert!(!second.wait(NOW).unwrap());
        assert!(first.wait(FORGOTTEN).unwrap());
        take(space);
        assert!(!second.wait(NOW).unwrap(), "it is still the first one's turn");
        first.with_grant(|| space.put(&fields![7])).unwrap();
        drop(first);
        assert!(second.wait(FORGOTTEN).unwrap(), "who leaves the wait queue tells the next");
        second.with_grant(|| space.put(&fields![8])).unwrap();
        drop(second);
        assert_eq!((take(space), take(space)), (7, 8));
        assert_eq!(space.stat().unwrap().waiters, 0);
    }
}

/// Tries again if more time passed between two lines of a test than a turn lasts, which does not happen each time.
fn in_time(mut attempt: impl FnMut() -> bool) {
    assert!((0..20).any(|_| attempt()), "the turn was not kept in any attempt");
}

#[test]
fn a_put_that_did_not_wait_does_not_take_the_room_of_one_that_did_b1() {
    for engine in ENGINES {
        in_time(|| {
            let target = full(engine, 1, WhenFull::Error);
            let space = &target.space;
            let room = space.room().unwrap();
            take(space);
            let Err(refused) = space.put(&fields![7]) else { return false };
            assert!(refused.to_string().contains("for 1 who wait for it"), "{refused}");
            let terms = LeaseTerms { after: Some(Duration::from_secs(60)), lease: None };
            let Err(refused) = space.put_leased(&fields![7], &terms) else { return false };
            assert!(is_full(&refused));
            // A swap needs no room.
            space.try_swap(&[template![Kind::Int]], &fields![8], keep).unwrap();
            room.with_grant(|| space.put(&fields![9])).is_ok()
        });
    }
}

#[test]
fn nothing_is_dropped_for_room_that_is_anothers_b1() {
    for engine in ENGINES {
        in_time(|| {
            let target = full(engine, 2, WhenFull::DropOldest);
            let space = &target.space;
            let terms = ClaimTerms { ttl: Duration::from_secs(60), attempts_max: None };
            let oldest = [template![0]];
            let claimed = space.try_claim(&oldest, Order::Fifo, &terms, keep).unwrap();
            let room = space.room().unwrap();
            claimed.unwrap().0.done().unwrap();
            if space.put(&fields![7]).is_ok() {
                return false;
            }
            assert_eq!(
                space.count(&[template![1]]).unwrap(),
                1,
                "the only one that might have gone"
            );
            room.with_grant(|| space.put(&fields![9])).is_ok()
        });
    }
}

#[test]
fn a_turn_that_nobody_uses_runs_out_b1() {
    for engine in ENGINES {
        let target = full(engine, 1, WhenFull::Error);
        let space = &target.space;
        let stopped = space.room().unwrap();
        take(space);
        assert!(stopped.wait(FORGOTTEN).unwrap());
        // It does nothing, and the others go on.
        space.when_room(FORGOTTEN, |space| space.put(&fields![7])).unwrap();
        take(space);
        until(|| space.put(&fields![8]).is_ok());
    }
}

#[test]
fn who_waits_in_vain_leaves_nothing_behind_b1_t5() {
    for engine in ENGINES {
        let target = full(engine, 1, WhenFull::Error);
        let space = &target.space;
        for timeout in [Duration::ZERO, Duration::from_millis(3)] {
            let put = space.when_room(Some(timeout), |space| space.put(&fields![1]));
            assert!(is_full(&put.unwrap_err()));
        }
        assert_eq!(space.stat().unwrap().waiters, 0);
        assert_eq!(take(space), 0);
        space.put(&fields![1]).unwrap();
    }
}

#[test]
fn every_verb_that_puts_waits_in_a_space_that_is_made_so_b1() {
    for engine in ENGINES {
        let target = full(engine, 2, WhenFull::Wait);
        let space = &target.space;
        let terms = ClaimTerms { ttl: Duration::from_secs(60), attempts_max: None };
        let lease = LeaseTerms { lease: Some(Duration::from_secs(60)), after: None };
        let int = [template![Kind::Int]];
        let puts: [&(dyn Fn(&Space) + Sync); 5] = [
            &|space| space.put(&fields![10]).unwrap(),
            &|space| drop(space.put_leased(&fields![10], &lease).unwrap()),
            &|space| assert_eq!(space.put_all(&[&fields![10], &fields![11]]).unwrap(), 2),
            &|space| {
                assert_eq!(space.put_all_leased(&[&fields![10], &fields![11]], &lease).unwrap(), 2);
            },
            &|space| assert!(space.put_if_absent(&fields!["a"], &[template!["a"]]).unwrap()),
        ];
        for put in puts {
            thread::scope(|scope| {
                scope.spawn(|| put(space));
                in_line(space, 1);
                space.take_all(&int, None, keep).unwrap();
            });
            space.take_all(&[template![..]], None, keep).unwrap();
            (0..2).for_each(|number| space.put(&fields![number]).unwrap());
        }
        let (claim, _) = space.try_claim(&int, Order::Fifo, &terms, keep).unwrap().unwrap();
        claim.put(&fields![20]).unwrap();
        claim.put(&fields![21]).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| claim.done().unwrap());
            in_line(space, 1);
            assert_eq!(space.count(&int).unwrap(), 1);
            take(space);
        });
        assert_eq!((take(space), take(space)), (20, 21));
    }
}

#[test]
fn what_never_fits_is_refused_at_once_b1() {
    for engine in ENGINES {
        let target = full(engine, 2, WhenFull::Wait);
        let space = &target.space;
        let three = [&fields![1], &fields![2], &fields![3]];
        let refused = space.put_all(&three).unwrap_err();
        assert!(refused.to_string().starts_with("TUP-005: 3 tuples at once"), "{refused}");
        let options = ConnectOptions {
            size_bytes: 2 << 20,
            when_full: WhenFull::Wait,
            ..ConnectOptions::default()
        };
        let small = Temporary::with(engine, &options);
        let large = vec![7_u8; 4 << 20];
        assert!(is_full(&small.space.put(&fields![large.as_slice()]).unwrap_err()));
        let half = vec![7_u8; 1 << 20];
        let halves = [fields![half.as_slice()], fields![half.as_slice()], fields![half.as_slice()]];
        assert!(is_full(&small.space.put_all(&halves.each_ref()).unwrap_err()));
    }
}

#[test]
fn a_holder_whose_results_never_fit_can_be_done_with_something_smaller_k4_b1() {
    for engine in ENGINES {
        let target = full(engine, 1, WhenFull::Wait);
        let space = &target.space;
        let terms = ClaimTerms { ttl: Duration::from_secs(30), attempts_max: None };
        let number = [template![Kind::Int]];
        let (claim, _) = space.try_claim(&number, Order::Fifo, &terms, keep).unwrap().unwrap();
        (1..4).for_each(|result| claim.put(&fields![result]).unwrap());
        assert!(matches!(claim.done(), Err(Error::SpaceFull { may_pass: false, .. })));
        assert_eq!(claim.discard_puts(), 3);
        claim.put(&fields![7]).unwrap();
        claim.done().unwrap();
        assert_eq!(take(space), 7);
    }
}

#[test]
fn the_end_of_a_lease_makes_room_b1_l1() {
    for engine in ENGINES {
        let target = full(engine, 1, WhenFull::Wait);
        let space = &target.space;
        take(space);
        let terms = LeaseTerms { lease: Some(Duration::from_millis(5)), after: None };
        space.put_leased(&fields![1], &terms).unwrap();
        space.put(&fields![2]).unwrap();
        assert_eq!(take(space), 2);
    }
}

#[test]
fn who_waits_for_bytes_is_served_too_b1() {
    for engine in ENGINES {
        let options = ConnectOptions {
            size_bytes: 2 << 20,
            when_full: WhenFull::Wait,
            ..ConnectOptions::default()
        };
        let target = Temporary::with(engine, &options);
        let space = &target.space;
        let part = vec![7_u8; 100_000];
        let tuple = fields!["part", part.as_slice()];
        while space.at_once().put(&tuple).is_ok() {}
        let before = space.count(&[template!["part", Kind::Bytes]]).unwrap();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| space.put(&tuple).unwrap());
            }
            in_line(space, 3);
            for _ in 0..3 {
                let part = [template!["part", Kind::Bytes]];
                space.take(&part, Order::Fifo, FORGOTTEN, keep).unwrap();
            }
        });
        assert_eq!(space.count(&[template!["part", Kind::Bytes]]).unwrap(), before);
    }
}

#[test]
fn a_space_of_bytes_drops_its_oldest_b1() {
    for engine in ENGINES {
        let options = ConnectOptions {
            size_bytes: 2 << 20,
            when_full: WhenFull::DropOldest,
            ..ConnectOptions::default()
        };
        let target = Temporary::with(engine, &options);
        let space = &target.space;
        let part = vec![7_u8; 1_000];
        for number in 0..10_000_i64 {
            space.put(&fields![number, part.as_slice()]).unwrap();
        }
        let stat = space.stat().unwrap();
        assert_eq!(stat.dropped + stat.tuples, 10_000);
        assert!(stat.tuples > 500, "{} are left", stat.tuples);
        let newest = space.read_all(&[template![Kind::Int, Kind::Bytes]], Some(1), keep).unwrap();
        let oldest_left = 10_000 - stat.tuples.cast_signed();
        assert!(newest[0].to_string().starts_with(&format!("({oldest_left},")));
        // Large ones of another shape drive the small ones out.
        let large = vec![7_u8; 1 << 20];
        space.put(&fields!["large", large.as_slice()]).unwrap();
        assert_eq!(space.count(&[template!["large", Kind::Bytes]]).unwrap(), 1);
    }
}

#[test]
fn a_space_keeps_the_policy_that_it_was_created_with() {
    for engine in ENGINES {
        for when_full in WhenFull::ALL {
            let target = full(engine, 1, when_full);
            let again = target.connect_again();
            assert_eq!(again.when_full(), when_full);
            let stat = again.stat().unwrap();
            assert_eq!((stat.when_full, stat.tuples_max), (when_full, Some(1)));
        }
    }
}

#[test]
fn who_is_stopped_has_one_turn_however_much_is_removed_meanwhile_b1() {
    for engine in ENGINES {
        let target = full(engine, 1_000, WhenFull::Error);
        let space = &target.space;
        let stopped = space.room().unwrap();
        thread::scope(|scope| {
            // As long as there is something, its removal tells the one that does nothing.
            let puts = scope.spawn(|| until(|| space.put(&fields![-1]).is_ok()));
            while !puts.is_finished() {
                assert!(space.count(&[template![Kind::Int]]).unwrap() > 0, "all gone, none put");
                take(space);
                thread::sleep(Duration::from_millis(1));
            }
        });
        drop(stopped);
    }
}

/// It needs all the room that the space has, and somebody keeps a claim.
#[test]
fn one_for_whom_there_is_never_enough_does_not_shut_out_the_others_b1() {
    for engine in ENGINES {
        let target = full(engine, 5_000, WhenFull::Error);
        let space = &target.space;
        let terms = ClaimTerms { ttl: Duration::from_secs(3_600), attempts_max: None };
        let claimed = space.try_claim(&[template![4_999]], Order::Fifo, &terms, keep);
        let _kept = claimed.unwrap().unwrap();
        let larger = space.room().unwrap();
        let all: Vec<_> = (0..5_000).map(|number| fields![number]).collect();
        let all: Vec<&[Field<'_>]> = all.iter().map(|tuple| &tuple[..]).collect();
        thread::scope(|scope| {
            let puts = scope.spawn(|| until(|| space.put(&fields![-1]).is_ok()));
            while !puts.is_finished() {
                assert!(space.count(&[template![Kind::Int]]).unwrap() > 0, "all gone, none put");
                take(space);
                // Tells the one that has tried, which then tries again.
                assert!(is_full(&larger.with_grant(|| space.put_all(&all)).unwrap_err()));
                thread::sleep(Duration::from_millis(1));
            }
        });
    }
}

#[test]
fn room_that_is_too_little_for_the_first_in_line_is_kept_until_it_is_enough_b1() {
    for engine in ENGINES {
        in_time(|| {
            let target = full(engine, 2, WhenFull::Error);
            let space = &target.space;
            let larger = space.room().unwrap();
            let two = [&fields![7], &fields![8]];
            take(space);
            assert!(is_full(&larger.with_grant(|| space.put_all(&two)).unwrap_err()));
            if space.put(&fields![9]).is_ok() {
                return false;
            }
            take(space);
            larger.with_grant(|| space.put_all(&two)).unwrap();
            true
        });
    }
}

#[test]
fn the_rest_of_the_room_is_the_next_ones_and_not_a_passers_by_b1() {
    for engine in ENGINES {
        in_time(|| {
            let target = full(engine, 2, WhenFull::Error);
            let space = &target.space;
            let (first, second) = (space.room().unwrap(), space.room().unwrap());
            take(space);
            take(space);
            first.with_grant(|| space.put(&fields![7])).unwrap();
            if space.put(&fields![8]).is_ok() {
                return false;
            }
            drop(first);
            second.with_grant(|| space.put(&fields![9])).unwrap();
            true
        });
    }
}

#[test]
fn a_turn_ends_when_its_owner_has_left_the_line_and_when_its_time_is_over_b1() {
    for engine in ENGINES {
        let target = full(engine, 2, WhenFull::Error);
        let space = &target.space;
        let (first, second) = (space.room().unwrap(), space.room().unwrap());
        take(space);
        first.with_grant(|| space.put(&fields![7])).unwrap();
        drop(first);
        drop(second);
        take(space);
        // In the place that the first had.
        let third = space.room().unwrap();
        third.with_grant(|| space.put(&fields![8])).unwrap();
        drop(third);
        let larger = space.room().unwrap();
        take(space);
        let two = [&fields![9], &fields![10]];
        assert!(is_full(&larger.with_grant(|| space.put_all(&two)).unwrap_err()));
        until(|| space.put(&fields![11]).is_ok());
    }
}

#[test]
fn room_that_nobody_saw_taken_is_for_who_waited_too_b1() {
    for engine in ENGINES {
        in_time(|| {
            let target = full(engine, 1, WhenFull::Error);
            let space = &target.space;
            take(space);
            let terms = LeaseTerms { after: Some(Duration::from_secs(60)), lease: None };
            let delayed = space.put_leased(&fields![1], &terms).unwrap();
            let room = space.room().unwrap();
            delayed.cancel().unwrap();
            let Err(refused) = space.put(&fields![7]) else { return false };
            assert!(refused.to_string().contains("for 1 who wait for it"), "{refused}");
            room.with_grant(|| space.put(&fields![9])).is_ok()
        });
    }
}
