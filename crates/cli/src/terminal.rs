//! The terminal as a screen that is redrawn: for `tupelo top`.
//!
//! Plain ANSI sequences. Every terminal since the VT100 understands them, except the alternate screen, which the others
//! ignore. Ctrl-C arrives as a key. A signal by which a program is told to end (HUP, INT, QUIT, TERM) puts the terminal
//! back first. Any other signal that ends it leaves it as it was drawn.

use std::io::{self, IsTerminal, Stdin, Stdout, Write};
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tupelo_shm::signals::TerminalGuard;

use crate::output::{Color, paint};

const ENTER: &str = "\x1b[?1049h\x1b[?25l"; // alternate screen, no cursor
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const SIZE_UNKNOWN: (usize, usize) = (24, 80); // of the VT100

/// A line, and its color if it has one.
pub(crate) type Line = (String, Option<Color>);

/// The lines and columns of a terminal, if that is one and says.
pub(crate) fn size_of(terminal: impl AsFd) -> Option<(usize, usize)> {
    let size = tcgetwinsize(terminal).ok()?;
    let is_known = size.ws_row > 0 && size.ws_col > 0;
    is_known.then_some((usize::from(size.ws_row), usize::from(size.ws_col)))
}

/// The whole terminal; closing it (dropping) shows the earlier contents.
pub(crate) struct Screen {
    keys: Stdin,
    out: Stdout,
    before: Termios,
    /// Does what dropping does where a signal ends the program; gone when that is done.
    _guard: TerminalGuard,
}

impl Screen {
    /// The screen, or `None` if input or output is no terminal.
    pub(crate) fn open() -> Option<Self> {
        let (keys, out) = (io::stdin(), io::stdout());
        if !out.is_terminal() {
            return None;
        }
        let before = tcgetattr(&keys).ok()?;
        let guard = TerminalGuard::new(LEAVE).ok()?;
        let mut each_key = before.clone();
        each_key.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        tcsetattr(&keys, OptionalActions::Now, &each_key).ok()?;
        let mut screen = Self { keys, out, before, _guard: guard };
        screen.write(ENTER).ok()?;
        Some(screen)
    }

    /// The lines and columns that it has.
    pub(crate) fn size(&self) -> (usize, usize) {
        size_of(&self.out).unwrap_or(SIZE_UNKNOWN)
    }

    /// Shows the lines that fit; lines that begin at the margin are headings.
    pub(crate) fn draw(&mut self, lines: &[Line]) -> io::Result<()> {
        let (rows, columns) = self.size();
        let mut frame = String::from("\x1b[H");
        for (line, color) in lines.iter().take(rows - 1) {
            let shown: String = line.chars().take(columns).collect();
            let shown = color.map_or(shown.clone(), |color| paint(&shown, color, true));
            let (before, after) =
                if line.starts_with(' ') { ("", "") } else { ("\x1b[1m", "\x1b[0m") };
            frame.extend([before, &shown, after, "\x1b[K\r\n"]);
        }
        frame.push_str("\x1b[J");
        self.write(&frame)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Waits for a key until then. `None` if the user wants to end it (q, Ctrl-C, Ctrl-D or a closed terminal); without a key
    /// it is nothing.
    pub(crate) fn wait(&self, until: Instant) -> Option<Vec<u8>> {
        let left = until.saturating_duration_since(Instant::now());
        let mut keys = [PollFd::new(&self.keys, PollFlags::IN)];
        let left = Timespec::try_from(left).ok();
        match poll(&mut keys, left.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Some(Vec::new()), // time is up, or the window changed its size
            Ok(_) => {}
            Err(_) => return None,
        }
        let mut typed = [0; 64];
        match rustix::io::read(&self.keys, &mut typed) {
            Ok(0) | Err(_) => None,
            Ok(count) if typed[..count].iter().any(|key| ends(*key)) => None,
            Ok(count) => Some(typed[..count].to_vec()),
        }
    }
}

/// Whether a key means that the user has seen enough.
fn ends(key: u8) -> bool {
    matches!(key, b'q' | b'Q' | CTRL_C | CTRL_D)
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Both are best effort: the terminal may be gone.
        let _ = self.write(LEAVE);
        let _ = tcsetattr(&self.keys, OptionalActions::Now, &self.before);
    }
}
