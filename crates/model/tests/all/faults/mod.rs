//! Engines that are broken on purpose, one fault each: the cases of `conformance/` object to every one, and
//! so does the comparison with the model. A test that can not fail proves nothing.

mod events;
mod held;
mod transactions;

use std::collections::BTreeMap;
use std::path::Path;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngSeed, TestRunner};
use tupelo_model::conformance::{Subject, read_folder};
use tupelo_model::{
    Answer, Event, Limits, Operation, Order, Place, Space, State, Template, Tuple, Want, random,
    run_against_model,
};

macro_rules! faults {
    ($($fault:ident),* $(,)?) => {
        /// What is wrong with an engine; nothing, to see that it is the fault to which is objected.
        #[derive(Clone, Copy, Debug, PartialEq)]
        enum Fault { Nothing, $($fault),* }
        const FAULTS: &[Fault] = &[$(Fault::$fault),*];
    };
}
faults! {
    PutForgets,
    PutPutsTwice,
    PutAllStopsHalfWay,
    SpaceHasNoLimit,
    TakeLeavesTheTuple,
    ReadTakesTheTuple,
    FifoIsLifo,
    LifoIsFifo,
    MaxIsMin,
    CountCountsHeldTuples,
    PresentOverlooksHeldTuples,
    LimitIsIgnored,
    TakeManyTakesTooFew,
    SwapKeepsTheOldTuple,
    SwapPutsWhenNothingMatches,
    PutIfAbsentAlwaysPuts,
    MoveLeavesTheTuples,
    MoveStopsHalfWay,
    CopyTakesTheTuples,
    WaitersAreNotServed,
    WaitersAreServedLastFirst,
    CancelLosesTheTuple,
    CancelMakesTheTupleTheYoungest,
    ScanMissesOne,
    ScanReturnsOneTwice,
    LeasesNeverEnd,
    DelaysAreIgnored,
    RenewalsAreIgnored,
    CancelledLeasesGoOn,
    ExpiredLeasesAreRenewed,
    ClaimsNeverRunOut,
    ExtensionsAreIgnored,
    AttemptsAreNotCounted,
    AttemptsHaveNoLimit,
    FencesDoNotIncrease,
    DoneKeepsTheTuple,
    LateDoneIsAccepted,
    AbortLosesTheTuple,
    AbortMakesTheTupleTheYoungest,
    PutsUnderAClaimAppearAtOnce,
    PutsUnderAClaimAreForgotten,
    DeadTuplesAreForgotten,
    RequeueLosesTheTuples,
    PutsInsideAreVisibleAtOnce,
    PutsInsideAreForgotten,
    OwnPutsAreNotSeen,
    TakesInsideAreVisible,
    ReadsLockNothing,
    ReadsHideTheTuple,
    CountsLock,
    OwnReadsAreNotTaken,
    CommitStopsHalfWay,
    CommitKeepsWhatWasTaken,
    RollBackLosesWhatWasTaken,
    RollBackMakesTheTuplesTheYoungest,
    RollBackKeepsThePuts,
    RollBackKeepsTheLocks,
    TransactionsNeverEnd,
    EndedTransactionsGoOn,
    CommitsAreNotHeard,
    EventsAreToldTwice,
    EventsAreLost,
    EventsAreReversed,
    EventNumbersBeginWithZero,
    AllKindsAreTold,
    SubscriptionsBeginLate,
}

/// The model with a fault.
struct Broken {
    fault: Fault,
    state: State,
    /// The calls that have not returned, in the order in which they came.
    calls: BTreeMap<String, (Place, Operation)>,
    order_of_calls: Vec<String>,
    /// Calls that nobody will ever serve.
    forgotten: Vec<String>,
    /// The claims, and what they hold.
    claims: BTreeMap<String, (Place, Tuple)>,
    /// What open transactions have taken and put.
    inside: Vec<transactions::Deed>,
    /// The subscriptions, and what they were told that nobody has picked up.
    heard: BTreeMap<String, Vec<Event>>,
    /// Subscriptions that have not begun yet.
    late: BTreeMap<String, (Place, Operation)>,
}

impl Broken {
    fn new(fault: Fault, limits: Limits) -> Self {
        let limits = if fault == Fault::SpaceHasNoLimit { Limits::default() } else { limits };
        let space = || Space::with_limits(limits);
        Self {
            fault,
            state: State::new(space(), space()),
            calls: BTreeMap::new(),
            order_of_calls: Vec::new(),
            forgotten: Vec::new(),
            claims: BTreeMap::new(),
            inside: Vec::new(),
            heard: BTreeMap::new(),
            late: BTreeMap::new(),
        }
    }

    /// Remembers who waits, for the faults that need to know.
    fn note(&mut self, at: Place, operation: &Operation, answer: &Answer) {
        match operation {
            Operation::Inside { operation, .. } if matches!(answer, Answer::Tuple(_)) => {
                self.note(at, operation, answer);
            }
            Operation::Start { label, .. } => {
                self.calls.insert(label.clone(), (at, operation.clone()));
                self.order_of_calls.push(label.clone());
            }
            Operation::Finish { label }
            | Operation::Cancel { label }
            | Operation::FinishClaim { call: label, .. } => {
                self.calls.remove(label);
                self.order_of_calls.retain(|other| other != label);
                self.forgotten.retain(|other| other != label);
            }
            _ => {}
        }
    }

    /// Lets everybody who waits step out of the queue, and in again the other way round.
    fn reverse_the_queue(&mut self) {
        let mut waiting = Vec::new();
        for label in self.order_of_calls.clone() {
            let (at, start) = self.calls[&label].clone();
            let served = Operation::Served { label: label.clone() };
            if matches!(self.state.perform(at, &served), Answer::Flag(false)) {
                self.state.perform(at, &Operation::Cancel { label });
                waiting.push((at, start));
            }
        }
        for (at, start) in waiting.into_iter().rev() {
            self.state.perform(at, &start);
        }
    }

    fn put_one_by_one(&mut self, at: Place, tuples: &[Tuple]) -> Answer {
        for tuple in tuples {
            let refused = self.state.perform(at, &Operation::Put { tuple: tuple.clone() });
            if matches!(refused, Answer::Refused(_)) {
                return refused;
            }
        }
        Answer::Count(tuples.len() as u64)
    }

    /// The tuple that a cancelled take held, taken from it.
    fn seized(&mut self, at: Place, label: &str) -> Option<Tuple> {
        let served = Operation::Served { label: label.to_owned() };
        let takes = self
            .calls
            .get(label)
            .is_some_and(|(_, start)| matches!(start, Operation::Start { want: Want::Take, .. }));
        if takes && matches!(self.state.perform(at, &served), Answer::Flag(true)) {
            return self
                .state
                .perform(at, &Operation::Finish { label: label.to_owned() })
                .into_tuple();
        }
        None
    }

    /// The operation as the fault has it, or `None` if the fault is not in its arguments.
    fn distorted(&self, operation: &Operation) -> Option<Operation> {
        use Operation as O;
        Some(match (self.fault, operation.clone()) {
            (Fault::TakeLeavesTheTuple, O::TryTake { template, order }) => {
                O::TryRead { template, order }
            }
            (Fault::ReadTakesTheTuple, O::TryRead { template, order }) => {
                O::TryTake { template, order }
            }
            (Fault::FifoIsLifo, O::TryTake { template, order: Order::Fifo }) => {
                O::TryTake { template, order: Order::Lifo }
            }
            (Fault::LifoIsFifo, O::TryTake { template, order: Order::Lifo }) => {
                O::TryTake { template, order: Order::Fifo }
            }
            (Fault::MaxIsMin, O::TryTake { template, order: Order::Max(field) }) => {
                O::TryTake { template, order: Order::Min(field) }
            }
            (Fault::LimitIsIgnored, O::ReadAll { template, .. }) => {
                O::ReadAll { template, limit: None }
            }
            (Fault::LimitIsIgnored, O::TakeAll { template, .. }) => {
                O::TakeAll { template, limit: None }
            }
            (Fault::TakeManyTakesTooFew, O::TryTakeMany { template, at_most, .. }) => {
                O::TryTakeMany { template, at_least: 0, at_most }
            }
            (Fault::MoveLeavesTheTuples, O::MoveTo { template }) => O::CopyTo { template },
            (Fault::CopyTakesTheTuples, O::CopyTo { template }) => O::MoveTo { template },
            (_, operation) => return self.distorted_if_held(operation),
        })
    }

    /// The answer as the fault has it, or `None` if the fault is not in this operation.
    fn faulty_answer(&mut self, at: Place, operation: &Operation) -> Option<Answer> {
        use Operation as O;
        let all = |template: &Template| O::TakeAll { template: template.clone(), limit: None };
        Some(match (self.fault, operation) {
            (Fault::PutForgets, O::Put { .. }) => Answer::Done,
            (Fault::PutPutsTwice, O::Put { .. }) => {
                self.state.perform(at, operation);
                self.state.perform(at, operation)
            }
            (Fault::PutAllStopsHalfWay, O::PutAll { tuples }) => self.put_one_by_one(at, tuples),
            (Fault::CountCountsHeldTuples, O::Count { template }) => {
                let present = self.state.perform(at, &O::Present { template: template.clone() });
                match (self.state.perform(at, operation), present) {
                    (Answer::Count(0), Answer::Flag(true)) => Answer::Count(1),
                    (count, _) => count,
                }
            }
            (Fault::PresentOverlooksHeldTuples, O::Present { template }) => {
                let count = self.state.perform(at, &O::Count { template: template.clone() });
                Answer::Flag(!matches!(count, Answer::Count(0)))
            }
            (Fault::SwapKeepsTheOldTuple, O::TrySwap { template, to }) => {
                let (template, order) = (template.clone(), Order::Fifo);
                let old = self.state.perform(at, &O::TryRead { template, order });
                if matches!(old, Answer::Tuple(_)) {
                    self.state.perform(at, &O::Put { tuple: to.clone() });
                }
                old
            }
            (Fault::SwapPutsWhenNothingMatches, O::TrySwap { to, .. }) => {
                let old = self.state.perform(at, operation);
                if matches!(old, Answer::Nothing) {
                    self.state.perform(at, &O::Put { tuple: to.clone() });
                }
                old
            }
            (Fault::PutIfAbsentAlwaysPuts, O::PutIfAbsent { tuple, .. }) => {
                self.state.perform(at, &O::Put { tuple: tuple.clone() });
                Answer::Flag(true)
            }
            (Fault::MoveStopsHalfWay, O::MoveTo { template }) => {
                let Answer::Tuples(tuples) = self.state.perform(at, &all(template)) else {
                    return None;
                };
                self.put_one_by_one(at.opposite(), &tuples)
            }
            _ => return self.faulty_wait(at, operation),
        })
    }

    /// The same for calls and scans that are under way.
    fn faulty_wait(&mut self, at: Place, operation: &Operation) -> Option<Answer> {
        use Operation as O;
        Some(match (self.fault, operation) {
            (Fault::WaitersAreNotServed, O::Start { label, template, .. }) => {
                let count = self.state.perform(at, &O::Count { template: template.clone() });
                if !matches!(count, Answer::Count(0)) {
                    return None;
                }
                self.forgotten.push(label.clone());
                Answer::Done
            }
            (Fault::WaitersAreNotServed, O::Served { label }) if self.forgotten.contains(label) => {
                Answer::Flag(false)
            }
            (Fault::WaitersAreNotServed, O::Cancel { label }) if self.forgotten.contains(label) => {
                Answer::Done
            }
            (Fault::WaitersAreServedLastFirst, O::Put { .. }) => {
                self.reverse_the_queue();
                return None;
            }
            (Fault::CancelLosesTheTuple, O::Cancel { label }) => {
                self.seized(at, label)?;
                Answer::Done
            }
            (Fault::CancelMakesTheTupleTheYoungest, O::Cancel { label }) => {
                let tuple = self.seized(at, label)?;
                self.state.perform(self.calls[label].0, &O::Put { tuple })
            }
            (Fault::ScanMissesOne, O::EndScan { .. }) => {
                let Answer::Unordered(mut tuples) = self.state.perform(at, operation) else {
                    return None;
                };
                tuples.pop();
                Answer::Unordered(tuples)
            }
            (Fault::ScanReturnsOneTwice, O::EndScan { .. }) => {
                let Answer::Unordered(mut tuples) = self.state.perform(at, operation) else {
                    return None;
                };
                tuples.extend(tuples.first().cloned());
                Answer::Unordered(tuples)
            }
            _ => return self.faulty_if_held(at, operation),
        })
    }
}

impl Subject for Broken {
    fn perform(&mut self, at: Place, operation: &Operation) -> Answer {
        let operation = self.distorted(operation).unwrap_or_else(|| operation.clone());
        let faulty = self.faulty_answer(at, &operation);
        let answer = faulty.unwrap_or_else(|| self.state.perform(at, &operation));
        self.note(at, &operation, &answer);
        self.note_claim(at, &operation, &answer);
        self.note_inside(at, &operation, &answer);
        self.note_subscription(&operation);
        answer
    }
}

#[test]
fn the_cases_object_to_every_fault() {
    let cases = read_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance"));
    for fault in FAULTS {
        let objects =
            cases.iter().any(|case| case.run(&mut Broken::new(*fault, case.limits)).is_err());
        assert!(objects, "no case objects when {fault:?}");
    }
}

#[test]
fn no_case_objects_when_nothing_is_wrong() {
    let cases = read_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance"));
    for case in cases {
        let run = case.run(&mut Broken::new(Fault::Nothing, case.limits));
        assert!(run.is_ok(), "{}", run.unwrap_err());
    }
}

#[test]
fn the_comparison_with_the_model_objects_to_every_fault() {
    let inputs = (random::limits(), random::operations(40));
    for fault in FAULTS {
        let config = Config { rng_seed: RngSeed::Fixed(7), ..Config::default() };
        let mut runner = TestRunner::new(config);
        let objects = (0..30_000).any(|_| {
            let (limits, operations) = inputs.new_tree(&mut runner).unwrap().current();
            let space = || Space::with_limits(limits);
            let model = State::new(space(), space());
            run_against_model(&mut Broken::new(*fault, limits), model, &operations).is_err()
        });
        assert!(objects, "the model agrees when {fault:?}");
    }
}

#[test]
fn the_model_agrees_when_nothing_is_wrong() {
    random::check(500, &(random::limits(), random::operations(60)), |(limits, operations)| {
        let space = || Space::with_limits(limits);
        let model = State::new(space(), space());
        run_against_model(&mut Broken::new(Fault::Nothing, limits), model, &operations)
            .map_err(|objection| objection.to_string())
    });
}

#[test]
fn the_model_agrees_with_itself() {
    random::check(500, &(random::limits(), random::operations(60)), |(limits, operations)| {
        let space = || Space::with_limits(limits);
        let mut subject = State::new(space(), space());
        let model = subject.clone();
        run_against_model(&mut subject, model, &operations)
            .map_err(|objection| objection.to_string())
    });
}

/// An engine that does anything that the rules allow, by chance.
struct Capricious {
    state: State,
    chance: u64,
}

impl Subject for Capricious {
    fn perform(&mut self, at: Place, operation: &Operation) -> Answer {
        let mut outcomes = self.state.outcomes(at, operation);
        // A linear congruence (Knuth's MMIX); its high bits choose.
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let chosen = usize::try_from(self.chance >> 33).expect("31 bits") % outcomes.len();
        let (answer, after) = outcomes.swap_remove(chosen);
        self.state = after;
        match answer {
            Answer::Scanned(scanned) => Answer::Unordered(scanned.least()),
            answer => answer,
        }
    }
}

#[test]
fn the_model_agrees_with_whatever_the_rules_allow() {
    let inputs = (random::limits(), random::operations(60), proptest::num::u64::ANY);
    random::check(500, &inputs, |(limits, operations, chance)| {
        let space = || Space::with_limits(limits);
        let model = State::new(space(), space());
        let mut subject = Capricious { state: model.clone(), chance };
        run_against_model(&mut subject, model, &operations)
            .map_err(|objection| objection.to_string())
    });
}
