//! Many threads on one space. Every tuple that was put is taken by exactly one of them or is still in the space. Every
//! blocked call is served, and of the racers one wins (O2, O7, O8, T1, T5, T6).

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::common::{ENGINES, Temporary, keep, rounds};
use fastrand::Rng as Chance;
use tupelo::{Error, Kind, Order, Space, Value, Want, fields, template};
use tupelo_model::Limits;

const THREADS: i64 = 4;
const TUPLES_PER_THREAD: i64 = 1_500;
/// Few keys, so that takers meet.
const KEYS: i64 = 7;

/// Far beyond what any of these waits needs: who waits so long was forgotten.
const FORGOTTEN: Option<Duration> = Some(Duration::from_secs(60));

/// Runs `act` in as many threads as there are, at once, each with its number and its own connection.
fn in_threads<R: Send>(target: &Temporary, act: impl Fn(i64, Space) -> R + Sync) -> Vec<R> {
    let together = Barrier::new(usize::try_from(THREADS).unwrap());
    let run = |number| {
        let space = target.connect_again();
        together.wait();
        act(number, space)
    };
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || run(number))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

/// The number that makes a tuple the only one of its kind.
fn identity(tuple: &tupelo::Tuple) -> i64 {
    match tuple[2] {
        Value::Int(identity) => identity,
        ref other => panic!("{other:?} is no identity"),
    }
}

fn assert_each_once(mut identities: Vec<i64>) {
    identities.sort_unstable();
    let all: Vec<i64> = (0..THREADS * TUPLES_PER_THREAD).collect();
    assert_eq!(identities.len(), all.len(), "lost or doubled");
    assert!(identities == all, "some tuple was lost and another doubled");
}

/// One attempt to take a tuple, in one of the ways there are to take or to give up.
fn attempt(space: &Space, chance: &mut Chance) -> Result<Option<i64>, Error> {
    let key = chance.i64(0..KEYS);
    let by_key = [template!["job", key, _]];
    let any = [template!["job", Kind::Int, Kind::Int]];
    let wide = [template!["job", ..]];
    let template = match chance.u64(..4) {
        0 => &wide,
        1 => &any,
        _ => &by_key,
    };
    let order = match chance.u64(..3) {
        0 => Order::Lifo,
        1 => Order::Random,
        _ => Order::Fifo,
    };
    match chance.u64(..3) {
        0 => Ok(space.try_take(template, order, keep)?.map(|tuple| identity(&tuple))),
        1 => {
            // Gives up at once or a moment later: a tuple that came meanwhile must go back (T5).
            let gives_up = space.waiter(template, Want::Take)?;
            for _ in 0..chance.u64(..50) {
                std::hint::spin_loop();
            }
            drop(gives_up);
            Ok(None)
        }
        _ => {
            let waiter = space.waiter(template, Want::Take)?;
            let served = waiter.wait(Some(Duration::from_micros(chance.u64(..30))))?;
            Ok(if served { Some(identity(&waiter.finish(keep)?)) } else { None })
        }
    }
}

/// Now and then, moves some tuples to the other space, or all of them back (O7).
fn exchange(space: &Space, other: &Space, chance: &mut Chance) -> Result<(), Error> {
    match chance.u64(..40) {
        0 => space.move_to(other, &[template!["job", chance.i64(0..KEYS), _]]).map(drop),
        1 => other.move_to(space, &[template![..]]).map(drop),
        _ => Ok(()),
    }
}

#[test]
fn every_tuple_is_taken_once_or_still_there_t1_t5() {
    rounds(|seed| {
        for engine in ENGINES {
            let target = Temporary::new(engine, Limits::default());
            let other = Temporary::new(engine, Limits::default());
            let taken = in_threads(&target, |number, space| {
                let mut chance = Chance::with_seed(seed ^ number.cast_unsigned());
                let mut taken = Vec::new();
                for index in 0..TUPLES_PER_THREAD {
                    let identity = number * TUPLES_PER_THREAD + index;
                    space.put(&fields!["job", chance.i64(0..KEYS), identity]).unwrap();
                    taken.extend(attempt(&space, &mut chance).unwrap());
                    exchange(&space, &other.space, &mut chance).unwrap();
                }
                taken
            });
            let mut identities: Vec<i64> = taken.into_iter().flatten().collect();
            for rest in [&target.space, &other.space] {
                let rest = rest.take_all(&[template![..]], None, keep).unwrap();
                identities.extend(rest.iter().map(identity));
            }
            assert_each_once(identities);
        }
    });
}

#[test]
fn everybody_who_waits_is_served_also_while_nothing_else_happens_t6() {
    rounds(|seed| {
        for engine in ENGINES {
            let target = Temporary::new(engine, Limits::default());
            let taken = in_threads(&target, |number, space| {
                if number % 2 == 0 {
                    let mut chance = Chance::with_seed(seed ^ number.cast_unsigned());
                    for index in 0..2 * TUPLES_PER_THREAD {
                        let identity = number * TUPLES_PER_THREAD + index;
                        space.put(&fields!["job", chance.i64(0..KEYS), identity]).unwrap();
                    }
                    return Vec::new();
                }
                let job = [template!["job", Kind::Int, Kind::Int]];
                let take = |_| space.take(&job, Order::Fifo, FORGOTTEN, keep).unwrap();
                (0..2 * TUPLES_PER_THREAD).map(take).map(|tuple| identity(&tuple)).collect()
            });
            assert_eq!(target.space.count(&[template![..]]).unwrap(), 0);
            assert_each_once(taken.into_iter().flatten().collect());
        }
    });
}

#[test]
fn two_threads_that_wait_for_each_other_take_turns_t6() {
    for engine in ENGINES {
        let target = Temporary::new(engine, Limits::default());
        let turns = in_threads(&target, |number, space| {
            // Two pairs of players, each with its own ball.
            let (pair, side) = (number / 2, number % 2);
            for turn in 0..500 {
                if turn > 0 || side == 1 {
                    let ball = [template!["ball", pair, side]];
                    space.take(&ball, Order::Fifo, FORGOTTEN, keep).unwrap();
                }
                space.put(&fields!["ball", pair, 1 - side]).unwrap();
            }
            500
        });
        assert_eq!(turns, [500; 4]);
        // The last put of the second player of each pair has no taker.
        assert_eq!(target.space.count(&[template![..]]).unwrap(), 2);
    }
}

#[test]
fn of_several_racers_one_puts_and_no_swap_is_lost_o8() {
    for engine in ENGINES {
        let target = Temporary::new(engine, Limits::default());
        target.space.put(&fields!["counter", 0]).unwrap();
        let wins = in_threads(&target, |number, space| {
            let mut wins = 0;
            for race in 0..300_i64 {
                let unless = [template!["leader", race, _]];
                wins += i64::from(
                    space.put_if_absent(&fields!["leader", race, number], &unless).unwrap(),
                );
                increment(&space);
            }
            wins
        });
        assert_eq!(wins.iter().sum::<i64>(), 300);
        assert_eq!(target.space.count(&[template!["leader", Kind::Int, _]]).unwrap(), 300);
        let counter = target.space.read_all(&[template!["counter", _]], None, keep).unwrap();
        assert_eq!(counter, [tupelo::tuple!["counter", 300 * THREADS]]);
    }
}

/// Adds one to the counter: reads it, and swaps it if it is still what was read.
fn increment(space: &Space) {
    loop {
        let seen = space.try_read(&[template!["counter", Kind::Int]], Order::Fifo, keep).unwrap();
        let seen = seen.expect("a swap leaves no moment without a counter");
        let Value::Int(count) = seen[1] else { panic!("{seen:?} is no counter") };
        let swapped =
            space.try_swap(&[template!["counter", count]], &fields!["counter", count + 1], keep);
        if swapped.unwrap().is_some() {
            return;
        }
    }
}

#[test]
fn transfers_in_opposite_directions_do_not_wait_for_each_other_o7() {
    for engine in ENGINES {
        let (here, there) =
            (Temporary::new(engine, Limits::default()), Temporary::new(engine, Limits::default()));
        let long = "x".repeat(1_000);
        // More than an extent of each, so that both directions need the arenas of both spaces.
        for number in 0..100_i64 {
            here.space.put(&fields![number, &*long]).unwrap();
            there.space.put(&fields![&*long, number]).unwrap();
        }
        let run = |template: [tupelo::TemplateRef<'_>; 1], first: &Space, second: &Space| {
            for _ in 0..40 {
                assert_eq!(first.move_to(second, &template).unwrap(), 100);
                assert_eq!(second.move_to(first, &template).unwrap(), 100);
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| run([template![Kind::Int, Kind::Str]], &here.space, &there.space));
            scope.spawn(|| run([template![Kind::Str, Kind::Int]], &there.space, &here.space));
        });
    }
}
