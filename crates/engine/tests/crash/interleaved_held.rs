//! An operation of several calls, or one that looks at tuples outside of every lock, happens before or after another
//! one, wherever the two meet. The operations: claims, leases, transactions and subscriptions that go on or end, and
//! takes with a condition (rules K2, K4, K5, L2, M9, N1, N3, O1, X1 to X5).
//!
//! As `interleaved.rs`, except that each operation may go on with what its process has begun before.

use std::mem::forget;
use std::sync::Arc;
use std::time::Duration;

use crate::shared::both::{Both, NOTHING, Operation, POINTS, Work, filled, value, waiting};
use crate::shared::{INT, contents, int, put};
use tupelo_crashtest::{phase, thorough};
use tupelo_engine::{
    Claim, ClaimTerms, Engine, Error, EventKind, Lease, LeaseTerms, Order, SubscribeTerms,
    Subscription, Transaction, Want,
};
use tupelo_tuple::{Condition, Field, KindSet, PatternRef, TemplateRef, TupleRef};

/// No test takes so long.
const HOUR: Duration = Duration::from_secs(3600);
/// Of the pairs, an ordinary run has one of so many: others in each phase. Odd and a prime, so that both ways round and
/// all others come.
const PAIRS_STRIDE: usize = 43;
/// What an operation gives that is refused.
const REFUSED: i64 = -2;

/// An operation, and what its process does before.
type Prepared = (&'static str, fn(&Arc<Engine>) -> Work);

// --- operations with a condition (M9) ----------------------------------------------------------------

/// All but one: there is a match at any time, and what is older than it may come back.
const NOT_ELEVEN: &str = "f[1] != 11";
/// Only what others put meanwhile.
const LATE: &str = "f[0] == 1 && f[1] >= 40";

const WHERE: &[Prepared] = &[
    ("take where", |engine| judged(engine, NOT_ELEVEN, |engine, it| take(engine, it, Order::Fifo))),
    ("take of the youngest where", |engine| {
        judged(engine, NOT_ELEVEN, |engine, it| take(engine, it, Order::Lifo))
    }),
    ("take of the late where", |engine| {
        judged(engine, LATE, |engine, it| take(engine, it, Order::Fifo))
    }),
    ("read where", |engine| {
        judged(engine, NOT_ELEVEN, |engine, it| {
            engine.try_read(it, Order::Fifo, value).unwrap().unwrap_or(NOTHING)
        })
    }),
    ("read_all where", |engine| {
        judged(engine, NOT_ELEVEN, |engine, it| all(&engine.read_all(it, None, value).unwrap()))
    }),
    ("take_all where", |engine| {
        judged(engine, NOT_ELEVEN, |engine, it| all(&engine.take_all(it, None, value).unwrap()))
    }),
    ("put_if_absent where", |engine| {
        judged(engine, LATE, |engine, it| {
            let tuple = [Field::Int(1), Field::Int(97)];
            i64::from(engine.put_if_absent(&tuple, it).unwrap())
        })
    }),
    ("swap where", |engine| {
        judged(engine, NOT_ELEVEN, |engine, it| {
            let tuple = [Field::Int(1), Field::Int(98)];
            engine.try_swap(it, &tuple, value).unwrap().unwrap_or(NOTHING)
        })
    }),
    ("claim where", |engine| {
        judged(engine, NOT_ELEVEN, |engine, it| {
            let claimed = engine.try_claim(it, Order::Fifo, &terms(None), value).unwrap();
            claimed.map_or(NOTHING, |(claim, value)| {
                forget(claim);
                value
            })
        })
    }),
    ("wait for a take where", |engine| {
        judged(engine, LATE, |engine, it| waiting(engine, it, Want::Take))
    }),
];

/// Who else may have what those look at, put more of it, or bring back what is older.
const BESIDE_WHERE: &[&str] = &[
    "take where",
    "put",
    "take by key",
    "take of the largest",
    "abort",
    "swap of one with a lease",
    "put with a lease",
    "cancel",
    "commit",
    "roll back",
    "end of a transaction that has read",
];

// --- claims that go on, or end (K2 to K5) ------------------------------------------------------------

const CLAIMS: &[Prepared] = &[
    ("extend", |engine| {
        claimed(engine, None, |claim| {
            let extended = settled(claim.extend(2 * HOUR));
            forget(claim);
            extended
        })
    }),
    ("abort", |engine| claimed(engine, None, |claim| settled(claim.abort("not now")))),
    ("abort of the last attempt", |engine| {
        claimed(engine, Some(1), |claim| settled(claim.abort("not now")))
    }),
    ("done", |engine| {
        let puts: [&[Field<'_>]; 2] =
            [&[Field::Int(1), Field::Int(72)], &[Field::Str("a"), Field::Int(73)]];
        claimed(engine, None, move |claim| settled(claim.done(&puts.map(TupleRef::from))))
    }),
];

const BESIDE_CLAIMS: &[&str] = &[
    "put",
    "take by key",
    "take of the largest",
    "take_all",
    "read_all",
    "claim",
    "wait for any take",
    "present",
    "requeue",
    "abort",
    "abort of the last attempt",
    "commit",
    "hear",
];

// --- leases (L1, L2) ---------------------------------------------------------------------------------

const LEASES: &[Prepared] = &[
    ("put with a lease", |engine| {
        at_once(engine, |engine| {
            put_leased(engine, 41, LeaseTerms { lease: Some(HOUR), after: None });
            0
        })
    }),
    ("put for later", |engine| {
        at_once(engine, |engine| {
            put_leased(engine, 42, LeaseTerms { lease: None, after: Some(HOUR) });
            0
        })
    }),
    ("renew", |engine| leased(engine, |engine, lease| renewed(engine.renew(lease, Some(HOUR))))),
    ("renew for ever", |engine| leased(engine, |engine, lease| renewed(engine.renew(lease, None)))),
    ("prolong", |engine| leased(engine, |engine, lease| renewed(engine.prolong(lease, 2 * HOUR)))),
    ("ask for the end", |engine| {
        leased(engine, |engine, lease| renewed(engine.expires_in(lease).map(|_| ())))
    }),
    ("cancel", |engine| leased(engine, |engine, lease| renewed(engine.cancel(lease)))),
    ("cancel what is not there yet", |engine| {
        let lease = put_leased(engine, 43, LeaseTerms { lease: Some(HOUR), after: Some(HOUR) });
        let engine = Arc::clone(engine);
        Box::new(move || renewed(engine.cancel(&lease)))
    }),
];

const BESIDE_LEASES: &[&str] = &[
    "put",
    "take of the largest",
    "take_all",
    "read_all",
    "claim of the largest",
    "take of the largest in a transaction",
    "swap of one with a lease",
    "put with a lease",
    "cancel",
    "commit",
    "wait for any take",
    "hear",
];

// --- transactions (X1 to X5) -------------------------------------------------------------------------

const TRANSACTIONS: &[Prepared] = &[
    ("commit", |engine| transaction(engine, |mut transaction| done(transaction.commit()))),
    // Of one tuple: several are let go of one by one, the oldest first, so that is several moments (X5).
    ("roll back", |engine| {
        let mut transaction = that_has_taken(engine);
        Box::new(move || done(transaction.abort()))
    }),
    ("end of a transaction that has read", |engine| {
        let mut transaction = begin(engine);
        let first = [int(1), INT];
        transaction.try_read(0, &[TemplateRef::new(&first)], Order::Fifo, value).unwrap();
        Box::new(move || done(transaction.commit()))
    }),
    ("take of the largest in a transaction", |engine| {
        let mut transaction = begin(engine);
        Box::new(move || {
            let patterns = [int(1), INT];
            let template = [TemplateRef::new(&patterns)];
            let taken = transaction.try_take(0, &template, Order::Max(1), value).unwrap();
            forget(transaction);
            taken.unwrap_or(NOTHING)
        })
    }),
    ("read in a transaction", |engine| {
        let mut transaction = begin(engine);
        Box::new(move || {
            let patterns = [int(1), INT];
            let template = [TemplateRef::new(&patterns)];
            let read = transaction.try_read(0, &template, Order::Fifo, value).unwrap();
            forget(transaction);
            read.unwrap_or(NOTHING)
        })
    }),
];

const BESIDE_TRANSACTIONS: &[&str] = &[
    "put",
    "take by key",
    "take_all",
    "read_all",
    "present",
    "claim",
    "swap of one with a lease",
    "wait for any take",
    "abort",
    "cancel",
    "commit",
    "roll back",
    "end of a transaction that has read",
    "read in a transaction",
    "hear",
];

// --- subscriptions (N1, N3) --------------------------------------------------------------------------

const SUBSCRIPTIONS: &[Prepared] = &[
    ("subscribe", |engine| {
        at_once(engine, |engine| {
            forget(subscribe(engine, &[int(1), INT]));
            0
        })
    }),
    ("subscribe to several shapes", |engine| {
        at_once(engine, |engine| {
            let any = PatternRef::Kinds(KindSet::ALL);
            forget(subscribe(engine, &[any, INT]));
            0
        })
    }),
    ("unsubscribe", |engine| {
        let subscription = subscribe(engine, &[int(1), INT]);
        Box::new(move || {
            subscription.end().unwrap();
            0
        })
    }),
    ("hear", |engine| {
        let subscription = subscribe(engine, &[int(1), INT]);
        Box::new(move || {
            let event = subscription.try_next(|event| value(event.tuple)).unwrap();
            forget(subscription);
            event.unwrap_or(NOTHING)
        })
    }),
];

const BESIDE_SUBSCRIPTIONS: &[&str] = &[
    "put",
    "put of another shape",
    "take by key",
    "take_all",
    "abort",
    "done",
    "cancel",
    "commit",
    "roll back",
    "subscribe",
    "unsubscribe",
    "hear",
];

// --- others ------------------------------------------------------------------------------------------

const OTHERS: &[Prepared] = &[
    ("put", |engine| {
        at_once(engine, |engine| {
            put(engine, 1, 90);
            0
        })
    }),
    ("put of another shape", |engine| {
        at_once(engine, |engine| {
            engine.put(&[Field::Str("a"), Field::Int(91)]).unwrap();
            0
        })
    }),
    ("take by key", |engine| {
        at_once(engine, |engine| take(engine, &[TemplateRef::new(&[int(1), INT])], Order::Fifo))
    }),
    ("take of the largest", |engine| {
        at_once(engine, |engine| take(engine, &[TemplateRef::new(&[int(1), INT])], Order::Max(1)))
    }),
    ("take_all", |engine| {
        at_once(engine, |engine| {
            let patterns = [int(1), INT];
            all(&engine.take_all(&[TemplateRef::new(&patterns)], None, value).unwrap())
        })
    }),
    ("read_all", |engine| {
        at_once(engine, |engine| {
            let everything = [TemplateRef::beginning(&[])];
            all(&engine.read_all(&everything, None, value).unwrap())
        })
    }),
    // Of what is claimed, or taken in a transaction, or of what comes of it: one of them is there at any moment (K4, O9, X1).
    ("present", |engine| {
        at_once(engine, |engine| {
            let alternatives = [10, 70, 72].map(|value| [int(1), int(value)]);
            let template = alternatives.each_ref().map(|one| TemplateRef::new(one));
            i64::from(engine.present(&template).unwrap())
        })
    }),
    ("requeue", |engine| {
        at_once(engine, |engine| {
            let patterns = [int(1), INT];
            i64::try_from(engine.requeue(&[TemplateRef::new(&patterns)]).unwrap()).unwrap()
        })
    }),
    ("claim", |engine| at_once(engine, |engine| claim(engine, Order::Fifo))),
    ("claim of the largest", |engine| at_once(engine, |engine| claim(engine, Order::Max(1)))),
    ("swap of one with a lease", |engine| {
        leased(engine, |engine, _| {
            let patterns = [int(1), int(40)];
            let tuple = [Field::Int(1), Field::Int(99)];
            let template = [TemplateRef::new(&patterns)];
            engine.try_swap(&template, &tuple, value).unwrap().unwrap_or(NOTHING)
        })
    }),
    ("wait for any take", |engine| {
        at_once(engine, |engine| {
            let alternatives = [[int(1), int(10)], [int(1), int(90)]];
            let template = alternatives.each_ref().map(|one| TemplateRef::new(one));
            waiting(engine, &template, Want::Take)
        })
    }),
];

fn at_once(engine: &Arc<Engine>, work: fn(&Arc<Engine>) -> i64) -> Work {
    let engine = Arc::clone(engine);
    Box::new(move || work(&engine))
}

/// Runs `work` with a template of two integers that has a condition.
fn judged(
    engine: &Arc<Engine>,
    condition: &str,
    work: fn(&Arc<Engine>, &[TemplateRef<'_>]) -> i64,
) -> Work {
    let engine = Arc::clone(engine);
    let condition = Condition::new(condition).unwrap();
    Box::new(move || {
        let patterns = [INT, INT];
        let template = TemplateRef { condition: Some(&condition), ..TemplateRef::new(&patterns) };
        work(&engine, &[template])
    })
}

/// Goes on with a claim of the oldest tuple of the key 1.
fn claimed(
    engine: &Arc<Engine>,
    attempts_max: Option<u32>,
    work: impl FnOnce(Claim) -> i64 + 'static,
) -> Work {
    let patterns = [int(1), INT];
    let template = [TemplateRef::new(&patterns)];
    let claimed = engine.try_claim(&template, Order::Fifo, &terms(attempts_max), value);
    let (claim, _) = claimed.unwrap().unwrap();
    Box::new(move || work(claim))
}

/// Goes on with a tuple that has a lease, and is the largest with the key 1.
fn leased(engine: &Arc<Engine>, work: fn(&Arc<Engine>, &Lease) -> i64) -> Work {
    let lease = put_leased(engine, 40, LeaseTerms { lease: Some(HOUR), after: None });
    let engine = Arc::clone(engine);
    Box::new(move || work(&engine, &lease))
}

/// Goes on with a transaction that has taken a tuple, read one, and is going to put two.
fn transaction(engine: &Arc<Engine>, work: fn(Transaction) -> i64) -> Work {
    let mut transaction = that_has_taken(engine);
    let read = [int(2), INT];
    transaction.try_read(0, &[TemplateRef::new(&read)], Order::Fifo, value).unwrap();
    Box::new(move || work(transaction))
}

/// One that has taken a tuple, and is going to put two.
fn that_has_taken(engine: &Arc<Engine>) -> Transaction {
    let mut transaction = begin(engine);
    let taken = [int(1), INT];
    transaction.try_take(0, &[TemplateRef::new(&taken)], Order::Fifo, value).unwrap();
    transaction.put(0, &[Field::Int(1), Field::Int(70)]).unwrap();
    transaction.put(0, &[Field::Str("a"), Field::Int(71)]).unwrap();
    transaction
}

fn begin(engine: &Arc<Engine>) -> Transaction {
    Transaction::begin(vec![Arc::clone(engine)], HOUR).unwrap()
}

fn subscribe(engine: &Arc<Engine>, patterns: &[PatternRef<'_>]) -> Subscription {
    let terms = SubscribeTerms::new(EventKind::ALL, 64);
    engine.subscribe(&[TemplateRef::new(patterns)], &terms).unwrap()
}

fn put_leased(engine: &Engine, value: i64, terms: LeaseTerms) -> Lease {
    engine.put_leased(&[Field::Int(1), Field::Int(value)], &terms).unwrap()
}

fn terms(attempts_max: Option<u32>) -> ClaimTerms {
    ClaimTerms { ttl: HOUR, attempts_max }
}

fn take(engine: &Engine, template: &[TemplateRef<'_>], order: Order) -> i64 {
    engine.try_take(template, order, value).unwrap().unwrap_or(NOTHING)
}

fn claim(engine: &Arc<Engine>, order: Order) -> i64 {
    let patterns = [int(1), INT];
    let template = [TemplateRef::new(&patterns)];
    let claimed = engine.try_claim(&template, order, &terms(None), value).unwrap();
    claimed.map_or(NOTHING, |(claim, value)| {
        forget(claim);
        value
    })
}

/// Several values as one.
fn all(values: &[i64]) -> i64 {
    values.iter().fold(0, |all, value| (all * 31 + value) % 1_000_003)
}

fn settled(settled: Result<(), Error>) -> i64 {
    match settled {
        Ok(()) => 0,
        Err(Error::ClaimLost { .. }) => REFUSED,
        Err(other) => panic!("{other}"),
    }
}

fn renewed(renewed: Result<(), Error>) -> i64 {
    match renewed {
        Ok(()) => 0,
        // Which of the two is open: a take has its tuple in hands for a moment before it is gone.
        Err(Error::LeaseExpired | Error::LeaseHeld { .. }) => REFUSED,
        Err(other) => panic!("{other}"),
    }
}

fn done(done: Result<(), Error>) -> i64 {
    done.unwrap();
    0
}

// --- the tests ---------------------------------------------------------------------------------------

fn operation(name: &str) -> Operation<'static> {
    let tables = [WHERE, CLAIMS, LEASES, TRANSACTIONS, SUBSCRIPTIONS, OTHERS];
    let (name, prepare) = tables.concat().into_iter().find(|(other, _)| *other == name).unwrap();
    Operation::prepared(name, prepare)
}

/// Each of `operations` inside each of `others`, and these inside those; in an ordinary run some of the pairs. With somebody
/// who hears of everything, too.
fn happen_one_after_the_other(operations: &[Prepared], others: &[&str]) {
    let pairs = operations
        .iter()
        .flat_map(|(one, _)| others.iter().flat_map(move |other| [[*one, *other], [*other, *one]]));
    let stride = if thorough() { 1 } else { PAIRS_STRIDE };
    let pairs: Vec<[&str; 2]> = pairs.skip(phase() % stride).step_by(stride).collect();
    let (mut interruptions, mut wrong) = (0, Vec::new());
    for (number, names) in pairs.iter().enumerate() {
        // Who is heard takes another way: both are gone, in turn where not all are.
        let ways = if thorough() { vec![false, true] } else { vec![number % 2 == 1] };
        for is_published in ways {
            let engine = filled();
            let any = PatternRef::Kinds(KindSet::ALL);
            let listener = is_published.then(|| subscribe(&engine, &[any, INT]));
            let both = Both::new(&engine, names.map(operation)).heard_by(listener.as_ref());
            match both.run() {
                Ok(summary) => interruptions += summary.interruptions,
                Err(panic) => wrong.push(panic),
            }
            assert_eq!(contents(&engine).len(), 5, "as before");
        }
    }
    eprintln!("{interruptions} interruptions in {} pairs", pairs.len());
    assert!(wrong.is_empty(), "{} pairs:\n{}", wrong.len(), wrong.join("\n"));
    assert!(interruptions > pairs.len() * POINTS / 2);
}

#[test]
fn what_has_a_condition_happens_before_another_operation_or_after_it_m9_o1() {
    happen_one_after_the_other(WHERE, BESIDE_WHERE);
}

#[test]
fn a_claim_goes_on_or_ends_before_another_operation_or_after_it_k2_k4_k5_o1() {
    happen_one_after_the_other(CLAIMS, BESIDE_CLAIMS);
}

#[test]
fn a_lease_is_renewed_or_cancelled_before_another_operation_or_after_it_l2_o1() {
    happen_one_after_the_other(LEASES, BESIDE_LEASES);
}

#[test]
fn a_transaction_does_its_work_or_ends_before_another_operation_or_after_it_x1_x5_o1() {
    happen_one_after_the_other(TRANSACTIONS, BESIDE_TRANSACTIONS);
}

#[test]
fn a_subscription_begins_hears_or_ends_before_another_operation_or_after_it_n1_n3_o1() {
    happen_one_after_the_other(SUBSCRIPTIONS, BESIDE_SUBSCRIPTIONS);
}
