//! What a request asks for: its JSON as an operation.

use std::time::Duration;

use serde_json::{Map, Value as Json};
use tupelo::{FieldName, Order, Template, Tuple, WhenFull, with_all_tuples};
use tupelo_protocol::{Action, Amount, Fault, Operation, PutTerms, TemplateBytes, Tuples};

/// Longest time that a request may wait: whatever is between client and server gives up before.
pub(super) const TIMEOUT_MAX: Duration = Duration::from_secs(3600);

/// A verb of a space, as it stands in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Verb {
    Put,
    Take,
    Read,
    TakeAll,
    ReadAll,
    Swap,
    Count,
}

/// The verbs, by their names.
pub(super) const VERBS: [(&str, Verb); 7] = [
    ("put", Verb::Put),
    ("take", Verb::Take),
    ("read", Verb::Read),
    ("take_all", Verb::TakeAll),
    ("read_all", Verb::ReadAll),
    ("swap", Verb::Swap),
    ("count", Verb::Count),
];

impl Verb {
    /// As it stands in a path.
    pub(super) fn name(self) -> &'static str {
        VERBS.iter().find(|(_, verb)| *verb == self).map_or("", |(name, _)| name)
    }

    /// The keys that its body may have.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Put => &["tuple", "entry", "tuples", "lease_s", "after_s", "unless"],
            Self::Take | Self::Read => &["template", "where", "order", "timeout_s"],
            Self::TakeAll | Self::ReadAll => &["template", "where", "at_least", "at_most"],
            Self::Swap => &["template", "where", "tuple", "entry"],
            Self::Count => &["template", "where"],
        }
    }
}

/// What is asked, and how long it may take.
#[derive(Debug, Default)]
pub(super) struct Asked {
    tuples: Vec<u8>,
    template: Option<Vec<u8>>,
    terms: PutTerms,
    order: Order,
    at_least: usize,
    at_most: Option<usize>,
    /// How long to wait; `None`: not at all.
    pub(super) timeout: Option<Duration>,
}

impl Asked {
    /// Understands the body of a request.
    pub(super) fn read(verb: Verb, body: &str) -> Result<Self, Fault> {
        let mut body = object(body, verb.keys())?;
        let mut asked = Self::default();
        match verb {
            Verb::Put => asked.read_put(&mut body)?,
            Verb::Swap => {
                asked.tuples = encoded(&[one_tuple(&mut body)?])?;
                asked.template = Some(template(&mut body, "template")?);
            }
            Verb::Count => asked.template = Some(template(&mut body, "template")?),
            Verb::Take | Verb::Read => {
                asked.template = Some(template(&mut body, "template")?);
                asked.order = order(body.remove("order"))?;
                asked.timeout = timeout(&mut body)?;
            }
            Verb::TakeAll | Verb::ReadAll => {
                asked.template = Some(template(&mut body, "template")?);
                asked.at_least = count(&mut body, "at_least")?.unwrap_or_default();
                asked.at_most = count(&mut body, "at_most")?;
            }
        }
        Ok(asked)
    }

    /// Understands the body of a put that has a tuple in each line.
    pub(super) fn read_lines(verb: Verb, body: &str) -> Result<Self, Fault> {
        if verb != Verb::Put {
            return Err(bad("the body is lines of JSON".to_owned(), "put alone takes these"));
        }
        let lines = body.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let tuples = lines.map(|(index, line)| {
            let why = |why| bad(format!("line {}: {why}", index + 1), EXPECTED);
            tupelo_json::tuple(line).map_err(why)
        });
        let tuples = tuples.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { tuples: encoded(&tuples)?, ..Self::default() })
    }

    fn read_put(&mut self, body: &mut Map<String, Json>) -> Result<(), Fault> {
        self.tuples = encoded(&all_tuples(body)?)?;
        let lease = seconds(body, "lease_s")?;
        let after = seconds(body, "after_s")?;
        self.terms = PutTerms { lease, after };
        if body.contains_key("unless") {
            self.template = Some(template(body, "unless")?);
        }
        Ok(())
    }

    /// The operation, for the verb that this was read for.
    pub(super) fn operation(&self, verb: Verb) -> Operation<'_> {
        let tuples = Tuples::of_encoding(&self.tuples);
        let named = self.template.as_deref().map(TemplateBytes::of_encoding);
        let template = named.unwrap_or(TemplateBytes::of_encoding(&[]));
        let find = |action, amount, waits| {
            let order = self.order;
            Operation::Find { action, order, amount, waits, template }
        };
        let many = Amount::Many { at_least: self.at_least, at_most: self.at_most };
        let waits = self.timeout.is_some_and(|timeout| !timeout.is_zero());
        match verb {
            Verb::Put => Operation::Put { tuples, terms: self.terms, unless: named },
            Verb::Take => find(Action::Take, Amount::One, waits),
            Verb::Read => find(Action::Read, Amount::One, waits),
            Verb::TakeAll => find(Action::Take, many, false),
            Verb::ReadAll => find(Action::Read, many, false),
            Verb::Swap => Operation::Swap { template, to: tuples },
            Verb::Count => Operation::Count { template },
        }
    }
}

/// How a space is made, from the body of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) fresh: bool,
    pub(super) size_bytes: Option<u64>,
    pub(super) tuples_max: Option<u64>,
    pub(super) when_full: WhenFull,
}

impl Limits {
    /// Understands the body of a request; an empty one has none.
    pub(super) fn read(body: &str) -> Result<Self, Fault> {
        const MADE: &str = "as in {\"size_bytes\": 1000000000, \"tuples_max\": 1000, \"when_full\": \"wait\", \"fresh\": false}";
        if body.trim().is_empty() {
            return Ok(Self::default());
        }
        let body = tupelo_json::parse(body).map_err(|why| bad(why, MADE))?;
        let Json::Object(mut body) = body else {
            return Err(bad("the body is no object".to_owned(), MADE));
        };
        require_keys(&body, &["fresh", "size_bytes", "tuples_max", "when_full"])?;
        let fresh = match body.remove("fresh") {
            None => false,
            Some(Json::Bool(fresh)) => fresh,
            Some(other) => return Err(bad(format!("fresh is {other}"), "give true or false")),
        };
        let when_full = match body.remove("when_full") {
            None => WhenFull::default(),
            Some(given) => given
                .as_str()
                .and_then(|name| POLICIES.into_iter().find(|policy| policy.name() == name))
                .ok_or_else(|| {
                    bad(
                        format!("when_full is {given}"),
                        "give \"error\", \"wait\" or \"drop-oldest\"",
                    )
                })?,
        };
        let mut limit = |key: &str| match whole(&mut body, key)? {
            // Also of a space that is there already.
            Some(0) => Err(bad(format!("{key} is 0"), "give 1 or more, or leave it out")),
            limit => Ok(limit),
        };
        Ok(Self {
            fresh,
            size_bytes: limit("size_bytes")?,
            tuples_max: limit("tuples_max")?,
            when_full,
        })
    }
}

const POLICIES: [WhenFull; 3] = [WhenFull::Error, WhenFull::Wait, WhenFull::DropOldest];
const EXPECTED: &str = "as in {\"tuple\": [\"job\", 7]} or {\"template\": [\"job\", {\"$formal\": \":int\"}]}; docs/http.md has all of it";

pub(super) fn bad(problem: String, hint: &str) -> Fault {
    Fault::new("TUP-019", problem, Some(hint))
}

/// Refuses a key that the body of this request does not have.
fn require_keys(body: &Map<String, Json>, known: &[&str]) -> Result<(), Fault> {
    let unknown = body.keys().find(|key| !known.contains(&key.as_str()));
    unknown.map_or(Ok(()), |unknown| {
        let hint = format!("this request has {}", known.join(", "));
        Err(bad(format!("the body has the key {unknown:?}"), &hint))
    })
}

/// The object that a body is, with some of these keys.
pub(super) fn object(body: &str, keys: &[&str]) -> Result<Map<String, Json>, Fault> {
    let body = tupelo_json::parse(body).map_err(|why| bad(why, EXPECTED))?;
    let Json::Object(body) = body else {
        return Err(bad("the body is no object".to_owned(), EXPECTED));
    };
    require_keys(&body, keys)?;
    Ok(body)
}

/// The tuples of a body: one, or several as `tuples`.
pub(super) fn all_tuples(body: &mut Map<String, Json>) -> Result<Vec<Tuple>, Fault> {
    match body.remove("tuples") {
        None => Ok(vec![one_tuple(body)?]),
        Some(_) if body.contains_key("tuple") || body.contains_key("entry") => {
            Err(bad("the body has tuples, and a tuple".to_owned(), EXPECTED))
        }
        Some(Json::Array(tuples)) => tuples
            .into_iter()
            .enumerate()
            .map(|(index, tuple)| {
                let why = |why| bad(format!("tuple {index}: {why}"), EXPECTED);
                tupelo_json::to_tuple(tuple).map_err(why)
            })
            .collect(),
        Some(_) => Err(bad("tuples is no list".to_owned(), EXPECTED)),
    }
}

/// How long a request waits; `None`: not at all.
pub(super) fn timeout(body: &mut Map<String, Json>) -> Result<Option<Duration>, Fault> {
    let timeout = seconds(body, "timeout_s")?;
    if let Some(timeout) = timeout.filter(|timeout| *timeout > TIMEOUT_MAX) {
        let problem = format!("timeout_s is {}", timeout.as_secs());
        return Err(bad(problem, "a request waits for up to 3600 s: ask again after that"));
    }
    Ok(timeout)
}

/// The one tuple of a body: as `tuple`, or of an entry as `entry`.
fn one_tuple(body: &mut Map<String, Json>) -> Result<Tuple, Fault> {
    let parts = ["tuple", "entry"].map(|key| body.remove_entry(key));
    let object: Map<String, Json> = parts.into_iter().flatten().collect();
    if object.is_empty() {
        return Err(bad("the body has no tuple".to_owned(), EXPECTED));
    }
    tupelo_json::to_tuple(Json::Object(object)).map_err(|why| bad(why, EXPECTED))
}

pub(super) fn encoded(tuples: &[Tuple]) -> Result<Vec<u8>, Fault> {
    Ok(with_all_tuples(tuples, |tuples| Tuples::encode(tuples.iter().copied()))??)
}

/// The template that the body has under this key, with the condition for it.
pub(super) fn template(body: &mut Map<String, Json>, key: &str) -> Result<Vec<u8>, Fault> {
    let json = body.remove(key).ok_or_else(|| bad(format!("the body has no {key}"), EXPECTED))?;
    let condition = match body.remove("where") {
        None => None,
        Some(Json::String(condition)) => Some(condition),
        Some(other) => {
            return Err(bad(format!("where is {other}"), "give a text, as in \"f[1] > 9\""));
        }
    };
    let template = tupelo_json::template(json, condition.as_deref());
    let template: Template = template.map_err(|why| Fault::new("TUP-001", why, Some(EXPECTED)))?;
    Ok(template.encode()?)
}

pub(super) fn order(given: Option<Json>) -> Result<Order, Fault> {
    let Some(given) = given else { return Ok(Order::default()) };
    let by_field = |name: &str| {
        let field = given.as_object().filter(|object| object.len() == 1)?.get(name)?;
        usize::try_from(field.as_u64()?).ok()
    };
    let by_name = |name: &str| {
        let field = given.as_object().filter(|object| object.len() == 1)?.get(name)?;
        FieldName::new(field.as_str()?).ok()
    };
    Ok(match given.as_str() {
        Some("fifo") => Order::Fifo,
        Some("lifo") => Order::Lifo,
        Some("random") => Order::Random,
        Some("any") => Order::Any,
        _ => match (by_field("max"), by_field("min")) {
            (Some(field), _) => Order::Max(field),
            (_, Some(field)) => Order::Min(field),
            _ => match (by_name("max"), by_name("min")) {
                (Some(name), _) => Order::MaxOf(name),
                (_, Some(name)) => Order::MinOf(name),
                _ => {
                    let hint = "give \"fifo\", \"lifo\", \"random\", \"any\", {\"max\": 1} or {\"min\": 1}, \
                                and of entries {\"max\": \"priority\"}";
                    return Err(bad(format!("order is {given}"), hint));
                }
            },
        },
    })
}

pub(super) fn seconds(body: &mut Map<String, Json>, key: &str) -> Result<Option<Duration>, Fault> {
    let Some(given) = body.remove(key) else { return Ok(None) };
    // Rounded up to a nanosecond: what is more than 0, or than a limit, still is.
    let rounded = |seconds| {
        let duration = Duration::try_from_secs_f64(seconds).ok()?;
        let is_less = duration.as_secs_f64() < seconds;
        duration.checked_add(Duration::from_nanos(u64::from(is_less)))
    };
    given.as_f64().and_then(rounded).map(Some).ok_or_else(|| {
        bad(format!("{key} is {given}"), "give a number of seconds that is not negative, as 0.5")
    })
}

pub(super) fn whole(body: &mut Map<String, Json>, key: &str) -> Result<Option<u64>, Fault> {
    let Some(given) = body.remove(key) else { return Ok(None) };
    given
        .as_u64()
        .map(Some)
        .ok_or_else(|| bad(format!("{key} is {given}"), "give a whole number that is not negative"))
}

fn count(body: &mut Map<String, Json>, key: &str) -> Result<Option<usize>, Fault> {
    Ok(whole(body, key)?.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
}
