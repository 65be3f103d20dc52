//! Claims on one engine (rules K1 to K5).

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::support::{
    LONG, any, any_job, count, engine, job, number, this_job, try_claim, try_take,
};
use tupelo_engine::{ClaimTerms, Engine, Error, Order, Waiter, Want};
use tupelo_tuple::{Field, Kind, TemplateRef};

const BRIEF: ClaimTerms = ClaimTerms { ttl: Duration::from_millis(5), attempts_max: None };

/// Lets every claim on [`BRIEF`] terms run out.
fn let_it_run_out() {
    thread::sleep(Duration::from_millis(10));
}

fn sound(engine: &Engine) {
    engine.check().unwrap();
}

#[test]
fn a_claimed_tuple_is_hidden_but_present_k1_o9() {
    let engine = engine(16 << 20);
    engine.put(&job(1)).unwrap();
    let (claim, claimed) = try_claim(&engine, &any_job(), &LONG).unwrap();
    assert_eq!(claimed, 1);
    assert_eq!((claim.attempt(), count(&engine), try_take(&engine, &any_job())), (1, 0, None));
    let stat = engine.stat().unwrap();
    let [seen] = stat.shapes[0].claims[..] else { panic!("one claim: {stat:?}") };
    let pid = std::process::id();
    assert_eq!((seen.pid, seen.fence, seen.attempt), (pid, claim.fence(), 1));
    assert!(seen.expires_in > Duration::from_secs(3_500));
    assert!(engine.present(&[TemplateRef::new(&any_job())]).unwrap());
    assert!(!engine.put_if_absent(&job(2), &[TemplateRef::new(&this_job(1))]).unwrap());
    sound(&engine);
    claim.done(&[]).unwrap();
    assert!(!engine.present(&[TemplateRef::new(&any_job())]).unwrap());
    sound(&engine);
}

#[test]
fn fences_increase_over_the_whole_space_k1() {
    let engine = engine(16 << 20);
    let mut fences = Vec::new();
    for round in 0..3 {
        engine.put(&job(round)).unwrap();
        engine.put(&[Field::Int(round)]).unwrap();
        let patterns = [any(Kind::Int)];
        let other = |view: tupelo_tuple::TupleView<'_>| Ok::<_, Error>(view.field(0).is_some());
        let claimed =
            engine.try_claim(&[TemplateRef::new(&patterns)], Order::Fifo, &LONG, other).unwrap();
        fences.push(claimed.unwrap().0.fence());
        fences.push(try_claim(&engine, &this_job(round), &LONG).unwrap().0.fence());
    }
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

#[test]
fn an_aborted_claim_is_back_at_its_old_place_k2() {
    let engine = engine(16 << 20);
    (1..=4).for_each(|number| engine.put(&job(number)).unwrap());
    let (second, _) = try_claim(&engine, &this_job(2), &LONG).unwrap();
    let (first, _) = try_claim(&engine, &any_job(), &LONG).unwrap();
    second.abort("not now").unwrap();
    first.abort("nor now").unwrap();
    sound(&engine);
    let (again, number) = try_claim(&engine, &any_job(), &LONG).unwrap();
    assert_eq!((number, again.attempt()), (1, 2));
    again.done(&[]).unwrap();
    let rest: Vec<i64> = std::iter::from_fn(|| try_take(&engine, &any_job())).collect();
    assert_eq!(rest, [2, 3, 4]);
    sound(&engine);
}

/// `values` in every order.
fn orders(values: &[i64]) -> Vec<Vec<i64>> {
    if values.is_empty() {
        return vec![Vec::new()];
    }
    let beginning_with = |first: i64| {
        let rest: Vec<i64> = values.iter().copied().filter(|value| *value != first).collect();
        orders(&rest).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    values.iter().copied().flat_map(beginning_with).collect()
}

#[test]
fn tuples_of_one_key_are_back_at_their_places_in_whatever_order_they_come_t5() {
    let engine = engine(16 << 20);
    for number in 0..100 {
        engine.put(&[Field::Str("other"), Field::Int(number)]).unwrap();
    }
    (0..7).for_each(|number| engine.put(&job(number)).unwrap());
    for _ in 0..5 {
        assert_eq!(crate::support::try_read(&engine, &any_job()), Some(0));
    }
    assert_eq!(engine.check().unwrap().shapes[0].indexes, [1]);
    for order in orders(&[0, 2, 3, 5, 6]) {
        let claim = |number| try_claim(&engine, &this_job(number), &LONG).unwrap().0;
        let claims: Vec<_> = order.iter().map(|number| claim(*number)).collect();
        for claim in claims.iter().rev() {
            claim.abort("not now").unwrap();
            sound(&engine);
        }
        let patterns = any_job();
        let back = engine.read_all(&[TemplateRef::new(&patterns)], None, number).unwrap();
        assert_eq!(back, [0, 1, 2, 3, 4, 5, 6], "given back in the order reverse to {order:?}");
    }
}

#[test]
fn a_dropped_claim_gives_its_tuple_back_k2() {
    let engine = engine(16 << 20);
    engine.put(&job(1)).unwrap();
    drop(try_claim(&engine, &any_job(), &LONG));
    assert_eq!(try_claim(&engine, &any_job(), &LONG).unwrap().0.attempt(), 2);
}

#[test]
fn a_tuple_that_the_visitor_refuses_is_back_as_if_never_claimed_v3() {
    let engine = engine(16 << 20);
    engine.put(&job(1)).unwrap();
    let patterns = any_job();
    let template = [TemplateRef::new(&patterns)];
    let refused =
        engine.try_claim(&template, Order::Fifo, &LONG, |_| Err::<(), _>(Error::LeaseExpired));
    assert_eq!(refused.err(), Some(Error::LeaseExpired));
    assert_eq!(try_claim(&engine, &any_job(), &LONG).unwrap().0.attempt(), 1);
    sound(&engine);
}

#[test]
fn a_silent_holder_loses_its_claim_and_all_it_says_later_is_refused_k2_k3() {
    let engine = engine(16 << 20);
    engine.put(&job(1)).unwrap();
    let (late, _) = try_claim(&engine, &any_job(), &BRIEF).unwrap();
    let_it_run_out();
    assert_eq!(count(&engine), 1, "it is back");
    sound(&engine);
    assert_eq!(late.extend(Duration::from_secs(1)), Err(Error::ClaimLost { pid: None }));
    let (now, _) = try_claim(&engine, &any_job(), &LONG).unwrap();
    let pid = Some(std::process::id());
    assert_eq!(
        late.done(&[(&job(9)).into()]),
        Err(Error::ClaimLost { pid }),
        "somebody else has it"
    );
    assert_eq!((now.attempt(), count(&engine)), (2, 0), "nothing was stored");
    assert_eq!(late.abort("again"), Err(Error::ClaimSettled));
    now.done(&[]).unwrap();
    assert_eq!(now.done(&[]), Err(Error::ClaimSettled));
    sound(&engine);
}

#[test]
fn an_extended_claim_holds_k2() {
    let engine = engine(16 << 20);
    engine.put(&job(1)).unwrap();
    let (claim, _) =
        try_claim(&engine, &any_job(), &ClaimTerms { ttl: Duration::from_secs(60), ..BRIEF })
            .unwrap();
    claim.extend(Duration::from_secs(3600)).unwrap();
    sound(&engine);
    claim.extend(Duration::from_millis(1)).unwrap();
    let_it_run_out();
    assert_eq!(claim.done(&[]), Err(Error::ClaimLost { pid: None }));
}

#[test]
fn a_renewal_shortens_no_claim_that_was_extended_k2() {
    let engine = engine(16 << 20);
    engine.put(&job(1)).unwrap();
    let terms = ClaimTerms { ttl: Duration::from_secs(60), ..BRIEF };
    let (claim, _) = try_claim(&engine, &any_job(), &terms).unwrap();
    claim.extend(Duration::from_secs(3600)).unwrap();
    claim.renewal().prolong(Duration::from_millis(1)).unwrap();
    let_it_run_out();
    claim.done(&[]).unwrap();
    sound(&engine);
}

#[test]
fn of_many_silent_holders_each_loses_its_claim_at_its_end_k2() {
    // More than one undo log has room for at once.
    let engine = engine(16 << 20);
    (0..600).for_each(|number| engine.put(&job(number)).unwrap());
    let claimed = || try_claim(&engine, &any_job(), &LONG).unwrap().0;
    let [silent, patient] = [(); 2].map(|()| (0..300).map(|_| claimed()).collect::<Vec<_>>());
    sound(&engine);
    for claim in &silent {
        claim.extend(Duration::from_millis(1)).unwrap();
    }
    let_it_run_out();
    assert_eq!(count(&engine), 300);
    sound(&engine);
    assert!(silent.iter().all(|claim| claim.done(&[]) == Err(Error::ClaimLost { pid: None })));
    assert!(patient.iter().all(|claim| claim.done(&[]).is_ok()));
    sound(&engine);
}

#[test]
fn a_claim_ends_when_it_was_last_said_to_whatever_else_was_due_before_k2() {
    let engine = engine(16 << 20);
    (0..4).for_each(|number| engine.put(&job(number)).unwrap());
    let claim = |terms| try_claim(&engine, &any_job(), terms).unwrap().0;
    let [sooner, later] = [(); 2].map(|()| claim(&LONG));
    // The timers of all that is claimed by now are armed when this one is due.
    let silent = claim(&BRIEF);
    let_it_run_out();
    assert_eq!(count(&engine), 2, "one was left, and one is back");
    assert!(silent.done(&[]).is_err());
    sound(&engine);
    let newest = claim(&LONG);
    for (claim, ttl_ms) in [(&later, 7_200_000), (&newest, 1), (&sooner, 1)] {
        claim.extend(Duration::from_millis(ttl_ms)).unwrap();
        sound(&engine);
    }
    let_it_run_out();
    let lost = Err(Error::ClaimLost { pid: None });
    assert_eq!([sooner.done(&[]), newest.done(&[]), later.done(&[])], [lost.clone(), lost, Ok(())]);
    sound(&engine);
}

#[test]
fn what_is_put_under_a_claim_appears_with_done_k4() {
    let engine = engine(16 << 20);
    engine.put(&job(1)).unwrap();
    let (claim, _) = try_claim(&engine, &any_job(), &LONG).unwrap();
    let note = [Field::Str("note"), Field::Float(0.5)];
    claim.done(&[(&job(2)).into(), (&note).into(), (&job(3)).into()]).unwrap();
    let rest: Vec<i64> = std::iter::from_fn(|| try_take(&engine, &any_job())).collect();
    assert_eq!(rest, [2, 3]);
    assert_eq!(engine.stat().unwrap().tuples, 1, "the note");
    sound(&engine);
}

#[test]
fn a_tuple_is_dead_after_its_last_attempt_and_can_be_put_back_k5() {
    let engine = engine(16 << 20);
    (1..=3).for_each(|number| engine.put(&job(number)).unwrap());
    let terms = ClaimTerms { attempts_max: Some(3), ..LONG };
    try_claim(&engine, &this_job(2), &terms).unwrap().0.abort("no disk").unwrap();
    try_claim(&engine, &this_job(2), &terms).unwrap().0.abort("").unwrap();
    let (last, _) =
        try_claim(&engine, &this_job(2), &ClaimTerms { attempts_max: Some(3), ..BRIEF }).unwrap();
    let_it_run_out();
    assert!(last.done(&[]).is_err());
    sound(&engine);
    assert_eq!(count(&engine), 2);
    let patterns = any_job();
    let template = [TemplateRef::new(&patterns)];
    assert!(engine.present(&[TemplateRef::new(&this_job(2))]).is_ok_and(|present| !present));
    let dead = || {
        engine.dead(&template, |tuple, dead_letter| Ok::<_, Error>((number(tuple)?, dead_letter)))
    };
    let all = dead().unwrap();
    assert_eq!(engine.count_dead(&template).unwrap(), 1);
    assert_eq!(engine.count_dead(&[TemplateRef::new(&this_job(1))]).unwrap(), 0);
    let [(2, dead_letter)] = &all[..] else { panic!("{all:?}") };
    let reasons: Vec<(u32, &str)> = dead_letter
        .reasons
        .iter()
        .map(|attempt| (attempt.number, attempt.reason.as_str()))
        .collect();
    let silence = format!("process {} did not renew its claim in time", std::process::id());
    assert_eq!((dead_letter.attempts, reasons), (3, vec![(1, "no disk"), (2, ""), (3, &silence)]));
    assert_eq!(engine.requeue(&template).unwrap(), 1);
    assert!(dead().unwrap().is_empty());
    assert_eq!(engine.count_dead(&template).unwrap(), 0);
    sound(&engine);
    assert_eq!(try_claim(&engine, &this_job(2), &terms).unwrap().0.attempt(), 1);
}

#[test]
fn what_comes_back_goes_to_who_waits_for_it_t3() {
    let engine = engine(16 << 20);
    engine.put(&job(1)).unwrap();
    let (claim, _) = try_claim(&engine, &any_job(), &LONG).unwrap();
    let patterns = any_job();
    let waiter = engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
    claim.abort("somebody else shall").unwrap();
    assert!(waiter.wait(None).unwrap());
    let (claim, claimed) = crate::support::done(waiter.finish_claim(&LONG, number));
    assert_eq!((claimed, claim.attempt()), (1, 2));
    sound(&engine);
    claim.done(&[]).unwrap();
    sound(&engine);
}

#[test]
fn what_fails_while_readers_wait_fills_no_block_that_it_frees_t3_k5() {
    // A reader gets a copy: its block must not be one that the same section has freed (`--features checked`).
    let engine = engine(16 << 20);
    let terms = ClaimTerms { attempts_max: Some(3), ..LONG };
    let template = any_job();
    let readers = || [(); 3].map(|()| engine.waiter(&[TemplateRef::new(&template)], Want::Read));
    let all_read = |waiters: [Result<Waiter, Error>; 3]| {
        sound(&engine);
        for waiter in waiters {
            assert_eq!(waiter.unwrap().finish(number).unwrap(), 1);
        }
        sound(&engine);
    };
    engine.put(&job(1)).unwrap();
    for _ in 1..=2 {
        let (claim, _) = try_claim(&engine, &any_job(), &terms).unwrap();
        let waiters = readers();
        claim.abort("a reason that makes the history's block as large as a job's record").unwrap();
        all_read(waiters);
    }
    try_claim(&engine, &any_job(), &terms).unwrap().0.abort("the last attempt").unwrap();
    let waiters = readers();
    assert_eq!(engine.requeue(&[TemplateRef::new(&template)]).unwrap(), 1);
    all_read(waiters);
}

#[test]
fn a_blocked_caller_gets_what_runs_out_while_nobody_comes_by_t6() {
    let engine = engine(16 << 20);
    engine.put(&job(1)).unwrap();
    let terms = ClaimTerms { ttl: Duration::from_millis(30), ..BRIEF };
    let (silent, _) = try_claim(&engine, &any_job(), &terms).unwrap();
    let patterns = any_job();
    let waiter = engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
    assert!(waiter.wait(None).unwrap());
    assert_eq!(waiter.finish(number).unwrap(), 1);
    assert!(silent.done(&[]).is_err());
}

#[test]
fn a_large_tuple_is_claimed_like_a_small_one_k1() {
    let engine = engine(16 << 20);
    let bytes = vec![7_u8; 300_000];
    engine.put(&[Field::Int(1), Field::Bytes(&bytes)]).unwrap();
    let patterns = [any(Kind::Int), any(Kind::Bytes)];
    let visitor = |tuple: tupelo_tuple::TupleView<'_>| match tuple.field(1) {
        Some(Field::Bytes(found)) => Ok::<_, Error>(found == bytes),
        _ => Ok(false),
    };
    let claimed = engine.try_claim(&[TemplateRef::new(&patterns)], Order::Fifo, &LONG, visitor);
    let (claim, is_equal) = claimed.unwrap().unwrap();
    assert!(is_equal);
    sound(&engine);
    claim.abort("").unwrap();
    sound(&engine);
    assert_eq!(engine.count(&[TemplateRef::new(&patterns)]).unwrap(), 1);
}

#[test]
fn ten_thousand_claims_in_any_order_leave_a_sound_space() {
    let engine = engine(64 << 20);
    (0..2_000).for_each(|number| engine.put(&job(number)).unwrap());
    let mut open = Vec::new();
    let mut done = 0;
    let mut random = 7_u64;
    for _ in 0..10_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let index = usize::try_from(random >> 33).unwrap() % (open.len() + 1);
        match random >> 60 {
            0..8 => open.extend(try_claim(&engine, &any_job(), &LONG)),
            8..10 if index < open.len() => {
                let (claim, _): (tupelo_engine::Claim, i64) = open.swap_remove(index);
                claim.done(&[]).unwrap();
                done += 1;
            }
            10..13 if index < open.len() => open.swap_remove(index).0.abort("no").unwrap(),
            _ if index < open.len() => {
                open[index].0.extend(Duration::from_secs(random >> 40)).unwrap();
            }
            _ => {}
        }
    }
    let report = engine.check().unwrap();
    assert_eq!(
        (report.tuples(), report.held()),
        (2_000 - done - open.len() as u64, open.len() as u64)
    );
    drop(open);
    assert_eq!(count(&engine), 2_000 - done);
    assert_eq!(
        engine.take_all(&[TemplateRef::new(&any_job())], None, number).unwrap().len() as u64,
        2_000 - done
    );
    sound(&engine);
    let _: Arc<Engine> = engine;
}
