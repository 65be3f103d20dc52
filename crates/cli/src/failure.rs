//! What can go wrong in a command, as a message and an exit code.

use std::io;
use std::path::Path;

use tupelo::{Error, shell_word};

/// The exit code of wrong usage: nothing was done.
pub(crate) const USAGE: i32 = 2;
/// The exit code if there is no such space.
pub(crate) const MISSING: i32 = 5;

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line makes no sense; nothing was done.
    Usage(String),
    /// Nothing matched and the command was told not to wait.
    NoMatch,
    /// The space refused.
    Space(Error),
    /// Something outside the space refused.
    Other(String),
    /// A failure of another kind, told with what else is known of it; its exit code.
    Within(String, i32),
    /// The reader of the output is gone, as in `tupelo ls | head -1`.
    Closed,
    /// A program that was run for the user has said what went wrong; its exit code.
    Reported(i32),
}

impl Failure {
    /// Why printing failed.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::Closed
        } else {
            Self::Other(format!("cannot print: {error}"))
        }
    }

    /// The same, told as `tell` makes it of its message.
    pub(crate) fn within(&self, tell: impl FnOnce(String) -> String) -> Self {
        Self::Within(tell(self.message().unwrap_or_default()), self.exit_code())
    }

    /// The exit code of the program.
    pub(crate) fn exit_code(&self) -> i32 {
        match self {
            Self::Usage(_) => USAGE,
            Self::NoMatch => 3,
            Self::Space(error) => match error {
                Error::Timeout { .. } | Error::OutOfTime => 3,
                Error::AccessDenied { .. } => 4,
                Error::SpaceNotFound { .. } => MISSING,
                Error::Template { .. } | Error::Misuse { .. } | Error::NotEncodable { .. } => USAGE,
                _ => 1,
            },
            Self::Other(_) | Self::Closed => 1,
            Self::Within(_, code) | Self::Reported(code) => *code,
        }
    }

    /// What to tell the user; `None` where the exit code says it all.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Usage(message) | Self::Other(message) | Self::Within(message, _) => {
                Some(message.clone())
            }
            Self::NoMatch | Self::Closed | Self::Reported(_) => None,
            Self::Space(error) => Some(text_of(error)),
        }
    }
}

/// A refusal of the space: its code and message, then the way out, indented.
fn text_of(error: &Error) -> String {
    let mut text = format!("{}: {}", error.code(), error.message());
    for line in hint(error).iter().flat_map(|hint| hint.lines()) {
        text.push_str("\n  ");
        text.push_str(line);
    }
    text
}

/// What to type next. Where the hint of the library is about a call, there is a command for it.
fn hint(error: &Error) -> Option<String> {
    match error {
        Error::SpaceNotFound { url } => {
            Some(format!("`tupelo put` makes it; {}", list_of_spaces(url)))
        }
        // A tuple larger than the space never fits, and a larger space is no help where the system is full.
        Error::SpaceFull { may_pass: true, by_system: false, .. } => Some(
            "`tupelo take` makes room, `tupelo put --timeout 10s` waits for it; a new space with ?size=1G behind its name holds more"
                .to_owned(),
        ),
        _ => error.hint(),
    }
}

/// The command that lists what is where the space of this URL is not.
fn list_of_spaces(url: &str) -> String {
    let Some(file) = url.strip_prefix("file://") else {
        return "`tupelo ls` lists the spaces that are there".to_owned();
    };
    let path = Path::new(file.split('?').next().unwrap_or(file));
    match path.parent() {
        Some(directory) if !path.exists() => list_of_files(directory),
        _ => format!("`tupelo ls {}` lists the spaces in the file", shown(path)),
    }
}

/// The command that lists the files of spaces in a directory.
pub(crate) fn list_of_files(directory: &Path) -> String {
    format!("`tupelo ls {}` lists the files of spaces there", shown(directory))
}

/// A path as a word of a command line.
fn shown(path: &Path) -> String {
    shell_word(&path.display().to_string()).into_owned()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Space(error)
    }
}
