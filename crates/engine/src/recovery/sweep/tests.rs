//! A miss is not answered while somebody else cleans up (rule L5), and who cleans up may be overtaken by the next death.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tupelo_crashtest::{Child, fork, shared_words};
use tupelo_shm::{CreateOptions, Directory, Section, Segment};
use tupelo_tuple::{Condition, Field, PatternRef, TemplateRef};

use crate::base::error::{Error, Need};
use crate::base::layout::head;
use crate::recovery::provide::Gathering;
use crate::{ClaimTerms, Engine, LeaseTerms, Limits, Order, Want, WhenFull};

const TUPLE: [Field<'static>; 1] = [Field::Int(7)];

const LIMITS: Limits = Limits { size_bytes: 8 << 20, tuples_max: None, when_full: WhenFull::Error };

/// An engine over shared memory that has no name.
fn shared() -> Arc<Engine> {
    shared_within(&LIMITS)
}

fn shared_within(limits: &Limits) -> Arc<Engine> {
    let options = CreateOptions {
        reserve_bytes: Engine::reserve_bytes(limits.size_bytes),
        initial_commit_bytes: 0,
        create: true,
        fresh: true,
        mode: 0o600,
    };
    let (directory, layout) = (Directory::default(), Engine::segment_layout());
    let initialise = |mapping: &_| Engine::initialise(mapping, limits);
    let segment = Segment::nameless(&directory, &options, &layout, initialise).unwrap();
    Arc::new(Engine::new(segment).unwrap())
}

/// A process that has done `act` and goes on with nothing until it is killed, with what `act` gave it.
fn stays_after<R>(act: impl FnOnce() -> R) -> Child {
    let done = shared_words(1);
    let child = fork(|| {
        let _kept = act();
        done[0].store(1, Ordering::SeqCst);
        loop {
            std::thread::park();
        }
    });
    while done[0].load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    child
}

fn try_take(engine: &Engine) -> Result<Option<()>, Error> {
    let patterns = TUPLE.map(PatternRef::Actual);
    engine.try_take(&[TemplateRef::new(&patterns)], Order::Fifo, |_| Ok(()))
}

#[test]
fn a_miss_waits_for_a_sweeper_that_is_stopped_and_names_it_l5() {
    let engine = shared();
    engine.put(&TUPLE).unwrap();
    let sweeper =
        stays_after(|| Section::try_enter(&engine.memory, head::SWEEP_SCOPE).unwrap().unwrap());
    let claims = stays_after(|| {
        let patterns = TUPLE.map(PatternRef::Actual);
        let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
        let template = [TemplateRef::new(&patterns)];
        engine.try_claim(&template, Order::Fifo, &terms, |_| Ok::<_, Error>(())).unwrap().unwrap()
    });
    assert_eq!(try_take(&engine).unwrap(), None, "it is claimed");
    claims.kill();
    let stopped = sweeper.pid();
    let refused = try_take(&engine).unwrap_err();
    let named = matches!(&refused, Error::Memory(why) if **why == tupelo_shm::Error::Stalled { pid: stopped });
    assert!(named, "{refused:?}");
    sweeper.kill();
    assert_eq!(try_take(&engine).unwrap(), Some(()));
}

#[test]
fn a_part_of_a_wait_ends_beside_a_sweeper_that_is_stopped_l5() {
    let patterns = TUPLE.map(PatternRef::Actual);
    let condition = Condition::new("f[0] > 0").unwrap();
    for condition in [None, Some(&condition)] {
        let engine = shared();
        engine.put(&TUPLE).unwrap();
        let template = [TemplateRef { condition, ..TemplateRef::new(&patterns) }];
        let sweeper =
            stays_after(|| Section::try_enter(&engine.memory, head::SWEEP_SCOPE).unwrap().unwrap());
        let claims = stays_after(|| {
            let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
            engine
                .try_claim(&template, Order::Fifo, &terms, |_| Ok::<_, Error>(()))
                .unwrap()
                .unwrap()
        });
        let waiter = engine.waiter(&template, Want::Take).unwrap();
        claims.kill();
        // Its caller looks whether the user wants to end the call, and waits on.
        assert!(!waiter.wait_part(Duration::from_millis(1), || true).unwrap());
        sweeper.kill();
        assert!(waiter.wait(None).unwrap());
        waiter.finish(|_| Ok::<_, Error>(())).unwrap();
    }
}

#[test]
fn a_take_whose_time_is_over_has_seen_what_the_dead_held_l5() {
    let engine = shared();
    engine.put(&TUPLE).unwrap();
    let patterns = TUPLE.map(PatternRef::Actual);
    let template = [TemplateRef::new(&patterns)];
    let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
    let claims = stays_after(|| {
        engine.try_claim(&template, Order::Fifo, &terms, |_| Ok::<_, Error>(())).unwrap().unwrap()
    });
    let waiter = engine.waiter(&template, Want::Take).unwrap();
    // Somebody has just swept: those who wait do not, for some time.
    let next_sweep =
        crate::store::space_line(&engine.memory.view()).word(crate::store::NEXT_SWEEP_MS);
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32, as it is compared")]
    let now_ms = (tupelo_shm::clock::monotonic_coarse_ns() / 1_000_000) as u32;
    next_sweep.store(now_ms.wrapping_add(1_000_000), Ordering::SeqCst);
    claims.kill();
    assert!(waiter.wait(Some(Duration::from_millis(1))).unwrap());
}

#[test]
fn what_is_there_is_told_beside_a_process_that_is_stopped_over_it_o3() {
    let engine = shared();
    engine.put(&TUPLE).unwrap();
    engine.put(&TUPLE).unwrap();
    let patterns = TUPLE.map(PatternRef::Actual);
    let template = [TemplateRef::new(&patterns)];
    let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
    let claim =
        engine.try_claim(&template, Order::Fifo, &terms, |_| Ok::<_, Error>(())).unwrap().unwrap();
    let partition = crate::store::partition::scope_of(0);
    let inside = stays_after(|| Section::enter(&engine.memory, partition).unwrap());
    let present = engine.shapes_present().unwrap();
    assert_eq!(present.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1]);
    assert_eq!(engine.count_unseen().unwrap(), 1, "it is claimed");
    inside.kill();
    drop(claim);
    assert_eq!(engine.count_unseen().unwrap(), 0);
}

#[test]
fn what_is_beside_a_process_that_is_stopped_over_it_is_renewed_later_k2_l2() {
    let engine = shared();
    let length = Duration::from_secs(3600);
    let terms = LeaseTerms { lease: Some(length), after: None };
    let lease = engine.put_leased(&TUPLE, &terms).unwrap();
    let patterns = TUPLE.map(PatternRef::Actual);
    let template = [TemplateRef::new(&patterns)];
    let terms = ClaimTerms { ttl: length, attempts_max: None };
    let (claim, ()) =
        engine.try_claim(&template, Order::Fifo, &terms, |_| Ok::<_, Error>(())).unwrap().unwrap();
    let renewal = claim.renewal();
    let partition = crate::store::partition::scope_of(0);
    let inside = stays_after(|| Section::enter(&engine.memory, partition).unwrap());
    assert!(!renewal.try_prolong(length).unwrap());
    assert!(!engine.try_prolong(&lease, length).unwrap());
    inside.kill();
    assert!(renewal.try_prolong(length).unwrap());
    assert!(engine.try_prolong(&lease, length).unwrap());
}

#[test]
fn what_a_dead_thread_wrote_its_log_to_is_room_for_tuples_b1() {
    let engine = shared();
    engine.put(&TUPLE).unwrap();
    let logs = stays_after(|| {
        (0..5)
            .for_each(|_| crate::recovery::sweep::lengthen_log(&engine, Gathering::Waits).unwrap());
    });
    let bytes = vec![7; 60_000];
    let large = [Field::Bytes(&bytes)];
    while engine.put(&large).is_ok() {}
    let first = engine.room().unwrap();
    assert!(!first.wait(Some(Duration::ZERO)).unwrap());
    logs.kill();
    crate::recovery::sweep::settle_all(&engine).unwrap();
    assert!(first.is_ready(), "the first in the wait queue is told");
    first.give_up().unwrap();
    engine.put(&large).unwrap();
    engine.check().unwrap();
}

#[test]
fn a_place_in_line_that_could_not_be_left_is_left_later_t5() {
    let engine = shared();
    let patterns = TUPLE.map(PatternRef::Actual);
    let template = [TemplateRef::new(&patterns)];
    engine.put(&TUPLE).unwrap();
    assert_eq!(try_take(&engine).unwrap(), Some(()));
    let waiter = engine.waiter(&template, Want::Take).unwrap();
    let partition = crate::store::partition::scope_of(0);
    let inside = stays_after(|| Section::enter(&engine.memory, partition).unwrap());
    let stopped = inside.pid();
    let refused = waiter.give_up().unwrap_err();
    let named = matches!(&refused, Error::Memory(why) if **why == tupelo_shm::Error::Stalled { pid: stopped });
    assert!(named, "{refused:?}");
    inside.kill();
    // For the one who is not there any more.
    engine.put(&TUPLE).unwrap();
    crate::recovery::sweep::sweep_if_due(&engine).unwrap();
    assert_eq!(try_take(&engine).unwrap(), Some(()));
    assert_eq!(engine.check().unwrap().waiters, 0);
}

#[test]
fn who_keeps_the_time_does_not_wait_for_who_is_stopped_where_something_is_due_t6() {
    let engine = shared();
    let at_once = LeaseTerms { lease: Some(Duration::from_millis(1)), after: None };
    engine.put_leased(&TUPLE, &at_once).unwrap();
    let elsewhere = [PatternRef::Actual(Field::Str("elsewhere"))];
    let waiter = engine.waiter(&[TemplateRef::new(&elsewhere)], Want::Take).unwrap();
    let partition = crate::store::partition::scope_of(0);
    let inside = stays_after(|| Section::enter(&engine.memory, partition).unwrap());
    while !crate::waiters::timer_leader::anything_is_due(&engine) {
        std::thread::yield_now();
    }
    assert!(!waiter.wait(Some(Duration::from_millis(50))).unwrap());
    assert!(
        crate::waiters::timer_leader::anything_is_due(&engine),
        "that is left to who is inside"
    );
    engine.put(&[Field::Str("elsewhere")]).unwrap();
    assert!(waiter.wait(None).unwrap());
    waiter.finish(|_| Ok::<_, Error>(())).unwrap();
    let waiter = engine.waiter(&[TemplateRef::new(&elsewhere)], Want::Take).unwrap();
    inside.kill();
    while crate::waiters::timer_leader::anything_is_due(&engine) {
        assert!(!waiter.wait(Some(Duration::from_millis(1))).unwrap());
    }
    engine.check().unwrap();
}

#[test]
fn what_the_dead_held_may_be_dropped_and_its_lease_cancelled_l5() {
    let limits = Limits { tuples_max: Some(2), when_full: WhenFull::DropOldest, ..LIMITS };
    let engine = shared_within(&limits);
    let terms = LeaseTerms { lease: Some(Duration::from_secs(3600)), after: None };
    let leases = [7, 7].map(|value| engine.put_leased(&[Field::Int(value)], &terms).unwrap());
    let patterns = TUPLE.map(PatternRef::Actual);
    let template = [TemplateRef::new(&patterns)];
    let claim = || {
        let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
        engine.try_claim(&template, Order::Fifo, &terms, |_| Ok::<_, Error>(())).unwrap().unwrap()
    };
    let claims = stays_after(|| [claim(), claim()]);
    assert!(matches!(engine.put(&TUPLE), Err(Error::SpaceFull(_))));
    assert!(matches!(engine.cancel(&leases[0]), Err(Error::LeaseHeld { .. })));
    claims.kill();
    engine.put(&TUPLE).unwrap();
    let claims = stays_after(claim);
    assert!(matches!(engine.cancel(&leases[1]), Err(Error::LeaseHeld { .. })));
    claims.kill();
    engine.cancel(&leases[1]).unwrap();
    engine.check().unwrap();
}

#[cfg(target_arch = "x86_64")]
#[test]
fn who_dies_getting_a_node_while_others_are_cleaned_up_leaves_it_free_once_c1() {
    use tupelo_crashtest::{Experiment, Region, Script, kill_this_process};

    use crate::waiters::{self, OWNER, nodes};

    let engine = shared();
    engine.put(&TUPLE).unwrap();
    crate::waiters::nodes::free_node(
        &engine,
        crate::recovery::node_memory::claim_node(&engine).unwrap(),
    )
    .unwrap();

    let sweeper = Script::new(
        || engine.memory.thread().map(|_| ()).unwrap(),
        |()| crate::recovery::sweep::settle_all(&engine).unwrap(),
    );
    // Killed inside of its section, in which the wait node is its own already.
    let gets_node = Script::new(
        || {
            let mut section = Section::enter(&engine.memory, head::NODES_SCOPE).unwrap();
            let (line, owner) = (nodes::line(&section), section.thread().participant() + 1);
            let node = waiters::node(section.view(), line.load(nodes::FIRST_FREE));
            section.set(node, OWNER, owner);
            section
        },
        |_| kill_this_process(),
    );
    let experiment = Experiment::new(Region::of(engine.segment().mapping())).with_kills(400);
    let summary = experiment.interrupt_at_every_instruction(&sweeper, &gets_node, |_| {
        crate::recovery::sweep::settle_all(&engine).unwrap();
        engine.check().unwrap();
        let mut nodes =
            [(); 3].map(|()| crate::recovery::node_memory::claim_node(&engine).unwrap());
        nodes.sort_unstable();
        assert!(nodes.windows(2).all(|pair| pair[0] != pair[1]), "twice free: {nodes:?}");
    });
    assert!(summary.interruptions > 100, "{summary:?}");
}

/// Numbers of threads come again: that of the dead one is the sweeper's.
#[test]
fn who_has_the_number_of_a_dead_thread_cleans_up_after_it_c1_l5() {
    let engine = shared();
    engine.put(&TUPLE).unwrap();
    // Where a slot has the number of its thread, and when that began.
    let (number, start_time) = (4, 16);
    let own = engine.memory.thread().unwrap().slot().load(number);
    let dead = fork(|| {
        engine.put(&TUPLE).unwrap();
        // As if the numbers had wrapped around since.
        let slot = engine.memory.thread().unwrap().slot();
        slot.init64(start_time, 1);
        slot.init(number, own);
        std::process::abort();
    });
    assert_eq!(dead.wait(), tupelo_crashtest::Exit::Killed(6));
    assert!(engine.memory.somebody_died());
    crate::recovery::sweep::settle_all(&engine).unwrap();
    assert!(!engine.memory.somebody_died());
}

#[test]
fn what_the_dead_held_is_back_if_who_gave_it_back_dies_over_it_c1_l5() {
    let engine = shared();
    let bytes = vec![7; 60_000];
    engine.put(&[Field::Bytes(&bytes)]).unwrap();
    let patterns = [PatternRef::Actual(Field::Bytes(&bytes))];
    let template = [TemplateRef::new(&patterns)];
    let is_taken = shared_words(1);
    let killed = fork(|| {
        let visitor = |_: tupelo_tuple::TupleView<'_>| -> Result<(), Error> {
            is_taken[0].store(1, Ordering::SeqCst);
            loop {
                std::thread::park();
            }
        };
        engine.try_take(&template, Order::Fifo, visitor).unwrap();
    });
    while is_taken[0].load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    killed.kill();
    // Killed before it is certain: the dead thread seems to have nothing in hands.
    let sweeper = stays_after(|| {
        let (slot, _) = engine.memory.dead_slots()[0];
        let mut section =
            Section::enter(&engine.memory, crate::store::partition::scope_of(0)).unwrap();
        section.set(slot, tupelo_shm::ENGINE_WORDS, 0);
        section
    });
    sweeper.kill();
    crate::recovery::sweep::settle_all(&engine).unwrap();
    let taken = engine.try_take(&template, Order::Fifo, |_| Ok::<_, Error>(()));
    assert_eq!(taken.unwrap(), Some(()));
    assert_eq!(engine.check().unwrap().held(), 0);
}

#[test]
fn a_large_tuple_that_could_not_be_let_go_is_back_as_soon_as_that_goes_t5() {
    let engine = shared();
    let bytes = vec![7; 60_000];
    engine.put(&[Field::Bytes(&bytes)]).unwrap();
    let patterns = [PatternRef::Actual(Field::Bytes(&bytes))];
    let template = [TemplateRef::new(&patterns)];
    let partition = crate::store::partition::scope_of(0);
    let mut inside = None;
    let refused = engine.try_take(&template, Order::Fifo, |_| {
        // The tuple is in this thread's hands.
        inside = Some(stays_after(|| Section::enter(&engine.memory, partition).unwrap()));
        Ok::<_, Error>(())
    });
    let inside = inside.unwrap();
    let (refused, stopped) = (refused.unwrap_err(), inside.pid());
    let named = matches!(&refused, Error::Memory(why) if **why == tupelo_shm::Error::Stalled { pid: stopped });
    assert!(named, "{refused:?}");
    inside.kill();
    let thread = engine.memory.thread().unwrap();
    let in_hands = || thread.slot().load(tupelo_shm::ENGINE_WORDS);
    let sweeper =
        stays_after(|| Section::try_enter(&engine.memory, head::SWEEP_SCOPE).unwrap().unwrap());
    crate::recovery::abandoned::leave_abandoned(&engine);
    assert_ne!(in_hands(), 0, "not beside a sweeper");
    sweeper.kill();
    crate::recovery::abandoned::leave_abandoned(&engine);
    assert_eq!(in_hands(), 0);
    let taken = engine.try_take(&template, Order::Fifo, |_| Ok::<_, Error>(()));
    assert_eq!(taken.unwrap(), Some(()));
    assert_eq!(engine.check().unwrap().held(), 0);
}

#[test]
fn memory_is_looked_for_past_one_who_was_stopped_where_the_dead_held_something_b1_l5() {
    let engine = shared();
    engine.put(&TUPLE).unwrap();
    let patterns = TUPLE.map(PatternRef::Actual);
    let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
    let template = [TemplateRef::new(&patterns)];
    let claims = stays_after(|| {
        engine.try_claim(&template, Order::Fifo, &terms, |_| Ok::<_, Error>(())).unwrap().unwrap()
    });
    crate::testing::fill(&engine);
    claims.kill();
    let partition = crate::store::partition::scope_of(0);
    let inside = stays_after(|| Section::enter(&engine.memory, partition).unwrap());
    let committed =
        crate::store::arena::line(&engine.memory.view()).load(crate::store::arena::COMMITTED);
    let need = Need::Extents { count: 1, end: engine.layout.extents_max, committed };
    let refused =
        crate::recovery::provide::provide_late(&engine, need, Gathering::PassesOver).unwrap_err();
    assert!(matches!(refused, Error::SpaceFull(_)), "{refused:?}");
    assert!(!engine.memory.is_waited_for(partition));
    inside.kill();
    assert_eq!(try_take(&engine).unwrap(), Some(()));
}

/// Its thread may live, and take another large tuple at any moment.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_word_of_who_had_a_large_tuple_is_free_only_when_that_is_certain_c1() {
    use tupelo_crashtest::{Experiment, Region, Script};

    let engine = shared();
    let bytes = vec![7; 60_000];
    engine.put(&[Field::Bytes(&bytes)]).unwrap();
    let patterns = [PatternRef::Actual(Field::Bytes(&bytes))];
    let taken = engine.try_take(&[TemplateRef::new(&patterns)], Order::Fifo, |_| {
        let view = engine.memory.view();
        let slot = view.span(view.offset_of(engine.memory.thread().unwrap().slot()));
        let word = tupelo_shm::ENGINE_WORDS;
        let settles = Script::new(
            || engine.memory.thread().map(|_| ()).unwrap(),
            |()| {
                crate::recovery::sweep::settle_in_flight(&engine, (slot, word), || {
                    crate::store::in_flight::named(slot, word)
                })
                .unwrap();
            },
        );
        let experiment = Experiment::new(Region::of(engine.segment().mapping())).with_kills(400);
        let summary = experiment.kill_at_every_instruction(&settles, |_| {
            let was_free = slot.load(word) == 0;
            crate::recovery::sweep::settle_all(&engine).unwrap();
            drop(Section::enter(&engine.memory, crate::store::partition::scope_of(0)).unwrap());
            assert!(!was_free || slot.load(word) == 0, "it names what another has by now");
        });
        assert!(summary.kills > 100, "{summary:?}");
        Ok::<_, Error>(())
    });
    assert_eq!(taken.unwrap(), Some(()));
    engine.check().unwrap();
}

#[test]
fn what_a_dead_transaction_had_read_is_handed_to_nobody_after_its_lease_l1() {
    let engine = shared();
    let hour = Duration::from_secs(3600);
    let lease = engine.put_leased(&TUPLE, &LeaseTerms { lease: Some(hour), after: None }).unwrap();
    let patterns = TUPLE.map(PatternRef::Actual);
    let template = [TemplateRef::new(&patterns)];
    let reads = stays_after(|| {
        let mut transaction = crate::Transaction::begin([Arc::clone(&engine)], hour).unwrap();
        transaction.try_read(0, &template, Order::Fifo, |_| Ok::<_, Error>(())).unwrap().unwrap();
        transaction
    });
    let waiter = engine.waiter(&template, Want::Take).unwrap();
    engine.renew(&lease, Some(Duration::from_millis(1))).unwrap();
    let view = engine.memory.view();
    while !crate::store::partition::is_behind(crate::store::partition::Partition::of_shape(
        &view, 0,
    )) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Nobody has been there since.
    reads.kill();
    crate::recovery::sweep::settle_all(&engine).unwrap();
    assert!(!waiter.wait(Some(Duration::ZERO)).unwrap(), "its lease has ended");
    assert!(!engine.present(&template).unwrap());
    waiter.give_up().unwrap();
}

#[test]
fn who_is_blocked_gets_the_oldest_of_what_the_dead_held_t2_l5() {
    let engine = shared();
    (1..=6).for_each(|number| engine.put(&[Field::Int(number)]).unwrap());
    let hour = Duration::from_secs(3600);
    let dies = stays_after(|| {
        let mut transaction = crate::Transaction::begin([Arc::clone(&engine)], hour).unwrap();
        for number in [5, 2, 6, 1, 4, 3] {
            let patterns = [PatternRef::Actual(Field::Int(number))];
            let template = [TemplateRef::new(&patterns)];
            let visitor = |_: tupelo_tuple::TupleView<'_>| Ok::<_, Error>(());
            let is_there = if number % 2 == 0 {
                transaction.try_read(0, &template, Order::Fifo, visitor).unwrap()
            } else {
                transaction.try_take(0, &template, Order::Fifo, visitor).unwrap()
            };
            assert_eq!(is_there, Some(()));
        }
        transaction
    });
    let patterns = [PatternRef::Kinds(tupelo_tuple::KindSet::of(tupelo_tuple::Kind::Int))];
    let template = [TemplateRef::new(&patterns)];
    let waiters = [(); 6].map(|()| engine.waiter(&template, Want::Take).unwrap());
    dies.kill();
    crate::recovery::sweep::settle_all(&engine).unwrap();
    let served = waiters.map(|waiter| {
        let number = |tuple: tupelo_tuple::TupleView<'_>| match tuple.field(0) {
            Some(Field::Int(number)) => Ok::<_, Error>(number),
            other => panic!("no number: {other:?}"),
        };
        waiter.finish(number).unwrap()
    });
    assert_eq!(served, [1, 2, 3, 4, 5, 6]);
}
