//! Joining the wait queue again, for who was handed something and has not picked it up in time.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use tupelo_shm::Section;
use tupelo_tuple::{Template, TemplateRef};

use crate::base::error::Error;
use crate::base::want::Want;
use crate::operations::wait::{Waiter, filtered};
use crate::store;
use crate::waiters::hand_off::has_lost;
use crate::waiters::{SCOPE, TICKET, WANT};

/// What a waiter joins the wait queue with, if it has lost what it was handed.
pub(crate) struct Again {
    template: Template,
    /// Held while it joins the wait queue: of two threads that wait, one does.
    turn: Mutex<()>,
}

impl Again {
    pub(crate) fn new(template: &[TemplateRef<'_>]) -> Result<Option<Box<Self>>, Error> {
        let template = filtered::owned(template)?;
        Ok(template.map(|template| Box::new(Self { template, turn: Mutex::default() })))
    }
}

impl Waiter {
    /// Joins the wait queue again, behind all others, if what it was handed was not picked up in time.
    pub(crate) fn rejoin_if_lost(&self) -> Result<(), Error> {
        match &self.again {
            Some(again) if has_lost(self.node()) && !self.has_ended.load(Ordering::Relaxed) => {
                self.rejoin(again)
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn rejoin(&self, again: &Again) -> Result<(), Error> {
        let _turn = again.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let section = Section::enter(&self.engine.memory, self.node().load(SCOPE))?;
        // Somebody may be handing over at this very moment, or taking back.
        let has_lost = has_lost(self.node());
        drop(section);
        if !has_lost {
            return Ok(());
        }
        self.node().init64(TICKET, store::next_ticket(&self.engine));
        if self.own_look.is_some() {
            // A watch again, until it finds something itself.
            self.node().init(WANT, Want::Put.number());
        }
        let rejoined = again.template.with_refs(|template| self.join_queue(template));
        rejoined.map_err(|error| Error::Template(error.to_string().into()))?
    }
}
