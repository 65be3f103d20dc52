//! Tuples as lines of JSON, one each ("NDJSON"): many of them, to and from programs that take one after the other.

use std::rc::Rc;

use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Response, StatusCode};
use serde_json::{Map, Value as Json, json};
use tokio::sync::{mpsc, watch};
use tupelo_protocol::{Fault, Operation, Reply};

use super::answer::{self, Body};
use super::asked::bad;
use super::caller::Caller;
use super::events::{named, pairs};
use super::exchange::Exchange;

/// What such lines are called.
pub(super) const KIND: &str = "application/x-ndjson";
/// Tuples that are read at a time.
const BATCH: usize = 256;

/// Whether this header says that its body is, or is to be, such lines.
pub(super) fn is_kind_of(headers: &HeaderMap, name: HeaderName) -> bool {
    let given = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split([',', ';']).any(|kind| kind.trim().eq_ignore_ascii_case(KIND))
}

/// An answer as lines: the tuples of one that has many, and else the whole of it.
pub(super) fn answer(content: &Json) -> Response<Body> {
    let lines = match &content["tuples"] {
        Json::Array(tuples) => text(tuples),
        Json::Null if content.get("tuples").is_some() => String::new(),
        _ => format!("{content}\n"),
    };
    answer::of(StatusCode::OK, KIND, lines)
}

fn text(tuples: &[Json]) -> String {
    let mut text = String::new();
    for tuple in tuples {
        text.push_str(&tuple.to_string());
        text.push('\n');
    }
    text
}

/// The template of a query.
pub(super) fn template_of(query: &str) -> Result<Vec<u8>, Fault> {
    let mut body = Map::new();
    for (key, value) in pairs(query)? {
        if !["template", "where"].contains(&key) {
            let hint = "give template, and perhaps where, as in ?template=job,%20:int";
            return Err(bad(format!("the query has the key {key:?}"), hint));
        }
        body.insert(key.to_owned(), Json::String(value));
    }
    named(&mut body)
}

/// Sends what a scan finds (rule O6), until its end, or one of both goes. A client that reads slowly is waited for.
pub(super) fn stream(
    exchange: Exchange,
    caller: Rc<Caller>,
    ended: watch::Receiver<()>,
) -> Response<Body> {
    let (parts, received) = mpsc::channel(1);
    tokio::task::spawn_local(async move {
        loop {
            let next = Operation::Next { at_most: BATCH };
            let asking = exchange.ask_of_kept(&next, ended.clone(), |reply| match reply {
                Reply::Found { tuples, .. } => Ok(Some(text(&answer::tuples(*tuples)?))),
                _ => Ok(None),
            });
            let (lines, is_last) = match asking.await {
                Ok(Some(lines)) => (lines, false),
                Ok(None) => return,
                Err(Fault { code, message, hint, .. }) => {
                    let error = json!({ "code": code, "message": message, "hint": hint });
                    (format!("{}\n", json!({ "error": error })), true)
                }
            };
            let sent = tokio::select! {
                sent = parts.send(Bytes::from(lines)) => sent.is_ok(),
                () = caller.gone() => false,
            };
            if is_last || !sent {
                return;
            }
        }
    });
    answer::stream(KIND, received)
}
