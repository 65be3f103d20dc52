//! Files of spaces as a whole: what a `file://` URL without `?space=` means to the commands that are about files.

use std::path::PathBuf;

use tupelo::SpaceOfFile;

use crate::failure::Failure;
use crate::format;

/// Spaces of a file that are named in a question.
const NAMES_MAX: usize = 8;

/// The file that `url` means with all its spaces; `None` if it means one space.
pub(super) fn whole_file(url: &str) -> Result<Option<PathBuf>, Failure> {
    Ok(match tupelo::file_of(url)? {
        Some((path, None)) => Some(path),
        _ => None,
    })
}

/// Whether `url` means a file whose spaces all have names, so that it is the URL of none of them.
pub(super) fn has_names_only(url: &str) -> Result<bool, Failure> {
    let Some(path) = whole_file(url)? else { return Ok(false) };
    // What is wrong with a file that cannot be read, whoever opens it is told.
    let spaces = tupelo::spaces_in(&path).unwrap_or_default();
    Ok(!spaces.is_empty() && spaces.iter().all(|space| !space.name.is_empty()))
}

/// Tuples of all spaces of a file that are on disk.
pub(super) fn tuples(spaces: &[SpaceOfFile]) -> u64 {
    spaces.iter().map(|space| space.tuples).sum()
}

/// How much is in a file: "2 spaces and 3 tuples".
pub(super) fn amount(spaces: &[SpaceOfFile]) -> String {
    let count = format::plural(spaces.len() as u64, "space", "spaces");
    format!("{count} and {}", format::plural(tuples(spaces), "tuple", "tuples"))
}

/// The names of the spaces in a file, some of them if there are many; empty if none has a name.
pub(super) fn names(spaces: &[SpaceOfFile]) -> String {
    let named: Vec<&str> =
        spaces.iter().map(|space| &*space.name).filter(|name| !name.is_empty()).collect();
    let listed = named[..named.len().min(NAMES_MAX)].join(", ");
    match named.len().saturating_sub(NAMES_MAX) {
        0 => listed,
        more => format!("{listed} and {} more", format::count(more as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::{SpaceOfFile, amount, names};

    #[test]
    fn a_question_names_some_of_the_spaces_in_a_file() {
        let space = |number: usize| SpaceOfFile { name: format!("s{number}"), tuples: 2 };
        let unnamed = [SpaceOfFile { name: String::new(), tuples: 1 }];
        assert_eq!(amount(&unnamed), "1 space and 1 tuple");
        assert_eq!(names(&unnamed), "");
        let many: Vec<_> = (0..1_010).map(space).collect();
        assert_eq!(amount(&many), "1 010 spaces and 2 020 tuples");
        assert_eq!(names(&many), "s0, s1, s2, s3, s4, s5, s6, s7 and 1 002 more");
        assert_eq!(names(&many[..2]), "s0, s1");
    }
}
