//! In line in several spaces at once: how a search waits (rules O10, T5, T6).
//!
//! Each space has signals of its own memory, so a search has a bell in each, and sleeps until the socket of one is
//! readable. Whatever the spaces hand over meanwhile, one tuple is picked up; the other places are given up, as by a
//! caller who is cancelled.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tupelo_shm::process::fork_generation;
use tupelo_tuple::{TemplateRef, TupleView};

use crate::bell::Bell;
use crate::connect::Space;
use crate::error::Error;
use crate::search::{Found, Search, TemplateKind};
use crate::wait::{Outcome, Waiter, Want};

/// A search that waits: a place in line in each of its spaces. Dropped, it gives them all up without effect.
#[derive(Debug)]
pub struct Line {
    search: Search,
    kind: Option<TemplateKind>,
    /// In the order in which the spaces are asked: the number of the space, and the place in line there.
    places: Vec<(usize, Waiter)>,
    begin: Instant,
}

/// A bell in each of the spaces, for one owner at a time.
#[derive(Debug)]
pub(crate) struct Bells {
    bells: Vec<Bell>,
    /// When they were made, as forks are counted: a child's copies are not the child's.
    fork_generation: u32,
}

impl Line {
    pub(crate) fn new(
        search: &Search,
        template: &[TemplateRef<'_>],
        want: Want,
    ) -> Result<Self, Error> {
        let kind = search.kind(template);
        // With a condition, to be ready means no more than that a look is worth its while.
        let is_certain = template.iter().all(|one| one.condition.is_none());
        let mut places = Vec::with_capacity(search.spaces().len());
        for number in search.order(kind) {
            let waiter = search.spaces()[number].waiter(template, want)?;
            let is_served = is_certain && waiter.inner().is_ready();
            places.push((number, waiter));
            if is_served {
                break;
            }
        }
        Ok(Self { search: search.clone(), kind, places, begin: Instant::now() })
    }

    /// The number of each space that it is in line in, as the search lists them, and its place there: for who has a
    /// [`Bell`] in each already.
    pub fn places(&self) -> impl Iterator<Item = (usize, &Waiter)> {
        self.places.iter().map(|(number, waiter)| (*number, waiter))
    }

    /// How long it has been in line.
    pub fn waited(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Picks up a tuple, if a space has handed one over, and gives up all other places: a second one that was handed
    /// over goes back (rule T5). If there is none, it stays in line.
    ///
    /// # Errors
    ///
    /// What `sink` says; a tuple that it can not represent goes back. What a space says. In line nowhere then.
    ///
    /// # Panics
    ///
    /// If a tuple was picked up before.
    pub fn finish_now<R, E: From<Error>>(
        &mut self,
        mut sink: impl FnMut(usize, TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Found<R>>, E> {
        assert!(!self.places.is_empty(), "a search finds one tuple");
        let (time, in_line) = (self.waited(), self.places.len());
        // What is not put back into its place at the end is given up: after an error, and after the first tuple.
        let places = std::mem::take(&mut self.places);
        let mut kept = Vec::with_capacity(in_line);
        for (place, waiter) in places {
            match waiter.finish_now(|view| sink(place, view))? {
                Outcome::Waits(waiter) => kept.push((place, waiter)),
                Outcome::Done(result) => {
                    self.search.note(self.kind, place);
                    let visited = self.search.spaces().len() + in_line;
                    return Ok(Some(Found { result, place, visited, waited: time }));
                }
            }
        }
        self.places = kept;
        Ok(None)
    }

    /// Waits until a tuple may be there to be picked up, or `timeout` has passed (`None`: for ever). Returns whether
    /// one may be; perhaps in vain, so look. The places in line are kept, and the call may be repeated.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceClosed`] if a space was closed meanwhile; [`Error::LimitExceeded`] and [`Error::System`] if there
    /// can be no more bells; what the memory says.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        let bells = Bells::of(&self.search)?;
        let numbers: Vec<(usize, u32)> =
            self.places().map(|(space, waiter)| (space, bells.bells[space].add(waiter))).collect();
        let happened = bells.wait(timeout);
        for (space, number) in numbers {
            bells.bells[space].remove(number);
        }
        bells.give_back(&self.search);
        happened
    }
}

impl Bells {
    /// Idle ones of the search, or else new ones.
    fn of(search: &Search) -> Result<Self, Error> {
        let fork_generation = fork_generation();
        while let Some(idle) = search.idle_bells().pop() {
            if idle.fork_generation == fork_generation {
                return Ok(idle);
            }
        }
        let bells = search.spaces().iter().map(Space::bell).collect::<Result<_, _>>()?;
        Ok(Self { bells, fork_generation })
    }

    fn give_back(self, search: &Search) {
        for bell in &self.bells {
            // What still comes is nothing to whoever uses them next.
            bell.drain();
            bell.rest();
        }
        search.idle_bells().push(self);
    }

    /// Sleeps until one of them has something to tell, or the time has passed. Returns whether one has.
    fn wait(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        let begin = Instant::now();
        loop {
            if self.have(|bell| Ok(bell.drain()))? {
                return Ok(true);
            }
            let left = timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()));
            if left == Some(Duration::ZERO) {
                // What is due at this moment has happened in time.
                return self.have(Bell::look);
            }
            if self.bells.iter().all(Bell::listen) {
                let slice = self.bells.iter().map(Bell::next_look);
                let slept_out = self.sleep(slice.chain(left).min().unwrap_or_default())?;
                if slept_out && self.have(Bell::look)? {
                    return Ok(true);
                }
            }
        }
    }

    /// Whether any of them tells of a waiter. All are asked.
    fn have(&self, ask: impl Fn(&Bell) -> Result<Vec<u32>, Error>) -> Result<bool, Error> {
        let mut any = false;
        for bell in &self.bells {
            any |= !ask(bell)?.is_empty();
        }
        Ok(any)
    }

    /// Sleeps until one of them is rung, or so long. Returns whether none was.
    fn sleep(&self, slice: Duration) -> Result<bool, Error> {
        let mut sockets: Vec<PollFd<'_>> =
            self.bells.iter().map(|bell| PollFd::new(bell, PollFlags::IN)).collect();
        let slice = Timespec {
            tv_sec: i64::try_from(slice.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: slice.subsec_nanos().into(),
        };
        match poll(&mut sockets, Some(&slice)) {
            Ok(rung) => Ok(rung == 0),
            // The caller looks what the signal was about.
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(Error::System { problem: format!("poll: {error}") }),
        }
    }
}
