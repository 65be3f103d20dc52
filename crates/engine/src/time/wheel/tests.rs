//! The wheel against a sorted map. Timers are armed, disarmed and fired at random, with a clock that jumps by anything
//! from nothing to years. Some steps are undone half way.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng as Random;
use tupelo_shm::Section;
use tupelo_tuple::{Field, TupleRef};

use crate::base::clock::TIME_MS_MAX;
use crate::base::terms::LeaseTerms;
use crate::store::partition::Partition;
use crate::store::step;
use crate::time::wheel::{
    DIGIT_BITS, LEVELS, SLOTS, arm, armed, disarm, due_ms, ensure, pop, slot_for,
};
use crate::{Engine, testing};

const TIMERS: u64 = 64;
const ROUNDS: u64 = 40;
const STEPS: u64 = 600;

/// A length of time: each order of magnitude, up to the wheel's whole range, is as likely as another.
fn length_ms(random: &mut Random) -> u64 {
    let bits = random.u32(..DIGIT_BITS * LEVELS);
    random.u64(..1 << bits)
}

fn engine() -> Engine {
    testing::engine(8 << 20)
}

/// Records of one shape that have the words for a timer. Returns the shape, too.
fn records(engine: &Engine) -> (u32, Vec<u32>) {
    let put = |number: u64| {
        let fields = [Field::Int(number.cast_signed())];
        let mut incoming =
            crate::operations::put::incoming(engine, TupleRef::from(&fields)).unwrap();
        incoming.terms = Some(crate::store::incoming::numbered(engine, &LeaseTerms::default()));
        let shape = crate::store::registry::shape(engine, &incoming.kinds, None).unwrap();
        (shape, crate::operations::put::put_incoming(engine, &incoming, shape).unwrap())
    };
    let (shapes, records): (Vec<u32>, Vec<u32>) = (0..TIMERS).map(put).unzip();
    (shapes[0], records)
}

/// The sorted map: when each armed timer fires, and whose turn it is in that moment.
struct Expected {
    time_ms: u64,
    armed: BTreeMap<u32, (u64, u64)>,
    /// When each was armed for, which may be over already.
    due_ms: BTreeMap<u32, u64>,
    count: u64,
}

impl Expected {
    fn at(time_ms: u64) -> Self {
        Self { time_ms, armed: BTreeMap::new(), due_ms: BTreeMap::new(), count: 0 }
    }

    fn arm(&mut self, reference: u32, due_ms: u64) {
        self.count += 1;
        self.armed.insert(reference, (due_ms.max(self.time_ms + 1), self.count));
        self.due_ms.insert(reference, due_ms);
    }

    fn disarm(&mut self, reference: u32) {
        self.armed.remove(&reference);
        self.due_ms.remove(&reference);
    }

    /// What fires until `now_ms`, in its order.
    fn due(&self, now_ms: u64) -> Vec<u32> {
        let due = self.armed.iter().filter(|(_, (moment_ms, _))| *moment_ms <= now_ms);
        let mut due: Vec<(u64, u64, u32)> =
            due.map(|(reference, (moment_ms, turn))| (*moment_ms, *turn, *reference)).collect();
        due.sort_unstable();
        due.into_iter().map(|(_, _, reference)| reference).collect()
    }
}

/// A wheel, and what it should be.
struct Pair<'e> {
    engine: &'e Engine,
    partition: Partition<'e>,
    expected: Expected,
}

impl<'e> Pair<'e> {
    /// A wheel that is new at `time_ms`.
    fn new(engine: &'e Engine, partition: Partition<'e>, time_ms: u64) -> Self {
        let pair = Self { engine, partition, expected: Expected::at(time_ms) };
        let mut section = pair.enter();
        ensure(&mut section, &engine.layout, partition, || time_ms).unwrap();
        section.commit().unwrap();
        pair
    }

    fn enter(&self) -> Section<'e> {
        // Not on the engine's own time, which is another.
        Section::enter(&self.engine.memory, self.partition.scope()).unwrap()
    }

    fn arm(&mut self, reference: u32, due_ms: u64, is_undone: bool) {
        if self.expected.armed.contains_key(&reference) {
            return;
        }
        let mut section = self.enter();
        arm(self.engine, &mut section, self.partition, reference, due_ms).unwrap();
        if !is_undone {
            section.commit().unwrap();
            self.expected.arm(reference, due_ms);
        }
    }

    fn disarm(&mut self, reference: u32, is_undone: bool) {
        let mut section = self.enter();
        disarm(&mut section, self.partition, reference);
        if !is_undone {
            section.commit().unwrap();
            self.expected.disarm(reference);
        }
    }

    /// Lets time pass. If that is undone, all that has fired since the last commit fires again.
    fn advance(&mut self, now_ms: u64, is_undone: bool) {
        if is_undone {
            let mut section = self.enter();
            // As far as the log goes: what is undone can not be committed in between.
            let _ = pop(&mut section, self.partition, now_ms, |section| step::begin(section));
            return;
        }
        let mut section = self.enter();
        let mut fired = Vec::new();
        while let Some(reference) =
            pop(&mut section, self.partition, now_ms, step::commit_if_full).unwrap()
        {
            assert_eq!(
                Some(&due_ms(section.view(), reference)),
                self.expected.due_ms.get(&reference)
            );
            fired.push(reference);
        }
        section.commit().unwrap();
        assert_eq!(
            fired,
            self.expected.due(now_ms),
            "from {} to {now_ms} ms",
            self.expected.time_ms
        );
        for reference in fired {
            self.expected.disarm(reference);
        }
        self.expected.time_ms = now_ms;
    }
}

#[test]
fn a_wheel_fires_what_a_sorted_map_says_in_its_order() {
    let mut random = Random::with_seed(tupelo_crashtest::seed());
    let mut levels = BTreeSet::new();
    for _ in 0..ROUNDS {
        let engine = engine();
        let (shape, records) = records(&engine);
        let partition = Partition::of_shape(&engine.memory.view(), shape);
        let mut pair = Pair::new(&engine, partition, length_ms(&mut random));
        for _ in 0..STEPS {
            let reference = records[random.usize(..records.len())];
            let (time_ms, is_undone) = (pair.expected.time_ms, random.u64(..8) == 0);
            match random.u64(..8) {
                0..5 => {
                    // Now and then, what is to happen is over already.
                    let due_ms = (time_ms + length_ms(&mut random)).saturating_sub(random.u64(..3));
                    levels.insert(slot_for(time_ms, due_ms) / SLOTS);
                    pair.arm(reference, due_ms, is_undone);
                }
                5 => pair.disarm(reference, is_undone),
                _ => pair.advance(time_ms + length_ms(&mut random) / 8, is_undone),
            }
            let found = armed(&engine.memory.view(), partition).unwrap();
            assert_eq!(found, pair.expected.due_ms, "at {} ms", pair.expected.time_ms);
        }
    }
    assert_eq!(levels, (0..LEVELS).collect(), "every level had a timer");
}

#[test]
fn a_wheel_goes_round_at_the_end_of_its_range() {
    let engine = engine();
    let (shape, records) = records(&engine);
    let partition = Partition::of_shape(&engine.memory.view(), shape);
    let end_ms = 1 << (DIGIT_BITS * LEVELS);
    let mut pair = Pair::new(&engine, partition, end_ms - 70);
    for (&reference, after_ms) in records.iter().zip([1, 69, 70, 71, 200, 1 << 20, TIME_MS_MAX]) {
        pair.arm(reference, end_ms - 70 + after_ms, false);
    }
    for time_ms in [end_ms - 1, end_ms, end_ms + 150, end_ms + TIME_MS_MAX] {
        pair.advance(time_ms, false);
        assert_eq!(armed(&engine.memory.view(), partition).unwrap(), pair.expected.due_ms);
    }
    assert!(pair.expected.armed.is_empty());
}

#[test]
fn a_wheel_whose_time_is_damaged_has_a_place_for_every_timer_c5() {
    for time_ms in [u64::MAX, u64::MAX - 1, u64::MAX - TIME_MS_MAX + 1, u64::MAX / 2] {
        let engine = engine();
        let (shape, records) = records(&engine);
        let partition = Partition::of_shape(&engine.memory.view(), shape);
        let pair = Pair::new(&engine, partition, time_ms);
        for (&reference, due_ms) in records.iter().zip([0, 1, time_ms, u64::MAX]) {
            assert!(slot_for(time_ms, due_ms) < LEVELS * SLOTS);
            let mut section = pair.enter();
            arm(&engine, &mut section, partition, reference, due_ms).unwrap();
            section.commit().unwrap();
        }
        let mut section = pair.enter();
        // Whatever it says is due, or that it can not be: it ends.
        for _ in 0..4 {
            let _ = pop(&mut section, partition, time_ms, |section| step::begin(section));
        }
    }
}
