//! The operations, done in a space.

use std::rc::Rc;
use std::time::Duration;

use tupelo::encoding::{Decoded, encode_tuple_view, write};
use tupelo::{
    Claim, ClaimTerms, Error, LeaseTerms, Order, Outcome, Space, TemplateRef, TupleView, Waiter,
    Want, Watch,
};
use tupelo_protocol::{Action, Amount, Fault, Operation, PutTerms, TemplateBytes, Tuples, Watched};

use crate::answers::Answer;
use crate::hosted::Hosted;
use crate::session::{Held, Session};

/// What is held for a client is so until its connection ends; no claim or transaction is without an end of its own.
const HELD_FOR: Duration = Duration::from_secs(365 * 24 * 3600);
const TERMS: ClaimTerms = ClaimTerms { ttl: HELD_FOR, attempts_max: None };

/// What [`pick_up`] came to.
pub(crate) enum PickedUp {
    Taken(Claim, Vec<u8>),
    Read(Vec<u8>),
    Waits(Waiter),
}

/// Does an operation. Returns its answer; `None` if that is given already, or comes later.
pub(crate) fn perform(
    session: &Session,
    hosted: &Rc<Hosted>,
    id: u64,
    operation: &Operation<'_>,
) -> Result<Option<Answer>, Fault> {
    let space = &hosted.space;
    match *operation {
        Operation::Put { tuples, terms, unless } => {
            put(space, tuples, terms, unless).map(|count| Some(Answer::Done(count)))
        }
        Operation::Count { template } => {
            let count = with_template(template, |template| space.count(template))?;
            Ok(Some(Answer::Done(count)))
        }
        Operation::Present { template } => {
            let present = with_template(template, |template| space.present(template))?;
            Ok(Some(Answer::Done(u64::from(present))))
        }
        Operation::Swap { template, to } => {
            let to = to.decode()?;
            let [to] = &to[..] else { return Err(Fault::protocol("a swap is for one tuple")) };
            let old =
                with_template(template, |template| space.try_swap(template, to.as_ref(), one))?;
            Ok(Some(old.map_or(Answer::Nothing, |old| Answer::Found(Rc::new(old)))))
        }
        Operation::Watch { template, on } => {
            session.require_room()?;
            let on = match on {
                Watched::Put => Watch::Put,
                Watched::Removal => Watch::Removal,
            };
            let waiter = with_template(template, |template| space.watch(template, on))?;
            session.wait(id, hosted, waiter, true);
            Ok(None)
        }
        Operation::Find { action, order, amount, waits, template } => {
            if action == Action::Take || waits {
                session.require_room()?;
            }
            match (amount, waits) {
                (Amount::One, _) => {
                    let how = (action, order, waits);
                    with_template(template, |template| find(session, hosted, id, how, template))
                }
                (Amount::Many { at_least, at_most }, false) => {
                    let numbers = (at_least, at_most.unwrap_or(usize::MAX));
                    with_template(template, |template| {
                        find_many(session, space, (id, action), numbers, template)
                    })
                }
                (Amount::Many { .. }, true) => Err(Fault::protocol(
                    "a call for several tuples does not wait: watch, and try again",
                )),
            }
        }
    }
}

/// Gives `act` a template in its borrowed form.
fn with_template<R>(
    template: TemplateBytes<'_>,
    act: impl FnOnce(&[TemplateRef<'_>]) -> Result<R, Error>,
) -> Result<R, Fault> {
    let template = template.decode()?;
    Ok(template.with_refs(act).map_err(Error::from)??)
}

fn put(
    space: &Space,
    tuples: Tuples<'_>,
    terms: PutTerms,
    unless: Option<TemplateBytes<'_>>,
) -> Result<u64, Fault> {
    let tuples = tuples.decode()?;
    let PutTerms { lease, after } = terms;
    let terms = LeaseTerms { lease, after };
    if let Some(unless) = unless {
        let ([tuple], true) = (&tuples[..], terms == LeaseTerms::default()) else {
            return Err(Fault::protocol("a put with `unless` is for one tuple, without terms"));
        };
        let put = |unless: &[TemplateRef<'_>]| space.put_if_absent(tuple.as_ref(), unless);
        return Ok(u64::from(with_template(unless, put)?));
    }
    if let ([tuple], true) = (&tuples[..], terms == LeaseTerms::default()) {
        space.put(tuple.as_ref())?;
        return Ok(1);
    }
    let tuples: Vec<_> = tuples.iter().map(Decoded::as_ref).collect();
    Ok(space.put_all_leased(&tuples, &terms)? as u64)
}

/// Takes or reads one match; if there is none and the request waits, it gets in line.
fn find(
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
                session.give(id, Held::One(claim), &tuples);
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
    let want = if action == Action::Take { Want::Take } else { Want::Read };
    session.wait(id, hosted, space.waiter(template, want)?, false);
    Ok(None)
}

/// Takes or reads the matches of one moment, unless there are too few.
fn find_many(
    session: &Session,
    space: &Space,
    (id, action): (u64, Action),
    (at_least, at_most): (usize, usize),
    template: &[TemplateRef<'_>],
) -> Result<Option<Answer>, Error> {
    let mut found = Found::default();
    let mut sink = |tuple: TupleView<'_>| found.add(tuple);
    if action == Action::Read {
        let read = space.read_all(template, Some(at_most), sink)?;
        let is_enough = read.len() >= at_least;
        let answer = || Ok(Answer::Found(Rc::new(found.into_tuples()?)));
        return if is_enough { answer().map(Some) } else { Ok(Some(Answer::Nothing)) };
    }
    let transaction = space.transaction(&[], HELD_FOR)?;
    let taken = transaction.at(0).try_take_many(template, at_least, at_most, &mut sink)?;
    if taken.is_none() {
        return Ok(Some(Answer::Nothing));
    }
    session.give(id, Held::Many(transaction), &found.into_tuples()?);
    Ok(None)
}

/// Picks up what a waiter was handed, if it was.
pub(crate) fn pick_up(waiter: Waiter) -> Result<PickedUp, Fault> {
    if waiter.takes() {
        return Ok(match waiter.finish_claim(&TERMS, one)? {
            Outcome::Done((claim, tuples)) => PickedUp::Taken(claim, tuples),
            Outcome::Waits(waiter) => PickedUp::Waits(waiter),
        });
    }
    Ok(match waiter.finish_now(one)? {
        Outcome::Done(tuples) => PickedUp::Read(tuples),
        Outcome::Waits(waiter) => PickedUp::Waits(waiter),
    })
}

/// Tuples on their way into an answer.
#[derive(Default)]
struct Found {
    count: usize,
    bytes: Vec<u8>,
}

impl Found {
    fn add(&mut self, tuple: TupleView<'_>) -> Result<(), Error> {
        self.count += 1;
        append(&mut self.bytes, tuple)
    }

    /// As a list.
    fn into_tuples(self) -> Result<Vec<u8>, Error> {
        let mut tuples = Vec::with_capacity(self.bytes.len() + 5);
        write::array_header(&mut tuples, self.count)?;
        tuples.extend(self.bytes);
        Ok(tuples)
    }
}

/// A list of one tuple.
fn one(tuple: TupleView<'_>) -> Result<Vec<u8>, Error> {
    let mut tuples = Vec::with_capacity(64);
    write::array_header(&mut tuples, 1)?;
    append(&mut tuples, tuple)?;
    Ok(tuples)
}

fn append(out: &mut Vec<u8>, tuple: TupleView<'_>) -> Result<(), Error> {
    if tuple.fields().count() < tuple.len() {
        let problem = "a field points outside of its tuple".to_owned();
        return Err(Error::SpaceCorrupted { problem });
    }
    Ok(encode_tuple_view(out, tuple)?)
}
