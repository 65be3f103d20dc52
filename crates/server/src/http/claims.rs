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

/// How a claim ends, or goes on.
enum End {
    /// The tuple is consumed; these appear at the same moment (rule K4).
    Done { puts: Option<Vec<u8>> },
    /// The attempt has failed.
    Fail { reason: String },
    /// The client goes on with it: for so long, or as long as at its beginning.
    Renew { ttl: Option<Duration> },
}

impl End {
    /// Understands the body of a request.
    fn read(end: &str, body: &str) -> Result<Self, Fault> {
        Ok(match end {
            "done" => {
                let mut body = object(body, &["tuple", "entry", "tuples"])?;
                let has_some = !body.is_empty();
                Self::Done { puts: has_some.then(|| encoded(&all_tuples(&mut body)?)).transpose()? }
            }
            "fail" => Self::Fail {
                reason: match object(body, &["reason"])?.remove("reason") {
                    None => String::new(),
                    Some(Json::String(reason)) => reason,
                    Some(other) => return Err(bad(format!("reason is {other}"), "give a text")),
                },
            },
            _ => Self::Renew { ttl: ttl(seconds(&mut object(body, &["ttl_s"])?, "ttl_s")?)? },
        })
    }
}

/// Ends a claim, or lets it go on. A body that makes no sense is refused first: it would be for any claim.
pub(super) fn settle(
    shared: &Shared,
    principal: &Principal,
    (number, end): (&str, &str),
    body: &str,
) -> Result<Json, Fault> {
    let end = End::read(end, body)?;
    open::require_number(number)?;
    let claims = shared.http_open.claims();
    let left = claims.find(principal, number).ok_or_else(lost)?;
    let settled = end.happen_to(&left);
    let is_over = match &settled {
        Ok(_) => !matches!(end, End::Renew { .. }),
        Err(fault) => fault.code == lost().code,
    };
    if is_over {
        claims.forget(number);
    }
    settled
}

impl End {
    /// Does it to a claim that a client has: that is a failed attempt, unless it is ended in another way.
    fn happen_to(&self, left: &Left) -> Result<Json, Fault> {
        let exchange = &left.exchange;
        match self {
            Self::Done { puts } => {
                if let Some(puts) = puts {
                    let (tuples, terms) = (Tuples::of_encoding(puts), PutTerms::default());
                    exchange.ask_now(&Operation::Put { tuples, terms, unless: None })?;
                }
                let settle = Operation::Settle(Settlement::Done { grant: None });
                // The client may try again, with what it puts then.
                exchange.ask_now(&settle).inspect_err(|_| {
                    let _ = exchange.ask_now(&Operation::Settle(Settlement::Discard));
                })?;
                Ok(json!({ "done": 1 }))
            }
            Self::Fail { reason } => {
                exchange.ask_now(&Operation::Settle(Settlement::Abort { reason }))?;
                Ok(json!({ "failed": 1 }))
            }
            Self::Renew { ttl } => {
                let ttl = ttl.unwrap_or(left.ttl);
                exchange.ask_now(&Operation::Term(Term::Renew(Some(ttl))))?;
                left.until.set(Instant::now() + ttl);
                Ok(json!({ "renewed": 1 }))
            }
        }
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
