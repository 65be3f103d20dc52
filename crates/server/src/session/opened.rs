//! The spaces that a client has open.

use std::rc::Rc;

use tupelo_protocol::{Fault, Opened, Operation, Request, SPACES_MAX, SpaceId, Target, code};

use super::{Open, Session};
use crate::audit::Act;
use crate::hosted::Hosted;
use crate::kept::Kept;
use crate::outbox::About;
use crate::rights::Right;

impl Session {
    /// Removes a space, which may be open.
    pub(super) fn remove(&self, name: &str) -> Result<(), Fault> {
        self.principal.require(Right::Admin, name)?;
        self.shared.spaces.remove(name)?;
        self.shared.audit.note_done(&self.principal, Act::Removed, name);
        Ok(())
    }

    /// Opens a space, and gives it a number on the connection.
    pub(super) fn open(&self, opened: &Opened<'_>) -> Result<(u32, Rc<Hosted>), Fault> {
        let mut opened = *opened;
        self.principal.require_any(opened.name)?;
        if opened.fresh {
            self.principal.require(Right::Admin, opened.name)?;
        }
        let may_make = |right| self.principal.has(right, opened.name);
        opened.create &= may_make(Right::Put) || may_make(Right::Admin);
        let (hosted, made) = self.shared.spaces.open(&opened)?;
        if let Some(act) = made {
            self.shared.audit.note_done(&self.principal, act, opened.name);
        }
        let mut spaces = self.spaces.borrow_mut();
        let known = spaces.iter().position(|known| Rc::ptr_eq(known, &hosted));
        let number = known.unwrap_or(spaces.len());
        if number == spaces.len() {
            if number >= SPACES_MAX {
                return Err(Fault::limit(
                    format!("no more than {SPACES_MAX} spaces on one connection"),
                    "use fewer spaces, or more processes",
                ));
            }
            spaces.push(Rc::clone(&hosted));
            if self.holds_back.get() {
                self.outbox.opened(&hosted);
            }
        }
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Ok((number, hosted))
    }

    /// Lets what this client puts wake nobody, until [`Session::serve_those_who_wait`].
    pub(crate) fn attend(&self) {
        self.spaces.borrow().iter().for_each(|hosted| hosted.attend());
    }

    /// Serves calls of all clients that wait for what this one has put. Returns whether there may have been some.
    pub(crate) fn serve_those_who_wait(&self) -> bool {
        let spaces = self.spaces.borrow();
        spaces.iter().fold(false, |has_some, hosted| hosted.serve_now() | has_some)
    }

    /// The space that was opened with this number.
    pub(crate) fn space(&self, number: u32) -> Result<Rc<Hosted>, Fault> {
        let space = self.spaces.borrow().get(number as usize).cloned();
        space
            .ok_or_else(|| Fault::protocol(format!("no space was opened with the number {number}")))
    }

    /// What the answers to a request tell of.
    pub(super) fn told_by(&self, request: &Request<'_>) -> About {
        match request {
            Request::Do { operation: Operation::Transfer { .. }, .. } => About::Any,
            Request::Do { on: Target::Space(number), .. } => {
                self.space(*number).map_or(About::Any, About::One)
            }
            Request::Do { on: Target::Kept { request, .. }, .. } => {
                match self.requests.borrow().get(request) {
                    Some(Open::Watches { waiting, .. }) => About::One(Rc::clone(&waiting.hosted)),
                    Some(Open::Keeps(kept, _)) => match &**kept {
                        Kept::Claim(_, hosted, _) => About::One(Rc::clone(hosted)),
                        _ => About::Any,
                    },
                    _ => About::Any,
                }
            }
            Request::Open { .. }
            | Request::Remove { .. }
            | Request::Spaces { .. }
            | Request::Ping { .. } => About::Nothing,
            _ => About::Any,
        }
    }

    /// A space that is named beside another one.
    pub(crate) fn space_of(&self, id: SpaceId) -> Result<Rc<Hosted>, Fault> {
        if Some(id.client) != self.client {
            let message = "one of the spaces was opened on another connection: that was lost";
            return Err(Fault::new(code::CONNECTION_LOST, message, Some("try again")));
        }
        self.space(id.space)
    }
}
