//! The page on the terminal: which part of it is shown, and in which order.

use std::cmp::{Ordering, Reverse};
use std::time::{Duration, Instant};

use super::{Look, table};
use crate::commands::rows::Row;
use crate::failure::Failure;
use crate::format;
use crate::terminal::{Line, Screen};

/// Idle spaces that are named.
const IDLE_NAMED_MAX: usize = 3;

/// What rows go by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    /// How much happens, then how many tuples.
    #[default]
    Rate,
    Count,
    Waiting,
    Name,
}

impl Sort {
    const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Count => "count",
            Self::Waiting => "waiting",
            Self::Name => "name",
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Rate => Self::Count,
            Self::Count => Self::Waiting,
            Self::Waiting => Self::Name,
            Self::Name => Self::Rate,
        }
    }

    /// Brings rows into this order. Each is asked for what it shows, and how much happens in it per second.
    pub(super) fn apply<T>(self, rows: &mut [T], of: impl Fn(&T) -> (&Row, f64)) {
        rows.sort_by(|one, other| {
            let ((one, rate), (other, other_rate)) = (of(one), of(other));
            let by_count = || Reverse(one.count).cmp(&Reverse(other.count));
            let by_name = || one.what.cmp(&other.what);
            let order = match self {
                Self::Rate => other_rate.total_cmp(&rate),
                Self::Waiting => other.waiting.cmp(&one.waiting),
                Self::Count => Ordering::Equal,
                Self::Name => by_name(),
            };
            order.then_with(by_count).then_with(by_name)
        });
    }
}

/// What a key does.
#[derive(Clone, Copy)]
enum Key {
    Sort,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}

/// The keys, as terminals send them.
const KEYS: [(&[u8], Key); 17] = [
    (b"\x1b[A", Key::Up),
    (b"\x1bOA", Key::Up),
    (b"\x1b[B", Key::Down),
    (b"\x1bOB", Key::Down),
    (b"\x1b[5~", Key::PageUp),
    (b"\x1b[6~", Key::PageDown),
    (b"\x1b[H", Key::Home),
    (b"\x1b[1~", Key::Home),
    (b"\x1b[F", Key::End),
    (b"\x1b[4~", Key::End),
    (b"s", Key::Sort),
    (b"S", Key::Sort),
    (b"k", Key::Up),
    (b"j", Key::Down),
    (b" ", Key::PageDown),
    (b"g", Key::Home),
    (b"G", Key::End),
];

/// What a person sees of the spaces.
pub(super) struct Page {
    interval: Duration,
    colors: bool,
    sort: Sort,
    /// Lines above the screen.
    above: usize,
}

impl Page {
    pub(super) fn new(interval: Duration, colors: bool) -> Self {
        Self { interval, colors, sort: Sort::default(), above: 0 }
    }

    /// Shows a look until the next is due, and follows the keys; false if there is to be none. The last one is not waited for.
    pub(super) fn show(
        &mut self,
        screen: &mut Screen,
        looks: &[Look],
        is_last: bool,
    ) -> Result<bool, Failure> {
        let until = Instant::now() + self.interval;
        loop {
            let (rows, columns) = screen.size();
            let lines = self.lines(looks, rows, columns);
            screen.draw(&lines).map_err(|error| Failure::output(&error))?;
            if is_last {
                return Ok(true);
            }
            let Some(keys) = screen.wait(until) else { return Ok(false) };
            self.follow(&keys, rows);
            if Instant::now() >= until {
                return Ok(true);
            }
        }
    }

    /// Does what was typed, key by key.
    fn follow(&mut self, mut keys: &[u8], rows: usize) {
        let page = rows.saturating_sub(3).max(1);
        while let Some((_, rest)) = keys.split_first() {
            let key = KEYS.iter().find_map(|(key, does)| Some((keys.strip_prefix(*key)?, does)));
            let Some((rest, does)) = key else {
                keys = rest;
                continue;
            };
            keys = rest;
            match does {
                Key::Sort => self.sort = self.sort.next(),
                Key::Up => self.above = self.above.saturating_sub(1),
                Key::Down => self.above = self.above.saturating_add(1),
                Key::PageUp => self.above = self.above.saturating_sub(page),
                Key::PageDown => self.above = self.above.saturating_add(page),
                Key::Home => self.above = 0,
                Key::End => self.above = usize::MAX,
            }
        }
    }

    /// The lines of a screen with so many rows and columns: a head, and the part of the others that was scrolled to.
    fn lines(&mut self, looks: &[Look], rows: usize, columns: usize) -> Vec<Line> {
        let mut body = self.body(looks, columns);
        let fitting = rows.saturating_sub(2).max(1);
        self.above = self.above.min(body.len().saturating_sub(fitting));
        let below = body.len().saturating_sub(self.above + fitting);
        let more = if below > 0 { format!("; {below} below") } else { String::new() };
        let spaces = format::plural(looks.len() as u64, "space", "spaces");
        let head = format!(
            "tupelo top: {spaces}, every {}, by {}; keys s, arrows, q{more}",
            format::seconds(self.interval),
            self.sort.name(),
        );
        let shown = body.drain(self.above..).take(fitting);
        let shown = shown.map(|(line, color)| (line, color.filter(|_| self.colors)));
        [(head, None)].into_iter().chain(shown).collect()
    }

    /// The spaces, those in which something happens first, then those with tuples; the others in one line.
    fn body(&self, looks: &[Look], columns: usize) -> Vec<Line> {
        let (mut busy, idle): (Vec<&Look>, Vec<&Look>) =
            looks.iter().partition(|look| looks.len() == 1 || !look.is_idle());
        if self.sort != Sort::Name {
            busy.sort_by(|one, other| other.rate().total_cmp(&one.rate()));
        }
        let mut lines = Vec::new();
        for look in busy {
            lines.push((" ".to_owned(), None));
            lines.extend(table(look, self.sort, columns));
        }
        if !idle.is_empty() {
            let named: Vec<&str> =
                idle.iter().take(IDLE_NAMED_MAX).map(|look| look.url.as_str()).collect();
            let more = if idle.len() > IDLE_NAMED_MAX { ", …" } else { "" };
            let spaces = format::plural(idle.len() as u64, "idle space", "idle spaces");
            lines.push((" ".to_owned(), None));
            lines.push((format!("{spaces}: {}{more}", named.join(", ")), None));
        }
        lines
    }
}

impl Look {
    /// Whether nothing is in it, nobody waits and nothing happens.
    fn is_idle(&self) -> bool {
        self.seen.as_ref().is_ok_and(|seen| {
            let stat = &seen.figures.stat;
            stat.tuples + stat.waiters == 0 && self.rate() <= 0.0
        })
    }

    /// How much happens in it, per second.
    fn rate(&self) -> f64 {
        let sum = |seen: &super::Seen| seen.rates.iter().map(|rates| rates.sum()).sum();
        self.seen.as_ref().map_or(0.0, sum)
    }
}
