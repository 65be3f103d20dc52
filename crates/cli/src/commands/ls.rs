//! `tupelo ls`: the spaces of this user, or the shapes in one.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use tupelo::{ClaimStat, ShapeStat};

use super::connect_existing;
use crate::arguments::Ls;
use crate::failure::Failure;
use crate::format;
use crate::output::Output;

pub(crate) fn run(options: Ls, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    match options.space.or(url) {
        Some(url) => shapes(&url, output),
        None => spaces(output),
    }
}

fn spaces(output: &mut Output) -> Result<(), Failure> {
    let spaces = tupelo::spaces()?;
    if output.json {
        return spaces.iter().try_for_each(|space| {
            let since_epoch = space.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
            output.object(&json!({
                "url": format!("shm://{}", space.name),
                "bytes": space.bytes,
                "modified": since_epoch.as_secs_f64(),
            }))
        });
    }
    if spaces.is_empty() {
        return output.line("no spaces here; `tupelo put shm://NAME hello world` makes one");
    }
    #[expect(clippy::disallowed_methods, reason = "files have dates")]
    let now = SystemTime::now();
    let rows: Vec<Vec<String>> = spaces
        .iter()
        .map(|space| {
            let age = now.duration_since(space.modified).unwrap_or_default();
            let age = format!("{} ago", format::seconds(age));
            vec![format!("shm://{}", space.name), format::bytes(space.bytes), age]
        })
        .collect();
    format::table(&["SPACE", "MEMORY", "CHANGED"], &rows)
        .iter()
        .try_for_each(|line| output.line(line))
}

fn shapes(url: &str, output: &mut Output) -> Result<(), Failure> {
    let shapes = connect_existing(url)?.stat()?.shapes;
    if output.json {
        return shapes.iter().try_for_each(|shape| output.object(&shape_json(shape)));
    }
    if shapes.is_empty() {
        return output.line(format!("{url} is empty"));
    }
    shape_table(&shapes).iter().try_for_each(|line| output.line(line))
}

/// The shapes with their contents, and how much went through them.
pub(super) fn shape_table(shapes: &[ShapeStat]) -> Vec<String> {
    let rows: Vec<Vec<String>> = shapes
        .iter()
        .map(|shape| {
            vec![
                shape.shape.to_string(),
                format::count(shape.count),
                format::bytes(shape.bytes),
                format::count(shape.waiting),
                format::count(shape.claims.len() as u64),
                format::count(shape.leased),
                format::count(shape.dead),
                format::count(shape.puts),
                format::count(shape.takes),
            ]
        })
        .collect();
    let heads =
        ["SHAPE", "COUNT", "BYTES", "WAITING", "CLAIMED", "LEASED", "DEAD", "PUTS", "TAKES"];
    format::table(&heads, &rows)
}

/// A shape for programs.
pub(super) fn shape_json(shape: &ShapeStat) -> serde_json::Value {
    let kinds = shape.shape.kinds.iter().map(|kind| kind.name());
    json!({
        "shape": kinds.clone().collect::<Vec<_>>(),
        "entry": shape.shape.class.map(|class| json!({
            "name": class.name(),
            "bases": class.bases().collect::<Vec<_>>(),
            "fields": class.fields().zip(kinds).collect::<BTreeMap<_, _>>(),
        })),
        "count": shape.count,
        "bytes": shape.bytes,
        "waiting": shape.waiting,
        "claims": shape.claims.iter().map(claim_json).collect::<Vec<_>>(),
        "dead": shape.dead,
        "delayed": shape.delayed,
        "leased": shape.leased,
        "in_transactions": shape.in_transactions,
        "read_locks": shape.read_locks,
        "puts": shape.puts,
        "takes": shape.takes,
        "indexes": shape.indexes,
    })
}

fn claim_json(claim: &ClaimStat) -> serde_json::Value {
    json!({
        "pid": claim.pid,
        "fence": claim.fence,
        "attempt": claim.attempt,
        "expires_in_s": claim.expires_in.as_secs_f64(),
    })
}
