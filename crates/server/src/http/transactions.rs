//! Transactions over HTTP (rules X1 to X6), in one space.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tupelo_protocol::{Fault, Operation, Reply, Settlement, SpaceIds};

use super::asked::{Asked, Verb, bad, object, seconds};
use super::claims::ttl;
use super::exchange::Exchange;
use super::open::{self, Left, Open};
use crate::Shared;
use crate::rights::Principal;

/// How long a transaction may take, unless its client says so.
const TTL: Duration = Duration::from_secs(30);

/// Understands the body of a request that begins one: how long it may take.
pub(super) fn read(body: &str) -> Result<Duration, Fault> {
    let mut body = object(body, &["ttl_s"])?;
    Ok(ttl(seconds(&mut body, "ttl_s")?)?.unwrap_or(TTL))
}

/// Begins one in the space that the exchange has open.
pub(super) fn begin(
    shared: &Rc<Shared>,
    principal: &Rc<Principal>,
    (exchange, ttl): (Exchange, Duration),
) -> Result<Json, Fault> {
    exchange.leave_open(&Operation::Begin { others: SpaceIds::Plain(&[]), ttl })?;
    let number =
        open::keep(shared, principal, (exchange, ttl), (Open::transactions, "transactions"))?;
    Ok(json!({ "transaction": number }))
}

/// Does a verb in a transaction, or ends it. A body that makes no sense is refused first: it would be for any transaction.
pub(super) fn act(
    shared: &Shared,
    principal: &Principal,
    (number, step): (&str, Step),
    body: &str,
) -> Result<Json, Fault> {
    let asked = step.read(body)?;
    open::require_number(number)?;
    let transactions = shared.http_open.transactions();
    let left = transactions.find(principal, number).ok_or_else(lost)?;
    let done = match step {
        Step::Verb(verb, show) => {
            left.exchange.ask_kept_now(&asked.operation(verb), |reply| show(verb, reply))
        }
        Step::Commit => end(&left, Settlement::Done { grant: None }, "committed"),
        Step::Abort => end(&left, Settlement::Abort { reason: "" }, "aborted"),
    };
    let is_over = match &done {
        Ok(_) => !matches!(step, Step::Verb(..)),
        Err(fault) => fault.code == lost().code,
    };
    if is_over {
        transactions.forget(number);
    }
    done
}

/// What is done in a transaction.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// A verb, and how its answer is shown.
    Verb(Verb, fn(Verb, &Reply<'_>) -> Result<Json, Fault>),
    Commit,
    Abort,
}

impl Step {
    /// Understands the body of a request. A verb is done at once: a transaction that waited would hold what it has taken for
    /// as long.
    fn read(self, body: &str) -> Result<Asked, Fault> {
        let Self::Verb(verb, _) = self else {
            return object(body, &[]).map(|_| Asked::default());
        };
        let asked = Asked::read(verb, body)?;
        if asked.timeout.is_some_and(|timeout| !timeout.is_zero()) {
            let problem =
                "a request in a transaction does not wait, and has a timeout_s".to_owned();
            return Err(bad(problem, "leave it out: wait first, with read, and then begin"));
        }
        Ok(asked)
    }
}

fn end(left: &Left, end: Settlement<'_>, name: &str) -> Result<Json, Fault> {
    left.exchange.ask_now(&Operation::Settle(end))?;
    Ok(json!({ name: 1 }))
}

fn lost() -> Fault {
    let message =
        "there is no such transaction: it has ended, its time is over, or it is another client's";
    Fault::new("TUP-008", message, Some("begin another one, with a longer ttl_s if need be"))
}
