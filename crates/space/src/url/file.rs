//! URLs of spaces that are kept in a file: where that is, and when calls return.

use std::path::{Path, PathBuf};

use super::{Address, Place, bytes, check_name, misuse};
use crate::durable::Durability;
use crate::error::Error;

/// Longest path of a file, in bytes: what Linux takes.
const PATH_BYTES_MAX: usize = 4096;
/// What a file is called, as a rule.
const EXTENSION: &str = ".tupelo";

/// Understands the path behind `file://`, and the options behind the question mark.
pub(super) fn parse(url: &str, path: &str, options: Option<&str>) -> Result<Address, Error> {
    let (mut size_bytes, mut sync, mut space): (_, _, Option<&str>) = (None, None, None);
    for option in options.unwrap_or_default().split('&').filter(|option| !option.is_empty()) {
        let refused = || {
            let problem = format!("{url:?} has the option {option:?}");
            let hint = "the options are space (which space of the file), size (of a new one) and sync (when calls return), as in ?space=jobs&size=512M&sync=none";
            misuse(problem, hint)
        };
        match option.split_once('=').ok_or_else(refused)? {
            ("size", value) => size_bytes = Some(bytes(value).ok_or_else(refused)?),
            ("space", value) => {
                if value.is_empty() {
                    let problem = format!("{url:?} has an empty name of a space");
                    let hint = "write a name, as in ?space=jobs; leave it out for the space of the file that needs none";
                    return Err(misuse(problem, hint));
                }
                check_name(url, value, &format!("file://{path}?space=jobs"))?;
                if let Some(other) = space.replace(value).filter(|other| *other != value) {
                    let problem = format!("{url:?} names two spaces, {other} and {value}");
                    return Err(misuse(problem, &format!("write one, as in ?space={other}")));
                }
            }
            ("sync", value) => sync = Some(Durability::named(value).ok_or_else(refused)?),
            _ => return Err(refused()),
        }
    }
    if !path.starts_with('/') {
        return Err(no_path(url, path));
    }
    let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name.is_empty() || path.ends_with('/') || path.contains('\0') {
        let problem = format!("{url:?} names no file");
        return Err(misuse(
            problem,
            "write the whole path of a file, as in file:///var/lib/shop/jobs.tupelo",
        ));
    }
    if path.len() > PATH_BYTES_MAX {
        let problem = format!("the path of a file has {} bytes", path.len());
        return Err(misuse(problem, &format!("a path has at most {PATH_BYTES_MAX} bytes")));
    }
    let stem = name.strip_suffix(EXTENSION).filter(|name| !name.is_empty()).unwrap_or(name);
    let name = space.unwrap_or(stem).into();
    let space = space.unwrap_or_default().into();
    let place = Place::File { path: PathBuf::from(path), space, name };
    Ok(Address { place, size_bytes, sync })
}

/// The URL of the space of this name in a file; of the one that needs no name if it is empty.
pub fn file_url(path: &Path, space: &str) -> String {
    let url = format!("file://{}", path.display());
    if space.is_empty() { url } else { format!("{url}?space={space}") }
}

/// A path that would mean another file in each directory, or for each user, with the one that it means here.
fn no_path(url: &str, path: &str) -> Error {
    let from = |base: Option<PathBuf>, path: &str| base.map(|base| base.join(path));
    let (problem, meant) = match path.strip_prefix("~/") {
        Some(path) => (
            "the shell's ~ stands for nothing in a URL",
            from(std::env::var_os("HOME").map(Into::into), path),
        ),
        None => (
            "the path does not begin with /",
            from(std::env::current_dir().ok(), path).filter(|_| !path.is_empty()),
        ),
    };
    let meant = meant.as_deref().and_then(Path::to_str).unwrap_or("/var/lib/shop/jobs.tupelo");
    misuse(
        format!("{url:?}: {problem}"),
        &format!("write the whole path, with three slashes: file://{meant}"),
    )
}

#[cfg(test)]
mod tests {
    use super::{Address, Durability, Place};

    #[test]
    fn a_url_of_a_file_is_its_whole_path_and_perhaps_a_size_and_when_calls_return() {
        let path = "/srv/my jobs.tupelo";
        let place = Place::File { path: path.into(), space: String::new(), name: "my jobs".into() };
        for (options, size_bytes, sync) in [
            ("", None, None),
            ("?size=4G", Some(4 << 30), None),
            ("?size=4G&sync=none", Some(4 << 30), Some(Durability::None)),
            ("?sync=group", None, Some(Durability::Group)),
        ] {
            let url = format!("file:///srv/my jobs.tupelo{options}");
            let place = place.clone();
            assert_eq!(Address::parse(&url), Ok(Address { place, size_bytes, sync }));
        }
        let named = Address::parse("file:///srv/my jobs.tupelo?size=4G&space=old").unwrap();
        let place = Place::File { path: path.into(), space: "old".into(), name: "old".into() };
        assert_eq!(named, Address { place, size_bytes: Some(4 << 30), sync: None });
    }

    #[test]
    fn what_is_no_whole_path_is_refused_with_one_that_is() {
        let here = std::env::current_dir().unwrap().join("jobs.tupelo");
        let here = format!("write the whole path, with three slashes: file://{}", here.display());
        for (url, says) in [
            ("file://jobs.tupelo", here.as_str()),
            ("file://~/jobs.tupelo", "the shell's ~ stands for nothing in a URL"),
            ("file://", "file:///var/lib/shop/jobs.tupelo"),
            ("file:///", "names no file"),
            ("file:///srv/", "names no file"),
            ("file:///srv/jobs.tupelo?sync=soon", "?space=jobs&size=512M&sync=none"),
            (
                "file:///srv/jobs.tupelo?space=a&space=b",
                "names two spaces, a and b\n  write one, as in ?space=a",
            ),
            ("file:///srv/jobs.tupelo?name=a", "the options are space (which space of the file), "),
            ("file:///srv/jobs.tupelo?space=", "as in ?space=jobs"),
            ("file:///srv/jobs.tupelo?space=a/b", "file:///srv/jobs.tupelo?space=jobs"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
        }
    }
}
