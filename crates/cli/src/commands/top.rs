//! `tupelo top`: spaces, live.
//!
//! On a terminal the screen is redrawn, elsewhere one table (with `--json` one object per shape) is
//! printed per look. Rates are differences between two looks, so the first has none.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tupelo::{Shape, ShapeStat, Space, Stat};

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
    let mut watched: Vec<Watched> =
        named.iter().map(|url| Watched::connect(url)).collect::<Result<_, _>>()?;
    let mut screen = if output.json || output.quiet { None } else { Screen::open() };
    for look in 1.. {
        if named.is_empty() {
            follow_all(&mut watched)?;
        }
        let looks = watched.iter_mut().map(Watched::look).collect::<Result<Vec<_>, _>>()?;
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

/// A space that is looked at again and again.
struct Watched {
    space: Space,
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

/// What was seen.
struct Look {
    url: String,
    stat: Stat,
    rates: Vec<Rates>,
}

impl Watched {
    fn connect(url: &str) -> Result<Self, Failure> {
        Ok(Self { space: connect_existing(url)?, before: None })
    }

    fn look(&mut self) -> Result<Look, Failure> {
        let stat = self.space.stat()?;
        let now = Instant::now();
        let rates = stat.shapes.iter().map(|shape| self.rates(shape, now)).collect();
        let totals = |shape: &ShapeStat| {
            (shape.shape.clone(), Totals { puts: shape.puts, takes: shape.takes })
        };
        self.before = Some((now, stat.shapes.iter().map(totals).collect()));
        Ok(Look { url: self.space.url().to_owned(), stat, rates })
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

/// Adds spaces that were made and drops those that were removed since the last look.
fn follow_all(watched: &mut Vec<Watched>) -> Result<(), Failure> {
    let spaces = tupelo::spaces()?;
    watched.retain(|one| spaces.iter().any(|space| space.name == one.space.name()));
    for space in spaces {
        if !watched.iter().any(|one| one.space.name() == space.name) {
            // One that can not be opened (removed just now, damaged) is `doctor`'s business.
            watched.extend(Watched::connect(&format!("shm://{}", space.name)));
        }
    }
    Ok(())
}

fn print(looks: &[Look], output: &mut Output) -> Result<(), Failure> {
    if output.json {
        let objects = looks.iter().flat_map(objects);
        objects.into_iter().try_for_each(|object| output.object(&object))?;
    } else {
        looks.iter().flat_map(table).try_for_each(|line| output.line(line))?;
    }
    output.flush()
}

fn objects(look: &Look) -> Vec<serde_json::Value> {
    let with_rates = |(shape, rates): (&ShapeStat, &Rates)| {
        let mut object = shape_json(shape);
        object["url"] = json!(look.url);
        object["puts_per_s"] = json!(rates.puts_per_s);
        object["takes_per_s"] = json!(rates.takes_per_s);
        object
    };
    look.stat.shapes.iter().zip(&look.rates).map(with_rates).collect()
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

/// A space as a heading and a table.
fn table(look: &Look) -> Vec<String> {
    let stat = &look.stat;
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
            format::bytes(shape.bytes),
            format::count(shape.waiting),
            format::count(shape.claims.len() as u64),
            format::count(shape.leased),
            format::count(shape.dead),
            rate(rates.puts_per_s),
            rate(rates.takes_per_s),
        ]
    };
    let rows: Vec<Vec<String>> = stat.shapes.iter().zip(&look.rates).map(row).collect();
    let heads =
        ["SHAPE", "COUNT", "BYTES", "WAITING", "CLAIMED", "LEASED", "DEAD", "put/s", "take/s"];
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
