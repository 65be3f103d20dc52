//! What a server sends after the handshake.

use tupelo_tuple::encoding::{Reader, write};
use tupelo_tuple::{DecodeError, EncodeError, WhenFull};

use crate::fault::Fault;
use crate::frames::frame;
use crate::operation::Tuples;
use crate::wire::{
    number, optional, optional_text, read_flag, read_frame, read_number, read_optional, read_text,
    read_u32,
};

/// An answer. `id` is that of the request; answers come in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The space is open.
    Opened {
        /// The request.
        id: u64,
        /// The number of the space on this connection.
        space: u32,
        /// What becomes of a put for which it has no room.
        when_full: WhenFull,
        /// Tells what keeps the keys of its requests, also beyond the end of this server; `None`: the server does, as long as it
        /// is there.
        keeper: Option<u64>,
    },
    /// It is done; this is how many, or 1 for yes and 0 for no.
    Done {
        /// The request.
        id: u64,
        /// How many.
        count: u64,
    },
    /// Tuples.
    Found {
        /// The request.
        id: u64,
        /// Whether they are held for the client until it acknowledges them, or gives the request up.
        held: bool,
        /// The tuples.
        tuples: Tuples<'a>,
    },
    /// Nothing matches, or not enough.
    Nothing {
        /// The request.
        id: u64,
    },
    /// The request waits. The answer to a [look](crate::Request::Look).
    Waits {
        /// The request.
        id: u64,
    },
    /// Something may have happened to what a request watches.
    Happened {
        /// The request.
        id: u64,
    },
    /// It is refused; without a request, the connection ends behind this.
    Refused {
        /// The request.
        id: Option<u64>,
        /// Why.
        fault: Fault,
    },
}

mod kind {
    pub(super) const OPENED: u64 = 65;
    pub(super) const DONE: u64 = 66;
    pub(super) const FOUND: u64 = 67;
    pub(super) const NOTHING: u64 = 68;
    pub(super) const WAITS: u64 = 69;
    pub(super) const HAPPENED: u64 = 70;
    pub(super) const REFUSED: u64 = 71;
}

impl<'a> Reply<'a> {
    /// The request that it answers.
    pub const fn id(&self) -> Option<u64> {
        match self {
            Self::Opened { id, .. }
            | Self::Done { id, .. }
            | Self::Found { id, .. }
            | Self::Nothing { id }
            | Self::Waits { id }
            | Self::Happened { id } => Some(*id),
            Self::Refused { id, .. } => *id,
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
        let (kind, items) = match self {
            Self::Opened { .. } => (kind::OPENED, 5),
            Self::Done { .. } => (kind::DONE, 3),
            Self::Found { .. } => (kind::FOUND, 4),
            Self::Nothing { .. } => (kind::NOTHING, 2),
            Self::Waits { .. } => (kind::WAITS, 2),
            Self::Happened { .. } => (kind::HAPPENED, 2),
            Self::Refused { .. } => (kind::REFUSED, 6),
        };
        write::array_header(out, items)?;
        number(out, kind);
        optional(out, self.id(), number);
        match self {
            Self::Opened { space, when_full, keeper, .. } => {
                number(out, u64::from(*space));
                number(out, u64::from(when_full.number()));
                optional(out, *keeper, number);
            }
            Self::Done { count, .. } => number(out, *count),
            Self::Found { held, tuples, .. } => {
                write::bool(out, *held);
                out.extend(tuples.0);
            }
            Self::Nothing { .. } | Self::Waits { .. } | Self::Happened { .. } => {}
            Self::Refused { fault, .. } => {
                write::str(out, &fault.code)?;
                write::str(out, &fault.message)?;
                optional_text(out, fault.hint.as_deref())?;
                number(out, fault.flags);
            }
        }
        Ok(())
    }

    /// Reads the content of a frame. The tuples in it are looked at when they are decoded.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if it is no reply.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Fault> {
        Ok(read_frame(bytes, Self::read_content)?)
    }

    fn read_content(kind: u64, items: usize, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let error = reader.error("there is no reply with this number and so many items");
        if (kind, items) == (kind::REFUSED, 5) {
            let id = read_optional(reader, read_number)?;
            return Ok(Self::Refused { id, fault: read_fault(reader)? });
        }
        if items == 0 {
            return Err(error);
        }
        let id = read_number(reader)?;
        Ok(match (kind, items) {
            (kind::OPENED, 4) => {
                let space = read_u32(reader)?;
                let when_full = WhenFull::of_number(read_u32(reader)?).ok_or(error)?;
                let keeper = read_optional(reader, read_number)?;
                Self::Opened { id, space, when_full, keeper }
            }
            (kind::DONE, 2) => Self::Done { id, count: read_number(reader)? },
            (kind::FOUND, 3) => {
                Self::Found { id, held: read_flag(reader)?, tuples: Tuples::read(reader)? }
            }
            (kind::NOTHING, 1) => Self::Nothing { id },
            (kind::WAITS, 1) => Self::Waits { id },
            (kind::HAPPENED, 1) => Self::Happened { id },
            _ => return Err(error),
        })
    }
}

fn read_fault(reader: &mut Reader<'_>) -> Result<Fault, DecodeError> {
    Ok(Fault {
        code: read_text(reader)?.to_owned(),
        message: read_text(reader)?.to_owned(),
        hint: read_optional(reader, read_text)?.map(str::to_owned),
        flags: read_number(reader)?,
    })
}
