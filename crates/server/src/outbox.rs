//! What is on its way to a client. An answer that tells of a space in a file is held back until that is on disk (rule C4); the
//! answers that tell of other spaces go before it.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use tokio::sync::Notify;
use tupelo_protocol::{Fault, Reply};

use crate::hosted::Hosted;
use crate::session::Session;

/// Bytes that may be on their way to a client who reads nothing; then its connection ends.
const BYTES_MAX: usize = 256 << 20;

/// What the answers to a request tell of.
#[derive(Default)]
pub(crate) enum About {
    /// Nothing that is in a space.
    Nothing,
    /// One space.
    One(Rc<Hosted>),
    /// Any of those that the client has open.
    #[default]
    Any,
}

/// An answer that is held back.
struct HeldBack {
    frame: Vec<u8>,
    id: u64,
    /// The spaces that it tells of.
    files: Vec<Rc<Hosted>>,
}

/// Frames that are not written yet, in their order.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: RefCell<Vec<u8>>,
    held_back: RefCell<Vec<HeldBack>>,
    /// Whether a task waits for the disk.
    is_settling: Cell<bool>,
    /// How often everything was forgotten.
    turn: Cell<u64>,
    /// The spaces of files that the client has open, if answers are held back here.
    files: RefCell<Vec<Rc<Hosted>>>,
    /// What the next answers tell of.
    about: RefCell<About>,
    pub(crate) filled: Notify,
}

impl Outbox {
    /// Adds an answer; instead of one that is too large for a frame, that it is.
    pub(crate) fn push(&self, reply: &Reply<'_>) -> Result<(), Fault> {
        let files = self.files_behind(reply);
        if let (false, Some(id)) = (files.is_empty(), reply.id()) {
            let mut frame = Vec::new();
            reply.write(&mut frame)?;
            self.held_back.borrow_mut().push(HeldBack { frame, id, files });
            self.filled.notify_one();
            return Ok(());
        }
        let written = reply.write(&mut self.bytes.borrow_mut());
        self.filled.notify_one();
        written
    }

    /// The spaces that an answer tells of and whose files are behind. One behind another answer that is held back stays there.
    fn files_behind(&self, reply: &Reply<'_>) -> Vec<Rc<Hosted>> {
        let (files, about) = (self.files.borrow(), self.about.borrow());
        // A refusal tells of no change, unless it says that there was one.
        let is_refused = |fault: &Fault| fault.flags & Fault::MAY_HAVE_HAPPENED == 0;
        if files.is_empty() || matches!(reply, Reply::Refused { fault, .. } if is_refused(fault)) {
            return Vec::new();
        }
        let held_back = self.held_back.borrow();
        let is_told = |hosted: &&Rc<Hosted>| match &*about {
            About::Nothing => false,
            About::One(one) => Rc::ptr_eq(one, hosted),
            About::Any => true,
        };
        let is_behind = |hosted: &&Rc<Hosted>| {
            let is_this = |other: &Rc<Hosted>| Rc::ptr_eq(other, hosted);
            hosted.is_behind() || held_back.iter().any(|answer| answer.files.iter().any(is_this))
        };
        files.iter().filter(is_told).filter(is_behind).cloned().collect()
    }

    /// Notes a space that the client has opened, if it is kept in a file: from now on answers that tell of it are held back.
    pub(crate) fn opened(&self, hosted: &Rc<Hosted>) {
        if hosted.space.is_kept() {
            self.files.borrow_mut().push(Rc::clone(hosted));
        }
    }

    /// Notes what the next answers tell of.
    pub(crate) fn tells(&self, about: About) {
        self.about.replace(about);
    }

    /// All that is not held back.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.bytes.take()
    }

    /// Forgets all answers: their client asks again.
    pub(crate) fn forget(&self) {
        self.turn.set(self.turn.get() + 1);
        self.bytes.take();
        self.held_back.take();
    }

    /// Whether there is more than a client may leave unread.
    pub(crate) fn is_over(&self) -> bool {
        let held_back: usize = self.held_back.borrow().iter().map(|one| one.frame.len()).sum();
        self.bytes.borrow().len() + held_back > BYTES_MAX
    }

    /// Whether a task has to begin to wait for the disk.
    pub(crate) fn begins_to_settle(&self) -> bool {
        !self.held_back.borrow().is_empty() && !self.is_settling.replace(true)
    }

    /// The spaces whose files the answers wait for that are held back now.
    fn awaited(&self) -> Vec<Rc<Hosted>> {
        let mut files: Vec<Rc<Hosted>> = Vec::new();
        for hosted in self.held_back.borrow().iter().flat_map(|answer| &answer.files) {
            if !files.iter().any(|known| Rc::ptr_eq(known, hosted)) {
                files.push(Rc::clone(hosted));
            }
        }
        files
    }

    /// Lets so many answers go. In the place of each that tells of a space whose disk has refused goes a refusal; returns the
    /// requests that these were for.
    fn release(&self, count: usize, refused: &[(Rc<Hosted>, Fault)]) -> Vec<u64> {
        let mut ids = Vec::new();
        let mut bytes = self.bytes.borrow_mut();
        for HeldBack { frame, id, files } in self.held_back.borrow_mut().drain(..count) {
            let is_of =
                |(space, _): &&(Rc<Hosted>, Fault)| files.iter().any(|one| Rc::ptr_eq(one, space));
            match refused.iter().find(is_of) {
                None => bytes.extend_from_slice(&frame),
                Some((_, fault)) => {
                    // It is no larger than the fault of any other call.
                    let refusal = Reply::Refused { id: Some(id), fault: fault.clone() };
                    let _ = refusal.write(&mut bytes);
                    ids.push(id);
                }
            }
        }
        self.filled.notify_one();
        ids
    }
}

/// Waits for the disk, and lets the answers of a session go that were held back for it, until there are none. The session does not
/// wait meanwhile.
pub(crate) async fn settle(session: Weak<Session>) {
    loop {
        // Not held over the wait: what a session that ends has is given back at once.
        let Some(current) = session.upgrade() else { return };
        let (turn, files) = (current.outbox.turn.get(), current.outbox.awaited());
        let count = current.outbox.held_back.borrow().len();
        if count == 0 {
            current.outbox.is_settling.set(false);
            return;
        }
        drop(current);
        let mut refused = Vec::new();
        for hosted in files {
            if let Err(fault) = hosted.settled().await {
                refused.push((hosted, fault));
            }
        }
        let Some(session) = session.upgrade() else { return };
        if session.outbox.turn.get() == turn {
            for id in session.outbox.release(count, &refused) {
                session.give_up(id);
            }
        }
    }
}
