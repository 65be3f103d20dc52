//! Claims over HTTP (rules K1 to K5): each is known by a number that nobody can guess, and ends with its time.
//!
//! There is no connection that could hold a claim from one request to the next. So the server does, for `ttl_s` seconds
//! from the last time that the client has renewed it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep_until};
use tupelo::Order;
use tupelo_protocol::{Fault, Operation, PutTerms, Reply, Settlement, TemplateBytes, Term, Tuples};

use super::answer;
use super::asked::{all_tuples, bad, encoded, object, order, seconds, template, timeout, whole};
use super::exchange::Exchange;
use crate::Shared;
use crate::rights::Principal;

/// Claims that all clients together may have (rule B2).
const CLAIMS_MAX: usize = 65_536;
/// How long a client may be silent, unless it says so; and the most that it may say.
const TTL: Duration = Duration::from_secs(30);
const TTL_MAX: Duration = Duration::from_secs(24 * 3600);

/// What is claimed.
pub(super) struct Asked {
    template: Vec<u8>,
    order: Order,
    attempts_max: Option<u32>,
    pub(super) ttl: Duration,
    /// How long to wait; `None`: not at all.
    pub(super) timeout: Option<Duration>,
}

impl Asked {
    /// Understands the body of a request.
    pub(super) fn read(body: &str) -> Result<Self, Fault> {
        let keys = ["template", "where", "order", "timeout_s", "ttl_s", "max_attempts"];
        let mut body = object(body, &keys)?;
        let attempts_max = whole(&mut body, "max_attempts")?;
        let attempts_max = attempts_max.map(u32::try_from).transpose().map_err(|_| {
            bad("max_attempts is too large".to_owned(), "give 1 or more, or leave it out")
        })?;
        Ok(Self {
            template: template(&mut body, "template")?,
            order: order(body.remove("order"))?,
            attempts_max,
            ttl: ttl(seconds(&mut body, "ttl_s")?)?.unwrap_or(TTL),
            timeout: timeout(&mut body)?,
        })
    }

    pub(super) fn operation(&self) -> Operation<'_> {
        Operation::Claim {
            order: self.order,
            ttl: self.ttl,
            attempts_max: self.attempts_max,
            waits: self.timeout.is_some_and(|timeout| !timeout.is_zero()),
            template: TemplateBytes::of_encoding(&self.template),
        }
    }
}

/// How long a client may be silent.
fn ttl(given: Option<Duration>) -> Result<Option<Duration>, Fault> {
    match given {
        Some(ttl) if ttl.is_zero() || ttl > TTL_MAX => {
            let problem = format!("ttl_s is {}", ttl.as_secs_f64());
            Err(bad(problem, "give more than 0, and up to 86400: renew the claim while you work"))
        }
        given => Ok(given),
    }
}

/// An answer to a claim as JSON; `None` if there is nothing to claim.
pub(super) fn content(reply: &Reply<'_>) -> Result<Option<Json>, Fault> {
    let unexpected =
        || Fault::protocol(format!("the session answered what was not asked: {reply:?}"));
    let tuples = match reply {
        Reply::Nothing { .. } => return Ok(None),
        Reply::Found { tuples, .. } => answer::tuples(*tuples)?,
        _ => return Err(unexpected()),
    };
    let Ok([head, Json::Object(mut content)]) = <[Json; 2]>::try_from(tuples) else {
        return Err(unexpected());
    };
    content.insert("fence".to_owned(), head["tuple"][0].clone());
    content.insert("attempt".to_owned(), head["tuple"][1].clone());
    Ok(Some(Json::Object(content)))
}

/// The claims that clients have, by their numbers.
#[derive(Default)]
pub(crate) struct Claims {
    by_id: RefCell<HashMap<String, Rc<Claim>>>,
}

/// A claim that a client has. Dropped, it is a failed attempt unless it was ended.
struct Claim {
    exchange: Exchange,
    principal: Rc<Principal>,
    until: Cell<Instant>,
    ttl: Duration,
}

impl Claims {
    /// Keeps a claim for its client, and adds the number to what that is answered.
    pub(super) fn keep(
        shared: &Rc<Shared>,
        principal: &Rc<Principal>,
        (exchange, ttl): (Exchange, Duration),
        mut content: Json,
    ) -> Result<Json, Fault> {
        let mut by_id = shared.http_claims.by_id.borrow_mut();
        let id = if by_id.len() < CLAIMS_MAX { number() } else { None };
        let Some(id) = id else {
            exchange.give_up();
            return Err(Fault::limit(
                format!("no more than {CLAIMS_MAX} claims over HTTP at a time"),
                "end some, with done or fail",
            ));
        };
        let until = Cell::new(Instant::now() + ttl);
        let principal = Rc::clone(principal);
        by_id.insert(id.clone(), Rc::new(Claim { exchange, principal, until, ttl }));
        content["claim"] = json!(id);
        let shared = Rc::downgrade(shared);
        tokio::task::spawn_local(async move {
            loop {
                let Some(shared) = shared.upgrade() else { return };
                let Some(until) = shared.http_claims.end_if_due(&id) else { return };
                drop(shared);
                sleep_until(until).await;
            }
        });
        Ok(content)
    }

    /// Ends a claim whose time is over. Returns until when it is there otherwise; `None` if it is not.
    fn end_if_due(&self, id: &str) -> Option<Instant> {
        let until = self.by_id.borrow().get(id)?.until.get();
        if until > Instant::now() {
            return Some(until);
        }
        let ended = self.by_id.borrow_mut().remove(id);
        drop(ended);
        None
    }

    /// Ends a claim, or lets it go on.
    pub(super) fn settle(
        &self,
        principal: &Principal,
        (id, end): (&str, &str),
        body: &str,
    ) -> Result<Json, Fault> {
        let claim = self.by_id.borrow().get(id).cloned();
        let claim = claim.filter(|claim| *claim.principal == *principal).ok_or_else(lost)?;
        let settled = match end {
            "done" => claim.done(body),
            "fail" => claim.fail(body),
            _ => claim.renew(body),
        };
        let is_over = match &settled {
            Ok(_) => end != "renew",
            Err(fault) => fault.code == lost().code,
        };
        if is_over {
            self.by_id.borrow_mut().remove(id);
        }
        settled
    }

    /// Ends all: the server does.
    pub(crate) fn end_all(&self) {
        drop(self.by_id.take());
    }
}

impl Claim {
    /// Consumes the tuple; what the body has appears at the same moment (rule K4).
    fn done(&self, body: &str) -> Result<Json, Fault> {
        let mut body = object(body, &["tuple", "entry", "tuples"])?;
        if !body.is_empty() {
            let tuples = encoded(&all_tuples(&mut body)?)?;
            let (tuples, terms) = (Tuples::of_encoding(&tuples), PutTerms::default());
            self.exchange.ask_now(&Operation::Put { tuples, terms, unless: None })?;
        }
        let done = self.exchange.ask_now(&Operation::Settle(Settlement::Done { grant: None }));
        if done.is_err() {
            // The client may try again, with what it puts then.
            let _ = self.exchange.ask_now(&Operation::Settle(Settlement::Discard));
        }
        done.map(|()| json!({ "done": 1 }))
    }

    /// The attempt has failed.
    fn fail(&self, body: &str) -> Result<Json, Fault> {
        let mut body = object(body, &["reason"])?;
        let reason = match body.remove("reason") {
            None => String::new(),
            Some(Json::String(reason)) => reason,
            Some(other) => return Err(bad(format!("reason is {other}"), "give a text")),
        };
        self.exchange.ask_now(&Operation::Settle(Settlement::Abort { reason: &reason }))?;
        Ok(json!({ "failed": 1 }))
    }

    /// The client goes on with it.
    fn renew(&self, body: &str) -> Result<Json, Fault> {
        let mut body = object(body, &["ttl_s"])?;
        let ttl = ttl(seconds(&mut body, "ttl_s")?)?.unwrap_or(self.ttl);
        self.exchange.ask_now(&Operation::Term(Term::Renew(Some(ttl))))?;
        self.until.set(Instant::now() + ttl);
        Ok(json!({ "renewed": 1 }))
    }
}

/// A number that nobody can guess; `None` if the system has none.
fn number() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom(&mut bytes, GetRandomFlags::empty()).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)))
}

fn lost() -> Fault {
    let message =
        "there is no such claim: it has ended, its time is over, or it is another client's";
    Fault::new(
        "TUP-007",
        message,
        Some("claim again, with a longer ttl_s, or renew it while you work"),
    )
}
