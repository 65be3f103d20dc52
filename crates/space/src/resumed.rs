//! Subscriptions that outlive their subscribers: their events are kept in the file of the space (rules N1, N2).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tupelo_engine::{Event, EventKind, SubscribeTerms};
use tupelo_journal::{Error as Trouble, Journal, KeptEvent, Subscribed};
use tupelo_shm::surroundings::outside;
use tupelo_tuple::TemplateRef;
use tupelo_tuple::encoding::{Decoded, Reader, encode_template_refs};

use crate::connect::Space;
use crate::durable::refused;
use crate::error::Error;

/// Events that are kept at most for a subscriber who is not there.
pub const KEEP_MAX: u64 = 1 << 20;
/// Bytes of the longest name of a subscription.
const NAME_BYTES_MAX: usize = 255;
/// Events that are read from the file at a time.
const BATCH: usize = 256;

/// A subscription whose events are in the file.
#[derive(Debug)]
pub(crate) struct Resumed {
    journal: Arc<Journal>,
    url: String,
    name: String,
    subscribed: Subscribed,
    /// Rings when there may be more in the file.
    doorbell: tupelo_engine::Subscription,
    read: Mutex<Read>,
}

/// How far the subscriber is.
#[derive(Debug)]
struct Read {
    /// Events that were read from the file.
    events: VecDeque<KeptEvent>,
    /// The number of the last one that the subscriber was told of.
    told: u64,
    /// That of the last one that it is done with.
    done: u64,
    /// Up to which number the file knows that.
    acknowledged: u64,
}

impl Resumed {
    /// Begins a subscription of this name, or goes on with it.
    pub(crate) fn begin(
        space: &Space,
        template: &[TemplateRef<'_>],
        terms: &SubscribeTerms,
        (name, keep): (&str, u64),
    ) -> Result<Self, Error> {
        let Some(journal) = &space.inner.journal else { return Err(no_file(space)) };
        require_sense(terms, name, keep)?;
        // First: what comes before the file knows of it rings in vain.
        let only_the_bell = SubscribeTerms::new([EventKind::Put], 1);
        let doorbell = space.engine()?.subscribe(template, &only_the_bell)?;
        let encoded = encode_template_refs(template)?;
        let subscribed = outside(|| journal.subscribe(name, &encoded, keep))
            .map_err(|trouble| refused(trouble, space.url()))?;
        let Some(subscribed) = subscribed else {
            return Err(Error::Misuse {
                problem: format!(
                    "the subscription {name:?} of {} asks for other tuples",
                    space.url()
                ),
                hint: Some(
                    "give its template, take another name, or end it with unsubscribe".into(),
                ),
            });
        };
        let (told, url, name) = (subscribed.told, space.url().to_owned(), name.to_owned());
        let read = Read { events: VecDeque::new(), told, done: told, acknowledged: told };
        let (journal, read) = (Arc::clone(journal), Mutex::new(read));
        Ok(Self { journal, url, name, subscribed, doorbell, read })
    }

    /// The next event, as `visitor` makes it; `None` if there is none. To ask for an event is to be done with those before it.
    pub(crate) fn try_next<R, E: From<Error>>(
        &self,
        visitor: impl FnOnce(Event<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let (event, missed) = {
            let mut read = self.locked();
            read.done = read.told;
            if read.events.is_empty() {
                self.fill(&mut read)?;
            }
            let Some(event) = read.events.pop_front() else { return Ok(None) };
            let missed = event.number.saturating_sub(read.told + 1);
            read.told = event.number;
            (event, missed)
        };
        let decoded = Decoded::read(&mut Reader::new(&event.image)).map_err(Error::from)?;
        let image = decoded.to_image();
        let (kind, sequence) = (EventKind::Put, event.number);
        visitor(Event { kind, tuple: image.view(), sequence, missed }).map(Some)
    }

    /// Reads what is in the file.
    fn fill(&self, read: &mut Read) -> Result<(), Error> {
        // Before: what rings later is not read here, perhaps.
        loop {
            use tupelo_engine::Error as Failure;
            match self.doorbell.try_next(|_| Ok::<_, Failure>(())) {
                Ok(None) => break,
                // Of a tuple that is larger than this buffer, it rings all the same.
                Ok(Some(())) | Err(Failure::LimitExceeded { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let Read { events, told, done, acknowledged } = read;
        let found = outside(|| {
            self.journal.flush()?;
            if *done > *acknowledged {
                self.journal.acknowledge(self.subscribed, *done)?;
            }
            self.journal.events(self.subscribed, *told, BATCH)
        });
        events.extend(found.map_err(|trouble| self.refused(trouble))?);
        *acknowledged = *done;
        Ok(())
    }

    /// Why there is no event.
    #[cold]
    fn refused(&self, trouble: Trouble) -> Error {
        if !matches!(trouble, Trouble::SubscriptionOver { .. }) {
            return refused(trouble, &self.url);
        }
        let (name, url) = (&self.name, &self.url);
        Error::Misuse {
            problem: format!(
                "the subscription {name:?} of {url} is over here: it was ended, or another subscriber goes on with it"
            ),
            hint: Some("give each subscriber a name of its own (resume=)".into()),
        }
    }

    /// The subscriber is done with all that it was told of.
    pub(crate) fn be_done(&self) {
        let mut read = self.locked();
        read.done = read.told;
    }

    /// Whether an event was read already, so that there is nothing to wait for.
    pub(crate) fn has_some(&self) -> bool {
        !self.locked().events.is_empty()
    }

    /// What rings when there may be an event.
    pub(crate) const fn doorbell(&self) -> &tupelo_engine::Subscription {
        &self.doorbell
    }

    /// How many events wait, as far as they are in the file.
    pub(crate) fn waiting(&self) -> usize {
        let told = self.locked().told;
        let waiting = outside(|| self.journal.events_waiting(self.subscribed.id, told));
        waiting.map_or(0, |waiting| usize::try_from(waiting).unwrap_or(usize::MAX))
    }

    fn locked(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Resumed {
    /// What the subscriber is done with is not told again, unless the file can not be written.
    fn drop(&mut self) {
        let Read { done, acknowledged, .. } = *self.locked();
        if done > acknowledged {
            let _ = outside(|| self.journal.acknowledge(self.subscribed, done));
        }
    }
}

/// Ends a subscription for good. Returns whether there was one of this name.
pub(crate) fn end(space: &Space, name: &str) -> Result<bool, Error> {
    let Some(journal) = &space.inner.journal else { return Err(no_file(space)) };
    outside(|| journal.unsubscribe(name)).map_err(|trouble| refused(trouble, space.url()))
}

/// Refuses what no subscription of a file can be.
fn require_sense(terms: &SubscribeTerms, name: &str, keep: u64) -> Result<(), Error> {
    let refused =
        |problem: String, hint: &str| Err(Error::Misuse { problem, hint: Some(hint.into()) });
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        let problem = format!("the name of a subscription has {} bytes", name.len());
        return refused(problem, "give a name of 1 to 255 bytes, one for each subscriber");
    }
    if keep == 0 || keep > KEEP_MAX {
        let problem = format!("keep is {keep}");
        return refused(problem, "give how many events may wait in the file, from 1 to 1 048 576");
    }
    let puts = SubscribeTerms::new([EventKind::Put], terms.events_max());
    if *terms != puts.with_bytes(terms.bytes_max()) {
        let problem = "a subscription that is resumed hears of puts alone".to_owned();
        return refused(problem, "leave out on=, or resume=");
    }
    Ok(())
}

#[cold]
fn no_file(space: &Space) -> Error {
    Error::Unsupported {
        problem: format!("{} is kept in no file here, in which events could wait", space.url()),
        hint: "leave out resume=, or subscribe to a space such as file:///path/jobs.tupelo, where it is".into(),
    }
}
