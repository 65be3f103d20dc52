//! The first frame of each side: who it is, and which versions of the protocol it speaks.

use std::fmt;
use std::time::Duration;

use tupelo_tuple::DecodeError;
use tupelo_tuple::encoding::{Reader, write};

use crate::fault::{Fault, code};
use crate::frames::frame;
use crate::wire::{
    number, optional_text, read_flag, read_frame, read_number, read_optional, read_text, read_time,
    time,
};

/// The version of the protocol that this build speaks, and the only one.
pub const VERSION: u64 = 1;

const HELLO: u64 = 0;
const WELCOME: u64 = 64;
/// What a client begins with, so that a stranger is known as such.
const NAME: &str = "tupelo";

/// What a client begins with.
#[derive(Clone, PartialEq, Eq)]
pub struct Hello {
    /// The oldest version that it speaks.
    pub version_min: u64,
    /// The newest.
    pub version_max: u64,
    /// Its own number, made by chance and below 2^63: the first half of its [keys](crate::Key).
    pub client: u64,
    /// By which the server knows what it may do, if it asks for one.
    pub token: Option<String>,
    /// Whether what it has there outlives a connection that breaks; `None`: no.
    pub session: Option<SessionTerms>,
}

/// What a client asks of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTerms {
    /// How long the session outlives a connection that breaks; a server may have a limit of its own.
    pub lease: Duration,
    /// Whether the client had a connection under this number, and goes on with the session of that.
    pub resumes: bool,
}

impl fmt::Debug for Hello {
    /// Without the token, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version_min, version_max, client, token, session } = self;
        f.debug_struct("Hello")
            .field("version_min", version_min)
            .field("version_max", version_max)
            .field("client", client)
            .field("token", &token.as_ref().map(|_| ".."))
            .field("session", session)
            .finish()
    }
}

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The version that both speak from here on.
    pub version: u64,
    /// The server's program, for people.
    pub server: String,
    /// The largest frame that it takes, in bytes.
    pub frame_bytes_max: u64,
    /// Most requests that may be without their last answer.
    pub requests_max: u64,
    /// For a client that has asked for a session.
    pub session: Option<SessionState>,
}

/// What a server says of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionState {
    /// The number of the server, made by chance at its start and below 2^63: another one after a restart.
    pub server: u64,
    /// Whether the client goes on with the session that it had.
    pub resumed: bool,
}

impl Hello {
    /// Appends the frame.
    ///
    /// # Errors
    ///
    /// As [`frame`].
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Fault> {
        frame(out, |out| {
            let (has_session, has_token) = (self.session.is_some(), self.token.is_some());
            let more = if has_session { 3 } else { usize::from(has_token) };
            write::array_header(out, 5 + more)?;
            number(out, HELLO);
            write::str(out, NAME)?;
            number(out, self.version_min);
            number(out, self.version_max);
            number(out, self.client);
            if more > 0 {
                optional_text(out, self.token.as_deref())?;
            }
            if let Some(SessionTerms { lease, resumes }) = self.session {
                time(out, lease);
                write::bool(out, resumes);
            }
            Ok(())
        })
    }

    /// Reads the content of the frame. More may follow in one of a later version.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if it is something else.
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        let hello = read_frame(bytes, |kind, items, reader| {
            let error = reader.error("the first frame is no hello of a tupelo client");
            if kind != HELLO || items < 4 || read_text(reader)? != NAME {
                return Err(error);
            }
            let (version_min, version_max) = (read_number(reader)?, read_number(reader)?);
            let client = read_number(reader)?;
            let has_token = items > 4;
            let token = if has_token { read_optional(reader, read_text)? } else { None };
            let session = if items < 7 {
                None
            } else {
                Some(SessionTerms { lease: read_time(reader)?, resumes: read_flag(reader)? })
            };
            let read = 4 + usize::from(has_token) + 2 * usize::from(session.is_some());
            skip_all(reader, items - read)?;
            let token = token.map(str::to_owned);
            Ok(Self { version_min, version_max, client, token, session })
        });
        hello.map_err(Fault::from)
    }

    /// The version to speak with this client.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if there is none.
    pub fn agree(&self, server: &str) -> Result<u64, Fault> {
        let Self { version_min, version_max, .. } = self;
        let (version_min, version_max) = (*version_min, *version_max);
        if (version_min..=version_max).contains(&VERSION) {
            return Ok(VERSION);
        }
        let newer = if version_min > VERSION { "server" } else { "client" };
        Err(Fault::new(
            code::VERSION_MISMATCH,
            format!(
                "this client speaks protocol {version_min} to {version_max}, the server ({server}) speaks {VERSION}"
            ),
            Some(&format!(
                "upgrade the {newer}: both need a version of tupelo with the same protocol"
            )),
        ))
    }
}

impl Welcome {
    /// Appends the frame.
    ///
    /// # Errors
    ///
    /// As [`frame`].
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Fault> {
        frame(out, |out| {
            write::array_header(out, 5 + 2 * usize::from(self.session.is_some()))?;
            number(out, WELCOME);
            number(out, self.version);
            write::str(out, &self.server)?;
            number(out, self.frame_bytes_max);
            number(out, self.requests_max);
            if let Some(SessionState { server, resumed }) = self.session {
                number(out, server);
                write::bool(out, resumed);
            }
            Ok(())
        })
    }

    /// Reads the content of the frame. More may follow in one of a later version.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if it is something else.
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        let welcome = read_frame(bytes, |kind, items, reader| {
            let error = reader.error("the first frame of the server is no welcome");
            if kind != WELCOME || items < 4 {
                return Err(error);
            }
            let (version, server) = (read_number(reader)?, read_text(reader)?.to_owned());
            let (frame_bytes_max, requests_max) = (read_number(reader)?, read_number(reader)?);
            let session = if items < 6 {
                None
            } else {
                Some(SessionState { server: read_number(reader)?, resumed: read_flag(reader)? })
            };
            skip_all(reader, items - 4 - 2 * usize::from(session.is_some()))?;
            Ok(Self { version, server, frame_bytes_max, requests_max, session })
        });
        welcome.map_err(Fault::from)
    }
}

fn skip_all(reader: &mut Reader<'_>, count: usize) -> Result<(), DecodeError> {
    (0..count).try_for_each(|_| reader.skip())
}
