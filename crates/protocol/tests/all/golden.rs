//! The frames of `conformance/protocol/` are written and read to the bit.

use std::path::Path;
use std::time::Duration;

use serde_json::Value as Json;
use tupelo_protocol::{
    Action, Amount, FRAME_BYTES_MAX, Fault, Frames, Hello, Key, Opened, Operation, PutTerms, Reply,
    Request, SessionState, SessionTerms, Settlement, SpaceId, SpaceIds, Target, TemplateBytes,
    Term, Tuples, Watched, Welcome,
};
use tupelo_tuple::{FieldName, Order, Template, Tuple, WhenFull, with_all_tuples};

/// The named field of a frame.
fn field<'j>(frame: &'j Json, name: &str) -> &'j Json {
    frame.get(name).unwrap_or_else(|| panic!("{frame} has no {name}"))
}

fn number(frame: &Json, name: &str) -> u64 {
    field(frame, name).as_u64().unwrap_or_else(|| panic!("{name} of {frame} is no number"))
}

fn optional_number(frame: &Json, name: &str) -> Option<u64> {
    (!field(frame, name).is_null()).then(|| number(frame, name))
}

fn text<'j>(frame: &'j Json, name: &str) -> &'j str {
    field(frame, name).as_str().unwrap_or_else(|| panic!("{name} of {frame} is no text"))
}

fn flag(frame: &Json, name: &str) -> bool {
    field(frame, name).as_bool().unwrap_or_else(|| panic!("{name} of {frame} is no flag"))
}

/// The bytes in hex, without spaces in between.
fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| *byte != b' ').collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// The encodings that a frame refers to, which are written in the text notation.
#[derive(Default)]
struct Encodings {
    tuples: Vec<u8>,
    template: Vec<u8>,
    spaces: Vec<SpaceId>,
}

impl Encodings {
    fn of(frame: &Json) -> Self {
        let mut encodings = Self::default();
        if let Some(texts) = frame.get("tuples") {
            let texts = texts.as_array().unwrap();
            let tuples: Vec<Tuple> =
                texts.iter().map(|text| text.as_str().unwrap().parse().unwrap()).collect();
            encodings.tuples =
                with_all_tuples(&tuples, |refs| Tuples::encode(refs.iter().copied()))
                    .unwrap()
                    .unwrap();
        }
        if let Some(text) = frame.get("template").and_then(Json::as_str) {
            encodings.template = text.parse::<Template>().unwrap().encode().unwrap();
        }
        let others = frame.get("others").and_then(Json::as_array).into_iter().flatten();
        for id in others.chain(frame.get("to")) {
            let space = u32::try_from(number(id, "space")).unwrap();
            encodings.spaces.push(SpaceId { client: number(id, "client"), space });
        }
        encodings
    }

    fn tuples(&self) -> Tuples<'_> {
        Tuples::of_encoding(&self.tuples)
    }

    fn template(&self) -> TemplateBytes<'_> {
        TemplateBytes::of_encoding(&self.template)
    }
}

fn order(text: &str) -> Order {
    let named = |name| FieldName::new(name).unwrap();
    match text.split_once(' ') {
        None if text == "fifo" => Order::Fifo,
        None if text == "lifo" => Order::Lifo,
        None if text == "random" => Order::Random,
        None if text == "any" => Order::Any,
        Some(("max", field)) => {
            field.parse().map_or_else(|_| Order::MaxOf(named(field)), Order::Max)
        }
        Some(("min", field)) => {
            field.parse().map_or_else(|_| Order::MinOf(named(field)), Order::Min)
        }
        _ => panic!("{text} is no order"),
    }
}

fn when_full(frame: &Json) -> WhenFull {
    let name = text(frame, "when_full");
    WhenFull::ALL.into_iter().find(|one| one.name() == name).unwrap()
}

fn amount(frame: &Json) -> Amount {
    let many = field(frame, "many");
    if many.is_null() {
        return Amount::One;
    }
    let count = |number: u64| usize::try_from(number).unwrap();
    let at_most = optional_number(many, "at_most").map(count);
    Amount::Many { at_least: count(number(many, "at_least")), at_most }
}

fn operation<'e>(kind: &str, frame: &'e Json, encodings: &'e Encodings) -> Option<Operation<'e>> {
    let nanoseconds = |name| optional_number(frame, name).map(Duration::from_nanos);
    let template = encodings.template();
    Some(match kind {
        "put" => Operation::Put {
            tuples: encodings.tuples(),
            terms: PutTerms { lease: nanoseconds("lease_ns"), after: nanoseconds("after_ns") },
            unless: (!encodings.template.is_empty()).then_some(template),
        },
        "find" => Operation::Find {
            action: if text(frame, "action") == "take" { Action::Take } else { Action::Read },
            order: order(text(frame, "order")),
            amount: amount(frame),
            waits: flag(frame, "waits"),
            template,
        },
        "swap" => Operation::Swap { template, to: encodings.tuples() },
        "count" => Operation::Count { template },
        "present" => Operation::Present { template },
        "watch" => {
            let is_put = text(frame, "on") == "put";
            Operation::Watch { template, on: if is_put { Watched::Put } else { Watched::Removal } }
        }
        "put_leased" => Operation::PutLeased {
            tuple: encodings.tuples(),
            terms: PutTerms { lease: nanoseconds("lease_ns"), after: nanoseconds("after_ns") },
            unless: (!encodings.template.is_empty()).then_some(template),
        },
        "claim" => Operation::Claim {
            order: order(text(frame, "order")),
            ttl: Duration::from_nanos(number(frame, "ttl_ns")),
            attempts_max: optional_number(frame, "attempts_max")
                .map(|most| u32::try_from(most).unwrap()),
            waits: flag(frame, "waits"),
            template,
        },
        "room" => Operation::Room,
        "dead" => Operation::Dead { template },
        "requeue" => Operation::Requeue { template },
        "begin" => Operation::Begin {
            others: SpaceIds::Plain(&encodings.spaces),
            ttl: Duration::from_nanos(number(frame, "ttl_ns")),
        },
        "subscribe" => Operation::Subscribe {
            template,
            kinds: u32::try_from(number(frame, "kinds")).unwrap(),
            events_max: usize::try_from(number(frame, "events_max")).unwrap(),
            bytes_max: optional_number(frame, "bytes_max")
                .map(|most| usize::try_from(most).unwrap()),
        },
        "scan" => Operation::Scan { template },
        "transfer" => {
            Operation::Transfer { to: encodings.spaces[0], moves: flag(frame, "moves"), template }
        }
        "stat" => Operation::Stat,
        "blocked" => Operation::Blocked,
        "names" => Operation::Names,
        "explain" => Operation::Explain { template },
        "next" => Operation::Next { at_most: usize::try_from(number(frame, "at_most")).unwrap() },
        "events" => {
            Operation::Events { at_most: usize::try_from(number(frame, "at_most")).unwrap() }
        }
        "waiting" => Operation::Waiting,
        "term" => Operation::Term(term(frame)),
        "settle" => Operation::Settle(settlement(frame)),
        "has_read" => Operation::HasRead,
        "taken" => Operation::Taken { arrived: flag(frame, "arrived") },
        "check" => Operation::Check { tuples: encodings.tuples() },
        _ => return None,
    })
}

/// What an operation is done to: a space, or what a request has left open.
fn target(frame: &Json) -> Target {
    if let Some(kept) = frame.get("kept") {
        let request = number(kept, "request");
        return Target::Kept { request, at: u32::try_from(number(kept, "at")).unwrap() };
    }
    Target::Space(u32::try_from(number(frame, "space")).unwrap())
}

fn term(frame: &Json) -> Term {
    let length = optional_number(frame, "length_ns").map(Duration::from_nanos);
    match text(frame, "change") {
        "left" => Term::Left,
        "renew" => Term::Renew(length),
        "prolong" => Term::Prolong(length.unwrap()),
        "cancel" => Term::Cancel,
        other => panic!("{other} is no change"),
    }
}

fn settlement(frame: &Json) -> Settlement<'_> {
    match text(frame, "end") {
        "done" => Settlement::Done { grant: optional_number(frame, "grant") },
        "abort" => Settlement::Abort { reason: text(frame, "reason") },
        "give_back" => Settlement::GiveBack,
        "discard" => Settlement::Discard,
        other => panic!("{other} is no end"),
    }
}

fn request<'e>(kind: &str, frame: &'e Json, encodings: &'e Encodings) -> Option<Request<'e>> {
    if !["open", "remove", "ping", "spaces", "acknowledge", "cancel", "end", "look"].contains(&kind)
    {
        let operation = operation(kind, frame, encodings)?;
        let key = field(frame, "key").as_str();
        let key = key.map(|key| Key(u128::from_str_radix(&key.replace('-', ""), 16).unwrap()));
        return Some(Request::Do { id: number(frame, "id"), on: target(frame), key, operation });
    }
    let id = number(frame, "id");
    Some(match kind {
        "open" => Request::Open {
            id,
            opened: Opened {
                name: text(frame, "name"),
                create: flag(frame, "create"),
                fresh: flag(frame, "fresh"),
                size_bytes: optional_number(frame, "size_bytes"),
                tuples_max: optional_number(frame, "tuples_max"),
                when_full: when_full(frame),
            },
        },
        "remove" => Request::Remove { id, name: text(frame, "name") },
        "ping" => Request::Ping { id },
        "spaces" => Request::Spaces { id },
        "acknowledge" => Request::Acknowledge { id },
        "cancel" => Request::Cancel { id },
        "end" => Request::End { id },
        _ => Request::Look { id },
    })
}

fn reply<'e>(kind: &str, frame: &Json, encodings: &'e Encodings) -> Option<Reply<'e>> {
    let id = || number(frame, "id");
    Some(match kind {
        "opened" => {
            let space = u32::try_from(number(frame, "space")).unwrap();
            let keeper = optional_number(frame, "keeper");
            Reply::Opened { id: id(), space, when_full: when_full(frame), keeper }
        }
        "done" => Reply::Done { id: id(), count: number(frame, "count") },
        "found" => Reply::Found { id: id(), held: flag(frame, "held"), tuples: encodings.tuples() },
        "nothing" => Reply::Nothing { id: id() },
        "waits" => Reply::Waits { id: id() },
        "happened" => Reply::Happened { id: id() },
        "refused" => Reply::Refused {
            id: optional_number(frame, "id"),
            fault: Fault {
                code: text(frame, "code").to_owned(),
                message: text(frame, "message").to_owned(),
                hint: field(frame, "hint").as_str().map(str::to_owned),
                flags: number(frame, "flags"),
            },
        },
        _ => return None,
    })
}

/// Writes the frame that `frame` describes, and compares what is read of `content` with it.
fn written(kind: &str, frame: &Json, content: &[u8]) -> Vec<u8> {
    let (encodings, mut out) = (Encodings::of(frame), Vec::new());
    if kind == "hello" {
        let (version_min, version_max) =
            (number(frame, "version_min"), number(frame, "version_max"));
        let hello = Hello {
            version_min,
            version_max,
            client: number(frame, "client"),
            token: frame["token"].as_str().map(str::to_owned),
            session: frame.get("session").map(|session| SessionTerms {
                lease: Duration::from_nanos(number(session, "lease_ns")),
                resumes: flag(session, "resumes"),
            }),
        };
        hello.write(&mut out).unwrap();
        assert_eq!(Hello::read(content), Ok(hello));
    } else if kind == "welcome" {
        let welcome = Welcome {
            version: number(frame, "version"),
            server: text(frame, "server").to_owned(),
            frame_bytes_max: number(frame, "frame_bytes_max"),
            requests_max: number(frame, "requests_max"),
            session: frame.get("session").map(|session| SessionState {
                server: number(session, "server"),
                resumed: flag(session, "resumed"),
            }),
        };
        welcome.write(&mut out).unwrap();
        assert_eq!(Welcome::read(content), Ok(welcome));
    } else if let Some(reply) = reply(kind, frame, &encodings) {
        reply.write(&mut out).unwrap();
        assert_eq!(Reply::read(content), Ok(reply));
    } else {
        let request = request(kind, frame, &encodings);
        let request = request.unwrap_or_else(|| panic!("{kind} is no kind of frame"));
        request.write(&mut out).unwrap();
        assert_eq!(Request::read(content), Ok(request));
    }
    out
}

#[test]
fn every_frame_is_written_as_its_bytes_and_read_from_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/protocol");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let json: Json = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for case in json["frames"].as_array().unwrap() {
            let name = text(case, "name");
            let (kind, frame) = case["frame"].as_object().unwrap().iter().next().unwrap();
            let bytes = bytes_of(text(case, "hex"));
            let mut frames = Frames::new(FRAME_BYTES_MAX);
            frames.add(&bytes);
            let content =
                frames.next_frame().unwrap().unwrap_or_else(|| panic!("{name}: not whole"));
            let written = written(kind, frame, content);
            assert_eq!(hex_of(&written), hex_of(&bytes), "{}: {name}", path.display());
            count += 1;
        }
    }
    assert!(count >= 30, "{count} frames");
}

#[test]
fn what_is_no_frame_is_refused_and_never_panics() {
    let mut random = fastrand::Rng::with_seed(7);
    for length in 0..200 {
        for _ in 0..200 {
            let mut bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            // Half of them begin as a frame does.
            if length > 2 && random.bool() {
                (bytes[0], bytes[1]) = (0x90 | random.u8(..16), random.u8(..80));
            }
            let _ = (Request::read(&bytes), Reply::read(&bytes));
            let _ = (Hello::read(&bytes), Welcome::read(&bytes));
            if let Ok(Request::Do { operation: Operation::Put { tuples, .. }, .. }) =
                Request::read(&bytes)
            {
                let _ = tuples.decode();
            }
        }
    }
}
