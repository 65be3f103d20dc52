//! What a client sends after the handshake.

use tupelo_tuple::encoding::{Reader, write};
use tupelo_tuple::{DecodeError, EncodeError, WhenFull};

use crate::NAME_BYTES_MAX;
use crate::fault::Fault;
use crate::frames::frame;
use crate::operation::{Operation, Target};
use crate::wire::{
    number, optional, read_flag, read_frame, read_number, read_optional, read_text, read_u32,
    read_uuid,
};

/// By this a request that changes something is known: sent again with the same key, it has its first answer and no second
/// effect. The first half is the client's own number, the second one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub u128);

/// A request. `id` is a number that no request of the connection had before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Opens a space, which has a number on this connection from then on.
    Open {
        /// The request.
        id: u64,
        /// Which space, and how.
        opened: Opened<'a>,
    },
    /// Removes a space. Who has it open keeps it. Answered by a count of 1.
    Remove {
        /// The request.
        id: u64,
        /// Its name.
        name: &'a str,
    },
    /// Asks whether the server is there. Answered by a count of 1.
    Ping {
        /// The request.
        id: u64,
    },
    /// Asks which spaces there are. Answered by a tuple for each in which the client may do something: its name, its tuples and
    /// their bytes; nil for figures that the client may not see.
    Spaces {
        /// The request.
        id: u64,
    },
    /// Does something in a space.
    Do {
        /// The request.
        id: u64,
        /// To which space, or to what an earlier request has left open.
        on: Target,
        /// There if and only if the operation changes something.
        key: Option<Key>,
        /// What.
        operation: Operation<'a>,
    },
    /// What the request was answered has arrived: a tuple that was taken is the client's now. No answer.
    Acknowledge {
        /// The request that was answered.
        id: u64,
    },
    /// Gives the request up, whether it was answered or not: a tuple goes back with its identity, age and place (rules T5,
    /// V3), and what it has left open ends. No answer.
    Cancel {
        /// The request that is given up.
        id: u64,
    },
    /// Ends a wait: the last answer is due at once.
    End {
        /// The request that waits.
        id: u64,
    },
    /// Asks a request that waits to look now: it is answered if there is something, or else that it waits.
    Look {
        /// The request that waits.
        id: u64,
    },
}

/// Which space is opened, and what a new one may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    /// Its name.
    pub name: &'a str,
    /// Create it if there is none.
    pub create: bool,
    /// Begin with an empty one, whatever was there.
    pub fresh: bool,
    /// The most memory of a new one, in bytes; `None`: as the server likes.
    pub size_bytes: Option<u64>,
    /// The most tuples of a new one; `None`: as many as fit.
    pub tuples_max: Option<u64>,
    /// What becomes of a put for which a new one has no room.
    pub when_full: WhenFull,
}

mod kind {
    pub(super) const OPEN: u64 = 1;
    pub(super) const REMOVE: u64 = 2;
    pub(super) const PING: u64 = 3;
    pub(super) const SPACES: u64 = 4;
    pub(super) const ACKNOWLEDGE: u64 = 20;
    pub(super) const CANCEL: u64 = 21;
    pub(super) const END: u64 = 22;
    pub(super) const LOOK: u64 = 23;
}

impl<'a> Request<'a> {
    /// Its number, or that of the request that it is about.
    pub const fn id(&self) -> u64 {
        match self {
            Self::Open { id, .. }
            | Self::Remove { id, .. }
            | Self::Ping { id }
            | Self::Spaces { id }
            | Self::Do { id, .. }
            | Self::Acknowledge { id }
            | Self::Cancel { id }
            | Self::End { id }
            | Self::Look { id } => *id,
        }
    }

    /// Appends the frame.
    ///
    /// # Errors
    ///
    /// As [`frame`].
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Fault> {
        frame(out, |out| self.write_content(out))
    }

    fn write_content(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut short = |kind, id| {
            write::array_header(out, 2)?;
            number(out, kind);
            number(out, id);
            Ok(())
        };
        match self {
            Self::Open { id, opened } => opened.write(out, *id),
            Self::Remove { id, name } => {
                write::array_header(out, 3)?;
                number(out, kind::REMOVE);
                number(out, *id);
                write::str(out, name)
            }
            Self::Do { id, on, key, operation } => {
                write::array_header(out, 4 + operation.items())?;
                number(out, operation.kind());
                number(out, *id);
                on.write(out)?;
                optional(out, *key, |out, key| write::uuid(out, &key.0.to_be_bytes()));
                operation.write(out)
            }
            Self::Ping { id } => short(kind::PING, *id),
            Self::Spaces { id } => short(kind::SPACES, *id),
            Self::Acknowledge { id } => short(kind::ACKNOWLEDGE, *id),
            Self::Cancel { id } => short(kind::CANCEL, *id),
            Self::End { id } => short(kind::END, *id),
            Self::Look { id } => short(kind::LOOK, *id),
        }
    }

    /// Reads the content of a frame. The tuples and templates in it are looked at when they are decoded.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if it is no request.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Fault> {
        Ok(read_frame(bytes, Self::read_content)?)
    }

    fn read_content(kind: u64, items: usize, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let error = reader.error("there is no request with this number and so many items");
        if items == 0 {
            return Err(error);
        }
        let id = read_number(reader)?;
        match (kind, items) {
            (kind::OPEN, 7) => Ok(Self::Open { id, opened: Opened::read(reader)? }),
            (kind::REMOVE, 2) => Ok(Self::Remove { id, name: read_name(reader)? }),
            (kind::PING, 1) => Ok(Self::Ping { id }),
            (kind::SPACES, 1) => Ok(Self::Spaces { id }),
            (kind::ACKNOWLEDGE, 1) => Ok(Self::Acknowledge { id }),
            (kind::CANCEL, 1) => Ok(Self::Cancel { id }),
            (kind::END, 1) => Ok(Self::End { id }),
            (kind::LOOK, 1) => Ok(Self::Look { id }),
            (kind, 3..) => Self::read_do(kind, (id, items), reader, error),
            _ => Err(error),
        }
    }

    fn read_do(
        kind: u64,
        (id, items): (u64, usize),
        reader: &mut Reader<'a>,
        error: DecodeError,
    ) -> Result<Self, DecodeError> {
        let on = Target::read(reader)?;
        let keyed = reader.error("a request has a key if it changes something, and else none");
        let key = read_optional(reader, read_uuid)?.map(Key);
        let operation = Operation::read(kind, items - 3, reader)?.ok_or(error)?;
        if key.is_some() != operation.changes() {
            return Err(keyed);
        }
        Ok(Self::Do { id, on, key, operation })
    }
}

impl<'a> Opened<'a> {
    fn write(&self, out: &mut Vec<u8>, id: u64) -> Result<(), EncodeError> {
        write::array_header(out, 8)?;
        number(out, kind::OPEN);
        number(out, id);
        write::str(out, self.name)?;
        write::bool(out, self.create);
        write::bool(out, self.fresh);
        optional(out, self.size_bytes, number);
        optional(out, self.tuples_max, number);
        number(out, u64::from(self.when_full.number()));
        Ok(())
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let name = read_name(reader)?;
        let (create, fresh) = (read_flag(reader)?, read_flag(reader)?);
        let size_bytes = read_optional(reader, read_number)?;
        let tuples_max = read_optional(reader, read_number)?;
        let error = reader.error("what becomes of a put without room is 0, 1 or 2");
        let when_full = WhenFull::of_number(read_u32(reader)?).ok_or(error)?;
        Ok(Self { name, create, fresh, size_bytes, tuples_max, when_full })
    }
}

fn read_name<'a>(reader: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    let long = reader.error("the name of a space has at most 200 bytes");
    let name = read_text(reader)?;
    if name.len() > NAME_BYTES_MAX { Err(long) } else { Ok(name) }
}
