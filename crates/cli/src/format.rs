//! Figures for people: `1 204`, `31 KiB`, `2.1 s`, and tables of them.

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
pub(crate) fn table(heads: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let head: Vec<String> = heads.iter().map(|&head| head.to_owned()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let laid_out = |cells: &&Vec<String>| {
        let mut text = format!("{:<width$}", cells[0], width = widths[0]);
        for (cell, width) in cells.iter().zip(&widths).skip(1) {
            text.push_str("   ");
            text.push_str(&" ".repeat(width - cell.chars().count()));
            text.push_str(cell);
        }
        text.truncate(text.trim_end().len());
        text
    };
    lines.iter().map(laid_out).collect()
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
}
