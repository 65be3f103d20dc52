//! A step of a case, compiled into operations with the answers that they may have.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::str::FromStr;

use serde_json::Value as Json;
use tupelo_tuple::ParseError;

use crate::operation::{Answer, Operation, Place};
use crate::scan::Scanned;
use crate::space::Stored;
use crate::waiting::Want;
use crate::{Order, Template, Tuple};

/// An operation, and the answers that it may have.
#[derive(Clone, Debug)]
pub struct Probe {
    pub(super) at: Place,
    pub(super) operation: Operation,
    pub(super) expected: Vec<Answer>,
    /// The step that it comes from: its number, from 1, and its text.
    pub(super) number: usize,
    pub(super) text: String,
}

/// The probes of a step of the case that stands at `place`.
///
/// # Panics
///
/// If the step is not as `conformance/README.md` says.
pub(super) fn probes(place: &str, number: usize, json: &Json) -> Vec<Probe> {
    let text = json.to_string();
    let step =
        Step { place: format!("{place}: step {number} {text}"), json, read: RefCell::default() };
    let at = match step.optional("at").map(Json::as_str) {
        None => Place::Main,
        Some(Some("other")) => Place::Other,
        Some(_) => step.wrong("`at` is \"other\" or left out"),
    };
    let compiled = step.inside(step.compile());
    step.refuse_unread_keys();
    let probe = |(operation, expected)| {
        let text = text.clone();
        Probe { at, operation, expected, number, text }
    };
    compiled.into_iter().map(probe).collect()
}

pub(super) type Expectation = (Operation, Vec<Answer>);

/// A step with its place in the file, for messages.
pub(super) struct Step<'a> {
    place: String,
    json: &'a Json,
    /// The keys that were read: a key that is never read is a slip of the pen.
    read: RefCell<BTreeSet<&'static str>>,
}

/// The verbs that are one operation.
const SIMPLE: [&str; 16] = [
    "put",
    "put_all",
    "put_if_absent",
    "try_take",
    "try_read",
    "take",
    "read",
    "count",
    "read_all",
    "take_all",
    "try_swap",
    "move_to",
    "copy_to",
    "search",
    "cancel",
    "continue_scan",
];

impl Step<'_> {
    fn compile(&self) -> Vec<Expectation> {
        if self.has("start") {
            return vec![(self.start(), vec![Answer::Done])];
        }
        let of_its_own = self.held().or_else(|| self.on_transaction());
        if let Some(expectations) = of_its_own.or_else(|| self.on_subscription()) {
            return expectations;
        }
        if let Some(verb) = SIMPLE.into_iter().find(|verb| self.has(verb)) {
            return vec![(self.operation(verb), self.expected(verb))];
        }
        if let Some(expectations) = self.in_parts().or_else(|| self.short_form()) {
            return expectations;
        }
        self.wrong("none of the keys is a verb")
    }

    fn operation(&self, verb: &'static str) -> Operation {
        let template = || self.template(verb);
        match verb {
            "put" => Operation::Put { tuple: self.tuple(verb) },
            "put_all" => Operation::PutAll { tuples: self.tuples(verb) },
            "put_if_absent" => {
                let (tuple, unless) = (self.tuple(verb), self.template("unless"));
                Operation::PutIfAbsent { tuple, unless, terms: self.lease_terms() }
            }
            "try_take" => Operation::TryTake { template: template(), order: self.order() },
            "try_read" => Operation::TryRead { template: template(), order: self.order() },
            "take" => Operation::TakeNoWait { template: template(), order: self.order() },
            "read" => Operation::ReadNoWait { template: template(), order: self.order() },
            "count" => Operation::Count { template: template() },
            "read_all" => Operation::ReadAll { template: template(), limit: self.limit() },
            "take_all" => Operation::TakeAll { template: template(), limit: self.limit() },
            "try_swap" => Operation::TrySwap { template: template(), to: self.tuple("to") },
            "move_to" => Operation::MoveTo { template: template() },
            "copy_to" => Operation::CopyTo { template: template() },
            "search" => Operation::Search { template: template(), want: self.want() },
            "cancel" => Operation::Cancel { label: self.label(verb) },
            _ => Operation::ContinueScan { label: self.label(verb), at_most: self.number("by") },
        }
    }

    fn want(&self) -> Want {
        match self.optional("want").map(Json::as_str) {
            None | Some(Some("take")) => Want::Take,
            Some(Some("read")) => Want::Read,
            Some(_) => self.wrong("`want` is neither \"take\" nor \"read\""),
        }
    }

    fn expected(&self, verb: &'static str) -> Vec<Answer> {
        if let Some(code) = self.error() {
            return vec![Answer::Refused(code)];
        }
        match verb {
            "put" | "cancel" | "continue_scan" => vec![Answer::Done],
            "put_all" | "count" | "move_to" | "copy_to" => {
                vec![Answer::Count(self.number("gives") as u64)]
            }
            "put_if_absent" => vec![Answer::Flag(self.flag("gives"))],
            "read_all" | "take_all" => vec![Answer::Tuples(self.tuples("gives"))],
            _ if self.has("one_of") => {
                self.tuples("one_of").into_iter().map(Answer::Tuple).collect()
            }
            _ if self.get("gives").is_null() => vec![Answer::Nothing],
            _ => vec![Answer::Tuple(self.tuple("gives"))],
        }
    }

    /// A blocking call begins.
    fn start(&self) -> Operation {
        let label = self.label("start");
        let (want, verb) =
            if self.has("take") { (Want::Take, "take") } else { (Want::Read, "read") };
        Operation::Start { label, want, template: self.template(verb) }
    }

    /// Verbs whose answers do not stand in the file as such, or that are several operations.
    fn in_parts(&self) -> Option<Vec<Expectation>> {
        let served = |label, is| (Operation::Served { label }, vec![Answer::Flag(is)]);
        Some(if self.has("take_many") {
            vec![self.take_many()]
        } else if self.has("wait_none") {
            let expected = vec![Answer::Flag(self.timed_out())];
            vec![(Operation::Present { template: self.template("wait_none") }, expected)]
        } else if self.has("scan") {
            let (label, template) = ("scan".to_owned(), self.template("scan"));
            let scanned = scanned(self.tuples("gives"), Vec::new());
            vec![
                (Operation::BeginScan { label: label.clone(), template }, vec![Answer::Done]),
                (Operation::EndScan { label }, vec![scanned]),
            ]
        } else if self.has("begin_scan") {
            let (label, template) = (self.label("begin_scan"), self.template("of"));
            vec![(Operation::BeginScan { label, template }, vec![Answer::Done])]
        } else if self.has("end_scan") {
            let scanned = scanned(self.tuples("throughout"), self.tuples("meanwhile"));
            vec![(Operation::EndScan { label: self.label("end_scan") }, vec![scanned])]
        } else if self.has("pending") {
            vec![served(self.label("pending"), false)]
        } else if self.has("served") {
            vec![served(self.label("served"), true)]
        } else if self.has("finish") {
            let label = self.label("finish");
            let returns = Answer::Tuple(self.tuple("gives"));
            vec![served(label.clone(), true), (Operation::Finish { label }, vec![returns])]
        } else {
            return None;
        })
    }

    fn take_many(&self) -> Expectation {
        let template = self.template("take_many");
        let (at_least, at_most) = (self.number("at_least"), self.number("at_most"));
        let expected =
            if self.timed_out() { Answer::Nothing } else { Answer::Tuples(self.tuples("gives")) };
        (Operation::TryTakeMany { template, at_least, at_most }, vec![expected])
    }

    /// Many tuples at once, one after the other through an empty space.
    fn short_form(&self) -> Option<Vec<Expectation>> {
        Some(if self.has("matches") {
            let template = self.template("matches");
            let (yes, no) = (self.tuples("yes"), self.tuples("no"));
            let yes = yes.iter().flat_map(|tuple| found(tuple, &template));
            let no = no.iter().flat_map(|tuple| not_found(tuple, &template));
            yes.chain(no).collect()
        } else if self.has("same") {
            let tuples = self.tuples("same");
            let each = |tuple| {
                tuples.iter().flat_map(move |same| found(tuple, &Template::of_actuals(same)))
            };
            tuples.iter().flat_map(each).collect()
        } else if self.has("different") {
            different(&self.tuples("different"))
        } else if self.has("refused") {
            self.each_is_refused();
            Vec::new()
        } else if self.has("round_trip") {
            let rest = crate::template("...");
            let tuples = self.tuples("round_trip");
            let each =
                |tuple: &Tuple| [found(tuple, &rest), found(tuple, &Template::of_actuals(tuple))];
            tuples.iter().flat_map(each).flatten().collect()
        } else {
            return None;
        })
    }
}

impl Step<'_> {
    /// Texts that are no templates: that is known without a space.
    fn each_is_refused(&self) {
        let list = self.get("refused").as_array();
        for json in list.unwrap_or_else(|| self.wrong("`refused` is not a list")) {
            let text = self.text("refused", json);
            if text.parse::<Template>().is_ok() {
                self.wrong(&format!("`{text}` is a template"));
            }
        }
    }
}

/// The tuple is put; the template finds it in every way, and takes it.
fn found(tuple: &Tuple, template: &Template) -> Vec<Expectation> {
    let (template, order) = (template.clone(), Order::Fifo);
    let answer = || vec![Answer::Tuple(tuple.clone())];
    vec![
        (Operation::Put { tuple: tuple.clone() }, vec![Answer::Done]),
        (Operation::Count { template: template.clone() }, vec![Answer::Count(1)]),
        (Operation::TryRead { template: template.clone(), order }, answer()),
        (Operation::TryTake { template, order }, answer()),
    ]
}

/// The tuple is put; the template finds it in no way.
fn not_found(tuple: &Tuple, template: &Template) -> Vec<Expectation> {
    let (template, order) = (template.clone(), Order::Fifo);
    let everything = Operation::TakeAll { template: crate::template("..."), limit: None };
    vec![
        (Operation::Put { tuple: tuple.clone() }, vec![Answer::Done]),
        (Operation::Count { template: template.clone() }, vec![Answer::Count(0)]),
        (Operation::TryRead { template: template.clone(), order }, vec![Answer::Nothing]),
        (Operation::TryTake { template, order }, vec![Answer::Nothing]),
        (everything, vec![Answer::Tuples(vec![tuple.clone()])]),
    ]
}

/// All tuples are put; each finds itself only.
fn different(tuples: &[Tuple]) -> Vec<Expectation> {
    let order = Order::Fifo;
    let put =
        (Operation::PutAll { tuples: tuples.to_vec() }, vec![Answer::Count(tuples.len() as u64)]);
    let count = |tuple| {
        (Operation::Count { template: Template::of_actuals(tuple) }, vec![Answer::Count(1)])
    };
    let take = |tuple: &Tuple| {
        let answer = vec![Answer::Tuple(tuple.clone())];
        (Operation::TryTake { template: Template::of_actuals(tuple), order }, answer)
    };
    let (counts, takes) = (tuples.iter().map(count), tuples.iter().map(take));
    std::iter::once(put).chain(counts).chain(takes).collect()
}

fn scanned(throughout: Vec<Tuple>, meanwhile: Vec<Tuple>) -> Answer {
    let stored =
        |tuples: Vec<Tuple>| tuples.into_iter().map(|tuple| Stored::new(0, tuple)).collect();
    Answer::Scanned(Scanned { throughout: stored(throughout), meanwhile: stored(meanwhile) })
}

/// Reading the parts of a step, each with a message that names the missing part.
impl Step<'_> {
    pub(super) fn wrong(&self, what: &str) -> ! {
        panic!("{}: {what}", self.place)
    }

    fn refuse_unread_keys(&self) {
        let read = self.read.borrow();
        for key in self.json.as_object().into_iter().flat_map(|step| step.keys()) {
            if !read.contains(key.as_str()) {
                self.wrong(&format!("`{key}` means nothing here"));
            }
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.json.get(key).is_some()
    }

    pub(super) fn optional(&self, key: &'static str) -> Option<&Json> {
        self.read.borrow_mut().insert(key);
        self.json.get(key)
    }

    pub(super) fn get(&self, key: &'static str) -> &Json {
        self.optional(key).unwrap_or_else(|| self.wrong(&format!("`{key}` is missing")))
    }

    pub(super) fn label(&self, key: &'static str) -> String {
        self.text(key, self.get(key)).to_owned()
    }

    fn text<'json>(&self, key: &str, json: &'json Json) -> &'json str {
        json.as_str().unwrap_or_else(|| self.wrong(&format!("`{key}` is not a text")))
    }

    pub(super) fn number(&self, key: &'static str) -> usize {
        let number = self.get(key).as_u64().and_then(|number| usize::try_from(number).ok());
        number.unwrap_or_else(|| self.wrong(&format!("`{key}` is not a number")))
    }

    pub(super) fn flag(&self, key: &'static str) -> bool {
        self.get(key)
            .as_bool()
            .unwrap_or_else(|| self.wrong(&format!("`{key}` is not a truth value")))
    }

    fn limit(&self) -> Option<usize> {
        self.has("limit").then(|| self.number("limit"))
    }

    pub(super) fn error(&self) -> Option<String> {
        self.has("error").then(|| self.label("error"))
    }

    /// Whether the call is expected to time out, the only refusal that its verb knows.
    fn timed_out(&self) -> bool {
        match self.error().as_deref() {
            None => false,
            Some("TUP-003") => true,
            Some(_) => self.wrong("the only error here is TUP-003"),
        }
    }

    pub(super) fn order(&self) -> Order {
        let Some(json) = self.optional("order") else { return Order::default() };
        let text = self.text("order", json);
        let (name, field_text) = text.split_once(' ').unwrap_or((text, ""));
        match (name, field_text.parse()) {
            ("fifo", _) => Order::Fifo,
            ("lifo", _) => Order::Lifo,
            ("random", _) => Order::Random,
            ("any", _) => Order::Any,
            ("max", Ok(field)) => Order::Max(field),
            ("min", Ok(field)) => Order::Min(field),
            // A case lives as long as the program that runs it.
            ("max", Err(_)) => Order::MaxOf(field_text.to_owned().leak()),
            ("min", Err(_)) => Order::MinOf(field_text.to_owned().leak()),
            _ => self.wrong("no such order"),
        }
    }

    pub(super) fn tuple(&self, key: &'static str) -> Tuple {
        self.parse(self.text(key, self.get(key)))
    }

    pub(super) fn tuples(&self, key: &'static str) -> Vec<Tuple> {
        let list = self.get(key).as_array();
        let list = list.unwrap_or_else(|| self.wrong(&format!("`{key}` is not a list")));
        list.iter().map(|json| self.parse(self.text(key, json))).collect()
    }

    pub(super) fn template(&self, key: &'static str) -> Template {
        self.parse(self.text(key, self.get(key)))
    }

    pub(super) fn parse<T: FromStr<Err = ParseError>>(&self, text: &str) -> T {
        text.parse().unwrap_or_else(|error| self.wrong(&format!("`{text}`: {error}")))
    }
}
