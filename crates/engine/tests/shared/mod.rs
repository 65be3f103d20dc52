//! A space for crash tests: shared by forked processes, put back before every kill, checked after it.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod both;
pub(crate) mod listener;
pub(crate) mod pair;
pub(crate) mod timed;

use std::sync::Arc;

use tupelo_crashtest::{Death, Experiment, Region, Script, Summary, thorough};
use tupelo_engine::{CreateOptions, Engine, Error, Limits, Order, Report};
use tupelo_shm::{Directory, Mapping, Memory, Segment};
use tupelo_tuple::{Field, Kind, KindSet, PatternRef, TemplateRef, TupleView};

/// Kills per script in an ordinary run, at instructions of which others see something.
const KILLS: usize = 12;
/// The same in a thorough one: more than any script has.
const KILLS_THOROUGH: usize = 10_000;
/// Deaths of the first process in an ordinary double kill.
const FIRST_KILLS: usize = 2;
/// Deaths of its recoverer for each of them.
const SECOND_KILLS: usize = 6;
/// The same in a thorough one, evenly spread: every pair would be hours of kills, which runs of several phases come to.
pub(crate) const FIRST_KILLS_THOROUGH: usize = 20;
pub(crate) const SECOND_KILLS_THOROUGH: usize = 60;
/// Times that a script is recorded.
pub(crate) const RECORDINGS_MAX: usize = 5;

/// An engine over shared memory without a name: nothing is left of it after the test.
pub(crate) fn space(size_bytes: u64) -> Arc<Engine> {
    space_within(&Limits { size_bytes, ..Limits::default() })
}

/// As [`space`], for at most so many tuples.
pub(crate) fn space_for(size_bytes: u64, tuples_max: Option<u64>) -> Arc<Engine> {
    space_within(&Limits { size_bytes, tuples_max, ..Limits::default() })
}

/// As [`space`], with these limits.
pub(crate) fn space_within(limits: &Limits) -> Arc<Engine> {
    let reserve_bytes = Engine::reserve_bytes(limits.size_bytes);
    space_of(reserve_bytes, |mapping| Engine::initialise(mapping, limits))
}

/// As [`space`], where this process keeps the keys of requests.
pub(crate) fn space_with_keys(size_bytes: u64) -> Arc<Engine> {
    let engine = Arc::into_inner(space(size_bytes)).unwrap();
    Arc::new(engine.keeping_keys().unwrap())
}

/// As [`space`], with a journal of so many bytes.
pub(crate) fn space_journalled(size_bytes: u64, journal_bytes: u64) -> Arc<Engine> {
    let limits = Limits { size_bytes, ..Limits::default() };
    space_of(Engine::reserve_bytes_journalled(size_bytes, journal_bytes), |mapping| {
        Engine::initialise_journalled(mapping, &limits, journal_bytes)
    })
}

fn space_of(
    reserve_bytes: usize,
    initialise: impl Fn(&Mapping) -> Result<(), tupelo_shm::Error>,
) -> Arc<Engine> {
    let (directory, layout) = (Directory::default(), Engine::segment_layout());
    let options = create_options(reserve_bytes);
    registered(Segment::nameless(&directory, &options, &layout, initialise).unwrap())
}

/// As [`space`], with a name, as a commit over several spaces needs it. Whoever calls it removes the name.
pub(crate) fn named_space(size_bytes: u64, name: &str) -> Arc<Engine> {
    let limits = Limits { size_bytes, ..Limits::default() };
    let (directory, layout) = (Directory::default(), Engine::segment_layout());
    let options = create_options(Engine::reserve_bytes(size_bytes));
    let initialise = |mapping: &Mapping| Engine::initialise(mapping, &limits);
    let segment = Segment::create_or_attach(&directory, name, &options, &layout, initialise);
    registered(segment.unwrap())
}

fn create_options(reserve_bytes: usize) -> CreateOptions {
    CreateOptions {
        reserve_bytes,
        initial_commit_bytes: 0,
        create: true,
        fresh: false,
        mode: 0o600,
    }
}

fn registered(segment: Segment) -> Arc<Engine> {
    let engine = Arc::new(Engine::new(segment).unwrap());
    // Registers this thread, which is to be no part of the experiment, and grows the space: that reads
    // files of the system, which takes another path each time.
    engine.put(&[]).unwrap();
    assert_eq!(take(&engine, &[]), Some(String::new()));
    engine
}

/// The memory of `engine`.
pub(crate) fn region(engine: &Engine) -> Region {
    Region::of(engine.segment().mapping())
}

// --- operations on small tuples ----------------------------------------------------------------------

/// A pattern for any value of one kind.
pub(crate) const INT: PatternRef<'static> = PatternRef::Kinds(KindSet::of(Kind::Int));
pub(crate) const STR: PatternRef<'static> = PatternRef::Kinds(KindSet::of(Kind::Str));
pub(crate) const BYTES: PatternRef<'static> = PatternRef::Kinds(KindSet::of(Kind::Bytes));
pub(crate) const FLOAT: PatternRef<'static> = PatternRef::Kinds(KindSet::of(Kind::Float));

/// A pattern for one integer.
pub(crate) fn int(value: i64) -> PatternRef<'static> {
    PatternRef::Actual(Field::Int(value))
}

/// A pattern for one text.
pub(crate) fn text(value: &str) -> PatternRef<'_> {
    PatternRef::Actual(Field::Str(value))
}

/// Blocks of 128 bytes in the first slab of a shape, of 4 KiB.
pub(crate) const BLOCKS_OF_SLAB: i64 = 31;
/// Blocks of 128 bytes in an extent, as each further slab is one.
pub(crate) const BLOCKS_OF_EXTENT: i64 = 512;

/// A tuple `(key, value)`, of the shape that most scripts use.
pub(crate) fn put(engine: &Engine, key: i64, value: i64) {
    engine.put(&[Field::Int(key), Field::Int(value)]).unwrap();
}

/// Takes a match as text.
pub(crate) fn take(engine: &Engine, patterns: &[PatternRef<'_>]) -> Option<String> {
    engine.try_take(&[TemplateRef::new(patterns)], Order::Fifo, shown).unwrap()
}

/// Reads a match as text.
pub(crate) fn read(engine: &Engine, patterns: &[PatternRef<'_>]) -> Option<String> {
    engine.try_read(&[TemplateRef::new(patterns)], Order::Fifo, shown).unwrap()
}

/// A tuple as text. Long bytes are checked to be all the same, and shown as their number.
#[expect(clippy::unnecessary_wraps, reason = "a visitor")]
pub(crate) fn shown(tuple: TupleView<'_>) -> Result<String, Error> {
    let fields = tuple.fields().map(|field| match field {
        Field::Int(value) => value.to_string(),
        Field::Float(value) => format!("{value:?}"),
        Field::Str(value) => value.to_owned(),
        Field::Bytes(value) => {
            assert!(value.windows(2).all(|pair| pair[0] == pair[1]), "torn bytes");
            format!("{}x{:?}", value.len(), value.first())
        }
        other => format!("{other:?}"),
    });
    Ok(fields.collect::<Vec<_>>().join(","))
}

/// All tuples that can be found, shape by shape, oldest first.
pub(crate) fn contents(engine: &Engine) -> Vec<String> {
    let everything = TemplateRef::beginning(&[]);
    engine.read_all(&[everything], None, shown).unwrap()
}

/// Looks for what is there, so often that an index over the fields that `patterns` fix is learned.
pub(crate) fn learn(engine: &Engine, patterns: &[PatternRef<'_>]) {
    let indexes =
        |report: Report| report.shapes.iter().map(|shape| shape.indexes.len()).sum::<usize>();
    let before = indexes(engine.check().unwrap());
    for _ in 0..200 {
        let _ = read(engine, patterns);
        if indexes(engine.check().unwrap()) > before {
            return;
        }
    }
    panic!("nothing was learned");
}

// --- experiments -------------------------------------------------------------------------------------

/// What a process finds in a space that one died in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) tuples: Vec<String>,
    pub(crate) report: Report,
}

impl Found {
    /// Extents in use. A shape of its own, which [`arrive`] may have put, shares one.
    pub(crate) fn extents_owned(&self) -> u64 {
        self.report.extents_owned
    }
}

/// How the survivors come by: at once with the sweep, or first with work of their own that meets what the
/// dead one left. Both must do; which of them a kill gets is drawn by its number.
fn arrive(engine: &Engine, death: Death) {
    let draw = (death.steps as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62;
    if draw & 1 == 1 {
        // A shape of its own: takes a new entry in the registry, and a small slab.
        engine.put(&[Field::Float(0.5)]).unwrap();
        assert_eq!(take(engine, &[FLOAT]), Some("0.5".into()));
    }
    if draw & 2 == 2 {
        // Before anything was swept, the space is sound as well.
        engine.check().unwrap();
    }
    engine.sweep().unwrap();
}

/// Cleans up and checks. Returns what is there.
pub(crate) fn recovered(engine: &Engine, death: Death) -> Found {
    arrive(engine, death);
    let report = engine.check().unwrap();
    Found { tuples: contents(engine), report }
}

/// Puts and takes in every way, to show that the space is as good as before (rule C1).
pub(crate) fn use_it(engine: &Engine) {
    let before = contents(engine);
    for round in 0..40 {
        put(engine, 1_000_000 + round % 7, round);
    }
    for round in (0..40).rev() {
        let template = [int(1_000_000 + round % 7), int(round)];
        assert_eq!(take(engine, &template), Some(format!("{},{round}", 1_000_000 + round % 7)));
    }
    let large = vec![7; 70_000];
    engine.put(&[Field::Str("use"), Field::Bytes(&large)]).unwrap();
    assert_eq!(take(engine, &[text("use"), BYTES]), Some("use,70000xSome(7)".into()));
    assert_eq!(contents(engine), before);
    engine.check().unwrap();
}

/// An experiment on the memory of `engine`, with deaths that leave different things.
pub(crate) fn experiment(engine: &Engine) -> Experiment {
    Experiment::new(region(engine)).with_named_deaths()
}

/// Makes an experiment, and makes it again while more than a few of its kills miss their instruction. If a sweep is
/// due, or time has passed, while a script is recorded, the script takes another path than those that will be killed.
pub(crate) fn hitting(experiment: impl Fn() -> Summary) -> Summary {
    for _ in 0..RECORDINGS_MAX {
        let summary = experiment();
        eprintln!("{summary:?}");
        if summary.missed <= 1 + summary.kills / 10 {
            return summary;
        }
    }
    panic!("every run takes another path");
}

/// Kills a process inside `script` again and again; each time a survivor cleans up, checks the space, and
/// `judge`s what is there, given whether the script had ended.
pub(crate) fn kill_everywhere(
    engine: &Arc<Engine>,
    script: impl Fn(&Arc<Engine>),
    judge: impl Fn(Found, bool),
) -> Summary {
    let script = Script::new(
        || {
            // Registers the process.
            engine.check().unwrap();
            Arc::clone(engine)
        },
        |engine| script(engine),
    );
    let check = |death: Death| {
        let found = recovered(engine, death);
        judge(found, death.steps == death.of);
        use_it(engine);
    };
    let kills = if thorough() { KILLS_THOROUGH } else { KILLS };
    let experiment = experiment(engine).with_kills(kills);
    hitting(|| experiment.kill_at_every_instruction(&script, check))
}

/// As [`one_of`], where the only legal states are what is there before, and `after`.
pub(crate) fn either(
    engine: &Arc<Engine>,
    script: impl Fn(&Arc<Engine>),
    after: &[&str],
) -> Summary {
    let before = contents(engine);
    one_of(engine, script, &[before, after.iter().map(ToString::to_string).collect()])
}

/// As [`kill_everywhere`], and once more with the one killed, too, that sweeps after the first death; the contents are one of
/// `legal`, and at the end the last of them.
pub(crate) fn one_of(
    engine: &Arc<Engine>,
    script: impl Fn(&Arc<Engine>),
    legal: &[Vec<String>],
) -> Summary {
    kill_once_and_twice(engine, script, is_one_of(legal))
}

/// The judge of [`one_of`].
fn is_one_of(legal: &[Vec<String>]) -> impl Fn(Found, bool) {
    move |found, ended| {
        assert_eq!(found.report.held(), 0, "nobody is left to hold anything");
        if ended {
            assert_eq!(&found.tuples, legal.last().unwrap());
        } else {
            assert!(legal.contains(&found.tuples), "{:?} is not one of {legal:?}", found.tuples);
        }
    }
}

/// As [`kill_everywhere`], and once more with the one killed, too, that sweeps after the first death: what is legal after one death
/// is legal after both.
pub(crate) fn kill_once_and_twice(
    engine: &Arc<Engine>,
    script: impl Fn(&Arc<Engine>),
    judge: impl Fn(Found, bool),
) -> Summary {
    kill_twice(engine, &script, |engine| engine.sweep().unwrap(), &judge);
    kill_everywhere(engine, script, judge)
}

/// Registers this thread as a user of `engine`, who has been nowhere yet: what a dead process left is left.
pub(crate) fn register(engine: &Engine) {
    Memory::new(engine.segment().mapping().clone()).thread().unwrap();
}

/// Kills a process inside `script`, then the one that does `recoverer`'s work after it, then judges.
pub(crate) fn kill_twice(
    engine: &Arc<Engine>,
    script: impl Fn(&Arc<Engine>),
    recoverer: impl Fn(&Arc<Engine>),
    judge: impl Fn(Found, bool),
) -> Summary {
    let come = || {
        engine.check().unwrap();
        Arc::clone(engine)
    };
    // Not with a check: that would restore what the recoverer is to be killed over.
    let come_after = || {
        register(engine);
        Arc::clone(engine)
    };
    let worker = Script::new(come, |engine| script(engine));
    let recoverer = Script::new(come_after, |engine| recoverer(engine));
    let (first, second) = if thorough() {
        (FIRST_KILLS_THOROUGH, SECOND_KILLS_THOROUGH)
    } else {
        (FIRST_KILLS, SECOND_KILLS)
    };
    let experiment = experiment(engine).with_kills(first).with_recoverer_kills(second).centred();
    let check = |first: Death, second: Death| {
        let found = recovered(engine, second);
        judge(found, first.steps == first.of);
        use_it(engine);
    };
    hitting(|| experiment.double_kill(&worker, &recoverer, || true, check))
}
