//! Several threads at once: every answer must be explained by some order of the calls (O1, O4-O6, O8, T1,
//! K1, K2, K4).
//!
//! Short histories on a space with few tuples, many times: the search is exhaustive, so a history either
//! has an order that the model agrees with, or the engine is wrong. The clock is a counter that all
//! threads share; nothing sleeps.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::{ENGINES, Hands, Temporary, perform, rounds};
use proptest::collection::vec;
use proptest::prop_oneof;
use proptest::strategy::Strategy;
use tupelo::{Space, Tuple};
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
    let operation = prop_oneof![2 => plain, 1 => random::claim_operations()];
    (vec(random::tuples(), 0..4), vec(vec(operation, 1..5), 2..=THREADS))
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

/// Runs the scripts at once, each in a thread with its own connection.
fn history(connections: &[Space], scripts: &[Vec<Operation>]) -> Vec<Call> {
    let clock = AtomicU64::new(0);
    let ready = AtomicUsize::new(0);
    let patience = if scripts.iter().flatten().any(sees_held) { Duration::ZERO } else { PATIENCE };
    let run = |thread: usize, space: &Space, script: &[Operation]| {
        let (mut hands, mut open, mut calls) = (Hands::default(), Vec::new(), Vec::new());
        ready.fetch_add(1, Ordering::SeqCst);
        while ready.load(Ordering::SeqCst) < scripts.len() {
            thread::yield_now(); // there may be fewer processors than threads
        }
        for operation in script {
            let Some(operation) = labelled(operation, thread, &mut open) else { continue };
            let call = timed(&clock, space, &mut hands, operation, patience);
            if let (Operation::Claim { label, .. }, Answer::Claimed { .. }) =
                (&call.operation, &call.answer)
            {
                open.push(label.clone());
            }
            calls.push(call);
        }
        // What is still claimed comes back when the history is over.
        (calls, hands)
    };
    let (calls, hands): (Vec<_>, Vec<Hands>) = thread::scope(|scope| {
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
    drop(hands);
    calls.concat()
}

/// The operation with a label that no other thread uses: a claim gets one of its own, and what follows is for the
/// last one that its thread has not ended. `None` if there is none.
fn labelled(operation: &Operation, thread: usize, open: &mut Vec<String>) -> Option<Operation> {
    let mut operation = operation.clone();
    match &mut operation {
        Operation::Claim { label, .. } => *label = format!("{thread}, {}", open.len()),
        Operation::PutUnder { label, .. } | Operation::Extend { label, .. } => {
            label.clone_from(open.last()?);
        }
        Operation::Done { label } | Operation::Abort { label, .. } => *label = open.pop()?,
        _ => {}
    }
    Some(operation)
}

/// One call, between two moments of the clock.
fn timed(
    clock: &AtomicU64,
    space: &Space,
    hands: &mut Hands,
    operation: Operation,
    patience: Duration,
) -> Call {
    let invoked = clock.fetch_add(1, Ordering::SeqCst);
    let patience = if may_wait(&operation) { patience } else { Duration::ZERO };
    let answer = perform(space, hands, &operation, patience);
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
