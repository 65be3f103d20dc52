//! What requests leave open: leases, claims, transactions, places in the wait queue for room. It ends with the connection (rule L5).

use std::time::{Duration, Instant};

use crate::protocol::{beside, job, put_of, template_bytes};
use crate::serving::{Raw, Served};
use tupelo::{
    ClaimTerms, ConnectOptions, DeadLetterRecord, Error, Kind, LeaseTerms, Order, Outcome, Space,
};
use tupelo::{TupleView, Want, WhenFull, template};
use tupelo_protocol::{Key, Operation, PutTerms, Reply, Request, Settlement, SpaceIds, Target};
use tupelo_protocol::{TemplateBytes, Term, Tuples};
use tupelo_server::Engine;
use tupelo_tuple::fields;

const MINUTE: Duration = Duration::from_secs(60);
const TERMS: ClaimTerms = ClaimTerms { ttl: MINUTE, attempts_max: None };

fn keep(tuple: TupleView<'_>) -> Result<String, Error> {
    Ok(tuple.to_tuple()?.to_string())
}

fn claim_of(template: &[u8], attempts_max: Option<u32>) -> Operation<'_> {
    let template = TemplateBytes::of_encoding(template);
    Operation::Claim { order: Order::Fifo, ttl: MINUTE, attempts_max, waits: false, template }
}

/// Sends an operation under a key of its own.
pub(crate) fn ask(raw: &mut Raw, id: u64, on: Target, operation: Operation<'_>) {
    let key = operation.changes().then_some(Key(u128::from(id)));
    raw.request(&Request::Do { id, on, key, operation });
}

pub(crate) fn refusal(raw: &mut Raw) -> String {
    let code = raw.reply(|reply| match reply {
        Reply::Refused { fault, .. } => fault.code.clone(),
        other => panic!("{other:?}"),
    });
    code.unwrap()
}

/// Claims the one job, and returns which attempt that is.
fn claimed(raw: &mut Raw, id: u64, on: Target, attempts_max: Option<u32>) -> i64 {
    let template = template_bytes("job, :int");
    ask(raw, id, on, claim_of(&template, attempts_max));
    let attempt = raw.reply(|reply| {
        let Reply::Found { held: false, tuples, .. } = reply else { panic!("{reply:?}") };
        let tuples = tuples.decode().unwrap();
        let [head, job] = &tuples[..] else { panic!("two tuples, not {}", tuples.len()) };
        assert_eq!(job.to_image().view().to_tuple().unwrap().to_string(), r#"("job", 1)"#);
        let head = head.to_image().view().to_tuple().unwrap();
        head.to_string().rsplit(' ').next().unwrap().trim_end_matches(')').parse::<i64>().unwrap()
    });
    attempt.unwrap()
}

#[test]
fn a_claim_ends_with_its_connection_as_a_failed_attempt_and_one_that_is_given_up_as_none_l5() {
    let served = Served::new(Engine::Mem, "unix");
    let (mut raw, space) = Raw::opened(&served);
    let on = Target::Space(space);
    let beside = beside(&served);
    beside.put(&fields!["job", 1]).unwrap();
    assert_eq!(claimed(&mut raw, 10, on, Some(2)), 1);
    assert_eq!(beside.count(&[template!["job", Kind::Int]]), Ok(0));
    // Interrupted before it had it: nobody has tried.
    raw.request(&Request::Cancel { id: 10 });
    assert_eq!(claimed(&mut raw, 11, on, Some(2)), 1);
    drop(raw);
    let (mut raw, space) = Raw::opened(&served);
    let claim =
        beside.claim(&[template!["job", Kind::Int]], Order::Fifo, Some(MINUTE), &TERMS, keep);
    let (claim, _) = claim.unwrap();
    assert_eq!(claim.attempt(), 2);
    claim.give_back().unwrap();
    assert_eq!(claimed(&mut raw, 12, Target::Space(space), Some(2)), 2);
    drop(raw);
    // It was the last attempt (K5).
    let jobs = [template!["job", Kind::Int]];
    let begin = Instant::now();
    let dead = loop {
        let show = |tuple: TupleView<'_>, dead_letter: DeadLetterRecord| {
            Ok::<_, Error>((keep(tuple)?, dead_letter))
        };
        let dead = beside.dead(&jobs, show).unwrap();
        if !dead.is_empty() || begin.elapsed() > MINUTE {
            break dead;
        }
    };
    let [(tuple, dead_letter)] = &dead[..] else { panic!("{dead:?}") };
    assert_eq!((tuple.as_str(), dead_letter.attempts), (r#"("job", 1)"#, 2));
    let reasons: Vec<_> = dead_letter.reasons.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(reasons, ["the connection of its holder has ended"; 2]);
}

#[test]
fn what_is_asked_of_nothing_that_is_open_is_refused_and_the_connection_goes_on() {
    let served = Served::new(Engine::Mem, "unix");
    let (mut raw, space) = Raw::opened(&served);
    beside(&served).put(&fields!["job", 1]).unwrap();
    let kept = |request| Target::Kept { request, at: 0 };
    let done = Operation::Settle(Settlement::Done { grant: None });
    ask(&mut raw, 10, kept(3), done);
    assert_eq!(refusal(&mut raw), "TUP-019");
    claimed(&mut raw, 11, Target::Space(space), None);
    // What is for a lease, for a transaction, and for a space.
    for (id, operation) in
        [(12, Operation::Term(Term::Left)), (13, Operation::HasRead), (14, Operation::Room)]
    {
        ask(&mut raw, id, kept(11), operation);
        assert_eq!(refusal(&mut raw), "TUP-023");
    }
    ask(&mut raw, 15, Target::Space(space), done);
    assert_eq!(refusal(&mut raw), "TUP-023");
    let missing_grant = Operation::Settle(Settlement::Done { grant: Some(99) });
    ask(&mut raw, 16, kept(11), missing_grant);
    assert_eq!(refusal(&mut raw), "TUP-019");
    ask(&mut raw, 17, kept(11), done);
    assert_eq!(raw.reply(|reply| *reply == Reply::Done { id: 17, count: 1 }), Some(true));
    ask(&mut raw, 18, kept(11), done);
    assert_eq!(refusal(&mut raw), "TUP-019");
    // The same request again has its first answer.
    let again = Request::Do { id: 19, on: kept(11), key: Some(Key(17)), operation: done };
    raw.request(&again);
    assert_eq!(raw.reply(|reply| *reply == Reply::Done { id: 19, count: 1 }), Some(true));
}

#[test]
fn a_transaction_ends_with_its_connection_and_names_no_spaces_of_another_x5() {
    let served = Served::new(Engine::Mem, "unix");
    let (mut raw, space) = Raw::opened(&served);
    let beside = beside(&served);
    beside.put(&fields!["job", 1]).unwrap();
    let begin = |others| Operation::Begin { others, ttl: MINUTE };
    let foreign = [tupelo_protocol::SpaceId { client: 6, space }];
    ask(&mut raw, 10, Target::Space(space), begin(SpaceIds::Plain(&foreign)));
    assert_eq!(refusal(&mut raw), "TUP-002");
    ask(&mut raw, 11, Target::Space(space), begin(SpaceIds::Plain(&[])));
    assert_eq!(raw.reply(|reply| *reply == Reply::Done { id: 11, count: 1 }), Some(true));
    let (on, template) = (Target::Kept { request: 11, at: 0 }, template_bytes("job, :int"));
    let take = crate::protocol::take_of(&template, false);
    ask(&mut raw, 12, on, take);
    let is_found = |reply: &Reply<'_>| matches!(reply, Reply::Found { id: 12, held: true, .. });
    assert_eq!(raw.reply(is_found), Some(true));
    // Not arrived: the transaction has it again, and nobody else (V3).
    raw.request(&Request::Cancel { id: 12 });
    ask(&mut raw, 13, on, take);
    let is_found = |reply: &Reply<'_>| matches!(reply, Reply::Found { id: 13, held: true, .. });
    assert_eq!(raw.reply(is_found), Some(true));
    ask(&mut raw, 14, Target::Kept { request: 11, at: 1 }, take);
    assert_eq!(refusal(&mut raw), "TUP-023");
    assert_eq!(beside.count(&[template!["job", Kind::Int]]), Ok(0));
    drop(raw);
    let taken = beside.take(&[template!["job", Kind::Int]], Order::Fifo, Some(MINUTE), keep);
    assert_eq!(taken.unwrap(), r#"("job", 1)"#);
}

#[test]
fn a_lease_outlives_its_handle_and_its_connection_l1() {
    let served = Served::new(Engine::Mem, "unix");
    let terms = LeaseTerms { lease: Some(MINUTE), after: None };
    let space = beside(&served);
    let lease = space.put_leased(&fields!["host", 1], &terms).unwrap();
    assert!(lease.expires_in().unwrap().unwrap() <= MINUTE);
    lease.prolong(MINUTE * 60).unwrap();
    lease.prolong(MINUTE).unwrap();
    assert!(lease.expires_in().unwrap().unwrap() > MINUTE * 59, "prolonging shortens nothing");
    lease.renew(None).unwrap();
    assert_eq!(lease.expires_in(), Ok(None));
    drop(lease);
    assert_eq!(space.count(&[template!["host", 1]]), Ok(1));
    let lease = space.put_leased(&fields!["host", 2], &terms).unwrap();
    let alive = lease.keep_alive().unwrap();
    lease.cancel().unwrap();
    assert!(matches!(lease.renew_as_before(), Err(Error::LeaseExpired { .. })));
    drop(alive);
    assert_eq!(space.count(&[template!["host", Kind::Int]]), Ok(1));
}

#[test]
fn a_put_waits_for_room_and_a_claim_is_done_in_its_turn_b1() {
    let served = Served::new(Engine::Mem, "unix");
    let url = served.urls().replace("{}", "full");
    let options = ConnectOptions {
        tuples_max: Some(2),
        when_full: WhenFull::Wait,
        ..ConnectOptions::default()
    };
    let space = Space::connect(&url, &options).unwrap();
    space.put_all(&[&fields!["job", 1], &fields!["job", 2]]).unwrap();
    let refused = space.at_once().put(&fields!["job", 3]).unwrap_err();
    assert!(refused.may_pass(), "{refused}");
    let jobs = [template!["job", Kind::Int]];
    let (claim, _) = space.try_claim(&jobs, Order::Fifo, &TERMS, keep).unwrap().unwrap();
    claim.put(&fields!["done", 1]).unwrap();
    claim.put(&fields!["done", 2]).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            space.put(&fields!["job", 3]).unwrap();
        });
        let done = scope.spawn(|| claim.done());
        // Two more than there is room for: what is taken here makes it.
        for _ in 0..2 {
            let any = [template!["job", Kind::Int], template!["done", Kind::Int]];
            space.take(&any, Order::Fifo, Some(MINUTE), keep).unwrap();
        }
        waiting.join().unwrap();
        done.join().unwrap().unwrap();
    });
    assert_eq!(space.count(&[template![..]]), Ok(2));
}

#[test]
fn what_can_not_be_claimed_or_put_is_refused_where_it_is_said() {
    let served = Served::new(Engine::Mem, "unix");
    let space = beside(&served);
    let jobs = [template!["job", Kind::Int]];
    let none = ClaimTerms { ttl: MINUTE, attempts_max: Some(0) };
    let refused = space.try_claim(&jobs, Order::Fifo, &none, keep).unwrap_err();
    assert!(matches!(refused, Error::Misuse { .. }), "{refused}");
    space.put(&fields!["job", 1]).unwrap();
    let refuse = |_: TupleView<'_>| Err::<(), _>(Error::NotEncodable { problem: "no".into() });
    let refused = space.try_claim(&jobs, Order::Fifo, &TERMS, refuse).unwrap_err();
    assert!(matches!(refused, Error::NotEncodable { .. }), "{refused}");
    let (claim, _) = space.try_claim(&jobs, Order::Fifo, &TERMS, keep).unwrap().unwrap();
    assert_eq!(claim.attempt(), 1, "nobody has seen it (V3)");
    let large = vec![0_u8; 20 << 20];
    assert!(matches!(claim.put(&fields!["large", &large]), Err(Error::SpaceFull { .. })));
    claim.put(&fields!["small", 1]).unwrap();
    assert_eq!(claim.discard_puts(), 1);
    claim.done().unwrap();
    assert!(matches!(claim.done(), Err(Error::Misuse { .. })));
    assert_eq!(space.count(&[template![..]]), Ok(0));
}

#[test]
fn a_waiter_to_take_is_claimed_from_on_whatever_terms_k1() {
    let served = Served::new(Engine::Mem, "unix");
    let space = beside(&served);
    let jobs = [template!["job", Kind::Int]];
    let waiter = space.waiter(&jobs, Want::Take).unwrap();
    space.put(&fields!["job", 1]).unwrap();
    assert!(waiter.wait(Some(MINUTE)).unwrap());
    let Outcome::Done((claim, job)) = waiter.finish_claim(&TERMS, keep).unwrap() else {
        panic!("nobody else is in line")
    };
    assert_eq!((job.as_str(), claim.attempt()), (r#"("job", 1)"#, 1));
    claim.done().unwrap();
    let waiter = space.waiter(&jobs, Want::Take).unwrap();
    let Outcome::Waits(waiter) = waiter.finish_claim(&TERMS, keep).unwrap() else {
        panic!("there is none")
    };
    space.put(&fields!["job", 2]).unwrap();
    assert!(waiter.wait(Some(MINUTE)).unwrap());
    assert!(matches!(waiter.finish_claim(&TERMS, keep).unwrap(), Outcome::Done(_)));
}

#[test]
fn a_transaction_is_over_spaces_of_one_server_x1() {
    let (served, other) = (Served::new(Engine::Mem, "unix"), Served::new(Engine::Mem, "unix"));
    let (space, far) = (beside(&served), beside(&other));
    let here = Space::connect("mem://beside-a-server", &ConnectOptions::default()).unwrap();
    for foreign in [&far, &here] {
        let refused = space.transaction(&[foreign], MINUTE).unwrap_err();
        assert!(matches!(refused, Error::Misuse { .. }), "{refused}");
        assert!(refused.hint().unwrap().contains("all of one server"), "{refused}");
    }
    assert!(here.transaction(&[&space], MINUTE).is_err());
    assert!(space.transaction(&[&space], MINUTE).is_err(), "twice");
    let second = Space::connect(&served.urls().replace("{}", "second"), &ConnectOptions::default());
    let second = second.unwrap();
    let transaction = space.transaction(&[&second], MINUTE).unwrap();
    transaction.on(&space).unwrap().put(&fields!["job", 1]).unwrap();
    transaction.on(&second).unwrap().put_all(&[(&fields!["job", 2]).into()]).unwrap();
    assert_eq!((space.count(&[template![..]]), second.count(&[template![..]])), (Ok(0), Ok(0)));
    transaction.commit().unwrap();
    assert!(!transaction.is_open() && transaction.is_ended());
    assert!(matches!(transaction.commit(), Err(Error::Misuse { .. })));
    assert_eq!((space.count(&[template![..]]), second.count(&[template![..]])), (Ok(1), Ok(1)));
    let over = space.transaction(&[], Duration::from_millis(300)).unwrap();
    let jobs = [template!["job", Kind::Int]];
    let waited = over.at(0).take(&[template!["none"]], Order::Fifo, None, keep).unwrap_err();
    assert!(matches!(waited, Error::Aborted { waited_for: Some(_), .. }), "{waited}");
    assert!(!over.is_open() && space.count(&jobs) == Ok(1));
    tupelo::remove("mem://beside-a-server").unwrap();
}

#[test]
fn a_put_in_the_turn_of_a_place_in_line_goes_where_that_is_b1() {
    let served = Served::new(Engine::Mem, "unix");
    let (mut raw, space) = Raw::opened(&served);
    ask(&mut raw, 10, Target::Space(space), Operation::Room);
    let (on, tuples) = (Target::Kept { request: 10, at: 0 }, job(1));
    ask(&mut raw, 11, on, put_of(&tuples));
    assert_eq!(raw.reply(|reply| *reply == Reply::Done { id: 11, count: 1 }), Some(true));
    let template = template_bytes("...");
    ask(&mut raw, 12, on, Operation::Count { template: TemplateBytes::of_encoding(&template) });
    assert_eq!(refusal(&mut raw), "TUP-023");
    assert_eq!(beside(&served).count(&[template!["job", Kind::Int]]), Ok(1));
    let two = Tuples::encode([(&fields!["a"]).into(), (&fields!["b"]).into()].into_iter()).unwrap();
    let leased = Operation::PutLeased {
        tuple: Tuples::of_encoding(&two),
        terms: PutTerms::default(),
        unless: None,
    };
    ask(&mut raw, 13, Target::Space(space), leased);
    assert_eq!(refusal(&mut raw), "TUP-023");
}
