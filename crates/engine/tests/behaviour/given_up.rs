//! What was begun through a handle is over when that is given up (rule L5).

use std::sync::Arc;
use std::time::Duration;

use crate::support::{any_job, count, engine, job, number, this_job};
use tupelo_engine::{Claim, ClaimTerms, Engine, Error, Handle, Order, Transaction, Want};
use tupelo_tuple::{PatternRef, TemplateRef};

const HOUR: Duration = Duration::from_secs(3600);
const TERMS: ClaimTerms = ClaimTerms { ttl: HOUR, attempts_max: None };

/// One of several handles of a process.
#[derive(Clone)]
struct Numbered(Arc<Engine>, u32);

impl Handle for Numbered {
    fn kept(&self) -> &Arc<Engine> {
        &self.0
    }

    fn number(&self) -> u32 {
        self.1
    }
}

fn jobs(engine: &Engine) {
    (1..=6).for_each(|key| engine.put(&job(key)).unwrap());
}

fn claim(handle: &Numbered, patterns: &[PatternRef<'_>]) -> (Claim<Numbered>, i64) {
    let template = [TemplateRef::new(patterns)];
    Claim::begin(handle, &template, Order::Fifo, &TERMS, number).unwrap().unwrap()
}

#[test]
fn its_claims_are_back_as_after_a_failed_attempt_k2() {
    let engine = engine(16 << 20);
    jobs(&engine);
    let [closed, other] = [1, 2].map(|number| Numbered(Arc::clone(&engine), number));
    let (first, _) = claim(&closed, &this_job(1));
    let (waited, _) = {
        let template = any_job();
        let waiter = engine.claimant(&[TemplateRef::new(&template)], HOUR).unwrap();
        let claimed = waiter.finish_claim_for(&closed, &TERMS, number).unwrap();
        let tupelo_engine::Outcome::Done(claimed) = claimed else { panic!("there is a tuple") };
        claimed
    };
    let (others, _) = claim(&other, &this_job(3));
    let (plain, _) = claim(&Numbered(Arc::clone(&engine), 0), &this_job(4));
    engine.give_up(1).unwrap();
    assert_eq!(count(&engine), 4, "all but those of other handles");
    assert!(matches!(first.done(&[]), Err(Error::ClaimLost { .. })));
    assert!(matches!(waited.abort(""), Err(Error::ClaimLost { .. })));
    let (again, found) = claim(&other, &any_job());
    assert_eq!((again.attempt(), found), (2, 1), "at its old place");
    for kept in [others, plain] {
        kept.done(&[]).unwrap();
    }
    assert_eq!(engine.check().unwrap().held(), 1);
}

#[test]
fn its_transactions_are_rolled_back_x5() {
    let engine = engine(16 << 20);
    jobs(&engine);
    let [closed, other] = [1, 2].map(|number| Numbered(Arc::clone(&engine), number));
    let mut ended = Transaction::begin([&closed], HOUR).unwrap();
    let mut goes_on = Transaction::begin([&other], HOUR).unwrap();
    for (transaction, keys) in [(&mut ended, [1, 2]), (&mut goes_on, [3, 4])] {
        let [take, read] = keys.map(this_job);
        let (take, read) = ([TemplateRef::new(&take)], [TemplateRef::new(&read)]);
        transaction.try_take(0, &take, Order::Fifo, number).unwrap().unwrap();
        transaction.try_read(0, &read, Order::Fifo, number).unwrap().unwrap();
        transaction.put(0, &job(10 + keys[0])).unwrap();
    }
    engine.give_up(1).unwrap();
    let takes = |key| {
        let template = this_job(key);
        let template = [TemplateRef::new(&template)];
        engine.try_take(&template, Order::Fifo, number).unwrap()
    };
    assert_eq!([1, 2, 3, 4].map(takes), [Some(1), Some(2), None, None]);
    assert!(matches!(ended.commit(), Err(Error::Aborted(_))), "what it had is another's");
    goes_on.commit().unwrap();
    assert_eq!([4, 13, 11].map(takes), [Some(4), Some(13), None]);
    engine.check().unwrap();
}

#[test]
fn who_is_blocked_is_told_to_look_around_l5() {
    let engine = engine(16 << 20);
    let notifier = engine.notifier().unwrap();
    let template = any_job();
    let waiter = engine.waiter(&[TemplateRef::new(&template)], Want::Take).unwrap();
    let ready = notifier.add(&waiter);
    assert!(notifier.drain().is_empty() && notifier.listen());
    engine.rouse().unwrap();
    assert!(!notifier.listen());
    assert_eq!(notifier.drain(), [ready]);
    assert!(notifier.look().unwrap().is_empty(), "it has nothing");
}
