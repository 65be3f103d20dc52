//! Figures for people: `1 204`, `31 KiB`, `2.1 s`, and tables of them.

use std::fmt::Write;
use std::time::Duration;

/// `1204` as `1 204`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A size with its unit: `417 B`, `31 KiB`, `1.2 GiB`.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if number < 1024 {
        return format!("{number} B");
    }
    let power = (number.ilog2() / 10).min(5);
    let unit = UNITS[power as usize - 1];
    let whole = number >> (10 * power);
    if whole >= 10 {
        return format!("{whole} {unit}");
    }
    let tenths = (number >> (10 * (power - 1))) % 1024 * 10 / 1024;
    format!("{whole}.{tenths} {unit}")
}

/// A duration in the unit that suits it: `350 ms`, `2.1 s`, `14 min`, `3 h`, `4 d`.
pub(crate) fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 0.001 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 10.0 {
        format!("{seconds:.1} s")
    } else if seconds < 120.0 {
        format!("{seconds:.0} s")
    } else if seconds < 7200.0 {
        format!("{:.0} min", seconds / 60.0)
    } else if seconds < 48.0 * 3600.0 {
        format!("{:.0} h", seconds / 3600.0)
    } else {
        format!("{:.0} d", seconds / 86400.0)
    }
}

/// `word` for one, `words` for any other number, with the number before it.
pub(crate) fn plural(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { several })
}

/// The lines of a table: the first column to the left, the others to the right, as wide as needed.
pub(crate) fn table(heads: &[&'static str], rows: &[Vec<String>]) -> Vec<String> {
    let column = |(place, head): (usize, &&'static str)| {
        Column::new(head, rows.iter().map(|row| row[place].clone()).collect())
    };
    Table(heads.iter().enumerate().map(column).collect()).lines()
}

/// A column of a table.
pub(crate) struct Column {
    head: &'static str,
    cells: Vec<String>,
}

/// A table, column by column.
pub(crate) struct Table(pub(crate) Vec<Column>);

/// Between two columns.
const GAP: &str = "   ";
/// Letters of the first column that a narrow table keeps.
const FIRST_MIN: usize = 16;

impl Column {
    pub(crate) fn new(head: &'static str, cells: Vec<String>) -> Self {
        Self { head, cells }
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count());
        cells.chain([self.head.chars().count()]).max().unwrap_or_default()
    }

    /// Whether it says nothing.
    fn is_zero(&self) -> bool {
        self.cells.iter().all(|cell| matches!(cell.as_str(), "0" | "-" | "0 B"))
    }
}

impl Table {
    /// Its lines. The first column is to the left, the others are to the right.
    fn lines(&self) -> Vec<String> {
        let widths: Vec<usize> = self.0.iter().map(Column::width).collect();
        let rows = self.0.first().map_or(0, |column| column.cells.len());
        let line = |cell: &dyn Fn(&Column) -> String| {
            let mut text = String::new();
            for (place, (column, width)) in self.0.iter().zip(&widths).enumerate() {
                let cell = cell(column);
                if place == 0 {
                    text = format!("{cell:<width$}");
                } else {
                    let _ = write!(text, "{GAP}{cell:>width$}"); // into a String: it does not fail
                }
            }
            text.truncate(text.trim_end().len());
            text
        };
        let head = line(&|column| column.head.to_owned());
        std::iter::once(head)
            .chain((0..rows).map(|row| line(&|column| column.cells[row].clone())))
            .collect()
    }

    /// Its lines, if they are to have at most so many letters: columns of zeros are left out then, from the right, and the
    /// first column is cut off.
    pub(crate) fn within(mut self, width_max: usize) -> Vec<String> {
        while self.width() > width_max
            && let Some(zeros) = self.0.iter().skip(1).rposition(Column::is_zero)
        {
            self.0.remove(zeros + 1);
        }
        let too_many = self.width().saturating_sub(width_max);
        if let Some(first) = self.0.first_mut()
            && too_many > 0
        {
            let letters = first.width().saturating_sub(too_many).max(FIRST_MIN);
            for cell in &mut first.cells {
                if cell.chars().count() > letters {
                    *cell = cell.chars().take(letters - 1).chain(['…']).collect();
                }
            }
        }
        self.lines()
    }

    fn width(&self) -> usize {
        let gaps = self.0.len().saturating_sub(1) * GAP.len();
        self.0.iter().map(Column::width).sum::<usize>() + gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_thousands() {
        let shown: Vec<String> = [0, 999, 1000, 1_234_567].into_iter().map(count).collect();
        assert_eq!(shown, ["0", "999", "1 000", "1 234 567"]);
    }

    #[test]
    fn sizes_have_at_most_one_decimal() {
        let shown: Vec<String> = [0, 1023, 1024, 1536, 31 << 10, (1 << 30) + (1 << 28), u64::MAX]
            .into_iter()
            .map(bytes)
            .collect();
        assert_eq!(
            shown,
            ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "31 KiB", "1.2 GiB", "16383 PiB"]
        );
    }

    #[test]
    fn durations_choose_their_unit() {
        let shown: Vec<String> = [0.000_02, 0.35, 2.14, 41.0, 840.0, 10_800.0, 345_600.0]
            .into_iter()
            .map(|s| seconds(Duration::from_secs_f64(s)))
            .collect();
        assert_eq!(shown, ["20 µs", "350 ms", "2.1 s", "41 s", "14 min", "3 h", "4 d"]);
    }

    #[test]
    fn a_table_is_as_wide_as_its_widest_cells() {
        let rows = vec![vec!["é".into(), "1".into()], vec!["bcd".into(), "1 000".into()]];
        assert_eq!(table(&["X", "N"], &rows), ["X         N", "é         1", "bcd   1 000"]);
    }

    #[test]
    fn a_table_that_is_too_wide_has_no_columns_of_zeros_and_then_shorter_names() {
        let column = |head, cells: [&str; 2]| Column::new(head, cells.map(str::to_owned).to_vec());
        let table = || {
            let name = column("NAME", ["a", "abcdefghijklmnopqrstuvwxyz"]);
            Table(vec![name, column("DEAD", ["0", "0"]), column("PUTS", ["0", "3"])])
        };
        assert_eq!(table().within(80)[1], "a                               0      0");
        assert_eq!(table().within(33)[2], "abcdefghijklmnopqrstuvwxyz      3");
        assert_eq!(table().within(26)[2], "abcdefghijklmnopqr…      3");
    }
}
