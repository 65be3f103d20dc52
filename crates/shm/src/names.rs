//! The valid names of a space, and the name of its file.
//!
//! The file of space `jobs` of user 1000 is `tupelo.1000.jobs.v1`. The user's number keeps the spaces of different
//! users apart in a directory that all share. The layout's major version keeps a new build away from a segment that an
//! old one is still using. While it is being made, a segment that needs a name has one that begins with a dot, which no
//! space can have.

use std::borrow::Cow;

use crate::error::Error;
use crate::superblock::LAYOUT_MAJOR;

/// The longest name of a space, in bytes (rule B2). With its prefix and suffix, it fits the 255 bytes that Linux file
/// systems allow.
pub const NAME_BYTES_MAX: usize = 100;

/// Checks that a space may be called `name`: 1 to 100 bytes of printable text, no slash, no dot in
/// front, no space at either end.
///
/// # Errors
///
/// [`Error::BadName`] has the mistake and the correct form.
pub fn check(name: &str) -> Result<(), Error> {
    match problem(name) {
        None => Ok(()),
        Some(problem) => Err(Error::BadName { name: shortened(name), problem }),
    }
}

fn problem(name: &str) -> Option<Cow<'static, str>> {
    if name.is_empty() {
        return Some("it is empty, give it at least one character".into());
    }
    if name.len() > NAME_BYTES_MAX {
        let bytes = name.len();
        return Some(format!("it has {bytes} bytes, use at most {NAME_BYTES_MAX}").into());
    }
    if name.starts_with('.') {
        return Some("it starts with a dot, start it with a letter or digit".into());
    }
    if name.contains('/') {
        return Some("it contains a slash, use `.` or `-` to join parts".into());
    }
    if name.trim() != name {
        return Some("it starts or ends with white space, leave that out".into());
    }
    let unprintable = |c: &char| c.is_control() || (c.is_whitespace() && *c != ' ');
    name.chars().find(unprintable).map(|c| {
        format!("it contains the unprintable character {}, use text", c.escape_unicode()).into()
    })
}

/// The beginning of a name that may be arbitrarily long.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_BYTES_MAX) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// The file name of space `name` of `user`. The name was checked.
pub(crate) fn file_name(name: &str, user: u32) -> String {
    format!("tupelo.{user}.{name}.v{LAYOUT_MAJOR}")
}

/// The space that a file name stands for; `None` if it is not one of `user` in this layout.
pub(crate) fn space_of(file_name: &str, user: u32) -> Option<&str> {
    let rest = file_name.strip_prefix(&format!("tupelo.{user}."))?;
    let name = rest.strip_suffix(&format!(".v{LAYOUT_MAJOR}"))?;
    problem(name).is_none().then_some(name)
}

/// A name for a file of `user` that is not a space yet.
pub(crate) fn temporary_name(user: u32, random: u64) -> String {
    format!(".tupelo.{user}.{random:016x}.new")
}

/// Whether a file name is one of [`temporary_name`].
pub(crate) fn is_temporary(file_name: &str, user: u32) -> bool {
    let random = file_name
        .strip_prefix(&format!(".tupelo.{user}."))
        .and_then(|rest| rest.strip_suffix(".new"));
    random.is_some_and(|random| random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str) -> String {
        check(name).unwrap_err().to_string()
    }

    #[test]
    fn ordinary_names_are_accepted_also_beyond_ascii() {
        let longest = "x".repeat(NAME_BYTES_MAX);
        for name in
            ["a", "jobs", "jobs.v1", "-", "image farm", "Aufträge", "仕事", "a:b@c?d#e", &longest]
        {
            assert_eq!(check(name), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn a_refused_name_is_told_what_is_wrong_and_what_would_be_right() {
        for (name, expected) in [
            ("", r#""" can not name a space: it is empty, give it at least one character"#),
            ("a/b", "it contains a slash, use `.` or `-` to join parts"),
            ("../etc", "it starts with a dot, start it with a letter or digit"),
            ("..", "it starts with a dot"),
            (" a", "it starts or ends with white space, leave that out"),
            ("a\u{2028}b", r"it contains the unprintable character \u{2028}, use text"),
            ("a\0b", r"it contains the unprintable character \u{0}, use text"),
            ("a\nb", r"it contains the unprintable character \u{a}, use text"),
        ] {
            assert!(message(name).contains(expected), "{name:?}: {}", message(name));
        }
        let too_long = "ö".repeat(51);
        assert!(message(&too_long).contains("it has 102 bytes, use at most 100"));
        assert!(message(&"x".repeat(1 << 20)).len() < 300, "a long name is not repeated in full");
    }

    #[test]
    fn a_file_name_leads_back_to_its_space_and_to_no_other_users() {
        for name in ["jobs", "jobs.v1", "1000.jobs", "new"] {
            assert_eq!(space_of(&file_name(name, 1000), 1000), Some(name));
            assert_eq!(space_of(&file_name(name, 1000), 100), None);
        }
        assert_eq!(space_of("tupelo.1000..v1", 1000), None);
        assert_eq!(space_of("tupelo.1000.jobs.v99", 1000), None);
        assert_eq!(space_of(&temporary_name(1000, 7), 1000), None);
        assert!(is_temporary(&temporary_name(1000, u64::MAX), 1000));
        assert!(!is_temporary(&temporary_name(1000, 7), 0));
    }
}
