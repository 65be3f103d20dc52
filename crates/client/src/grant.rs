//! The grant of room that a put uses: that of a place in the wait queue for room, as long as its thread tries (rule B1).

use std::cell::Cell;

use tupelo_protocol::{Operation, Settlement, Target};

use crate::connection::Connection;

thread_local! {
    /// The connection and the request of the place in the wait queue that this thread's puts are made for.
    static GRANT: Cell<Option<(u64, u64)>> = const { Cell::new(None) };
}

/// Ends the grant, also if the put panics.
struct GrantGuard;

impl Drop for GrantGuard {
    fn drop(&mut self) {
        GRANT.set(None);
    }
}

/// Runs `act`, whose puts are made in the grant of the request `id`.
pub(crate) fn run(connection: &Connection, id: u64, act: &mut dyn FnMut()) {
    GRANT.set(Some((connection.number(), id)));
    let _guard = GrantGuard;
    act();
}

/// The operation, and what it is done to, in the grant that this thread has. A put is done to the place in the wait
/// queue, and a claim names it.
pub(crate) fn taken<'o>(
    connection: &Connection,
    on: Target,
    operation: &Operation<'o>,
) -> (Target, Operation<'o>) {
    let grant = GRANT.get().filter(|(number, _)| *number == connection.number());
    let Some((_, request)) = grant else { return (on, *operation) };
    match (on, operation) {
        (Target::Space(_), Operation::Put { .. } | Operation::PutLeased { .. }) => {
            (Target::Kept { request, at: 0 }, *operation)
        }
        (_, Operation::Settle(Settlement::Done { .. })) => {
            (on, Operation::Settle(Settlement::Done { grant: Some(request) }))
        }
        _ => (on, *operation),
    }
}
