//! A damaged segment is answered with wrong tuples or an error, never with a crash or a hang (C5).
//!
//! Copies of the file of a space get random words, then a process attaches and does everything.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng as Random;
use tupelo_crashtest::{Exit, fork, seed, shared_words, thorough};
use tupelo_engine::{
    Claim, ClaimTerms, CreateOptions, Engine, Error, EventKind, LeaseTerms, Limits, Order,
    SubscribeTerms, Transaction, Want,
};
use tupelo_shm::{Directory, Segment};
use tupelo_tuple::{Class, Field, Kind, KindSet, PatternRef, TemplateRef, TupleRef, TupleView};

const ANY: PatternRef<'static> = PatternRef::Kinds(KindSet::ALL);
const INT: PatternRef<'static> = PatternRef::Kinds(KindSet::of(Kind::Int));
const BYTES: PatternRef<'static> = PatternRef::Kinds(KindSet::of(Kind::Bytes));
const SIZE_BYTES: u64 = 2 << 20;
const PAGE: usize = 4096;
/// The identity in the first page has a checksum of its own; everything behind may be damaged.
const FIRST_DAMAGED: u64 = PAGE as u64;

/// A directory of its own in shared memory.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/dev/shm/tupelo-damage-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn directory(&self) -> Directory {
        Directory::new(&self.0)
    }

    fn attach(&self, name: &str, create: bool) -> Result<Arc<Engine>, Error> {
        let options = CreateOptions {
            reserve_bytes: Engine::reserve_bytes(SIZE_BYTES),
            initial_commit_bytes: 0,
            create,
            fresh: false,
            mode: 0o600,
        };
        let layout = Engine::segment_layout();
        let segment =
            Segment::create_or_attach(&self.directory(), name, &options, &layout, |mapping| {
                Engine::initialise(mapping, &Limits { size_bytes: SIZE_BYTES, ..Limits::default() })
            })?;
        Engine::new(segment).map(Arc::new)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The pages of a file that are not all zeros.
struct Image {
    length: u64,
    pages: Vec<(u64, Vec<u8>)>,
}

impl Image {
    fn of(path: &PathBuf) -> Self {
        let file = File::open(path).unwrap();
        let length = file.metadata().unwrap().len();
        let mut pages = Vec::new();
        for offset in (0..length).step_by(PAGE) {
            let mut page = vec![0; PAGE];
            file.read_exact_at(&mut page, offset).unwrap();
            if page.iter().any(|byte| *byte != 0) {
                pages.push((offset, page));
            }
        }
        Self { length, pages }
    }

    /// Writes a copy with some words changed.
    fn write_damaged(&self, path: &PathBuf, random: &mut Random) {
        let file = File::options().write(true).create(true).truncate(true).open(path).unwrap();
        file.set_len(self.length).unwrap();
        for (offset, page) in &self.pages {
            file.write_all_at(page, *offset).unwrap();
        }
        let hurt: Vec<_> =
            self.pages.iter().filter(|(offset, _)| *offset >= FIRST_DAMAGED).collect();
        // Sometimes one word, sometimes many; in half the cases all in one page.
        let one_page = random.usize(..2) == 0;
        let mut chosen = random.usize(..hurt.len());
        for _ in 0..1 << random.usize(..9) {
            if !one_page {
                chosen = random.usize(..hurt.len());
            }
            let (offset, page) = hurt[chosen];
            let used: Vec<usize> =
                (0..PAGE).step_by(4).filter(|at| page[*at..*at + 4] != [0; 4]).collect();
            let at = if random.usize(..4) == 0 {
                random.usize(..PAGE / 4) * 4
            } else {
                used[random.usize(..used.len())]
            };
            let word = damaged(&page[at..at + 4], &hurt, random);
            file.write_all_at(&word.to_ne_bytes(), offset + at as u64).unwrap();
        }
    }
}

/// A word in the place of `old`: something near, something from elsewhere, or anything.
fn damaged(old: &[u8], pages: &[&(u64, Vec<u8>)], random: &mut Random) -> u32 {
    let old = u32::from_ne_bytes(old.try_into().unwrap());
    let anything = random.u32(..);
    match random.usize(..6) {
        0 => old ^ 1 << random.usize(..32),
        1 => old.wrapping_add(random.u32(..129)).wrapping_sub(64),
        2 => 0,
        3 => u32::MAX - random.u32(..4),
        4 => {
            let page = &pages[random.usize(..pages.len())].1;
            let at = random.usize(..PAGE / 4) * 4;
            u32::from_ne_bytes(page[at..at + 4].try_into().unwrap())
        }
        _ => anything,
    }
}

/// A space with a bit of everything: indexes, rings, large tuples, waiters, tuples that are held, or that have terms.
fn prepare(scratch: &Scratch) {
    let child = fork(|| {
        let engine = scratch.attach("whole", true).unwrap();
        for number in 0..150_i64 {
            engine.put(&[Field::Str("job"), Field::Int(number % 50), Field::Int(number)]).unwrap();
            engine
                .put(&[
                    Field::Int(number),
                    Field::Str(&"text".repeat(usize::try_from(number % 9).unwrap())),
                ])
                .unwrap();
        }
        for number in 0..4 {
            engine.put(TupleRef::entry(class(), &[Field::Int(number), Field::Str("old")])).unwrap();
            engine.put(&[Field::Int(number), Field::Bytes(&vec![7; 20_000])]).unwrap();
        }
        for _ in 0..10 {
            for template in [
                [ANY, INT, PatternRef::Actual(Field::Int(149))],
                [ANY, PatternRef::Actual(Field::Int(49)), INT],
            ] {
                let kinds = [PatternRef::Kinds(KindSet::of(Kind::Str)), template[1], template[2]];
                let _ = engine.try_read(&[TemplateRef::new(&kinds)], Order::Fifo, size);
            }
        }
        let int_seven = [PatternRef::Actual(Field::Int(7))];
        let narrow = engine.waiter(&[TemplateRef::new(&int_seven)], Want::Take).unwrap();
        let wide = engine.waiter(&[TemplateRef::new(&[ANY, ANY, ANY, ANY])], Want::Take).unwrap();
        let held = engine.waiter(&[TemplateRef::new(&[INT, BYTES])], Want::Take).unwrap();
        hold_several(&engine).unwrap();
        engine.check().unwrap();
        // What a process leaves that ends without a word.
        std::mem::forget((narrow, wide, held));
    });
    assert_eq!(child.wait(), Exit::Done);
}

const LONG: Duration = Duration::from_secs(3600);
const ANY_TASK: [PatternRef<'static>; 2] = [PatternRef::Kinds(KindSet::of(Kind::Bool)), INT];

fn task(number: i64) -> [Field<'static>; 2] {
    [Field::Bool(true), Field::Int(number)]
}

/// Leaves tuples with leases, tuples that are not there yet, claims, dead letters, an open transaction and a
/// subscription to all that.
fn hold_several(engine: &Arc<Engine>) -> Result<(), Error> {
    let tasks = [TemplateRef::new(&ANY_TASK)];
    let subscription = engine.subscribe(&tasks, &SubscribeTerms::new(EventKind::ALL, 100))?;
    for number in 0..40 {
        let later = LONG * u32::try_from(number).unwrap();
        let (lease, after) = (Some(LONG + later), (number % 4 == 3).then_some(LONG + later));
        engine.put_leased(&task(number), &LeaseTerms { lease, after })?;
    }
    for _ in 0..5 {
        let terms = ClaimTerms { ttl: LONG, attempts_max: Some(1) };
        if let Some((claim, _)) = engine.try_claim(&tasks, Order::Fifo, &terms, size)? {
            claim.abort("a reason to be kept")?;
        }
        std::mem::forget(engine.try_claim(&tasks, Order::Lifo, &terms, size)?);
    }
    let mut transaction = Transaction::begin([Arc::clone(engine)], LONG)?;
    transaction.try_take(0, &tasks, Order::Fifo, size)?;
    transaction.try_read(0, &tasks, Order::Fifo, size)?;
    transaction.put(0, &task(100))?;
    std::mem::forget((subscription, transaction));
    Ok(())
}

/// Uses what [`hold_several`] has left, and more of the kind.
fn do_with_what_is_held(engine: &Arc<Engine>, other: &Arc<Engine>) -> [Step<'static>; 8] {
    let step = |act: fn(&Arc<Engine>, &Arc<Engine>) -> Result<(), Error>| -> Step<'static> {
        let (engine, other) = (Arc::clone(engine), Arc::clone(other));
        Box::new(move || act(&engine, &other))
    };
    [
        step(|engine, _| {
            let at_once = Some(Duration::from_millis(1));
            let lease = engine.put_leased(&task(7), &LeaseTerms { lease: at_once, after: None })?;
            engine.renew(&lease, Some(LONG))?;
            engine.cancel(&lease)
        }),
        step(|engine, _| {
            for terms in [(None, Some(Duration::from_millis(1))), (Some(LONG), None)] {
                let terms = LeaseTerms { lease: terms.0, after: terms.1 };
                engine.put_leased(&task(8), &terms)?;
            }
            Ok(())
        }),
        step(|engine, _| {
            let Some(claim) = claim_task(engine, None)? else { return Ok(()) };
            claim.extend(LONG)?;
            claim.done(&[(&task(9)).into(), (&[Field::Int(9)]).into()])
        }),
        step(|engine, _| {
            claim_task(engine, Some(1))?.map_or(Ok(()), |claim| claim.abort("once more"))
        }),
        step(|engine, _| {
            // Its end comes while other steps are done.
            std::mem::forget(claim_task(engine, None)?);
            Ok(())
        }),
        step(|engine, _| {
            let tasks = [TemplateRef::new(&ANY_TASK)];
            engine.dead(&tasks, |tuple, _| size(tuple))?;
            engine.requeue(&tasks).map(drop)
        }),
        step(|engine, other| {
            let tasks = [TemplateRef::new(&ANY_TASK)];
            let both = [Arc::clone(engine), Arc::clone(other)];
            let mut transaction = Transaction::begin(both, LONG)?;
            transaction.try_read(0, &tasks, Order::Fifo, size)?;
            transaction.try_take(0, &tasks, Order::Lifo, size)?;
            transaction.put(0, &task(10))?;
            transaction.put(1, &task(10))?;
            transaction.commit()
        }),
        step(|engine, _| {
            let tasks = [TemplateRef::new(&ANY_TASK)];
            let terms = SubscribeTerms::new(EventKind::ALL, 3);
            let subscription = engine.subscribe(&tasks, &terms)?;
            for number in 0..5 {
                engine.put(&task(number))?;
            }
            while subscription.try_next(|event| size(event.tuple))?.is_some() {}
            Ok(())
        }),
    ]
}

fn claim_task(engine: &Arc<Engine>, attempts_max: Option<u32>) -> Result<Option<Claim>, Error> {
    let terms = ClaimTerms { ttl: Duration::from_millis(1), attempts_max };
    let claimed = engine.try_claim(&[TemplateRef::new(&ANY_TASK)], Order::Fifo, &terms, size)?;
    Ok(claimed.map(|(claim, _)| claim))
}

/// Something that can be done with a space.
type Step<'s> = Box<dyn Fn() -> Result<(), Error> + 's>;

#[expect(clippy::unnecessary_wraps, reason = "a visitor")]
fn size(tuple: TupleView<'_>) -> Result<usize, Error> {
    Ok(tuple.fields().map(|field| format!("{field:?}").len()).sum())
}

/// Joins the wait queue, and picks up what is there.
fn wait(engine: &Arc<Engine>, template: &[PatternRef<'_>], want: Want) -> Result<(), Error> {
    let waiter = engine.waiter(&[TemplateRef::new(template)], want)?;
    if waiter.wait(Some(Duration::ZERO))? && matches!(want, Want::Take | Want::Read) {
        waiter.finish(size)?;
    }
    Ok(())
}

/// Puts tuples of several shapes, one of them an entry.
fn put_several(engine: &Engine, job: &[Field<'_>]) -> Result<(), Error> {
    let entry = TupleRef::entry(class(), &[Field::Int(7), Field::Str("new")]);
    engine.put_all(&[job.into(), (&[Field::Int(1)]).into(), (&[Field::Null]).into(), entry])?;
    Ok(())
}

fn class() -> &'static Class {
    Class::new("Job", ["Base"], ["id", "status"]).unwrap()
}

/// Everything that can be done with a space, in some order: after the first damage that is found, all fail
/// alike. A stalled lock ends it, after its time. Returns whether damage was found.
fn do_everything(
    engine: &Arc<Engine>,
    other: &Arc<Engine>,
    random: &mut Random,
) -> Result<bool, Error> {
    let job = |key: i64| [Field::Str("job"), Field::Int(key), Field::Int(key)];
    let everything = TemplateRef::beginning(&[]);
    let str_any = PatternRef::Kinds(KindSet::of(Kind::Str));
    let by_key = move |key: i64| [str_any, PatternRef::Actual(Field::Int(key)), INT];
    let by_value = move |key: i64| [str_any, INT, PatternRef::Actual(Field::Int(key))];
    let mut steps: Vec<Step<'_>> = do_with_what_is_held(engine, other).into();
    steps.push(Box::new(|| engine.stat().map(drop)));
    steps.push(Box::new(|| engine.check().map(drop)));
    for key in [3, 49, 1000] {
        for order in
            [Order::Fifo, Order::Lifo, Order::Random, Order::Any, Order::Max(2), Order::Min(1)]
        {
            steps.push(Box::new(move || {
                engine.try_read(&[TemplateRef::new(&by_key(key))], order, size)?;
                engine.try_take(&[TemplateRef::new(&by_value(key))], order, size)?;
                Ok(())
            }));
        }
        steps.push(Box::new(move || engine.put(&job(key))));
        steps.push(Box::new(move || {
            engine.try_swap(&[TemplateRef::new(&by_key(key))], &job(key), size).map(drop)
        }));
        steps.push(Box::new(move || {
            engine.put_if_absent(&job(key), &[TemplateRef::new(&by_key(key))]).map(drop)
        }));
    }
    steps.push(Box::new(|| engine.sweep()));
    for template in [[ANY, ANY], [INT, BYTES]] {
        for want in [Want::Take, Want::Read, Want::Put, Want::Removal] {
            steps.push(Box::new(move || wait(engine, &template, want)));
        }
    }
    steps.push(Box::new(|| engine.put(&[Field::Int(7)])));
    steps.push(Box::new(|| engine.put(&[Field::Null, Field::Int(7), Field::Null, Field::Null])));
    steps.push(Box::new(|| engine.put(&[Field::Int(7), Field::Bytes(&vec![1; 100_000])])));
    steps.push(Box::new(|| put_several(engine, &job(1))));
    steps.push(Box::new(move || engine.count(&[everything]).map(drop)));
    steps.push(Box::new(move || engine.present(&[everything]).map(drop)));
    steps.push(Box::new(move || engine.read_all(&[everything], None, size).map(drop)));
    steps.push(Box::new(|| {
        let mut scan = engine.scan("...".parse().unwrap());
        while !scan.next_batch(100, size)?.is_empty() {}
        Ok(())
    }));
    steps.push(Box::new(move || engine.copy_to(other, &[everything]).map(drop)));
    for _ in 0..30 {
        steps.push(Box::new(move || {
            engine.try_read(
                &[TemplateRef::new(&[INT, PatternRef::Actual(Field::Str("x"))])],
                Order::Fifo,
                size,
            )?;
            Ok(())
        }));
    }
    steps.push(Box::new(|| {
        engine.try_take_many(&[TemplateRef::new(&[INT, ANY])], 3, 30, size).map(drop)
    }));
    steps.push(Box::new(move || engine.move_to(other, &[TemplateRef::new(&by_key(4))]).map(drop)));
    steps.push(Box::new(move || engine.take_all(&[everything], None, size).map(drop)));
    steps.push(Box::new(|| engine.put(&job(5))));
    let mut is_found = false;
    while !steps.is_empty() {
        let step = steps.swap_remove(random.usize(..steps.len()));
        is_found |= found_damage(step())?;
    }
    Ok(is_found)
}

/// Whether a step has found damage.
///
/// # Errors
///
/// That somebody holds a lock and does not go on.
fn found_damage(step: Result<(), Error>) -> Result<bool, Error> {
    match step {
        Err(Error::Memory(error)) if matches!(*error, tupelo_shm::Error::Stalled { .. }) => {
            Err(Error::Memory(error))
        }
        Err(Error::Memory(error)) => Ok(matches!(*error, tupelo_shm::Error::Corrupted { .. })),
        _ => Ok(false),
    }
}

#[test]
fn a_damaged_space_answers_and_never_crashes() {
    let scratch = Scratch::new();
    prepare(&scratch);
    let image = Image::of(&scratch.directory().path_of("whole").unwrap());
    let rounds = if thorough() { 2_000 } else { 120 };
    let seed = seed();
    let found = shared_words(4);
    for round in 0..rounds {
        let seed = seed.wrapping_add(round);
        let path = scratch.directory().path_of("damaged").unwrap();
        image.write_damaged(&path, &mut Random::with_seed(seed));
        let begin = Instant::now();
        let child = fork(|| {
            let count = |index: usize| {
                found[index].fetch_add(1, Ordering::Relaxed);
            };
            let other = scratch.attach("other", true).unwrap();
            match scratch.attach("damaged", false) {
                Err(_) => count(0),
                Ok(engine) => match do_everything(&engine, &other, &mut Random::with_seed(seed)) {
                    Ok(false) => count(1),
                    Ok(true) => count(2),
                    Err(_) => count(3),
                },
            }
        });
        let ended = child.wait();
        assert_eq!(ended, Exit::Done, "TUPELO_SEED={seed} shows it in its first round");
        if begin.elapsed() > Duration::from_secs(3) {
            eprintln!("seed {seed} took {:?}", begin.elapsed());
        }
        let _ = scratch.directory().remove("other");
    }
    let [refused, answered, noticed, stalled] =
        [0, 1, 2, 3].map(|index: usize| found[index].load(Ordering::Relaxed));
    eprintln!(
        "{refused} refused at once, {answered} answered, {noticed} noticed, {stalled} with a lock of the living"
    );
    assert!(noticed > 0, "that something can not be is seen");
}

/// Makes every word of a file that looks like a reference to a record lead out of the segment.
fn lead_astray(path: &PathBuf) {
    let image = Image::of(path);
    let file = File::options().read(true).write(true).open(path).unwrap();
    // Where the segment says how much of it is in use, in granules: no reference leads beyond.
    let mut used = [0; 4];
    file.read_exact_at(&mut used, 256).unwrap();
    let used = u64::from(u32::from_ne_bytes(used)) * 64;
    let (first, last) = (used - SIZE_BYTES, used);
    for (offset, page) in image.pages.iter().filter(|(offset, _)| *offset >= FIRST_DAMAGED) {
        for (index, word) in page.chunks_exact(4).enumerate() {
            let at = u64::from(u32::from_ne_bytes(word.try_into().unwrap())) * 64;
            if (first..last).contains(&at) {
                file.write_all_at(&[0xf0, 0xff, 0xff, 0x7f], offset + 4 * index as u64).unwrap();
            }
        }
    }
}

fn is_damage<R: std::fmt::Debug>(result: Result<R, Error>) {
    let error = result.unwrap_err();
    let damage = matches!(&error, Error::Memory(error) if matches!(**error, tupelo_shm::Error::Corrupted { .. }));
    assert!(damage, "{error}");
}

#[test]
fn damage_that_one_call_finds_ends_every_later_call_of_everybody_c5() {
    let scratch = Scratch::new();
    let engine = scratch.attach("space", true).unwrap();
    let waiter = engine.waiter(&[TemplateRef::new(&[BYTES])], Want::Take).unwrap();
    engine.put(&[Field::Int(1), Field::Int(2)]).unwrap();
    lead_astray(&scratch.directory().path_of("space").unwrap());
    let two = [INT, INT];
    let template = [TemplateRef::new(&two)];
    // Another process finds it.
    let other = scratch.attach("space", false).unwrap();
    is_damage(other.try_take(&template, Order::Fifo, size));

    is_damage(engine.try_take(&template, Order::Fifo, size));
    is_damage(engine.try_read(&template, Order::Fifo, size));
    is_damage(engine.put(&[Field::Int(1)]));
    is_damage(engine.put(&[Field::Null, Field::Null]));
    is_damage(engine.try_take(&[TemplateRef::new(&[ANY, ANY, ANY])], Order::Fifo, size));
    is_damage(engine.try_read(&[TemplateRef::new(&[INT, INT, INT])], Order::Fifo, size));
    is_damage(engine.count(&[TemplateRef::new(&[ANY])]));
    is_damage(engine.waiter(&template, Want::Take));
    is_damage(waiter.wait(None));
    is_damage(engine.stat());
    is_damage(scratch.attach("space", false).map(drop));
}
