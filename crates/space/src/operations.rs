//! The verbs (rules O1 to O9).

use std::time::Duration;

use tupelo_tuple::{Class, Template, TemplateRef, TupleRef, TupleView};

use crate::connect::Space;
use crate::error::Error;
use crate::remote::scan::RemoteScan;
use crate::wait::{Lifted, Outcome, Waiter, lift};
use tupelo_engine::{LeaseTerms, Order, visitor_once};
use tupelo_protocol::Action;

impl Space {
    /// Stores a tuple. When it returns, every later operation sees the tuple (rule O2).
    ///
    /// In a space created with [`WhenFull::Wait`](crate::WhenFull::Wait) it waits for room, for ever. So do `put_all`,
    /// `put_if_absent`, their likes with terms, and the end of a claim. [`Space::when_room`] has a time limit,
    /// [`Space::at_once`] never waits.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceFull`] and [`Error::LimitExceeded`]: nothing was stored.
    #[inline]
    pub fn put<'f>(&self, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        let tuple = tuple.into();
        let put = self.local().map(|engine| engine.put(tuple));
        if let Some(Ok(())) = put {
            return self.settled(());
        }
        let error = put.and_then(Result::err);
        tuple.apart(move |tuple| self.put_otherwise(tuple, error.map(Error::from)))
    }

    /// A put whose first attempt ended with `error`, or that is none of an engine here. Apart, so that the compiler makes
    /// the first attempt part of its caller, where it knows the kinds of the fields.
    #[cold]
    #[inline(never)]
    fn put_otherwise(&self, tuple: TupleRef<'_>, error: Option<Error>) -> Result<(), Error> {
        let Some(error) = error else {
            let terms = LeaseTerms::default();
            return self.put_remotely(std::iter::once(tuple), &terms, None).map(drop);
        };
        let engine = self.engine()?;
        self.unless_full(error, || Ok(engine.put(tuple)?))?;
        self.settled(())
    }

    /// Stores all tuples, or none; they become visible together (rule O5). Returns how many.
    ///
    /// # Errors
    ///
    /// As [`Space::put`], and [`Error::TransactionTooBig`]: nothing was stored.
    pub fn put_all<'f>(&self, tuples: &[impl Into<TupleRef<'f>> + Copy]) -> Result<usize, Error> {
        let Some(engine) = self.local() else {
            let tuples = tuples.iter().map(|&tuple| tuple.into());
            return self.put_remotely(tuples, &LeaseTerms::default(), None);
        };
        let count = self.patiently(|| Ok(engine.put_all(tuples)?))?;
        self.settled(count)
    }

    /// Stores a tuple unless something matches `unless`, also something that is held (rules O8, O9).
    /// Returns whether it did: of any number of racing callers, one is told so.
    ///
    /// # Errors
    ///
    /// As [`Space::put`].
    pub fn put_if_absent<'f>(
        &self,
        tuple: impl Into<TupleRef<'f>>,
        unless: &[TemplateRef<'_>],
    ) -> Result<bool, Error> {
        let tuple = tuple.into();
        let Some(engine) = self.local() else {
            let terms = LeaseTerms::default();
            let put = self.put_remotely(std::iter::once(tuple), &terms, Some(unless))?;
            return Ok(put > 0);
        };
        let put = self.patiently(|| Ok(engine.put_if_absent(tuple, unless)?))?;
        self.settled(put)
    }

    /// Removes a match, if there is one, and gives it to `visitor`. Does not wait (rule O4). The visitor runs
    /// outside of every lock.
    ///
    /// # Errors
    ///
    /// The errors of the space: [`Error::SpaceClosed`], [`Error::Stalled`], [`Error::SpaceCorrupted`]; then nothing was
    /// removed.
    ///
    /// The error of `visitor`. The tuple goes back (rule V3) if it is large, or has a field that its language may not
    /// represent ([`represents`](crate::represents)). Any other tuple may be gone: it is removed before the visitor sees
    /// it. So let a visitor refuse only a tuple that it cannot represent. To look first, claim the tuple
    /// ([`Space::try_claim`]).
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the caller mostly knows the template: a fifth of a take's time"
    )]
    pub fn try_take<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let Some(engine) = self.local() else {
            return self.find_remotely((Action::Take, order), template, visitor);
        };
        let taken =
            lift(engine.try_take(template, order, |tuple| visitor(tuple).map_err(Lifted::caller)))?;
        self.settled(taken)
    }

    /// Copies a match, if there is one, and gives it to `visitor`. Does not wait (rule O4).
    ///
    /// # Errors
    ///
    /// The errors of the space, as in [`Space::try_take`]. The error of `visitor`.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the caller mostly knows the template: a third of a read's time"
    )]
    pub fn try_read<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let Some(engine) = self.local() else {
            return self.find_remotely((Action::Read, order), template, visitor);
        };
        lift(engine.try_read(template, order, |tuple| visitor(tuple).map_err(Lifted::caller)))
    }

    /// Removes a match, waiting for one up to `timeout` (`None`: for ever; zero: not at all) (rule O3).
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]: the call had no effect. The errors of the space and of `visitor`, as in [`Space::try_take`].
    pub fn take<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        timeout: Option<Duration>,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut once = visitor_once(visitor);
        if timeout == Some(Duration::ZERO) {
            let taken = self.try_take(template, order, once)?;
            return taken.ok_or_else(|| self.timeout("take", template, Duration::ZERO).into());
        }
        match self.take_or_wait(template, order, &mut once)? {
            Outcome::Done(result) => Ok(result),
            Outcome::Waits(waiter) => self.wait_for(waiter, ("take", template), timeout, once),
        }
    }

    /// Removes a match and gives it to `visitor`, as [`Space::try_take`]; if there is none, joins the wait queue for it, as
    /// [`Space::waiter`] (rule O3). For callers that wait in their own manner.
    ///
    /// # Errors
    ///
    /// As [`Space::try_take`] and [`Space::waiter`].
    #[inline]
    pub fn take_or_wait<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        let Some(engine) = self.local() else {
            return Ok(Outcome::Waits(self.wait_remotely((Action::Take, order), template)?));
        };
        let outcome = lift(
            engine.take_or_wait(template, order, |tuple| visitor(tuple).map_err(Lifted::caller)),
        )?;
        self.settled(self.outcome(outcome))
    }

    /// Copies a match, waiting for one up to `timeout` (rule O3).
    ///
    /// # Errors
    ///
    /// As [`Space::take`].
    pub fn read<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        timeout: Option<Duration>,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut once = visitor_once(visitor);
        if timeout == Some(Duration::ZERO) {
            let read = self.try_read(template, order, once)?;
            return read.ok_or_else(|| self.timeout("read", template, Duration::ZERO).into());
        }
        match self.read_or_wait(template, order, &mut once)? {
            Outcome::Done(result) => Ok(result),
            Outcome::Waits(waiter) => self.wait_for(waiter, ("read", template), timeout, once),
        }
    }

    /// Copies a match and gives it to `visitor`, as [`Space::try_read`]; if there is none, joins the wait queue for one, as
    /// [`Space::waiter`] (rule O3). For callers that wait in their own manner.
    ///
    /// # Errors
    ///
    /// As [`Space::try_read`] and [`Space::waiter`].
    #[inline]
    pub fn read_or_wait<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        let Some(engine) = self.local() else {
            return Ok(Outcome::Waits(self.wait_remotely((Action::Read, order), template)?));
        };
        let outcome = lift(
            engine.read_or_wait(template, order, |tuple| visitor(tuple).map_err(Lifted::caller)),
        )?;
        Ok(self.outcome(outcome))
    }

    fn wait_for<R, E: From<Error>>(
        &self,
        waiter: Waiter,
        (verb, template): (&'static str, &[TemplateRef<'_>]),
        timeout: Option<Duration>,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let found = waiter.finish_within(timeout, |waiter| waiter.finish_now(&mut visitor))?;
        found.ok_or_else(|| self.timeout(verb, template, timeout.unwrap_or_default()).into())
    }

    /// The error of a call that waited in vain: always [`Error::Timeout`]. The reason may not be found, as when a
    /// stopped process has a lock of the space; the error is the same.
    #[cold]
    pub fn timeout(
        &self,
        verb: &'static str,
        template: &[TemplateRef<'_>],
        timeout: Duration,
    ) -> Error {
        let explanation = self.explain_if_possible(template);
        Error::Timeout {
            verb,
            template: explanation.template().to_owned(),
            timeout,
            url: self.url().to_owned(),
            explanation: Box::new(explanation),
        }
    }

    /// The number of matches at one moment (rule O6).
    ///
    /// # Errors
    ///
    /// The errors of the memory.
    pub fn count(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        let Some(engine) = self.local() else { return self.count_remotely(template) };
        Ok(engine.count(template)?)
    }

    /// Whether there is a match, or one that is held and may be given back (rule O9).
    ///
    /// # Errors
    ///
    /// The errors of the memory.
    pub fn present(&self, template: &[TemplateRef<'_>]) -> Result<bool, Error> {
        let Some(engine) = self.local() else { return self.present_remotely(template) };
        Ok(engine.present(template)?)
    }

    /// Refuses if the space was removed, without a look at what is in it. A server looks for any tuple, for which a token needs
    /// the right to read.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceRemoved`]; the errors of the space.
    pub fn require_there(&self) -> Result<(), Error> {
        let Some(engine) = self.local() else {
            return self.present_remotely(&[TemplateRef::beginning(&[])]).map(drop);
        };
        Ok(engine.require_sound()?)
    }

    /// Copies the matches of one moment, up to `limit` (rule O6). Does not wait.
    ///
    /// # Errors
    ///
    /// The errors of the space, as in [`Space::try_take`]. The error of `visitor`.
    pub fn read_all<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        limit: Option<usize>,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let Some(engine) = self.local() else {
            let found = self.find_all_remotely(Action::Read, (0, limit), template, visitor)?;
            return Ok(found.unwrap_or_default());
        };
        lift(engine.read_all(template, limit, |tuple| visitor(tuple).map_err(Lifted::caller)))
    }

    /// Removes the matches of one moment, up to `limit` (rule O6). Does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::TransactionTooBig`], and the errors of the space: nothing was removed. The error of `visitor`: nothing was
    /// removed either, if a tuple is large or has a field that its language may not represent. Otherwise the tuples are
    /// back, as new ones.
    pub fn take_all<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        limit: Option<usize>,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let Some(engine) = self.local() else {
            let found = self.find_all_remotely(Action::Take, (0, limit), template, visitor)?;
            return Ok(found.unwrap_or_default());
        };
        let taken =
            lift(engine.take_all(template, limit, |tuple| visitor(tuple).map_err(Lifted::caller)))?;
        self.settled(taken)
    }

    /// Removes between `at_least` and `at_most` matches of one moment; `None`, and nothing removed, if there
    /// are fewer.
    ///
    /// # Errors
    ///
    /// As [`Space::take_all`].
    pub fn try_take_many<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        at_least: usize,
        at_most: usize,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<Vec<R>>, E> {
        let Some(engine) = self.local() else {
            let numbers = (at_least, Some(at_most));
            return self.find_all_remotely(Action::Take, numbers, template, visitor);
        };
        let taken = lift(engine.try_take_many(template, at_least, at_most, |tuple| {
            visitor(tuple).map_err(Lifted::caller)
        }))?;
        self.settled(taken)
    }

    /// Replaces the oldest match by `to`, and gives the old tuple to `visitor`; `None` if there is none (rule
    /// O8). Does not wait.
    ///
    /// # Errors
    ///
    /// As [`Space::put`]: nothing changed. The error of `visitor`: nothing changed, if the old tuple is large or has a
    /// field that its language may not represent. The visitor then gets a copy before, perhaps of several tuples that
    /// others take. Otherwise the swap has happened.
    pub fn try_swap<'f, R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        to: impl Into<TupleRef<'f>>,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let Some(engine) = self.local() else {
            return self.swap_remotely(template, to.into(), visitor);
        };
        let swapped =
            lift(engine.try_swap(template, to, |tuple| visitor(tuple).map_err(Lifted::caller)))?;
        self.settled(swapped)
    }

    /// Moves the matches of one moment into `other` (rule O7). Returns how many.
    ///
    /// # Errors
    ///
    /// As [`Space::put`] of `other`: nothing was moved. [`Error::Misuse`] if the two are of different servers, or one of them is
    /// here.
    pub fn move_to(&self, other: &Self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        match (self.local(), other.local()) {
            (Some(from), Some(to)) => {
                self.require_one_file(other)?;
                let moved = from.move_to(to, template)?;
                other.settled(moved).and_then(|moved| self.settled(moved))
            }
            _ => self.transfer_remotely(other, true, template),
        }
    }

    /// Copies the matches of one moment into `other` (rule O7). Returns how many.
    ///
    /// # Errors
    ///
    /// As [`Space::put`] of `other`: nothing was copied. [`Error::Misuse`] as for [`Space::move_to`].
    pub fn copy_to(&self, other: &Self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        match (self.local(), other.local()) {
            (Some(from), Some(to)) => other.settled(from.copy_to(to, template)?),
            _ => self.transfer_remotely(other, false, template),
        }
    }

    /// The classes of entries in the space that have this name, also of such as are all taken (rule M7). There
    /// are several if they have different fields or bases. Of a server's space none are known here.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceClosed`].
    pub fn classes_named(&self, name: &str) -> Result<Vec<&'static Class>, Error> {
        self.require_open()?;
        Ok(self.local().map(|engine| engine.classes_named(name)).unwrap_or_default())
    }

    /// Begins to go through all matches, lazily and in no particular order (rule O6).
    ///
    /// # Errors
    ///
    /// [`Error::SpaceClosed`].
    pub fn scan(&self, template: &Template) -> Result<Scan, Error> {
        let inner = match self.local() {
            Some(engine) => ScanInner::Here(engine.scan(template.clone())),
            None => ScanInner::There(RemoteScan::begin(self, template)?),
        };
        Ok(Scan { space: self.clone(), inner })
    }
}

/// A walk through the matches of a space. A tuple that is present throughout is returned exactly once.
pub struct Scan {
    space: Space,
    inner: ScanInner,
}

/// Where a walk is.
enum ScanInner {
    /// In an engine here.
    Here(tupelo_engine::Scan),
    /// Elsewhere.
    There(RemoteScan),
}

impl Scan {
    /// Refuses if the space was closed meanwhile: data fetched before must not be shown after.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceClosed`].
    pub fn require_open(&self) -> Result<(), Error> {
        self.space.require_open()
    }

    /// The next matches, up to `at_most`; none at the end.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceClosed`] once the space was closed. What `visitor` says of the first match; the scan then goes on behind
    /// it. If it fails on a later one, that is the first of the next batch, and shown to the visitor again.
    pub fn next_batch<R, E: From<Error>>(
        &mut self,
        at_most: usize,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        self.space.require_open()?;
        match &mut self.inner {
            ScanInner::Here(scan) => {
                lift(scan.next_batch(at_most, |tuple| visitor(tuple).map_err(Lifted::caller)))
            }
            ScanInner::There(scan) => scan.next_batch(at_most, visitor),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{ConnectOptions, Error, Kind, Space, Watch, fields, template};

    #[test]
    fn a_call_whose_announced_tuple_is_not_there_waits_for_the_time_that_is_left_o3() {
        let space = Space::connect("mem://announced", &ConnectOptions::default()).unwrap();
        let template = [template!["job", Kind::Int]];
        // A watch is told of the put and handed nothing: as a take is whose put dies before it is certain.
        let waiter = space.watch(&template, Watch::Put).unwrap();
        space.put(&fields!["job", 1]).unwrap();
        let timeout = Some(Duration::from_millis(5));
        let taken = space.wait_for(waiter, ("take", &template), timeout, |_| Ok::<_, Error>(()));
        assert!(matches!(taken, Err(Error::Timeout { .. })), "{taken:?}");
        assert_eq!(space.stat().unwrap().waiters, 0);
        crate::remove("mem://announced").unwrap();
    }

    #[test]
    fn a_scan_of_a_space_that_was_closed_is_refused_and_has_lost_nothing_o6() {
        let space = Space::connect("mem://scanned", &ConnectOptions::default()).unwrap();
        space.put(&fields!["job", 1]).unwrap();
        let mut scan = space.scan(&"job, :int".parse().unwrap()).unwrap();
        assert_eq!(scan.require_open(), Ok(()));
        space.close();
        assert!(matches!(scan.require_open(), Err(Error::SpaceClosed { .. })));
        let batch = scan.next_batch(1, |_| Ok::<_, Error>(()));
        assert!(matches!(batch, Err(Error::SpaceClosed { .. })), "{batch:?}");
        let again = Space::connect("mem://scanned", &ConnectOptions::default()).unwrap();
        assert_eq!(again.count(&[template!["job", Kind::Int]]), Ok(1));
        crate::remove("mem://scanned").unwrap();
    }
}
