//! The journal of a space that is kept in a file, as `tupelo stat` shows it.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tupelo::{JournalStat, Space};

use crate::format;

/// Between two looks, whose difference is the rate of syncs.
const INTERVAL: Duration = Duration::from_millis(250);

/// A first look.
pub(super) struct JournalLook {
    first: JournalStat,
    begun: Instant,
}

impl JournalLook {
    /// Looks once, if there is a journal.
    pub(super) fn begin(space: &Space) -> Option<Self> {
        space.journal_stat().map(|first| Self { first, begun: Instant::now() })
    }

    /// Looks again, a moment later.
    pub(super) fn end(self, space: &Space) -> JournalFigures {
        thread::sleep(INTERVAL);
        let last = space.journal_stat().unwrap_or(self.first);
        let batches = last.batches.saturating_sub(self.first.batches);
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
        let syncs_per_s = batches as f64 / self.begun.elapsed().as_secs_f64();
        JournalFigures { last, syncs_per_s }
    }
}

/// What two looks tell.
#[derive(Clone, Copy)]
pub(super) struct JournalFigures {
    last: JournalStat,
    syncs_per_s: f64,
}

impl JournalFigures {
    /// Bytes of changes that are in memory alone.
    const fn lag_bytes(self) -> u64 {
        self.last.appended.saturating_sub(self.last.drained)
    }

    /// Bytes of changes that came to the disk with one sync, on the average.
    const fn batch_bytes(self) -> u64 {
        match self.last.drained.checked_div(self.last.batches) {
            Some(bytes) => bytes,
            None => 0,
        }
    }

    pub(super) fn json(self) -> Value {
        json!({
            "position": self.last.drained,
            "lag_bytes": self.lag_bytes(),
            "bytes": self.last.bytes,
            "batches": self.last.batches,
            "batch_bytes": self.batch_bytes(),
            "syncs_per_s": self.syncs_per_s,
        })
    }
}

impl fmt::Display for JournalFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let behind = match self.lag_bytes() {
            0 => "everything".to_owned(),
            bytes => format!("all but {}", format::bytes(bytes)),
        };
        write!(
            f,
            "{behind}; {} of {} each, {:.0} a second now",
            format::plural(self.last.batches, "batch", "batches"),
            format::bytes(self.batch_bytes()),
            self.syncs_per_s
        )
    }
}
