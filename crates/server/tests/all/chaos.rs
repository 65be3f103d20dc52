//! Exactly-once effects over a network that fails: what clients were told, against what was there (rules T1, O2, K1, N1).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::proxy::Proxy;
use crate::serving::Served;
use tupelo::{
    ClaimTerms, ConnectOptions, Error, Event, EventKind, Kind, Order, Space, SubscribeTerms,
    TupleView, template,
};
use tupelo_crashtest::{seed, torture_time};
use tupelo_server::Engine;
use tupelo_tuple::{Field, fields};

const SHORT: Duration = Duration::from_millis(50);
const MINUTE: Duration = Duration::from_secs(60);
/// How long it goes on, where nothing else is asked for.
const USUAL: Duration = Duration::from_secs(5);
const PUTTERS: i64 = 2;
const TAKERS: usize = 2;
/// One part of so many breaks its connection.
const BREAKS_ONE_OF: u64 = 40;
/// Of so many that break, one falls silent instead: its client notices after 30 s. So only where there is more time.
const SILENCES_ONE_OF: u64 = 100;

/// A name of what was put: by whom, and which.
type Name = (i64, i64);

/// What one client was told.
#[derive(Default)]
struct Told {
    put: Vec<Name>,
    taken: Vec<Name>,
    fences: Vec<u64>,
    /// Of events: the number, and how many were missed before.
    events: Vec<(u64, u64)>,
}

fn name(tuple: TupleView<'_>) -> Result<Name, Error> {
    let mut numbers = tuple.fields().filter_map(|field| match field {
        Field::Int(number) => Some(number),
        _ => None,
    });
    match (numbers.next(), numbers.next()) {
        (Some(who), Some(which)) => Ok((who, which)),
        _ => Err(Error::Misuse { problem: "a job has two numbers".to_owned(), hint: None }),
    }
}

/// A space through the proxy, on a connection of its own: one for each time in which it is made again.
fn through(proxy: &Proxy, served: &Served, number: i64) -> Space {
    let url =
        format!("tcp://127.0.0.1:{}/{}?size=16M&reconnect_s=60.{number}", proxy.port, served.space);
    Space::connect(&url, &ConnectOptions::default()).unwrap()
}

fn put(space: &Space, who: i64, until: &AtomicBool) -> Told {
    let mut told = Told::default();
    for which in 0.. {
        if until.load(Ordering::Relaxed) {
            break;
        }
        space.put(&fields!["job", who, which]).unwrap();
        told.put.push((who, which));
    }
    told
}

fn take(space: &Space, until: &AtomicBool) -> Told {
    let mut told = Told::default();
    let jobs = [template!["job", Kind::Int, Kind::Int]];
    while !until.load(Ordering::Relaxed) {
        match space.take(&jobs, Order::Fifo, Some(SHORT), name) {
            Ok(name) => told.taken.push(name),
            Err(Error::Timeout { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    told
}

/// Claims jobs, and puts others under the claims.
fn claim(space: &Space, who: i64, until: &AtomicBool) -> Told {
    let mut told = Told::default();
    let jobs = [template!["job", Kind::Int, Kind::Int]];
    let terms = ClaimTerms { ttl: MINUTE, attempts_max: None };
    let mut which = 0;
    while !until.load(Ordering::Relaxed) {
        match space.claim(&jobs, Order::Fifo, Some(SHORT), &terms, name) {
            Ok((claim, name)) => {
                claim.put(&fields!["job", who, which]).unwrap();
                claim.done().unwrap();
                told.fences.push(claim.fence());
                told.taken.push(name);
                told.put.push((who, which));
                which += 1;
            }
            Err(Error::Timeout { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    told
}

fn hear(space: &Space, until: &AtomicBool) -> Told {
    let mut told = Told::default();
    let jobs = [template!["job", Kind::Int, Kind::Int]];
    let subscription = space.subscribe(&jobs, &SubscribeTerms::new([EventKind::Put], 64)).unwrap();
    while !until.load(Ordering::Relaxed) {
        let event = |event: Event<'_>| Ok::<_, Error>((event.sequence, event.missed));
        told.events.extend(subscription.next(Some(SHORT), event).unwrap());
    }
    told
}

/// What all were told, and what is left in the space, goes together.
fn check(told: &[Told], left: &[Name]) {
    let mut times: HashMap<Name, (usize, usize)> = HashMap::new();
    for name in told.iter().flat_map(|told| &told.put) {
        times.entry(*name).or_default().0 += 1;
    }
    for name in told.iter().flat_map(|told| &told.taken).chain(left) {
        times.entry(*name).or_default().1 += 1;
    }
    let wrong: Vec<_> = times.iter().filter(|(_, times)| **times != (1, 1)).collect();
    assert!(wrong.is_empty(), "put and found so often: {wrong:?}");
    for told in told {
        assert!(told.fences.is_sorted_by(|one, next| one < next), "{:?}", told.fences);
        let mut last = 0;
        for (sequence, missed) in &told.events {
            assert_eq!(*sequence, last + missed + 1, "{:?}", told.events);
            last = *sequence;
        }
    }
}

#[test]
fn each_effect_happens_once_however_often_connections_break_t1_o2_k1_n1() {
    let served = Served::new(Engine::Mem, "tcp");
    let proxy = Proxy::new(served.port(), seed());
    let time = torture_time().unwrap_or(USUAL);
    let until = AtomicBool::new(false);
    let told = thread::scope(|scope| {
        let space = |number| through(&proxy, &served, number);
        let mut clients = Vec::new();
        for who in 0..PUTTERS {
            let (space, until) = (space(who), &until);
            clients.push(scope.spawn(move || put(&space, who, until)));
        }
        for taker in 0..TAKERS {
            let (space, until) = (space(10 + i64::try_from(taker).unwrap()), &until);
            clients.push(scope.spawn(move || take(&space, until)));
        }
        let (claimer, hearer, until) = (space(20), space(21), &until);
        clients.push(scope.spawn(move || claim(&claimer, PUTTERS, until)));
        clients.push(scope.spawn(move || hear(&hearer, until)));
        proxy.break_one_of(BREAKS_ONE_OF);
        if torture_time().is_some() {
            proxy.silence_one_of(SILENCES_ONE_OF);
        }
        let begin = Instant::now();
        while begin.elapsed() < time && clients.iter().all(|client| !client.is_finished()) {
            thread::sleep(SHORT);
        }
        proxy.break_one_of(0);
        proxy.silence_one_of(0);
        until.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    let url = served.urls().replace("{}", &served.space);
    let beside = Space::connect(&url, &ConnectOptions::default()).unwrap();
    let jobs = [template!["job", Kind::Int, Kind::Int]];
    let left: Vec<Name> = beside.take_all(&jobs, None, name).unwrap();
    check(&told, &left);
    let (put, taken) = told
        .iter()
        .fold((0, 0), |(put, taken), told| (put + told.put.len(), taken + told.taken.len()));
    let (breaks, (silences, doubles)) = (proxy.breaks(), proxy.silences_and_doubles());
    let counts = format!(
        "{breaks} breaks, {silences} silences, {doubles} doubled, {put} put, {taken} taken"
    );
    assert!(breaks > 0 && doubles > 0 && put > 0 && taken > 0, "{counts}");
}
