//! `tupelo top`: spaces, live.
//!
//! On a terminal the screen is redrawn, elsewhere one table (with `--json` one object per shape) is
//! printed per look. Rates are differences between two looks, so the first has none. Each look is at the space that has
//! the name then. A space that was made anew is another one, and an unreadable one may be readable again.

mod page;

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tupelo::{Error, NameStat, Shape, ShapeNames, ShapeStat, Space, Stat};

use self::page::{Page, Sort};
use super::look::Look as Figures;
use super::rows::{Row, folded};
use super::{connect_existing, pids};
use crate::arguments::Top;
use crate::failure::Failure;
use crate::format::{self, Column, Table};
use crate::output::{Color, Output};
use crate::terminal::{Line, Screen};

const INTERVAL_MIN: Duration = Duration::from_millis(50);
/// Names of a shape that keep their rows.
const NAMES_MAX: usize = 64;

pub(crate) fn run(options: Top, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let interval = options.interval.max(INTERVAL_MIN);
    let named: Vec<String> = options.spaces.into_iter().chain(url).collect();
    let follows = Follows::of(named)?;
    let mut watched: Vec<Watched> =
        follows.spaces.iter().map(|url| Watched::connect(url)).collect::<Result<_, _>>()?;
    let mut screen = if output.json || output.quiet { None } else { Screen::open() };
    let mut page = Page::new(interval, output.colors_wanted());
    for look in 1.. {
        follows.follow(&mut watched)?;
        let looks = watched.iter_mut().map(Watched::look);
        let looks = looks.filter_map(|look| {
            let is_named = follows.spaces.contains(&look.url);
            goes_on(look, !is_named).transpose()
        });
        let looks = looks.collect::<Result<Vec<_>, _>>()?;
        let is_last = options.count == Some(look);
        match &mut screen {
            Some(screen) => {
                if !page.show(screen, &looks, is_last)? {
                    break;
                }
            }
            None => print(&looks, output)?,
        }
        if is_last {
            break;
        }
        if screen.is_none() {
            thread::sleep(interval);
        }
    }
    Ok(())
}

/// The shown result of a look, unless it ends `top`. Without names, a space of the user may be damaged, which is shown,
/// or gone since the list was read. With names, a space may be gone until it is made anew.
fn goes_on(look: Look, all: bool) -> Result<Option<Look>, Failure> {
    match look.seen {
        // It may be removed between the two halves of a look, too.
        Err(Failure::Space(Error::SpaceNotFound { .. } | Error::SpaceRemoved { .. })) => {
            Ok((!all).then_some(look))
        }
        Err(failure) if !all => Err(failure),
        _ => Ok(Some(look)),
    }
}

/// A space that is looked at again and again.
struct Watched {
    url: String,
    /// The space that had this name at the last look, if it could be opened.
    space: Option<Space>,
    before: Option<Before>,
}

/// What a look leaves for the next one.
struct Before {
    at: Instant,
    /// Operations since the space was made.
    totals: HashMap<Shape, Totals>,
    /// The names that a shape has had: it keeps its row while it has no tuples.
    names: Vec<ShapeNames>,
    counts: HashMap<String, u64>,
}

/// Operations on one shape since the space was made.
#[derive(Clone, Copy, Default)]
struct Totals {
    puts: u64,
    takes: u64,
}

/// Operations per second; `None` at the first look.
#[derive(Clone, Copy)]
struct Rates {
    puts_per_s: Option<f64>,
    takes_per_s: Option<f64>,
}

/// A look at a space: its contents, or why there are none.
struct Look {
    url: String,
    seen: Result<Seen, Failure>,
}

struct Seen {
    figures: Figures,
    /// By shape.
    rates: Vec<Rates>,
    rows: Vec<Growing>,
}

/// A row, and whether it has more tuples than at the last look.
struct Growing {
    row: Row,
    grows: bool,
}

impl Seen {
    /// The rates of a row; `None` if they are not known of it.
    fn rates(&self, row: &Row) -> Rates {
        let sum = |of: fn(&Rates) -> Option<f64>| {
            if row.is_shared {
                return None;
            }
            row.shapes.iter().map(|shape| of(&self.rates[*shape])).sum::<Option<f64>>()
        };
        Rates { puts_per_s: sum(|one| one.puts_per_s), takes_per_s: sum(|one| one.takes_per_s) }
    }
}

impl Rates {
    fn sum(self) -> f64 {
        self.puts_per_s.unwrap_or_default() + self.takes_per_s.unwrap_or_default()
    }
}

impl Watched {
    fn new(url: String) -> Self {
        Self { url, space: None, before: None }
    }

    fn connect(url: &str) -> Result<Self, Failure> {
        let space = Some(connect_existing(url)?);
        Ok(Self { space, ..Self::new(url.to_owned()) })
    }

    fn look(&mut self) -> Look {
        Look { url: self.url.clone(), seen: self.see() }
    }

    fn see(&mut self) -> Result<Seen, Failure> {
        let mut figures = Figures::at(self.space_now()?)?;
        let at = Instant::now();
        if let Some(before) = &self.before {
            remember(&before.names, &mut figures.names);
        }
        let rates = figures.stat.shapes.iter().map(|shape| self.rates(shape, at)).collect();
        let totals = |shape: &ShapeStat| {
            (shape.shape.clone(), Totals { puts: shape.puts, takes: shape.takes })
        };
        let rows = figures.rows();
        let counts = rows.iter().map(|row| (row.what.clone(), row.count)).collect();
        let grows = |row: &Row| {
            let before = self.before.as_ref();
            before
                .is_some_and(|one| one.counts.get(&row.what).is_some_and(|then| *then < row.count))
        };
        let rows = rows.into_iter().map(|row| Growing { grows: grows(&row), row }).collect();
        let names = figures.names.clone();
        self.before = Some(Before {
            at,
            totals: figures.stat.shapes.iter().map(totals).collect(),
            names,
            counts,
        });
        Ok(Seen { figures, rates, rows })
    }

    /// The space that has the name now: that of the last look, if it still has the name.
    fn space_now(&mut self) -> Result<&Space, Failure> {
        let now = connect_existing(&self.url);
        let last =
            self.space.take().filter(|last| now.as_ref().is_ok_and(|now| is_same(last, now)));
        if last.is_none() {
            self.before = None;
        }
        let space = last.map_or(now, Ok)?;
        Ok(self.space.insert(space))
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate is for reading, three digits do")]
    fn rates(&self, shape: &ShapeStat, now: Instant) -> Rates {
        let Some(then) = &self.before else {
            return Rates { puts_per_s: None, takes_per_s: None };
        };
        // A shape that was not there before began at nothing.
        let before = then.totals.get(&shape.shape).copied().unwrap_or_default();
        let elapsed_s = now.duration_since(then.at).as_secs_f64();
        let per_s = |after: u64, before: u64| {
            let rate = after.saturating_sub(before) as f64 / elapsed_s;
            Some((rate * 10.0).round() / 10.0)
        };
        Rates {
            puts_per_s: per_s(shape.puts, before.puts),
            takes_per_s: per_s(shape.takes, before.takes),
        }
    }
}

/// Adds the names of the last look that have no tuples now.
fn remember(before: &[ShapeNames], now: &mut [ShapeNames]) {
    for shape in now {
        let Some(before) = before.iter().find(|before| before.shape == shape.shape) else {
            continue;
        };
        for name in &before.names {
            let is_same = |one: &NameStat| one.name == name.name && one.of == name.of;
            if shape.names.len() < NAMES_MAX && !shape.names.iter().any(is_same) {
                shape.names.push(NameStat { count: 0, claimed: 0, dead: 0, ..name.clone() });
            }
        }
    }
}

/// Whether both are handles of one space, and not of two that had the same name: a transaction knows its spaces.
fn is_same(space: &Space, other: &Space) -> bool {
    space.transaction(&[], Duration::ZERO).is_ok_and(|spanning| spanning.on(other).is_ok())
}

/// What is watched, by what was named.
struct Follows {
    /// These spaces.
    spaces: Vec<String>,
    /// All spaces of these servers.
    servers: Vec<String>,
}

impl Follows {
    fn of(named: Vec<String>) -> Result<Self, Failure> {
        let (mut spaces, mut servers) = (Vec::new(), Vec::new());
        for url in named {
            let is_server = tupelo::spaces_of(&url)?.is_some();
            if is_server { servers.push(url) } else { spaces.push(url) }
        }
        Ok(Self { spaces, servers })
    }

    /// Adds new spaces and drops removed ones since the last look.
    fn follow(&self, watched: &mut Vec<Watched>) -> Result<(), Failure> {
        let mut urls = self.spaces.clone();
        for server in &self.servers {
            let spaces = tupelo::spaces_of(server)?.unwrap_or_default();
            urls.extend(spaces.into_iter().map(|space| space.url));
        }
        if self.spaces.is_empty() && self.servers.is_empty() {
            urls.extend(tupelo::spaces()?.into_iter().map(|space| format!("shm://{}", space.name)));
        }
        watched.retain(|one| urls.contains(&one.url));
        for url in urls {
            if !watched.iter().any(|one| one.url == url) {
                watched.push(Watched::new(url));
            }
        }
        Ok(())
    }
}

fn print(looks: &[Look], output: &mut Output) -> Result<(), Failure> {
    if output.json {
        looks.iter().filter_map(Look::problem).for_each(|problem| output.note(problem));
        looks.iter().flat_map(objects).try_for_each(|object| output.object(&object))?;
    } else {
        let width = Output::width();
        let lines = looks.iter().flat_map(|look| table(look, Sort::default(), width)).collect();
        output.lines(lines)?;
    }
    output.flush()
}

impl Look {
    /// Why nothing was seen.
    fn problem(&self) -> Option<String> {
        let failure = self.seen.as_ref().err()?;
        Some(format!("{}   {}", self.url, failure.message().unwrap_or_default()))
    }
}

fn objects(look: &Look) -> Vec<serde_json::Value> {
    let Ok(seen) = &look.seen else { return Vec::new() };
    let with_rates = |(shape, rates): (&ShapeStat, &Rates)| {
        let mut object = seen.figures.shape_json(shape);
        object["url"] = json!(look.url);
        object["puts_per_s"] = json!(rates.puts_per_s);
        object["takes_per_s"] = json!(rates.takes_per_s);
        object
    };
    seen.figures.stat.shapes.iter().zip(&seen.rates).map(with_rates).collect()
}

/// A space as a heading and a table, or as its error.
fn table(look: &Look, sort: Sort, width_max: usize) -> Vec<Line> {
    let Ok(seen) = &look.seen else {
        let problem = look.problem().unwrap_or_default();
        return problem.lines().map(|line| (line.to_owned(), None)).collect();
    };
    let mut lines = vec![(heading(&look.url, &seen.figures.stat), None)];
    let mut busy: Vec<&Growing> = seen.rows.iter().filter(|one| !one.row.is_idle()).collect();
    sort.apply(&mut busy, |one| (&one.row, seen.rates(&one.row).sum()));
    let figure = |of: fn(&Row) -> u64| busy.iter().map(|one| format::count(of(&one.row))).collect();
    let rates = |of: fn(Rates) -> Option<f64>| {
        busy.iter().map(|one| rate(of(seen.rates(&one.row)))).collect()
    };
    let known = |of: fn(&ShapeStat) -> u64, shown: fn(u64) -> String| {
        let known = |one: &&Growing| one.row.sum(&seen.figures.stat, of);
        busy.iter().map(|one| known(one).map_or_else(|| "-".to_owned(), shown)).collect()
    };
    // What changes comes first: a screen of 80 columns ends in the middle of a row.
    let columns = vec![
        Column::new("FIRST FIELD", busy.iter().map(|one| one.row.what.clone()).collect()),
        Column::new("COUNT", figure(|row| row.count)),
        Column::new("put/s", rates(|rates| rates.puts_per_s)),
        Column::new("take/s", rates(|rates| rates.takes_per_s)),
        Column::new("WAITING", figure(|row| row.waiting)),
        Column::new("CLAIMED", figure(|row| row.claimed)),
        Column::new("LEASED", known(|shape| shape.leased, format::count)),
        Column::new("DEAD", figure(|row| row.dead)),
        Column::new("BYTES", known(|shape| shape.bytes, format::bytes)),
    ];
    if !busy.is_empty() {
        let colors = std::iter::once(None).chain(busy.iter().map(|one| color(one)));
        let table = Table(columns).within(width_max.saturating_sub(2));
        lines.extend(table.into_iter().map(|line| format!("  {line}")).zip(colors));
    }
    let rows: Vec<Row> = seen.rows.iter().map(|one| one.row.clone()).collect();
    lines.extend(folded(&rows).map(|line| (format!("  {line}"), None)));
    lines
}

/// Red is a row with dead letters, yellow one that has more tuples than at the last look.
fn color(one: &Growing) -> Option<Color> {
    match one {
        one if one.row.dead > 0 => Some(Color::Red),
        one if one.grows => Some(Color::Yellow),
        _ => None,
    }
}

fn heading(url: &str, stat: &Stat) -> String {
    format!(
        "{url}   {}   {} of {}   {}   {} waiting   {} listening{}",
        format::plural(stat.tuples, "tuple", "tuples"),
        format::bytes(stat.bytes_used),
        format::bytes(stat.bytes_max),
        format::plural(pids(stat).len() as u64, "process", "processes"),
        format::count(stat.waiters),
        format::count(stat.subscriptions.len() as u64),
        transactions(stat),
    )
}

/// How many are open, and how much they have taken; nothing if none is.
fn transactions(stat: &Stat) -> String {
    let open = stat.transactions.len() as u64;
    let taken = stat.transactions.iter().map(|one| one.taken).sum();
    if open == 0 {
        return String::new();
    }
    let (open, taken) = (format::plural(open, "transaction", "transactions"), format::count(taken));
    format!("   {open} with {taken} taken")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are positive")]
fn rate(per_s: Option<f64>) -> String {
    match per_s {
        None => "-".to_owned(),
        Some(rate) if rate > 0.0 && rate < 10.0 => format!("{rate:.1}"),
        Some(rate) => format::count(rate.round() as u64),
    }
}
