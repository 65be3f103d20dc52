//! The parts of operations in a frame: orders, amounts, and what stands for one of several words.

use tupelo_tuple::encoding::{Reader, write};
use tupelo_tuple::{DecodeError, EncodeError, FieldName, Order};

use super::{Action, Amount, Settlement, SpaceId, SpaceIds, Target, Term, Watched};
use crate::wire::{
    number, optional, optional_text, read_count, read_number, read_optional, read_raw, read_text,
    read_time, read_u32, time,
};

pub(super) fn write_order(out: &mut Vec<u8>, order: Order) -> Result<(), EncodeError> {
    if let Order::MaxOf(name) | Order::MinOf(name) = order {
        write::array_header(out, 2)?;
        number(out, if matches!(order, Order::MaxOf(_)) { 6 } else { 7 });
        return write::str(out, name.text());
    }
    let (kind, field) = match order {
        Order::Fifo => (0, None),
        Order::Lifo => (1, None),
        Order::Random => (2, None),
        Order::Any => (3, None),
        Order::Max(field) => (4, Some(field)),
        Order::Min(field) => (5, Some(field)),
        Order::MaxOf(_) | Order::MinOf(_) => unreachable!("written above"),
    };
    write::array_header(out, 1 + usize::from(field.is_some()))?;
    number(out, kind);
    if let Some(field) = field {
        number(out, field as u64);
    }
    Ok(())
}

pub(super) fn read_order(reader: &mut Reader<'_>) -> Result<Order, DecodeError> {
    const SHAPE: &str = "an order is a list of its number, 0 to 7, for 4 and 5 of a field, and for 6 and 7 of its name";
    let error = reader.error(SHAPE);
    let items = reader.expect_list(SHAPE)?;
    match (items, read_number(reader)?) {
        (1, 0) => Ok(Order::Fifo),
        (1, 1) => Ok(Order::Lifo),
        (1, 2) => Ok(Order::Random),
        (1, 3) => Ok(Order::Any),
        (2, 4) => Ok(Order::Max(read_count(reader)?)),
        (2, 5) => Ok(Order::Min(read_count(reader)?)),
        (2, 6) => Ok(Order::MaxOf(read_field_name(reader, error)?)),
        (2, 7) => Ok(Order::MinOf(read_field_name(reader, error)?)),
        _ => Err(error),
    }
}

fn read_field_name(
    reader: &mut Reader<'_>,
    too_many: DecodeError,
) -> Result<FieldName, DecodeError> {
    FieldName::new(read_text(reader)?).map_err(|_| too_many)
}

pub(super) fn write_amount(out: &mut Vec<u8>, amount: Amount) -> Result<(), EncodeError> {
    let Amount::Many { at_least, at_most } = amount else {
        write::null(out);
        return Ok(());
    };
    write::array_header(out, 2)?;
    number(out, at_least as u64);
    optional(out, at_most, |out, at_most| number(out, at_most as u64));
    Ok(())
}

pub(super) fn read_amount(reader: &mut Reader<'_>) -> Result<Amount, DecodeError> {
    const SHAPE: &str = "an amount is nil, or a list of the least and the most";
    let many = |reader: &mut Reader<'_>| {
        let error = reader.error(SHAPE);
        if reader.expect_list(SHAPE)? != 2 {
            return Err(error);
        }
        let at_least = read_count(reader)?;
        Ok(Amount::Many { at_least, at_most: read_optional(reader, read_count)? })
    };
    Ok(read_optional(reader, many)?.unwrap_or(Amount::One))
}

pub(super) fn read_action(reader: &mut Reader<'_>) -> Result<Action, DecodeError> {
    let error = reader.error("an action is 0, to read, or 1, to take");
    match read_number(reader)? {
        0 => Ok(Action::Read),
        1 => Ok(Action::Take),
        _ => Err(error),
    }
}

pub(super) fn read_watched(reader: &mut Reader<'_>) -> Result<Watched, DecodeError> {
    let error = reader.error("what is watched for is 0, a put, or 1, a removal");
    match read_number(reader)? {
        0 => Ok(Watched::Put),
        1 => Ok(Watched::Removal),
        _ => Err(error),
    }
}

pub(super) fn write_term(out: &mut Vec<u8>, term: Term) {
    let (kind, length) = match term {
        Term::Left => (0, None),
        Term::Renew(length) => (1, length),
        Term::Prolong(length) => (2, Some(length)),
        Term::Cancel => (3, None),
    };
    number(out, kind);
    optional(out, length, time);
}

pub(super) fn read_term(reader: &mut Reader<'_>) -> Result<Term, DecodeError> {
    let error = reader.error("the end of a term is asked for (0), moved (1, 2) or now (3)");
    match (read_number(reader)?, read_optional(reader, read_time)?) {
        (0, None) => Ok(Term::Left),
        (1, length) => Ok(Term::Renew(length)),
        (2, Some(length)) => Ok(Term::Prolong(length)),
        (3, None) => Ok(Term::Cancel),
        _ => Err(error),
    }
}

pub(super) fn write_settlement(
    out: &mut Vec<u8>,
    settlement: &Settlement<'_>,
) -> Result<(), EncodeError> {
    let (kind, grant, reason) = match settlement {
        Settlement::Done { grant } => (0, *grant, None),
        Settlement::Abort { reason } => (1, None, Some(*reason)),
        Settlement::GiveBack => (2, None, None),
        Settlement::Discard => (3, None, None),
    };
    number(out, kind);
    optional(out, grant, number);
    optional_text(out, reason)
}

pub(super) fn read_settlement<'a>(reader: &mut Reader<'a>) -> Result<Settlement<'a>, DecodeError> {
    let error = reader.error("an end is 0 to 3; 0 may have a grant, and 1 has a reason");
    let kind = read_number(reader)?;
    let grant = read_optional(reader, read_number)?;
    match (kind, grant, read_optional(reader, read_text)?) {
        (0, grant, None) => Ok(Settlement::Done { grant }),
        (1, None, Some(reason)) => Ok(Settlement::Abort { reason }),
        (2, None, None) => Ok(Settlement::GiveBack),
        (3, None, None) => Ok(Settlement::Discard),
        _ => Err(error),
    }
}

impl SpaceId {
    pub(super) fn write(self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write::array_header(out, 2)?;
        number(out, self.client);
        number(out, u64::from(self.space));
        Ok(())
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        const SHAPE: &str = "a space is a list of the client's number and its own";
        let error = reader.error(SHAPE);
        if reader.expect_list(SHAPE)? != 2 {
            return Err(error);
        }
        Ok(Self { client: read_number(reader)?, space: read_u32(reader)? })
    }
}

const SPACES: &str = "spaces are a list";

impl<'a> SpaceIds<'a> {
    /// The spaces.
    pub fn to_vec(&self) -> Vec<SpaceId> {
        match self {
            Self::Plain(ids) => ids.to_vec(),
            Self::Encoded(bytes) => read_ids(&mut Reader::new(bytes)).unwrap_or_default(),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Plain(ids) => {
                write::array_header(out, ids.len())?;
                ids.iter().try_for_each(|id| id.write(out))
            }
            Self::Encoded(bytes) => {
                out.extend(*bytes);
                Ok(())
            }
        }
    }

    /// Reads and checks them, and keeps where they are.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let bytes = read_raw(reader)?;
        read_ids(&mut Reader::new(bytes))?;
        Ok(Self::Encoded(bytes))
    }
}

fn read_ids(reader: &mut Reader<'_>) -> Result<Vec<SpaceId>, DecodeError> {
    let count = reader.expect_list(SPACES)?;
    (0..count).map(|_| SpaceId::read(reader)).collect()
}

impl Target {
    pub(crate) fn write(self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Space(space) => number(out, u64::from(space)),
            Self::Kept { request, at } => {
                write::array_header(out, 2)?;
                number(out, request);
                number(out, u64::from(at));
            }
        }
        Ok(())
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        const SHAPE: &str = "an operation is done to a space, by its number, or to a list of a request and a number";
        let error = reader.error(SHAPE);
        let bytes = read_raw(reader)?;
        let mut reader = Reader::new(bytes);
        // A list of less than 16 items is so in its first byte.
        if bytes.first().is_some_and(|first| first >> 4 == 0x9) {
            if reader.expect_list(SHAPE)? != 2 {
                return Err(error);
            }
            let request = read_number(&mut reader)?;
            return Ok(Self::Kept { request, at: read_u32(&mut reader)? });
        }
        read_u32(&mut reader).map(Self::Space)
    }
}
