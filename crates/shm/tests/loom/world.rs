//! The lock's environment, in a few words: one lock line, a pair that it protects, an undo log per thread, and a
//! kernel. The kernel lets threads sleep on a word, wakes them, and settles the lock of a dead thread.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};

use crate::lock;

/// The scope of the only lock.
pub(crate) const SCOPE: u32 = 1;
const OWNER_DIED: u32 = 0x4000_0000;
const TID: u32 = 0x3fff_ffff;
const THREADS_MAX: usize = 10;

/// What the threads of one run share. Lives as long as the test program, in place of a mapping.
#[derive(Clone, Copy)]
pub(crate) struct World(&'static Shared);

struct Shared {
    line: [AtomicU32; 3],
    pair: [AtomicU32; 2],
    logs: [Log; THREADS_MAX],
    dead: AtomicU32,
}

/// The log of a section that counts the pair up: how many entries it has, and the value that both had.
struct Log {
    count: AtomicU32,
    old: AtomicU32,
}

/// Who sleeps, in the order of coming, by numbers; and the next number. All sleep on the one lock word.
struct Kernel {
    sleepers: Mutex<(Vec<u32>, u32)>,
    changed: Condvar,
}

loom::lazy_static! {
    static ref KERNEL: Kernel =
        Kernel { sleepers: Mutex::new((Vec::new(), 0)), changed: Condvar::new() };
}

/// Whether a thread ends on its own.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    Lives,
    /// Is killed after so many steps.
    DiesAfter(usize),
}

/// What unwinds a thread that is killed.
struct Killed;

loom::thread_local! {
    /// Steps until this thread is killed.
    static LEFT: Cell<Option<usize>> = Cell::new(None);
    /// Whether the pending slot of its robust list names the lock.
    static PENDING: Cell<bool> = Cell::new(false);
}

/// Between any two steps a thread may be killed.
fn step() {
    LEFT.with(|left| match left.get() {
        Some(0) => {
            left.set(None);
            resume_unwind(Box::new(Killed))
        }
        Some(steps) => left.set(Some(steps - 1)),
        None => {}
    });
}

impl World {
    pub(crate) fn new() -> Self {
        let word = || AtomicU32::new(0);
        let shared = Shared {
            line: [word(), word(), word()],
            pair: [word(), word()],
            logs: std::array::from_fn(|_| Log { count: word(), old: word() }),
            dead: word(),
        };
        Self(Box::leak(Box::new(shared)))
    }

    pub(crate) fn view(self) -> access::View<'static> {
        access::View { world: self, lives: std::marker::PhantomData }
    }

    /// The pair, which nobody changes.
    pub(crate) fn pair(self) -> (u32, u32) {
        assert_eq!(self.0.line[0].load(Ordering::SeqCst) & TID, 0, "nobody is inside");
        self.racing_pair()
    }

    /// The pair, which somebody may change.
    pub(crate) fn racing_pair(self) -> (u32, u32) {
        let [left, right] = &self.0.pair;
        (left.load(Ordering::Relaxed), right.load(Ordering::Relaxed))
    }

    pub(crate) fn has_dead(self) -> bool {
        self.0.dead.load(Ordering::SeqCst) != 0
    }

    /// Counts the pair up inside a section. Returns only if it was committed before the end.
    fn count_up(self, number: u32, committed: &Cell<bool>) {
        let memory = memory::Memory(self);
        let thread = thread::Thread { tid: number, world: self, lives: std::marker::PhantomData };
        let line = lock::line(&self.view(), SCOPE).unwrap();
        lock::acquire(&memory, thread, line).unwrap();
        let log = &self.0.logs[number as usize];
        let old = self.0.pair[0].load(Ordering::Relaxed);
        log.old.store(old, Ordering::Relaxed);
        step();
        log.count.store(1, Ordering::Relaxed);
        step();
        for half in &self.0.pair {
            half.store(old + 1, Ordering::Relaxed);
            step();
        }
        log.count.store(0, Ordering::Relaxed);
        committed.set(true);
        step();
        lock::release(thread, line);
    }

    /// What the kernel does for a thread that was killed.
    fn bury(self, number: u32) {
        self.0.dead.store(number, Ordering::SeqCst);
        if !PENDING.with(Cell::get) {
            return;
        }
        let word = &self.0.line[0];
        loop {
            let seen = word.load(Ordering::SeqCst);
            if seen & TID != number {
                // Released, but perhaps nobody was woken. If another has the lock by now, without knowing of
                // those who sleep, nobody is: they wake when their slice is over.
                KERNEL.wake(if seen == 0 { 1 } else { usize::MAX });
                return;
            }
            let died = (seen & !TID) | OWNER_DIED;
            if word.compare_exchange(seen, died, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return KERNEL.wake(1);
            }
        }
    }
}

impl Kernel {
    fn wait(&self, word: &AtomicU32, expected: u32) {
        let mut sleepers = self.sleepers.lock().unwrap();
        if word.load(Ordering::SeqCst) != expected {
            return;
        }
        let ticket = sleepers.1;
        sleepers.1 += 1;
        sleepers.0.push(ticket);
        while sleepers.0.contains(&ticket) {
            sleepers = self.changed.wait(sleepers).unwrap();
        }
    }

    fn wake(&self, count: usize) {
        let mut sleepers = self.sleepers.lock().unwrap();
        let count = count.min(sleepers.0.len());
        sleepers.0.drain(..count);
        drop(sleepers);
        self.changed.notify_all();
    }
}

/// The life of thread `number`: one section. Returns whether it was committed.
pub(crate) fn live(world: World, number: u32, fate: Fate) -> bool {
    let committed = Cell::new(false);
    if let Fate::DiesAfter(steps) = fate {
        LEFT.with(|left| left.set(Some(steps)));
    }
    let life = catch_unwind(AssertUnwindSafe(|| world.count_up(number, &committed)));
    LEFT.with(|left| left.set(None));
    if let Err(cause) = life {
        if !cause.is::<Killed>() {
            resume_unwind(cause);
        }
        world.bury(number);
    }
    committed.get()
}

// --- the modules that the lock's file uses -----------------------------------------------------------

pub(crate) mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering, fence};

    /// Loom stores in program order already.
    pub(crate) fn compiler_fence(_: Ordering) {}

    pub(crate) fn pause(_: u32) {
        loom::thread::yield_now();
    }

    pub(crate) fn sleep(_: std::time::Duration) {
        loom::thread::yield_now();
    }

    /// No time passes.
    pub(crate) fn now_ns() -> u64 {
        0
    }

    /// One is as good as many.
    pub(crate) const PAUSES: u32 = 1;
}

pub(crate) mod access {
    use std::marker::PhantomData;

    use loom::sync::atomic::{AtomicU32, Ordering};

    use super::{SCOPE, World, step};

    pub(crate) const GRANULE: usize = 64;

    #[derive(Clone, Copy)]
    pub struct Span<'m, const N: usize> {
        pub(super) world: World,
        pub(super) lives: PhantomData<&'m ()>,
    }

    impl<'m, const N: usize> Span<'m, N> {
        pub(crate) fn word(self, at: usize) -> &'m AtomicU32 {
            step();
            &self.world.0.line[at / 4]
        }

        pub(crate) fn load(self, at: usize) -> u32 {
            self.word(at).load(Ordering::Relaxed)
        }

        pub(crate) fn init(self, at: usize, value: u32) {
            self.word(at).store(value, Ordering::Relaxed);
        }
    }

    pub struct View<'m> {
        pub(super) world: World,
        pub(super) lives: PhantomData<&'m ()>,
    }

    impl<'m> View<'m> {
        pub(crate) fn holds(&self, offset: usize, _: usize) -> bool {
            offset == SCOPE as usize * GRANULE
        }

        pub(crate) fn at<const N: usize>(&self, _: u32) -> Span<'m, N> {
            Span { world: self.world, lives: PhantomData }
        }

        pub(crate) fn offset_of<const N: usize>(&self, _: Span<'m, N>) -> usize {
            SCOPE as usize * GRANULE
        }

        pub(crate) fn limit(&self) -> usize {
            usize::MAX
        }

        pub(crate) fn poison(&self) {
            unreachable!("nothing is damaged here");
        }

        pub(crate) fn refusal(&self) -> super::error::Error {
            unreachable!("nothing is removed here");
        }
    }
}

pub(crate) mod memory {
    pub(crate) struct Memory(pub(super) super::World);

    impl Memory {
        pub(crate) fn view(&self) -> super::access::View<'_> {
            super::access::View { world: self.0, lives: std::marker::PhantomData }
        }
    }
}

pub(crate) mod error {
    #[derive(Debug)]
    pub(crate) enum Error {
        Reentrant,
        Stalled { pid: u32 },
        Corrupted(&'static str),
    }

    impl Error {
        pub(crate) fn corrupted(what: &'static str) -> Self {
            Self::Corrupted(what)
        }
    }
}

pub(crate) mod thread {
    use std::marker::PhantomData;

    use loom::sync::atomic::AtomicU32;

    use super::access::View;
    use super::{PENDING, World, step};

    #[derive(Clone, Copy)]
    pub(crate) struct Thread<'m> {
        pub(crate) tid: u32,
        pub(super) world: World,
        pub(super) lives: PhantomData<&'m ()>,
    }

    impl Thread<'_> {
        pub(crate) fn slot_number(&self) -> u32 {
            self.tid
        }

        pub(crate) fn set_pending(&self, _: &AtomicU32) {
            step();
            PENDING.with(|pending| pending.set(true));
        }

        pub(crate) fn clear_pending(&self) {
            step();
            PENDING.with(|pending| pending.set(false));
        }
    }

    pub(crate) fn start_time_of(_: &View<'_>, _: u32, _: u32) -> u64 {
        0
    }

    pub(crate) fn pid_of(_: &View<'_>, _: u32) -> u32 {
        0
    }

    pub(crate) fn fixed_bytes() -> usize {
        0
    }
}

pub(crate) mod log {
    use loom::sync::atomic::Ordering;

    use super::access::View;
    use super::error::Error;

    /// Puts back what the thread with slot `number` left uncommitted.
    #[expect(clippy::unnecessary_wraps, reason = "the real one may fail")]
    pub(crate) fn restore(view: &View<'_>, number: u32, _: u32) -> Result<(), Error> {
        let log = &view.world.0.logs[number as usize];
        if log.count.load(Ordering::Relaxed) != 0 {
            let old = log.old.load(Ordering::Relaxed);
            view.world.0.pair.iter().for_each(|half| half.store(old, Ordering::Relaxed));
            log.count.store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(crate) fn left_with(_: &View<'_>, _: u32, _: u32) -> Vec<u32> {
        Vec::new()
    }
}

pub(crate) mod process {
    /// The kernel settles the locks of the dead here, so whoever still stands in one lives.
    pub(crate) fn thread_is_alive(_: u32, _: u64) -> bool {
        true
    }
}

pub(crate) mod futex {
    use std::time::Duration;

    use loom::sync::atomic::AtomicU32;

    pub(crate) fn wait(word: &AtomicU32, expected: u32, _: Option<Duration>) {
        super::KERNEL.wait(word, expected);
    }

    pub(crate) fn wake(_: &AtomicU32, count: usize) {
        super::KERNEL.wake(count);
    }
}
