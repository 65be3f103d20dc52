//! Looking at spaces: scans, moves and copies, and figures.

use std::cell::RefCell;
use std::rc::Rc;

use tupelo::{
    Blocked, Error, Scan, Space, Stat, TemplateRef, Tuple, TupleView, Value, tuple, with_all_tuples,
};
use tupelo_protocol::{Fault, Operation, Tuples};

use super::{BATCH_BYTES_MAX, Found, claims, not_for, with_template};
use crate::answers::Answer;
use crate::hosted::Spaces;
use crate::rights::{Principal, Right};

/// Matches in one answer of a scan.
const MATCHES_MAX: usize = 4096;

/// Does an operation on a scan.
pub(super) fn on_scan(scan: &RefCell<Scan>, operation: &Operation<'_>) -> Result<Answer, Fault> {
    let Operation::Next { at_most } = *operation else { return Err(not_for(operation, "a scan")) };
    let mut found = Found::default();
    let visitor = |tuple: TupleView<'_>| {
        if found.bytes.len() >= BATCH_BYTES_MAX {
            // It is the first of the next batch.
            return Err(Error::Interrupted { problem: "the batch is full".into() });
        }
        found.add(tuple)
    };
    let batch = scan.borrow_mut().next_batch(at_most.clamp(1, MATCHES_MAX), visitor)?;
    if batch.is_empty() {
        return Ok(Answer::Nothing);
    }
    Ok(Answer::Found(Rc::new(found.into_tuples()?)))
}

/// Moves or copies the matches of one moment into another space.
pub(super) fn transfer(
    space: &Space,
    (to, moves): (&Space, bool),
    template: &[TemplateRef<'_>],
) -> Result<u64, Error> {
    if moves { space.move_to(to, template) } else { space.copy_to(to, template) }
}

/// Tells of a space.
pub(super) fn perform(space: &Space, operation: &Operation<'_>) -> Result<Answer, Fault> {
    let tuples = match *operation {
        Operation::Stat => encoded(&space.stat()?.to_tuples())?,
        Operation::Blocked => blocked(space)?,
        Operation::Names => encoded(&tupelo::names_to_tuples(&space.names()?))?,
        Operation::Dead { template } => {
            with_template(template, |template| claims::dead(space, template))?
        }
        Operation::Explain { template } => {
            let why = with_template(template, |template| space.explain(template))?;
            encoded(&why.to_tuples())?
        }
        _ => return Err(not_for(operation, "a space")),
    };
    Ok(Answer::Found(Rc::new(tuples)))
}

/// The callers that wait: of each its process, and its template as it is written on its own.
fn blocked(space: &Space) -> Result<Vec<u8>, Fault> {
    let row = |Blocked { pid, template }: Blocked| {
        Ok(tuple![i64::from(pid), template.encode().map_err(Error::from)?])
    };
    let rows: Result<Vec<Tuple>, Error> = space.blocked()?.into_iter().map(row).collect();
    encoded(&rows?)
}

/// The spaces in which this one may do something, with figures of those that are open and of which it may see them.
pub(crate) fn spaces(spaces: &Spaces, principal: &Principal) -> Result<Answer, Fault> {
    let mut rows = Vec::new();
    for name in spaces.all_names()? {
        if principal.require_any(&name).is_err() {
            continue;
        }
        let may_see = principal.has(Right::Admin, &name);
        let stat = if may_see { spaces.stat(&name)? } else { None };
        let figure = |of: fn(&Stat) -> u64| {
            stat.as_ref()
                .and_then(|stat| i64::try_from(of(stat)).ok())
                .map_or(Value::Null, Value::Int)
        };
        rows.push(tuple![name, figure(|stat| stat.tuples), figure(|stat| stat.bytes_used)]);
    }
    Ok(Answer::Found(Rc::new(encoded(&rows)?)))
}

/// Tuples as an answer.
fn encoded(rows: &[Tuple]) -> Result<Vec<u8>, Fault> {
    let encoded = with_all_tuples(rows, |rows| Tuples::encode(rows.iter().copied()));
    Ok(encoded.map_err(Error::from)??)
}
