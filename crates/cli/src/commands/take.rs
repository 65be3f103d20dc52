//! `tupelo take`: a tuple is gone when it was printed, or when a command has worked on it, and not before.
//!
//! The tuples are taken in a transaction, which is committed when standard output has all of them. If printing fails (a
//! full disk, a closed pipe), or this program is ended before, the tuples are back with identity, age and place (rule
//! X5). If it is ended between the two, the printed tuples are in the space again: rather twice than not at all.

use std::time::{Duration, Instant};

use tupelo::{ClaimTerms, Outcome, Space, TemplateRef, Transaction, Tuple, Want};

use super::find::{self, WaitOptions};
use super::{connect, connect_existing, exec};
use crate::arguments::{Find, Take};
use crate::failure::Failure;
use crate::output::Output;
use crate::words;

/// How long a claim runs that is not renewed, if the user does not say.
const TTL: Duration = Duration::from_secs(30);
/// How long printing may take until everything is back, as where this program is stopped for good. Long:
/// a pager at the other end of the pipe may be left open over night.
const PRINTING_MAX: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn run(options: Take, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let Take { find, exec, ttl, max_attempts } = options;
    let Some(command_line) = exec else { return print(find, url, output) };
    let (url, asked) = find.sought.asked(url)?;
    let asked = asked.in_order(find.order)?;
    let space = if find.now { connect_existing(&url)? } else { connect(&url)? };
    let terms = ClaimTerms { ttl: ttl.unwrap_or(TTL), attempts_max: max_attempts };
    let wait = WaitOptions::new(find.order, (find.now, find.timeout), output);
    let done = asked.with(|template| exec::run(&space, template, (&terms, wait), &command_line))?;
    done.ok_or(Failure::NoMatch)
}

/// Takes and prints one match, or all.
fn print(options: Find, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let (url, asked) = options.sought.asked(url)?;
    let Find { now, all, limit, timeout, order, .. } = options;
    let asked = asked.in_order(order)?;
    let space = if now || all { connect_existing(&url)? } else { connect(&url)? };
    let (transaction, taken) = if all {
        asked.with(|template| take_all(&space, template, limit))?
    } else {
        let wait = WaitOptions::new(order, (now, timeout), output);
        let (transaction, tuple) =
            asked.with(|template| take(&space, template, wait))?.ok_or(Failure::NoMatch)?;
        (transaction, vec![tuple])
    };
    taken.iter().try_for_each(|tuple| find::print(tuple, output))?;
    output.flush()?;
    Ok(transaction.commit()?)
}

/// Everything that matches at one moment, not yet for good.
fn take_all(
    space: &Space,
    template: &[TemplateRef<'_>],
    limit: Option<usize>,
) -> Result<(Transaction, Vec<Tuple>), Failure> {
    let transaction = space.transaction(&[], PRINTING_MAX)?;
    let taken = transaction.at(0).take_all(template, limit, words::owned)?;
    Ok((transaction, taken))
}

/// A match, as soon as there is one, not yet for good. `None`: there is none, and `wait` says not to wait.
fn take(
    space: &Space,
    template: &[TemplateRef<'_>],
    wait: WaitOptions<'_>,
) -> Result<Option<(Transaction, Tuple)>, Failure> {
    let transaction = space.transaction(&[], PRINTING_MAX)?;
    if let Some(tuple) = transaction.at(0).try_take(template, wait.order, words::owned)? {
        return Ok(Some((transaction, tuple)));
    }
    if wait.now {
        return Ok(None);
    }
    let begin = Instant::now();
    let mut waiter = space.waiter(template, Want::Take)?;
    loop {
        find::await_match(space, ("take", template), &waiter, (wait, begin.elapsed()))?;
        // The time for printing begins here, however long was waited.
        let transaction = space.transaction(&[], PRINTING_MAX)?;
        match transaction.at(0).finish_take(waiter, words::owned)? {
            Outcome::Done(tuple) => return Ok(Some((transaction, tuple))),
            Outcome::Waits(again) => waiter = again,
        }
    }
}
