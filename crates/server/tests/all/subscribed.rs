//! Subscriptions, scans, transfers and figures of a server's spaces.

use std::time::Duration;

use crate::left_open::{ask, refusal};
use crate::protocol::{beside, template_bytes};
use crate::serving::{Raw, Served};
use tupelo::{ClaimTerms, ConnectOptions, Error, Event, EventKind, Kind, LeaseTerms, Order, Space};
use tupelo::{SubscribeTerms, TupleView, Want, template};
use tupelo_protocol::{Operation, Reply, Request, SpaceId, Target, TemplateBytes};
use tupelo_server::Engine;
use tupelo_tuple::fields;

const MINUTE: Duration = Duration::from_secs(60);

fn keep(tuple: TupleView<'_>) -> Result<String, Error> {
    Ok(tuple.to_tuple()?.to_string())
}

fn told(event: Event<'_>) -> Result<(EventKind, u64, u64, String), Error> {
    Ok((event.kind, event.sequence, event.missed, keep(event.tuple)?))
}

#[test]
fn events_come_as_far_as_there_is_credit_and_more_when_there_is_more_n1() {
    let served = Served::new(Engine::Mem, "unix");
    let (mut raw, space) = Raw::opened(&served);
    let template = template_bytes("job, :int");
    let template = TemplateBytes::of_encoding(&template);
    let subscribe =
        |kinds| Operation::Subscribe { template, kinds, events_max: 100, bytes_max: None };
    ask(&mut raw, 9, Target::Space(space), subscribe(16));
    assert_eq!(refusal(&mut raw), "TUP-023");
    ask(&mut raw, 10, Target::Space(space), subscribe(1));
    assert_eq!(raw.reply(|reply| *reply == Reply::Done { id: 10, count: 1 }), Some(true));
    let on = Target::Kept { request: 10, at: 0 };
    ask(&mut raw, 11, on, Operation::Events { at_most: 2 });
    ask(&mut raw, 12, on, Operation::Events { at_most: 2 });
    assert_eq!(refusal(&mut raw), "TUP-023", "one request at a time");
    let space = beside(&served);
    let jobs: Vec<_> = (0..5).map(|n| fields!["job", n]).collect();
    space.put_all(&jobs.iter().collect::<Vec<_>>()).unwrap();
    let events = |reply: &Reply<'_>| {
        let Reply::Found { id, held: false, tuples } = reply else { panic!("{reply:?}") };
        let tuples = tuples.decode().unwrap();
        (*id, tuples.iter().map(|one| keep(one.to_image().view()).unwrap()).collect::<Vec<_>>())
    };
    let (id, first) = raw.reply(events).unwrap();
    assert_eq!(id, 11);
    assert_eq!(first, ["(0, 1, 0)", r#"("job", 0)"#, "(0, 2, 0)", r#"("job", 1)"#]);
    ask(&mut raw, 13, on, Operation::Waiting);
    assert_eq!(raw.reply(|reply| *reply == Reply::Done { id: 13, count: 3 }), Some(true));
    ask(&mut raw, 14, on, Operation::Events { at_most: 100 });
    assert_eq!(raw.reply(events).unwrap().1.len(), 6);
    // One that waits is looked for, ended, and answered when the subscription goes.
    ask(&mut raw, 15, on, Operation::Events { at_most: 1 });
    raw.request(&Request::Look { id: 15 });
    assert_eq!(raw.reply(|reply| *reply == Reply::Waits { id: 15 }), Some(true));
    raw.request(&Request::End { id: 15 });
    assert_eq!(raw.reply(|reply| *reply == Reply::Nothing { id: 15 }), Some(true));
    ask(&mut raw, 16, on, Operation::Events { at_most: 1 });
    raw.request(&Request::Cancel { id: 10 });
    assert_eq!(raw.reply(|reply| *reply == Reply::Nothing { id: 16 }), Some(true));
    ask(&mut raw, 17, on, Operation::Waiting);
    assert_eq!(refusal(&mut raw), "TUP-019");
}

#[test]
fn a_subscriber_who_is_slow_is_told_how_many_it_has_missed_n2() {
    let served = Served::new(Engine::Mem, "unix");
    let space = beside(&served);
    let terms = SubscribeTerms::new([EventKind::Put], 4);
    let subscription = space.subscribe(&[template!["job", Kind::Int]], &terms).unwrap();
    for n in 0..10 {
        space.put(&fields!["job", n]).unwrap();
    }
    assert_eq!(subscription.waiting(), 4);
    let first = subscription.next(Some(MINUTE), told).unwrap();
    assert_eq!(first, Some((EventKind::Put, 7, 6, r#"("job", 6)"#.to_owned())));
    let refuse = |_: Event<'_>| Err::<(), _>(Error::NotEncodable { problem: "no".into() });
    assert!(subscription.try_next(refuse).is_err());
    let after = subscription.next(Some(MINUTE), told).unwrap();
    assert_eq!(after, Some((EventKind::Put, 9, 1, r#"("job", 8)"#.to_owned())));
    assert_eq!(subscription.waiting(), 1);
    let nothing = SubscribeTerms::new([], 4);
    assert!(matches!(space.subscribe(&[template![..]], &nothing), Err(Error::Misuse { .. })));
}

#[test]
fn a_subscriber_who_waits_is_woken_by_events_of_every_kind_n1() {
    let served = Served::new(Engine::Mem, "unix");
    let (space, jobs) = (beside(&served), [template!["job", Kind::Int]]);
    let terms = SubscribeTerms::new(EventKind::ALL, 100);
    let subscription = space.subscribe(&jobs, &terms).unwrap();
    let notifier = space.notifier().unwrap();
    let number = notifier.add_subscription(&subscription).unwrap();
    assert!(!subscription.wait(Some(Duration::from_millis(1))).unwrap());
    space.put(&fields!["job", 1]).unwrap();
    let mut rung = notifier.drain();
    while rung.is_empty() {
        notifier.sleep(MINUTE);
        rung = notifier.drain();
    }
    assert_eq!(rung, [number]);
    assert_eq!(subscription.next(Some(MINUTE), told).unwrap().unwrap().0, EventKind::Put);
    let terms = ClaimTerms { ttl: MINUTE, attempts_max: None };
    let claimed = space.try_claim(&jobs, Order::Fifo, &terms, keep).unwrap();
    claimed.unwrap().0.abort("not now").unwrap();
    space.try_take(&jobs, Order::Fifo, keep).unwrap().unwrap();
    let terms = LeaseTerms { lease: Some(MINUTE), after: None };
    space.put_leased(&fields!["job", 2], &terms).unwrap().cancel().unwrap();
    let mut kinds = Vec::new();
    while kinds.len() < 4 {
        kinds.push(subscription.next(Some(MINUTE), told).unwrap().unwrap().0);
    }
    let expected = [EventKind::Return, EventKind::Take, EventKind::Put, EventKind::Expire];
    assert_eq!(kinds, expected);
    assert_eq!(subscription.try_next(told).unwrap(), None);
}

#[test]
fn a_scan_goes_through_large_spaces_in_batches_o6() {
    let served = Served::new(Engine::Mem, "unix");
    let space = beside(&served);
    let payload = vec![7_u8; 60_000];
    for n in 0..100 {
        space.put(&fields!["large", n, &payload]).unwrap();
    }
    let mut scan = space.scan(&"large, :int, :bytes".parse().unwrap()).unwrap();
    let mut seen = Vec::new();
    loop {
        let batch = scan.next_batch(1_000, |tuple| match tuple.fields().nth(1) {
            Some(tupelo::Field::Int(number)) => Ok::<_, Error>(number),
            other => panic!("{other:?}"),
        });
        let batch = batch.unwrap();
        if batch.is_empty() {
            break;
        }
        assert!(batch.len() < 100, "a frame is bounded");
        seen.extend(batch);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..100).collect::<Vec<_>>());
    // What the visitor refuses: the first is passed over, a later one comes again.
    let mut scan = space.scan(&"(large, 3, _) | (large, 4, _)".parse().unwrap()).unwrap();
    let mut shown = 0;
    let mut once = |_: TupleView<'_>| {
        shown += 1;
        if shown == 2 { Err(Error::NotEncodable { problem: "no".into() }) } else { Ok(shown) }
    };
    assert_eq!(scan.next_batch(10, &mut once).unwrap(), [1]);
    assert_eq!(scan.next_batch(10, &mut once).unwrap(), [3]);
    assert_eq!(scan.next_batch(10, &mut once).unwrap(), [0_i32; 0]);
}

#[test]
fn matches_are_moved_between_spaces_of_one_server_and_no_others_o7() {
    let (served, other) = (Served::new(Engine::Mem, "unix"), Served::new(Engine::Mem, "unix"));
    let (space, far) = (beside(&served), beside(&other));
    let options = ConnectOptions::default();
    let second = Space::connect(&served.urls().replace("{}", "second-o7"), &options).unwrap();
    let here = Space::connect("mem://beside-o7", &options).unwrap();
    space.put_all(&[&fields!["job", 1], &fields!["job", 2]]).unwrap();
    let jobs = [template!["job", Kind::Int]];
    assert_eq!(space.copy_to(&second, &jobs), Ok(2));
    assert_eq!(space.move_to(&second, &[template!["job", 1]]), Ok(1));
    assert_eq!((space.count(&jobs), second.count(&jobs)), (Ok(1), Ok(3)));
    for foreign in [&far, &here] {
        let refused = space.move_to(foreign, &jobs).unwrap_err();
        assert!(matches!(refused, Error::Misuse { .. }), "{refused}");
        assert!(foreign.copy_to(&space, &jobs).is_err());
    }
    let (mut raw, number) = Raw::opened(&served);
    let template = template_bytes("...");
    let template = TemplateBytes::of_encoding(&template);
    let to = SpaceId { client: 99, space: number };
    ask(&mut raw, 10, Target::Space(number), Operation::Transfer { to, moves: true, template });
    assert_eq!(refusal(&mut raw), "TUP-002");
    tupelo::remove("mem://beside-o7").unwrap();
}

#[test]
fn figures_and_explanations_are_those_of_the_space_itself() {
    let served = Served::new(Engine::Shm, "unix");
    let space = beside(&served);
    let url = format!("shm://{}", served.space);
    let itself = Space::connect(&url, &ConnectOptions::default()).unwrap();
    space.put(&fields!["job", 1, "render"]).unwrap();
    space.put(&fields!["job", 2, "render"]).unwrap();
    let job: tupelo::Tuple = "Job{id: 7, status: 'new'}".parse().unwrap();
    job.with_ref(|job| space.put(job)).unwrap().unwrap();
    let jobs = [template!["job", Kind::Int, Kind::Str]];
    let terms = ClaimTerms { ttl: MINUTE, attempts_max: None };
    let (claim, _) = space.try_claim(&jobs, Order::Fifo, &terms, keep).unwrap().unwrap();
    let subscription = space.subscribe(&jobs, &SubscribeTerms::new([EventKind::Put], 8)).unwrap();
    let transaction = space.transaction(&[], MINUTE).unwrap();
    transaction.at(0).try_read(&jobs, Order::Fifo, keep).unwrap().unwrap();
    let waiter = space.waiter(&[template!["stop"]], Want::Take).unwrap();
    assert!(!waiter.wait(Some(Duration::ZERO)).unwrap());
    let (there, here) = (space.stat().unwrap(), itself.stat().unwrap());
    assert_eq!(there.tuples, 2);
    let shape = |text| there.shapes.iter().find(|shape| shape.shape.to_string() == text).unwrap();
    assert_eq!(shape("(str, int, str)").claims[0].fence, claim.fence());
    assert_eq!(shape("Job{id: int, status: str}").count, 1);
    assert_eq!((there.subscriptions.len(), there.transactions.len()), (1, 1));
    // But for times that pass, all is the same.
    let plain = |stat: tupelo::Stat| {
        let shapes = stat.shapes.into_iter();
        let shapes = shapes.map(|shape| tupelo::ShapeStat { claims: Vec::new(), ..shape });
        (stat.bytes_used, stat.waiters, stat.subscriptions, shapes.collect::<Vec<_>>())
    };
    assert_eq!(plain(there), plain(here));
    let (there, here) = (space.blocked().unwrap(), itself.blocked().unwrap());
    assert_eq!(there.len(), 1);
    assert_eq!(there[0].template.to_string(), here[0].template.to_string());
    for text in ["job, :int, :str", "job, :str, :str", "Job{id: 8}", "none", "job, 1, :str"] {
        let template: tupelo::Template = text.parse().unwrap();
        let explained =
            |space: &Space| template.with_refs(|one| space.explain(one)).unwrap().unwrap();
        let times = |text: String| {
            let is_time = |character: char| character.is_ascii_digit() || character == '.';
            text.replace(is_time, "")
        };
        let (there, here) = (explained(&space), explained(&itself));
        assert_eq!(times(there.to_string()), times(here.to_string()), "{text}");
    }
    drop((claim, subscription, transaction, waiter));
    tupelo::remove(&url).unwrap();
}

#[test]
fn a_timeout_says_what_comes_nearest_at_the_server() {
    let served = Served::new(Engine::Mem, "unix");
    let space = beside(&served);
    space.put(&fields!["job", 1]).unwrap();
    let late = space.take(&[template!["job", Kind::Str]], Order::Fifo, Some(Duration::ZERO), keep);
    let hint = late.unwrap_err().hint().unwrap();
    assert!(hint.starts_with("nearest: there is 1 tuple (str, int)"), "{hint}");
}
