//! What happens by itself when time passes, as far as no case of `conformance/` can wait for it.

use tupelo_model::{
    Order, Refusal, Reply, Space, Ticket, TransactionTicket, Tuple, template, tuple,
};

const TRANSACTION: TransactionTicket = TransactionTicket(1);

/// Three jobs, of which a transaction that may be open for 50 ms has read the first and taken the second.
fn with_open_transaction() -> Space {
    let mut space = Space::new();
    let three = ["job, 1", "job, 2", "job, 3"].map(tuple);
    space.put_all(three.to_vec()).expect("there is no limit");
    space.begin(TRANSACTION, 50);
    let taken = space.try_take_inside(TRANSACTION, &template("job, 2"), Order::Fifo);
    assert_eq!(taken, Ok(Some(tuple("job, 2"))));
    let read = space.try_read_inside(TRANSACTION, &template("job, _"), Order::Fifo);
    assert_eq!(read, Ok(Some(tuple("job, 1"))));
    space
}

/// A take of what the transaction has, which waits.
fn waiting_take(space: &mut Space, text: &str) -> Ticket {
    match space.take(template(text)).expect("there is room in line") {
        Reply::Later(ticket) => ticket,
        Reply::Now(tuple) => panic!("{tuple} was there"),
    }
}

/// What is there for everybody.
fn jobs(space: &Space) -> Vec<Tuple> {
    space.read_all(&template("job, _"), None)
}

#[test]
fn a_transaction_that_is_open_for_too_long_lets_go_of_all_that_it_has_x5() {
    let mut space = with_open_transaction();
    space.pass(49);
    assert_eq!(jobs(&space), ["job, 1", "job, 3"].map(tuple));
    assert_eq!(space.try_take(&template("job, 1"), Order::Fifo), None, "it is locked");
    space.pass(1);
    assert_eq!(jobs(&space), ["job, 1", "job, 2", "job, 3"].map(tuple));
    assert_eq!(space.try_take(&template("job, _"), Order::Fifo), Some(tuple("job, 1")));
    assert_eq!(space.put_inside(TRANSACTION, tuple("job, 4")), Err(Refusal::TransactionAborted));
    assert_eq!(space.roll_back(TRANSACTION), Err(Refusal::TransactionAborted));
    let committed = Space::commit(TRANSACTION, &mut [&mut space]);
    assert_eq!(committed, Err(Refusal::TransactionAborted));
    assert_eq!(jobs(&space), ["job, 2", "job, 3"].map(tuple));
}

#[test]
fn who_waits_for_what_a_transaction_has_gets_it_when_its_time_is_over_x4_t6() {
    let mut space = with_open_transaction();
    let (second, first) = (waiting_take(&mut space, "job, 2"), waiting_take(&mut space, "job, 1"));
    space.pass(49);
    assert!(!space.served(second) && !space.served(first));
    space.pass(1);
    assert_eq!(space.finish(second), tuple("job, 2"), "though nobody did anything (T6)");
    assert_eq!(space.finish(first), tuple("job, 1"), "the lock is gone");
    assert_eq!(jobs(&space), [tuple("job, 3")]);
    let committed = Space::commit(TRANSACTION, &mut [&mut space]);
    assert_eq!(committed, Err(Refusal::TransactionAborted));
}
