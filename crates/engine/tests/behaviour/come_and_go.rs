//! Processes and threads that come and go leave nothing behind that others would miss (L5, B2, C1).

use std::cell::RefCell;
use std::sync::Arc;

use tupelo_crashtest::{Exit, fork};
use tupelo_engine::{CreateOptions, Engine, Error, Limits, Order, Outcome, Want};
use tupelo_shm::{Directory, PARTICIPANTS_MAX, Segment, THREADS_MAX};
use tupelo_tuple::{Field, Kind, KindSet, PatternRef, TemplateRef, TupleView};

const INT: PatternRef<'static> = PatternRef::Kinds(KindSet::of(Kind::Int));
const ANY: PatternRef<'static> = PatternRef::Kinds(KindSet::ALL);
const SIZE_BYTES: u64 = 2 << 20;

/// The name of a space that ends with the test.
struct Name(String);

impl Name {
    fn new(test: &str) -> Self {
        Self(format!("tupelo-test-{test}-{}", std::process::id()))
    }

    /// A handle of its own, as another program would have it.
    fn attach(&self) -> Arc<Engine> {
        let options = CreateOptions {
            reserve_bytes: Engine::reserve_bytes(SIZE_BYTES),
            initial_commit_bytes: 0,
            create: true,
            fresh: false,
            mode: 0o600,
        };
        let layout = Engine::segment_layout();
        let initialise = |mapping: &_| {
            Engine::initialise(mapping, &Limits { size_bytes: SIZE_BYTES, ..Limits::default() })
        };
        let directory = Directory::default();
        let segment =
            Segment::create_or_attach(&directory, &self.0, &options, &layout, initialise).unwrap();
        Arc::new(Engine::new(segment).unwrap())
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let _ = Directory::default().remove(&self.0);
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a visitor")]
fn first(tuple: TupleView<'_>) -> Result<i64, Error> {
    match tuple.field(0) {
        Some(Field::Int(value)) => Ok(value),
        other => panic!("{other:?}"),
    }
}

#[test]
fn any_number_of_processes_may_come_and_go_though_nobody_waits_b2() {
    let name = Name::new("come-and-go");
    let space = name.attach();
    space.put(&[Field::Int(0)]).unwrap();
    for number in 0..i64::try_from(PARTICIPANTS_MAX).unwrap() + 500 {
        let guest = fork(|| {
            let space = name.attach();
            let taken = space.try_take(&[TemplateRef::new(&[INT])], Order::Fifo, first).unwrap();
            space.put(&[Field::Int(taken.unwrap() + 1)]).unwrap();
            assert_eq!(taken, Some(number));
            if number % 2 == 0 {
                std::process::abort();
            }
        });
        let expected = if number % 2 == 0 { Exit::Killed(6) } else { Exit::Done };
        assert_eq!(guest.wait(), expected);
    }
    space.check().unwrap();
}

/// Whoever would miss otherwise sees at once what a dead process held.
#[test]
fn what_the_dead_held_is_there_for_the_next_who_looks_l5() {
    let name = Name::new("held");
    let space = name.attach();
    let looks: [fn(&Engine) -> Option<i64>; 5] = [
        |space| space.try_take(&[TemplateRef::new(&[INT])], Order::Fifo, first).unwrap(),
        |space| space.try_read(&[TemplateRef::new(&[INT])], Order::Lifo, first).unwrap(),
        |space| space.try_take(&[TemplateRef::new(&[ANY])], Order::Fifo, first).unwrap(),
        |space| space.try_read(&[TemplateRef::new(&[ANY])], Order::Random, first).unwrap(),
        |space| space.try_take(&[TemplateRef::new(&[ANY])], Order::Max(0), first).unwrap(),
    ];
    for (number, look) in (0..).zip(looks) {
        space.put(&[Field::Int(number)]).unwrap();
        let dying = fork(|| {
            let space = name.attach();
            let waiter = space.waiter(&[TemplateRef::new(&[INT])], Want::Take).unwrap();
            assert!(waiter.wait(None).unwrap(), "it was handed over");
            std::process::abort();
        });
        assert_eq!(dying.wait(), Exit::Killed(6));
        assert_eq!(look(&space), Some(number));
        space.take_all(&[TemplateRef::new(&[INT])], None, first).unwrap();
    }
    assert_eq!(space.check().unwrap().held(), 0);
}

/// Whoever waits gets it though nothing else happens in the space.
#[test]
fn what_the_dead_held_comes_to_who_waits_l5() {
    let name = Name::new("held-for-waiters");
    let space = name.attach();
    space.put(&[Field::Int(1)]).unwrap();
    let dying = fork(|| {
        let space = name.attach();
        let waiter = space.waiter(&[TemplateRef::new(&[INT])], Want::Take).unwrap();
        assert!(waiter.wait(None).unwrap(), "it was handed over");
        std::process::abort();
    });
    assert_eq!(dying.wait(), Exit::Killed(6));
    let template = [INT];
    let waits = space.take_or_wait(&[TemplateRef::new(&template)], Order::Fifo, first).unwrap();
    let Outcome::Waits(waiter) = waits else { panic!("it is in a dead hand") };
    assert!(waiter.wait(None).unwrap());
    assert_eq!(waiter.finish(first).unwrap(), 1);
    assert_eq!(space.check().unwrap().held(), 0);
}

/// A process keeps the place that it waited in last. After a fork that is the parent's.
#[test]
fn parent_and_child_wait_in_places_of_their_own() {
    let name = Name::new("places");
    let space = name.attach();
    let wait = |number| {
        let patterns = [PatternRef::Actual(Field::Int(number))];
        space.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap()
    };
    drop(wait(0));
    let child = fork(|| {
        let place = wait(1);
        space.put(&[Field::Int(2)]).unwrap();
        assert_eq!(place.finish(first).unwrap(), 1);
    });
    let place = wait(2);
    assert!(place.wait(None).unwrap());
    space.put(&[Field::Int(1)]).unwrap();
    assert_eq!(child.wait(), Exit::Done);
    assert_eq!(place.finish(first).unwrap(), 2);
    assert_eq!(space.check().unwrap().waiters, 0);
}

/// A thread that ends with a large tuple in its hands says so; nobody has to ask the system about threads.
#[test]
fn what_a_thread_held_that_ended_is_there_for_the_next_who_looks_l5() {
    let name = Name::new("held-by-thread");
    let space = name.attach();
    let large = vec![7; 3_000];
    space.put(&[Field::Int(1), Field::Bytes(&large)]).unwrap();
    let template = [INT, ANY];
    let template = [TemplateRef::new(&template)];
    let ended = std::thread::scope(|scope| {
        let take = || {
            space.try_take(&template, Order::Fifo, |_| -> Result<(), Error> {
                // Not a panic, which would print: what a visitor does is not the engine's.
                std::panic::resume_unwind(Box::new("in the visitor"))
            })
        };
        scope.spawn(take).join()
    });
    assert!(ended.is_err());
    assert_eq!(space.try_take(&template, Order::Fifo, first).unwrap(), Some(1));
    assert_eq!(space.check().unwrap().held(), 0);
}

/// A fork's child does not attach, and puts once, or takes once, or looks in vain.
#[test]
fn any_number_of_children_may_come_and_go_though_nobody_waits_b2() {
    let name = Name::new("children");
    let space = name.attach();
    let children = i64::try_from(PARTICIPANTS_MAX).unwrap() + 500;
    let take = || space.try_take(&[TemplateRef::new(&[INT])], Order::Fifo, first).unwrap();
    let each: [&dyn Fn(i64); 3] = [
        &|number| space.put(&[Field::Int(number)]).unwrap(),
        &|number| assert_eq!(take(), Some(number)),
        &|_| assert_eq!(take(), None),
    ];
    for act in each {
        for number in 0..children {
            let child = fork(|| act(number));
            assert_eq!(child.wait(), Exit::Done);
        }
    }
    space.check().unwrap();
}

/// What a thread does at its very end.
struct AtTheEnd(Box<dyn Fn()>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        (self.0)();
    }
}

thread_local! {
    static LAST: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

/// Has this thread, which has not used a space yet, `act` when it has given its places in all of them back: what is made
/// first is destroyed last. A panic there would end the process.
fn at_the_end(act: impl Fn() + 'static) {
    LAST.set(Some(AtTheEnd(Box::new(act))));
}

#[test]
fn any_number_of_threads_may_put_once_more_at_their_very_end_b2() {
    let name = Name::new("late");
    let space = name.attach();
    for number in 0..i64::try_from(THREADS_MAX).unwrap() + 500 {
        let (late, uses) = (Arc::clone(&space), Arc::clone(&space));
        let thread = std::thread::spawn(move || {
            at_the_end(move || drop(late.put(&[Field::Int(number)])));
            let template = [INT];
            uses.try_take(&[TemplateRef::new(&template)], Order::Fifo, first).unwrap()
        });
        let taken = thread.join().unwrap();
        assert_eq!(taken, (number > 0).then_some(number - 1), "what the thread before has put");
    }
    space.check().unwrap();
}

#[test]
fn a_long_step_at_the_very_end_of_a_thread_has_the_log_that_it_needs_o5() {
    let name = Name::new("late-log");
    let space = name.attach();
    let (late, uses) = (Arc::clone(&space), Arc::clone(&space));
    let thread = std::thread::spawn(move || {
        at_the_end(move || {
            let tuples: Vec<_> = (1..=1_000).map(|number| [Field::Int(number)]).collect();
            drop(late.put_all(&tuples.iter().collect::<Vec<_>>()));
        });
        uses.put(&[Field::Int(0)]).unwrap();
    });
    thread.join().unwrap();
    let template = [INT];
    let taken = space.take_all(&[TemplateRef::new(&template)], None, first).unwrap();
    assert!(taken.into_iter().eq(0..=1_000));
    space.sweep().unwrap();
    space.check().unwrap();
}
