//! The facade as something that answers the model's operations, on each engine.
#![allow(dead_code, reason = "each test program uses a part of it")]

mod hands;
pub(crate) mod inside;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tupelo::{ConnectOptions, Encoded, Error, EventKind, Field, FieldName, Order};
use tupelo::{LeaseTerms, Scan, Search, Space};
use tupelo::{SubscribeTerms, Subscription, Template, TemplateRef, Transaction};
use tupelo::{Tuple, TupleRef, TupleView, Value, Visits, Waiter, Want, WhenFull};
use tupelo_crashtest::{seed, torture_time};
use tupelo_model::conformance::Subject;
use tupelo_model::{Answer, Limits, Operation, Place};

pub(crate) use hands::Hands;

/// The engines that the same program runs on, by the scheme of their URL.
pub(crate) const ENGINES: [&str; 2] = ["mem", "shm"];

/// Also a space that is kept in a file: for what shows that it is as the others.
pub(crate) const WITH_FILES: [&str; 3] = ["mem", "shm", "file"];

/// A space of its own that is removed when the test is over, also when it fails.
pub(crate) struct Temporary {
    /// The space.
    pub(crate) space: Space,
    url: String,
}

impl Temporary {
    /// A new space of this engine.
    pub(crate) fn new(engine: &str, limits: Limits) -> Self {
        let tuples_max = limits.tuples_max.map(|tuples_max| tuples_max as u64);
        let when_full = match limits.when_full {
            tupelo_model::WhenFull::Error => WhenFull::Error,
            tupelo_model::WhenFull::Wait => WhenFull::Wait,
            tupelo_model::WhenFull::DropOldest => WhenFull::DropOldest,
        };
        let options = ConnectOptions { tuples_max, when_full, ..ConnectOptions::default() };
        let mut temporary = Self::with(engine, &options);
        // As in the model, nobody waits for room.
        temporary.space = temporary.space.at_once();
        temporary
    }

    /// As [`Temporary::new`], with other options.
    pub(crate) fn with(engine: &str, options: &ConnectOptions) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let url = url_of(engine, &format!("test-{}-{count}", std::process::id()));
        let options = ConnectOptions { fresh: true, ..options.clone() };
        let space = Space::connect(&url, &options).unwrap();
        Self { space, url }
    }

    /// A second connection to the space.
    pub(crate) fn connect_again(&self) -> Space {
        Space::connect(&self.url, &ConnectOptions::default()).unwrap()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Not unwrapped: the test may be failing already, and says more than this would.
        let _ = tupelo::remove(&self.url);
    }
}

/// The URL of a space: of an engine by its scheme, or of a server by the URL with `{}` for the name.
fn url_of(engine: &str, name: &str) -> String {
    match engine {
        // In memory, so that the disk is not waited for.
        "file" => format!("file:///dev/shm/{name}.tupelo"),
        _ if engine.contains("{}") => engine.replace("{}", name),
        _ => format!("{engine}://{name}"),
    }
}

/// Two spaces of an engine, and the calls, scans and transactions under way in them.
pub(crate) struct Facade {
    main: Temporary,
    other: Temporary,
    calls: HashMap<String, (Place, Waiter)>,
    scans: HashMap<String, (Scan, Vec<Tuple>)>,
    subscriptions: HashMap<String, Subscription>,
    hands: Hands,
    transactions: HashMap<String, Transaction>,
}

impl Facade {
    /// Two new spaces. The second one of a file is in memory alone: no step is on disk in two files at one moment.
    pub(crate) fn new(engine: &str, limits: Limits) -> Self {
        let other = if engine == "file" { "shm" } else { engine };
        Self {
            main: Temporary::new(engine, limits),
            other: Temporary::new(other, limits),
            calls: HashMap::new(),
            scans: HashMap::new(),
            subscriptions: HashMap::new(),
            hands: Hands::default(),
            transactions: HashMap::new(),
        }
    }

    fn space(&self, at: Place) -> &Space {
        match at {
            Place::Main => &self.main.space,
            Place::Other => &self.other.space,
        }
    }

    /// A search from the space `at` on.
    fn searched(
        &self,
        at: Place,
        template: &Template,
        want: tupelo_model::Want,
    ) -> Result<Answer, Error> {
        let spaces = [at, at.opposite()].map(|place| self.space(place).clone());
        let search = Search::new(spaces.into(), Visits::RoundRobin)?;
        let (now, visitor) = (Some(Duration::ZERO), |_: usize, view: TupleView<'_>| keep(view));
        let found = with_refs(template, |template| match want {
            tupelo_model::Want::Take => search.take(template, now, visitor),
            tupelo_model::Want::Read => search.read(template, now, visitor),
        })?;
        Ok(Answer::Tuple(found.result))
    }

    fn labelled(&mut self, at: Place, operation: &Operation) -> Result<Answer, Error> {
        Ok(match operation {
            Operation::Start { label, want, template } => {
                let want = match want {
                    tupelo_model::Want::Take => Want::Take,
                    tupelo_model::Want::Read => Want::Read,
                };
                let waiter = with_refs(template, |template| self.space(at).waiter(template, want))?;
                self.calls.insert(label.clone(), (at, waiter));
                Answer::Done
            }
            Operation::Served { label } => {
                Answer::Flag(self.calls[label].1.wait(Some(Duration::ZERO))?)
            }
            Operation::Finish { label } => {
                let (_, waiter) = self.calls.remove(label).expect("the call was started");
                Answer::Tuple(waiter.finish(keep)?)
            }
            Operation::Cancel { label } => {
                self.calls.remove(label);
                Answer::Done
            }
            Operation::BeginScan { label, template } => {
                let scan = self.space(at).scan(template)?;
                self.scans.insert(label.clone(), (scan, Vec::new()));
                Answer::Done
            }
            Operation::ContinueScan { label, at_most } => {
                let (scan, seen) = self.scans.get_mut(label).expect("the scan was begun");
                seen.extend(scan.next_batch(*at_most, keep)?);
                Answer::Done
            }
            Operation::EndScan { label } => {
                let (mut scan, mut seen) = self.scans.remove(label).expect("the scan was begun");
                loop {
                    let batch = scan.next_batch(3, keep)?;
                    if batch.is_empty() {
                        break Answer::Unordered(seen);
                    }
                    seen.extend(batch);
                }
            }
            Operation::Subscribe { label, .. } => {
                let subscription = subscribe(self.space(at), operation)?;
                self.subscriptions.insert(label.clone(), subscription);
                Answer::Done
            }
            Operation::Events { label } => Answer::Events(events(&self.subscriptions[label])?),
            Operation::Unsubscribe { label } => {
                self.subscriptions.remove(label);
                Answer::Done
            }
            Operation::FinishClaim { call, label, terms } => {
                let (_, waiter) = self.calls.remove(call).expect("the call was started");
                self.hands.finish_claim(waiter, label, *terms)?
            }
            Operation::Begin { .. }
            | Operation::Inside { .. }
            | Operation::Commit { .. }
            | Operation::RollBack { .. } => self.with_transaction(at, operation)?,
            Operation::Search { template, want } => self.searched(at, template, *want)?,
            _ => {
                let (space, other) = (self.space(at).clone(), self.space(at.opposite()).clone());
                plain(&space, &other, &mut self.hands, operation, Duration::ZERO)?
            }
        })
    }
}

impl Subject for Facade {
    fn perform(&mut self, at: Place, operation: &Operation) -> Answer {
        self.labelled(at, operation).unwrap_or_else(|error| refused(&error))
    }
}

/// Does an operation of one call on one space; one that may wait gives up after `timeout`.
pub(crate) fn perform(
    space: &Space,
    hands: &mut Hands,
    operation: &Operation,
    timeout: Duration,
) -> Answer {
    plain(space, space, hands, operation, timeout).unwrap_or_else(|error| refused(&error))
}

/// What the model says of an error.
pub(crate) fn refused(error: &Error) -> Answer {
    Answer::Refused(error.code().to_owned())
}

fn plain(
    space: &Space,
    other: &Space,
    hands: &mut Hands,
    operation: &Operation,
    timeout: Duration,
) -> Result<Answer, Error> {
    if let Some(answer) = hands.with_lease(space, operation)? {
        return Ok(answer);
    }
    if let Some(answer) = hands.with_claim(space, operation, timeout)? {
        return Ok(answer);
    }
    let found = |tuple: Option<Tuple>| tuple.map_or(Answer::Nothing, Answer::Tuple);
    Ok(match operation {
        Operation::Put { tuple } => {
            with_tuple(tuple, |tuple| space.put(tuple))?;
            Answer::Done
        }
        Operation::PutAll { tuples } => {
            Answer::Count(with_all(tuples, |tuples| space.put_all(tuples))? as u64)
        }
        Operation::PutIfAbsent { .. } => Answer::Flag(put_if_absent(space, operation)?),
        Operation::TryTake { template, order } => {
            found(with_refs(template, |template| space.try_take(template, ordered(*order), keep))?)
        }
        Operation::TryRead { template, order } => {
            found(with_refs(template, |template| space.try_read(template, ordered(*order), keep))?)
        }
        Operation::TakeNoWait { template, order } => {
            Answer::Tuple(with_refs(template, |template| {
                space.take(template, ordered(*order), Some(timeout), keep)
            })?)
        }
        Operation::ReadNoWait { template, order } => {
            Answer::Tuple(with_refs(template, |template| {
                space.read(template, ordered(*order), Some(timeout), keep)
            })?)
        }
        Operation::Count { template } => {
            Answer::Count(with_refs(template, |template| space.count(template))?)
        }
        Operation::Present { template } => {
            Answer::Flag(with_refs(template, |template| space.present(template))?)
        }
        Operation::ReadAll { template, limit } => {
            Answer::Tuples(with_refs(template, |template| space.read_all(template, *limit, keep))?)
        }
        Operation::TakeAll { template, limit } => {
            Answer::Tuples(with_refs(template, |template| space.take_all(template, *limit, keep))?)
        }
        Operation::TryTakeMany { template, at_least, at_most } => {
            let taken = with_refs(template, |template| {
                space.try_take_many(template, *at_least, *at_most, keep)
            })?;
            taken.map_or(Answer::Nothing, Answer::Tuples)
        }
        Operation::TrySwap { template, to } => found(with_tuple(to, |to| {
            with_refs(template, |template| space.try_swap(template, to, keep))
        })?),
        Operation::MoveTo { template } => {
            Answer::Count(with_refs(template, |template| space.move_to(other, template))?)
        }
        Operation::CopyTo { template } => {
            Answer::Count(with_refs(template, |template| space.copy_to(other, template))?)
        }
        operation => unreachable!("{operation:?} has a label"),
    })
}

/// Puts as [`Operation::PutIfAbsent`] says.
fn put_if_absent(space: &Space, operation: &Operation) -> Result<bool, Error> {
    let Operation::PutIfAbsent { tuple, unless, terms } = operation else {
        unreachable!("{operation:?} is no put unless something matches")
    };
    let terms = hands::lease_terms(*terms);
    with_tuple(tuple, |tuple| {
        with_refs(unless, |unless| {
            if terms == LeaseTerms::default() {
                return space.put_if_absent(tuple, unless);
            }
            Ok(space.put_if_absent_leased(tuple, unless, &terms)?.is_some())
        })
    })
}

/// Subscribes as [`Operation::Subscribe`] says.
pub(crate) fn subscribe(space: &Space, operation: &Operation) -> Result<Subscription, Error> {
    let Operation::Subscribe { template, on, buffer, .. } = operation else {
        unreachable!("{operation:?} is no subscription")
    };
    let terms = SubscribeTerms::new(on.iter().map(|kind| kind_of(*kind)), *buffer);
    with_refs(template, |template| space.subscribe(template, &terms))
}

/// All events that wait.
pub(crate) fn events(subscription: &Subscription) -> Result<Vec<tupelo_model::Event>, Error> {
    let mut events = Vec::new();
    let keep = |event: tupelo::Event<'_>| {
        let kind =
            tupelo_model::EventKind::ALL.into_iter().find(|kind| kind_of(*kind) == event.kind);
        let (kind, tuple) = (kind.expect("they have the same kinds"), event.tuple.to_tuple()?);
        let (sequence, missed) = (event.sequence, event.missed);
        Ok::<_, Error>(tupelo_model::Event { kind, tuple, sequence, missed })
    };
    while let Some(event) = subscription.try_next(keep)? {
        events.push(event);
    }
    Ok(events)
}

fn kind_of(kind: tupelo_model::EventKind) -> EventKind {
    match kind {
        tupelo_model::EventKind::Put => EventKind::Put,
        tupelo_model::EventKind::Take => EventKind::Take,
        tupelo_model::EventKind::Expire => EventKind::Expire,
        tupelo_model::EventKind::Return => EventKind::Return,
    }
}

/// The fields of several tuples, borrowed.
fn with_all<R>(
    tuples: &[Tuple],
    act: impl FnOnce(&[TupleRef<'_>]) -> Result<R, Error>,
) -> Result<R, Error> {
    let encode = |value: &Value| value.encode().expect("the values of the tests can be encoded");
    let encodings: Vec<Vec<Vec<u8>>> =
        tuples.iter().map(|tuple| tuple.iter().map(encode).collect()).collect();
    let fields: Vec<Vec<Field<'_>>> = tuples
        .iter()
        .zip(&encodings)
        .map(|(tuple, encodings)| borrowed(tuple, encodings))
        .collect();
    let refs = tuples.iter().zip(&fields);
    let refs = refs.map(|(tuple, fields)| TupleRef { fields, class: tuple.class() });
    act(&refs.collect::<Vec<_>>())
}

/// The fields of a tuple whose encodings are given, for what is not plain.
fn borrowed<'a>(tuple: &'a Tuple, encodings: &'a [Vec<u8>]) -> Vec<Field<'a>> {
    let field = |(value, encoding): (&'a Value, &'a Vec<u8>)| match value {
        Value::Null => Field::Null,
        Value::Bool(value) => Field::Bool(*value),
        Value::Int(value) => Field::Int(*value),
        Value::Float(value) => Field::Float(*value),
        Value::Str(text) => Field::Str(text),
        Value::Bytes(bytes) => Field::Bytes(bytes),
        other => Field::Encoded(Encoded::whole(other.kind(), encoding)),
    };
    tuple.iter().zip(encodings).map(field).collect()
}

/// What a visitor does here: it keeps the tuple.
pub(crate) fn keep(tuple: TupleView<'_>) -> Result<Tuple, Error> {
    tuple.to_tuple().map_err(Error::from)
}

/// A tuple, borrowed.
pub(crate) fn with_tuple<R>(
    tuple: &Tuple,
    act: impl FnOnce(TupleRef<'_>) -> Result<R, Error>,
) -> Result<R, Error> {
    tuple.with_ref(act).expect("the values of the tests can be encoded")
}

/// The alternatives of a template, borrowed.
pub(crate) fn with_refs<R>(
    template: &Template,
    act: impl FnOnce(&[TemplateRef<'_>]) -> Result<R, Error>,
) -> Result<R, Error> {
    template.with_refs(act).expect("the values of the tests can be encoded")
}

fn ordered(order: tupelo_model::Order) -> Order {
    match order {
        tupelo_model::Order::Fifo => Order::Fifo,
        tupelo_model::Order::Lifo => Order::Lifo,
        tupelo_model::Order::Random => Order::Random,
        tupelo_model::Order::Any => Order::Any,
        tupelo_model::Order::Max(field) => Order::Max(field),
        tupelo_model::Order::Min(field) => Order::Min(field),
        tupelo_model::Order::MaxOf(name) => Order::MaxOf(FieldName::new(name).unwrap()),
        tupelo_model::Order::MinOf(name) => Order::MinOf(FieldName::new(name).unwrap()),
    }
}

/// Runs a round once, or as long as `TUPELO_TORTURE_SECONDS` says, each with another seed; a round that
/// fails has printed its own.
pub(crate) fn rounds(mut round: impl FnMut(u64)) {
    let end = Instant::now() + torture_time().unwrap_or_default();
    loop {
        round(seed());
        if Instant::now() >= end {
            return;
        }
    }
}
