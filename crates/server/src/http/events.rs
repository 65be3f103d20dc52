//! Subscriptions over HTTP (rules N1 to N3), as server-sent events: one request, and an answer that goes on until the client
//! goes.

use std::fmt::Write;
use std::rc::Rc;
use std::time::Duration;

use hyper::Response;
use hyper::body::Bytes;
use serde_json::{Map, Value as Json, json};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tupelo::EventKind;
use tupelo_protocol::{Fault, Operation, Reply, TemplateBytes};

use super::answer::{self, Body};
use super::asked::{bad, template};
use super::caller::Caller;
use super::exchange::Exchange;
use super::routes::decoded;

/// Events that are on their way at a time.
const CREDIT: usize = 256;
/// Events that wait at the server for a client that is slow, unless it says so.
const BUFFER: usize = 1024;
/// How often something is said if nothing happens, so that nobody on the way takes the connection for dead.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// The names of the kinds of events, in their order.
const KINDS: [&str; EventKind::ALL.len()] = ["put", "take", "expire", "return"];

/// What is subscription.
pub(super) struct Terms {
    template: Vec<u8>,
    kinds: u32,
    buffer: usize,
}

impl Terms {
    /// Understands what stands behind the question mark.
    pub(super) fn read(query: &str) -> Result<Self, Fault> {
        let mut body = Map::new();
        let (mut kinds, mut buffer) = (1, BUFFER);
        for (key, value) in pairs(query)? {
            match key {
                "template" | "where" => {
                    body.insert(key.to_owned(), Json::String(value));
                }
                "on" => kinds = kinds_of(&value)?,
                "buffer" => {
                    let hint = "give how many events may wait, from 1 on";
                    buffer =
                        value.parse().map_err(|_| bad(format!("buffer is {value:?}"), hint))?;
                }
                _ => return Err(bad(format!("the query has the key {key:?}"), KEYS)),
            }
        }
        Ok(Self { template: named(&mut body)?, kinds, buffer })
    }

    pub(super) fn operation(&self) -> Operation<'_> {
        Operation::Subscribe {
            template: TemplateBytes::of_encoding(&self.template),
            kinds: self.kinds,
            events_max: self.buffer,
            bytes_max: None,
        }
    }
}

const KEYS: &str =
    "give template, and perhaps where, on and buffer, as in ?template=job,%20:int&on=put,take";

/// The keys of a query, and their values.
pub(super) fn pairs(query: &str) -> Result<Vec<(&str, String)>, Fault> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(&value.replace('+', " "));
        let refused = || bad(format!("{pair:?} is not percent-encoded"), KEYS);
        Ok((key, value.ok_or_else(refused)?))
    });
    pairs.collect()
}

/// The template of a query.
pub(super) fn named(body: &mut Map<String, Json>) -> Result<Vec<u8>, Fault> {
    if body.contains_key("template") {
        return template(body, "template");
    }
    Err(bad("the query has no template".to_owned(), KEYS))
}

/// The kinds with these names, a bit each.
fn kinds_of(names: &str) -> Result<u32, Fault> {
    names.split(',').try_fold(0, |kinds, name| {
        let known = KINDS.iter().position(|kind| *kind == name.trim());
        let bit = known.ok_or_else(|| {
            bad(
                format!("on has {name:?}"),
                "give some of put, take, expire and return, as on=put,take",
            )
        })?;
        Ok(kinds | 1 << bit)
    })
}

/// Tells a client what a subscription hears, until one of both goes or the server ends.
pub(super) fn stream(
    exchange: Exchange,
    caller: Rc<Caller>,
    ended: watch::Receiver<()>,
) -> Response<Body> {
    // One at a time: what the client does not read waits in the space, which is bounded.
    let (parts, received) = mpsc::channel(1);
    tokio::task::spawn_local(async move { send(&exchange, &caller, &ended, &parts).await });
    answer::stream("text/event-stream", received)
}

async fn send(
    exchange: &Exchange,
    caller: &Caller,
    ended: &watch::Receiver<()>,
    parts: &mpsc::Sender<Bytes>,
) {
    // At once, so that the client knows that from here on it hears all (rule N3).
    let mut part = Bytes::from_static(b": listening\n\n");
    loop {
        if parts.send(part).await.is_err() {
            return;
        }
        let events = Operation::Events { at_most: CREDIT };
        let mut asking = std::pin::pin!(exchange.ask_of_kept(&events, ended.clone(), text_of));
        let told = loop {
            tokio::select! {
                told = asking.as_mut() => break told,
                () = caller.gone() => return,
                () = sleep(SIGN_OF_LIFE) => {
                    if parts.send(Bytes::from_static(b": still there\n\n")).await.is_err() {
                        return;
                    }
                }
            }
        };
        part = match told {
            Ok(Some(text)) => text.into(),
            Ok(None) => return,
            Err(Fault { code, message, hint, .. }) => {
                let error = json!({ "code": code, "message": message, "hint": hint });
                // The client is told why it hears no more, if it is there.
                let _ = parts.send(format!("event: error\ndata: {error}\n\n").into()).await;
                return;
            }
        };
    }
}

/// Events as they are sent; `None` if there will be no more.
fn text_of(reply: &Reply<'_>) -> Result<Option<String>, Fault> {
    let Reply::Found { tuples, .. } = reply else { return Ok(None) };
    let mut text = String::new();
    let tuples = answer::tuples(*tuples)?;
    for [head, tuple] in tuples.as_chunks::<2>().0 {
        let number = |index: usize| head["tuple"][index].as_u64().unwrap_or_default();
        let kind = usize::try_from(number(0)).ok().and_then(|kind| KINDS.get(kind));
        let mut data = tuple.clone();
        data["missed"] = json!(number(2));
        let (id, kind) = (number(1), kind.copied().unwrap_or("unknown"));
        // Writing to a text does not fail.
        let _ = write!(text, "id: {id}\nevent: {kind}\ndata: {data}\n\n");
    }
    Ok(Some(text))
}
