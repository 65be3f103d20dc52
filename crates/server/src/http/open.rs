//! What clients over HTTP have open from one request to the next: claims and transactions.
//!
//! There is no connection that could hold them, so the server does, until their time is over. Each is known by a number
//! that nobody can guess.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};
use tokio::time::{Instant, sleep_until};
use tupelo_protocol::Fault;

use super::asked::bad;
use super::exchange::Exchange;
use crate::Shared;
use crate::rights::Principal;

/// Claims that all clients together may have, and transactions (rule B2).
const OPEN_MAX: usize = 65_536;

/// Bytes of a number, which has two digits for each.
const NUMBER_BYTES: usize = 16;

/// All that is open.
#[derive(Default)]
pub(crate) struct Open {
    claims: ByNumber,
    transactions: ByNumber,
}

impl Open {
    pub(super) const fn claims(&self) -> &ByNumber {
        &self.claims
    }

    pub(super) const fn transactions(&self) -> &ByNumber {
        &self.transactions
    }

    /// Ends all: the server does.
    pub(crate) fn end_all(&self) {
        drop(self.claims.by_number.take());
        drop(self.transactions.by_number.take());
    }
}

/// What is open of one kind, by its numbers.
#[derive(Default)]
pub(super) struct ByNumber {
    by_number: RefCell<HashMap<String, Rc<Left>>>,
}

/// What a client has left open. Dropped, it is given back unless it was ended.
pub(super) struct Left {
    pub(super) exchange: Exchange,
    principal: Rc<Principal>,
    pub(super) until: Cell<Instant>,
    pub(super) ttl: Duration,
}

impl ByNumber {
    /// What this client has open under the number.
    pub(super) fn find(&self, principal: &Principal, number: &str) -> Option<Rc<Left>> {
        let left = self.by_number.borrow().get(number).cloned();
        left.filter(|left| *left.principal == *principal)
    }

    /// Forgets what was ended.
    pub(super) fn forget(&self, number: &str) {
        self.by_number.borrow_mut().remove(number);
    }

    /// Ends what has this number if its time is over. Returns until when it is there otherwise; `None` if it is not.
    fn end_if_due(&self, number: &str) -> Option<Instant> {
        let until = self.by_number.borrow().get(number)?.until.get();
        if until > Instant::now() {
            return Some(until);
        }
        let ended = self.by_number.borrow_mut().remove(number);
        drop(ended);
        None
    }
}

/// Refuses a text that is the number of nothing.
pub(super) fn require_number(number: &str) -> Result<(), Fault> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if number.len() == 2 * NUMBER_BYTES && number.bytes().all(is_digit) {
        return Ok(());
    }
    let problem = format!("{number:?} is no number of a claim or a transaction");
    Err(bad(problem, "give the 32 digits that its beginning was answered with"))
}

/// Keeps what the exchange has left open for its client, as one of those that `of` finds. Returns its number.
///
/// # Errors
///
/// There are too many: it is given up.
pub(super) fn keep(
    shared: &Rc<Shared>,
    principal: &Rc<Principal>,
    (exchange, ttl): (Exchange, Duration),
    (of, name): (fn(&Open) -> &ByNumber, &str),
) -> Result<String, Fault> {
    let mut by_number = of(&shared.http_open).by_number.borrow_mut();
    let number = if by_number.len() < OPEN_MAX { by_chance() } else { None };
    let Some(number) = number else {
        exchange.give_up();
        let message = format!("no more than {OPEN_MAX} {name} over HTTP at a time");
        return Err(Fault::limit(message, "end some"));
    };
    let until = Cell::new(Instant::now() + ttl);
    let left = Left { exchange, principal: Rc::clone(principal), until, ttl };
    by_number.insert(number.clone(), Rc::new(left));
    drop(by_number);
    let (shared, kept) = (Rc::downgrade(shared), number.clone());
    tokio::task::spawn_local(async move {
        loop {
            let Some(shared) = shared.upgrade() else { return };
            let Some(until) = of(&shared.http_open).end_if_due(&kept) else { return };
            drop(shared);
            sleep_until(until).await;
        }
    });
    Ok(number)
}

/// A number that nobody can guess; `None` if the system has none.
fn by_chance() -> Option<String> {
    let mut bytes = [0; NUMBER_BYTES];
    getrandom(&mut bytes, GetRandomFlags::empty()).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)))
}
