//! Answers as JSON.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::body::{Bytes, Frame, SizeHint};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;
use tupelo_protocol::{Fault, Tuples, code};

use super::caller::Caller;
use super::exchange::Exchange;

/// The body of an answer. What it shows is the client's as soon as the body is on its way to a client that is there, and
/// else goes back.
pub(super) struct Body {
    content: Content,
    exchange: Option<(Exchange, Rc<Caller>)>,
}

/// What a body says.
enum Content {
    /// This, once.
    Whole(Option<Bytes>),
    /// What comes, until nothing comes any more.
    Stream(mpsc::Receiver<Bytes>),
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut self.content {
            Content::Whole(bytes) => bytes.take(),
            Content::Stream(parts) => match parts.poll_recv(context) {
                Poll::Ready(part) => return Poll::Ready(part.map(|part| Ok(Frame::data(part)))),
                Poll::Pending => return Poll::Pending,
            },
        };
        let Some(bytes) = bytes else { return Poll::Ready(None) };
        if let Some((exchange, caller)) = self.exchange.take()
            && !caller.is_gone()
        {
            exchange.acknowledge();
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

/// An answer of this kind of content.
pub(super) fn of(
    status: StatusCode,
    kind: &'static str,
    bytes: impl Into<Bytes>,
) -> Response<Body> {
    let content = Content::Whole(Some(bytes.into()));
    let mut response = Response::new(Body { content, exchange: None });
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer of what comes, of this kind of content.
pub(super) fn stream(kind: &'static str, parts: mpsc::Receiver<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body { content: Content::Stream(parts), exchange: None });
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer of JSON.
pub(super) fn json(status: StatusCode, content: &Json) -> Response<Body> {
    of(status, "application/json", format!("{content}\n"))
}

/// An answer with which what `exchange` was given becomes the client's.
pub(super) fn acknowledging(
    mut response: Response<Body>,
    exchange: Exchange,
    caller: Rc<Caller>,
) -> Response<Body> {
    response.body_mut().exchange = Some((exchange, caller));
    response
}

/// Why there is no other answer.
pub(super) fn refused(fault: &Fault) -> Response<Body> {
    error(status(fault), fault)
}

pub(super) fn error(status: StatusCode, fault: &Fault) -> Response<Body> {
    let Fault { code, message, hint, .. } = fault;
    json(status, &json!({ "error": { "code": code, "message": message, "hint": hint } }))
}

/// That nobody knows who asks.
pub(super) fn unauthorized(fault: &Fault) -> Response<Body> {
    let mut response = error(StatusCode::UNAUTHORIZED, fault);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// That a path has other methods.
pub(super) fn not_allowed(allowed: &'static str) -> Response<Body> {
    let fault = Fault::new(code::PROTOCOL, format!("this path has {allowed}"), None);
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, &fault);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// The status of a refusal, by its code.
fn status(fault: &Fault) -> StatusCode {
    match fault.code.as_str() {
        "TUP-001" | "TUP-004" | "TUP-019" | code::PROTOCOL => StatusCode::BAD_REQUEST,
        "TUP-006" => StatusCode::FORBIDDEN,
        "TUP-007" | "TUP-008" => StatusCode::GONE,
        "TUP-013" => StatusCode::NOT_FOUND,
        "TUP-005" => StatusCode::INSUFFICIENT_STORAGE,
        code::LIMIT_EXCEEDED | "TUP-018" => StatusCode::PAYLOAD_TOO_LARGE,
        code::UNSUPPORTED => StatusCode::NOT_IMPLEMENTED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Tuples as JSON: each as [`tupelo_json::line`] writes it.
pub(super) fn tuples(tuples: Tuples<'_>) -> Result<Vec<Json>, Fault> {
    let tuple = |decoded: Result<tupelo::encoding::Decoded<'_>, _>| {
        let tuple = decoded?.as_ref().to_tuple()?;
        Ok(tupelo_json::line(&tuple))
    };
    tuples.read_each()?.map(tuple).collect()
}
