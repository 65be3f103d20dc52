//! Whose turn a put is made in: that of a place in line for room, as long as its thread tries (rule B1).

use std::cell::Cell;

use tupelo_protocol::{Operation, Settlement, Target};

use crate::connection::Connection;

thread_local! {
    /// The connection and the request of the place in line that this thread's puts are made for.
    static TURN: Cell<Option<(u64, u64)>> = const { Cell::new(None) };
}

/// Ends the turn, also if the put panics.
struct Turn;

impl Drop for Turn {
    fn drop(&mut self) {
        TURN.set(None);
    }
}

/// Runs `act`, whose puts are made in the turn of the request `id`.
pub(crate) fn run(connection: &Connection, id: u64, act: &mut dyn FnMut()) {
    TURN.set(Some((connection.number(), id)));
    let _turn = Turn;
    act();
}

/// The operation, and what it is done to, in the turn that this thread has: a put is done to the place in line, and a claim
/// names it.
pub(crate) fn taken<'o>(
    connection: &Connection,
    on: Target,
    operation: &Operation<'o>,
) -> (Target, Operation<'o>) {
    let turn = TURN.get().filter(|(number, _)| *number == connection.number());
    let Some((_, request)) = turn else { return (on, *operation) };
    match (on, operation) {
        (Target::Space(_), Operation::Put { .. } | Operation::PutLeased { .. }) => {
            (Target::Kept { request, at: 0 }, *operation)
        }
        (_, Operation::Settle(Settlement::Done { .. })) => {
            (on, Operation::Settle(Settlement::Done { turn: Some(request) }))
        }
        _ => (on, *operation),
    }
}
