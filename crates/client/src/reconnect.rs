//! Making a connection again: a thread that is there only as long as there is none.
//!
//! It tries at once, and then again and again, with growing pauses. They differ from client to client, so that the
//! clients of a restarted server do not all come at the same moment.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tupelo_protocol::{Fault, code};

use crate::connection::Connection;
use crate::dial::{dial_again, random};
use crate::wire::Wire;

/// The first pause between two attempts, and the longest.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Begins to make a connection anew that has `lost` its socket `before`.
///
/// # Errors
///
/// The system has no thread for it.
pub(crate) fn begin(
    connection: &Weak<Connection>,
    before: Arc<Wire>,
    lost: Fault,
) -> io::Result<()> {
    let connection = Weak::clone(connection);
    let run = move || {
        try_again(&connection, &lost);
        // Closed only now: as long as it is open, the server keeps what this program has there.
        drop(before);
    };
    thread::Builder::new().name("tupelo reconnect".into()).spawn(run).map(drop)
}

fn try_again(connection: &Weak<Connection>, lost: &Fault) {
    let begin = Instant::now();
    let mut pause = PAUSE;
    loop {
        // Whoever used it may have gone.
        let Some(there) = connection.upgrade() else { return };
        let failed = match dial_again(&there.server, there.session()) {
            Ok(greeted) => return there.go_on(greeted),
            Err(fault) => fault,
        };
        let left = there.server.reconnect.saturating_sub(begin.elapsed());
        if failed.code != code::CONNECTION_LOST || left.is_zero() {
            return there.give_up(&given_up(lost, &failed, begin.elapsed()));
        }
        drop(there);
        thread::sleep(varied(pause).min(left));
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Between half of a pause and the whole.
fn varied(pause: Duration) -> Duration {
    let part = u32::try_from(random() % 1024).unwrap_or_default();
    pause / 2 + pause / 2 * part / 1024
}

/// That the connection was lost, and why there is no other.
fn given_up(lost: &Fault, failed: &Fault, tried: Duration) -> Fault {
    let message = format!(
        "{}; connecting again was tried for {:.0} s: {}",
        lost.message,
        tried.as_secs_f64(),
        failed.message
    );
    Fault { message, hint: failed.hint.clone(), ..lost.clone() }
}
