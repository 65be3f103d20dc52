//! A look at a space: its figures, its tuples by name, and who waits for what.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use tupelo::{Blocked, ClaimStat, NameStat, ShapeNames, ShapeStat, Space, Stat, Template};

use super::rows::{self, Row};
use crate::failure::Failure;
use crate::format;
use crate::terminal::Line;

/// Processes that are named in one line.
const PIDS_MAX: usize = 5;

pub(super) struct Look {
    pub(super) stat: Stat,
    pub(super) names: Vec<ShapeNames>,
    pub(super) blocked: Vec<Blocked>,
}

impl Look {
    pub(super) fn at(space: &Space) -> Result<Self, Failure> {
        let stat = space.stat()?;
        // Those are more than the figures: an older server tells of none.
        let names = space.names().unwrap_or_default();
        let blocked = space.blocked().unwrap_or_default();
        Ok(Self { stat, names, blocked })
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        rows::rows(&self.stat, &self.names, &self.blocked)
    }

    /// The rows as a table for people.
    pub(super) fn table(&self, width_max: usize) -> Vec<Line> {
        rows::table(&self.rows(), &self.stat, width_max)
    }

    /// A shape for programs.
    pub(super) fn shape_json(&self, shape: &ShapeStat) -> Json {
        let kinds = shape.shape.kinds.iter().map(|kind| kind.name());
        let named = self.names.iter().find(|named| named.shape == shape.shape);
        json!({
            "shape": kinds.clone().collect::<Vec<_>>(),
            "entry": shape.shape.class.map(|class| json!({
                "name": class.name(),
                "bases": class.bases().collect::<Vec<_>>(),
                "fields": class.fields().zip(kinds).collect::<BTreeMap<_, _>>(),
            })),
            "names": named.map(|named| named.names.iter().map(name_json).collect::<Vec<_>>()),
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
}

fn name_json(name: &NameStat) -> Json {
    json!({
        "first": name.name,
        "second": name.of,
        "count": name.count,
        "claimed": name.claimed,
        "dead": name.dead,
    })
}

fn claim_json(claim: &ClaimStat) -> Json {
    json!({
        "pid": claim.pid,
        "fence": claim.fence,
        "attempt": claim.attempt,
        "expires_in_s": claim.expires_in.as_secs_f64(),
    })
}

/// The blocked callers by what they wait for: the templates with most callers first.
pub(super) fn by_template(blocked: Vec<Blocked>) -> Vec<(String, Vec<u32>, Template)> {
    let mut by_template = BTreeMap::<String, (Vec<u32>, Template)>::new();
    for Blocked { pid, template } in blocked {
        by_template.entry(template.to_string()).or_insert((Vec::new(), template)).0.push(pid);
    }
    let waiting = by_template.into_iter().map(|(text, (pids, template))| (text, pids, template));
    let mut waiting: Vec<_> = waiting.collect();
    waiting.sort_by_key(|(_, pids, _)| Reverse(pids.len()));
    waiting
}

/// "process 7 waits", or "3 callers wait (process 7, 9)".
pub(super) fn who_waits(pids: &[u32]) -> String {
    if let [pid] = pids {
        return format!("process {pid} waits");
    }
    let distinct: BTreeSet<u32> = pids.iter().copied().collect();
    let named: Vec<String> = distinct.iter().take(PIDS_MAX).map(u32::to_string).collect();
    let more = if distinct.len() > PIDS_MAX { ", …" } else { "" };
    format!(
        "{} callers wait (process {}{more})",
        format::count(pids.len() as u64),
        named.join(", ")
    )
}
