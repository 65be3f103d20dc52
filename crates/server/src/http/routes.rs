//! Which path does what.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value as Json, json};
use tokio::sync::watch;
use tokio::time::timeout;
use tupelo::{Field, hash};
use tupelo_protocol::{Fault, Key, Opened, Operation, Reply, TemplateBytes, code};

use super::answer::{self, Body, acknowledging, error, not_allowed, refused, unauthorized};
use super::asked::{Asked, Limits, VERBS, Verb};
use super::caller::Caller;
use super::claims;
use super::events;
use super::exchange::Exchange;
use super::guard;
use super::lines;
use super::metrics;
use super::transactions::{self, Step};
use crate::Shared;
use crate::audit::Act;
use crate::rights::{Principal, Right};

/// Bytes of the body of a request: what a frame may have, as JSON.
const BODY_BYTES_MAX: usize = 64 << 20;
/// How long a body may take to come.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// The description of all this for programs.
const OPENAPI: &str = include_str!("openapi.json");
/// By this header a put or a swap that is sent again is known.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Answers a request. First comes whether there is such a path and method, then who asks, then what the body is.
pub(super) async fn answer(
    request: Request<Incoming>,
    host: IpAddr,
    shared: &Rc<Shared>,
    (caller, ended): (&Rc<Caller>, watch::Receiver<()>),
) -> Response<Body> {
    let (head, body) = request.into_parts();
    if let Err(fault) = guard::refuse_strangers(&head.headers, host) {
        return error(StatusCode::FORBIDDEN, &fault);
    }
    let path = head.uri.path();
    let parts: Vec<_> = path.split('/').skip(1).collect();
    let Some(methods) = methods(&parts) else { return not_found(path) };
    if !methods.split(", ").any(|method| method == head.method.as_str()) {
        return not_allowed(methods);
    }
    // Whoever looks whether the server is well has no token.
    if let ["livez" | "readyz"] = &parts[..] {
        return answer::of(StatusCode::OK, "text/plain", "ok\n");
    }
    let principal = match principal(shared, &head.headers).await {
        Ok(principal) => principal,
        Err(fault) => return unauthorized(&fault),
    };
    if let Err(fault) = guard::require_json(&head.method, &head.headers) {
        return error(StatusCode::UNSUPPORTED_MEDIA_TYPE, &fault);
    }
    let asking = Asking { shared, principal, caller, ended };
    let query = head.uri.query().unwrap_or_default();
    match (&head.method, &parts[..]) {
        (_, ["metrics"]) => asking.metrics().await,
        (_, ["openapi.json"]) => answer::of(StatusCode::OK, "application/json", OPENAPI),
        (_, ["v1", "spaces"]) => asking.spaces(),
        (&Method::PUT, ["v1", "spaces", name]) => asking.make(name, body).await,
        (_, ["v1", "spaces", name]) => asking.remove(name),
        (_, ["v1", "spaces", name, "claim"]) => asking.claim(name, body).await,
        (_, ["v1", "spaces", name, "begin"]) => asking.begin(name, body).await,
        (_, ["v1", "spaces", name, "scan"]) => asking.scan(name, query),
        (_, ["v1", "spaces", name, "events"]) => asking.events(name, query),
        (_, ["v1", "claims", id, end]) => asking.settle((id, end), body).await,
        (_, ["v1", "transactions", id, step]) => match step_of(step) {
            Some(step) => asking.go_on((id, step), body).await,
            None => not_found(path),
        },
        (_, ["v1", "spaces", name, verb]) => match verb_of(verb) {
            Some(verb) => asking.operate((name, verb), &head.headers, body).await,
            None => not_found(path),
        },
        _ => not_found(path),
    }
}

/// The methods of a path, as the header `Allow` has them; `None` if there is no such path.
fn methods(parts: &[&str]) -> Option<&'static str> {
    let is_known = match parts {
        ["livez" | "readyz" | "metrics" | "openapi.json"]
        | ["v1", "spaces"]
        | ["v1", "spaces", _, "events" | "scan"] => return Some("GET"),
        ["v1", "spaces", _] => return Some("PUT, DELETE"),
        ["v1", "spaces", _, "claim" | "begin"] | ["v1", "claims", _, "done" | "fail" | "renew"] => {
            true
        }
        ["v1", "spaces", _, verb] => verb_of(verb).is_some(),
        ["v1", "transactions", _, step] => step_of(step).is_some(),
        _ => false,
    };
    is_known.then_some("POST")
}

/// Who asks: the holder of the token in the header `Authorization`.
async fn principal(shared: &Rc<Shared>, headers: &HeaderMap) -> Result<Rc<Principal>, Fault> {
    let tokens = shared.tokens.borrow().clone();
    let Some(tokens) = tokens else { return Ok(Rc::new(Principal::Anybody)) };
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = given
        .and_then(|given| given.split_once(' '))
        .and_then(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()));
    tokens.holder(token).await.inspect_err(|fault| shared.audit.note_stranger(fault))
}

fn verb_of(name: &str) -> Option<Verb> {
    VERBS.iter().find(|(known, _)| *known == name).map(|(_, verb)| *verb)
}

/// What may be done in a transaction.
fn step_of(name: &str) -> Option<Step> {
    match name {
        "commit" => Some(Step::Commit),
        "abort" => Some(Step::Abort),
        name => {
            verb_of(name).filter(|verb| *verb != Verb::Swap).map(|verb| Step::Verb(verb, content))
        }
    }
}

fn not_found(path: &str) -> Response<Body> {
    let verbs: Vec<_> = VERBS.iter().map(|(name, _)| *name).collect();
    let hint = format!("POST /v1/spaces/NAME/VERB, where VERB is {}, claim", verbs.join(", "));
    let problem = format!("there is no path {path:?}");
    error(StatusCode::NOT_FOUND, &Fault::new(code::PROTOCOL, problem, Some(&hint)))
}

/// The name of a space, as it stands in a path.
fn name_of(part: &str) -> Result<String, Fault> {
    decoded(part).ok_or_else(|| no_name(part))
}

/// A text that is percent-encoded; `None` if it is not.
pub(super) fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let byte = digit().zip(digit()).and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
        bytes.push(byte?);
    }
    String::from_utf8(bytes).ok()
}

fn no_name(part: &str) -> Fault {
    let problem = format!("{part:?} is no name of a space");
    Fault::new("TUP-019", problem, Some("percent-encode it as UTF-8, as in caf%C3%A9"))
}

/// The body of a request as text.
async fn text_of(body: Incoming) -> Result<String, Fault> {
    let collected = timeout(BODY_TIMEOUT, Limited::new(body, BODY_BYTES_MAX).collect()).await;
    let collected = collected.map_err(|_| Fault::protocol("the body took more than 60 s"))?;
    let bytes = collected.map_err(|error| {
        let problem =
            format!("the body can not be read, or is over {BODY_BYTES_MAX} bytes: {error}");
        Fault::limit(problem, "send it in smaller parts")
    })?;
    String::from_utf8(bytes.to_bytes().into())
        .map_err(|error| Fault::protocol(format!("the body is no UTF-8: {error}")))
}

/// A request that is served: of whom, and for whom.
struct Asking<'a> {
    shared: &'a Rc<Shared>,
    principal: Rc<Principal>,
    caller: &'a Rc<Caller>,
    ended: watch::Receiver<()>,
}

impl Asking<'_> {
    /// The figures of the spaces of which this one may see them.
    async fn metrics(&self) -> Response<Body> {
        let is_told = |name: &str| self.principal.has(Right::Admin, name);
        match self.shared.spaces.figures(is_told).await {
            Ok(figures) => answer::of(StatusCode::OK, metrics::KIND, metrics::page(&figures)),
            Err(fault) => refused(&fault),
        }
    }

    /// The spaces in which this one may do anything.
    fn spaces(&self) -> Response<Body> {
        let mut names = self.shared.spaces.names();
        names.retain(|name| self.principal.require_any(name).is_ok());
        answer::json(StatusCode::OK, &json!({ "spaces": names }))
    }

    async fn claim(&self, name: &str, body: Incoming) -> Response<Body> {
        let claimed = async {
            let name = name_of(name)?;
            let asked = claims::Asked::read(&text_of(body).await?)?;
            let exchange = Exchange::open((self.shared, &self.principal), as_it_is(&name), None)?;
            let (operation, ended) = (asked.operation(), self.ended.clone());
            let asking = exchange.ask((&operation, None), asked.timeout, ended, claims::content);
            let content = tokio::select! {
                content = asking => content?,
                () = self.caller.gone() => return Err(Fault::protocol("the client has gone")),
            };
            let Some(content) = content else { return Ok(json!({ "tuple": null })) };
            if self.caller.is_gone() {
                exchange.give_up();
                return Err(Fault::protocol("the client has gone"));
            }
            claims::keep(self.shared, &self.principal, (exchange, asked.ttl), content)
        };
        let claimed = claimed.await;
        claimed.map_or_else(|fault| refused(&fault), |made| answer::json(StatusCode::OK, &made))
    }

    async fn settle(&self, (id, end): (&str, &str), body: Incoming) -> Response<Body> {
        let settled = match text_of(body).await {
            Ok(body) => claims::settle(self.shared, &self.principal, (id, end), &body),
            Err(fault) => Err(fault),
        };
        settled.map_or_else(|fault| refused(&fault), |made| answer::json(StatusCode::OK, &made))
    }

    async fn begin(&self, name: &str, body: Incoming) -> Response<Body> {
        let begun = async {
            let name = name_of(name)?;
            let ttl = transactions::read(&text_of(body).await?)?;
            let exchange = Exchange::open((self.shared, &self.principal), as_it_is(&name), None)?;
            transactions::begin(self.shared, &self.principal, (exchange, ttl))
        };
        let begun = begun.await;
        begun.map_or_else(|fault| refused(&fault), |made| answer::json(StatusCode::OK, &made))
    }

    async fn go_on(&self, (id, step): (&str, Step), body: Incoming) -> Response<Body> {
        let done = match text_of(body).await {
            Ok(body) => transactions::act(self.shared, &self.principal, (id, step), &body),
            Err(fault) => Err(fault),
        };
        done.map_or_else(|fault| refused(&fault), |made| answer::json(StatusCode::OK, &made))
    }

    fn scan(&self, name: &str, query: &str) -> Response<Body> {
        let scanned = name_of(name).and_then(|name| {
            let template = lines::template_of(query)?;
            let exchange = Exchange::open((self.shared, &self.principal), as_it_is(&name), None)?;
            exchange
                .leave_open(&Operation::Scan { template: TemplateBytes::of_encoding(&template) })?;
            Ok(exchange)
        });
        match scanned {
            Ok(exchange) => lines::stream(exchange, Rc::clone(self.caller), self.ended.clone()),
            Err(fault) => refused(&fault),
        }
    }

    fn events(&self, name: &str, query: &str) -> Response<Body> {
        let listened = name_of(name).and_then(|name| {
            let terms = events::Terms::read(query)?;
            let exchange = Exchange::open((self.shared, &self.principal), as_it_is(&name), None)?;
            exchange.leave_open(&terms.operation())?;
            Ok(exchange)
        });
        match listened {
            Ok(exchange) => events::stream(exchange, Rc::clone(self.caller), self.ended.clone()),
            Err(fault) => refused(&fault),
        }
    }

    fn require_admin(&self, name: &str) -> Result<(), Fault> {
        let allowed = self.principal.require(Right::Admin, name);
        allowed.inspect_err(|fault| self.shared.audit.note_refused(&self.principal, fault))
    }

    async fn make(&self, name: &str, body: Incoming) -> Response<Body> {
        let made = async {
            let name = name_of(name)?;
            self.require_admin(&name)?;
            let Limits { fresh, size_bytes, tuples_max, when_full } =
                Limits::read(&text_of(body).await?)?;
            let opened =
                Opened { name: &name, create: true, fresh, size_bytes, tuples_max, when_full };
            Exchange::open((self.shared, &self.principal), opened, None)?;
            Ok(json!({ "space": name }))
        };
        made.await.map_or_else(|fault| refused(&fault), |made| answer::json(StatusCode::OK, &made))
    }

    fn remove(&self, name: &str) -> Response<Body> {
        let removed = name_of(name).and_then(|name| {
            self.require_admin(&name)?;
            self.shared.spaces.remove(&name)?;
            self.shared.audit.note_done(&self.principal, Act::Removed, &name);
            Ok(())
        });
        match removed {
            Ok(()) => answer::json(StatusCode::OK, &json!({ "removed": 1 })),
            Err(fault) => refused(&fault),
        }
    }

    async fn operate(
        &self,
        (name, verb): (&str, Verb),
        headers: &HeaderMap,
        body: Incoming,
    ) -> Response<Body> {
        let operated = async {
            let name = name_of(name)?;
            let body = text_of(body).await?;
            let key = key_of((&name, verb, &body), headers)?;
            let asked = if lines::is_kind_of(headers, CONTENT_TYPE) {
                Asked::read_lines(verb, &body)?
            } else {
                Asked::read(verb, &body)?
            };
            let exchange = Exchange::open((self.shared, &self.principal), as_it_is(&name), key)?;
            let (operation, ended) = (asked.operation(verb), self.ended.clone());
            let asking =
                exchange.ask((&operation, key), asked.timeout, ended, |reply| content(verb, reply));
            let answer = tokio::select! {
                answer = asking => answer?,
                () = self.caller.gone() => return Err(Fault::protocol("the client has gone")),
            };
            Ok((answer, exchange))
        };
        match operated.await {
            Ok((content, exchange)) => {
                let whole = if lines::is_kind_of(headers, ACCEPT) {
                    lines::answer(&content)
                } else {
                    answer::json(StatusCode::OK, &content)
                };
                acknowledging(whole, exchange, Rc::clone(self.caller))
            }
            Err(fault) => refused(&fault),
        }
    }
}

/// A space, which is made if there is none.
fn as_it_is(name: &str) -> Opened<'_> {
    Opened {
        name,
        create: true,
        fresh: false,
        size_bytes: None,
        tuples_max: None,
        when_full: tupelo::WhenFull::default(),
    }
}

/// What a client's retries of this request have in common. Another request with the same header is another one.
fn key_of(
    (space, verb, body): (&str, Verb, &str),
    headers: &HeaderMap,
) -> Result<Option<Key>, Fault> {
    let Some(given) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let refuse = |problem: String, hint| Fault::new("TUP-019", problem, Some(hint));
    if !matches!(verb, Verb::Put | Verb::Swap) {
        let problem = "this request has an Idempotency-Key, and can not be sent twice".to_owned();
        return Err(refuse(
            problem,
            "put and swap can; a take that was lost on its way has happened, or not",
        ));
    }
    let digits: String = given.to_str().unwrap_or_default().chars().filter(|c| *c != '-').collect();
    let key = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32);
    let key = key.ok_or_else(|| {
        let problem = format!("the Idempotency-Key is {given:?}");
        refuse(problem, "give a UUID, as 01890a5d-ac96-774b-bcce-b302099a8057")
    })?;
    // Frozen: it stands in segments, and a server that was upgraded finds it there.
    let request = [verb.name(), space, body]
        .into_iter()
        .fold(0, |request, text| hash::combine(request, hash::field(&Field::Str(text))));
    let own = hash::field(&Field::Bytes(&key.to_be_bytes()));
    Ok(Some(Key(key >> 64 << 64 | u128::from(hash::combine(request, own)))))
}

/// An answer as JSON.
fn content(verb: Verb, reply: &Reply<'_>) -> Result<Json, Fault> {
    let has_many = matches!(verb, Verb::TakeAll | Verb::ReadAll);
    Ok(match reply {
        Reply::Done { count, .. } if verb == Verb::Put => json!({ "put": count }),
        Reply::Done { count, .. } => json!({ "count": count }),
        Reply::Found { tuples, .. } if has_many => {
            json!({ "tuples": answer::tuples(*tuples)? })
        }
        Reply::Found { tuples, .. } => {
            answer::tuples(*tuples)?.pop().unwrap_or_else(|| json!({ "tuple": null }))
        }
        Reply::Nothing { .. } if has_many => json!({ "tuples": null }),
        Reply::Nothing { .. } => json!({ "tuple": null }),
        other => {
            return Err(Fault::protocol(format!(
                "the session answered what was not asked: {other:?}"
            )));
        }
    })
}
