//! Cohorts: of several threads that enter the same scope again and again, one goes on for a while, and the others come back
//! after that.
//!
//! A section touches a dozen lines of memory. If another thread's section came between, the lines are in another
//! processor's cache, and to fetch them takes longer than the section. A thread that finds the lock taken makes a long
//! pause for that reason ([`crate::lock`]). But a thread that does something else between two sections, if only a
//! little, finds the lock free as a rule. Two such threads fetch all lines every time.
//!
//! So a thread that comes upon other threads' sections again within [`BREAK_NS`] leads a cohort of its own sections, for [`COHORT_NS`], unless another
//! thread does. Another thread that comes as often, and sees that the cohort is made use of, does its section, and enters
//! again when that cohort is over. No thread waits before a first section, or if it enters now and then. No thread waits
//! for a thread that enters now and then, or for one that waits for others itself ([`Cohorts::end`]).
//!
//! The words of a cohort are hints: written inside of the lock without the log, never undone. Damaged, or a dead
//! thread's, they cost the wait of one cohort.

use crate::access::View;
use crate::clock;
use crate::lock::{LockLine, SEQUENCE};

/// The leading thread: a thread slot.
const LEADER: usize = 12;
/// Until when, in nanoseconds of the monotonic clock.
const END_NS: usize = 16;
/// The sequence of the scope when it began.
const BEGUN: usize = 24;

/// How long a cohort is: some dozens of sections, so that the fetching before the first does not count.
const COHORT_NS: u64 = 50_000;
/// A thread that does not enter for so long makes a break: its own work is more than the others can cost it.
const BREAK_NS: u64 = 1_000;
/// Sections of a cohort until others believe in it: more than two threads that answer each other make until one waits.
const SECTIONS_MIN: u64 = 8;
/// In a cohort that is worth a wait, they come as fast as this: a section, and the fetching of its lines.
const SECTION_NS_MAX: u64 = 350;
/// How long the first look comes after the beginning of a wait. Each later delay is twice as long.
const LOOK_NS: u64 = 1_000;
/// Spins between looks at the clock.
const SPINS_PER_LOOK: u32 = 32;

/// A scope of a segment, by the segment's address.
type Place = (*const u8, u32);

/// A thread's knowledge of its own cohorts and of others', for some scopes: a program works on a few in turns.
#[derive(Clone, Copy)]
pub(crate) struct Cohorts([Cohort; COHORTS]);
const COHORTS: usize = 4;
/// 2^32 divided by the golden ratio.
const SPREAD: u32 = 0x9e37_79b9;

/// The knowledge of one scope.
#[derive(Clone, Copy)]
struct Cohort {
    place: Place,
    /// When the thread came upon another thread's section there; 0 if it did so once, whenever that was.
    met_ns: u64,
    /// When it may enter there again; 0: at once.
    again_ns: u64,
}

impl Cohorts {
    /// Of a thread that has met no other thread.
    pub(crate) const NONE: Self = Self([Cohort::at((std::ptr::null(), 0)); COHORTS]);

    /// The record of a scope, or of another that shares its place here.
    #[inline(always)]
    fn of(&mut self, (_, scope): Place) -> &mut Cohort {
        // Scopes that lie one behind the other at whatever distance come to different places.
        &mut self.0[(scope.wrapping_mul(SPREAD) >> (u32::BITS - COHORTS.ilog2())) as usize]
    }

    /// Waits for the end of another thread's cohort at `place`, whose lock is `line`, if this thread has been there
    /// during it.
    #[inline(always)]
    pub(crate) fn wait(&mut self, place: Place, line: LockLine<'_>) {
        let cohort = self.of(place);
        if cohort.again_ns != 0 {
            cohort.wait_for_end(place, line);
        }
    }

    /// Called inside of a scope where another thread was since `thread` was: finds out which thread leads.
    #[cold]
    #[inline(never)]
    pub(crate) fn meet(&mut self, place: Place, line: LockLine<'_>, thread: u32) {
        let cohort = self.of(place);
        if cohort.place == place {
            cohort.meet(clock::monotonic_ns(), line, thread);
        } else {
            // Most threads come once, and need not look at the clock.
            *cohort = Cohort::at(place);
        }
    }

    /// Ends the cohorts of a thread that is about to wait for others, which is a break.
    pub(crate) fn end(&mut self, view: &View<'_>, thread: u32) {
        for cohort in &mut self.0 {
            let (base, scope) = cohort.place;
            if base == view.base() && cohort.met_ns != 0 {
                give_up(view.at(scope), thread);
            }
            cohort.met_ns = 0;
            cohort.again_ns = 0;
        }
    }
}

impl Cohort {
    const fn at(place: Place) -> Self {
        Self { place, met_ns: 0, again_ns: 0 }
    }

    #[cold]
    #[inline(never)]
    fn wait_for_end(&mut self, place: Place, line: LockLine<'_>) {
        let again_ns = std::mem::take(&mut self.again_ns);
        if self.place != place {
            return;
        }
        let mut now_ns = clock::monotonic_ns();
        let (mut look_ns, mut pause_ns) = (now_ns + LOOK_NS, LOOK_NS);
        while now_ns < again_ns {
            if now_ns >= look_ns {
                if line.load64(END_NS) != again_ns {
                    break;
                }
                // Seldom, since each look takes the line from the leading thread.
                pause_ns *= 2;
                look_ns = now_ns + pause_ns;
            }
            for _ in 0..SPINS_PER_LOOK {
                std::hint::spin_loop();
            }
            now_ns = clock::monotonic_ns();
        }
        // To wait was no break, but what came after the end was one.
        self.met_ns = now_ns.min(again_ns);
    }

    fn meet(&mut self, now_ns: u64, line: LockLine<'_>, thread: u32) {
        let is_busy = now_ns < self.met_ns + BREAK_NS;
        self.met_ns = now_ns;
        if !is_busy {
            return;
        }
        let (end_ns, sequence) = (line.load64(END_NS), line.load(SEQUENCE));
        let is_over = end_ns <= now_ns || end_ns > now_ns + COHORT_NS;
        if is_over {
            line.init(LEADER, thread);
            line.init64(END_NS, now_ns + COHORT_NS);
            line.init(BEGUN, sequence);
        } else if line.load(LEADER) != thread {
            let sections = u64::from(sequence.wrapping_sub(line.load(BEGUN)) / 2);
            let elapsed_ns = now_ns + COHORT_NS - end_ns;
            let is_used = sections >= SECTIONS_MIN && elapsed_ns <= sections * SECTION_NS_MAX;
            self.again_ns = if is_used { end_ns } else { 0 };
        }
    }
}

/// Ends the cohort of `thread` in the scope of `line`, if it has one.
fn give_up(line: LockLine<'_>, thread: u32) {
    if line.load(LEADER) == thread {
        // Outside of the lock: the cohort of a thread that has begun one meanwhile may be cut short.
        line.init64(END_NS, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::access::{GRANULE, Span};

    const PLACE: Place = (std::ptr::null(), 7);
    const ANNA: u32 = 1;
    const BERT: u32 = 2;

    struct Line([AtomicU64; GRANULE / 8]);

    impl Line {
        fn new() -> Self {
            Self(Default::default())
        }

        fn span(&self) -> LockLine<'_> {
            // SAFETY: so many bytes of double words, which stay where they are while they are borrowed.
            unsafe { Span::at_address(self.0.as_ptr().cast()) }
        }

        /// So many sections happen.
        fn pass(&self, sections: u64) {
            let words = u32::try_from(2 * sections).unwrap();
            self.span().init(SEQUENCE, self.span().load(SEQUENCE) + words);
        }

        /// The leading thread, and the end of its cohort.
        fn cohort(&self) -> (u32, u64) {
            (self.span().load(LEADER), self.span().load64(END_NS))
        }
    }

    #[test]
    fn nobody_stays_who_makes_breaks() {
        let line = Line::new();
        let (mut anna, mut bert) = (Cohort::at(PLACE), Cohort::at(PLACE));
        for round in 1..10 {
            anna.meet(round * BREAK_NS, line.span(), ANNA);
            bert.meet(round * BREAK_NS + 100, line.span(), BERT);
            assert_eq!((line.cohort(), anna.again_ns, bert.again_ns), ((0, 0), 0, 0));
        }
    }

    #[test]
    fn of_two_who_are_busy_one_stays_and_the_other_stays_after_it() {
        let line = Line::new();
        let (mut anna, mut bert) = (Cohort::at(PLACE), Cohort::at(PLACE));
        anna.meet(10_000, line.span(), ANNA);
        bert.meet(10_500, line.span(), BERT);
        anna.meet(10_800, line.span(), ANNA);
        let end_ns = 10_800 + COHORT_NS;
        assert_eq!((line.cohort(), anna.again_ns), ((ANNA, end_ns), 0));
        line.pass(SECTIONS_MIN - 1);
        bert.meet(11_000, line.span(), BERT);
        assert_eq!((line.cohort(), bert.again_ns), ((ANNA, end_ns), 0), "it may not be used");
        line.pass(1);
        bert.meet(11_000, line.span(), BERT);
        assert_eq!((line.cohort(), bert.again_ns), ((ANNA, end_ns), end_ns));
        anna.meet(11_200, line.span(), ANNA);
        assert_eq!((line.cohort(), anna.again_ns), ((ANNA, end_ns), 0), "it goes on");
        bert.wait_for_end((std::ptr::null(), 8), line.span());
        assert_eq!(bert.again_ns, 0, "elsewhere nobody waits");
        bert.meet(11_400, line.span(), BERT);
        bert.wait_for_end(PLACE, line.span());
        bert.meet(end_ns + 500, line.span(), BERT);
        assert_eq!(line.cohort(), (BERT, end_ns + 500 + COHORT_NS), "to wait was no break");
        line.pass(SECTIONS_MIN);
        anna.meet(end_ns + 1_000, line.span(), ANNA);
        anna.meet(end_ns + 1_400, line.span(), ANNA);
        assert_eq!(anna.again_ns, end_ns + 500 + COHORT_NS);
    }

    #[test]
    fn scopes_that_a_thread_works_on_in_turns_do_not_disturb_each_other() {
        let (one, other) = (Line::new(), Line::new());
        let places = [(std::ptr::null(), 320), (std::ptr::null(), 352)];
        let mut anna = Cohorts::NONE;
        for _ in 0..3 {
            anna.meet(places[0], one.span(), ANNA);
            anna.meet(places[1], other.span(), ANNA);
        }
        assert!(places.iter().all(|place| anna.of(*place).met_ns != 0));
        let mut kept_at = |scope| std::ptr::from_mut(anna.of((std::ptr::null(), scope)));
        let first = kept_at(320);
        let rival = (353..10_000).find(|scope| kept_at(*scope) == first).unwrap();
        anna.meet((std::ptr::null(), rival), one.span(), ANNA);
        assert_eq!(anna.of(places[0]).met_ns, 0, "they share a place");
    }

    #[test]
    fn who_waits_for_others_stays_no_longer() {
        let line = Line::new();
        let mut anna = Cohort::at(PLACE);
        anna.meet(10_000, line.span(), ANNA);
        anna.meet(10_800, line.span(), ANNA);
        give_up(line.span(), BERT);
        assert_eq!(line.cohort(), (ANNA, 10_800 + COHORT_NS), "it is not Bert's");
        give_up(line.span(), ANNA);
        assert_eq!(line.cohort(), (ANNA, 0));
    }

    #[test]
    fn an_end_that_can_not_be_is_none() {
        let line = Line::new();
        line.span().init(LEADER, BERT);
        line.span().init64(END_NS, u64::MAX);
        let mut anna = Cohort::at(PLACE);
        anna.meet(10_000, line.span(), ANNA);
        anna.meet(10_800, line.span(), ANNA);
        assert_eq!((line.cohort(), anna.again_ns), ((ANNA, 10_800 + COHORT_NS), 0));
    }
}
