#![expect(clippy::cast_precision_loss, reason = "a rate of requests is far below 2^52")]
//! What the programs of one token may have and do at a time, all of them together. Those that need no token count as one.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::str::FromStr;

use tokio::time::Instant;
use tupelo::Space;
use tupelo_protocol::{Fault, Operation};

/// The limits of each token; `None`: none but those of every connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Calls that wait, and watches.
    pub waits: Option<u64>,
    /// Subscriptions that are open.
    pub subscriptions: Option<u64>,
    /// Requests in a second, on the average; so many may come at once.
    pub requests_per_s: Option<u64>,
    /// Tuples of a space: one that has as many gets no more by this token, whoever has put them.
    pub tuples: Option<u64>,
    /// Bytes of the tuples of a space, in the same way.
    pub bytes: Option<u64>,
}

impl Limits {
    /// Their names.
    pub const NAMES: [&str; 5] = ["waits", "subscriptions", "requests_per_s", "tuples", "bytes"];

    /// The limit of this name, if there is one of this name.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Option<u64>> {
        match name {
            "waits" => Some(&mut self.waits),
            "subscriptions" => Some(&mut self.subscriptions),
            "requests_per_s" => Some(&mut self.requests_per_s),
            "tuples" => Some(&mut self.tuples),
            "bytes" => Some(&mut self.bytes),
            _ => None,
        }
    }
}

/// What one token has open.
#[derive(Debug)]
pub(crate) struct Usage {
    name: String,
    limits: Limits,
    waits: Cell<u64>,
    subscriptions: Cell<u64>,
    requests: Cell<Requests>,
}

/// How many requests may still come, and when that was.
#[derive(Clone, Copy, Debug)]
struct Requests {
    left: f64,
    at: Instant,
}

/// Something of which there is a limit, until it is dropped.
#[derive(Debug)]
pub(crate) struct InUse {
    usage: Rc<Usage>,
    of: fn(&Usage) -> &Cell<u64>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        let used = (self.of)(&self.usage);
        used.set(used.get() - 1);
    }
}

/// What all tokens have open.
#[derive(Debug)]
pub(crate) struct Quotas {
    limits: Limits,
    /// By the names of the tokens, of which a server has as many as its file.
    by_name: RefCell<HashMap<String, Rc<Usage>>>,
}

impl Quotas {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, by_name: RefCell::default() }
    }

    /// What the token with this name has open.
    pub(crate) fn of(&self, name: &str) -> Rc<Usage> {
        let mut by_name = self.by_name.borrow_mut();
        if let Some(known) = by_name.get(name) {
            return Rc::clone(known);
        }
        let usage = Rc::new(Usage::new(name, self.limits));
        by_name.insert(name.to_owned(), Rc::clone(&usage));
        usage
    }
}

impl Usage {
    fn new(name: &str, limits: Limits) -> Self {
        let left = limits.requests_per_s.unwrap_or(0) as f64;
        Self {
            name: name.to_owned(),
            limits,
            waits: Cell::default(),
            subscriptions: Cell::default(),
            requests: Cell::new(Requests { left, at: Instant::now() }),
        }
    }

    /// Counts a call that waits.
    ///
    /// # Errors
    ///
    /// There are as many as there may be.
    pub(crate) fn begin_wait(self: &Rc<Self>) -> Result<InUse, Fault> {
        self.begin("waits", self.limits.waits, |usage| &usage.waits)
    }

    /// Counts a subscription.
    ///
    /// # Errors
    ///
    /// There are as many as there may be.
    pub(crate) fn begin_subscription(self: &Rc<Self>) -> Result<InUse, Fault> {
        self.begin("subscriptions", self.limits.subscriptions, |usage| &usage.subscriptions)
    }

    fn begin(
        self: &Rc<Self>,
        limit: &str,
        most: Option<u64>,
        of: fn(&Self) -> &Cell<u64>,
    ) -> Result<InUse, Fault> {
        let used = of(self);
        match most {
            Some(most) if used.get() >= most => {
                Err(self.over(limit, &format!("has {most} {limit} open")))
            }
            _ => {
                used.set(used.get() + 1);
                Ok(InUse { usage: Rc::clone(self), of })
            }
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    ///
    /// There were too many in the last second.
    pub(crate) fn count_request(&self) -> Result<(), Fault> {
        let Some(most) = self.limits.requests_per_s else { return Ok(()) };
        let (most, now) = (most as f64, Instant::now());
        let Requests { left, at } = self.requests.get();
        let left = most.min(left + most * now.duration_since(at).as_secs_f64());
        let (left, is_over) = if left < 1.0 { (left, true) } else { (left - 1.0, false) };
        self.requests.set(Requests { left, at: now });
        if is_over {
            return Err(
                self.over("requests_per_s", &format!("sends more than {most} requests a second"))
            );
        }
        Ok(())
    }

    /// Refuses what would add to a space that has as much as it may.
    pub(crate) fn require_content(
        &self,
        space: &Space,
        operation: &Operation<'_>,
    ) -> Result<(), Fault> {
        let adds = matches!(operation, Operation::Put { .. } | Operation::PutLeased { .. });
        if !adds || (self.limits.tuples, self.limits.bytes) == (None, None) {
            return Ok(());
        }
        let stat = space.stat()?;
        for (limit, most, used) in [
            ("tuples", self.limits.tuples, stat.tuples),
            ("bytes", self.limits.bytes, stat.bytes_used),
        ] {
            if let Some(most) = most.filter(|most| used >= *most) {
                let what =
                    format!("puts into a space that has {used} {limit}, and {most} are its limit");
                return Err(self.over(limit, &what));
            }
        }
        Ok(())
    }

    fn over(&self, limit: &str, what: &str) -> Fault {
        let name = &self.name;
        let message = format!("the token {name:?} {what}");
        let hint = format!(
            "try again later, or have `{limit}` under [limits] raised in the server's configuration"
        );
        Fault::limit(message, &hint)
    }
}

/// A limit as a text, as `waits=100`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// One of [`Limits::NAMES`].
    pub name: String,
    /// How many.
    pub most: u64,
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let names = Limits::NAMES.join(", ");
            format!("write a limit and its number, as waits=100; the limits are {names}")
        };
        let (name, most) = text.split_once('=').ok_or_else(wrong)?;
        let most = most.trim().parse().map_err(|_| wrong())?;
        let name = name.trim().to_owned();
        if Limits::NAMES.contains(&&*name) { Ok(Self { name, most }) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Limit, Limits, Quotas};

    #[test]
    fn what_is_open_is_counted_of_all_programs_of_a_token_until_it_ends() {
        let quotas = Quotas::new(Limits { waits: Some(2), ..Limits::default() });
        let waits: Vec<_> = (0..2).map(|_| quotas.of("ci").begin_wait().unwrap()).collect();
        let fault = quotas.of("ci").begin_wait().unwrap_err();
        assert!(fault.code == "TUP-017" && fault.message.contains("\"ci\" has 2 waits"), "{fault}");
        assert!(fault.hint.unwrap().contains("`waits` under [limits]"));
        quotas.of("other").begin_wait().unwrap();
        quotas.of("ci").begin_subscription().unwrap();
        drop(waits);
        quotas.of("ci").begin_wait().unwrap();
    }

    #[test]
    fn requests_are_counted_by_the_second() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let limits = Limits { requests_per_s: Some(1000), ..Limits::default() };
            let usage = Quotas::new(limits).of("ci");
            let refused = |_: &i32| usage.count_request().is_err();
            assert!((0..100_000).any(|n| refused(&n)), "a million a second are too many");
            tokio::time::sleep(Duration::from_millis(20)).await;
            usage.count_request().unwrap();
        });
    }

    #[test]
    fn a_limit_is_a_name_and_a_number() {
        let limit: Limit = "waits=100".parse().unwrap();
        assert_eq!((&*limit.name, limit.most), ("waits", 100));
        for wrong in ["waits", "waits=", "waits=-1", "wait=1", "=1"] {
            let why = wrong.parse::<Limit>().unwrap_err();
            assert!(why.contains("waits=100") && why.contains("requests_per_s"), "{why}");
        }
        for name in Limits::NAMES {
            assert!(Limits::default().get_mut(name).is_some(), "{name}");
        }
        assert!(Limits::default().get_mut("wait").is_none());
    }
}
