//! What has gone through this server, by the first field of the tuples. It is counted how many were put and taken, how long takes have
//! waited, and how long tuples were on their way to a client.
//!
//! Only of texts, and of the first so many of a space: figures of a server must not grow with what clients put.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;
use tupelo::encoding::Reader;

use crate::hosted::Hosted;

/// First fields of a space with figures of their own. All others are counted together.
pub(crate) const FIELDS_MAX: usize = 64;
/// Longest first field with figures of its own, in bytes.
const FIELD_BYTES_MAX: usize = 64;

/// Upper ends of the ranges in which times are counted.
pub(crate) const BUCKETS: [Duration; 9] = [
    Duration::from_micros(100),
    Duration::from_micros(500),
    Duration::from_millis(2),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(10),
    Duration::from_secs(60),
];

/// Times that were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// How many were in each range, and above all of them.
    pub(crate) counts: [u64; BUCKETS.len() + 1],
    pub(crate) sum: Duration,
}

impl Times {
    fn add(&mut self, time: Duration) {
        self.counts[BUCKETS.partition_point(|end| *end < time)] += 1;
        self.sum += time;
    }
}

/// What has gone through of tuples with one first field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meter {
    pub(crate) puts: u64,
    pub(crate) takes: u64,
    /// How long takes and claims have waited for a tuple, those that did not among them.
    pub(crate) waits: Times,
    /// How long tuples that were taken were held until their client had them.
    pub(crate) hand_overs: Times,
}

/// The meters of a space.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    by_field: RefCell<HashMap<Rc<str>, Meter>>,
    others: RefCell<Meter>,
}

/// A first field with figures of its own; `None` for all others.
pub(crate) type Field = Option<Rc<str>>;

/// Tuples that were given to a client, which has not said yet that they have arrived.
pub(crate) struct Handed {
    hosted: Rc<Hosted>,
    field: Field,
    since: Instant,
}

impl Handed {
    /// Counts what a take or a claim has found after such a wait: a list of tuples, the first `before` of which only tell of them.
    pub(crate) fn new(
        hosted: &Rc<Hosted>,
        (tuples, before): (&[u8], usize),
        waited: Duration,
    ) -> Self {
        let field = hosted.meters.count_takes(tuples, before, waited);
        Self { hosted: Rc::clone(hosted), field, since: Instant::now() }
    }

    /// They have arrived.
    pub(crate) fn arrived(&self) {
        self.hosted.meters.count_hand_over(&self.field, self.since.elapsed());
    }
}

impl Meters {
    /// Tuples were put: a list of them.
    pub(crate) fn count_puts(&self, tuples: &[u8]) {
        for tuple in each(tuples) {
            self.change(first_field(tuple), |meter| meter.puts += 1);
        }
    }

    /// Tuples were taken after such a wait: a list of them, behind some that tell of them. Returns the field of the last.
    fn count_takes(&self, tuples: &[u8], before: usize, waited: Duration) -> Field {
        let mut last = None;
        for tuple in each(tuples).skip(before) {
            let field = first_field(tuple);
            let count = |meter: &mut Meter| {
                meter.takes += 1;
                meter.waits.add(waited);
            };
            last = if self.change(field, count) { field } else { None };
        }
        last.and_then(|field| self.key(field))
    }

    /// A tuple that was taken has arrived after such a time.
    fn count_hand_over(&self, field: &Field, time: Duration) {
        self.change(field.as_deref(), |meter| meter.hand_overs.add(time));
    }

    /// What was counted, by first field, in their order; then that of all others.
    pub(crate) fn all(&self) -> Vec<(Field, Meter)> {
        let by_field = self.by_field.borrow();
        let mut all: Vec<_> =
            by_field.iter().map(|(field, meter)| (Some(Rc::clone(field)), *meter)).collect();
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        all.push((None, *self.others.borrow()));
        all
    }

    fn key(&self, field: &str) -> Field {
        self.by_field.borrow().get_key_value(field).map(|(key, _)| Rc::clone(key))
    }

    /// Counts under this field, or under the others. Returns whether the field has a meter of its own.
    fn change(&self, field: Option<&str>, count: impl FnOnce(&mut Meter)) -> bool {
        let mut by_field = self.by_field.borrow_mut();
        if let Some(field) = field {
            if let Some(known) = by_field.get_mut(field) {
                count(known);
                return true;
            }
            if by_field.len() < FIELDS_MAX {
                count(by_field.entry(field.into()).or_default());
                return true;
            }
        }
        count(&mut self.others.borrow_mut());
        false
    }
}

/// The tuples of a list, from where each begins. The last one is not looked at, since it may be long.
fn each(tuples: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut reader = Reader::new(tuples);
    let count = reader.expect_list("tuples are a list").unwrap_or_default();
    (0..count).map_while(move |number| {
        if number > 0 {
            reader.skip().ok()?;
        }
        tuples.get(reader.at()..)
    })
}

/// The first field of a tuple, if it is a short text.
fn first_field(tuple: &[u8]) -> Option<&str> {
    let mut reader = Reader::new(tuple);
    let fields = reader.expect_list("a tuple is a list").ok()?;
    let field = if fields == 0 { None } else { reader.expect_str("a text").ok() };
    field.filter(|field| field.len() <= FIELD_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tupelo::{TupleRef, fields};
    use tupelo_protocol::Tuples;

    use super::{BUCKETS, FIELDS_MAX, Meters};

    fn list(names: &[&str]) -> Vec<u8> {
        let tuples: Vec<_> = names.iter().map(|name| fields![*name, 1]).collect();
        Tuples::encode(tuples.iter().map(TupleRef::from)).unwrap()
    }

    #[test]
    fn what_goes_through_is_counted_by_its_first_field() {
        let meters = Meters::default();
        meters.count_puts(&list(&["job", "done", "job"]));
        let field = meters.count_takes(&list(&["job"]), 0, Duration::from_millis(3));
        assert_eq!(field.as_deref(), Some("job"));
        meters.count_hand_over(&field, Duration::from_secs(100));
        let all = meters.all();
        let (field, job) = &all[1];
        assert_eq!((field.as_deref(), job.puts, job.takes), (Some("job"), 2, 1));
        assert_eq!((job.waits.counts[3], job.hand_overs.counts[BUCKETS.len()]), (1, 1));
        assert_eq!(job.waits.sum, Duration::from_millis(3));
        assert_eq!((all[0].1.puts, all.len()), (1, 3));
    }

    #[test]
    fn there_are_no_more_meters_than_so_many_and_the_rest_is_counted_together_b2() {
        let meters = Meters::default();
        let names: Vec<String> =
            (0..2 * FIELDS_MAX).map(|number| format!("name {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        meters.count_puts(&list(&names));
        let long = "x".repeat(65);
        meters.count_puts(&list(&[&long]));
        let number = Tuples::encode([TupleRef::from(&fields![7])].into_iter()).unwrap();
        meters.count_puts(&number);
        let all = meters.all();
        assert_eq!(all.len(), FIELDS_MAX + 1);
        assert_eq!(all.last().unwrap().1.puts, FIELDS_MAX as u64 + 2);
        // What comes from elsewhere may be anything.
        meters.count_puts(&[0xc1]);
    }
}
