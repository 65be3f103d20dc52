//! What the server may not have done yet, so that it can be sent again over the next connection.
//!
//! There are two cases. The server still has the session: then all requests without an answer are sent again as they were.
//! Acknowledgements and cancellations are sent again until a later answer shows that they have arrived.
//!
//! Or the session has ended: then a request is sent again only if that cannot have a second effect. The callers of the others
//! are told that nobody knows.

use std::collections::HashMap;
use std::sync::Arc;

use tupelo_protocol::{Action, Fault, Operation, Reply, Request, Target, code};

use crate::slot::{Sent, Slot};
use crate::state::Told;

/// A frame as it is written.
pub(crate) type Frame = Arc<Vec<u8>>;

/// Bytes of the length in front of a frame.
const LENGTH_BYTES: usize = 4;

/// The content of a frame.
pub(crate) fn content(frame: &Frame) -> &[u8] {
    frame.get(LENGTH_BYTES..).unwrap_or_default()
}

/// A space in a new session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reopened {
    pub(crate) number: u32,
    /// What keeps the keys of its requests.
    pub(crate) keeper: Option<u64>,
    /// Whether that is what has kept them before.
    pub(crate) knows_keys: bool,
}

/// The spaces in a new session, by their numbers in the one before; or why there is none.
pub(crate) type Numbers = HashMap<u32, Result<Reopened, Fault>>;

/// What becomes of a request whose session is gone.
pub(crate) enum Fate {
    /// It is said again: these bytes.
    Again(Frame),
    /// Its caller is told this.
    Fault(Fault),
}

/// All that a session which the server still has needs to be told again, in the order in which it was said.
pub(crate) fn unanswered<'s>(
    slots: impl Iterator<Item = &'s Slot>,
    told: impl Iterator<Item = &'s Told>,
) -> Vec<Frame> {
    let mut all: Vec<(u64, Frame)> =
        told.map(|told| (told.sequence, Arc::clone(&told.frame))).collect();
    for slot in slots {
        if let Some(sent) = slot.sent.as_ref().filter(|sent| !sent.has_last_answer) {
            all.push((sent.sequence, Arc::clone(&sent.frame)));
            // Behind the request that it is about, whenever it was said.
            all.extend(slot.asked.iter().map(|asked| (sent.sequence, Arc::clone(asked))));
        }
    }
    all.sort_by_key(|(sequence, _)| *sequence);
    all.into_iter().map(|(_, frame)| frame).collect()
}

/// What becomes of a request in a new session. `is_same_server` says whether it is the server which had the one before: then it
/// knows the keys of what has happened. So does a space that keeps them itself.
pub(crate) fn fate(
    sent: &Sent,
    numbers: &Numbers,
    is_same_server: bool,
    lost: &Fault,
) -> Result<Fate, Fault> {
    let (frame, was_written) = (&sent.frame, sent.was_written);
    let gone = |changes: bool| {
        let flags = if changes && was_written { Fault::MAY_HAVE_HAPPENED } else { 0 };
        Ok(Fate::Fault(lost.clone().with_flags(flags)))
    };
    let (id, on, key, operation) = match Request::read(content(frame))? {
        Request::Do { id, on, key, operation } => (id, on, key, operation),
        Request::Open { opened, .. } if opened.fresh && was_written => return gone(true),
        Request::Remove { .. } if was_written => return gone(true),
        _ => return Ok(Fate::Again(Arc::clone(frame))),
    };
    let Target::Space(number) = on else { return gone(operation.changes()) };
    let reopened = numbers.get(&number);
    let keeps_keys = matches!(reopened, Some(Ok(reopened)) if reopened.knows_keys);
    let known = Known { by_server: is_same_server, by_space: keeps_keys };
    if !may_be_said_again(&operation, known, was_written) {
        return gone(operation.changes());
    }
    match reopened {
        Some(Ok(Reopened { number, .. })) => {
            let mut again = Vec::with_capacity(frame.len() + 4);
            Request::Do { id, on: Target::Space(*number), key, operation }.write(&mut again)?;
            Ok(Fate::Again(Arc::new(again)))
        }
        Some(Err(fault)) => Ok(Fate::Fault(fault.clone())),
        None => gone(operation.changes()),
    }
}

/// Who knows the keys of what has happened.
#[derive(Clone, Copy)]
struct Known {
    by_server: bool,
    by_space: bool,
}

/// Whether an operation in a space may be begun anew. It may if no server has read it, or if it changes nothing. A take may,
/// since the tuple went back with the session. A put may if the server knows whether it has happened, or the space does.
const fn may_be_said_again(operation: &Operation<'_>, known: Known, was_written: bool) -> bool {
    match operation {
        // They name spaces by the numbers of the session that is gone.
        Operation::Begin { .. } | Operation::Transfer { .. } => false,
        _ if !was_written => true,
        Operation::Find { action: Action::Take, .. } | Operation::Claim { .. } => true,
        Operation::Put { .. } | Operation::Swap { .. } => known.by_server || known.by_space,
        Operation::Requeue { .. } => known.by_server,
        operation => !operation.changes(),
    }
}

/// Whether what a request was answered ends with its session: a tuple that is held, or a claim.
pub(crate) fn ends_with_session(request: &Frame, answer: &Reply<'_>) -> bool {
    match answer {
        Reply::Found { held: true, .. } => true,
        Reply::Found { .. } => matches!(
            Request::read(content(request)),
            Ok(Request::Do { operation: Operation::Claim { .. }, .. })
        ),
        _ => false,
    }
}

/// What the caller of a request is told whose session is gone.
pub(crate) fn gone(address: &str) -> Fault {
    let message = format!(
        "the connection to the server at {address} was lost and made again, and what the call was about has ended with it"
    );
    let hint = "look whether it has happened, or begin again";
    Fault::new(code::CONNECTION_LOST, message, Some(hint)).with_flags(Fault::SESSION_ENDED)
}

/// Whether a request is told that something has happened, instead of an answer.
pub(crate) fn watches(frame: &Frame) -> bool {
    matches!(
        Request::read(content(frame)),
        Ok(Request::Do { operation: Operation::Watch { .. } | Operation::Room, .. })
    )
}
