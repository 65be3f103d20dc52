//! Figures for Prometheus, in its text format.

use std::fmt::{Display, Write};
use std::time::Duration;

use tupelo::{ShapeStat, Stat};

use crate::hosted::Figures;
use crate::meters::{BUCKETS, Meter, Times};
use crate::queues::SHAPES_MAX;

/// What the page is called.
pub(super) const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A figure of each space, or of each shape of one.
struct Figure<T> {
    name: &'static str,
    help: &'static str,
    /// `counter` only grows; `gauge` goes both ways.
    kind: &'static str,
    of: fn(&T) -> u64,
}

const FIGURES: [Figure<Stat>; 8] = [
    Figure {
        name: "tupelo_tuples",
        help: "Tuples in the space.",
        kind: "gauge",
        of: |stat| stat.tuples,
    },
    Figure {
        name: "tupelo_used_bytes",
        help: "Bytes in use for tuples and their indexes.",
        kind: "gauge",
        of: |stat| stat.bytes_used,
    },
    Figure {
        name: "tupelo_limit_bytes",
        help: "Bytes that the space may use.",
        kind: "gauge",
        of: |stat| stat.bytes_max,
    },
    Figure {
        name: "tupelo_waiting_calls",
        help: "Calls that wait for a tuple or for room.",
        kind: "gauge",
        of: |stat| stat.waiters,
    },
    Figure {
        name: "tupelo_claimed_tuples",
        help: "Tuples that somebody has claimed.",
        kind: "gauge",
        of: |stat| stat.shapes.iter().map(|shape| shape.claims.len() as u64).sum(),
    },
    Figure {
        name: "tupelo_dead_tuples",
        help: "Tuples whose last attempt has failed.",
        kind: "gauge",
        of: |stat| stat.shapes.iter().map(|shape| shape.dead).sum(),
    },
    Figure {
        name: "tupelo_dropped_tuples_total",
        help: "Tuples that were dropped for others.",
        kind: "counter",
        of: |stat| stat.dropped,
    },
    Figure {
        name: "tupelo_subscriptions",
        help: "Subscriptions to events.",
        kind: "gauge",
        of: |stat| stat.subscriptions.len() as u64,
    },
];

const SHAPE_FIGURES: [Figure<ShapeStat>; 4] = [
    Figure {
        name: "tupelo_shape_tuples",
        help: "Tuples of the shape.",
        kind: "gauge",
        of: |shape| shape.count,
    },
    Figure {
        name: "tupelo_shape_waiting_calls",
        help: "Calls that wait for a tuple of this shape alone.",
        kind: "gauge",
        of: |shape| shape.waiting,
    },
    Figure {
        name: "tupelo_shape_puts_total",
        help: "Tuples put so far.",
        kind: "counter",
        of: |shape| shape.puts,
    },
    Figure {
        name: "tupelo_shape_takes_total",
        help: "Tuples taken so far.",
        kind: "counter",
        of: |shape| shape.takes,
    },
];

/// The page for these spaces, in their order.
pub(super) fn page(spaces: &[Figures]) -> String {
    let mut page = String::new();
    for Figure { name, help, kind, of } in FIGURES {
        head(&mut page, (name, help, kind));
        for Figures { name: space, stat, .. } in spaces {
            line(&mut page, name, &[("space", space)], of(stat));
        }
    }
    for Figure { name, help, kind, of } in SHAPE_FIGURES {
        head(&mut page, (name, help, kind));
        for Figures { name: space, stat, .. } in spaces {
            let mut shapes: Vec<_> = stat.shapes.iter().collect();
            shapes.sort_by_key(|shape| std::cmp::Reverse(shape.count));
            for shape in shapes.into_iter().take(SHAPES_MAX) {
                let text = shape.shape.to_string();
                line(&mut page, name, &[("space", space), ("shape", &text)], of(shape));
            }
        }
    }
    ages(&mut page, spaces);
    queues(&mut page, spaces);
    fields(&mut page, spaces);
    page
}

/// How long the oldest tuple of each shape has been there.
fn ages(page: &mut String, spaces: &[Figures]) {
    let name = "tupelo_shape_oldest_seconds";
    let help = "For how long the oldest tuple of the shape has been there, at least.";
    head(page, (name, help, "gauge"));
    for Figures { name: space, queues, .. } in spaces {
        for queue in queues {
            let shape = queue.shape.to_string();
            if let Some(oldest) = queue.oldest {
                line(page, name, &[("space", space), ("shape", &shape)], oldest.as_secs_f64());
            }
        }
    }
}

/// Tuples of one shape and first field; or of all other first fields together.
struct Row<'f> {
    space: &'f str,
    shape: String,
    field: Option<&'f str>,
    tuples: u64,
    oldest: Option<Duration>,
}

/// What lies in each space, by shape and first field.
fn rows(spaces: &[Figures]) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for Figures { name: space, queues, .. } in spaces {
        for queue in queues {
            let shape = queue.shape.to_string();
            rows.extend(queue.fields.iter().map(|one| {
                let (shape, field) = (shape.clone(), Some(one.field.as_str()));
                Row { space, shape, field, tuples: one.tuples, oldest: one.oldest }
            }));
            let others = |tuples| Row { space, shape, field: None, tuples, oldest: None };
            rows.extend(queue.others.map(others));
        }
    }
    rows
}

fn queues(page: &mut String, spaces: &[Figures]) {
    let rows = rows(spaces);
    let mut show = |(name, help), of: fn(&Row<'_>) -> Option<String>| {
        head(page, (name, help, "gauge"));
        for row in &rows {
            let field = row.field.map(|field| ("field", field));
            let labels = [("space", row.space), ("shape", &row.shape)];
            let labels: Vec<_> = labels.into_iter().chain(field).collect();
            if let Some(figure) = of(row) {
                line(page, name, &labels, figure);
            }
        }
    };
    let help = "Tuples in the space, by their shape and first field.";
    show(("tupelo_field_tuples", help), |row| Some(row.tuples.to_string()));
    let help = "For how long the oldest tuple with this first field has been there, at least.";
    let seconds = |row: &Row<'_>| row.oldest.map(|oldest| oldest.as_secs_f64().to_string());
    show(("tupelo_field_oldest_seconds", help), seconds);
}

const FIELD_FIGURES: [Figure<Meter>; 2] = [
    Figure {
        name: "tupelo_field_puts_total",
        help: "Tuples put through this server so far, by their first field.",
        kind: "counter",
        of: |meter| meter.puts,
    },
    Figure {
        name: "tupelo_field_takes_total",
        help: "Tuples taken or claimed through this server so far, by their first field.",
        kind: "counter",
        of: |meter| meter.takes,
    },
];

/// Shows the figures of one field, with its labels.
type Show<'a> = &'a mut dyn FnMut(&[(&str, &str)], &Meter);

/// Times, by first field.
struct Ranges {
    name: &'static str,
    help: &'static str,
    of: fn(&Meter) -> &Times,
}

const FIELD_TIMES: [Ranges; 2] = [
    Ranges {
        name: "tupelo_field_wait_seconds",
        help: "How long takes and claims have waited for a tuple.",
        of: |meter| &meter.waits,
    },
    Ranges {
        name: "tupelo_field_hand_over_seconds",
        help: "From when a taken tuple was sent until its client had it.",
        of: |meter| &meter.hand_overs,
    },
];

/// What has gone through, by first field. Without a label: all other fields together.
fn fields(page: &mut String, spaces: &[Figures]) {
    let each = |show: Show<'_>| {
        for Figures { name, meters, .. } in spaces {
            for (field, meter) in meters {
                let field = field.as_deref().map(|field| ("field", field));
                let labels: Vec<_> = [("space", name.as_str())].into_iter().chain(field).collect();
                show(&labels, meter);
            }
        }
    };
    for Figure { name, help, kind, of } in FIELD_FIGURES {
        head(page, (name, help, kind));
        each(&mut |labels, meter| line(page, name, labels, of(meter)));
    }
    for Ranges { name, help, of } in FIELD_TIMES {
        head(page, (name, help, "histogram"));
        each(&mut |labels, meter| histogram(page, name, labels, of(meter)));
    }
}

fn histogram(page: &mut String, name: &str, labels: &[(&str, &str)], times: &Times) {
    let ends = BUCKETS.iter().map(|end| end.as_secs_f64().to_string()).chain(["+Inf".to_owned()]);
    let mut sum = 0;
    for (end, count) in ends.zip(times.counts) {
        sum += count;
        let labels = [labels, &[("le", end.as_str())]].concat();
        line(page, &format!("{name}_bucket"), &labels, sum);
    }
    line(page, &format!("{name}_count"), labels, sum);
    line(page, &format!("{name}_sum"), labels, times.sum.as_secs_f64());
}

fn head(page: &mut String, (name, help, kind): (&str, &str, &str)) {
    // Writing to a String does not fail.
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(page: &mut String, name: &str, labels: &[(&str, &str)], figure: impl Display) {
    let label = |(key, value): &(&str, &str)| format!("{key}=\"{}\"", escaped(value));
    let labels: Vec<_> = labels.iter().map(label).collect();
    let _ = writeln!(page, "{name}{{{}}} {figure}", labels.join(","));
}

/// The value of a label, as the format has it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn labels_can_not_end_themselves() {
        assert_eq!(escaped("a\"} 1\nb\\"), "a\\\"} 1\\nb\\\\");
    }
}
