//! Waiting for a match of a template with a condition (rules O3, M9).
//!
//! Nobody else evaluates the condition. The caller's wait node watches for what fits the fields, so a put wakes the
//! caller, who looks for a match. In the same section the caller hands the match over to its own wait node. From then
//! on it is a waiter that was handed a tuple, as any other, and gives it back as any other (rule T5). It was in the wait queue as
//! a watch before its first look, so no put is missed between a look and the next sleep. It holds nothing back from
//! others meanwhile.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tupelo_shm::clock;
use tupelo_tuple::{Template, TemplateRef};

use crate::Engine;
use crate::base::error::Error;
use crate::base::layout::head;
use crate::base::want::Want;
use crate::index::find::Order;
use crate::operations::filtered::{self, Choice, FilterResults};
use crate::operations::wait::{self, Waiter, nanoseconds};
use crate::store::{self, partition::Partition};
use crate::waiters::hand_off::HandOffDeadline;
use crate::waiters::{SCOPE, WANT, node, wake};

/// What a waiter looks for itself.
pub(crate) struct OwnLook {
    template: Template,
    /// What it knows. Locked while it looks, so that of two threads that wait for it one hands over.
    filter_results: Mutex<FilterResults>,
}

/// Joins the wait queue for a match of a template with a condition, of whose tuples `filter_results` are known. If there is a
/// match, it is handed over at once.
///
/// # Errors
///
/// As [`crate::Engine::waiter`].
#[cold]
pub(crate) fn filtered_waiter(
    engine: &Arc<Engine>,
    template: &[TemplateRef<'_>],
    want: Want,
    deadline: Option<HandOffDeadline>,
    filter_results: FilterResults,
) -> Result<Waiter, Error> {
    let fields: Vec<TemplateRef<'_>> = template.iter().map(|one| one.without_condition()).collect();
    if matches!(want, Want::Put | Want::Removal) {
        return wait::waiter(engine, &fields, want);
    }
    let Some(template) = owned(template)? else { return wait::waiter(engine, &fields, want) };
    let mut waiter = wait::waiter_for(engine, &fields, Want::Put, deadline)?;
    waiter.want = want;
    waiter.own_look =
        Some(Box::new(OwnLook { template, filter_results: Mutex::new(filter_results) }));
    if waiter.look_itself()? {
        wake::notify(engine, waiter.number);
    }
    Ok(waiter)
}

/// A template that is kept; `None` if it has no alternatives.
pub(crate) fn owned(template: &[TemplateRef<'_>]) -> Result<Option<Template>, Error> {
    let alternatives = template.iter().map(TemplateRef::to_template).collect::<Result<Vec<_>, _>>();
    let alternatives = alternatives.map_err(|error| Error::Template(error.to_string().into()))?;
    Ok(alternatives.into_iter().reduce(Template::or))
}

impl Waiter {
    /// Looks for a match, if that is its own affair, and hands it over to itself. Returns whether it has one.
    pub(crate) fn look_itself(&self) -> Result<bool, Error> {
        // In a space that was removed, or is damaged, there will never be anything.
        store::require_sound(&self.engine)?;
        let Some(own) = &self.own_look else {
            self.rejoin_if_lost()?;
            return Ok(self.record() != 0);
        };
        let mut filter_results = own.filter_results.lock().unwrap_or_else(PoisonError::into_inner);
        self.rejoin_if_lost()?;
        if self.record() != 0 {
            return Ok(true);
        }
        let engine = &*self.engine;
        filter_results.prune(&engine.memory.view());
        let with_multi_shape = self.node().load(SCOPE) == head::MULTI_SHAPE_SCOPE;
        let (purpose, order) = (self.purpose(), Order::Fifo);
        let choice = Choice { purpose, order, with_multi_shape, recalls: false };
        let found = own.template.with_refs(|template| {
            filtered::find_filtered(
                engine,
                template,
                choice,
                &mut filter_results,
                |section, target, reference| {
                    let partition = Partition::of_shape(section.view(), target.shape);
                    let node = node(section.view(), self.number);
                    // From a watch to one that has a tuple. The words of a wait node in the wait queue are its chain's.
                    section.focus(node.load(SCOPE));
                    section.set(node, WANT, self.want.number());
                    section.focus(partition.scope());
                    self.accept(section, partition, reference)
                },
            )
        });
        let found = found.map_err(|error| Error::Template(error.to_string().into()))??;
        Ok(found.is_some())
    }

    /// As [`Waiter::wait_while`], for one that looks itself.
    #[cold]
    pub(crate) fn wait_and_look(
        &self,
        timeout: Option<Duration>,
        is_all: bool,
        goes_on: impl Fn() -> bool,
    ) -> Result<bool, Error> {
        let begin_ns = clock::monotonic_ns();
        let deadline_ns = timeout.map(|timeout| begin_ns.saturating_add(nanoseconds(timeout)));
        loop {
            if self.look_itself()? {
                return Ok(true);
            }
            let now_ns = clock::monotonic_ns();
            let left_ns = deadline_ns.map(|deadline| deadline.saturating_sub(now_ns));
            if !self.wait_for_signal(left_ns.map(Duration::from_nanos), is_all, &goes_on)? {
                // What came at the last moment came in time.
                return self.look_itself();
            }
            // As a watch it was woken each time that it has looked around, and not asked.
            if !goes_on() {
                return Ok(false);
            }
        }
    }
}
