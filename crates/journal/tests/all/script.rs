//! What a process does to a space of a file while a test follows each of its calls of the kernel.
//!
//! It makes the space, and another one in the same file, changes them, closes them, and opens them again. To close them moves the log
//! into the file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tupelo_crashtest::{FileCall, shared_words};
use tupelo_engine::{Engine, RequestKey, Transaction, keyed};
use tupelo_journal::{Error, Journal};
use tupelo_tuple::{Kind, Value, fields, template};

use crate::{Place, owned};

/// Bytes of a tuple that takes several pages of the file.
const LARGE: usize = 10_000;

/// One step, which is acknowledged when it is over.
#[derive(Clone, Copy, Debug)]
enum Step {
    Open,
    /// All of these at one moment.
    Put(&'static [i64]),
    /// One with many bytes.
    PutLarge(i64),
    Take(i64),
    /// To the other space.
    Move(i64),
    /// One here and one in the other space, at one moment.
    PutBoth(i64, i64),
    Close,
}

const STEPS: [Step; 15] = [
    Step::Open,
    Step::Put(&[1]),
    Step::Put(&[2, 3]),
    Step::Take(1),
    Step::Move(3),
    Step::PutLarge(4),
    Step::Close,
    Step::Open,
    Step::Take(2),
    Step::Put(&[5]),
    Step::PutBoth(7, 8),
    Step::Take(4),
    Step::PutLarge(6),
    Step::Move(5),
    Step::Close,
];

/// The name of the other space.
const OTHER: &str = "other";

/// What is in both spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// The jobs of the one, in its order.
    pub(crate) jobs: Vec<i64>,
    /// The keys of puts that it knows.
    keys: Vec<i64>,
    /// The jobs of the other one.
    others: Vec<i64>,
}

impl State {
    /// What is there.
    pub(crate) fn of(place: &Place) -> Self {
        let (journal, other) = (place.open(), place.open_space(OTHER));
        let (engine, other) = (journal.engine(), other.engine());
        Self { jobs: jobs(engine), keys: keys(engine), others: jobs(other) }
    }

    /// What is there after so many steps.
    pub(crate) fn after(steps: usize) -> Self {
        let mut state = Self { keys: keys_after(steps), ..Self::default() };
        let State { jobs, others, .. } = &mut state;
        for step in STEPS.iter().take(steps) {
            match step {
                Step::Put(numbers) => jobs.extend_from_slice(numbers),
                Step::PutLarge(number) => jobs.push(*number),
                Step::Take(number) => jobs.retain(|job| job != number),
                Step::Move(number) => {
                    jobs.retain(|job| job != number);
                    others.push(*number);
                }
                Step::PutBoth(number, other) => {
                    jobs.push(*number);
                    others.push(*other);
                }
                Step::Open | Step::Close => {}
            }
        }
        state
    }
}

/// How far the script is, in memory that survives its process: how many steps were acknowledged.
pub(crate) struct Progress {
    acknowledged: &'static AtomicU32,
    refused: &'static AtomicU32,
    failed_read: &'static AtomicU32,
    failed_open: &'static AtomicU32,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let words = shared_words(4);
        let [acknowledged, refused, failed_read, failed_open] =
            [0, 1, 2, 3].map(|word: usize| &words[word]);
        Self { acknowledged, refused, failed_read, failed_open }
    }

    /// So many steps were acknowledged.
    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed) as usize
    }

    /// So often was the script told of an error.
    pub(crate) fn refused(&self) -> u32 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Says which call fails. SQLite takes a read that fails for damage of the file. If it cannot open the file to write, it opens it
    /// to read.
    pub(crate) fn fail(&self, call: &FileCall) {
        match call {
            FileCall::Read { .. } => self.failed_read.store(1, Ordering::Relaxed),
            FileCall::Open { .. } => self.failed_open.store(1, Ordering::Relaxed),
            _ => {}
        }
    }

    /// Fails unless what is there is what is there after the last acknowledged step, or after the step that was under way.
    pub(crate) fn require_legal(&self, found: &State, when: &str) {
        let acknowledged = self.acknowledged();
        let legal = [State::after(acknowledged), State::after(acknowledged + 1)];
        let told =
            || format!("{when}, after {acknowledged} steps: {found:?}, and not of {legal:?}");
        assert!(legal.contains(found), "{}", told());
    }
}

/// The keys of the puts among so many steps: the number of the first job of each.
fn keys_after(steps: usize) -> Vec<i64> {
    let put = |step: &Step| match step {
        Step::Put(numbers) => numbers.first().copied(),
        Step::PutLarge(number) => Some(*number),
        _ => None,
    };
    STEPS.iter().take(steps).filter_map(put).collect()
}

/// The keys that a space knows.
fn keys(engine: &Engine) -> Vec<i64> {
    let known = |number: &i64| {
        let RequestKey { key, who, answer } = request(*number);
        engine.answer_to(key, who).unwrap().inspect(|known| assert_eq!(*known, answer)).is_some()
    };
    keys_after(STEPS.len()).into_iter().filter(known).collect()
}

/// That of the put whose first job has this number.
fn request(number: i64) -> RequestKey {
    RequestKey { key: number.unsigned_abs().into(), who: 7, answer: 1 }
}

/// How many steps there are.
pub(crate) const fn steps() -> usize {
    STEPS.len()
}

/// The jobs that are in a space, in its order.
pub(crate) fn jobs(engine: &Engine) -> Vec<i64> {
    let all = engine.read_all(&[template!["job", Kind::Int, Kind::Bytes]], None, owned).unwrap();
    let number = |tuple: &tupelo_tuple::Tuple| match tuple[1] {
        Value::Int(number) => number,
        ref other => panic!("{other} is no number"),
    };
    all.iter().map(number).collect()
}

/// Does all steps. What is refused is checked, and tried again.
pub(crate) fn run(place: &Place, progress: &Progress) {
    let mut journals: Option<[Arc<Journal>; 2]> = None;
    for (number, step) in STEPS.iter().enumerate() {
        match (step, &journals) {
            (Step::Open, _) => {
                let open = || {
                    let journal = Journal::open(&place.file(), "", &place.options())?;
                    journal.engine().keep_keys()?;
                    let other = Journal::open(&place.file(), OTHER, &place.options())?;
                    Ok([journal, other])
                };
                journals = Some(persist(place, progress, open));
            }
            (Step::Close, _) => journals = None,
            (_, None) => panic!("{step:?} needs an open space"),
            (step, Some(journals)) => change(place, progress, journals, *step),
        }
        // SeqCst: nothing of a step happens behind its acknowledgement.
        progress.acknowledged.store(u32::try_from(number + 1).unwrap(), Ordering::SeqCst);
    }
}

fn change(place: &Place, progress: &Progress, [journal, other]: &[Arc<Journal>; 2], step: Step) {
    let engine = journal.engine();
    let small = [1_u8; 8];
    let large = [2_u8; LARGE];
    match step {
        Step::Put(numbers) => {
            let of_number = |number: &i64| fields!["job", *number, small.as_slice()];
            let tuples: Vec<_> = numbers.iter().map(of_number).collect();
            let put = || engine.put_all(&tuples.iter().collect::<Vec<_>>()).map(drop);
            keyed(request(numbers[0]), put).unwrap();
        }
        Step::PutLarge(number) => {
            let put = || engine.put(&fields!["job", number, large.as_slice()]);
            keyed(request(number), put).unwrap();
        }
        Step::Take(number) => {
            let template = [template!["job", number, Kind::Bytes]];
            let taken = engine.try_take(&template, tupelo_engine::Order::Fifo, owned).unwrap();
            assert!(taken.is_some(), "job {number} is gone");
        }
        Step::Move(number) => {
            let template = [template!["job", number, Kind::Bytes]];
            assert_eq!(engine.move_to(other.engine(), &template), Ok(1));
        }
        Step::PutBoth(here, there) => {
            let both = [Arc::clone(engine), Arc::clone(other.engine())];
            let mut transaction = Transaction::begin(both, Duration::from_secs(3600)).unwrap();
            for (at, number) in [(0, here), (1, there)] {
                transaction.put(at, &fields!["job", number, small.as_slice()]).unwrap();
            }
            transaction.commit().unwrap();
        }
        Step::Open | Step::Close => {}
    }
    let before = [jobs(engine), jobs(other.engine())];
    // What happened in both comes to the file with either.
    let settles = if matches!(step, Step::PutBoth(..)) { other } else { journal };
    persist(place, progress, || {
        let settled = settles.settle();
        let now = [jobs(engine), jobs(other.engine())];
        assert_eq!(now, before, "readers see what is in effect, whatever the disk says");
        settled
    });
}

/// Tries again until it works. An error must name the file.
fn persist<R>(place: &Place, progress: &Progress, work: impl Fn() -> Result<R, Error>) -> R {
    for _ in 0..4 {
        match work() {
            Ok(done) => return done,
            Err(error) => {
                progress.refused.fetch_add(1, Ordering::Relaxed);
                let told = error.to_string();
                let path = place.file().display().to_string();
                assert!(told.starts_with(&path) && told.contains("cannot "), "{told}");
                let failed = |what: &AtomicU32| what.load(Ordering::Relaxed) != 0;
                let is_told = match error {
                    Error::Storage { .. } => true,
                    Error::Corrupted { .. } => failed(progress.failed_read),
                    Error::AccessDenied { .. } => failed(progress.failed_open),
                    _ => false,
                };
                assert!(is_told, "{error:?}");
            }
        }
    }
    panic!("it was refused again and again, and the disk is well")
}
