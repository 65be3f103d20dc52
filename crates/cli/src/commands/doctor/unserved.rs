//! Tasks that wait for a function that no worker serves.

use std::collections::BTreeSet;

use tupelo::{
    Error, Field, Kind, Order, Pattern, PatternError, Space, Template, Value, shell_word,
};

use super::Finding;
use crate::failure::Failure;
use crate::format;

/// The first field of a task; the second is its queue (docs/tasks.md).
const TASK: &str = "tupelo.task";
/// Queues that are looked at: each is a search.
const QUEUES_MAX: usize = 8;

/// A line for each public queue with waiting tasks that no worker serves.
pub(super) fn findings(url: &str, space: &Space) -> Result<Vec<Finding>, Failure> {
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    while seen.len() < QUEUES_MAX
        && let Some(queue) = another(space, &seen)?
    {
        if space.is_announced(&queue)? == Some(false) {
            let tasks = tasks_of(Pattern::from(queue.as_str()));
            let tasks = tasks.with_refs(|refs| space.count(refs)).map_err(Error::from)??;
            let wait = format::plural(tasks, "task waits", "tasks wait");
            let way_out = format!("tupelo worker {queue} -u {}", shell_word(url));
            let text = format!("{url}: {wait} for {queue}, which no worker serves: {way_out}");
            findings.push(Finding::warn("tasks", text));
        }
        seen.insert(queue);
    }
    Ok(findings)
}

/// The queue of some task that waits, except the ones in `seen`.
fn another(space: &Space, seen: &BTreeSet<String>) -> Result<Option<String>, Failure> {
    let queue = public_but(seen).map_err(|error| Failure::Other(error.to_string()))?;
    let name = |view: tupelo::TupleView<'_>| match view.field(1) {
        Some(Field::Str(queue)) => Ok::<_, Error>(queue.to_owned()),
        _ => Ok(String::new()),
    };
    let found = tasks_of(queue).with_refs(|refs| space.try_read(refs, Order::Any, name));
    Ok(found.map_err(Error::from)??)
}

/// The names of functions, `module:name`. The queue of a program's own workers is called otherwise.
fn public_but(seen: &BTreeSet<String>) -> Result<Pattern, PatternError> {
    let seen = Pattern::is_in(seen.iter().map(|queue| Value::from(queue.as_str())))?;
    Pattern::all([Pattern::glob("*:*")?, Pattern::not(seen)?])
}

fn tasks_of(queue: Pattern) -> Template {
    let count = || Pattern::from(Kind::Int);
    let call = [Pattern::ANY, Kind::Tuple.into(), Kind::Map.into(), Kind::Str.into()];
    let patterns = [TASK.into(), queue].into_iter().chain(call);
    Template::new(patterns.chain([count(), count(), count()]).collect())
}
