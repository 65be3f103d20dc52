//! The operations, done in a space, or on what an earlier request has left open.

pub(crate) mod claims;
pub(crate) mod events;
mod finds;
pub(crate) mod inside;
mod leases;
pub(crate) mod looks;
mod puts;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tupelo::encoding::{encode_tuple_ref, encode_tuple_view, write};
use tupelo::{
    Claim, ClaimTerms, Error, Outcome, Space, TemplateRef, TupleRef, TupleView, Waiter, Watch,
};
use tupelo_protocol::{
    Action, Amount, Fault, Operation, Settlement, Target, TemplateBytes, Watched,
};

use crate::answers::Answer;
use crate::hosted::Hosted;
use crate::kept::{Held, Kept, Last};
use crate::rights::Right;
use crate::session::{QueuedWait, Session};

/// What is held for a client is so until its connection ends; no claim or transaction is without an end of its own.
const HELD_FOR: Duration = Duration::from_secs(365 * 24 * 3600);
pub(crate) const TERMS: ClaimTerms = ClaimTerms { ttl: HELD_FOR, attempts_max: None };

/// Bytes of tuples in one answer of many that are asked for one after the other.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// What is done for a request that waits once its waiter has something.
#[derive(Clone)]
pub(crate) enum Purpose {
    /// It is held for the client.
    Take,
    /// It is copied.
    Read,
    /// It is claimed.
    Claim(ClaimTerms),
    /// A transaction takes it, in the space with this number.
    Inside(Rc<Kept>, usize),
}

/// What [`pick_up`] came to.
pub(crate) enum PickedUp {
    Held(Held, Vec<u8>),
    Claimed(Claim, Vec<u8>),
    Read(Vec<u8>),
    Waits(Waiter),
}

/// Does an operation. Returns its answer; `None` if that is given already, or comes later.
pub(crate) fn perform(
    session: &Session,
    id: u64,
    on: Target,
    operation: &Operation<'_>,
) -> Result<Option<Answer>, Fault> {
    let (request, at) = match on {
        Target::Space(number) => {
            return in_space(session, &session.space(number)?, id, operation);
        }
        Target::Kept { request, at } => (request, at as usize),
    };
    if let Some(line) = session.watching(request) {
        if !matches!(operation, Operation::Put { .. } | Operation::PutLeased { .. }) {
            return Err(not_for(operation, "a place in the wait queue"));
        }
        return line.with_grant(|| in_space(session, &line.hosted, id, operation));
    }
    let kept = session.kept(request)?;
    match &*kept {
        Kept::Lease(lease) => leases::on_lease(lease, operation).map(Some),
        Kept::Claim(claim, hosted, share) => {
            session.principal.narrow(&hosted.name, *operation)?;
            let grant = grant_of(session, operation)?;
            let answer = claims::on_claim(claim, share, grant.as_deref(), operation);
            session.forget_if_ended(request, &kept);
            answer.map(Some)
        }
        Kept::Subscription(subscription) => {
            events::perform(session, (request, &**subscription), id, operation)
        }
        Kept::Scan(scan, last) => {
            last.once(session, id, || looks::on_scan(scan, operation)).map(Some)
        }
        Kept::Transaction(_) => {
            let answer = inside::perform(session, (&kept, at), id, operation);
            session.forget_if_ended(request, &kept);
            answer
        }
    }
}

/// The place in the wait queue in whose grant a claim is done.
fn grant_of(session: &Session, operation: &Operation<'_>) -> Result<Option<Rc<QueuedWait>>, Fault> {
    let Operation::Settle(Settlement::Done { grant: Some(grant) }) = operation else {
        return Ok(None);
    };
    let line = session.watching(*grant);
    let nowhere = || {
        Fault::misuse(
            format!("request {grant} is not in the wait queue for room"),
            "join the wait queue",
        )
    };
    line.map(Some).ok_or_else(nowhere)
}

/// An operation for something else.
fn not_for(operation: &Operation<'_>, what: &str) -> Fault {
    Fault::protocol(format!("{} is not done to {what}", operation.name()))
}

/// Does an operation in a space.
fn in_space(
    session: &Session,
    hosted: &Rc<Hosted>,
    id: u64,
    operation: &Operation<'_>,
) -> Result<Option<Answer>, Fault> {
    let narrowed = session.principal.narrow(&hosted.name, *operation)?;
    let operation = &narrowed.operation();
    session.usage.require_content(&hosted.space, operation)?;
    if let Some(answer) = at_once(session, &hosted.space, operation)? {
        if let (Operation::Put { tuples, .. }, Answer::Done(1..)) = (operation, &answer) {
            hosted.meters.count_puts(tuples.as_bytes());
        }
        return Ok(Some(answer));
    }
    if let Operation::Find { action, order, amount, waits, template } = *operation {
        if action == Action::Take || waits {
            session.require_room()?;
        }
        return with_template(template, |template| match amount {
            Amount::One => finds::find(session, hosted, id, (action, order, waits), template),
            Amount::Many { at_least, at_most } => {
                let numbers = (at_least, at_most.unwrap_or(usize::MAX));
                finds::find_many(session, hosted, (id, action), numbers, template)
            }
        });
    }
    session.require_room()?;
    wait_or_keep(session, hosted, id, operation)
}

/// Does an operation that is answered at once, and leaves nothing open; `None` if it is no such one.
fn at_once(
    session: &Session,
    space: &Space,
    operation: &Operation<'_>,
) -> Result<Option<Answer>, Fault> {
    let count = match *operation {
        Operation::Put { tuples, terms, unless } => puts::put(space, tuples, terms, unless)?,
        Operation::Swap { template, to } => return puts::swap(space, template, to).map(Some),
        Operation::Count { template } => with_template(template, |template| space.count(template))?,
        Operation::Present { template } => {
            u64::from(with_template(template, |template| space.present(template))?)
        }
        Operation::Requeue { template } => {
            with_template(template, |template| space.requeue(template))?
        }
        Operation::Transfer { to, moves, template } => {
            let to = session.space_of(to)?;
            // As much as may be put there, too.
            let narrowed = session.principal.narrowed((Right::Put, "put"), &to.name, template)?;
            let template = narrowed.as_deref().map_or(template, TemplateBytes::of_encoding);
            with_template(template, |template| {
                looks::transfer(space, (&to.space, moves), template)
            })?
        }
        Operation::Find { amount: Amount::Many { .. }, waits: true, .. } => {
            return Err(Fault::protocol(
                "a call for several tuples does not wait: watch, and try again",
            ));
        }
        Operation::Dead { .. }
        | Operation::Stat
        | Operation::Blocked
        | Operation::Names
        | Operation::Explain { .. } => return looks::perform(space, operation).map(Some),
        _ => return Ok(None),
    };
    Ok(Some(Answer::Done(count)))
}

/// Does an operation that waits, or leaves something open.
fn wait_or_keep(
    session: &Session,
    hosted: &Rc<Hosted>,
    id: u64,
    operation: &Operation<'_>,
) -> Result<Option<Answer>, Fault> {
    let space = &hosted.space;
    let kept = match *operation {
        Operation::Watch { template, on } => {
            let on = match on {
                Watched::Put => Watch::Put,
                Watched::Removal => Watch::Removal,
            };
            let watch = with_template(template, |template| space.watch(template, on))?;
            session.watch(id, hosted, watch)?;
            return Ok(None);
        }
        Operation::Room => {
            session.watch(id, hosted, space.room()?)?;
            return Ok(None);
        }
        Operation::Claim { order, ttl, attempts_max, waits, template } => {
            let terms = ClaimTerms { ttl, attempts_max };
            return with_template(template, |template| {
                claims::claim(session, hosted, id, (order, waits, &terms), template)
            });
        }
        Operation::PutLeased { tuple, terms, unless } => {
            match leases::put(space, tuple, terms, unless)? {
                Some(lease) => {
                    hosted.meters.count_puts(tuple.as_bytes());
                    Kept::Lease(lease)
                }
                None => return Ok(Some(Answer::Nothing)),
            }
        }
        Operation::Begin { others, ttl } => inside::begin(session, hosted, &others, ttl)?,
        Operation::Subscribe { template, kinds, events_max, bytes_max } => {
            let terms = events::terms(kinds, events_max, bytes_max)?;
            let subscription =
                with_template(template, |template| space.subscribe(template, &terms))?;
            let hosted = events::HostedSubscription::new(session, hosted, id, subscription)?;
            Kept::Subscription(Box::new(hosted))
        }
        Operation::Scan { template } => {
            Kept::Scan(RefCell::new(space.scan(&template.decode()?)?), Last::default())
        }
        _ => return Err(not_for(operation, "a space")),
    };
    session.keep(id, kept, Answer::Done(1));
    Ok(Some(Answer::Done(1)))
}

/// Picks up what a waiter was handed, if it was.
pub(crate) fn pick_up(
    session: &Session,
    purpose: &Purpose,
    waiter: Waiter,
) -> Result<PickedUp, Fault> {
    Ok(match purpose {
        Purpose::Take => match waiter.finish_claim(&TERMS, one)? {
            Outcome::Done((claim, tuples)) => PickedUp::Held(Held::One(claim), tuples),
            Outcome::Waits(waiter) => PickedUp::Waits(waiter),
        },
        Purpose::Read => match waiter.finish_now(one)? {
            Outcome::Done(tuples) => PickedUp::Read(tuples),
            Outcome::Waits(waiter) => PickedUp::Waits(waiter),
        },
        Purpose::Claim(terms) => match waiter.finish_claim(terms, encoded)? {
            Outcome::Done((claim, tuple)) => {
                let tuples = claims::tuples_of(&claim, &tuple)?;
                PickedUp::Claimed(claim, tuples)
            }
            Outcome::Waits(waiter) => PickedUp::Waits(waiter),
        },
        Purpose::Inside(kept, at) => inside::pick_up(session, (kept, *at), waiter)?,
    })
}

/// Gives `act` a template in its borrowed form.
fn with_template<R>(
    template: TemplateBytes<'_>,
    act: impl FnOnce(&[TemplateRef<'_>]) -> Result<R, Error>,
) -> Result<R, Fault> {
    let template = template.decode()?;
    Ok(template.with_refs(act).map_err(Error::from)??)
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

    fn add_ref(&mut self, tuple: TupleRef<'_>) -> Result<(), Error> {
        self.count += 1;
        Ok(encode_tuple_ref(&mut self.bytes, tuple)?)
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
pub(crate) fn one(tuple: TupleView<'_>) -> Result<Vec<u8>, Error> {
    let mut tuples = Vec::with_capacity(64);
    write::array_header(&mut tuples, 1)?;
    append(&mut tuples, tuple)?;
    Ok(tuples)
}

/// A tuple on its own.
fn encoded(tuple: TupleView<'_>) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::with_capacity(64);
    append(&mut bytes, tuple)?;
    Ok(bytes)
}

fn append(out: &mut Vec<u8>, tuple: TupleView<'_>) -> Result<(), Error> {
    if tuple.fields().count() < tuple.len() {
        let problem = "a field points outside of its tuple".to_owned();
        return Err(Error::SpaceCorrupted { problem, hint: None });
    }
    Ok(encode_tuple_view(out, tuple)?)
}
