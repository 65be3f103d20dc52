//! `tupelo stat`: one page about a space.

use serde_json::json;
use tupelo::{ShapeStat, Stat, SubscriptionStat, TransactionStat, WhenFull};

use super::journal::{JournalFigures, JournalLook};
use super::look::{Look, by_template, who_waits};
use super::shared_memory::{DIRECTORY, Room};
use super::{connect_existing, pids};
use crate::arguments;
use crate::failure::Failure;
use crate::format;
use crate::output::{Color, Output};
use crate::words;

/// Claims that a page lists, and transactions; more are counted.
const HOLDERS_SHOWN: usize = 8;

pub(crate) fn run(
    options: arguments::Stat,
    url: Option<String>,
    output: &mut Output,
) -> Result<(), Failure> {
    let url = words::space(options.space, url)?;
    let space = connect_existing(&url)?;
    let journal = JournalLook::begin(&space).map(|begun| begun.end(&space));
    let look = Look::at(&space)?;
    if output.json {
        return output.object(&stat_json(&url, &look, journal));
    }
    page(&url, &look, journal, output)
}

fn page(
    url: &str,
    look: &Look,
    journal: Option<JournalFigures>,
    output: &mut Output,
) -> Result<(), Failure> {
    let stat = &look.stat;
    let pids: Vec<String> = pids(stat).iter().map(ToString::to_string).collect();
    let of_max = 100 * stat.bytes_used / stat.bytes_max.max(1);
    output.line(url)?;
    output.line(format!("  tuples      {}", tuples(stat)))?;
    output.line(format!(
        "  memory      {} in use, {} at most ({of_max} %), {} taken from the machine",
        format::bytes(stat.bytes_used),
        format::bytes(stat.bytes_max),
        format::bytes(memory_bytes(url, stat)),
    ))?;
    if 2 * stat.largest_free_bytes < stat.bytes_max.saturating_sub(stat.bytes_used) {
        let largest = format::bytes(stat.largest_free_bytes);
        output.line(format!("              in pieces: the largest that is free has {largest}"))?;
    }
    if let Some(line) = shared_memory(url) {
        output.line(output.colored(&line, Color::Red))?;
    }
    output.line(format!("  when full   {}", when_full(stat)))?;
    output.line(format!("  waiting     {}", waiting(stat)))?;
    waiters(look).into_iter().try_for_each(|line| output.line(line))?;
    if let Some(journal) = journal {
        output.line(format!("  on disk     {journal}"))?;
    }
    if stat.where_errors > 0 {
        let times = format::plural(stat.where_errors, "tuple", "tuples");
        output.line(format!("  where       no answer for {times}, which were no match then"))?;
    }
    for one in &stat.subscriptions {
        output.line(format!(
            "  listening   process {}: {} of {} waiting, {} dropped",
            one.pid,
            format::plural(one.waiting, "event", "events"),
            format::count(one.buffer),
            format::count(one.dropped),
        ))?;
    }
    held(stat).into_iter().try_for_each(|line| output.line(line))?;
    let processes = if pids.is_empty() { "none now".to_owned() } else { pids.join(" ") };
    output.line(format!("  processes   {processes}"))?;
    if stat.shapes.is_empty() {
        return Ok(());
    }
    output.line("")?;
    let table = look.table(Output::width().saturating_sub(2));
    output.lines(table.into_iter().map(|(line, color)| (format!("  {line}"), color)).collect())?;
    let indexed: Vec<&ShapeStat> =
        stat.shapes.iter().filter(|shape| !shape.indexes.is_empty()).collect();
    if !indexed.is_empty() {
        output.line("\n  learned indexes, by field counted from 0")?;
    }
    indexed.into_iter().try_for_each(|shape| {
        let lists: Vec<String> = shape.indexes.iter().map(|fields| field_list(fields)).collect();
        output.line(format!("  {}   {}", shape.shape, lists.join(" ")))
    })
}

fn tuples(stat: &Stat) -> String {
    let tuples = format::count(stat.tuples);
    stat.tuples_max.map_or(tuples.clone(), |max| format!("{tuples} of {}", format::count(max)))
}

/// What becomes of a put for which there is no room, and of how many tuples it became that.
fn when_full(stat: &Stat) -> String {
    let policy = match stat.when_full {
        WhenFull::Error => "a put is refused",
        WhenFull::Wait => "a put waits",
        WhenFull::DropOldest => "the oldest go",
    };
    if stat.when_full != WhenFull::DropOldest {
        return policy.to_owned();
    }
    format!("{policy}, {} so far", format::count(stat.dropped))
}

fn waiting(stat: &Stat) -> String {
    let calls = format::plural(stat.waiters, "call", "calls");
    if stat.waiting_for_room == 0 {
        return calls;
    }
    format!("{calls}, {} of them for room", format::count(stat.waiting_for_room))
}

/// Bytes of the machine's memory that the space has now: of its file, if that is there to be looked at.
fn memory_bytes(url: &str, stat: &Stat) -> u64 {
    let name = url.strip_prefix("shm://");
    let spaces = name.and_then(|_| tupelo::spaces().ok()).unwrap_or_default();
    let itself = spaces.iter().find(|space| Some(space.name.as_str()) == name);
    itself.map_or(stat.bytes_committed, |space| space.bytes)
}

/// The line about the memory that all spaces share, if it is that which is full.
fn shared_memory(url: &str) -> Option<String> {
    let room = Room::now().filter(|room| url.starts_with("shm://") && room.is_used_up())?;
    let (free, total) = (format::bytes(room.free_bytes), format::bytes(room.total_bytes));
    Some(format!(
        "  {DIRECTORY}    full: {free} free of {total}, so puts fail before the space is full; see `tupelo ls`"
    ))
}

/// Lines about who waits for what.
fn waiters(look: &Look) -> Vec<String> {
    let line =
        |(template, pids, _): (String, Vec<u32>, _)| format!("{} for {template}", who_waits(&pids));
    listed("           ", by_template(look.blocked.clone()).into_iter().map(line).collect())
}

/// Lines about hidden tuples, as far as there are any.
fn held(stat: &Stat) -> Vec<String> {
    let claims = stat.shapes.iter().flat_map(|shape| {
        shape.claims.iter().map(|claim| {
            format!(
                "one {} by process {}, attempt {}, for {}",
                shape.shape,
                claim.pid,
                claim.attempt,
                format::seconds(claim.expires_in)
            )
        })
    });
    let mut lines = listed("claimed    ", claims.collect());
    let transactions = stat.transactions.iter().map(|one| {
        format!(
            "process {} has taken {} and read {}, for {}",
            one.pid,
            format::plural(one.taken, "tuple", "tuples"),
            format::count(one.read),
            format::seconds(one.expires_in)
        )
    });
    lines.extend(listed("transaction", transactions.collect()));
    let dead: u64 = stat.shapes.iter().map(|shape| shape.dead).sum();
    let delayed: u64 = stat.shapes.iter().map(|shape| shape.delayed).sum();
    let leased: u64 = stat.shapes.iter().map(|shape| shape.leased).sum();
    let counted = [("dead     ", dead), ("for later", delayed), ("leased   ", leased)];
    let there = counted.into_iter().filter(|(_, tuples)| *tuples > 0);
    lines.extend(
        there.map(|(what, tuples)| {
            format!("  {what}   {}", format::plural(tuples, "tuple", "tuples"))
        }),
    );
    lines
}

/// A line about each, under the same head; of many, about the first.
fn listed(head: &str, all: Vec<String>) -> Vec<String> {
    let more = all.len().saturating_sub(HOLDERS_SHOWN);
    let and_more = (more > 0).then(|| format!("and {more} more"));
    let shown = all.into_iter().take(HOLDERS_SHOWN).chain(and_more);
    shown.map(|line| format!("  {head} {line}")).collect()
}

fn field_list(fields: &[usize]) -> String {
    let numbers: Vec<String> = fields.iter().map(ToString::to_string).collect();
    format!("({})", numbers.join(", "))
}

fn subscription_json(one: &SubscriptionStat) -> serde_json::Value {
    json!({
        "pid": one.pid,
        "waiting": one.waiting,
        "buffer": one.buffer,
        "buffer_bytes": one.buffer_bytes,
        "events": one.events,
        "dropped": one.dropped,
    })
}

fn transaction_json(transaction: &TransactionStat) -> serde_json::Value {
    json!({
        "pid": transaction.pid,
        "taken": transaction.taken,
        "read": transaction.read,
        "expires_in_s": transaction.expires_in.as_secs_f64(),
    })
}

fn stat_json(url: &str, look: &Look, journal: Option<JournalFigures>) -> serde_json::Value {
    let stat = &look.stat;
    let of_template = |(template, pids, _)| json!({ "template": template, "pids": pids });
    let blocked = by_template(look.blocked.clone()).into_iter().map(of_template);
    json!({
        "url": url,
        "tuples": stat.tuples,
        "bytes_used": stat.bytes_used,
        "bytes_committed": stat.bytes_committed,
        "bytes_memory": memory_bytes(url, stat),
        "bytes_max": stat.bytes_max,
        "largest_free_bytes": stat.largest_free_bytes,
        "tuples_max": stat.tuples_max,
        "when_full": stat.when_full.name(),
        "dropped": stat.dropped,
        "waiters": stat.waiters,
        "blocked": blocked.collect::<Vec<_>>(),
        "where_errors": stat.where_errors,
        "waiting_for_room": stat.waiting_for_room,
        "subscriptions": stat.subscriptions.iter().map(subscription_json).collect::<Vec<_>>(),
        "transactions": stat.transactions.iter().map(transaction_json).collect::<Vec<_>>(),
        "pids": pids(stat),
        "journal": journal.map(JournalFigures::json),
        "shapes": stat.shapes.iter().map(|shape| look.shape_json(shape)).collect::<Vec<_>>(),
    })
}
