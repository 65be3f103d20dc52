//! Figures of spaces that are elsewhere, and why nothing matches there.

use std::borrow::Cow;

use tupelo_engine::{
    Blocked, ClaimStat, HeldBy, Holding, NameStat, ShapeNames, SubscriptionStat, TransactionStat,
};
use tupelo_protocol::{Operation, TemplateBytes};
use tupelo_tuple::{Template, TemplateRef, Tuple, TupleView, Value, WhenFull};

use super::Ask;
use super::rows::{Fields, Row};
use crate::connect::Space;
use crate::error::Error;
use crate::explain::{Difference, Explanation, Nearest, text};
use crate::stat::{ProcessStat, ShapeStat, Stat};

impl Space {
    /// As [`Space::blocked`].
    #[cold]
    pub(crate) fn blocked_remotely(&self) -> Result<Vec<Blocked>, Error> {
        let read = |tuple: &Tuple| {
            let mut fields = Fields::at(tuple);
            let (pid, template) = (fields.small()?, fields.bytes()?);
            let template = template.and_then(|bytes| Template::decode(bytes).ok());
            Ok(Blocked { pid, template: Fields::or_unreadable(template)? })
        };
        self.tuples_about(&Operation::Blocked)?.iter().map(read).collect()
    }

    /// As [`Space::stat`].
    #[cold]
    pub(crate) fn stat_remotely(&self) -> Result<Stat, Error> {
        Stat::of_tuples(&self.tuples_about(&Operation::Stat)?)
    }

    /// As [`Space::names`].
    #[cold]
    pub(crate) fn names_remotely(&self) -> Result<Vec<ShapeNames>, Error> {
        names_of_tuples(&self.tuples_about(&Operation::Names)?)
    }

    /// As [`Space::explain`].
    #[cold]
    pub(crate) fn explain_remotely(
        &self,
        template: &[TemplateRef<'_>],
    ) -> Result<Explanation, Error> {
        let encoding = TemplateBytes::encode(template)?;
        let explain = Operation::Explain { template: TemplateBytes::of_encoding(&encoding) };
        Explanation::of_tuples(text(template), &self.tuples_about(&explain)?)
    }

    /// The tuples that an operation is answered by.
    fn tuples_about(&self, operation: &Operation<'_>) -> Result<Vec<Tuple>, Error> {
        let keep = |tuple: TupleView<'_>| Some(tuple.to_tuple().map_err(Error::from));
        let tuples = Ask::Space(self.remote()?).tuples_of(operation, keep)?;
        Ok(tuples.unwrap_or_default())
    }
}

impl Stat {
    /// The figures as tuples, for [`Stat::of_tuples`]: one of the space, then one for each part, and behind each shape
    /// its claims.
    pub fn to_tuples(&self) -> Vec<Tuple> {
        let space = Row::of("space")
            .numbers(&[self.tuples, self.bytes_used, self.bytes_committed, self.bytes_max])
            .optional(self.tuples_max)
            .number(u64::from(self.when_full.number()))
            .numbers(&[self.dropped, self.waiters, self.waiting_for_room, self.where_errors])
            .number(self.largest_free_bytes);
        let mut tuples = vec![space.done()];
        tuples.extend(self.subscriptions.iter().map(|one| {
            let SubscriptionStat { pid, waiting, buffer, buffer_bytes, events, dropped } = *one;
            Row::of("subscription")
                .numbers(&[pid.into(), waiting, buffer, buffer_bytes, events, dropped])
                .done()
        }));
        tuples.extend(self.transactions.iter().map(|one| {
            let TransactionStat { pid, taken, read, expires_in } = *one;
            let row = Row::of("transaction").numbers(&[pid.into(), taken, read]);
            row.time(Some(expires_in)).done()
        }));
        tuples.extend(self.processes.iter().map(|one| {
            let row = Row::of("process").number(one.pid.into());
            row.value(Value::Bool(one.alive)).done()
        }));
        for shape in &self.shapes {
            let indexes = shape
                .indexes
                .iter()
                .map(|fields| fields.iter().map(|field| Value::from(*field)).collect::<Vec<_>>());
            let indexes = Value::List(indexes.map(Value::List).collect());
            let row = Row::of("shape").shape(&shape.shape);
            let row = row.numbers(&[shape.count, shape.bytes, shape.waiting, shape.dead]);
            let row = row.numbers(&[shape.delayed, shape.leased, shape.in_transactions]);
            let row = row.numbers(&[shape.read_locks, shape.puts, shape.takes]);
            tuples.push(row.value(indexes).done());
            tuples.extend(shape.claims.iter().map(|one| {
                let ClaimStat { pid, fence, attempt, expires_in } = *one;
                let row = Row::of("claim").numbers(&[pid.into(), fence, attempt.into()]);
                row.time(Some(expires_in)).done()
            }));
        }
        tuples
    }

    /// The output of [`Stat::to_tuples`]. Unknown tuples are skipped.
    ///
    /// # Errors
    ///
    /// [`Error::Protocol`] if it was something else.
    pub fn of_tuples(tuples: &[Tuple]) -> Result<Self, Error> {
        let mut stat = None;
        for tuple in tuples {
            let (what, mut fields) = Fields::of(tuple)?;
            match (what, &mut stat) {
                ("space", stat) => *stat = Some(space_of(&mut fields)?),
                ("subscription", Some(stat)) => stat.subscriptions.push(SubscriptionStat {
                    pid: fields.small()?,
                    waiting: fields.number()?,
                    buffer: fields.number()?,
                    buffer_bytes: fields.number()?,
                    events: fields.number()?,
                    dropped: fields.number()?,
                }),
                ("transaction", Some(stat)) => stat.transactions.push(TransactionStat {
                    pid: fields.small()?,
                    taken: fields.number()?,
                    read: fields.number()?,
                    expires_in: fields.time()?.unwrap_or_default(),
                }),
                ("process", Some(stat)) => stat.processes.push(ProcessStat {
                    pid: fields.small()?,
                    alive: *fields.value()? == Value::Bool(true),
                }),
                ("shape", Some(stat)) => stat.shapes.push(shape_of(&mut fields)?),
                ("claim", Some(stat)) => {
                    let claim = ClaimStat {
                        pid: fields.small()?,
                        fence: fields.number()?,
                        attempt: fields.small()?,
                        expires_in: fields.time()?.unwrap_or_default(),
                    };
                    stat.shapes.iter_mut().next_back().into_iter().for_each(
                        |shape: &mut ShapeStat| {
                            shape.claims.push(claim);
                        },
                    );
                }
                _ => {}
            }
        }
        Fields::or_unreadable(stat)
    }
}

fn space_of(fields: &mut Fields<'_>) -> Result<Stat, Error> {
    Ok(Stat {
        tuples: fields.number()?,
        bytes_used: fields.number()?,
        bytes_committed: fields.number()?,
        bytes_max: fields.number()?,
        tuples_max: fields.optional()?,
        when_full: Fields::or_unreadable(WhenFull::of_number(fields.small()?))?,
        dropped: fields.number()?,
        waiters: fields.number()?,
        waiting_for_room: fields.number()?,
        where_errors: fields.number()?,
        largest_free_bytes: fields.number()?,
        subscriptions: Vec::new(),
        transactions: Vec::new(),
        processes: Vec::new(),
        shapes: Vec::new(),
    })
}

fn shape_of(fields: &mut Fields<'_>) -> Result<ShapeStat, Error> {
    Ok(ShapeStat {
        shape: fields.shape()?,
        count: fields.number()?,
        bytes: fields.number()?,
        waiting: fields.number()?,
        claims: Vec::new(),
        dead: fields.number()?,
        delayed: fields.number()?,
        leased: fields.number()?,
        in_transactions: fields.number()?,
        read_locks: fields.number()?,
        puts: fields.number()?,
        takes: fields.number()?,
        indexes: indexes_of(fields.value()?)?,
    })
}

/// What [`Space::names`] tells, as tuples: one of each shape, and behind it its names.
pub fn names_to_tuples(all: &[ShapeNames]) -> Vec<Tuple> {
    let mut tuples = Vec::new();
    for ShapeNames { shape, names, others, .. } in all {
        tuples.push(Row::of("shape").shape(shape).number(*others).done());
        tuples.extend(names.iter().map(|NameStat { name, of, count, claimed, dead, .. }| {
            let row = Row::of("name").text(name).optional_text(of.as_deref());
            row.numbers(&[*count, *claimed, *dead]).done()
        }));
    }
    tuples
}

/// The input of [`names_to_tuples`]. Unknown tuples are skipped.
fn names_of_tuples(tuples: &[Tuple]) -> Result<Vec<ShapeNames>, Error> {
    let mut all = Vec::<ShapeNames>::new();
    for tuple in tuples {
        let (what, mut fields) = Fields::of(tuple)?;
        match (what, all.last_mut()) {
            ("shape", _) => {
                let (shape, others) = (fields.shape()?, fields.number()?);
                all.push(ShapeNames { shape, names: Vec::new(), others, ends: None });
            }
            ("name", Some(of_shape)) => of_shape.names.push(NameStat {
                name: fields.text()?,
                of: fields.optional_text()?,
                count: fields.number()?,
                claimed: fields.number()?,
                dead: fields.number()?,
                oldest: None,
            }),
            _ => {}
        }
    }
    Ok(all)
}

/// The fields of each index.
fn indexes_of(value: &Value) -> Result<Vec<Vec<usize>>, Error> {
    let field = |field: &Value| match field {
        Value::Int(field) => usize::try_from(*field).ok(),
        _ => None,
    };
    let index = |index: &Value| match index {
        Value::List(fields) => fields.iter().map(field).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    let indexes = match value {
        Value::List(indexes) => indexes.iter().map(index).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    Fields::or_unreadable(indexes)
}

impl Explanation {
    /// The explanation as tuples, for [`Explanation::of_tuples`]: without the template, which the reader knows.
    pub fn to_tuples(&self) -> Vec<Tuple> {
        let row = Row::of("explanation").numbers(&[self.matches, self.read, self.unfulfilled]);
        let mut tuples = vec![row.numbers(&[self.dead, self.unseen]).done()];
        tuples.extend(self.held.iter().map(|one| {
            let by = match one.by {
                HeldBy::Claim => 0,
                HeldBy::Transaction => 1,
                HeldBy::Call => 2,
            };
            Row::of("held").numbers(&[by, one.pid.into()]).time(one.expires_in).done()
        }));
        let shapes = self.shapes.iter();
        tuples.extend(
            shapes.map(|(shape, count)| Row::of("shape").shape(shape).number(*count).done()),
        );
        if let Some(nearest) = &self.nearest {
            let row = Row::of("nearest").shape(&nearest.shape).number(nearest.count);
            tuples.push(row.text(&nearest.otherwise).done());
            tuples.extend(nearest.differences.iter().map(|one| {
                let row = Row::of("difference").number(one.field as u64);
                row.optional_text(one.name.as_deref()).text(&one.found).text(&one.wanted).done()
            }));
        }
        tuples
    }

    /// The output of [`Explanation::to_tuples`] for `template`. Unknown tuples are skipped.
    ///
    /// # Errors
    ///
    /// [`Error::Protocol`] if it was something else.
    pub fn of_tuples(template: String, tuples: &[Tuple]) -> Result<Self, Error> {
        let mut explanation = Self::nothing(template);
        for tuple in tuples {
            let (what, mut fields) = Fields::of(tuple)?;
            match what {
                "explanation" => {
                    explanation.matches = fields.number()?;
                    explanation.read = fields.number()?;
                    explanation.unfulfilled = fields.number()?;
                    explanation.dead = fields.number()?;
                    explanation.unseen = fields.number()?;
                }
                "held" => {
                    let by = match fields.number()? {
                        0 => HeldBy::Claim,
                        1 => HeldBy::Transaction,
                        _ => HeldBy::Call,
                    };
                    let (pid, expires_in) = (fields.small()?, fields.time()?);
                    explanation.held.push(Holding { by, pid, expires_in });
                }
                "shape" => explanation.shapes.push((fields.shape()?, fields.number()?)),
                "nearest" => {
                    explanation.nearest = Some(Nearest {
                        shape: fields.shape()?,
                        count: fields.number()?,
                        differences: Vec::new(),
                        otherwise: Cow::Owned(fields.text()?),
                    });
                }
                "difference" => {
                    let difference = Difference {
                        field: usize::try_from(fields.number()?).unwrap_or(usize::MAX),
                        name: fields.optional_text()?,
                        found: fields.text()?,
                        wanted: fields.text()?,
                    };
                    let nearest = explanation.nearest.iter_mut();
                    nearest.for_each(|nearest| nearest.differences.push(difference.clone()));
                }
                _ => {}
            }
        }
        Ok(explanation)
    }
}
