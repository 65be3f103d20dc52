//! Many steps of all kinds, drawn by chance, from several threads.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tupelo_crashtest::seed;
use tupelo_engine::{Claim, ClaimTerms, Engine, LeaseTerms, Order, Waiter, Want};
use tupelo_tuple::{Field, TemplateRef, TupleRef};

use crate::support::replay::Journalled;
use crate::support::transactions::begin;
use crate::support::{any_job, job, number, this_job};

const KEYS: i64 = 20;
const TERMS: ClaimTerms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: Some(3) };

/// What a worker has in its hands.
#[derive(Default)]
struct Hands {
    claims: Vec<Claim>,
    waiters: Vec<Waiter>,
}

/// Does something.
fn step(engine: &Arc<Engine>, random: &mut fastrand::Rng, hands: &mut Hands) {
    let key = random.i64(0..KEYS);
    let (any, this) = (any_job(), this_job(key));
    let template = [TemplateRef::new(if random.bool() { &any } else { &this })];
    match random.u32(0..16) {
        0..4 => engine.put(&job(key)).unwrap(),
        4 => {
            let ms = |random: &mut fastrand::Rng| {
                let ms = [0, 1, 3_600_000][random.usize(0..3)];
                (ms != 0).then(|| Duration::from_millis(ms))
            };
            let terms = LeaseTerms { lease: ms(random), after: ms(random) };
            let lease = engine.put_leased(&job(key), &terms).unwrap();
            // It may be over, or in somebody's hands.
            match random.u32(0..3) {
                0 => drop(engine.renew(&lease, ms(random))),
                1 => drop(engine.cancel(&lease)),
                _ => {}
            }
        }
        5 => {
            let fields = [job(key), job(key + 1), job(key + 2)];
            let tuples: Vec<&[Field<'_>]> = fields.iter().map(|one| &one[..]).collect();
            engine.put_all(&tuples).unwrap();
        }
        6..8 => drop(engine.try_take(&template, Order::Fifo, number).unwrap()),
        8 => drop(engine.take_all(&template, Some(random.usize(0..4)), number).unwrap()),
        9 => drop(engine.try_swap(&template, &job(key + 1), number).unwrap()),
        10 => {
            let claimed = engine.try_claim(&template, Order::Fifo, &TERMS, number).unwrap();
            hands.claims.extend(claimed.map(|(claim, _)| claim));
        }
        11 => {
            if let Some(claim) = hands.claims.pop() {
                let fields = job(key);
                match random.u32(0..4) {
                    0 => claim.done(&[]).unwrap(),
                    1 => claim.done(&[TupleRef::from(&fields)]).unwrap(),
                    2 => claim.abort("by chance").unwrap(),
                    _ => drop(claim),
                }
            }
        }
        12 => {
            let want = if random.bool() { Want::Take } else { Want::Read };
            hands.waiters.push(engine.waiter(&template, want).unwrap());
        }
        13 => {
            if let Some(waiter) = hands.waiters.pop()
                && random.bool()
                && waiter.wait(Some(Duration::ZERO)).unwrap()
            {
                drop(waiter.finish_now(number).unwrap());
            }
        }
        14 => {
            let mut transaction = begin(engine);
            transaction.try_take(0, &template, Order::Fifo, number).unwrap();
            transaction.put(0, &job(key)).unwrap();
            transaction.try_read(0, &template, Order::Fifo, number).unwrap();
            if random.bool() {
                transaction.commit().unwrap();
            } else {
                transaction.abort().unwrap();
            }
        }
        _ => drop(engine.requeue(&template).unwrap()),
    }
}

#[test]
fn the_journal_of_any_steps_adds_up_to_what_is_there_c4() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let space = Journalled::new(16 << 20);
    let mut hands = Hands::default();
    for _ in 0..30 {
        for _ in 0..100 {
            step(&space.engine, &mut random, &mut hands);
        }
        space.verify();
    }
    drop(hands);
    space.verify();
}

#[test]
fn the_journal_of_steps_of_several_threads_adds_up_to_what_is_there_c4() {
    let seed = seed();
    let space = Journalled::new(16 << 20);
    let other = Journalled::new(16 << 20);
    thread::scope(|scope| {
        for worker in 0..3 {
            let (space, other) = (&space, &other);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed.wrapping_add(worker));
                let mut hands = Hands::default();
                for round in 0..1000 {
                    step(&space.engine, &mut random, &mut hands);
                    if round % 50 == 0 {
                        let this = this_job(random.i64(0..KEYS));
                        let template = [TemplateRef::new(&this)];
                        space.engine.move_to(&other.engine, &template).unwrap();
                        other.engine.move_to(&space.engine, &template).unwrap();
                    }
                }
            });
        }
    });
    space.verify();
    other.verify();
}
