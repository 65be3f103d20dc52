//! Searching: a match that is in one of several spaces, without knowing which (rule O10).

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use tupelo_engine::Order;
use tupelo_shm::fork_local::{ForkLocal, Slot};
use tupelo_tuple::{Field, Form, TemplateRef, TupleView};

use crate::connect::Space;
use crate::error::Error;
use crate::search_waiter::{Notifiers, SearchWaiter};
use crate::wait::Want;

/// Most spaces of a search (rule B2): each waiting search has a socket in each.
pub const SEARCHED_MAX: usize = 256;
/// Most kinds of templates whose successes are remembered (rule B2). Later kinds are not.
const KINDS_MAX: usize = 1_024;

/// Which space a search looks into first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Visits {
    /// The first of the list, then the others in turn.
    #[default]
    RoundRobin,
    /// The space in which most searches of the template's kind ended so far (after Tupleware). Of equal spaces, the one
    /// that stands first in the list. The order of the list stays until the difference is statistically significant.
    /// Reordering by the first few searches visits more spaces than in turn if the list has the best order already
    /// (measured).
    SuccessFactor,
}

/// The find of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<R> {
    /// The result of the visitor.
    pub result: R,
    /// The place of its space in the list, from 0.
    pub place: usize,
    /// How many looks it took. A search that has to wait has looked into each space twice: before it waits, and when it
    /// joins the wait queue there.
    pub visited: usize,
    /// The time that was waited for it; zero if a space had it.
    pub waited: Duration,
}

/// Several spaces, and what is known of where searches ended. Clones share it; threads may share it, too.
///
/// ```
/// # use tupelo::*;
/// # let options = ConnectOptions::default();
/// let [near, far] = ["mem://near", "mem://far"].map(|url| Space::connect(url, &options));
/// let search = Search::new(vec![near?, far?], Visits::RoundRobin)?;
/// search.spaces()[1].put(&fields!["border", 7])?;
/// let template = [template!["border", Kind::Int]];
/// let found = search.take(&template, None, |_, tuple| Ok::<_, Error>(tuple.to_tuple()?))?;
/// assert_eq!(found.result.to_string(), r#"("border", 7)"#);
/// assert_eq!((found.place, found.visited), (1, 2));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Search {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    spaces: Vec<Space>,
    visits: Visits,
    /// Shared with those that go on with it in other spaces.
    successes: Arc<ForkLocal<Successes>>,
    /// Idle notifiers: to get one takes a socket.
    idle_notifiers: ForkLocal<Vec<Notifiers>>,
}

/// In how many searches each space had the match, by the kind of the template.
type Successes = HashMap<u64, Vec<u32>>;

/// A kind of template, as hashes: two that collide share their successes, which costs looks and nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TemplateKind {
    /// The kinds of the fields, and the first field if it is a text: by convention a tuple's name.
    named: u64,
    /// The kinds of the fields alone, for a name that was not searched for yet.
    shape: u64,
}

impl Search {
    /// Prepares to search in `spaces`.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] if there is none, or one twice; [`Error::LimitExceeded`] for more than [`SEARCHED_MAX`].
    pub fn new(spaces: Vec<Space>, visits: Visits) -> Result<Self, Error> {
        Self::over(spaces, visits, Arc::new(ForkLocal::new()))
    }

    /// The same search in other spaces, each in the place of one of these: as after that was removed. Where searches ended is known
    /// to both.
    ///
    /// # Errors
    ///
    /// As [`Search::new`], and [`Error::Misuse`] for another number of spaces.
    pub fn in_place(&self, spaces: Vec<Space>) -> Result<Self, Error> {
        let (expected, number) = (self.inner.spaces.len(), spaces.len());
        if number != expected {
            return Err(Error::Misuse {
                problem: format!("{number} spaces can not take the place of {expected}"),
                hint: Some("give one for each".into()),
            });
        }
        Self::over(spaces, self.inner.visits, Arc::clone(&self.inner.successes))
    }

    fn over(
        spaces: Vec<Space>,
        visits: Visits,
        successes: Arc<ForkLocal<Successes>>,
    ) -> Result<Self, Error> {
        if spaces.is_empty() {
            return Err(Error::Misuse {
                problem: "there is no space to search in".into(),
                hint: Some("give at least one".into()),
            });
        }
        if spaces.len() > SEARCHED_MAX {
            let problem =
                format!("a search in {} spaces, the maximum is {SEARCHED_MAX}", spaces.len());
            let hint = "search in fewer spaces, or tell them apart by a field of the tuples";
            return Err(Error::LimitExceeded { problem, hint: hint.into() });
        }
        for (place, space) in spaces.iter().enumerate() {
            if spaces[..place].iter().any(|other| other.is_same(space)) {
                return Err(Error::Misuse {
                    problem: format!("{} is to be searched twice", space.url()),
                    hint: Some("name every space once".into()),
                });
            }
        }
        let idle_notifiers = ForkLocal::new();
        Ok(Self { inner: Arc::new(Inner { spaces, visits, successes, idle_notifiers }) })
    }

    /// The spaces, as they were given.
    pub fn spaces(&self) -> &[Space] {
        &self.inner.spaces
    }

    /// Removes a match from one of the spaces, if there is one, and gives it to `visitor`, with the place of the space.
    /// Looks into each space once (rule O4).
    ///
    /// # Errors
    ///
    /// The error of `visitor`; then the tuple is back or gone as in [`Space::try_take`]. The errors of the space.
    pub fn try_take<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        visitor: impl FnOnce(usize, TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Found<R>>, E> {
        self.try_find(template, Want::Take, &mut once(visitor))
    }

    /// Copies a match from one of the spaces, if there is one, and gives it to `visitor`.
    ///
    /// # Errors
    ///
    /// As [`Search::try_take`].
    pub fn try_read<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        visitor: impl FnOnce(usize, TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Found<R>>, E> {
        self.try_find(template, Want::Read, &mut once(visitor))
    }

    /// Removes a match from one of the spaces, waiting for one up to `timeout` (`None`: for ever; zero: not at all). It
    /// is exactly one: what other spaces hand over at the same moment goes back to its place there (rule T5).
    ///
    /// # Errors
    ///
    /// As [`Search::try_take`], and [`Error::Timeout`]: no space has changed.
    pub fn take<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        timeout: Option<Duration>,
        visitor: impl FnOnce(usize, TupleView<'_>) -> Result<R, E>,
    ) -> Result<Found<R>, E> {
        self.find((template, Want::Take), timeout, once(visitor))
    }

    /// Copies a match from one of the spaces, waiting for one up to `timeout`.
    ///
    /// # Errors
    ///
    /// As [`Search::take`].
    pub fn read<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        timeout: Option<Duration>,
        visitor: impl FnOnce(usize, TupleView<'_>) -> Result<R, E>,
    ) -> Result<Found<R>, E> {
        self.find((template, Want::Read), timeout, once(visitor))
    }

    /// Joins the wait queue for a match in all spaces. For callers that wait in their own manner, and have looked before.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] at the maximum of blocked callers of a space (rule B2); the errors of the space. Then
    /// the caller is in the wait queue nowhere.
    pub fn waiter(&self, template: &[TemplateRef<'_>], want: Want) -> Result<SearchWaiter, Error> {
        SearchWaiter::new(self, template, want)
    }

    /// The error of a search that waited in vain: about the space where something like it is, or else the first.
    pub fn timeout(
        &self,
        verb: &'static str,
        template: &[TemplateRef<'_>],
        timeout: Duration,
    ) -> Error {
        let errors = self.spaces().iter().map(|space| space.timeout(verb, template, timeout));
        let nearest = errors.min_by_key(|error| match error {
            Error::Timeout { explanation: why, .. } if why.unknown.is_none() => {
                let is_there = why.matches + why.unfulfilled + why.dead > 0 || !why.held.is_empty();
                if is_there { 0 } else { 1 + usize::from(why.nearest.is_none()) }
            }
            _ => 3,
        });
        match nearest {
            Some(Error::Timeout { verb, template, timeout, url, explanation }) => {
                let others = self.spaces().len() - 1;
                let url = if others == 0 { url } else { format!("{url} and {others} more") };
                Error::Timeout { verb, template, timeout, url, explanation }
            }
            Some(error) => error,
            None => unreachable!("a search has a space"),
        }
    }

    fn find<R, E: From<Error>>(
        &self,
        (template, want): (&[TemplateRef<'_>], Want),
        timeout: Option<Duration>,
        mut visitor: impl FnMut(usize, TupleView<'_>) -> Result<R, E>,
    ) -> Result<Found<R>, E> {
        if let Some(found) = self.try_find(template, want, &mut visitor)? {
            return Ok(found);
        }
        if timeout != Some(Duration::ZERO) {
            let mut waiter = self.waiter(template, want)?;
            loop {
                let left = timeout.map(|timeout| timeout.saturating_sub(waiter.waited()));
                let is_over = left == Some(Duration::ZERO);
                if is_over {
                    waiter.end_wait()?;
                }
                if let Some(found) = waiter.finish_now(&mut visitor)? {
                    return Ok(found);
                }
                if is_over {
                    break;
                }
                waiter.wait(left)?;
            }
        }
        let verb = if want == Want::Take { "take" } else { "read" };
        Err(self.timeout(verb, template, timeout.unwrap_or_default()).into())
    }

    fn try_find<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        want: Want,
        visitor: &mut impl FnMut(usize, TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Found<R>>, E> {
        let kind = self.kind(template);
        for (before, place) in self.order(kind).into_iter().enumerate() {
            let space = &self.inner.spaces[place];
            let visitor = |view: TupleView<'_>| visitor(place, view);
            let found = match want {
                Want::Take => space.try_take(template, Order::Fifo, visitor)?,
                Want::Read => space.try_read(template, Order::Fifo, visitor)?,
            };
            if let Some(result) = found {
                self.note(kind, place);
                return Ok(Some(Found {
                    result,
                    place,
                    visited: before + 1,
                    waited: Duration::ZERO,
                }));
            }
        }
        Ok(None)
    }

    /// The kind of a template, if anybody asks for it.
    pub(crate) fn kind(&self, template: &[TemplateRef<'_>]) -> Option<TemplateKind> {
        (self.inner.visits == Visits::SuccessFactor).then(|| TemplateKind::of(template))
    }

    /// The places of the spaces, in the order in which they are asked.
    pub(crate) fn order(&self, kind: Option<TemplateKind>) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.inner.spaces.len()).collect();
        if let Some(kind) = kind {
            let mut successes = self.successes();
            let successes = successes.content();
            // The name last: it decides among searches of equal shape.
            for ended in [kind.shape, kind.named].iter().filter_map(|hash| successes.get(hash)) {
                if speaks_against_the_list(ended) {
                    order.sort_by_key(|&place| Reverse(ended[place]));
                }
            }
        }
        order
    }

    /// Notes where a search ended.
    pub(crate) fn note(&self, kind: Option<TemplateKind>, place: usize) {
        let Some(kind) = kind else { return };
        let mut successes = self.successes();
        let successes = successes.content();
        // The shape first: if there is room for one count only, the shape's serves all names.
        for hash in [kind.shape, kind.named] {
            if successes.len() < KINDS_MAX || successes.contains_key(&hash) {
                let none = || vec![0; self.inner.spaces.len()];
                let ended = &mut successes.entry(hash).or_insert_with(none)[place];
                *ended = ended.saturating_add(1);
            }
        }
    }

    /// Idle notifiers. The notifiers of its parent are not the child's of a fork.
    pub(crate) fn idle_notifiers(&self) -> MutexGuard<'_, Slot<Vec<Notifiers>>> {
        self.inner.idle_notifiers.lock(|_| None)
    }

    fn successes(&self) -> MutexGuard<'_, Slot<Successes>> {
        self.inner.successes.lock(Some)
    }
}

/// Whether searches ended in one space significantly more often than in an earlier one of the list. That is more than
/// twice the standard deviation of the difference, which is the root of their sum.
fn speaks_against_the_list(ended: &[u32]) -> bool {
    let mut least = u64::MAX;
    ended.iter().map(|&count| u64::from(count)).any(|count| {
        least = least.min(count);
        let lead = count - least;
        lead * lead > 4 * (count + least)
    })
}

impl TemplateKind {
    fn of(template: &[TemplateRef<'_>]) -> Self {
        let mut shape = DefaultHasher::new();
        for one in template {
            match one.form {
                Form::Exact => 0.hash(&mut shape),
                Form::Rest => 1.hash(&mut shape),
                Form::Entry(named) => named.class().hash(&mut shape),
            }
            for pattern in one.patterns {
                pattern.kinds().hash(&mut shape);
            }
        }
        let mut named = shape.clone();
        for one in template {
            if let Some(Field::Str(name)) = one.patterns.first().and_then(|first| first.actual()) {
                name.hash(&mut named);
            }
        }
        Self { named: named.finish(), shape: shape.finish() }
    }
}

/// A visitor that is used for one match, to be given to several spaces in turn.
fn once<R, E>(
    visitor: impl FnOnce(usize, TupleView<'_>) -> Result<R, E>,
) -> impl FnMut(usize, TupleView<'_>) -> Result<R, E> {
    let mut visitor = Some(visitor);
    move |place, view| match visitor.take() {
        Some(visitor) => visitor(place, view),
        None => unreachable!("a visitor is used for one match"),
    }
}

#[cfg(test)]
mod tests {
    use std::process;
    use std::time::Duration;

    use tupelo_crashtest::{Exit, fork};

    use super::{Search, Visits};
    use crate::{ConnectOptions, Error, Kind, Space, fields, template};

    #[test]
    fn the_child_of_a_fork_waits_for_no_lock_of_its_parents_search() {
        let url = format!("shm://search-forked-{}", process::id());
        let space = Space::connect(&url, &ConnectOptions::default()).unwrap();
        let search = Search::new(vec![space.clone()], Visits::SuccessFactor).unwrap();
        let template = [template!["job", Kind::Int]];
        let find = |timeout| search.take(&template, Some(timeout), |_, _| Ok::<_, Error>(()));
        space.put(&fields!["job", 1]).unwrap();
        find(Duration::ZERO).unwrap();
        // As other threads may have them at that moment.
        let locked = (search.successes(), search.idle_notifiers());
        let child = fork(|| {
            let waited = find(Duration::from_millis(1));
            assert!(matches!(waited, Err(Error::Timeout { .. })), "{waited:?}");
            space.put(&fields!["job", 2]).unwrap();
            assert_eq!(find(Duration::ZERO).unwrap().place, 0);
        });
        drop(locked);
        assert_eq!(child.wait(), Exit::Done);
        crate::remove(&url).unwrap();
    }
}
