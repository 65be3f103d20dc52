//! Claims over HTTP (rules K1 to K5), for `ttl_s` seconds from the last time that the client has renewed them.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::time::Instant;
use tupelo::Order;
use tupelo_protocol::{Fault, Operation, PutTerms, Reply, Settlement, TemplateBytes, Term, Tuples};

use super::answer;
use super::asked::{all_tuples, bad, encoded, object, order, seconds, template, timeout, whole};
use super::exchange::Exchange;
use super::open::{self, Left, Open};
use crate::Shared;
use crate::rights::Principal;

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
pub(super) fn ttl(given: Option<Duration>) -> Result<Option<Duration>, Fault> {
    match given {
        Some(ttl) if ttl.is_zero() || ttl > TTL_MAX => {
            let problem = format!("ttl_s is {}", ttl.as_secs_f64());
            Err(bad(problem, "give more than 0, and up to 86400"))
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

/// Keeps a claim for its client, and adds the number to what that is answered.
pub(super) fn keep(
    shared: &Rc<Shared>,
    principal: &Rc<Principal>,
    claimed: (Exchange, Duration),
    mut content: Json,
) -> Result<Json, Fault> {
    let number = open::keep(shared, principal, claimed, (Open::claims, "claims"))?;
    content["claim"] = json!(number);
    Ok(content)
}

/// Ends a claim, or lets it go on.
pub(super) fn settle(
    shared: &Shared,
    principal: &Principal,
    (number, end): (&str, &str),
    body: &str,
) -> Result<Json, Fault> {
    let claims = shared.http_open.claims();
    let left = claims.find(principal, number).ok_or_else(lost)?;
    let claim = Claim(&left);
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
        claims.forget(number);
    }
    settled
}

/// A claim that a client has: a failed attempt, unless it is ended in another way.
struct Claim<'l>(&'l Left);

impl Claim<'_> {
    /// Consumes the tuple; what the body has appears at the same moment (rule K4).
    fn done(&self, body: &str) -> Result<Json, Fault> {
        let mut body = object(body, &["tuple", "entry", "tuples"])?;
        if !body.is_empty() {
            let tuples = encoded(&all_tuples(&mut body)?)?;
            let (tuples, terms) = (Tuples::of_encoding(&tuples), PutTerms::default());
            self.0.exchange.ask_now(&Operation::Put { tuples, terms, unless: None })?;
        }
        let done = self.0.exchange.ask_now(&Operation::Settle(Settlement::Done { grant: None }));
        if done.is_err() {
            // The client may try again, with what it puts then.
            let _ = self.0.exchange.ask_now(&Operation::Settle(Settlement::Discard));
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
        self.0.exchange.ask_now(&Operation::Settle(Settlement::Abort { reason: &reason }))?;
        Ok(json!({ "failed": 1 }))
    }

    /// The client goes on with it.
    fn renew(&self, body: &str) -> Result<Json, Fault> {
        let mut body = object(body, &["ttl_s"])?;
        let ttl = ttl(seconds(&mut body, "ttl_s")?)?.unwrap_or(self.0.ttl);
        self.0.exchange.ask_now(&Operation::Term(Term::Renew(Some(ttl))))?;
        self.0.until.set(Instant::now() + ttl);
        Ok(json!({ "renewed": 1 }))
    }
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
