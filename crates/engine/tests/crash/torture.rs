//! Workers that do everything at once are killed and stopped at random. The laws hold after every kill (C1 to C3, K2 to
//! K5, L1, L3, L5, N1, N2, X1, X5, X7). They also hold in a space that is nearly always full, or whose file system is
//! (B1).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::shared::listener::Listener;
use crate::shared::timed::{claim_coin, let_all_brief_go, put_brief, requeue_coins};
use crate::shared::{BYTES, INT, STR, contents, int, shown, space, take, text};
use fastrand::Rng as Random;
use tupelo_crashtest::{
    Child, Exit, fork, seed, shared_words, torture_time, with_tiny_file_system,
};
use tupelo_engine::{Engine, Error, Order, Transaction, Want};
use tupelo_tuple::{Field, KindSet, PatternRef, TemplateRef, TupleView};

const ANY: PatternRef<'static> = PatternRef::Kinds(KindSet::ALL);
const WORKERS: usize = 4;
const KEYS: i64 = 8;
const TOKENS: i64 = 64;
const BYSTANDERS: i64 = 100;
/// Each has a number of its own, and goes from key to key in transactions and by claims only.
const COINS: i64 = 40;

/// How many jobs were put and taken, by those who lived to say so; and how often there was no room.
struct Books {
    words: &'static [AtomicU32],
}

impl Books {
    fn new() -> Self {
        Self { words: shared_words(3) }
    }

    fn put(&self) {
        self.words[0].fetch_add(1, Ordering::SeqCst);
    }

    fn taken(&self) {
        self.words[1].fetch_add(1, Ordering::SeqCst);
    }

    fn balance(&self) -> i64 {
        let [put, taken] = [0, 1].map(|index: usize| self.words[index].load(Ordering::SeqCst));
        i64::from(put) - i64::from(taken)
    }

    /// What a full space may say is noted; nothing else is said.
    fn or_full<R>(&self, result: Result<R, Error>) -> Option<R> {
        match result {
            Ok(result) => Some(result),
            Err(Error::SpaceFull(_)) => {
                self.words[2].fetch_add(1, Ordering::SeqCst);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn refused(&self) -> u32 {
        self.words[2].load(Ordering::SeqCst)
    }
}

fn work(engine: &Arc<Engine>, books: &Books, random: &mut Random) {
    let key = random.i64(0..KEYS);
    let job = [text("job"), int(key), ANY];
    match random.u64(..24) {
        0..=2 => {
            let value = random.i64(0..1_000);
            let fields = [Field::Str("job"), Field::Int(key), Field::Int(value)];
            books.or_full(engine.put(&fields)).inspect(|()| books.put());
        }
        3 | 4 => {
            let templates = [[text("job"), int(key), INT], job, [text("job"), INT, INT]];
            let template = templates[random.usize(..3)];
            let orders = [Order::Fifo, Order::Lifo, Order::Random, Order::Any, Order::Max(2)];
            let order = orders[random.usize(..5)];
            let taken =
                books.or_full(engine.try_take(&[TemplateRef::new(&template)], order, shown));
            taken.flatten().inspect(|_| books.taken());
        }
        5 | 6 => wait(engine, books, &[text("job"), int(key), INT], Want::Take, random),
        7 => wait(engine, books, &job, Want::Take, random),
        8 => wait(engine, books, &[text("token"), int(key), INT], Want::Read, random),
        9 | 10 => {
            // A token is always there, though never the same for long.
            let to = [Field::Str("token"), Field::Int(key), Field::Int(1)];
            let template = [text("token"), int(key), INT];
            books.or_full(engine.try_swap(&[TemplateRef::new(&template)], &to, shown));
        }
        11 => {
            let number = random.i64(0..1 << 40);
            let pair: [&[Field<'_>]; 2] =
                [&[Field::Int(number)], &[Field::Int(number), Field::Null]];
            books.or_full(engine.put_all(&pair));
        }
        12 => {
            let (left, right) = ([INT], [INT, ANY]);
            let both = [TemplateRef::new(&left), TemplateRef::new(&right)];
            books.or_full(engine.take_all(&both, None, shown));
        }
        13..=15 => transact(engine, random),
        16..=18 => {
            let keys = [(); 2].map(|()| random.i64(0..KEYS));
            claim_coin(engine, keys, random.u64(..));
        }
        19 | 20 => put_brief(engine, random.u64(..)),
        21 => requeue_coins(engine),
        22 => listen(engine, books, random),
        _ => {
            let bytes = vec![7; random.usize(..200_000)];
            books.or_full(engine.put(&[Field::Str("large"), Field::Bytes(&bytes)]));
            let template = [text("large"), BYTES];
            books.or_full(engine.try_take(&[TemplateRef::new(&template)], Order::Fifo, shown));
        }
    }
}

/// A transaction that gives coins other keys; it is committed, or given up, or its lease ends on the way.
fn transact(engine: &Arc<Engine>, random: &mut Random) {
    let ttl = Duration::from_millis(if random.u64(..4) == 0 { 1 } else { 3_600_000 });
    let mut transaction = Transaction::begin(vec![Arc::clone(engine)], ttl).unwrap();
    let moved = (0..=random.u64(..3)).try_for_each(|_| move_coin(&mut transaction, random));
    let ended = match moved {
        Ok(()) if random.u64(..4) > 0 => transaction.commit(),
        moved => moved,
    };
    match ended {
        Ok(()) | Err(Error::Aborted(_) | Error::SpaceFull(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

fn move_coin(transaction: &mut Transaction, random: &mut Random) -> Result<(), Error> {
    let [from, read, to] = [(); 3].map(|()| random.i64(0..KEYS));
    let orders = [Order::Fifo, Order::Lifo, Order::Random, Order::Any, Order::Max(2)];
    let order = orders[random.usize(..5)];
    let template = |key| [text("coin"), int(key), INT];
    if random.u64(..2) == 0 {
        transaction.try_read(0, &[TemplateRef::new(&template(read))], order, coin)?;
    }
    let taken = transaction.try_take(0, &[TemplateRef::new(&template(from))], order, coin)?;
    let Some(number) = taken else { return Ok(()) };
    transaction.put(0, &[Field::Str("coin"), Field::Int(to), Field::Int(number)])
}

/// The number of a coin.
#[expect(clippy::unnecessary_wraps, reason = "a visitor may refuse, and this one does not")]
fn coin(tuple: TupleView<'_>) -> Result<i64, Error> {
    match tuple.field(2) {
        Some(Field::Int(number)) => Ok(number),
        other => panic!("a coin with the number {other:?}"),
    }
}

/// The numbers of the coins that nobody holds.
fn coins(engine: &Engine) -> Vec<i64> {
    let template = [text("coin"), INT, INT];
    let mut numbers = engine.read_all(&[TemplateRef::new(&template)], None, coin).unwrap();
    numbers.sort_unstable();
    numbers
}

fn wait(
    engine: &Arc<Engine>,
    books: &Books,
    patterns: &[PatternRef<'_>],
    want: Want,
    random: &mut Random,
) {
    let Some(waiter) = books.or_full(engine.waiter(&[TemplateRef::new(patterns)], want)) else {
        return;
    };
    let timeout = Duration::from_micros(random.u64(..2_000));
    if waiter.wait(Some(timeout)).unwrap() && random.u64(..4) > 0 {
        waiter.finish(shown).unwrap();
        if want == Want::Take {
            books.taken();
        }
    }
}

/// Subscribes, to tuples of a shape or of several, and hears of its own put and take.
fn listen(engine: &Arc<Engine>, books: &Books, random: &mut Random) {
    let templates = [[text("heard"), INT, INT], [text("heard"), ANY, INT]];
    let template = templates[random.usize(..2)];
    let Some(mut listener) = books.or_full(Listener::new(engine, &template, 64)) else { return };
    let own = random.i64(..);
    let fields = [Field::Str("heard"), Field::Int(0), Field::Int(own)];
    if books.or_full(engine.put(&fields)).is_some() {
        listener.listen();
        let is_told = listener.knows_of(&format!("heard,0,{own}")) || listener.has_missed_some();
        assert!(is_told, "its put has returned");
        let here = [text("heard"), INT, int(own)];
        books.or_full(engine.try_take(&[TemplateRef::new(&here)], Order::Fifo, shown));
        listener.listen();
    }
}

/// Fills a space with what has to be there at the end, and at any time.
fn prepared(size_bytes: u64) -> Arc<Engine> {
    let engine = space(size_bytes);
    for number in 0..BYSTANDERS {
        engine.put(&[Field::Str("bystander"), Field::Str("of"), Field::Int(number)]).unwrap();
    }
    for number in 0..TOKENS {
        engine.put(&[Field::Str("token"), Field::Int(number % KEYS), Field::Int(0)]).unwrap();
    }
    for number in 0..COINS {
        engine.put(&[Field::Str("coin"), Field::Int(number % KEYS), Field::Int(number)]).unwrap();
    }
    engine
}

/// The laws that hold at any moment, whoever is doing what.
fn check_laws(engine: &Engine) {
    engine.check().unwrap();
    let count = |patterns: &[PatternRef<'_>]| engine.count(&[TemplateRef::new(patterns)]).unwrap();
    assert_eq!(count(&[text("bystander"), STR, INT]), BYSTANDERS.cast_unsigned());
    for key in 0..KEYS {
        let tokens = count(&[text("token"), int(key), INT]);
        assert_eq!(tokens, (TOKENS / KEYS).cast_unsigned(), "tokens of {key}");
    }
    let coins = coins(engine);
    assert!(coins.windows(2).all(|two| two[0] < two[1]), "a coin is there twice: {coins:?}");
    let (left, right) = ([INT], [INT, ANY]);
    let both = [TemplateRef::new(&left), TemplateRef::new(&right)];
    let pairs = engine.read_all(&both, None, shown).unwrap();
    let (left, mut right): (Vec<_>, Vec<_>) =
        pairs.into_iter().partition(|tuple| !tuple.contains(','));
    for tuple in &mut right {
        tuple.truncate(tuple.find(',').unwrap());
    }
    let sorted = |mut all: Vec<String>| {
        all.sort();
        all
    };
    assert_eq!(sorted(left), sorted(right), "each has its other half");
}

/// Kills and stops workers until the time is over, and after each death does something else. Returns how many were killed.
fn rage(engine: &Arc<Engine>, (books, seed): (&Books, u64), mut meanwhile: impl FnMut()) -> i64 {
    let time = time();
    let mut random = Random::with_seed(seed);
    let start = |number: u64| -> Child {
        let mut random = Random::with_seed(seed ^ number << 20);
        fork(|| {
            loop {
                work(engine, books, &mut random);
            }
        })
    };
    let mut number = 0;
    let mut next = || {
        number += 1;
        start(number)
    };
    let mut workers: Vec<Child> = (0..WORKERS).map(|_| next()).collect();
    let begin = Instant::now();
    let mut deaths = 0;
    while begin.elapsed() < time {
        std::thread::sleep(Duration::from_micros(random.u64(..12_000)));
        let victim = random.usize(..WORKERS);
        if random.u64(..3) == 0 {
            workers[victim].signal(libc_stop::STOP);
            std::thread::sleep(Duration::from_micros(random.u64(..10_000)));
            if random.u64(..2) == 0 {
                workers[victim].signal(libc_stop::CONTINUE);
                continue;
            }
        }
        let ended = workers.swap_remove(victim).kill();
        assert_eq!(ended, Exit::Killed(9), "a worker failed");
        deaths += 1;
        engine.sweep().unwrap();
        check_laws(engine);
        meanwhile();
        workers.push(next());
    }
    for worker in workers {
        assert_eq!(worker.kill(), Exit::Killed(9), "a worker failed");
        deaths += 1;
    }
    deaths
}

/// Lets all that is not for ever come to its end.
fn settle(engine: &Engine) {
    let_all_brief_go(engine);
    requeue_coins(engine);
    check_laws(engine);
}

/// The signals, by their numbers on this platform.
mod libc_stop {
    pub(crate) const STOP: i32 = 19;
    pub(crate) const CONTINUE: i32 = 18;
}

/// How long workers are killed; the long form of the tests says.
fn time() -> Duration {
    torture_time().unwrap_or(Duration::from_secs(5))
}

#[test]
fn nothing_is_lost_or_doubled_while_workers_die_at_random() {
    let (engine, books) = (prepared(64 << 20), Books::new());
    let template = [text("coin"), INT, INT];
    let all = engine.read_all(&[TemplateRef::new(&template)], None, shown).unwrap();
    // One that selects a shape, and one that spans several. Nothing has happened yet that they have not heard.
    let listener = |second| Listener::new(&engine, &[text("coin"), second, INT], 1 << 15).unwrap();
    let mut listeners = [INT, ANY].map(listener);
    for listener in &mut listeners {
        listener.begin_with(&all);
    }
    let deaths =
        rage(&engine, (&books, seed()), || listeners.iter_mut().for_each(Listener::listen));
    engine.sweep().unwrap();
    check_laws(&engine);
    settle(&engine);
    let report = engine.check().unwrap();
    assert_eq!((report.held(), report.waiters), (0, 0), "nobody is left");
    assert_eq!(report.subscriptions, 2, "nobody else is left who listens");
    let mut all = engine.read_all(&[TemplateRef::new(&template)], None, shown).unwrap();
    all.sort();
    for listener in &mut listeners {
        assert_eq!(listener.contents().as_ref(), Some(&all), "what was heard is what there is");
    }
    assert_eq!(coins(&engine), (0..COINS).collect::<Vec<_>>(), "none is lost");
    // Each of the dead may have put or taken one job without telling.
    let jobs = engine.count(&[TemplateRef::new(&[text("job"), INT, INT])]).unwrap();
    let difference = i64::try_from(jobs).unwrap() - books.balance();
    assert!(difference.abs() <= deaths, "{difference} jobs too many, after {deaths} deaths");
    eprintln!("{deaths} deaths, {jobs} jobs left, off by {difference}");
}

/// Fills what is left, down to the last granules; now and then, takes some of that away again.
fn fill(engine: &Engine, random: &mut Random) {
    if random.u64(..4) == 0 {
        for _ in 0..random.u64(..40) {
            take(engine, &[INT, INT, INT, BYTES]);
        }
        return;
    }
    for bytes in [20_000, 1_000, 10] {
        let bytes = vec![7; bytes];
        let filler = [Field::Int(1), Field::Int(2), Field::Int(3), Field::Bytes(&bytes)];
        loop {
            match engine.put(&filler) {
                Ok(()) => {}
                Err(Error::SpaceFull(_)) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Kills workers in a space that is full, nearly always. What is left is whole, and can be used.
fn rage_in_full(engine: &Arc<Engine>, seed: u64) {
    let (books, mut random) = (Books::new(), Random::with_seed(!seed));
    fill(engine, &mut random);
    let deaths = rage(engine, (&books, seed), || fill(engine, &mut random));
    let refused = i64::from(books.refused());
    assert!(refused > deaths, "refused {refused} times, in {deaths} lives");
    check_after_full(engine);
}

/// What is to be so once workers have died in a space that was full.
fn check_after_full(engine: &Arc<Engine>) {
    engine.sweep().unwrap();
    check_laws(engine);
    settle(engine);
    assert_eq!(coins(engine), (0..COINS).collect::<Vec<_>>(), "none is lost");
    // All that was put can be taken, and its room used for something else.
    let everything = TemplateRef::beginning(&[]);
    while engine.try_take(&[everything], Order::Any, shown).unwrap().is_some() {}
    assert_eq!(contents(engine), Vec::<String>::new());
    engine.check().unwrap();
    engine.put(&[Field::Str("large"), Field::Bytes(&vec![7; 1 << 18])]).unwrap();
    assert!(take(engine, &[STR, BYTES]).is_some());
}

#[test]
fn a_full_space_stays_whole_while_workers_die_at_random() {
    rage_in_full(&prepared(2 << 20), seed() + 1);
}

#[test]
fn a_space_on_a_full_file_system_stays_whole_while_workers_die_at_random() {
    let seed = seed() + 2;
    with_tiny_file_system(Path::new("/dev/shm"), 4 << 20, || {
        rage_in_full(&prepared(64 << 20), seed);
    });
}
