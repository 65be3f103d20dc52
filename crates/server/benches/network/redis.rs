//! A client of Redis.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::peers::{Client, Server};

const LPUSH: &[u8] = b"*3\r\n$5\r\nLPUSH\r\n$3\r\njob\r\n$2\r\n17\r\n";
const RPOP: &[u8] = b"*2\r\n$4\r\nRPOP\r\n$3\r\njob\r\n";
const BRPOP: &[u8] = b"*3\r\n$5\r\nBRPOP\r\n$3\r\njob\r\n$1\r\n0\r\n";
const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

pub(crate) struct Redis {
    stream: BufReader<TcpStream>,
    out: Vec<u8>,
    line: String,
}

impl Redis {
    /// Reads a line, and returns the number behind its first character.
    fn line(&mut self) -> Option<usize> {
        self.line.clear();
        self.stream.read_line(&mut self.line).unwrap();
        assert!(!self.line.starts_with('-') && self.line != "$-1\r\n", "{}", self.line);
        self.line.get(1..)?.trim_end().parse().ok()
    }

    fn answer(&mut self) {
        let number = self.line();
        match self.line.as_bytes()[0] {
            b'*' => (0..number.unwrap()).for_each(|_| self.answer()),
            b'$' => {
                let mut value = [0; 64];
                self.stream.read_exact(&mut value[..number.unwrap() + 2]).unwrap();
            }
            _ => {}
        }
    }
}

impl Client for Redis {
    fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::with_capacity(64 << 10, stream),
            out: Vec::new(),
            line: String::new(),
        }
    }

    fn put(&mut self) {
        self.out.extend(LPUSH);
    }

    fn take(&mut self) {
        self.out.extend(RPOP);
    }

    fn take_waiting(&mut self) {
        self.out.extend(BRPOP);
    }

    fn ping(&mut self) {
        self.out.extend(PING);
    }

    fn send(&mut self) {
        self.stream.get_mut().write_all(&self.out).unwrap();
        self.out.clear();
    }

    fn read(&mut self, answers: u32) {
        (0..answers).for_each(|_| self.answer());
    }
}
