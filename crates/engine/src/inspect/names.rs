//! The tuples of each shape by their name: the first field, where that is a text.
//!
//! No tuple is copied, only the beginning of its first field. Each lock is held for some 20 us at a time, as in a scan.
//! A shape of very many tuples or names is not gone through to its end: what was left out is counted.

use tupelo_shm::{GRANULE, Span, View};
use tupelo_tuple::{Kind, Shape};

use crate::base::error::Error;
use crate::inspect::stat::require_whole;
use crate::operations::scan::{STEP_RECORDS, resume};
use crate::store::partition::{self, FIRST, LAST, Partition};
use crate::store::record::{self, IMAGE, NEXT};
use crate::store::{Store, count, registry};
use crate::time::bounded_lock::OneWait;
use crate::time::list::{self, List};

/// Bytes of a name that are told; the names of two tuples that differ later only are one.
pub const NAME_BYTES_MAX: usize = 64;
/// Names of one shape that are told apart.
const NAMES_MAX: usize = 64;
/// What the tuples of Tupelo's own tools begin with. Their second field is a name, too.
const OWN: &str = "tupelo.";

/// The tuples of a shape by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeNames {
    /// The shape.
    pub shape: Shape,
    /// What was seen of each name, the name with the most tuples first.
    pub names: Vec<NameStat>,
    /// Tuples that were not looked at, or that are on their way somewhere.
    pub others: u64,
    /// The first and the last of those that can be read, by their [numbers](NameStat::oldest); `None` if there are none, and of
    /// a space of a server.
    pub ends: Option<(u64, u64)>,
}

/// The tuples of one shape and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameStat {
    /// The first field, or its first [`NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// The second field, if it is a text and the first begins with `tupelo.`: the name of a queue, a lock, a function.
    pub of: Option<String>,
    /// Tuples that can be read now.
    pub count: u64,
    /// Tuples that somebody has claimed.
    pub claimed: u64,
    /// Tuples whose last attempt has failed (rule K5).
    pub dead: u64,
    /// The number of the oldest that can be read, in the order of the puts of its shape: a later put has a higher number.
    /// `None` if there is none, and of a space of a server.
    pub oldest: Option<u64>,
}

/// As [`crate::Engine::names`] says.
pub(crate) fn names(store: &Store, tuples_max: u64) -> Result<Vec<ShapeNames>, Error> {
    let mut all = of_all(store, tuples_max)?;
    all.retain(|one| has_names(one.shape.class.is_some(), &one.shape.kinds));
    Ok(all)
}

/// As [`crate::Engine::names_of_all`] says.
pub(crate) fn of_all(store: &Store, tuples_max: u64) -> Result<Vec<ShapeNames>, Error> {
    let (mut all, mut one_wait) = (Vec::new(), OneWait::default());
    for shape in 0..registry::count(&store.memory.view()) {
        all.extend(names_of(store, shape, tuples_max, &mut one_wait)?);
    }
    require_whole(store, &store.memory.view()).map(|()| all)
}

/// Whether the tuples of a shape have names.
fn has_names(is_of_entries: bool, kinds: &[Kind]) -> bool {
    !is_of_entries && kinds.first() == Some(&Kind::Str)
}

/// The names of shape `number`: none if its tuples have none.
fn names_of(
    store: &Store,
    number: u32,
    tuples_max: u64,
    one_wait: &mut OneWait,
) -> Result<Option<ShapeNames>, Error> {
    let view = store.memory.view();
    let Some(kinds) = registry::kinds_of(store, &view, number) else { return Ok(None) };
    let has_names = has_names(kinds.class().is_some(), kinds.as_slice());
    let mut counting = Counting { kinds: kinds.as_slice(), names: Vec::new(), looks: 0 };
    let mut ends = None;
    let mut last = None;
    let mut is_over = false;
    let scope = partition::scope_of(number);
    while !is_over && counting.looks < tuples_max {
        // Whoever was stopped inside of a shape is not waited for for long: its tuples are counted only.
        let Some(section) = one_wait.enter(store, scope)? else { break };
        let (view, partition) = (section.view(), Partition::of_shape(section.view(), number));
        if last.is_none() {
            ends = ends_of(view, partition);
        }
        if !has_names {
            section.finish()?;
            break;
        }
        if last.is_none() {
            for (list, figure) in [
                (List::Claimed, (|name| &mut name.claimed) as Figure),
                (List::Dead, |name| &mut name.dead),
            ] {
                let records = list::records(view, partition, list).map(|(reference, _)| reference);
                for one in records.take(STEP_RECORDS) {
                    counting.add(view, one, figure);
                }
            }
        }
        let mut at = resume(view, &store.layout, partition, last);
        for _ in 0..STEP_RECORDS {
            if at == 0 {
                break;
            }
            let header = record::header(view, at);
            let sequence = header.load64(record::SEQUENCE);
            last = Some((at, sequence));
            if let Some(name) = counting.add(view, at, |name| &mut name.count) {
                // The first that is seen: the walk is in the order of the numbers.
                name.oldest.get_or_insert(sequence);
            }
            at = header.load(NEXT);
        }
        is_over = at == 0;
        section.finish()?;
    }
    Ok(Some(counting.done((kinds.to_shape(), ends), count::tuples_of(&view, number))))
}

/// The numbers of the first and the last record of a partition that is locked.
fn ends_of(view: &View<'_>, partition: Partition<'_>) -> Option<(u64, u64)> {
    let [first, last] = [FIRST, LAST].map(|end| partition.page().load(end));
    let number = |reference| record::header(view, reference).load64(record::SEQUENCE);
    (first != 0 && last != 0).then(|| (number(first), number(last)))
}

type Figure = fn(&mut NameStat) -> &mut u64;

/// The names of a shape, as far as they were counted.
struct Counting<'k> {
    kinds: &'k [Kind],
    names: Vec<NameStat>,
    looks: u64,
}

impl Counting<'_> {
    /// Counts the tuple of a record, and returns the figures of its name, if there are some. Whoever calls has the lock.
    fn add(&mut self, view: &View<'_>, reference: u32, figure: Figure) -> Option<&mut NameStat> {
        self.looks += 1;
        let mut buffers = [[0; NAME_BYTES_MAX]; 2];
        let [first, second] = &mut buffers;
        let name = text_beginning(view, reference, 0, first);
        let has_second = name.starts_with(OWN) && self.kinds.get(1) == Some(&Kind::Str);
        let of = has_second.then(|| text_beginning(view, reference, 1, second));
        let known = self.names.iter().position(|one| one.name == name && one.of.as_deref() == of);
        let place = match known {
            Some(place) => place,
            None if self.names.len() == NAMES_MAX => return None,
            None => {
                let (name, of) = (name.to_owned(), of.map(str::to_owned));
                self.names.push(NameStat { name, of, count: 0, claimed: 0, dead: 0, oldest: None });
                self.names.len() - 1
            }
        };
        let name = &mut self.names[place];
        *figure(name) += 1;
        Some(name)
    }

    /// What came of it, if the shape has so many tuples.
    fn done(mut self, (shape, ends): (Shape, Option<(u64, u64)>), tuples: u64) -> ShapeNames {
        self.names.sort_by(|one, other| {
            other
                .count
                .cmp(&one.count)
                .then_with(|| (&one.name, &one.of).cmp(&(&other.name, &other.of)))
        });
        let counted: u64 = self.names.iter().map(|one| one.count + one.claimed + one.dead).sum();
        ShapeNames { shape, names: self.names, others: tuples.saturating_sub(counted), ends }
    }
}

/// The text of field `index`, which is one, as far as it fits into `buffer`. Cut off between two letters; empty if damaged.
fn text_beginning<'b>(
    view: &View<'_>,
    reference: u32,
    index: usize,
    buffer: &'b mut [u8],
) -> &'b str {
    let image = reference as usize * GRANULE + IMAGE;
    let word: Span<'_, 8> = view.span(image + 8 * index);
    let slot = word.load64(0);
    #[expect(clippy::cast_possible_truncation, reason = "the low half of the slot is the offset")]
    let place = image + slot as u32 as usize;
    let bytes = ((slot >> 32) as usize).min(buffer.len());
    // The place is another process's word.
    if !view.reaches(place, bytes) {
        return "";
    }
    let text = &mut buffer[..bytes];
    view.copy_out(place, text);
    match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};
    use std::{fs, thread};

    use tupelo_shm::Section;
    use tupelo_tuple::{Field, PatternRef, TemplateRef};

    use super::*;
    use crate::{Order, Want, testing};

    type Told<'n> = (String, Vec<(&'n str, Option<&'n str>, u64)>, u64);

    fn told(names: &[ShapeNames]) -> Vec<Told<'_>> {
        names
            .iter()
            .map(|shape| {
                let names = shape.names.iter();
                let names = names.map(|one| (one.name.as_str(), one.of.as_deref(), one.count));
                (shape.shape.to_string(), names.collect(), shape.others)
            })
            .collect()
    }

    #[test]
    fn tuples_are_counted_by_their_first_field_and_those_of_tools_by_the_second_too() {
        let engine = testing::engine(8 << 20);
        for _ in 0..3 {
            engine.put(&[Field::Str("job"), Field::Int(1)]).unwrap();
        }
        engine.put(&[Field::Str("done"), Field::Int(1)]).unwrap();
        engine.put(&[Field::Int(1), Field::Int(1)]).unwrap();
        engine.put(&[Field::Str("tupelo.lock"), Field::Str("door")]).unwrap();
        engine.put(&[Field::Str("link"), Field::Str("door")]).unwrap();
        let names = engine.names(1_000).unwrap();
        let expected = [
            ("(str, int)".to_owned(), vec![("job", None, 3), ("done", None, 1)], 0),
            ("(str, str)".to_owned(), vec![("link", None, 1), ("tupelo.lock", Some("door"), 1)], 0),
        ];
        assert_eq!(told(&names), expected);
    }

    #[test]
    fn what_was_not_looked_at_is_counted() {
        let engine = testing::engine(8 << 20);
        for number in 0..1_000 {
            engine.put(&[Field::Str(&format!("job-{number:03}"))]).unwrap();
        }
        let all = &engine.names(10_000).unwrap()[0];
        assert_eq!((all.names.len(), all.others), (NAMES_MAX, 1_000 - NAMES_MAX as u64));
        let few = &engine.names(1).unwrap()[0];
        assert_eq!(few.others + few.names.len() as u64, 1_000);
    }

    #[test]
    fn the_oldest_of_each_name_is_known_by_its_number_and_a_later_put_has_a_higher_one() {
        let engine = testing::engine(8 << 20);
        for name in ["job", "done", "job", "done"] {
            engine.put(&[Field::Str(name)]).unwrap();
        }
        engine.put(&[Field::Int(1)]).unwrap();
        let look = || {
            let all = engine.names_of_all(1_000).unwrap();
            let oldest = |name: &str| {
                let found = all[0].names.iter().find(|one| one.name == name);
                found.and_then(|one| one.oldest)
            };
            (oldest("job"), oldest("done"), all[0].ends, all[1].ends)
        };
        let (job, done, ends, of_numbers) = look();
        let (first, last) = ends.unwrap();
        assert!(job == Some(first) && done > job && done < Some(last));
        assert!(matches!(of_numbers, Some((first, last)) if first == last));
        let take = |field: Field<'_>| {
            let pattern = [PatternRef::Actual(field)];
            let template = [TemplateRef::new(&pattern)];
            let taken = engine.try_take(&template, Order::Fifo, |_| Ok::<_, Error>(()));
            assert!(taken.unwrap().is_some());
        };
        take(Field::Str("job"));
        take(Field::Str("done"));
        let (later_job, later_done, ends, _) = look();
        assert!(later_job > done && later_done == Some(last) && ends.unwrap().1 == last);
        // In the order of puts is also the place of what was put since.
        engine.put(&[Field::Str("job")]).unwrap();
        assert!(look().2.unwrap().1 > last);
        take(Field::Int(1));
        assert_eq!(look().3, None);
        let named = engine.names(1_000).unwrap();
        assert_eq!(named.len(), 1, "(int) has no names");
    }

    #[test]
    fn a_long_name_is_cut_off_between_letters() {
        let engine = testing::engine(8 << 20);
        engine.put(&[Field::Str(&"ä".repeat(100)), Field::Str(&"x".repeat(100))]).unwrap();
        engine.put(&[Field::Str(&format!("x{}", "ä".repeat(100))), Field::Str("")]).unwrap();
        let names = engine.names(10).unwrap();
        let lengths = names[0].names.iter().map(|one| one.name.chars().count());
        assert_eq!(lengths.collect::<Vec<_>>(), [32, 32]);
    }

    /// How often this thread has slept so far.
    fn sleeps() -> u64 {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.unwrap().trim().parse().unwrap()
    }

    #[test]
    fn one_who_stays_inside_of_many_shapes_is_waited_for_once() {
        let engine = Arc::new(testing::engine(8 << 20));
        let shapes: [&[Field<'_>]; 3] =
            [&[Field::Str("job")], &[Field::Int(1)], &[Field::Str("job"), Field::Int(1)]];
        let template = [PatternRef::Actual(Field::Str("none"))];
        let template = [TemplateRef::new(&template)];
        let waiters: Vec<_> =
            (0..10).map(|_| engine.waiter(&template, Want::Take).unwrap()).collect();
        for fields in shapes {
            engine.put(fields).unwrap();
        }
        let (is_inside, is_over) = (Barrier::new(2), Barrier::new(2));
        let (names, blocked, [first, second, third]) = thread::scope(|threads| {
            threads.spawn(|| {
                let mut inside = Section::enter(&engine.memory, partition::scope_of(0)).unwrap();
                inside.enter_also(partition::scope_of(1)).unwrap();
                inside.enter_also(partition::scope_of(2)).unwrap();
                is_inside.wait();
                is_over.wait();
                drop(inside);
            });
            is_inside.wait();
            let first = sleeps();
            let names = engine.names_of_all(1_000);
            let second = sleeps();
            let blocked = engine.blocked();
            let third = sleeps();
            is_over.wait();
            (names.unwrap(), blocked.unwrap(), [first, second, third])
        });
        assert_eq!(names.iter().map(|shape| shape.others).collect::<Vec<_>>(), [1, 1, 1]);
        assert_eq!(blocked, []);
        // A wait is twenty sleeps.
        assert!(second - first < 40, "{} sleeps for the names", second - first);
        assert!(third - second < 40, "{} sleeps for those who are blocked", third - second);
        for waiter in waiters {
            waiter.give_up().unwrap();
        }
    }
}
