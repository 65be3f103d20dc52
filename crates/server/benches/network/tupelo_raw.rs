//! A client that speaks the protocol by itself.

use std::io::{Read, Write};
use std::net::TcpStream;

use tupelo::{Field, Kind, KindSet, Order};
use tupelo_protocol::{
    Action, Amount, FRAME_BYTES_MAX, Frames, Hello, Key, Opened, Operation, PutTerms, Reply,
    Request, Target, TemplateBytes, Tuples, Welcome,
};
use tupelo_tuple::{PatternRef, TemplateRef, WhenFull, fields};

use crate::peers::{Client, SPACE, Server};

pub(crate) struct Raw {
    stream: TcpStream,
    frames: Frames,
    buffer: Box<[u8]>,
    out: Vec<u8>,
    /// Its number, in the upper half of its keys.
    client: u64,
    space: u32,
    next: u64,
    tuples: Vec<u8>,
    template: Vec<u8>,
}

impl Raw {
    /// Reads frames until `look` has made something of one.
    fn frame<R>(&mut self, mut look: impl FnMut(&[u8]) -> R) -> R {
        loop {
            if let Some(frame) = self.frames.next_frame().unwrap() {
                return look(frame);
            }
            let bytes = self.stream.read(&mut self.buffer).unwrap();
            assert!(bytes > 0, "the server has closed the connection");
            self.frames.add(&self.buffer[..bytes]);
        }
    }

    fn find(&mut self, waits: bool) {
        let operation = Operation::Find {
            action: Action::Take,
            order: Order::Fifo,
            amount: Amount::One,
            waits,
            template: TemplateBytes::of_encoding(&self.template),
        };
        request(&mut self.next, self.client, self.space, operation, &mut self.out);
    }

    /// The server's process is asked to let it wait for something that nobody puts.
    pub(crate) fn wait_for_ever(&mut self, number: i64) {
        let patterns =
            [PatternRef::Actual(Field::Str("idle")), PatternRef::Actual(Field::Int(number))];
        self.template = TemplateBytes::encode(&[TemplateRef::new(&patterns)]).unwrap();
        self.find(true);
        self.send();
    }
}

/// Appends the next request.
fn request(next: &mut u64, client: u64, space: u32, operation: Operation<'_>, out: &mut Vec<u8>) {
    let id = *next;
    *next += 1;
    let key = Some(Key(u128::from(client) << 64 | u128::from(id)));
    Request::Do { id, on: Target::Space(space), key, operation }.write(out).unwrap();
}

impl Client for Raw {
    fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        // The one number of this machine that no other of its connections has now.
        let client = u64::from(stream.local_addr().unwrap().port());
        let fields = fields!["job", 17];
        let kind = PatternRef::Kinds(KindSet::of(Kind::Int));
        let patterns = [PatternRef::Actual(Field::Str("job")), kind];
        let mut raw = Self {
            stream,
            frames: Frames::new(FRAME_BYTES_MAX),
            buffer: vec![0; 64 << 10].into(),
            out: Vec::new(),
            client,
            space: 0,
            next: 1,
            tuples: Tuples::encode(std::iter::once((&fields).into())).unwrap(),
            template: TemplateBytes::encode(&[TemplateRef::new(&patterns)]).unwrap(),
        };
        let hello = Hello { version_min: 1, version_max: 1, client, token: None, session: None };
        hello.write(&mut raw.out).unwrap();
        raw.send();
        raw.frame(|frame| Welcome::read(frame).map(drop)).unwrap();
        let opened = Opened {
            name: SPACE,
            create: true,
            fresh: false,
            size_bytes: Some(1 << 30),
            tuples_max: None,
            when_full: WhenFull::Error,
        };
        Request::Open { id: 0, opened }.write(&mut raw.out).unwrap();
        raw.send();
        raw.space = raw.frame(|frame| match Reply::read(frame).unwrap() {
            Reply::Opened { space, .. } => space,
            other => panic!("{other:?}"),
        });
        raw
    }

    fn put(&mut self) {
        let tuples = Tuples::of_encoding(&self.tuples);
        let operation = Operation::Put { tuples, terms: PutTerms::default(), unless: None };
        request(&mut self.next, self.client, self.space, operation, &mut self.out);
    }

    fn take(&mut self) {
        self.find(false);
    }

    fn take_waiting(&mut self) {
        self.find(true);
    }

    fn ping(&mut self) {
        Request::Ping { id: self.next }.write(&mut self.out).unwrap();
        self.next += 1;
    }

    fn send(&mut self) {
        self.stream.write_all(&self.out).unwrap();
        self.out.clear();
    }

    /// Says of each tuple that it has arrived, as a client does before its call returns.
    fn read(&mut self, answers: u32) {
        for _ in 0..answers {
            let held = self.frame(|frame| match Reply::read(frame).unwrap() {
                Reply::Found { id, held: true, .. } => Some(id),
                Reply::Done { .. } => None,
                other => panic!("{other:?}"),
            });
            if let Some(id) = held {
                Request::Acknowledge { id }.write(&mut self.out).unwrap();
            }
        }
        if !self.out.is_empty() {
            self.send();
        }
    }
}
