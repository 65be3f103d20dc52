//! Several threads at once: every answer must be explained by some order of the calls (O1, O4-O6, O8, T1,
//! K1, K2, K4, X1-X5). What a transaction does is a call each, as are its commit and its end.
//!
//! Short histories on a space with few tuples, many times. The search is exhaustive, so a history either has an order
//! that the model agrees with, or the engine is wrong. The clock is that of the machine, which is the same for all
//! threads.
//!
//! **Time** (L1 to L3, K2). Most leases and claims are longer than any test. At most one call of a history makes something due
//! soon: a lease of a millisecond, a tuple that comes after one, a claim that runs out. That it does is one more call of the
//! history, of nobody: time passes at one moment, which is not before the soonest that it may be due, and not after the
//! latest. Since there is one such thing, one such call is all that time does. Threads pause now and then, so that
//! calls come on both sides of that moment; if they do not, the history is as good a one. What this can not tell is whether
//! something is due to the millisecond (L4): the tests of the engine look at that.
//!
//! **Events** (N1, N3, X7). One subscription is told of everything, while it happens, and a thread may begin others.
//! The events of each until the end are the answer to one more call, and an order must explain that as well. The events
//! of its calls, one call after the other, are the events of the subscription (see `linearization`). A take with an
//! event is done in two steps, and its tuple is held in between, as the tuple of a blocked call is (N1). So it is two
//! calls here: the first gets the tuple and the second returns with it.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::inside::inside;
use crate::common::{ENGINES, Hands, Temporary, events, perform, refused, rounds, subscribe};
use proptest::arbitrary::any;
use proptest::collection::vec;
use proptest::prop_oneof;
use proptest::strategy::Strategy;
use tupelo::{Error, Space, Subscription, Transaction, Tuple};
use tupelo_model::{
    Answer, BRIEF_MS, Call, Event, EventKind, LeaseTerms, Limits, Operation, Order, PASS_MS, Place,
    State, Want, linearization, random, template,
};

/// Histories per engine and round.
const HISTORIES: u32 = 60;
/// How often the same scripts run: where threads meet is chance.
const REPETITIONS: usize = 20;

const THREADS: usize = 4;

/// How long a call waits: about as long as another one takes.
const TIMEOUT: Duration = Duration::from_micros(50);

/// The subscription that is told of everything.
const EVERYTHING: &str = "everything";

/// Events that may wait for a subscription: more than a history has, or what was dropped would have to be guessed.
const BUFFER: usize = 400;

/// What is there at first, and what each thread does.
type Scripts = (Vec<Tuple>, Vec<Vec<Operation>>);

/// One or several operations of a script.
type Part = Vec<Operation>;

/// Operations of one call in one space, claims and whole transactions.
fn parts() -> impl Strategy<Value = Part> + Clone {
    let plain = random::plain_operations().prop_filter("two spaces are two steps", |operation| {
        use Operation as O;
        !matches!(operation, O::MoveTo { .. } | O::CopyTo { .. } | O::Search { .. })
    });
    let one = |operation| vec![operation];
    prop_oneof![
        2 => plain.prop_map(one).boxed(),
        1 => random::claim_operations().prop_map(one).boxed(),
        1 => random::whole_transaction().prop_map(with_one_to_give_back).boxed(),
    ]
}

/// A roll-back lets go tuple by tuple, each at a moment of its own (X5): it is one call if it holds one.
fn with_one_to_give_back(mut whole: Part) -> Part {
    use Operation as O;
    if !matches!(whole.last(), Some(O::RollBack { .. })) {
        return whole;
    }
    let mut is_first = true;
    whole.retain(|operation| {
        let O::Inside { operation, .. } = operation else { return true };
        match **operation {
            O::ReadAll { .. } | O::TakeAll { .. } | O::TryTakeMany { .. } => false,
            O::Put { .. } | O::Count { .. } => true,
            _ => std::mem::replace(&mut is_first, false),
        }
    });
    whole
}

/// Leases and pauses, besides claims that are renewed or run out.
fn timed_parts() -> impl Strategy<Value = Part> {
    let timed = random::timed_operations()
        .prop_filter("it is for a call that waits", |operation| {
            !matches!(operation, Operation::FinishClaim { .. })
        });
    let pause = (1..=PASS_MS).prop_map(|ms| Operation::Pass { ms });
    prop_oneof![
        2 => timed.prop_map(|operation| vec![operation]).boxed(),
        1 => pause.prop_map(|operation| vec![operation]).boxed(),
        3 => life_of_a_lease().boxed(),
    ]
}

/// A tuple with a lease, every other time one that ends soon, and what becomes of it.
fn life_of_a_lease() -> impl Strategy<Value = Part> {
    use Operation as O;
    let label = String::new;
    let step = prop_oneof![
        (1..=PASS_MS).prop_map(|ms| O::Pass { ms }),
        any::<bool>().prop_map(move |ends| {
            O::Renew { label: label(), lease_ms: ends.then_some(3_600_000) }
        }),
        any::<bool>().prop_map(move |asks| {
            if asks { O::LeaseEnds { label: label() } } else { O::CancelLease { label: label() } }
        }),
        any::<bool>().prop_map(|takes| {
            let template = template("...");
            if takes { O::TakeAll { template, limit: None } } else { O::Count { template } }
        }),
    ];
    (random::tuples(), any::<bool>(), vec(step, 1..4)).prop_map(move |(tuple, is_brief, steps)| {
        let lease_ms = Some(if is_brief { BRIEF_MS } else { 3_600_000 });
        let terms = LeaseTerms { lease_ms, after_ms: None };
        let put = O::PutLeased { label: label(), tuple, terms };
        std::iter::once(put).chain(steps).collect()
    })
}

/// Takes of the oldest match only: a take of two steps begins as one that waits, which has no other order (T2).
fn oldest_first(mut part: Part) -> Part {
    for operation in &mut part {
        if let Operation::TryTake { order, .. } | Operation::TakeNoWait { order, .. } = operation {
            *order = Order::Fifo;
        }
    }
    part
}

/// Subscriptions that begin.
fn subscriptions() -> impl Strategy<Value = Part> {
    random::event_operations().prop_filter_map("it begins nothing", |operation| match operation {
        Operation::Subscribe { label, template, on, .. } => {
            Some(vec![Operation::Subscribe { label, template, on, buffer: BUFFER }])
        }
        _ => None,
    })
}

fn scripts(part: impl Strategy<Value = Part>) -> impl Strategy<Value = Scripts> {
    let script = vec(part, 1..4).prop_map(|parts| parts.concat());
    (vec(random::tuples(), 0..4), vec(script, 2..=THREADS))
        .prop_map(|(first, scripts)| (first, with_one_brief(scripts)))
}

/// Of all that would be due soon, leaves the first one so, and makes the rest longer than any test. What several tuples have is
/// made longer, too: they may be of several shapes.
fn with_one_brief(mut scripts: Vec<Vec<Operation>>) -> Vec<Vec<Operation>> {
    const LONG_MS: u64 = 3_600_000;
    let mut has_one = false;
    for operation in scripts.iter_mut().flatten() {
        let may_be_brief = !has_one && !matches!(operation, Operation::PutAllLeased { .. });
        has_one |= may_be_brief && operation.is_brief();
        let lengthen = |length_ms: &mut Option<u64>| {
            if !may_be_brief && *length_ms == Some(BRIEF_MS) {
                *length_ms = Some(LONG_MS);
            }
        };
        match operation {
            Operation::PutLeased { terms, .. } => {
                lengthen(&mut terms.lease_ms);
                lengthen(&mut terms.after_ms);
                // It would be due twice.
                if terms.after_ms == Some(BRIEF_MS) {
                    terms.lease_ms = None;
                }
            }
            // Nobody could take those away again that are not visible by the end.
            Operation::PutAllLeased { terms, .. } => {
                lengthen(&mut terms.lease_ms);
                *terms = LeaseTerms { after_ms: None, ..*terms };
            }
            Operation::Renew { lease_ms, .. } => lengthen(lease_ms),
            Operation::Claim { terms: tupelo_model::ClaimTerms { ttl_ms, .. }, .. }
            | Operation::Extend { ttl_ms, .. } => {
                let mut length_ms = Some(*ttl_ms);
                lengthen(&mut length_ms);
                *ttl_ms = length_ms.unwrap_or(LONG_MS);
            }
            _ => {}
        }
    }
    scripts
}

#[test]
fn every_history_of_several_threads_can_be_put_in_an_order_o1() {
    have_an_order(&scripts(parts()), false);
}

#[test]
fn so_can_one_with_leases_in_which_something_becomes_due_l1_l2_l3_k2() {
    have_an_order(&scripts(prop_oneof![1 => parts(), 1 => timed_parts()]), false);
}

#[test]
fn what_is_heard_of_a_history_is_what_its_calls_did_one_after_the_other_n1_n3_x7() {
    let all =
        prop_oneof![6 => parts().prop_map(oldest_first), 2 => timed_parts(), 1 => subscriptions()];
    have_an_order(&scripts(all), true);
}

/// Runs scripts again and again; `is_heard`: with a subscription to everything.
fn have_an_order(scripts: &impl Strategy<Value = Scripts>, is_heard: bool) {
    rounds(|_| {
        for engine in ENGINES {
            let target = Temporary::new(engine, Limits::default());
            let connections: Vec<Space> = (0..THREADS).map(|_| target.connect_again()).collect();
            random::check(HISTORIES, scripts, |(first, scripts)| {
                (0..REPETITIONS).try_for_each(|_| {
                    prepare(&target.space, &first);
                    let calls = history(&connections, &scripts, is_heard.then_some(&target.space));
                    if linearization(&calls, &start(&first, is_heard)).is_some() {
                        return Ok(());
                    }
                    let calls: Vec<String> = calls.iter().map(Call::to_string).collect();
                    Err(format!("{engine}: nothing explains\n{}", calls.join("\n")))
                })
            });
        }
    });
}

/// Leaves nothing in the space but these tuples.
fn prepare(space: &Space, first: &[Tuple]) {
    let everything = Operation::TakeAll { template: template("..."), limit: None };
    // The dead come first: what is put back is taken, too.
    let requeue = Operation::Requeue { template: template("...") };
    let first = Operation::PutAll { tuples: first.to_vec() };
    for operation in [requeue, everything, first] {
        perform(space, &mut Hands::default(), &operation, Duration::ZERO);
    }
}

fn start(first: &[Tuple], is_heard: bool) -> State {
    let mut space = tupelo_model::Space::new();
    space.put_all(first.to_vec()).expect("there is no limit");
    let state = State::new(space, tupelo_model::Space::new());
    if is_heard { state.outcomes(Place::Main, &to_everything()).remove(0).1 } else { state }
}

fn to_everything() -> Operation {
    Operation::Subscribe {
        label: EVERYTHING.to_owned(),
        template: template("..."),
        on: EventKind::ALL.to_vec(),
        buffer: BUFFER,
    }
}

/// What a thread has in its hands while its script runs, and the labels of what is still open.
#[derive(Default)]
struct Held {
    hands: Hands,
    claims: Vec<String>,
    leases: Vec<String>,
    subscriptions: HashMap<String, Subscription>,
    transactions: HashMap<String, Transaction>,
    begun: Vec<String>,
}

impl Held {
    fn perform(&mut self, space: &Space, operation: &Operation, timeout: Duration) -> Answer {
        let done = match operation {
            Operation::Begin { label, ttl_ms } => {
                let begun = space.transaction(&[], Duration::from_millis(*ttl_ms));
                begun.map(|transaction| {
                    self.transactions.insert(label.clone(), transaction);
                    Answer::Done
                })
            }
            Operation::Inside { label, operation } => {
                inside(self.transactions[label].at(0), operation, timeout)
            }
            Operation::Subscribe { label, .. } => subscribe(space, operation).map(|subscription| {
                self.subscriptions.insert(label.clone(), subscription);
                Answer::Done
            }),
            Operation::Commit { label } => self.transactions[label].commit().map(|()| Answer::Done),
            Operation::RollBack { label } => {
                self.transactions[label].abort().map(|()| Answer::Done)
            }
            operation => return perform(space, &mut self.hands, operation, timeout),
        };
        done.unwrap_or_else(|error: Error| refused(&error))
    }
}

/// Runs the scripts at once, each in a thread with its own connection. If a `listener` is given, it subscribes to everything.
fn history(
    connections: &[Space],
    scripts: &[Vec<Operation>],
    listener: Option<&Space>,
) -> Vec<Call> {
    let listener = listener.map(|space| subscribe(space, &to_everything()).unwrap());
    let clock = Instant::now();
    let ready = AtomicUsize::new(0);
    // What is handed to a call that waits is heard of, and its lease goes on, before the call returns.
    let is_one_step = listener.is_none() && !scripts.iter().flatten().any(sees_held);
    let timeout = if is_one_step { TIMEOUT } else { Duration::ZERO };
    let run = |thread: usize, space: &Space, script: &[Operation]| {
        let (mut held, mut calls) = (Held::default(), Vec::new());
        ready.fetch_add(1, Ordering::SeqCst);
        while ready.load(Ordering::SeqCst) < scripts.len() {
            thread::yield_now(); // there may be fewer processors than threads
        }
        for operation in script {
            if let Operation::Pass { ms } = operation {
                thread::sleep(Duration::from_millis(*ms));
                continue;
            }
            let Some(operation) = labelled(operation, thread, &mut held) else { continue };
            let call = timed(clock, space, &mut held, operation, timeout);
            match (&call.operation, &call.answer) {
                (Operation::Claim { label, .. }, Answer::Claimed { .. }) => {
                    held.claims.push(label.clone());
                }
                (Operation::PutLeased { label, .. }, _) => held.leases.push(label.clone()),
                (Operation::Begin { label, .. }, _) => held.begun.push(label.clone()),
                _ => {}
            }
            calls.push(call);
        }
        // What is still claimed, or a transaction's, comes back when the history is over.
        (calls, held)
    };
    let mut heard = Vec::new();
    let (calls, held): (Vec<_>, Vec<Held>) = thread::scope(|scope| {
        let run = &run;
        let runs = connections.iter().zip(scripts).enumerate();
        let threads: Vec<_> = runs
            .map(|(thread, (space, script))| scope.spawn(move || run(thread, space, script)))
            .collect();
        while let Some(listener) = &listener
            && threads.iter().any(|thread| !thread.is_finished())
        {
            heard.extend(events(listener).unwrap());
            thread::yield_now();
        }
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .unzip()
    });
    let mut calls = calls.concat();
    calls.extend(passing(&calls, listener.is_some()));
    if let Some(listener) = listener {
        calls = calls.into_iter().flat_map(in_two_steps).collect();
        heard.extend(events(&listener).unwrap());
        let own = held.iter().flat_map(|held| &held.subscriptions);
        let own = own.map(|(label, own)| (label.clone(), events(own).unwrap()));
        let all: Vec<_> = own.chain([(EVERYTHING.to_owned(), heard)]).collect();
        // The moment is after the last look: a lease that ends just before it is heard of.
        let end = moment(clock);
        calls.extend(all.into_iter().map(|(label, events)| asked(end, label, events)));
    }
    for mut held in held {
        // What is not visible yet is not for who comes later.
        for label in std::mem::take(&mut held.leases) {
            let cancel = Operation::CancelLease { label };
            perform(&connections[0], &mut held.hands, &cancel, Duration::ZERO);
        }
    }
    calls
}

/// What is due soon happens. Its moment is not before it is due by the beginning of the call that made it so, nor after
/// it is due by the end. If somebody listens, it may be heard of later, when somebody comes by: then it has not
/// happened before.
fn passing(calls: &[Call], is_heard: bool) -> Option<Call> {
    let nanoseconds = |ms: u64| ms * 1_000_000;
    calls.iter().find(|call| call.operation.is_brief()).map(|brief| Call {
        at: Place::Main,
        operation: Operation::Pass { ms: BRIEF_MS },
        answer: Answer::Done,
        invoked: brief.invoked + nanoseconds(BRIEF_MS),
        returned: if is_heard { u64::MAX } else { brief.returned + nanoseconds(PASS_MS) },
    })
}

/// A take of one tuple that was heard of: it has the tuple in hands, and then for good. Any other call as it is.
fn in_two_steps(call: Call) -> Vec<Call> {
    let (
        Operation::TryTake { template, .. } | Operation::TakeNoWait { template, .. },
        Answer::Tuple(_),
    ) = (&call.operation, &call.answer)
    else {
        return vec![call];
    };
    let label = format!("since {}", call.invoked);
    let (want, template) = (Want::Take, template.clone());
    let begins = Operation::Start { label: label.clone(), want, template };
    let finish = Operation::Finish { label };
    vec![
        Call { operation: begins, answer: Answer::Done, ..call.clone() },
        Call { operation: finish, ..call },
    ]
}

/// Somebody has asked a subscription at this moment, after all calls.
fn asked(now: u64, label: String, events: Vec<Event>) -> Call {
    let (operation, answer) = (Operation::Events { label }, Answer::Events(events));
    Call { at: Place::Main, operation, answer, invoked: now, returned: now }
}

fn moment(clock: Instant) -> u64 {
    u64::try_from(clock.elapsed().as_nanos()).expect("a test of less than centuries")
}

/// The operation with a label that no other thread uses. A claim or a transaction gets a label of its own. A later
/// operation is for the last claim or transaction that its thread has not ended; `None` if there is none.
fn labelled(operation: &Operation, thread: usize, held: &mut Held) -> Option<Operation> {
    let mut operation = operation.clone();
    match &mut operation {
        Operation::Claim { label, .. } => *label = format!("{thread}, {}", held.claims.len()),
        Operation::PutLeased { label, .. } => *label = format!("{thread}, {}", held.leases.len()),
        Operation::Renew { label, .. }
        | Operation::CancelLease { label }
        | Operation::LeaseEnds { label } => label.clone_from(held.leases.last()?),
        Operation::Subscribe { label, .. } => {
            *label = format!("{thread}, {}", held.subscriptions.len());
        }
        Operation::PutUnder { label, .. } | Operation::Extend { label, .. } => {
            label.clone_from(held.claims.last()?);
        }
        Operation::Done { label } | Operation::Abort { label, .. } => *label = held.claims.pop()?,
        Operation::Begin { label, .. } => *label = format!("{thread}, {}", held.begun.len()),
        Operation::Inside { label, .. } => label.clone_from(held.begun.last()?),
        Operation::Commit { label } | Operation::RollBack { label } => *label = held.begun.pop()?,
        _ => {}
    }
    Some(operation)
}

/// One call, between two moments of the clock.
fn timed(
    clock: Instant,
    space: &Space,
    held: &mut Held,
    operation: Operation,
    timeout: Duration,
) -> Call {
    let invoked = moment(clock);
    let timeout = if may_wait(&operation) { timeout } else { Duration::ZERO };
    let answer = held.perform(space, &operation, timeout);
    let returned = moment(clock);
    Call { at: Place::Main, operation, answer, invoked, returned }
}

/// Whether a call may wait: it is then as if it had looked once, at the right moment. Not so if it chooses by an
/// order other than by age, since who waits gets what comes first.
fn may_wait(operation: &Operation) -> bool {
    let operation =
        if let Operation::Inside { operation, .. } = operation { &**operation } else { operation };
    let (Operation::TakeNoWait { order, .. }
    | Operation::ReadNoWait { order, .. }
    | Operation::Claim { order, .. }) = operation
    else {
        return false;
    };
    matches!(order, Order::Fifo | Order::Random | Order::Any)
}

/// Whether a call sees what was handed to a waiter that has not returned yet (O9, L2): to it, a take that waits is
/// two steps.
fn sees_held(operation: &Operation) -> bool {
    use Operation as O;
    matches!(operation, O::PutIfAbsent { .. } | O::Present { .. } | O::PutLeased { .. })
}
