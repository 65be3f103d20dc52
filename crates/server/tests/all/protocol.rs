//! What a server answers to what comes over its socket, sense or no sense.

use crate::serving::{Raw, Served};
use tupelo::{ConnectOptions, Error, Kind, Order, Space, TupleView, template};
use tupelo_protocol::{
    Action, Amount, FRAME_BYTES_MAX, Hello, Key, Operation, PutTerms, Reply, Request, Target,
    TemplateBytes, Tuples, Watched,
};
use tupelo_server::Engine;
use tupelo_tuple::{Template, fields};

const JOBS: &str = "job, :int";

pub(crate) fn template_bytes(text: &str) -> Vec<u8> {
    text.parse::<Template>().unwrap().encode().unwrap()
}

pub(crate) fn put_of(tuples: &[u8]) -> Operation<'_> {
    let terms = PutTerms::default();
    Operation::Put { tuples: Tuples::of_encoding(tuples), terms, unless: None }
}

pub(crate) fn take_of(template: &[u8], waits: bool) -> Operation<'_> {
    Operation::Find {
        action: Action::Take,
        order: Order::Fifo,
        amount: Amount::One,
        waits,
        template: TemplateBytes::of_encoding(template),
    }
}

pub(crate) fn job(number: i64) -> Vec<u8> {
    let fields = fields!["job", number];
    Tuples::encode(std::iter::once((&fields).into())).unwrap()
}

/// The space that raw clients open, by the facade.
pub(crate) fn beside(served: &Served) -> Space {
    let url = served.urls().replace("{}", &served.space);
    Space::connect(&url, &ConnectOptions::default()).unwrap()
}

#[test]
fn garbage_is_answered_by_one_refusal_and_a_close() {
    let served = Served::new(Engine::Mem, "unix");
    for garbage in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        &[0, 0, 0, 1, 0xc1],
        &[0, 0, 0, 0],
        &[0, 0, 0, 3, 0x92, 0x00, 0xc0],
        &[0xff; 100],
        &[0, 0, 0x10, 0x01],
    ] {
        let mut raw = Raw::connect(&served);
        raw.send(garbage);
        let fault = raw.farewell();
        assert!(["TUP-023", "TUP-017"].contains(&fault.code.as_str()), "{fault}");
    }
    // The same behind a handshake.
    for garbage in [&[0, 0, 0, 2, 0x91, 0x63][..], &[0x7f, 0xff, 0xff, 0xff], &[0, 0, 0, 1, 0x07]] {
        let mut raw = Raw::greeted(&served);
        raw.send(garbage);
        let fault = raw.farewell();
        assert!(["TUP-023", "TUP-017"].contains(&fault.code.as_str()), "{fault}");
    }
    // And whoever else is there notices nothing.
    assert_eq!(beside(&served).count(&[template!["job", Kind::Int]]), Ok(0));
}

#[test]
fn what_came_before_the_garbage_is_answered_first() {
    let served = Served::new(Engine::Mem, "unix");
    let (mut raw, space) = Raw::opened(&served);
    let (tuples, mut bytes) = (job(1), Vec::new());
    let put = Request::Do {
        id: 9,
        on: Target::Space(space),
        key: Some(Key(1)),
        operation: put_of(&tuples),
    };
    put.write(&mut bytes).unwrap();
    bytes.extend([0, 0, 0, 1, 0xc1]);
    raw.send(&bytes);
    assert_eq!(raw.reply(|reply| matches!(reply, Reply::Done { id: 9, count: 1 })), Some(true));
    assert_eq!(raw.farewell().code, "TUP-023");
}

#[test]
fn a_version_that_the_server_does_not_speak_is_refused_with_both() {
    let served = Served::new(Engine::Mem, "unix");
    let mut raw = Raw::connect(&served);
    let mut hello = Vec::new();
    Hello { version_min: 7, version_max: 9, client: 1, token: None, session: None }
        .write(&mut hello)
        .unwrap();
    raw.send(&hello);
    let fault = raw.farewell();
    assert_eq!(fault.code, "TUP-012");
    assert!(fault.message.contains("protocol 7 to 9") && fault.message.contains("speaks 1"));
    assert!(fault.hint.unwrap().contains("upgrade the server"));
}

#[test]
fn a_frame_that_is_too_large_is_refused_at_its_length_b2() {
    let served = Served::new(Engine::Mem, "unix");
    let mut raw = Raw::greeted(&served);
    raw.send(&u32::try_from(FRAME_BYTES_MAX + 1).unwrap().to_be_bytes());
    let fault = raw.farewell();
    assert_eq!(fault.code, "TUP-017");
    assert!(fault.message.contains("67108865 bytes"), "{fault}");
    // A client is told so before it sends anything, and its connection goes on.
    let space = beside(&served);
    let large = vec![0_u8; FRAME_BYTES_MAX];
    let refused = space.put(&fields!["large", &large]).unwrap_err();
    assert!(matches!(refused, Error::LimitExceeded { .. }), "{refused}");
    assert_eq!(space.count(&[template![..]]), Ok(0));
}

#[test]
fn a_tuple_that_does_not_decode_is_refused_and_the_connection_goes_on() {
    let served = Served::new(Engine::Mem, "unix");
    let (mut raw, space) = Raw::opened(&served);
    // A map whose keys are not in their order, what is no tuple, and what is no list of them.
    for tuples in [&[0x91, 0x91, 0x82, 0x02, 0xc0, 0x01, 0xc0][..], &[0x91, 0x07], &[0x07]] {
        let key = Some(Key(tuples.len() as u128));
        raw.request(&Request::Do {
            id: 7,
            on: Target::Space(space),
            key,
            operation: put_of(tuples),
        });
        let is_refused = |reply: &Reply<'_>| matches!(reply, Reply::Refused { id: Some(7), fault } if fault.code == "TUP-023");
        assert_eq!(raw.reply(is_refused), Some(true), "{tuples:x?}");
    }
    let nothing = template_bytes("...");
    let count = Operation::Count { template: TemplateBytes::of_encoding(&nothing) };
    raw.request(&Request::Do { id: 8, on: Target::Space(space), key: None, operation: count });
    assert_eq!(raw.reply(|reply| matches!(reply, Reply::Done { id: 8, count: 0 })), Some(true));
}

#[test]
fn a_request_that_comes_twice_has_its_first_answer_and_one_effect() {
    let served = Served::new(Engine::Mem, "unix");
    let (mut raw, space) = Raw::opened(&served);
    let tuples = job(1);
    for id in [10, 11] {
        let operation = put_of(&tuples);
        raw.request(&Request::Do { id, on: Target::Space(space), key: Some(Key(77)), operation });
        let is_done = |reply: &Reply<'_>| *reply == Reply::Done { id, count: 1 };
        assert_eq!(raw.reply(is_done), Some(true));
    }
    assert_eq!(beside(&served).count(&[template!["job", Kind::Int]]), Ok(1));
}

#[test]
fn what_was_taken_is_held_until_it_is_acknowledged_or_given_up() {
    let served = Served::new(Engine::Mem, "unix");
    let (mut raw, space) = Raw::opened(&served);
    let (beside, jobs) = (beside(&served), [template!["job", Kind::Int]]);
    for number in 1..=3 {
        beside.put(&fields!["job", number]).unwrap();
    }
    let template = template_bytes(JOBS);
    let take = |raw: &mut Raw, id: u64, number: i64| {
        let key = Some(Key(u128::from(id)));
        raw.request(&Request::Do {
            id,
            on: Target::Space(space),
            key,
            operation: take_of(&template, false),
        });
        let tuples = job(number);
        let tuples = Tuples::of_encoding(&tuples);
        let is_found = |reply: &Reply<'_>| *reply == Reply::Found { id, held: true, tuples };
        assert_eq!(raw.reply(is_found), Some(true), "job {number}");
    };
    take(&mut raw, 20, 1);
    assert_eq!((beside.count(&jobs), beside.present(&[template!["job", 1]])), (Ok(2), Ok(true)));
    raw.request(&Request::Cancel { id: 20 });
    // At its old place, before the others (T5).
    take(&mut raw, 21, 1);
    raw.request(&Request::Acknowledge { id: 21 });
    take(&mut raw, 22, 2);
    assert_eq!(beside.present(&[template!["job", 1]]), Ok(false), "consumed");
    drop(raw);
    let keep = |tuple: TupleView<'_>| Ok::<_, Error>(tuple.to_tuple()?);
    // Whenever the server notices.
    let taken = beside.take(&[template!["job", 2]], Order::Fifo, None, keep).unwrap();
    assert_eq!(taken.to_string(), r#"("job", 2)"#);
}

#[test]
fn a_call_that_waits_delays_no_other_and_ends_when_it_is_told() {
    let served = Served::new(Engine::Mem, "unix");
    let (mut raw, space) = Raw::opened(&served);
    let (template, other) = (template_bytes(JOBS), template_bytes("stop"));
    for (id, template) in [(30, &template), (31, &other)] {
        let key = Some(Key(u128::from(id)));
        raw.request(&Request::Do {
            id,
            on: Target::Space(space),
            key,
            operation: take_of(template, true),
        });
    }
    raw.request(&Request::Look { id: 30 });
    assert_eq!(raw.reply(|reply| *reply == Reply::Waits { id: 30 }), Some(true));
    beside(&served).put(&fields!["stop"]).unwrap();
    let is_found = |reply: &Reply<'_>| matches!(reply, Reply::Found { id: 31, held: true, .. });
    assert_eq!(raw.reply(is_found), Some(true));
    raw.request(&Request::End { id: 30 });
    assert_eq!(raw.reply(|reply| *reply == Reply::Nothing { id: 30 }), Some(true));
    // Answered for good: it is ended and looked at in vain, and is handed nothing.
    raw.request(&Request::End { id: 30 });
    raw.request(&Request::Look { id: 30 });
    beside(&served).put(&fields!["job", 1]).unwrap();
    let count = Operation::Count { template: TemplateBytes::of_encoding(&template) };
    raw.request(&Request::Do { id: 32, on: Target::Space(space), key: None, operation: count });
    assert_eq!(raw.reply(|reply| *reply == Reply::Done { id: 32, count: 1 }), Some(true));
}

#[test]
fn a_watch_is_told_once_and_again_when_it_has_looked() {
    let served = Served::new(Engine::Mem, "unix");
    let (mut raw, space) = Raw::opened(&served);
    let (template, beside) = (template_bytes(JOBS), beside(&served));
    let template = TemplateBytes::of_encoding(&template);
    let watch = Operation::Watch { template, on: Watched::Put };
    raw.request(&Request::Do { id: 40, on: Target::Space(space), key: None, operation: watch });
    raw.request(&Request::Look { id: 40 });
    assert_eq!(raw.reply(|reply| *reply == Reply::Waits { id: 40 }), Some(true));
    for number in 0..3 {
        beside.put(&fields!["job", number]).unwrap();
        assert_eq!(raw.reply(|reply| *reply == Reply::Happened { id: 40 }), Some(true));
        raw.request(&Request::Look { id: 40 });
        assert_eq!(raw.reply(|reply| *reply == Reply::Waits { id: 40 }), Some(true));
    }
}
