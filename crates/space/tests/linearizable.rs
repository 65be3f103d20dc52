//! Several threads at once: every answer must be explained by some order of the calls (O1, O4-O6, O8, T1,
//! K1, K2, K4, X1-X5). What a transaction does is a call each, as are its commit and its end.
//!
//! Short histories on a space with few tuples, many times: the search is exhaustive, so a history either
//! has an order that the model agrees with, or the engine is wrong. The clock is a counter that all
//! threads share; nothing sleeps.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::inside::inside;
use common::{ENGINES, Hands, Temporary, perform, refused, rounds};
use proptest::collection::vec;
use proptest::prop_oneof;
use proptest::strategy::Strategy;
use tupelo::{Error, Space, Transaction, Tuple};
use tupelo_model::{
    Answer, Call, Limits, Operation, Order, Place, State, linearization, random, template,
};

/// Histories per engine and round.
const HISTORIES: u32 = 60;
/// How often the same scripts run: where threads meet is chance.
const REPETITIONS: usize = 20;

const THREADS: usize = 4;

/// How long a call waits: about as long as another one takes.
const PATIENCE: Duration = Duration::from_micros(50);

/// What is there at first, and what each thread does.
type Scripts = (Vec<Tuple>, Vec<Vec<Operation>>);

fn scripts() -> impl Strategy<Value = Scripts> {
    let plain = random::plain_operations().prop_filter("two spaces are two steps", |operation| {
        use Operation as O;
        !matches!(operation, O::MoveTo { .. } | O::CopyTo { .. } | O::Search { .. })
    });
    let one = |operation| vec![operation];
    let part = prop_oneof![
        2 => plain.prop_map(one).boxed(),
        1 => random::claim_operations().prop_map(one).boxed(),
        1 => random::whole_transaction().boxed(),
    ];
    let script = vec(part, 1..4).prop_map(|parts| parts.concat());
    (vec(random::tuples(), 0..4), vec(script, 2..=THREADS))
}

#[test]
fn every_history_of_several_threads_can_be_put_in_an_order_o1() {
    rounds(|_| {
        for engine in ENGINES {
            let target = Temporary::new(engine, Limits::default());
            let connections: Vec<Space> = (0..THREADS).map(|_| target.connect_again()).collect();
            random::check(HISTORIES, &scripts(), |(first, scripts)| {
                (0..REPETITIONS).try_for_each(|_| {
                    prepare(&target.space, &first);
                    let calls = history(&connections, &scripts);
                    if linearization(&calls, &start(&first)).is_some() {
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

fn start(first: &[Tuple]) -> State {
    let mut space = tupelo_model::Space::new();
    space.put_all(first.to_vec()).expect("there is no limit");
    State::new(space, tupelo_model::Space::new())
}

/// What a thread has in its hands while its script runs, and the labels of what is still open.
#[derive(Default)]
struct Held {
    hands: Hands,
    claims: Vec<String>,
    transactions: HashMap<String, Transaction>,
    begun: Vec<String>,
}

impl Held {
    fn perform(&mut self, space: &Space, operation: &Operation, patience: Duration) -> Answer {
        let done = match operation {
            Operation::Begin { label, ttl_ms } => {
                let begun = space.transaction(&[], Duration::from_millis(*ttl_ms));
                begun.map(|transaction| {
                    self.transactions.insert(label.clone(), transaction);
                    Answer::Done
                })
            }
            Operation::Inside { label, operation } => {
                inside(self.transactions[label].at(0), operation)
            }
            Operation::Commit { label } => self.transactions[label].commit().map(|()| Answer::Done),
            Operation::RollBack { label } => {
                self.transactions[label].abort().map(|()| Answer::Done)
            }
            operation => return perform(space, &mut self.hands, operation, patience),
        };
        done.unwrap_or_else(|error: Error| refused(&error))
    }
}

/// Runs the scripts at once, each in a thread with its own connection.
fn history(connections: &[Space], scripts: &[Vec<Operation>]) -> Vec<Call> {
    let clock = AtomicU64::new(0);
    let ready = AtomicUsize::new(0);
    let patience = if scripts.iter().flatten().any(sees_held) { Duration::ZERO } else { PATIENCE };
    let run = |thread: usize, space: &Space, script: &[Operation]| {
        let (mut held, mut calls) = (Held::default(), Vec::new());
        ready.fetch_add(1, Ordering::SeqCst);
        while ready.load(Ordering::SeqCst) < scripts.len() {
            thread::yield_now(); // there may be fewer processors than threads
        }
        for operation in script {
            let Some(operation) = labelled(operation, thread, &mut held) else { continue };
            let call = timed(&clock, space, &mut held, operation, patience);
            match (&call.operation, &call.answer) {
                (Operation::Claim { label, .. }, Answer::Claimed { .. }) => {
                    held.claims.push(label.clone());
                }
                (Operation::Begin { label, .. }, _) => held.begun.push(label.clone()),
                _ => {}
            }
            calls.push(call);
        }
        // What is still claimed, or a transaction's, comes back when the history is over.
        (calls, held)
    };
    let (calls, held): (Vec<_>, Vec<Held>) = thread::scope(|scope| {
        let run = &run;
        let runs = connections.iter().zip(scripts).enumerate();
        let threads: Vec<_> = runs
            .map(|(thread, (space, script))| scope.spawn(move || run(thread, space, script)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .unzip()
    });
    drop(held);
    calls.concat()
}

/// The operation with a label that no other thread uses: a claim or a transaction gets one of its own, and what follows is
/// for the last one that its thread has not ended. `None` if there is none.
fn labelled(operation: &Operation, thread: usize, held: &mut Held) -> Option<Operation> {
    let mut operation = operation.clone();
    match &mut operation {
        Operation::Claim { label, .. } => *label = format!("{thread}, {}", held.claims.len()),
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
    clock: &AtomicU64,
    space: &Space,
    held: &mut Held,
    operation: Operation,
    patience: Duration,
) -> Call {
    let invoked = clock.fetch_add(1, Ordering::SeqCst);
    let patience = if may_wait(&operation) { patience } else { Duration::ZERO };
    let answer = held.perform(space, &operation, patience);
    let returned = clock.fetch_add(1, Ordering::SeqCst);
    Call { at: Place::Main, operation, answer, invoked, returned }
}

/// Whether a call may wait: it is then as if it had looked once, at the right moment. Not so if it chooses by an
/// order other than by age, since who waits gets what comes first.
fn may_wait(operation: &Operation) -> bool {
    let (Operation::TakeNoWait { order, .. }
    | Operation::ReadNoWait { order, .. }
    | Operation::Claim { order, .. }) = operation
    else {
        return false;
    };
    matches!(order, Order::Fifo | Order::Random | Order::Any)
}

/// Whether a call sees what was handed to a waiter that has not returned yet (O9): to it, a take that waits is
/// two steps.
fn sees_held(operation: &Operation) -> bool {
    matches!(operation, Operation::PutIfAbsent { .. } | Operation::Present { .. })
}
