//! What lies in a space until it is taken, by shape and first field: how many tuples, and for how long the oldest has been there.
//!
//! A tuple does not know when it was put, and a put pays nothing for these figures. But the tuples of a shape have numbers in the
//! order of their puts. So each look notes the number of the youngest tuple: what has no higher number was there by then. An age
//! is therefore at least as long as told, and too short by at most the time between two looks.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;
use tupelo::{Shape, ShapeNames};

/// Tuples of a shape that are looked at. The rest is counted without its first fields.
pub(crate) const LOOKED_AT_MAX: u64 = 1_000_000;
/// Shapes of a space with figures of their own: those with the most tuples.
pub(crate) const SHAPES_MAX: usize = 32;
/// First fields of a space with figures of their own: those with the most tuples.
const FIELDS_MAX: usize = 64;
/// Looks at a shape that are remembered.
const LOOKS_MAX: usize = 64;

/// Tuples of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) shape: Shape,
    /// How long the oldest has been there; `None` if there is none.
    pub(crate) oldest: Option<Duration>,
    /// The tuples by their first field, if that is a text: those with the most tuples first.
    pub(crate) fields: Vec<FieldQueue>,
    /// Tuples that are not among those, of a shape whose first field is a text.
    pub(crate) others: Option<u64>,
}

/// Tuples of a shape with one first field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldQueue {
    pub(crate) field: String,
    pub(crate) tuples: u64,
    pub(crate) oldest: Option<Duration>,
}

/// What the looks at a space have seen.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    looks: RefCell<HashMap<Shape, Looks>>,
}

impl Queues {
    /// What a look has seen by now, the shapes with the most tuples first.
    pub(crate) fn see(&self, seen: Vec<ShapeNames>, now: Instant) -> Vec<Queue> {
        let mut seen: Vec<_> = seen.into_iter().filter(|shape| shape.ends.is_some()).collect();
        seen.sort_by_key(|shape| Reverse(tuples_of(shape)));
        seen.truncate(SHAPES_MAX);
        let mut looks = self.looks.borrow_mut();
        looks.retain(|shape, _| seen.iter().any(|one| one.shape == *shape));
        let mut queues: Vec<_> = seen
            .into_iter()
            .map(|shape| {
                let looks = looks.entry(shape.shape.clone()).or_default();
                looks.see(shape.ends.unwrap_or_default(), now);
                queue(shape, looks, now)
            })
            .collect();
        fold(&mut queues);
        queues
    }
}

fn tuples_of(shape: &ShapeNames) -> u64 {
    shape.others + shape.names.iter().map(|name| name.count).sum::<u64>()
}

/// The figures of a shape, those of its tools with one first field together.
fn queue(
    ShapeNames { shape, names, others, ends }: ShapeNames,
    looks: &Looks,
    now: Instant,
) -> Queue {
    let mut fields: Vec<FieldQueue> = Vec::new();
    for name in names.into_iter().filter(|name| name.count > 0) {
        let oldest = name.oldest.map(|number| looks.age(number, now));
        match fields.iter_mut().find(|known| known.field == name.name) {
            Some(known) => {
                known.tuples += name.count;
                known.oldest = known.oldest.max(oldest);
            }
            None => fields.push(FieldQueue { field: name.name, tuples: name.count, oldest }),
        }
    }
    let has_names = shape.class.is_none() && shape.kinds.first() == Some(&tupelo::Kind::Str);
    let oldest = ends.map(|(first, _)| looks.age(first, now));
    Queue { shape, oldest, fields, others: has_names.then_some(others) }
}

/// Counts together what has fewer tuples than the first fields with figures of their own.
fn fold(queues: &mut [Queue]) {
    let mut all: Vec<u64> =
        queues.iter().flat_map(|queue| &queue.fields).map(|field| field.tuples).collect();
    all.sort_unstable_by_key(|tuples| Reverse(*tuples));
    let Some(fewest) = all.get(FIELDS_MAX - 1).copied() else { return };
    // Of those with just as many, as many as there is a place for.
    let mut places = FIELDS_MAX - all.iter().filter(|tuples| **tuples > fewest).count();
    for queue in queues {
        queue.fields.sort_by_key(|field| Reverse(field.tuples));
        let more = queue.fields.partition_point(|field| field.tuples > fewest);
        let as_many = queue.fields.partition_point(|field| field.tuples >= fewest) - more;
        let kept = as_many.min(places);
        places -= kept;
        let rest: u64 = queue.fields.drain(more + kept..).map(|field| field.tuples).sum();
        queue.others = queue.others.map(|others| others + rest);
    }
}

/// The looks at one shape, each with the number of the tuple that was the youngest, or a higher one. Both grow.
#[derive(Debug, Default)]
struct Looks(VecDeque<(u64, Instant)>);

impl Looks {
    /// Sees that these are the numbers of the first and the last tuple.
    fn see(&mut self, (first, last): (u64, u64), now: Instant) {
        // Of looks before the oldest tuple was there, nothing is told.
        while self.0.front().is_some_and(|(number, _)| *number < first) {
            self.0.pop_front();
        }
        if self.0.back().is_none_or(|(number, _)| *number < last) {
            self.0.push_back((last, now));
        }
        if self.0.len() > LOOKS_MAX {
            self.forget_one(now);
        }
    }

    /// Forgets the look that is missed least: what was put before it counts as put before the next one. The error is compared
    /// with the age.
    fn forget_one(&mut self, now: Instant) {
        let seconds = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64();
        let error = |place: &usize| {
            let (before, after) = (self.0[place - 1].1, self.0[place + 1].1);
            seconds(before, after) / seconds(before, now).max(f64::MIN_POSITIVE)
        };
        let least = (1..self.0.len() - 1).min_by(|one, other| error(one).total_cmp(&error(other)));
        least.and_then(|place| self.0.remove(place));
    }

    /// How long the tuple with this number has been there, at least.
    fn age(&self, number: u64, now: Instant) -> Duration {
        let first = self.0.partition_point(|(youngest, _)| *youngest < number);
        self.0.get(first).map_or(Duration::ZERO, |(_, at)| now.duration_since(*at))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;
    use tupelo::{ConnectOptions, Field, Order, Space, fields, template};

    use super::{FIELDS_MAX, LOOKS_MAX, Looks, Queue, Queues, SHAPES_MAX};

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// What is told of each first field of the first shape.
    fn told(queues: &[Queue]) -> Vec<(&str, u64, u64)> {
        let fields = queues[0].fields.iter();
        fields.map(|one| (&*one.field, one.tuples, one.oldest.unwrap().as_secs())).collect()
    }

    #[test]
    fn the_oldest_is_as_old_as_the_first_look_that_could_have_seen_it() {
        let space = Space::connect("mem://queues", &ConnectOptions::default()).unwrap();
        let put = |name: &str, number: i64| space.put(&fields![name, number]).unwrap();
        let (queues, start) = (Queues::default(), Instant::now());
        let look = |at| queues.see(space.names_of_all(1_000).unwrap(), start + seconds(at));
        put("job", 1);
        assert_eq!(told(&look(0)), [("job", 1, 0)]);
        put("job", 2);
        put("done", 1);
        assert_eq!(told(&look(10)), [("job", 2, 10), ("done", 1, 0)]);
        put("job", 3);
        let seen = look(25);
        assert_eq!(told(&seen), [("job", 3, 25), ("done", 1, 15)]);
        assert_eq!((seen[0].oldest, seen[0].others), (Some(seconds(25)), Some(0)));
        let take = |number: i64| {
            let taken = space
                .try_take(&[template!["job", number]], Order::Fifo, |_| Ok::<_, tupelo::Error>(()));
            assert!(taken.unwrap().is_some());
        };
        // The second was first seen at 10, the third at 25.
        take(1);
        assert_eq!(told(&look(30)), [("job", 2, 20), ("done", 1, 20)]);
        take(2);
        assert_eq!(told(&look(40)), [("done", 1, 30), ("job", 1, 15)]);
        take(3);
        put("job", 4);
        assert_eq!(told(&look(50)), [("done", 1, 40), ("job", 1, 0)]);
        // Shapes without a name have an age all the same.
        space.put(&[Field::Int(1)]).unwrap();
        look(60);
        let seen = look(61);
        let numbers = seen.iter().find(|queue| queue.others.is_none()).unwrap();
        assert_eq!((numbers.oldest, numbers.fields.len()), (Some(seconds(1)), 0));
    }

    #[test]
    fn there_are_no_more_rows_than_so_many_and_the_rest_is_counted_together_b2() {
        let space = Space::connect("mem://queues-many", &ConnectOptions::default()).unwrap();
        // Each shape has a length of its own, and three first fields.
        for length in 1..40 {
            for name in ["a", "b", "c"] {
                let mut fields = vec![Field::Str(name)];
                fields.resize(length, Field::Int(0));
                space.put(&fields).unwrap();
            }
        }
        let seen = Queues::default().see(space.names_of_all(1_000).unwrap(), Instant::now());
        assert_eq!(seen.len(), SHAPES_MAX);
        assert_eq!(seen.iter().map(|queue| queue.fields.len()).sum::<usize>(), FIELDS_MAX);
        let all = |queue: &Queue| {
            queue.fields.iter().map(|field| field.tuples).sum::<u64>() + queue.others.unwrap()
        };
        assert!(seen.iter().all(|queue| all(queue) == 3));
    }

    #[test]
    fn few_looks_are_remembered_and_an_age_is_never_too_long() {
        let (mut looks, start) = (Looks::default(), Instant::now());
        for number in 0..1_000 {
            looks.see((0, number), start + seconds(number));
        }
        assert!(looks.0.len() <= LOOKS_MAX);
        let now = start + seconds(1_000);
        for number in 0..1_000 {
            let (age, told) = (1_000 - number, looks.age(number, now).as_secs());
            assert!(told <= age && age <= told + told / 2 + 2, "{number}: {told} s of {age} s");
        }
    }
}
