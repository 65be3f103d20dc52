//! What is asked of a space: the verbs, as data.

use std::time::Duration;

use tupelo_tuple::encoding::{Decoded, Reader, encode_tuple_ref, write};
use tupelo_tuple::{
    DecodeError, EncodeError, Order, Template, TemplateRef, TupleRef, encode_template_refs,
};

use crate::wire::{
    number, optional, read_count, read_flag, read_number, read_optional, read_raw, read_time, time,
};

/// One call on a space. Each is one step there (rule O1), but for the wait of those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Stores tuples, all or none (rules O2, O5); unless something matches (O8). Answered by a count.
    Put {
        /// What is stored.
        tuples: Tuples<'a>,
        /// When it appears and disappears (rules L1, L3).
        terms: PutTerms,
        /// Store nothing if there is a match of this.
        unless: Option<TemplateBytes<'a>>,
    },
    /// Takes or reads matches (rules O3, O4, O6). Answered by tuples.
    Find {
        /// Which of the two.
        action: Action,
        /// Which of several matches.
        order: Order,
        /// How many.
        amount: Amount,
        /// Whether to get in line if there is none. For one match alone.
        waits: bool,
        /// What matches.
        template: TemplateBytes<'a>,
    },
    /// Replaces the oldest match (rule O8). Answered by the old tuple.
    Swap {
        /// What is replaced.
        template: TemplateBytes<'a>,
        /// By this one tuple.
        to: Tuples<'a>,
    },
    /// Counts the matches (rule O6).
    Count {
        /// What is counted.
        template: TemplateBytes<'a>,
    },
    /// Asks whether a match is there, or held (rule O9). Answered by a count of 0 or 1.
    Present {
        /// What is looked for.
        template: TemplateBytes<'a>,
    },
    /// Waits to be told that something has happened to a match; perhaps in vain. Answered again and again: after each
    /// answer by a request to [look](crate::Request::Look).
    Watch {
        /// Where it happens.
        template: TemplateBytes<'a>,
        /// What happens.
        on: Watched,
    },
}

/// When a tuple appears and disappears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PutTerms {
    /// How long it stays once it is visible; `None`: for ever.
    pub lease: Option<Duration>,
    /// How long until it is visible.
    pub after: Option<Duration>,
}

/// What is done with a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is copied.
    Read,
    /// It is removed.
    Take,
}

/// How many matches are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// One.
    One,
    /// Those of one moment; none at all if there are not so many.
    Many {
        /// So many at least.
        at_least: usize,
        /// So many at most; `None`: all.
        at_most: Option<usize>,
    },
}

/// What is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A match was put.
    Put,
    /// A match was removed.
    Removal,
}

/// The numbers of operations in a frame.
pub(crate) mod kind {
    pub(crate) const PUT: u64 = 10;
    pub(crate) const FIND: u64 = 11;
    pub(crate) const SWAP: u64 = 12;
    pub(crate) const COUNT: u64 = 13;
    pub(crate) const PRESENT: u64 = 14;
    pub(crate) const WATCH: u64 = 15;
}

impl Operation<'_> {
    /// Whether it may change something, so that it must not happen twice if it is sent twice.
    pub const fn changes(&self) -> bool {
        matches!(
            self,
            Self::Put { .. } | Self::Find { action: Action::Take, .. } | Self::Swap { .. }
        )
    }

    /// What people call it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Put { unless: Some(_), .. } => "put_if_absent",
            Self::Put { .. } => "put",
            Self::Find { action: Action::Take, .. } => "take",
            Self::Find { action: Action::Read, .. } => "read",
            Self::Swap { .. } => "swap",
            Self::Count { .. } => "count",
            Self::Present { .. } => "wait_none",
            Self::Watch { .. } => "watch",
        }
    }

    /// Its number in a frame.
    pub(crate) const fn kind(&self) -> u64 {
        match self {
            Self::Put { .. } => kind::PUT,
            Self::Find { .. } => kind::FIND,
            Self::Swap { .. } => kind::SWAP,
            Self::Count { .. } => kind::COUNT,
            Self::Present { .. } => kind::PRESENT,
            Self::Watch { .. } => kind::WATCH,
        }
    }

    /// How many items of its own it has in a frame.
    pub(crate) const fn items(&self) -> usize {
        match self {
            Self::Put { .. } => 4,
            Self::Find { .. } => 5,
            Self::Swap { .. } | Self::Watch { .. } => 2,
            Self::Count { .. } | Self::Present { .. } => 1,
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Put { tuples, terms, unless } => {
                out.extend(tuples.0);
                optional(out, terms.lease, time);
                optional(out, terms.after, time);
                optional(out, unless.as_ref(), |out, unless| out.extend(unless.0));
            }
            Self::Find { action, order, amount, waits, template } => {
                number(out, *action as u64);
                write_order(out, *order)?;
                write_amount(out, *amount)?;
                write::bool(out, *waits);
                out.extend(template.0);
            }
            Self::Swap { template, to } => {
                out.extend(template.0);
                out.extend(to.0);
            }
            Self::Count { template } | Self::Present { template } => out.extend(template.0),
            Self::Watch { template, on } => {
                out.extend(template.0);
                number(out, *on as u64);
            }
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
            (kind::PUT, 4) => Self::Put {
                tuples: Tuples::read(reader)?,
                terms: PutTerms {
                    lease: read_optional(reader, read_time)?,
                    after: read_optional(reader, read_time)?,
                },
                unless: read_optional(reader, TemplateBytes::read)?,
            },
            (kind::FIND, 5) => Self::Find {
                action: read_action(reader)?,
                order: read_order(reader)?,
                amount: read_amount(reader)?,
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
            _ => return Ok(None),
        };
        Ok(Some(operation))
    }
}

fn write_order(out: &mut Vec<u8>, order: Order) -> Result<(), EncodeError> {
    let (kind, field) = match order {
        Order::Fifo => (0, None),
        Order::Lifo => (1, None),
        Order::Random => (2, None),
        Order::Any => (3, None),
        Order::Max(field) => (4, Some(field)),
        Order::Min(field) => (5, Some(field)),
    };
    write::array_header(out, 1 + usize::from(field.is_some()))?;
    number(out, kind);
    if let Some(field) = field {
        number(out, field as u64);
    }
    Ok(())
}

fn read_order(reader: &mut Reader<'_>) -> Result<Order, DecodeError> {
    const SHAPE: &str = "an order is a list of its number, 0 to 5, and for 4 and 5 of a field";
    let error = reader.error(SHAPE);
    let items = reader.expect_list(SHAPE)?;
    match (items, read_number(reader)?) {
        (1, 0) => Ok(Order::Fifo),
        (1, 1) => Ok(Order::Lifo),
        (1, 2) => Ok(Order::Random),
        (1, 3) => Ok(Order::Any),
        (2, 4) => Ok(Order::Max(read_count(reader)?)),
        (2, 5) => Ok(Order::Min(read_count(reader)?)),
        _ => Err(error),
    }
}

fn write_amount(out: &mut Vec<u8>, amount: Amount) -> Result<(), EncodeError> {
    let Amount::Many { at_least, at_most } = amount else {
        write::null(out);
        return Ok(());
    };
    write::array_header(out, 2)?;
    number(out, at_least as u64);
    optional(out, at_most, |out, at_most| number(out, at_most as u64));
    Ok(())
}

fn read_amount(reader: &mut Reader<'_>) -> Result<Amount, DecodeError> {
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

fn read_action(reader: &mut Reader<'_>) -> Result<Action, DecodeError> {
    let error = reader.error("an action is 0, to read, or 1, to take");
    match read_number(reader)? {
        0 => Ok(Action::Read),
        1 => Ok(Action::Take),
        _ => Err(error),
    }
}

fn read_watched(reader: &mut Reader<'_>) -> Result<Watched, DecodeError> {
    let error = reader.error("what is watched for is 0, a put, or 1, a removal");
    match read_number(reader)? {
        0 => Ok(Watched::Put),
        1 => Ok(Watched::Removal),
        _ => Err(error),
    }
}

/// Several tuples in their canonical encoding: a list. Looked at when they are read, not before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuples<'a>(pub(crate) &'a [u8]);

impl<'a> Tuples<'a> {
    /// The encoding of some tuples, for [`Tuples::of_encoding`].
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if one of them can not be encoded.
    pub fn encode<'t>(
        tuples: impl ExactSizeIterator<Item = TupleRef<'t>>,
    ) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        write::array_header(&mut out, tuples.len())?;
        for tuple in tuples {
            encode_tuple_ref(&mut out, tuple)?;
        }
        Ok(out)
    }

    /// What [`Tuples::encode`] has made.
    pub const fn of_encoding(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        read_raw(reader).map(Self)
    }

    /// The tuples, one after the other.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is no list. What the iterator returns may be one too.
    pub fn read_each(&self) -> Result<TuplesIter<'a>, DecodeError> {
        let mut reader = Reader::new(self.0);
        let left = reader.expect_list("tuples are a list")?;
        Ok(TuplesIter { reader, left })
    }

    /// All of the tuples.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is no list of tuples.
    pub fn decode(&self) -> Result<Vec<Decoded<'a>>, DecodeError> {
        self.read_each()?.collect()
    }
}

/// Goes through [`Tuples`].
#[derive(Debug)]
pub struct TuplesIter<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Iterator for TuplesIter<'a> {
    type Item = Result<Decoded<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let decoded = Decoded::read(&mut self.reader);
        if decoded.is_err() {
            self.left = 0;
        }
        Some(decoded)
    }
}

/// A template in its canonical encoding. Looked at when it is decoded, not before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateBytes<'a>(pub(crate) &'a [u8]);

impl<'a> TemplateBytes<'a> {
    /// The encoding of a template, for [`TemplateBytes::of_encoding`].
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if it is over the limits.
    pub fn encode(template: &[TemplateRef<'_>]) -> Result<Vec<u8>, EncodeError> {
        encode_template_refs(template)
    }

    /// What [`TemplateBytes::encode`] has made.
    pub const fn of_encoding(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        read_raw(reader).map(Self)
    }

    /// The template.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is none.
    pub fn decode(&self) -> Result<Template, DecodeError> {
        Template::decode(self.0)
    }
}
