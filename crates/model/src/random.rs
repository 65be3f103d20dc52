//! Random operations over a small domain: so small that templates match, tuples are equal and waiters
//! compete all the time.
//!
//! The values that break naive code come up by name; chance alone rarely draws a NaN.

use std::hash::{BuildHasher, RandomState};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::operation::{BRIEF_MS, Operation, Place};
use crate::waiting::Want;
use crate::{
    ClaimTerms, Condition, EventKind, LeaseTerms, Limits, Order, Template, Tuple, WhenFull,
    template, tuple,
};

/// The environment variable that makes random tests use a seed again.
const SEED_VARIABLE: &str = "TUPELO_SEED";

/// Runs a property on random inputs, and looks for a small one if it fails. The output says how to run it again.
///
/// # Panics
///
/// If the property fails for an input: the message has the input, the reason and the seed. Also if `TUPELO_SEED` is no number.
pub fn check<S: Strategy>(
    cases: u32,
    inputs: &S,
    property: impl Fn(S::Value) -> Result<(), String>,
) {
    let given = std::env::var(SEED_VARIABLE).ok();
    let seed = given.map_or_else(
        || RandomState::new().hash_one(SEED_VARIABLE),
        |seed| seed.parse().expect("TUPELO_SEED is a number"),
    );
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 4096,
        ..Config::default()
    };
    let run = |input| property(input).map_err(TestCaseError::fail);
    if let Err(error) = TestRunner::new(config).run(inputs, run) {
        panic!("{error}\nto run it again: {SEED_VARIABLE}={seed}");
    }
}

/// Fields in the text notation. What comes first comes often.
const TAGS: &[&str] = &["a", "b"];
const NUMBERS: &[&str] = &["0", "1", "2"];
const ODDITIES: &[&str] = &[
    "null",
    "true",
    "false",
    "0.0",
    "-0.0",
    "1.0",
    "2.5",
    "float(\"nan\")",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "\"\"",
    "\"a\\0b\"",
    "\"😀\"",
    "b\"\"",
    "b\"a\"",
    "decimal(\"1.0\")",
    "decimal(\"1.00\")",
];

/// Classes of entries, with their bases.
const CLASSES: &[&str] = &["A", "A", "B(A)", "C"];

/// Patterns that are neither values nor the formal of one.
const PATTERNS: &[&str] =
    &["_", "_", ":int|:str", ":int|:float", "0..1", "> 0", "<= 1", "glob:\"*a*\"", "in {1, \"a\"}"];

fn field() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => select(TAGS), 4 => select(NUMBERS), 2 => select(ODDITIES)]
}

/// The fields of a tuple. Most are of a few shapes, where they meet.
fn fields() -> impl Strategy<Value = Vec<&'static str>> {
    prop_oneof![
        4 => (select(TAGS), select(NUMBERS)).prop_map(|(a, b)| vec![a, b]),
        2 => (select(TAGS), select(NUMBERS), select(TAGS)).prop_map(|(a, b, c)| vec![a, b, c]),
        2 => (select(TAGS), field()).prop_map(|(a, b)| vec![a, b]),
        1 => vec(field(), 0..4),
    ]
}

/// A tuple, now and then an entry (M7).
pub fn tuples() -> impl Strategy<Value = Tuple> {
    let entry = (select(CLASSES), select(NUMBERS), select(TAGS)).prop_map(|(class, id, tag)| {
        let more = if tag == "b" { "" } else { ", tag: a" };
        tuple(&format!("{class}{{id: {id}{more}}}"))
    });
    prop_oneof![5 => fields().prop_map(|fields| tuple(&text(&fields))), 1 => entry]
}

/// A template of entries (M7).
fn of_entries() -> impl Strategy<Value = Template> {
    const NAMES: &[&str] = &["A", "A", "B", "C"];
    const PATTERNS: &[&str] = &["id: 0", "id: 1", "id: :int", "tag: a", "tag: _, id: 2", ""];
    (select(NAMES), select(PATTERNS))
        .prop_map(|(class, fields)| template(&format!("{class}{{{fields}}}")))
}

/// A tuple with some of its fields weakened (M3-M5), and perhaps with its end left open (M1).
fn alternative() -> impl Strategy<Value = Template> {
    let weakenings = vec((0..10_u8, select(PATTERNS)), 4);
    (fields(), weakenings, prop::bool::weighted(0.1)).prop_map(|(fields, weakenings, rest)| {
        let weaken = |(field, (how, pattern)): (&str, &(u8, &str))| match how {
            0..=4 => field.to_owned(),
            5..=6 => format!(":{}", tuple(field)[0].kind().name()),
            _ => (*pattern).to_owned(),
        };
        let mut patterns: Vec<String> = fields.into_iter().zip(&weakenings).map(weaken).collect();
        if rest {
            patterns.push("...".to_owned());
        }
        template(&text(&patterns))
    })
}

/// A template, now and then of two alternatives (M8), or with a condition (M9).
#[expect(clippy::missing_panics_doc, reason = "the conditions are those of this file")]
pub fn templates() -> impl Strategy<Value = Template> {
    let conditional = (unconditional(), select(CONDITIONS)).prop_map(|(template, text)| {
        let condition = Condition::new(text).expect("a condition of this file");
        // One with names is for entries only.
        template.clone().with_condition(&condition).unwrap_or(template)
    });
    prop_oneof![6 => unconditional(), 1 => conditional]
}

/// Conditions that some of the tuples fulfil, and some have no answer for.
const CONDITIONS: &[&str] = &[
    "f[1] > 0",
    "f[1] <= 1 || f[0] == 'a'",
    "f[0] == f[1]",
    "size(f) == 2 && f[1] != 1",
    "10 / f[1] == 10",
    "f[2] in ['a', 'b']",
    "id > 0",
    "id != 1 && tag == 'a'",
];

/// A template without a condition. A waiting call with one is served when it looks, not in its turn (T3).
fn unconditional() -> impl Strategy<Value = Template> {
    let one = || prop_oneof![6 => alternative(), 1 => of_entries()];
    let either = (one(), one()).prop_map(|(one, other)| one.or(other));
    prop_oneof![9 => one(), 1 => either]
}

fn text<T: AsRef<str>>(fields: &[T]) -> String {
    let fields: Vec<&str> = fields.iter().map(AsRef::as_ref).collect();
    format!("({})", fields.join(", "))
}

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![
        6 => Just(Order::Fifo),
        2 => Just(Order::Lifo),
        1 => Just(Order::Random),
        1 => Just(Order::Any),
        1 => (0..3_usize).prop_map(Order::Max),
        1 => (0..3_usize).prop_map(Order::Min),
    ]
}

fn labels() -> impl Strategy<Value = String> {
    (0..4_u8).prop_map(|label| label.to_string())
}

/// Operations that answer at once.
pub fn plain_operations() -> impl Strategy<Value = Operation> {
    let limit = || prop::option::of(0..4_usize);
    prop_oneof![
        12 => tuples().prop_map(|tuple| Operation::Put { tuple }),
        2 => vec(tuples(), 0..4).prop_map(|tuples| Operation::PutAll { tuples }),
        2 => (tuples(), templates())
            .prop_map(|(tuple, unless)| Operation::PutIfAbsent { tuple, unless, terms: LeaseTerms::default() }),
        6 => (templates(), orders())
            .prop_map(|(template, order)| Operation::TryTake { template, order }),
        3 => (templates(), orders())
            .prop_map(|(template, order)| Operation::TryRead { template, order }),
        1 => (templates(), orders())
            .prop_map(|(template, order)| Operation::TakeNoWait { template, order }),
        1 => (templates(), orders())
            .prop_map(|(template, order)| Operation::ReadNoWait { template, order }),
        2 => templates().prop_map(|template| Operation::Count { template }),
        1 => templates().prop_map(|template| Operation::Present { template }),
        2 => (templates(), limit())
            .prop_map(|(template, limit)| Operation::ReadAll { template, limit }),
        1 => (templates(), limit())
            .prop_map(|(template, limit)| Operation::TakeAll { template, limit }),
        1 => (templates(), 0..4_usize, 0..3_usize).prop_map(|(template, at_least, more)| {
            Operation::TryTakeMany { template, at_least, at_most: at_least + more }
        }),
        2 => (templates(), tuples()).prop_map(|(template, to)| Operation::TrySwap { template, to }),
        1 => templates().prop_map(|template| Operation::MoveTo { template }),
        1 => templates().prop_map(|template| Operation::CopyTo { template }),
        1 => (templates(), wants())
            .prop_map(|(template, want)| Operation::Search { template, want }),
    ]
}

/// A caller's use of a match: mostly to take it.
fn wants() -> impl Strategy<Value = Want> {
    select(&[Want::Take, Want::Take, Want::Read][..])
}

/// Operations on calls and scans that are under way while others come in between.
fn labelled_operations() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (labels(), wants(), unconditional())
            .prop_map(|(label, want, template)| Operation::Start { label, want, template }),
        4 => labels().prop_map(|label| Operation::Finish { label }),
        2 => labels().prop_map(|label| Operation::Cancel { label }),
        1 => (labels(), templates())
            .prop_map(|(label, template)| Operation::BeginScan { label, template }),
        1 => (labels(), 1..3_usize)
            .prop_map(|(label, at_most)| Operation::ContinueScan { label, at_most }),
        1 => labels().prop_map(|label| Operation::EndScan { label }),
    ]
}

/// Longer than any test takes.
const LONG_MS: u64 = 3_600_000;

/// Seldom brief, since that takes the time of a sleep.
fn lengths() -> impl Strategy<Value = u64> {
    prop_oneof![6 => Just(LONG_MS), 1 => Just(BRIEF_MS)]
}

fn claim_terms(ttl_ms: impl Strategy<Value = u64>) -> impl Strategy<Value = ClaimTerms> {
    let attempts_max = prop_oneof![2 => Just(None), 1 => (1..3_usize).prop_map(Some)];
    (ttl_ms, attempts_max).prop_map(|(ttl_ms, attempts_max)| ClaimTerms { ttl_ms, attempts_max })
}

/// Operations on claims that have nothing due soon.
pub fn claim_operations() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (labels(), templates(), orders(), claim_terms(Just(LONG_MS))).prop_map(
            |(label, template, order, terms)| Operation::Claim { label, template, order, terms }
        ),
        1 => (labels(), tuples()).prop_map(|(label, tuple)| Operation::PutUnder { label, tuple }),
        2 => labels().prop_map(|label| Operation::Done { label }),
        2 => (labels(), select(&["no disk", "not now"][..]))
            .prop_map(|(label, reason)| Operation::Abort { label, reason: reason.to_owned() }),
        1 => labels().prop_map(|label| Operation::Extend { label, ttl_ms: LONG_MS }),
        1 => templates().prop_map(|template| Operation::Dead { template }),
        1 => templates().prop_map(|template| Operation::Requeue { template }),
    ]
}

/// An operation of a transaction in a space.
fn operations_inside() -> impl Strategy<Value = Operation> {
    let limit = || prop::option::of(0..4_usize);
    let limited = move || (templates(), limit());
    let chosen = || (templates(), orders());
    // In boxes: one in the other by value, they fill the stack.
    prop_oneof![
        4 => tuples().prop_map(|tuple| Operation::Put { tuple }).boxed(),
        5 => chosen()
            .prop_map(|(template, order)| Operation::TryTake { template, order })
            .boxed(),
        5 => chosen()
            .prop_map(|(template, order)| Operation::TryRead { template, order })
            .boxed(),
        1 => chosen()
            .prop_map(|(template, order)| Operation::TakeNoWait { template, order })
            .boxed(),
        1 => chosen()
            .prop_map(|(template, order)| Operation::ReadNoWait { template, order })
            .boxed(),
        1 => templates().prop_map(|template| Operation::Count { template }).boxed(),
        1 => limited()
            .prop_map(|(template, limit)| Operation::ReadAll { template, limit })
            .boxed(),
        1 => limited()
            .prop_map(|(template, limit)| Operation::TakeAll { template, limit })
            .boxed(),
        1 => (templates(), 0..4_usize, 0..3_usize)
            .prop_map(|(template, at_least, more)| {
                Operation::TryTakeMany { template, at_least, at_most: at_least + more }
            })
            .boxed(),
        1 => labels().prop_map(|label| Operation::Finish { label }).boxed(),
    ]
}

/// Transactions: their operations, and how they begin and end.
fn transaction_operations() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => begins(prop_oneof![12 => Just(LONG_MS), 1 => Just(BRIEF_MS)]),
        16 => (labels(), operations_inside().boxed()).prop_map(|(label, operation)| inside(label, operation)),
        2 => labels().prop_map(|label| Operation::Commit { label }),
        2 => labels().prop_map(|label| Operation::RollBack { label }),
    ]
}

/// A transaction whose time does not end soon, and which waits for nothing: from its begin to its end.
pub fn whole_transaction() -> impl Strategy<Value = Vec<Operation>> {
    let at_once = operations_inside().prop_filter("it takes what it has waited for", |operation| {
        !matches!(operation, Operation::Finish { .. })
    });
    (labels(), vec(at_once.boxed(), 1..4), prop::bool::weighted(0.7)).prop_map(
        |(label, steps, commits)| {
            let begin = Operation::Begin { label: label.clone(), ttl_ms: LONG_MS };
            let steps = steps.into_iter().map(|step| inside(label.clone(), step));
            let mut whole: Vec<_> = std::iter::once(begin).chain(steps).collect();
            let end =
                if commits { Operation::Commit { label } } else { Operation::RollBack { label } };
            whole.push(end);
            whole
        },
    )
}

fn begins(ttl_ms: impl Strategy<Value = u64>) -> impl Strategy<Value = Operation> {
    (labels(), ttl_ms).prop_map(|(label, ttl_ms)| Operation::Begin { label, ttl_ms })
}

fn inside(label: String, operation: Operation) -> Operation {
    Operation::Inside { label, operation: Box::new(operation) }
}

/// Operations on leases, and on claims that may run out.
pub fn timed_operations() -> impl Strategy<Value = Operation> {
    let lease_terms = || {
        let maybe = || prop::option::of(lengths());
        let after = prop_oneof![3 => Just(None), 1 => lengths().prop_map(Some)];
        (maybe(), after).prop_map(|(lease_ms, after_ms)| LeaseTerms { lease_ms, after_ms })
    };
    prop_oneof![
        6 => (labels(), tuples(), lease_terms())
            .prop_map(|(label, tuple, terms)| Operation::PutLeased { label, tuple, terms }),
        1 => (vec(tuples(), 0..4), lease_terms())
            .prop_map(|(tuples, terms)| Operation::PutAllLeased { tuples, terms }),
        2 => (labels(), prop::option::of(lengths()))
            .prop_map(|(label, lease_ms)| Operation::Renew { label, lease_ms }),
        1 => labels().prop_map(|label| Operation::CancelLease { label }),
        1 => labels().prop_map(|label| Operation::LeaseEnds { label }),
        3 => (labels(), templates(), orders(), claim_terms(lengths())).prop_map(
            |(label, template, order, terms)| Operation::Claim { label, template, order, terms }
        ),
        3 => (labels(), labels(), claim_terms(lengths()))
            .prop_map(|(call, label, terms)| Operation::FinishClaim { call, label, terms }),
        1 => (labels(), lengths()).prop_map(|(label, ttl_ms)| Operation::Extend { label, ttl_ms }),
    ]
}

/// Subscriptions (N1). The buffer is never full: the drops would depend on the order of events of several shapes. The
/// rules leave that order open where one operation concerns several.
pub fn event_operations() -> impl Strategy<Value = Operation> {
    let kinds = || {
        prop_oneof![
            2 => Just(EventKind::ALL.to_vec()),
            1 => select(&EventKind::ALL[..]).prop_map(|kind| vec![kind]),
        ]
    };
    prop_oneof![
        3 => (labels(), templates(), kinds()).prop_map(|(label, template, on)| {
            Operation::Subscribe { label, template, on, buffer: 1_000 }
        }),
        3 => labels().prop_map(|label| Operation::Events { label }),
        1 => labels().prop_map(|label| Operation::Unsubscribe { label }),
    ]
}

/// A list of operations on two spaces, mostly on one.
pub fn operations(count_max: usize) -> impl Strategy<Value = Vec<(Place, Operation)>> {
    let place = prop_oneof![4 => Just(Place::Main), 1 => Just(Place::Other)];
    // In boxes: one in the other by value, they fill the stack.
    let operation = prop_oneof![
        8 => plain_operations().boxed(),
        3 => labelled_operations().boxed(),
        3 => claim_operations().boxed(),
        4 => transaction_operations().boxed(),
        2 => timed_operations().boxed(),
        1 => event_operations().boxed(),
    ];
    vec((place, operation), 1..count_max)
}

/// A list of operations on many tuples at once, up to `tuples_max` in each put. That is far more than one undo log, one
/// extent or one bucket of an engine holds. Now and then a call waits or gives up in between.
pub fn bulk_operations(tuples_max: usize) -> impl Strategy<Value = Vec<(Place, Operation)>> {
    let place = prop_oneof![2 => Just(Place::Main), 1 => Just(Place::Other)];
    let template = || select(BULK_TEMPLATES).prop_map(template);
    let operation = prop_oneof![
        4 => (1..tuples_max, 0..2_u8).prop_map(|(count, shape)| put_many(count, shape)),
        2 => template().prop_map(|template| Operation::MoveTo { template }),
        1 => template().prop_map(|template| Operation::CopyTo { template }),
        2 => (template(), prop::option::of(1..tuples_max))
            .prop_map(|(template, limit)| Operation::TakeAll { template, limit }),
        1 => template().prop_map(|template| Operation::Count { template }),
        4 => (template(), orders())
            .prop_map(|(template, order)| Operation::TryTake { template, order }),
        2 => (labels(), template())
            .prop_map(|(label, template)| Operation::Start { label, want: Want::Take, template }),
        1 => labels().prop_map(|label| Operation::Finish { label }),
        1 => labels().prop_map(|label| Operation::Cancel { label }),
        4 => bulk_transactions(tuples_max).boxed(),
    ];
    vec((place, operation), 1..24)
}

/// Transactions that take, read and put many tuples.
fn bulk_transactions(tuples_max: usize) -> impl Strategy<Value = Operation> {
    let template = || select(BULK_TEMPLATES).prop_map(template);
    let limit = move || prop::option::of(1..tuples_max);
    let operation = prop_oneof![
        2 => (template(), limit())
            .prop_map(|(template, limit)| Operation::TakeAll { template, limit }),
        2 => (template(), limit())
            .prop_map(|(template, limit)| Operation::ReadAll { template, limit }),
        1 => (template(), orders())
            .prop_map(|(template, order)| Operation::TryTake { template, order }),
        1 => (0..9_usize).prop_map(|number| Operation::Put { tuple: one_of_many(number, 0) }),
    ];
    prop_oneof![
        2 => begins(Just(LONG_MS)),
        6 => (labels(), operation).prop_map(|(label, operation)| inside(label, operation)),
        1 => labels().prop_map(|label| Operation::Commit { label }),
        1 => labels().prop_map(|label| Operation::RollBack { label }),
    ]
}

const BULK_TEMPLATES: &[&str] =
    &["...", "many, ...", "many, :int, :int", "many, 1, :int", "many, _, > 10", "many, 2, :str"];

/// A put of many tuples of one shape with few keys.
fn put_many(count: usize, shape: u8) -> Operation {
    Operation::PutAll { tuples: (0..count).map(|number| one_of_many(number, shape)).collect() }
}

fn one_of_many(number: usize, shape: u8) -> Tuple {
    match shape {
        0 => tuple(&format!("many, {}, {number}", number % 3)),
        _ => tuple(&format!("many, {}, \"{number}\"", number % 3)),
    }
}

/// No limit, or a limit that is soon reached.
pub fn limits() -> impl Strategy<Value = Limits> {
    let tuples_max = prop_oneof![3 => Just(None), 1 => (1..6_usize).prop_map(Some)];
    let when_full = prop_oneof![Just(WhenFull::Error), Just(WhenFull::DropOldest)];
    (tuples_max, when_full).prop_map(|(tuples_max, when_full)| Limits { tuples_max, when_full })
}
