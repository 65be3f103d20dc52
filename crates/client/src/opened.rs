//! A space that is open on a connection, by a number that each session gives it anew.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tupelo_protocol::{Fault, Opened, Request, Target};

use crate::journal::{Numbers, Reopened};
use crate::space::OpenOptions;

/// A space that is open.
#[derive(Debug)]
pub(crate) struct OpenSpace {
    options: OpenOptions,
    state: Mutex<State>,
}

/// The session, and the number of the space in it; or why it has none.
#[derive(Debug)]
struct State {
    session: u64,
    number: Result<u32, Fault>,
    /// What keeps the keys of its requests, also beyond the end of the server.
    keeper: Option<u64>,
}

impl OpenSpace {
    /// One that has this number in this session, and keeps keys there.
    pub(crate) fn new(
        options: &OpenOptions,
        session: u64,
        (number, keeper): (u32, Option<u64>),
    ) -> Self {
        // Who connects again means the one that is there.
        let options = OpenOptions { fresh: false, ..options.clone() };
        Self { options, state: Mutex::new(State { session, number: Ok(number), keeper }) }
    }

    /// The session, and the number of the space in it.
    ///
    /// # Errors
    ///
    /// Why the server did not open it when the connection was made again.
    pub(crate) fn number(&self) -> Result<(u64, u32), Fault> {
        let state = self.state();
        state.number.clone().map(|number| (state.session, number))
    }

    /// The session, and the space as what is asked.
    ///
    /// # Errors
    ///
    /// As [`OpenSpace::number`].
    pub(crate) fn target(&self) -> Result<(u64, Target), Fault> {
        self.number().map(|(session, number)| (session, Target::Space(number)))
    }

    /// The same space in another session.
    pub(crate) fn reopened(&self, number: u32, keeper: Option<u64>) -> Reopened {
        let knows_keys = keeper.is_some() && keeper == self.state().keeper;
        Reopened { number, keeper, knows_keys }
    }

    /// What opens it again.
    pub(crate) fn request(&self, id: u64) -> Request<'_> {
        Request::Open { id, opened: self.options.opened() }
    }

    /// Goes on in another session, in which the spaces have these numbers; `gone` for those that have none.
    pub(crate) fn go_on(&self, session: u64, numbers: &Numbers, gone: &Fault) {
        let mut state = self.state();
        if let Ok(before) = state.number {
            let now = numbers.get(&before).cloned().unwrap_or_else(|| Err(gone.clone()));
            state.keeper = now.as_ref().ok().and_then(|now| now.keeper);
            state.number = now.map(|now| now.number);
        }
        state.session = session;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenOptions {
    /// As it is asked for.
    pub(crate) fn opened(&self) -> Opened<'_> {
        let Self { name, create, fresh, size_bytes, tuples_max, when_full } = self;
        Opened {
            name,
            create: *create,
            fresh: *fresh,
            size_bytes: *size_bytes,
            tuples_max: *tuples_max,
            when_full: *when_full,
        }
    }
}
