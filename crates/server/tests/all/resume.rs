//! What a client has at a server is kept when only its connection breaks (rules K2, L5, N2, T3, X5).

use std::time::Duration;

use crate::proxy::Proxy;
use crate::serving::Served;
use tupelo::{
    ClaimTerms, ConnectOptions, Error, Event, EventKind, Kind, Order, Outcome, Space,
    SubscribeTerms, TupleView, Want, template,
};
use tupelo_server::Engine;
use tupelo_tuple::fields;

const MINUTE: Duration = Duration::from_secs(60);
const TERMS: ClaimTerms = ClaimTerms { ttl: MINUTE, attempts_max: None };

fn keep(tuple: TupleView<'_>) -> Result<String, Error> {
    Ok(tuple.to_tuple()?.to_string())
}

/// The space of the test, over a connection that may break, and beside it.
fn both(proxy: &Proxy, served: &Served, reconnect_s: &str) -> (Space, Space) {
    let (port, name) = (proxy.port, &served.space);
    let url = format!("tcp://127.0.0.1:{port}/{name}?size=16M&reconnect_s={reconnect_s}");
    let open = |url: &str| Space::connect(url, &ConnectOptions::default()).unwrap();
    (open(&url), open(&served.urls().replace("{}", name)))
}

#[test]
fn claims_and_transactions_go_on_over_another_connection_k2_x5() {
    let served = Served::new(Engine::Mem, "tcp");
    let proxy = Proxy::new(served.port(), 1);
    let (space, beside) = both(&proxy, &served, "60");
    let jobs = [template!["job", Kind::Int]];
    for number in 0..2 {
        beside.put(&fields!["job", number]).unwrap();
    }
    let (claim, _) = space.claim(&jobs, Order::Fifo, None, &TERMS, keep).unwrap();
    let transaction = space.transaction(&[], MINUTE).unwrap();
    assert!(transaction.at(0).try_take(&jobs, Order::Fifo, keep).unwrap().is_some());
    transaction.at(0).put(&fields!["done", 1]).unwrap();
    claim.put(&fields!["done", 0]).unwrap();
    for _ in 0..3 {
        proxy.break_all();
        claim.extend(None).unwrap();
    }
    assert_eq!(beside.count(&jobs), Ok(0));
    proxy.break_all();
    claim.done().unwrap();
    transaction.commit().unwrap();
    assert_eq!(beside.count(&[template!["done", Kind::Int]]), Ok(2));
    assert_eq!(claim.attempt(), 1);
    assert!(proxy.breaks() > 0);
}

#[test]
fn a_call_that_waits_keeps_its_place_in_line_over_another_connection_t3() {
    let served = Served::new(Engine::Mem, "tcp");
    let proxy = Proxy::new(served.port(), 2);
    let (space, beside) = both(&proxy, &served, "60");
    let jobs = [template!["job", Kind::Int]];
    let first = space.waiter(&jobs, Want::Take).unwrap();
    // It is in the wait queue: what is asked behind it was answered.
    space.count(&jobs).unwrap();
    let second = beside.waiter(&jobs, Want::Take).unwrap();
    beside.count(&jobs).unwrap();
    proxy.break_all();
    beside.put(&fields!["job", 1]).unwrap();
    assert_eq!(first.wait(Some(MINUTE)), Ok(true));
    let Outcome::Done(job) = first.finish_now(keep).unwrap() else { panic!("it has one") };
    assert_eq!(job, r#"("job", 1)"#);
    beside.put(&fields!["job", 2]).unwrap();
    assert_eq!(second.wait(Some(MINUTE)), Ok(true));
}

#[test]
fn a_subscription_misses_nothing_over_another_connection_n2() {
    let served = Served::new(Engine::Mem, "tcp");
    let proxy = Proxy::new(served.port(), 3);
    let (space, beside) = both(&proxy, &served, "60");
    let jobs = [template!["job", Kind::Int]];
    let terms = SubscribeTerms::new([EventKind::Put], 1000);
    let subscription = space.subscribe(&jobs, &terms).unwrap();
    let event = |event: Event<'_>| Ok::<_, Error>((event.sequence, event.missed));
    for number in 1..=20_u64 {
        if number % 3 == 0 {
            proxy.break_all();
        }
        beside.put(&fields!["job", i64::try_from(number).unwrap()]).unwrap();
        assert_eq!(subscription.next(Some(MINUTE), event).unwrap(), Some((number, 0)));
    }
}

#[test]
fn what_a_client_has_that_does_not_come_back_ends_with_its_session_lease_l5() {
    let served = Served::new(Engine::Mem, "tcp");
    let proxy = Proxy::new(served.port(), 4);
    let (space, beside) = both(&proxy, &served, "0.2");
    let jobs = [template!["job", Kind::Int]];
    beside.put(&fields!["job", 1]).unwrap();
    let (claim, _) = space.claim(&jobs, Order::Fifo, None, &TERMS, keep).unwrap();
    proxy.refuse();
    let (again, _) = beside.claim(&jobs, Order::Fifo, Some(MINUTE), &TERMS, keep).unwrap();
    assert_eq!(again.attempt(), 2);
    assert!(matches!(claim.done(), Err(Error::ClaimLost { .. } | Error::ConnectionLost { .. })));
    again.done().unwrap();
}

#[test]
fn a_session_is_resumed_by_its_own_client_alone() {
    let served = Served::new(Engine::Mem, "tcp");
    let proxy = Proxy::new(served.port(), 5);
    let (space, beside) = both(&proxy, &served, "60");
    let jobs = [template!["job", Kind::Int]];
    beside.put(&fields!["job", 1]).unwrap();
    let (claim, _) = space.claim(&jobs, Order::Fifo, None, &TERMS, keep).unwrap();
    proxy.break_all();
    let other = both(&proxy, &served, "59").0;
    assert_eq!(other.count(&jobs), Ok(0));
    assert!(other.try_claim(&jobs, Order::Fifo, &TERMS, keep).unwrap().is_none());
    claim.done().unwrap();
}
