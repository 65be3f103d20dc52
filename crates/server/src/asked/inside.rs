//! Transactions (rules X1 to X6).

use std::rc::Rc;
use std::time::Duration;

use tupelo::encoding::Decoded;
use tupelo::{
    Error, Inside, LeaseTerms, Order, Outcome, Space, TemplateRef, TupleView, Waiter, Want,
};
use tupelo_protocol::{
    Action, Amount, Fault, Operation, PutTerms, Settlement, SpaceIds, Tuples, Watched,
};

use super::{Found, PickedUp, Purpose, not_for, one, with_template};
use crate::answers::Answer;
use crate::hosted::Hosted;
use crate::kept::{Held, Kept, Open};
use crate::meters::Handed;
use crate::session::Session;

/// Begins a transaction over the space and others of the same connection.
pub(super) fn begin(
    session: &Session,
    first: &Rc<Hosted>,
    others: &SpaceIds<'_>,
    ttl: Duration,
) -> Result<Kept, Fault> {
    let mut spaces = vec![Rc::clone(first)];
    for id in others.to_vec() {
        spaces.push(session.space_of(id)?);
    }
    let others: Vec<&Space> = spaces[1..].iter().map(|hosted| &hosted.space).collect();
    let transaction = first.space.transaction(&others, ttl)?;
    Ok(Kept::Transaction(Open { transaction, spaces, puts: session.pending.share() }))
}

/// The space number `at` as the transaction sees it.
fn seen((kept, at): (&Kept, usize)) -> Result<(&Open, Inside<'_>, &Rc<Hosted>), Fault> {
    let Kept::Transaction(open) = kept else {
        return Err(Fault::protocol("this is no transaction"));
    };
    let count = open.spaces.len();
    let hosted = open.spaces.get(at);
    let hosted = hosted.ok_or_else(|| {
        Fault::protocol(format!("the transaction has {count} spaces, none is {at}"))
    })?;
    Ok((open, open.transaction.at(at), hosted))
}

/// Does an operation in a transaction.
pub(super) fn perform(
    session: &Session,
    (kept, at): (&Rc<Kept>, usize),
    id: u64,
    operation: &Operation<'_>,
) -> Result<Option<Answer>, Fault> {
    let (open, inside, hosted) = seen((kept, at))?;
    let narrowed = session.principal.narrow(&hosted.name, *operation)?;
    let operation = &narrowed.operation();
    match *operation {
        Operation::Watch { template, on: Watched::Put } => {
            session.require_room()?;
            let watch = with_template(template, |template| inside.waiter(template, Want::Read))?;
            session.watch(id, hosted, watch)?;
            Ok(None)
        }
        Operation::Find {
            action: Action::Take,
            amount: Amount::One,
            waits: true,
            template,
            ..
        } => {
            session.require_room()?;
            let waiter = with_template(template, |template| inside.waiter(template, Want::Take))?;
            session.wait(id, hosted, waiter, Purpose::Inside(Rc::clone(kept), at))?;
            Ok(None)
        }
        Operation::Find { action, order, amount, waits: false, template } => {
            session.require_room()?;
            let found = with_template(template, |template| {
                find(inside, (action, order), amount, template)
            })?;
            let Some(tuples) = found else { return Ok(Some(Answer::Nothing)) };
            if action == Action::Read {
                return Ok(Some(Answer::Found(Rc::new(tuples))));
            }
            give(session, (kept, at), id, &tuples)?;
            Ok(None)
        }
        _ => counted(open, inside, operation).map(|count| Some(Answer::Done(count))),
    }
}

/// Does an operation in a transaction that is answered by a number.
fn counted(open: &Open, inside: Inside<'_>, operation: &Operation<'_>) -> Result<u64, Fault> {
    Ok(match *operation {
        Operation::Put { tuples, terms, unless: None } => put(open, inside, (tuples, terms))?,
        Operation::Put { tuples, terms, unless: Some(unless) } => {
            let unless = unless.decode()?;
            let put =
                |unless: &[TemplateRef<'_>]| put_if_absent(open, inside, (tuples, terms), unless);
            unless.with_refs(put).map_err(Error::from)??
        }
        Operation::Check { tuples } => {
            let tuples = tuples.decode()?;
            tuples.iter().try_for_each(|tuple| inside.check(tuple.as_ref()))?;
            tuples.len() as u64
        }
        Operation::Count { template } => {
            with_template(template, |template| inside.count(template))?
        }
        Operation::HasRead => u64::from(inside.has_read()?),
        Operation::Settle(Settlement::Done { grant: None }) => {
            open.transaction.commit()?;
            1
        }
        Operation::Settle(Settlement::Abort { .. }) => {
            open.transaction.abort()?;
            1
        }
        _ => return Err(not_for(operation, "a transaction")),
    })
}

/// Takes or reads; `None` if there is nothing, or not enough.
fn find(
    inside: Inside<'_>,
    (action, order): (Action, Order),
    amount: Amount,
    template: &[TemplateRef<'_>],
) -> Result<Option<Vec<u8>>, Error> {
    match amount {
        Amount::One if action == Action::Take => inside.try_take(template, order, one),
        Amount::One => inside.try_read(template, order, one),
        Amount::Many { at_least, at_most } => {
            find_many(inside, action, (at_least, at_most), template)
        }
    }
}

fn put(
    open: &Open,
    inside: Inside<'_>,
    (tuples, terms): (Tuples<'_>, PutTerms),
) -> Result<u64, Fault> {
    let bytes = tuples.as_bytes().len();
    let tuples = tuples.decode()?;
    open.puts.add(bytes)?;
    let refs: Vec<_> = tuples.iter().map(Decoded::as_ref).collect();
    let PutTerms { lease, after } = terms;
    inside.put_all_on(&refs, &LeaseTerms { lease, after })?;
    Ok(refs.len() as u64)
}

/// As [`put`], of one tuple, unless something matches `unless`.
fn put_if_absent(
    open: &Open,
    inside: Inside<'_>,
    (tuples, terms): (Tuples<'_>, PutTerms),
    unless: &[TemplateRef<'_>],
) -> Result<u64, Fault> {
    let bytes = tuples.as_bytes().len();
    let tuples = tuples.decode()?;
    let [tuple] = &tuples[..] else {
        return Err(Fault::protocol("a put with `unless` is for one tuple"));
    };
    open.puts.add(bytes)?;
    let PutTerms { lease, after } = terms;
    Ok(inside.put_if_absent(tuple.as_ref(), unless, &LeaseTerms { lease, after })?.into())
}

/// Takes or reads the matches of one moment; `None` if there are too few.
fn find_many(
    inside: Inside<'_>,
    action: Action,
    (at_least, at_most): (usize, Option<usize>),
    template: &[TemplateRef<'_>],
) -> Result<Option<Vec<u8>>, Error> {
    let mut found = Found::default();
    let visitor = |tuple: TupleView<'_>| found.add(tuple);
    let is_enough = match action {
        Action::Read => inside.read_all(template, at_most, visitor)?.len() >= at_least,
        Action::Take => {
            let at_most = at_most.unwrap_or(usize::MAX);
            inside.try_take_many(template, at_least, at_most, visitor)?.is_some()
        }
    };
    if is_enough { found.into_tuples().map(Some) } else { Ok(None) }
}

/// Gives the client what its transaction has taken, to be acknowledged.
fn give(
    session: &Session,
    (kept, at): (&Rc<Kept>, usize),
    id: u64,
    tuples: &[u8],
) -> Result<(), Fault> {
    match held(session, (kept, at), tuples) {
        Ok(held) => {
            let (_, _, hosted) = seen((kept, at))?;
            let handed = Handed::new(hosted, (tuples, 0), Duration::ZERO);
            session.give(id, held, tuples, handed);
            Ok(())
        }
        Err(fault) => {
            put_back(kept, at, tuples);
            Err(fault)
        }
    }
}

fn held(session: &Session, (kept, at): (&Rc<Kept>, usize), tuples: &[u8]) -> Result<Held, Fault> {
    let share = session.pending.share();
    share.add(tuples.len())?;
    Ok(Held::Inside { kept: Rc::clone(kept), at, tuples: tuples.to_owned(), _share: share })
}

/// Picks up what a waiter of a transaction was handed, if it was and the transaction is open.
pub(super) fn pick_up(
    session: &Session,
    (kept, at): (&Rc<Kept>, usize),
    waiter: Waiter,
) -> Result<PickedUp, Fault> {
    let (_, inside, _) = seen((kept, at))?;
    match inside.finish_take(waiter, one)? {
        Outcome::Waits(waiter) => Ok(PickedUp::Waits(waiter)),
        Outcome::Done(tuples) => match held(session, (kept, at), &tuples) {
            Ok(held) => Ok(PickedUp::Held(held, tuples)),
            Err(fault) => {
                put_back(kept, at, &tuples);
                Err(fault)
            }
        },
    }
}

/// Puts back what a transaction has taken and its client has not got. It is back as it was if the transaction is rolled
/// back, and as a new tuple if it commits.
pub(crate) fn put_back(kept: &Kept, at: usize, tuples: &[u8]) {
    let Ok((_, inside, _)) = seen((kept, at)) else { return };
    let Ok(tuples) = Tuples::of_encoding(tuples).decode() else { return };
    for tuple in &tuples {
        // A transaction that is over has given back what it had taken.
        let _ = inside.put(tuple.as_ref());
    }
}
