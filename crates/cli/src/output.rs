//! The output: results on standard output, everything else on standard error.

use std::env;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use crate::arguments::Common;
use crate::failure::Failure;
use crate::terminal::{self, Line};

/// The streams of one command and how it was asked to use them.
pub(crate) struct Output {
    out: BufWriter<StdoutLock<'static>>,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    colors_wanted: bool,
}

/// The colors in use; a color always goes with a word that says the same.
#[derive(Clone, Copy)]
pub(crate) enum Color {
    Red,
    Green,
    Yellow,
}

impl Output {
    pub(crate) fn new(common: &Common) -> Self {
        let wanted =
            !common.no_color && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            out: BufWriter::new(io::stdout().lock()),
            json: common.json,
            quiet: common.quiet,
            colors_wanted: wanted,
        }
    }

    /// One line of result.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<(), Failure> {
        if self.quiet {
            return Ok(());
        }
        writeln!(self.out, "{line}").map_err(|error| Failure::output(&error))
    }

    /// One JSON object as a line of result.
    pub(crate) fn object(&mut self, object: &serde_json::Value) -> Result<(), Failure> {
        self.line(object)
    }

    /// Text that is no line: a part of a redrawn screen or of a generated script.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        if self.quiet {
            return Ok(());
        }
        self.out.write_all(text.as_bytes()).map_err(|error| Failure::output(&error))
    }

    /// Makes everything printed so far visible; a command that goes on waiting calls it.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|error| Failure::output(&error))
    }

    /// `text` in a color, if standard output shows colors.
    pub(crate) fn colored(&self, text: &str, color: Color) -> String {
        paint(text, color, self.colors_wanted && io::stdout().is_terminal())
    }

    /// Whether colors are wanted where a terminal shows them.
    pub(crate) fn colors_wanted(&self) -> bool {
        self.colors_wanted
    }

    /// Letters of a line of result; of a program's as many as there are.
    pub(crate) fn width() -> usize {
        terminal::size_of(io::stdout()).map_or(usize::MAX, |(_, columns)| columns)
    }

    /// One line of result for each, in its color.
    pub(crate) fn lines(&mut self, lines: Vec<Line>) -> Result<(), Failure> {
        lines.into_iter().try_for_each(|(line, color)| {
            let line = color.map_or(line.clone(), |color| self.colored(&line, color));
            self.line(line)
        })
    }

    /// Whether standard error is a terminal, so that notes on the progress are useful.
    pub(crate) fn is_watched(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Prints a note on the progress at a terminal, in as many lines as it needs; a program gets none.
    pub(crate) fn note(&self, note: impl Display) {
        if self.is_watched() {
            let note = note.to_string().replace('\n', "\n  ");
            // It goes on whether it can be told or not.
            let _ = writeln!(io::stderr(), "tupelo: {note}");
        }
    }

    /// Tells on standard error what went wrong and what to type next.
    pub(crate) fn failure(&mut self, failure: &Failure) {
        let _ = self.out.flush();
        if let Some(message) = failure.message() {
            let colored = self.colors_wanted && io::stderr().is_terminal();
            let name = paint("tupelo:", Color::Red, colored);
            // No report is possible if this fails too.
            let _ = writeln!(io::stderr(), "{name} {message}");
        }
    }
}

pub(crate) fn paint(text: &str, color: Color, wanted: bool) -> String {
    let code = match color {
        Color::Red => 31,
        Color::Green => 32,
        Color::Yellow => 33,
    };
    if wanted { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}
