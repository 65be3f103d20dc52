//! Two operations in two processes, one of which is stopped inside its own for the other (rule O1).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tupelo_crashtest::{Experiment, Script, Summary, shared_words, thorough};
use tupelo_engine::{Engine, Error, Event, Outcome, Subscription, Want};
use tupelo_tuple::{Field, TemplateRef, TupleView};

use super::{contents, put, region, shown, space};

/// Interruptions per pair of operations in an ordinary run.
pub(crate) const POINTS: usize = 12;
/// The same in a thorough one.
const POINTS_THOROUGH: usize = 60;
/// What an operation gives that finds nothing.
pub(crate) const NOTHING: i64 = -1;

/// What a process does at one moment, once. It gives a number.
pub(crate) type Work = Box<dyn FnOnce() -> i64>;

/// What has to be done before.
type Preparation<'a> = Box<dyn Fn(&Arc<Engine>) -> Work + 'a>;

/// Something that a process does at one moment, after what it has to do before.
pub(crate) struct Operation<'a> {
    name: &'a str,
    prepare: Preparation<'a>,
}

impl<'a> Operation<'a> {
    /// An operation that needs nothing before.
    pub(crate) fn at_once(name: &'a str, work: &'a fn(&Arc<Engine>) -> i64) -> Self {
        let work = *work;
        Self::prepared(name, move |engine| {
            let engine = Arc::clone(engine);
            Box::new(move || work(&engine))
        })
    }

    /// One that goes on with what `prepare` has begun, before either of the two processes has come to its operation.
    pub(crate) fn prepared(name: &'a str, prepare: impl Fn(&Arc<Engine>) -> Work + 'a) -> Self {
        Self { name, prepare: Box::new(prepare) }
    }
}

/// The second field: what tells tuples apart here.
#[expect(clippy::unnecessary_wraps, reason = "a visitor")]
pub(crate) fn value(tuple: TupleView<'_>) -> Result<i64, Error> {
    match tuple.field(1) {
        Some(Field::Int(value)) => Ok(value),
        other => panic!("no such tuple was put: {other:?}"),
    }
}

/// Joins the wait queue and picks up what is there by then; stays in the wait queue if it is nothing.
pub(crate) fn waiting(engine: &Arc<Engine>, template: &[TemplateRef<'_>], want: Want) -> i64 {
    let waiter = engine.waiter(template, want).unwrap();
    match waiter.finish_now(value).unwrap() {
        Outcome::Done(value) => value,
        Outcome::Waits(waiter) => {
            std::mem::forget(waiter);
            NOTHING
        }
    }
}

/// A space with some tuples, two of each key.
pub(crate) fn filled() -> Arc<Engine> {
    let engine = space(8 << 20);
    for (key, value) in [(1, 10), (2, 20), (1, 11), (2, 21)] {
        put(&engine, key, value);
    }
    engine.put(&[Field::Str("a"), Field::Int(30)]).unwrap();
    engine
}

/// Words that processes write a text into, for others to read.
struct Note(&'static [AtomicU32]);

impl Note {
    fn new() -> Self {
        Self(shared_words(2048))
    }

    fn write(&self, text: &str) {
        self.0[0].store(u32::try_from(text.len()).unwrap(), Ordering::SeqCst);
        for (word, byte) in self.0[1..].iter().zip(text.bytes()) {
            word.store(u32::from(byte), Ordering::SeqCst);
        }
    }

    fn read(&self) -> String {
        let length = self.0[0].load(Ordering::SeqCst) as usize;
        let byte = |word: &AtomicU32| u8::try_from(word.load(Ordering::SeqCst)).unwrap();
        String::from_utf8(self.0[1..=length].iter().map(byte).collect()).unwrap()
    }
}

/// Two operations in two processes, and what they gave.
pub(crate) struct Both<'e> {
    engine: &'e Arc<Engine>,
    listener: Option<&'e Subscription>,
    operations: [Operation<'e>; 2],
    gave: &'static [AtomicU32],
    /// What they give and leave one after the other: the second first, and the first first.
    expected: [Note; 2],
}

impl<'e> Both<'e> {
    pub(crate) fn new(engine: &'e Arc<Engine>, operations: [Operation<'e>; 2]) -> Self {
        let expected = [Note::new(), Note::new()];
        Self { engine, listener: None, operations, gave: shared_words(2), expected }
    }

    /// What this subscription hears is compared, too. Whoever reads it is a fork of the process that has it.
    pub(crate) fn heard_by(self, listener: Option<&'e Subscription>) -> Self {
        Self { listener, ..self }
    }

    fn script(&self, number: usize) -> Script<'_, Option<Work>> {
        let register = move || {
            // Registers the process, and has it look at all there is.
            self.engine.check().unwrap();
            Some((self.operations[number].prepare)(self.engine))
        };
        Script::new(register, move |work: &mut Option<Work>| {
            let given = work.take().map_or(NOTHING, |work| work());
            let word = u32::try_from(given & 0xffff_ffff).unwrap();
            self.gave[number].store(word, Ordering::SeqCst);
        })
    }

    /// What the two gave, what is in the space, who has what of it, and what was heard.
    fn outcome(&self) -> String {
        let report = self.engine.check().unwrap();
        let gave = [0, 1].map(|number: usize| self.gave[number].load(Ordering::SeqCst));
        let stat = self.engine.stat().unwrap();
        let shapes = stat.shapes.iter().map(|shape| {
            let claims: Vec<u32> = shape.claims.iter().map(|claim| claim.attempt).collect();
            let gone = [shape.dead, shape.delayed, shape.leased];
            (claims, gone, shape.in_transactions, shape.read_locks)
        });
        let untouched = (Vec::new(), [0; 3], 0, 0);
        let shapes: Vec<_> = shapes.filter(|shape| *shape != untouched).collect();
        let events = stat.subscriptions.iter().map(|one| (one.events, one.waiting));
        let events: Vec<_> = events.collect();
        let heard = self.listener.map(heard);
        format!(
            "{} {} {:?}, {} held, {shapes:?}, events {events:?}, heard {heard:?}",
            gave[0].cast_signed(),
            gave[1].cast_signed(),
            contents(self.engine),
            report.held()
        )
    }

    /// Lets the second operation happen inside the first at every so manieth of its instructions.
    ///
    /// # Errors
    ///
    /// What came of the two that can not come of them one after the other.
    pub(crate) fn run(&self) -> Result<Summary, String> {
        let run = || {
            let points = if thorough() { POINTS_THOROUGH } else { POINTS };
            let experiment = Experiment::new(region(self.engine)).with_kills(points);
            let experiment = experiment.with_ends_first();
            let (first, second) = (self.script(0), self.script(1));
            experiment.interrupt_at_every_instruction(&first, &second, |now| {
                let outcome = self.outcome();
                if now.instructions == 1 || now.instructions == now.of {
                    return self.expected[usize::from(now.instructions == now.of)].write(&outcome);
                }
                let expected = self.expected.each_ref().map(Note::read);
                let [one, other] = self.operations.each_ref().map(|operation| operation.name);
                assert!(
                    expected.contains(&outcome),
                    "{one} and {other}: {outcome} instead of {expected:?}"
                );
            })
        };
        let message = |panic: Box<dyn std::any::Any + Send>| {
            panic.downcast_ref::<String>().cloned().unwrap_or_default()
        };
        catch_unwind(AssertUnwindSafe(run)).map_err(message)
    }
}

/// What waits for a subscription, each event once, with numbers that have no gaps (rule N1).
///
/// Not in their order: a take that is heard of is done in two sections, and what it was is heard in the second of them.
/// What the order has to be is shown where histories are searched for one (`crates/space/tests/all/linearizable.rs`).
fn heard(subscription: &Subscription) -> Vec<String> {
    let keep = |event: Event<'_>| {
        let what = format!("{} {}", event.kind.name(), shown(event.tuple)?);
        Ok::<_, Error>((event.sequence, event.missed, what))
    };
    let events = std::iter::from_fn(|| subscription.try_next(keep).unwrap());
    let numbered = (1..).zip(events).map(|(number, (sequence, missed, what))| {
        assert_eq!((sequence, missed), (number, 0), "numbers have no gaps");
        what
    });
    let mut heard: Vec<String> = numbered.collect();
    heard.sort();
    heard
}
