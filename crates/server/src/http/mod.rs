//! HTTP with JSON, for whoever has no client: `docs/http.md`.
//!
//! A request over HTTP is a client of its own with one request: it goes through the same session as a frame does, so that
//! the same rules hold (`exchange.rs`). What is here is the translation: paths and JSON to operations (`asked.rs`), and
//! answers to JSON (`answer.rs`).

mod answer;
mod asked;
mod caller;
mod claims;
mod events;
mod exchange;
mod guard;
mod lines;
mod metrics;
mod open;
mod routes;
mod transactions;

use std::convert::Infallible;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;

use caller::Caller;
pub(crate) use open::Open;

use crate::Shared;

/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Serves the requests of a connection until the client goes, or the server ends. `host` is the address where the client
/// has connected.
pub(crate) async fn serve(
    stream: TcpStream,
    host: IpAddr,
    shared: Rc<Shared>,
    mut ended: watch::Receiver<()>,
) {
    // One that can not be watched has no descriptor left to be served with.
    let Ok(caller) = Caller::of(&stream).map(Rc::new) else { return };
    let ends = ended.clone();
    let service = service_fn(move |request| {
        let (shared, caller, ends) = (Rc::clone(&shared), Rc::clone(&caller), ends.clone());
        async move {
            let path = request.uri().path().to_owned();
            let mut answered = routes::answer(request, host, &shared, (&caller, ends)).await;
            let settled = match path.split('/').skip(1).collect::<Vec<_>>()[..] {
                ["v1", "spaces", name, ..] => shared.spaces.settled(Some(name)).await,
                ["v1", "claims" | "transactions", ..] => shared.spaces.settled(None).await,
                _ => Ok(()),
            };
            if let Err(fault) = settled {
                answered = answer::refused(&fault);
            }
            Ok::<Response<answer::Body>, Infallible>(answered)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // A connection that fails has a client who knows.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ended.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
