//! What a process does to a space of a file while a test follows each of its calls of the kernel.
//!
//! It makes the space, changes it, closes it, and opens it again. To close it moves the log into the file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tupelo_crashtest::{FileCall, shared_words};
use tupelo_engine::{Engine, RequestKey, keyed};
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
    Close,
}

const STEPS: [Step; 12] = [
    Step::Open,
    Step::Put(&[1]),
    Step::Put(&[2, 3]),
    Step::Take(1),
    Step::PutLarge(4),
    Step::Close,
    Step::Open,
    Step::Take(2),
    Step::Put(&[5]),
    Step::Take(4),
    Step::PutLarge(6),
    Step::Close,
];

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

    /// Fails unless the jobs of a space, and the keys of puts that it knows, are those after the last acknowledged step, or after the
    /// step that was under way.
    pub(crate) fn require_legal(&self, engine: &Engine, when: &str) {
        let acknowledged = self.acknowledged();
        let after = |steps| (jobs_after(steps), keys_after(steps));
        let legal = [after(acknowledged), after(acknowledged + 1)];
        let found = (jobs(engine), keys(engine));
        let told =
            || format!("{when}, after {acknowledged} steps: {found:?}, and not of {legal:?}");
        assert!(legal.contains(&found), "{}", told());
    }
}

/// The jobs after so many steps.
pub(crate) fn jobs_after(steps: usize) -> Vec<i64> {
    let mut jobs = Vec::new();
    for step in STEPS.iter().take(steps) {
        match step {
            Step::Put(numbers) => jobs.extend_from_slice(numbers),
            Step::PutLarge(number) => jobs.push(*number),
            Step::Take(number) => jobs.retain(|job| job != number),
            Step::Open | Step::Close => {}
        }
    }
    jobs
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
    let mut journal: Option<Arc<Journal>> = None;
    for (number, step) in STEPS.iter().enumerate() {
        match (step, &journal) {
            (Step::Open, _) => {
                let open = || {
                    let journal = Journal::open(&place.file(), &place.options())?;
                    journal.engine().keep_keys()?;
                    Ok(journal)
                };
                journal = Some(persist(place, progress, open));
            }
            (Step::Close, _) => journal = None,
            (_, None) => panic!("{step:?} needs an open space"),
            (step, Some(journal)) => change(place, progress, journal, *step),
        }
        // SeqCst: nothing of a step happens behind its acknowledgement.
        progress.acknowledged.store(u32::try_from(number + 1).unwrap(), Ordering::SeqCst);
    }
}

fn change(place: &Place, progress: &Progress, journal: &Journal, step: Step) {
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
        Step::Open | Step::Close => {}
    }
    let before = jobs(engine);
    persist(place, progress, || {
        let settled = journal.settle();
        assert_eq!(jobs(engine), before, "readers see what is in effect, whatever the disk says");
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
