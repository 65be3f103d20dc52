//! Dead letters: tuples whose last attempt has failed (rule K5). They match nothing, are kept with the reasons, and
//! can be put back.

use tupelo_shm::{Section, View};
use tupelo_tuple::{TemplateRef, TupleView};

use crate::base::error::Error;
use crate::index::find::Purpose;
use crate::operations::bulk;
use crate::operations::filtered::Among;
use crate::operations::targets::{Target, TupleCopy};
use crate::protocols::claim::Attempt;
use crate::recovery::held;
use crate::store::extension::{self, ATTEMPTS, Extension, HISTORY};
use crate::store::partition::{DEAD_COUNT, Partition};
use crate::store::{self, Store, changes, history, record, step};
use crate::time::list::{self, List};
use crate::time::wheel;
use crate::waiters::deliver::Delivery;
use crate::waiters::events::EventKind;
use crate::waiters::timer_leader;

/// What became of a dead tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterRecord {
    /// Attempts that failed.
    pub attempts: u32,
    /// Why, as far as it was kept: the newest are.
    pub reasons: Vec<Attempt>,
}

/// As [`crate::Engine::dead`] says.
pub(crate) fn dead<R, E: From<Error>>(
    store: &Store,
    template: &[TemplateRef<'_>],
    mut visitor: impl FnMut(TupleView<'_>, DeadLetterRecord) -> Result<R, E>,
) -> Result<Vec<R>, E> {
    let among = (Purpose::Read, Among::Dead);
    let found = bulk::at_one_moment_among(store, template, among, |section, targets| {
        let mut found = Vec::new();
        for target in targets {
            for reference in dead_matches(store, section, target) {
                let header = record::header(section.view(), reference);
                let Some(extension) = extension::of(section.view(), header) else { continue };
                let copy = TupleCopy::new(section.view(), reference, target.kinds);
                let reasons = history::read(section.view(), extension.load(HISTORY));
                found
                    .push((copy, DeadLetterRecord { attempts: extension.load(ATTEMPTS), reasons }));
            }
        }
        Ok(found)
    });
    let found = found?.unwrap_or_default();
    found.into_iter().map(|(copy, dead_letter)| visitor(copy.view(), dead_letter)).collect()
}

/// As [`crate::Engine::count_dead`] says.
pub(crate) fn count_dead(store: &Store, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
    let among = (Purpose::Read, Among::Dead);
    let count = bulk::at_one_moment_among(store, template, among, |section, targets| {
        let view = section.view();
        let counts = targets.iter().map(|target| dead_of(store, view, target).count() as u64);
        Ok(counts.sum::<u64>())
    });
    Ok(count?.unwrap_or_default())
}

/// As [`crate::Engine::requeue`] says.
pub(crate) fn requeue(store: &Store, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
    timer_leader::catch_up_for_multi_shape(store)?;
    let among = (Purpose::Read, Among::Dead);
    let requeued = bulk::at_one_moment_among(store, template, among, |section, targets| {
        let mut revived = Revived::default();
        for target in targets {
            for reference in dead_matches(store, section, target) {
                revive(store, section, target, reference, &mut revived)?;
            }
        }
        // Frees last: who waited for the tuples may have been given copies.
        for (partition, block) in &revived.histories {
            step::begin(section)?;
            section.focus(partition.scope());
            history::free(section, &store.layout, *partition, *block)?;
        }
        Ok((revived.count, revived.wakes))
    })?;
    let Some((count, wakes)) = requeued else { return Ok(0) };
    wakes.wake(store);
    Ok(count)
}

/// The dead records that match, the last that died first.
fn dead_of(store: &Store, view: &View<'_>, target: &Target<'_>) -> impl Iterator<Item = u32> {
    let partition = Partition::of_shape(view, target.shape);
    list::records(view, partition, List::Dead)
        .map(|(reference, _)| reference)
        .filter(move |reference| target.accepts(view, *reference, store.seed))
}

/// The dead records that match, oldest first.
fn dead_matches(store: &Store, section: &Section<'_>, target: &Target<'_>) -> Vec<u32> {
    let view = section.view();
    let mut dead: Vec<u32> = dead_of(store, view, target).collect();
    dead.sort_unstable_by_key(|reference| {
        record::header(view, *reference).load64(record::SEQUENCE)
    });
    dead
}

/// Takes a dead record off the list: it is put back, or its lease has ended.
pub(crate) fn bury<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
) -> Result<Extension<'m>, Error> {
    let header = record::header(section.view(), reference);
    let Some(extension) = extension::of(section.view(), header) else {
        return Err(store::damaged(store, "a dead record has no extension"));
    };
    wheel::disarm(section, partition, reference);
    list::remove(section, partition, List::Dead, extension);
    section.add(partition.page(), DEAD_COUNT, -1);
    Ok(extension)
}

fn revive<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    target: &Target<'_>,
    reference: u32,
    revived: &mut Revived<'m>,
) -> Result<(), Error> {
    step::begin(section)?;
    let partition = Partition::of_shape(section.view(), target.shape);
    section.focus(partition.scope());
    let extension = bury(store, section, partition, reference)?;
    section.set(extension, ATTEMPTS, 0);
    revived.histories.push((partition, history::detach(section, extension)));
    let record = record::at(section.view(), reference);
    changes::attempts(store, section, record);
    let back = (record, EventKind::Put.into());
    revived.wakes.join(held::put_back(store, section, partition, back, target.kinds.as_slice())?);
    revived.count += 1;
    Ok(())
}

/// What was put back in one section.
#[derive(Default)]
struct Revived<'m> {
    count: u64,
    wakes: Delivery,
    /// Blocks that tell of the failed attempts, still to be freed.
    histories: Vec<(Partition<'m>, u32)>,
}
