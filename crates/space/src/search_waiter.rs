//! In the wait queues of several spaces at once: how a search waits (rules O10, T5, T6).
//!
//! Each space has signals of its own memory, so a search has a notifier in each, and sleeps until the socket of one is
//! readable. Whatever the spaces hand over meanwhile, one tuple is picked up. The other places are given up, as by a
//! cancelled caller.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tupelo_tuple::{Template, TemplateRef, TupleView};

use crate::connect::Space;
use crate::error::Error;
use crate::notifier::Notifier;
use crate::search::{Found, Search, TemplateKind};
use crate::wait::{Outcome, Waiter, Want};

/// A search that waits: a place in the wait queue in each of its spaces. Dropped, it gives them all up without effect.
#[derive(Debug)]
pub struct SearchWaiter {
    search: Search,
    kind: Option<TemplateKind>,
    /// In the order in which the spaces are asked: the number of the space, and the place in the wait queue there.
    places: Vec<(usize, Waiter)>,
    /// The spaces whose wait queue it has not joined, as one before them seemed to have a match.
    rest: Option<Box<Rest>>,
    begin: Instant,
}

/// Where a search is not in the wait queue yet, and the means to join it.
#[derive(Debug)]
struct Rest {
    /// The numbers of the spaces, in the order in which they are asked.
    spaces: Vec<usize>,
    template: Template,
    want: Want,
}

/// A notifier in each of the spaces, for one owner at a time.
#[derive(Debug)]
pub(crate) struct Notifiers {
    notifiers: Vec<Notifier>,
}

impl SearchWaiter {
    pub(crate) fn new(
        search: &Search,
        template: &[TemplateRef<'_>],
        want: Want,
    ) -> Result<Self, Error> {
        // With a condition, to be ready means no more than that a look is worth its while.
        let is_certain = template.iter().all(|one| one.condition.is_none());
        Self::until(search, template, want, |waiter| {
            is_certain && waiter.local().is_some_and(tupelo_engine::Waiter::is_ready)
        })
    }

    /// Joins the wait queue in one space after the other, up to the first whose place `is_served`.
    fn until(
        search: &Search,
        template: &[TemplateRef<'_>],
        want: Want,
        is_served: impl Fn(&Waiter) -> bool,
    ) -> Result<Self, Error> {
        let kind = search.kind(template);
        let order = search.order(kind);
        let mut places = Vec::with_capacity(order.len());
        let mut rest = None;
        for (before, &number) in order.iter().enumerate() {
            let waiter = search.spaces()[number].waiter(template, want)?;
            let goes_on = !is_served(&waiter);
            places.push((number, waiter));
            if !goes_on {
                rest = Rest::new(&order[before + 1..], template, want)?;
                break;
            }
        }
        Ok(Self { search: search.clone(), kind, places, rest, begin: Instant::now() })
    }

    /// Joins the wait queue where it is not yet. Returns whether there was such a space.
    fn join_rest(&mut self) -> Result<bool, Error> {
        let Some(rest) = self.rest.take() else { return Ok(false) };
        for number in rest.spaces {
            let space = &self.search.spaces()[number];
            let waiter = rest.template.with_refs(|template| space.waiter(template, rest.want));
            self.places.push((number, waiter??));
        }
        Ok(true)
    }

    /// The number of each space in whose wait queue it is, as the search lists them, and its place there. For a caller that
    /// has a [`Notifier`] in each already.
    pub fn places(&self) -> impl Iterator<Item = (usize, &Waiter)> {
        self.places.iter().map(|(number, waiter)| (*number, waiter))
    }

    /// The time that it has been in the wait queue.
    pub fn waited(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Picks up a tuple, if a space has handed one over, and gives up all other places. A second tuple that was handed
    /// over goes back (rule T5). If there is no tuple, it stays in the wait queue, and from then on in all spaces. The match that
    /// had ended its joining the wait queue was put by a process that died before the put was certain.
    ///
    /// # Errors
    ///
    /// The error of `visitor`; then the tuple of a take is back or gone as in [`Space::try_take`]. The errors of the
    /// space. In the wait queue nowhere then.
    ///
    /// # Panics
    ///
    /// If a tuple was picked up before.
    pub fn finish_now<R, E: From<Error>>(
        &mut self,
        mut visitor: impl FnMut(usize, TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Found<R>>, E> {
        loop {
            if let Some(found) = self.pick_up(&mut visitor)? {
                return Ok(Some(found));
            }
            if !self.join_rest().inspect_err(|_| self.places.clear())? {
                return Ok(None);
            }
        }
    }

    /// Picks up a tuple from one of the places that it has.
    fn pick_up<R, E: From<Error>>(
        &mut self,
        visitor: &mut impl FnMut(usize, TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Found<R>>, E> {
        assert!(!self.places.is_empty(), "a search finds one tuple");
        let (time, queued) = (self.waited(), self.places.len());
        // A place that is not put back at the end is given up: after an error, and after the first tuple.
        let places = std::mem::take(&mut self.places);
        let mut kept = Vec::with_capacity(queued);
        for (place, waiter) in places {
            match waiter.finish_now(|view| visitor(place, view))? {
                Outcome::Waits(waiter) => kept.push((place, waiter)),
                Outcome::Done(result) => {
                    self.search.note(self.kind, place);
                    let visited = self.search.spaces().len() + queued;
                    return Ok(Some(Found { result, place, visited, waited: time }));
                }
            }
        }
        self.places = kept;
        Ok(None)
    }

    /// Waits until a tuple may be there to be picked up, or `timeout` has passed (`None`: for ever). Returns whether
    /// one may be; perhaps in vain, so look. The places in the wait queue are kept, and the call may be repeated.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceClosed`] if a space was closed meanwhile. [`Error::Misuse`] in a fork of the process that joined the
    /// wait queue. [`Error::LimitExceeded`] and [`Error::System`] if there can be no more notifiers. The errors of the memory.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        self.wait_by(|notifiers| notifiers.wait(timeout, Notifier::last_look))
    }

    /// As [`SearchWaiter::wait`], by a caller that has more time than `part` ([`Waiter::wait_part`]).
    ///
    /// # Errors
    ///
    /// As [`SearchWaiter::wait`].
    pub fn wait_part(&self, part: Duration) -> Result<bool, Error> {
        self.wait_by(|notifiers| notifiers.wait(Some(part), Notifier::look))
    }

    /// Is handed nothing from now on ([`Waiter::end_wait`]): for a last look.
    ///
    /// # Errors
    ///
    /// As [`SearchWaiter::wait`].
    pub fn end_wait(&self) -> Result<(), Error> {
        self.places.iter().try_for_each(|(_, waiter)| waiter.end_wait().map(drop))
    }

    /// Waits by notifiers that tell of its places meanwhile.
    fn wait_by(&self, wait: impl FnOnce(&Notifiers) -> Result<bool, Error>) -> Result<bool, Error> {
        // First: in a child its notifier would be told of what comes for the parent, whose wait nodes these are.
        self.places.iter().try_for_each(|(_, waiter)| waiter.require_own())?;
        let notifiers = Notifiers::of(&self.search)?;
        let numbers: Vec<(usize, u32)> = self
            .places()
            .map(|(space, waiter)| (space, notifiers.notifiers[space].add(waiter)))
            .collect();
        let happened = wait(&notifiers);
        for (space, number) in numbers {
            notifiers.notifiers[space].remove(number);
        }
        notifiers.give_back(&self.search);
        happened
    }
}

impl Rest {
    /// `None` if there are no `spaces`.
    fn new(
        spaces: &[usize],
        template: &[TemplateRef<'_>],
        want: Want,
    ) -> Result<Option<Box<Self>>, Error> {
        if spaces.is_empty() {
            return Ok(None);
        }
        let alternatives = template.iter().map(TemplateRef::to_template);
        let alternatives = alternatives.collect::<Result<Vec<_>, _>>()?;
        let template = alternatives.into_iter().reduce(Template::or);
        let own = |template| Box::new(Self { spaces: spaces.to_vec(), template, want });
        Ok(template.map(own))
    }
}

impl Notifiers {
    /// Idle ones of the search, or else new ones.
    fn of(search: &Search) -> Result<Self, Error> {
        let idle = search.idle_notifiers().content().pop();
        if let Some(idle) = idle {
            return Ok(idle);
        }
        let notifiers = search.spaces().iter().map(Space::notifier).collect::<Result<_, _>>()?;
        Ok(Self { notifiers })
    }

    fn give_back(self, search: &Search) {
        for notifier in &self.notifiers {
            // Later signals mean nothing to the next user of the notifiers.
            notifier.drain();
            notifier.rest();
        }
        search.idle_notifiers().content().push(self);
    }

    /// Sleeps until one of them has something to tell, or the time has passed, and then takes the `last_look`. Returns
    /// whether one has.
    fn wait(
        &self,
        timeout: Option<Duration>,
        last_look: impl Fn(&Notifier) -> Result<Vec<u32>, Error>,
    ) -> Result<bool, Error> {
        let begin = Instant::now();
        loop {
            if self.have(|notifier| Ok(notifier.drain()))? {
                return Ok(true);
            }
            let left = timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()));
            if left == Some(Duration::ZERO) {
                // Everything that is due at this moment has happened in time.
                return self.have(last_look);
            }
            if self.notifiers.iter().all(Notifier::listen) {
                let slice = self.notifiers.iter().map(Notifier::next_look);
                let slept_out = self.sleep(slice.chain(left).min().unwrap_or_default())?;
                if slept_out && self.have(Notifier::look)? {
                    return Ok(true);
                }
            }
        }
    }

    /// Whether any of them tells of a waiter. All are asked.
    fn have(&self, ask: impl Fn(&Notifier) -> Result<Vec<u32>, Error>) -> Result<bool, Error> {
        let mut any = false;
        for notifier in &self.notifiers {
            any |= !ask(notifier)?.is_empty();
        }
        Ok(any)
    }

    /// Sleeps until one of them has something to tell, or so long. Returns whether none has.
    fn sleep(&self, slice: Duration) -> Result<bool, Error> {
        let mut sockets: Vec<PollFd<'_>> =
            self.notifiers.iter().map(|notifier| PollFd::new(notifier, PollFlags::IN)).collect();
        let slice = Timespec {
            tv_sec: i64::try_from(slice.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: slice.subsec_nanos().into(),
        };
        match poll(&mut sockets, Some(&slice)) {
            Ok(rung) => Ok(rung == 0),
            // The caller looks for the reason of the signal.
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(Error::System { problem: format!("poll: {error}") }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::SearchWaiter;
    use crate::{ConnectOptions, Error, Kind, Search, Space, Visits, Want, fields, template};

    #[test]
    fn a_line_whose_announced_tuple_is_not_there_gets_in_line_in_all_spaces_o10() {
        let urls = ["mem://line-a", "mem://line-b", "mem://line-c"];
        let spaces = urls.map(|url| Space::connect(url, &ConnectOptions::default()).unwrap());
        let search = Search::new(spaces.to_vec(), Visits::RoundRobin).unwrap();
        let template = [template!["job", Kind::Int], template!["stop"]];
        // The first place looks served: as it does to a search while a put hands over that dies before it is certain.
        let mut waiter = SearchWaiter::until(&search, &template, Want::Take, |_| true).unwrap();
        assert_eq!(waiter.places().count(), 1);
        let visitor = |_: usize, _: tupelo_tuple::TupleView<'_>| Ok::<_, Error>(());
        assert!(waiter.finish_now(visitor).unwrap().is_none());
        assert_eq!(waiter.places().map(|(number, _)| number).collect::<Vec<_>>(), [0, 1, 2]);
        spaces[2].put(&fields!["job", 1]).unwrap();
        assert!(waiter.wait(Some(Duration::from_secs(60))).unwrap());
        assert_eq!(waiter.finish_now(visitor).unwrap().unwrap().place, 2);
        // A tuple that the following spaces have already is picked up at once.
        let mut waiter = SearchWaiter::until(&search, &template, Want::Take, |_| true).unwrap();
        spaces[1].put(&fields!["stop"]).unwrap();
        assert_eq!(waiter.finish_now(visitor).unwrap().unwrap().place, 1);
        for url in urls {
            crate::remove(url).unwrap();
        }
    }
}
