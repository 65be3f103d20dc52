//! Operations in a frame: their numbers, and their items one after the other.

use tupelo_tuple::encoding::{Reader, write};
use tupelo_tuple::{DecodeError, EncodeError};

use super::parts::{
    read_action, read_amount, read_order, read_settlement, read_term, read_watched, write_amount,
    write_order, write_settlement, write_term,
};
use super::{Operation, PutTerms, SpaceId, SpaceIds, TemplateBytes, Tuples};
use crate::wire::{
    number, optional, read_count, read_flag, read_optional, read_time, read_u32, time,
};

/// The numbers of operations. They are never reused.
mod kind {
    pub(super) const PUT: u64 = 10;
    pub(super) const FIND: u64 = 11;
    pub(super) const SWAP: u64 = 12;
    pub(super) const COUNT: u64 = 13;
    pub(super) const PRESENT: u64 = 14;
    pub(super) const WATCH: u64 = 15;
    pub(super) const CLAIM: u64 = 16;
    pub(super) const ROOM: u64 = 17;
    pub(super) const DEAD: u64 = 18;
    pub(super) const REQUEUE: u64 = 19;
    pub(super) const PUT_LEASED: u64 = 24;
    pub(super) const BEGIN: u64 = 25;
    pub(super) const SUBSCRIBE: u64 = 26;
    pub(super) const SCAN: u64 = 27;
    pub(super) const TRANSFER: u64 = 28;
    pub(super) const STAT: u64 = 29;
    pub(super) const BLOCKED: u64 = 30;
    pub(super) const EXPLAIN: u64 = 31;
    pub(super) const TERM: u64 = 32;
    pub(super) const SETTLE: u64 = 33;
    pub(super) const HAS_READ: u64 = 34;
    pub(super) const CHECK: u64 = 35;
    pub(super) const NEXT: u64 = 36;
    pub(super) const EVENTS: u64 = 37;
    pub(super) const WAITING: u64 = 38;
    pub(super) const TAKEN: u64 = 39;
    pub(super) const NAMES: u64 = 40;
}

impl Operation<'_> {
    /// Its number in a frame.
    pub(crate) const fn kind(&self) -> u64 {
        match self {
            Self::Put { .. } => kind::PUT,
            Self::PutLeased { .. } => kind::PUT_LEASED,
            Self::Find { .. } => kind::FIND,
            Self::Claim { .. } => kind::CLAIM,
            Self::Swap { .. } => kind::SWAP,
            Self::Count { .. } => kind::COUNT,
            Self::Present { .. } => kind::PRESENT,
            Self::Watch { .. } => kind::WATCH,
            Self::Room => kind::ROOM,
            Self::Dead { .. } => kind::DEAD,
            Self::Requeue { .. } => kind::REQUEUE,
            Self::Begin { .. } => kind::BEGIN,
            Self::Subscribe { .. } => kind::SUBSCRIBE,
            Self::Scan { .. } => kind::SCAN,
            Self::Transfer { .. } => kind::TRANSFER,
            Self::Stat => kind::STAT,
            Self::Blocked => kind::BLOCKED,
            Self::Names => kind::NAMES,
            Self::Explain { .. } => kind::EXPLAIN,
            Self::Next { .. } => kind::NEXT,
            Self::Events { .. } => kind::EVENTS,
            Self::Waiting => kind::WAITING,
            Self::Term(_) => kind::TERM,
            Self::Settle(_) => kind::SETTLE,
            Self::HasRead => kind::HAS_READ,
            Self::Taken { .. } => kind::TAKEN,
            Self::Check { .. } => kind::CHECK,
        }
    }

    /// How many items of its own it has in a frame.
    pub(crate) const fn items(&self) -> usize {
        match self {
            Self::Find { .. } | Self::Claim { .. } => 5,
            Self::Put { .. } | Self::PutLeased { .. } | Self::Subscribe { .. } => 4,
            Self::Settle(_) | Self::Transfer { .. } => 3,
            Self::Swap { .. } | Self::Watch { .. } | Self::Begin { .. } | Self::Term(_) => 2,
            Self::Count { .. }
            | Self::Present { .. }
            | Self::Dead { .. }
            | Self::Requeue { .. }
            | Self::Scan { .. }
            | Self::Explain { .. }
            | Self::Next { .. }
            | Self::Events { .. }
            | Self::Taken { .. }
            | Self::Check { .. } => 1,
            Self::Room
            | Self::HasRead
            | Self::Stat
            | Self::Blocked
            | Self::Names
            | Self::Waiting => 0,
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Put { tuples, terms, unless }
            | Self::PutLeased { tuple: tuples, terms, unless } => {
                write_put(out, tuples, terms, unless.as_ref());
            }
            Self::Find { action, order, amount, waits, template } => {
                number(out, *action as u64);
                write_order(out, *order)?;
                write_amount(out, *amount)?;
                write::bool(out, *waits);
                out.extend(template.0);
            }
            Self::Claim { order, ttl, attempts_max, waits, template } => {
                write_order(out, *order)?;
                time(out, *ttl);
                optional(out, *attempts_max, |out, most| number(out, u64::from(most)));
                write::bool(out, *waits);
                out.extend(template.0);
            }
            Self::Swap { template, to } => {
                out.extend(template.0);
                out.extend(to.0);
            }
            Self::Count { template }
            | Self::Present { template }
            | Self::Dead { template }
            | Self::Requeue { template }
            | Self::Scan { template }
            | Self::Explain { template } => out.extend(template.0),
            Self::Subscribe { template, kinds, events_max, bytes_max } => {
                out.extend(template.0);
                number(out, u64::from(*kinds));
                number(out, *events_max as u64);
                optional(out, *bytes_max, |out, most| number(out, most as u64));
            }
            Self::Transfer { to, moves, template } => {
                to.write(out)?;
                write::bool(out, *moves);
                out.extend(template.0);
            }
            Self::Next { at_most } | Self::Events { at_most } => number(out, *at_most as u64),
            Self::Watch { template, on } => {
                out.extend(template.0);
                number(out, *on as u64);
            }
            Self::Begin { others, ttl } => {
                others.write(out)?;
                time(out, *ttl);
            }
            Self::Term(term) => write_term(out, *term),
            Self::Settle(settlement) => write_settlement(out, settlement)?,
            Self::Check { tuples } => out.extend(tuples.0),
            Self::Taken { arrived } => write::bool(out, *arrived),
            Self::Room
            | Self::HasRead
            | Self::Stat
            | Self::Blocked
            | Self::Names
            | Self::Waiting => {}
        }
        Ok(())
    }
}

impl<'a> Operation<'a> {
    /// Reads what follows in a frame of this kind; `None` if there is no such kind, or it has another number of items.
    pub(crate) fn read(
        kind: u64,
        items: usize,
        reader: &mut Reader<'a>,
    ) -> Result<Option<Self>, DecodeError> {
        let operation = match (kind, items) {
            (kind::PUT, 4) => {
                let (tuples, terms, unless) = read_put(reader)?;
                Self::Put { tuples, terms, unless }
            }
            (kind::PUT_LEASED, 4) => {
                let (tuple, terms, unless) = read_put(reader)?;
                Self::PutLeased { tuple, terms, unless }
            }
            (kind::FIND, 5) => Self::Find {
                action: read_action(reader)?,
                order: read_order(reader)?,
                amount: read_amount(reader)?,
                waits: read_flag(reader)?,
                template: TemplateBytes::read(reader)?,
            },
            (kind::CLAIM, 5) => Self::Claim {
                order: read_order(reader)?,
                ttl: read_time(reader)?,
                attempts_max: read_optional(reader, read_u32)?,
                waits: read_flag(reader)?,
                template: TemplateBytes::read(reader)?,
            },
            (kind::SWAP, 2) => {
                Self::Swap { template: TemplateBytes::read(reader)?, to: Tuples::read(reader)? }
            }
            (kind::COUNT, 1) => Self::Count { template: TemplateBytes::read(reader)? },
            (kind::PRESENT, 1) => Self::Present { template: TemplateBytes::read(reader)? },
            (kind::WATCH, 2) => {
                Self::Watch { template: TemplateBytes::read(reader)?, on: read_watched(reader)? }
            }
            (kind::ROOM, 0) => Self::Room,
            (kind::DEAD, 1) => Self::Dead { template: TemplateBytes::read(reader)? },
            (kind::REQUEUE, 1) => Self::Requeue { template: TemplateBytes::read(reader)? },
            (kind::BEGIN, 2) => {
                Self::Begin { others: SpaceIds::read(reader)?, ttl: read_time(reader)? }
            }
            (kind::SUBSCRIBE, 4) => Self::Subscribe {
                template: TemplateBytes::read(reader)?,
                kinds: read_u32(reader)?,
                events_max: read_count(reader)?,
                bytes_max: read_optional(reader, read_count)?,
            },
            (kind::SCAN, 1) => Self::Scan { template: TemplateBytes::read(reader)? },
            (kind::TRANSFER, 3) => Self::Transfer {
                to: SpaceId::read(reader)?,
                moves: read_flag(reader)?,
                template: TemplateBytes::read(reader)?,
            },
            (kind::STAT, 0) => Self::Stat,
            (kind::BLOCKED, 0) => Self::Blocked,
            (kind::NAMES, 0) => Self::Names,
            (kind::EXPLAIN, 1) => Self::Explain { template: TemplateBytes::read(reader)? },
            (kind::NEXT, 1) => Self::Next { at_most: read_count(reader)? },
            (kind::EVENTS, 1) => Self::Events { at_most: read_count(reader)? },
            (kind::WAITING, 0) => Self::Waiting,
            (kind::TERM, 2) => Self::Term(read_term(reader)?),
            (kind::SETTLE, 3) => Self::Settle(read_settlement(reader)?),
            (kind::HAS_READ, 0) => Self::HasRead,
            (kind::TAKEN, 1) => Self::Taken { arrived: read_flag(reader)? },
            (kind::CHECK, 1) => Self::Check { tuples: Tuples::read(reader)? },
            _ => return Ok(None),
        };
        Ok(Some(operation))
    }
}

fn write_put(
    out: &mut Vec<u8>,
    tuples: &Tuples<'_>,
    terms: &PutTerms,
    unless: Option<&TemplateBytes<'_>>,
) {
    out.extend(tuples.0);
    optional(out, terms.lease, time);
    optional(out, terms.after, time);
    optional(out, unless, |out, unless| out.extend(unless.0));
}

/// The tuples of a put, their terms, and `unless`.
type Put<'a> = (Tuples<'a>, PutTerms, Option<TemplateBytes<'a>>);

fn read_put<'a>(reader: &mut Reader<'a>) -> Result<Put<'a>, DecodeError> {
    let tuples = Tuples::read(reader)?;
    let lease = read_optional(reader, read_time)?;
    let after = read_optional(reader, read_time)?;
    let unless = read_optional(reader, TemplateBytes::read)?;
    Ok((tuples, PutTerms { lease, after }, unless))
}
