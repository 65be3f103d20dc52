//! `tupelo top`: spaces, live.
//!
//! On a terminal the screen is redrawn, elsewhere one table (with `--json` one object per shape) is
//! printed per look. Rates are differences between two looks, so the first has none. Each look is at the space that has
//! the name then. A space that was made anew is another one, and an unreadable one may be readable again.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tupelo::{Error, Shape, ShapeStat, Space, Stat};

use super::ls::shape_json;
use super::{connect_existing, pids};
use crate::arguments::Top;
use crate::failure::Failure;
use crate::format;
use crate::output::Output;
use crate::terminal::Screen;

const INTERVAL_MIN: Duration = Duration::from_millis(50);

pub(crate) fn run(options: Top, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let interval = options.interval.max(INTERVAL_MIN);
    let named: Vec<String> = options.spaces.into_iter().chain(url).collect();
    let follows = Follows::of(named)?;
    let mut watched: Vec<Watched> =
        follows.spaces.iter().map(|url| Watched::connect(url)).collect::<Result<_, _>>()?;
    let mut screen = if output.json || output.quiet { None } else { Screen::open() };
    for look in 1.. {
        follows.follow(&mut watched)?;
        let looks = watched.iter_mut().map(Watched::look);
        let looks = looks.filter_map(|look| {
            let is_named = follows.spaces.contains(&look.url);
            goes_on(look, !is_named).transpose()
        });
        let looks = looks.collect::<Result<Vec<_>, _>>()?;
        match &mut screen {
            Some(screen) => {
                screen.draw(&page(&looks, interval)).map_err(|error| Failure::output(&error))?;
            }
            None => print(&looks, output)?,
        }
        if options.count == Some(look) {
            break;
        }
        match &screen {
            Some(screen) if !screen.wait(interval) => break,
            Some(_) => {}
            None => thread::sleep(interval),
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
    before: Option<(Instant, HashMap<Shape, Totals>)>,
}

/// Operations on one shape since the space was made.
#[derive(Clone, Copy)]
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
    stat: Stat,
    rates: Vec<Rates>,
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
        let stat = self.space_now()?.stat()?;
        let now = Instant::now();
        let rates = stat.shapes.iter().map(|shape| self.rates(shape, now)).collect();
        let totals = |shape: &ShapeStat| {
            (shape.shape.clone(), Totals { puts: shape.puts, takes: shape.takes })
        };
        self.before = Some((now, stat.shapes.iter().map(totals).collect()));
        Ok(Seen { stat, rates })
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
        let Some((then, totals)) = &self.before else {
            return Rates { puts_per_s: None, takes_per_s: None };
        };
        // A shape that was not there before began at nothing.
        let before = totals.get(&shape.shape).copied().unwrap_or(Totals { puts: 0, takes: 0 });
        let elapsed_s = now.duration_since(*then).as_secs_f64();
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
        looks.iter().flat_map(table).try_for_each(|line| output.line(line))?;
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
        let mut object = shape_json(shape);
        object["url"] = json!(look.url);
        object["puts_per_s"] = json!(rates.puts_per_s);
        object["takes_per_s"] = json!(rates.takes_per_s);
        object
    };
    seen.stat.shapes.iter().zip(&seen.rates).map(with_rates).collect()
}

fn page(looks: &[Look], interval: Duration) -> Vec<String> {
    let spaces = format::plural(looks.len() as u64, "space", "spaces");
    let mut lines =
        vec![format!("tupelo top: {spaces}, every {}; q ends it", format::seconds(interval))];
    lines.extend(looks.iter().flat_map(|look| {
        let mut lines = table(look);
        lines.insert(0, " ".to_owned());
        lines
    }));
    lines
}

/// A space as a heading and a table, or as its error.
fn table(look: &Look) -> Vec<String> {
    let Ok(Seen { stat, rates }) = &look.seen else {
        return look.problem().iter().flat_map(|text| text.lines()).map(str::to_owned).collect();
    };
    let mut lines = vec![format!(
        "{}   {}   {} of {}   {}   {} waiting   {} listening{}",
        look.url,
        format::plural(stat.tuples, "tuple", "tuples"),
        format::bytes(stat.bytes_used),
        format::bytes(stat.bytes_max),
        format::plural(pids(stat).len() as u64, "process", "processes"),
        format::count(stat.waiters),
        format::count(stat.subscriptions.len() as u64),
        transactions(stat),
    )];
    let row = |(shape, rates): (&ShapeStat, &Rates)| {
        vec![
            shape.shape.to_string(),
            format::count(shape.count),
            rate(rates.puts_per_s),
            rate(rates.takes_per_s),
            format::count(shape.waiting),
            format::count(shape.claims.len() as u64),
            format::count(shape.leased),
            format::count(shape.dead),
            format::bytes(shape.bytes),
        ]
    };
    let rows: Vec<Vec<String>> = stat.shapes.iter().zip(rates).map(row).collect();
    // What changes comes first: a screen of 80 columns ends in the middle of a row.
    let heads =
        ["SHAPE", "COUNT", "put/s", "take/s", "WAITING", "CLAIMED", "LEASED", "DEAD", "BYTES"];
    lines.extend(format::table(&heads, &rows).into_iter().map(|line| format!("  {line}")));
    lines
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
