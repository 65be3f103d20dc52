//! Takes and reads in a space.

use std::rc::Rc;
use std::time::Duration;

use tupelo::{Error, Order, TemplateRef, TupleView, Want};
use tupelo_protocol::Action;

use super::{Found, HELD_FOR, Purpose, TERMS, one};
use crate::answers::Answer;
use crate::hosted::Hosted;
use crate::kept::Held;
use crate::meters::Handed;
use crate::session::Session;

/// Takes or reads one match; if there is none and the request waits, it joins the wait queue.
pub(super) fn find(
    session: &Session,
    hosted: &Rc<Hosted>,
    id: u64,
    (action, order, waits): (Action, Order, bool),
    template: &[TemplateRef<'_>],
) -> Result<Option<Answer>, Error> {
    let space = &hosted.space;
    match action {
        Action::Take => {
            if let Some((claim, tuples)) = space.try_claim(template, order, &TERMS, one)? {
                let handed = Handed::new(hosted, (&tuples, 0), Duration::ZERO);
                session.give(id, Held::One(claim), &tuples, handed);
                return Ok(None);
            }
        }
        Action::Read => {
            if let Some(tuples) = space.try_read(template, order, one)? {
                return Ok(Some(Answer::Found(Rc::new(tuples))));
            }
        }
    }
    if !waits {
        return Ok(Some(Answer::Nothing));
    }
    let (want, purpose) = match action {
        Action::Take => (Want::Take, Purpose::Take),
        Action::Read => (Want::Read, Purpose::Read),
    };
    session.wait(id, hosted, space.waiter(template, want)?, purpose)?;
    Ok(None)
}

/// Takes or reads the matches of one moment, unless there are too few.
pub(super) fn find_many(
    session: &Session,
    hosted: &Rc<Hosted>,
    (id, action): (u64, Action),
    (at_least, at_most): (usize, usize),
    template: &[TemplateRef<'_>],
) -> Result<Option<Answer>, Error> {
    let (space, mut found) = (&hosted.space, Found::default());
    let mut visitor = |tuple: TupleView<'_>| found.add(tuple);
    if action == Action::Read {
        let read = space.read_all(template, Some(at_most), visitor)?;
        let is_enough = read.len() >= at_least;
        let answer = || Ok(Answer::Found(Rc::new(found.into_tuples()?)));
        return if is_enough { answer().map(Some) } else { Ok(Some(Answer::Nothing)) };
    }
    let transaction = space.transaction(&[], HELD_FOR)?;
    let taken = transaction.at(0).try_take_many(template, at_least, at_most, &mut visitor)?;
    if taken.is_none() {
        return Ok(Some(Answer::Nothing));
    }
    let tuples = found.into_tuples()?;
    let handed = Handed::new(hosted, (&tuples, 0), Duration::ZERO);
    session.give(id, Held::Many(transaction), &tuples, handed);
    Ok(None)
}
