//! The steps on subscriptions.

use serde_json::Value as Json;

use super::step::{Expectation, Step};
use crate::operation::{Answer, Operation};
use crate::{Event, EventKind};

impl Step<'_> {
    /// A step on a subscription; `None` if it is another one.
    pub(super) fn on_subscription(&self) -> Option<Vec<Expectation>> {
        Some(if self.has("subscribe") {
            let (label, template) = (self.label("as"), self.template("subscribe"));
            let (on, buffer) = (self.kinds(), self.number("buffer"));
            vec![(Operation::Subscribe { label, template, on, buffer }, vec![Answer::Done])]
        } else if self.has("events") {
            let expected = vec![Answer::Events(self.events())];
            vec![(Operation::Events { label: self.label("events") }, expected)]
        } else if self.has("unsubscribe") {
            vec![(Operation::Unsubscribe { label: self.label("unsubscribe") }, vec![Answer::Done])]
        } else {
            return None;
        })
    }

    fn kinds(&self) -> Vec<EventKind> {
        let list = self.get("on").as_array();
        let list = list.unwrap_or_else(|| self.wrong("`on` is not a list")).iter();
        list.map(|name| kind(name).unwrap_or_else(|| self.wrong("`on` has no such event")))
            .collect()
    }

    /// What happened: a kind, a tuple, the number, and how many were missed.
    fn events(&self) -> Vec<Event> {
        let event = |json: &Json| {
            let [name, tuple, sequence, missed] = json.as_array()?.as_slice() else { return None };
            let tuple = self.parse(tuple.as_str()?);
            let (sequence, missed) = (sequence.as_u64()?, missed.as_u64()?);
            Some(Event { kind: kind(name)?, tuple, sequence, missed })
        };
        let list = self.get("gives").as_array();
        let all = list.and_then(|list| list.iter().map(event).collect());
        all.unwrap_or_else(|| self.wrong("`gives` is not a list of [kind, tuple, number, missed]"))
    }
}

fn kind(name: &Json) -> Option<EventKind> {
    let name = name.as_str()?;
    EventKind::ALL.into_iter().find(|kind| kind.to_string() == name)
}
