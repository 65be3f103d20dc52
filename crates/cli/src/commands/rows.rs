//! The rows of tables about a space: by name where the first field of its tuples is a text, else by shape.
//!
//! Busy rows come first. Rows in which nothing is, and for which no caller waits, are folded into a line.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tupelo::{Blocked, Field, Form, PatternRef, ShapeNames, ShapeStat, Stat, TemplateRef, Value};

use crate::format::{self, Column, Table};
use crate::output::Color;

/// What the names of Tupelo's own tuples begin with.
const OWN: &str = "tupelo.";
/// Idle rows that are named in the line of the folded ones.
const FOLDED_MAX: usize = 4;
/// Letters of a template that is the name of a row.
const TEMPLATE_LETTERS_MAX: usize = 40;

/// A row, with figures of one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    /// `"job"`, `queue mail`, `Job{}`, `(int, str)`.
    pub(super) what: String,
    pub(super) count: u64,
    pub(super) waiting: u64,
    pub(super) claimed: u64,
    pub(super) dead: u64,
    /// The shapes all of whose tuples are in this row, by their places in the figures of the space.
    pub(super) shapes: Vec<usize>,
    /// Whether some of its tuples have a shape that other rows have, too: what is known of shapes alone is not known of it.
    pub(super) is_shared: bool,
}

impl Row {
    pub(super) fn is_idle(&self) -> bool {
        self.count + self.waiting + self.claimed + self.dead == 0
    }

    /// The sum of what is known of shapes alone; `None` if it is not known of this row.
    pub(super) fn sum(&self, stat: &Stat, of: impl Fn(&ShapeStat) -> u64) -> Option<u64> {
        let sum = self.shapes.iter().map(|shape| of(&stat.shapes[*shape])).sum();
        (!self.is_shared).then_some(sum)
    }
}

/// The rows of a space: those with most tuples first.
pub(super) fn rows(stat: &Stat, names: &[ShapeNames], blocked: &[Blocked]) -> Vec<Row> {
    let mut rows = Rows::default();
    for (place, shape) in stat.shapes.iter().enumerate() {
        let of_shape = names.iter().find(|one| one.shape == shape.shape);
        match of_shape.filter(|one| !one.names.is_empty()) {
            Some(of_shape) => rows.add_named((place, shape), of_shape),
            None => rows.add_shape(place, shape),
        }
    }
    for one in blocked {
        let what = one.template.with_refs(waited_for);
        let row = rows.at(what.unwrap_or_else(|_| shortened(&one.template.to_string())));
        row.waiting += 1;
    }
    let mut rows: Vec<Row> = rows.0.into_values().collect();
    rows.sort_by_key(|row| (row.is_idle(), Reverse(row.count), Reverse(row.waiting)));
    rows
}

/// Rows by what they are about.
#[derive(Default)]
struct Rows(BTreeMap<String, Row>);

impl Rows {
    fn at(&mut self, what: String) -> &mut Row {
        let row = Row { what: what.clone(), ..Row::default() };
        self.0.entry(what).or_insert(row)
    }

    fn add_named(&mut self, (place, shape): (usize, &ShapeStat), named: &ShapeNames) {
        let is_alone = named.names.len() == 1;
        for one in &named.names {
            let row = self.at(title(&one.name, one.of.as_deref()));
            row.count += if is_alone { shape.count } else { one.count };
            row.claimed += if is_alone { shape.claims.len() as u64 } else { one.claimed };
            row.dead += if is_alone { shape.dead } else { one.dead };
            if is_alone {
                row.shapes.push(place);
            } else {
                row.is_shared = true;
            }
        }
        if !is_alone {
            // What is known of all of them together, and those that were not looked at.
            let row = self.at(format!("all {}", shape.shape));
            row.count = shape.count;
            row.claimed = shape.claims.len() as u64;
            row.dead = shape.dead;
            row.shapes.push(place);
        }
    }

    fn add_shape(&mut self, place: usize, shape: &ShapeStat) {
        let what =
            shape.shape.class.map_or_else(|| shape.shape.to_string(), |class| entry(class.name()));
        let row = self.at(what);
        row.count += shape.count;
        row.claimed += shape.claims.len() as u64;
        row.dead += shape.dead;
        row.shapes.push(place);
    }
}

fn entry(class: &str) -> String {
    format!("{class}{{}}")
}

/// What tuples with this first field are called. Those of Tupelo's own tools have a name in the second, but for answers:
/// those have a mailbox there, a new one for each program.
fn title(name: &str, of: Option<&str>) -> String {
    match (name.strip_prefix(OWN), of) {
        (Some("answer"), _) => "answers".to_owned(),
        (Some(tool), Some(of)) => format!("{tool} {of}"),
        _ => Value::from(name).to_string(),
    }
}

/// What the row of a caller is called that waits for a match.
fn waited_for(template: &[TemplateRef<'_>]) -> String {
    let text = |pattern: Option<&PatternRef<'_>>| match pattern {
        Some(PatternRef::Actual(Field::Str(text))) => Some((*text).to_owned()),
        _ => None,
    };
    match template {
        [one] => match one.form {
            Form::Entry(named) => entry(named.class()),
            _ => match text(one.patterns.first()) {
                Some(name) => title(&name, text(one.patterns.get(1)).as_deref()),
                None => shortened(&one.to_string()),
            },
        },
        several => {
            shortened(&several.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "))
        }
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= TEMPLATE_LETTERS_MAX {
        return text.to_owned();
    }
    text.chars().take(TEMPLATE_LETTERS_MAX - 1).chain(['…']).collect()
}

/// The rows as a table of at most so many columns of letters, and a line about the idle ones.
pub(super) fn table(rows: &[Row], stat: &Stat, width_max: usize) -> Vec<(String, Option<Color>)> {
    let busy: Vec<&Row> = rows.iter().filter(|row| !row.is_idle()).collect();
    let known = |of: fn(&ShapeStat) -> u64, shown: fn(u64) -> String| {
        busy.iter().map(|row| row.sum(stat, of).map_or_else(|| "-".to_owned(), shown)).collect()
    };
    let figure = |of: fn(&Row) -> u64| busy.iter().map(|row| format::count(of(row))).collect();
    let columns = vec![
        Column::new("FIRST FIELD", busy.iter().map(|row| row.what.clone()).collect()),
        Column::new("COUNT", figure(|row| row.count)),
        Column::new("BYTES", known(|shape| shape.bytes, format::bytes)),
        Column::new("WAITING", figure(|row| row.waiting)),
        Column::new("CLAIMED", figure(|row| row.claimed)),
        Column::new("LEASED", known(|shape| shape.leased, format::count)),
        Column::new("DEAD", figure(|row| row.dead)),
        Column::new("PUTS", known(|shape| shape.puts, format::count)),
        Column::new("TAKES", known(|shape| shape.takes, format::count)),
    ];
    let lines = if busy.is_empty() { Vec::new() } else { Table(columns).within(width_max) };
    let color = |row: &&Row| (row.dead > 0).then_some(Color::Red);
    let colors = std::iter::once(None).chain(busy.iter().map(color));
    let mut lines: Vec<_> = lines.into_iter().zip(colors).collect();
    lines.extend(folded(rows).map(|line| (line, None)));
    lines
}

/// The line about the idle rows, if there are any.
pub(super) fn folded(rows: &[Row]) -> Option<String> {
    let idle: Vec<&str> =
        rows.iter().filter(|row| row.is_idle()).map(|row| row.what.as_str()).collect();
    let named = idle.iter().take(FOLDED_MAX).copied().collect::<Vec<_>>().join(", ");
    let more = if idle.len() > FOLDED_MAX { ", …" } else { "" };
    (!idle.is_empty()).then(|| {
        format!(
            "idle: {named}{more}{}",
            match idle.len() {
                few if few <= FOLDED_MAX => String::new(),
                many => format!(" ({})", format::count(many as u64)),
            }
        )
    })
}

#[cfg(test)]
mod tests {
    use tupelo::{ConnectOptions, Kind, Space, Want, fields, template};

    use super::*;

    fn told(space: &Space) -> Vec<(String, u64, u64, Option<u64>)> {
        let stat = space.stat().unwrap();
        let rows = rows(&stat, &space.names().unwrap(), &space.blocked().unwrap());
        let of = |row: &Row| {
            let puts = row.sum(&stat, |shape| shape.puts);
            (row.what.clone(), row.count, row.waiting, puts)
        };
        rows.iter().map(of).collect()
    }

    #[test]
    fn a_row_is_a_name_with_the_tuples_of_all_its_shapes() {
        let space = Space::connect("mem://rows", &ConnectOptions::default()).unwrap();
        space.put(&fields!["job", 1]).unwrap();
        space.put(&fields!["job", 1, 2]).unwrap();
        space.put(&fields!["tupelo.queue", "mail", 1]).unwrap();
        space.put(&fields![1]).unwrap();
        let waiter = space.waiter(&[template!["done", Kind::Int]], Want::Take).unwrap();
        assert!(!waiter.wait(Some(std::time::Duration::ZERO)).unwrap());
        let expected = [
            ("\"job\"".to_owned(), 2, 0, Some(2)),
            ("(int)".to_owned(), 1, 0, Some(1)),
            ("queue mail".to_owned(), 1, 0, Some(1)),
            ("\"done\"".to_owned(), 0, 1, Some(0)),
        ];
        assert_eq!(told(&space), expected);
    }

    #[test]
    fn what_is_known_of_a_shape_alone_is_in_a_row_of_its_own_if_names_share_it() {
        let space = Space::connect("mem://rows-shared", &ConnectOptions::default()).unwrap();
        space.put(&fields!["job", 1]).unwrap();
        space.put(&fields!["job", 2]).unwrap();
        space.put(&fields!["done", 1]).unwrap();
        let expected = [
            ("all (str, int)".to_owned(), 3, 0, Some(3)),
            ("\"job\"".to_owned(), 2, 0, None),
            ("\"done\"".to_owned(), 1, 0, None),
        ];
        assert_eq!(told(&space), expected);
    }
}
