//! URLs of spaces: which engine, which name, and how large a new space may become.

mod file;
pub(crate) mod server;

use std::borrow::Cow;
use std::path::PathBuf;

use tupelo_client::Server;

use crate::durable::Durability;
use crate::error::Error;

pub use file::file_url;

/// Longest name of a space, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = tupelo_shm::NAME_BYTES_MAX;

/// The schemes of URLs that lead to a space.
pub const SCHEMES: [&str; 6] = ["mem", "shm", "file", "unix", "tcp", "tls"];

/// The contents of a URL: where the space lives, and how a new one is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Where it lives.
    pub(crate) place: Place,
    /// The size of a new one, from `?size=`; `None` if the URL does not say.
    pub(crate) size_bytes: Option<u64>,
    /// When calls return, from `?sync=`; `None` if the URL does not say.
    pub(crate) sync: Option<Durability>,
}

impl Address {
    /// Understands `mem://name`, `shm://name?size=1G`, `file:///path/name.tupelo`, `file:///path/file.tupelo?space=name`,
    /// `unix:///path?space=name`, `tcp://host:port/name` and `tls://host:port/name?ca=/path`.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let Some((scheme, rest)) = url.split_once("://") else {
            let is_name = !url.contains([':', '/']) && tupelo_shm::check_name(url).is_ok();
            let name = if is_name { url } else { "NAME" };
            return Err(misuse(
                format!("{url:?} is no URL of a space"),
                &format!("write shm://{name} for all processes of this machine, or mem://{name}"),
            ));
        };
        let (name, options) = match rest.split_once('?') {
            Some((name, options)) => (name, Some(options)),
            None => (rest, None),
        };
        if ["unix", "tcp", "tls"].contains(&scheme) {
            return server::parse(url, (scheme, name), options);
        }
        if scheme == "file" {
            return file::parse(url, name, options);
        }
        let place = match scheme {
            "mem" => Place::Memory(name.into()),
            "shm" => Place::SharedMemory(name.into()),
            _ => return Err(no_engine(url, scheme, name)),
        };
        if name.is_empty() {
            let problem = format!("{url:?} names no space");
            return Err(misuse(problem, &format!("write a name behind it, as in {scheme}://jobs")));
        }
        check_name(url, name, &format!("{scheme}://jobs"))?;
        let size_bytes = options.map(|options| size_option(url, options)).transpose()?;
        Ok(Self { place, size_bytes, sync: None })
    }
}

/// Refuses a text that is no name of a space. `example` is a URL with one.
fn check_name(url: &str, name: &str, example: &str) -> Result<(), Error> {
    tupelo_shm::check_name(name).map_err(|error| {
        let hint =
            format!("a name is up to {NAME_BYTES_MAX} bytes without a slash, as in {example}");
        misuse(format!("{url:?}: {error}"), &hint)
    })
}

/// A word of a command line, to be shown to whoever types it: in quotes if it has letters that a shell reads, as the question mark of a
/// URL.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''")).into()
}

fn misuse(problem: String, hint: &str) -> Error {
    Error::Misuse { problem, hint: Some(hint.into()) }
}

/// A scheme that has no engine, with a URL that has one.
fn no_engine(url: &str, scheme: &str, path: &str) -> Error {
    let problem = format!(
        "no engine for {scheme}:// in {url:?}; there are mem://, shm://, file://, unix://, tcp:// and tls://"
    );
    let name = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("jobs");
    let meant = tupelo_tuple::nearest(scheme, SCHEMES);
    let hint = match scheme {
        _ if meant.is_some() => format!("did you mean {}://{path}?", meant.unwrap_or_default()),
        "http" | "https" => format!(
            "write the address at which the server listens for programs, as tcp://hub:7667/{name}"
        ),
        _ => format!("on one machine, write shm://{name}"),
    };
    misuse(problem, &hint)
}

/// The size in the options behind the question mark; there are no others.
fn size_option(url: &str, options: &str) -> Result<u64, Error> {
    options.strip_prefix("size=").and_then(bytes).ok_or_else(|| {
        let problem = format!("{url:?} has the options {options:?}");
        misuse(problem, "the one option is the size of a new space, as in ?size=512M or ?size=4G")
    })
}

/// A number of bytes: digits, and K, M, G or T behind them; at least 1.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'T']);
    let unit_bits = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = is_number.then(|| digits.parse().ok()).flatten()?;
    number.checked_mul(1 << unit_bits).filter(|bytes| *bytes > 0)
}

/// Where a space lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Private memory of this process.
    Memory(String),
    /// Shared memory of this machine.
    SharedMemory(String),
    /// Shared memory of this machine, and kept in a file.
    File {
        /// The file.
        path: PathBuf,
        /// Which of its spaces; empty for the one that needs no name.
        space: String,
        /// That name, or what the file is called, without its extension.
        name: String,
    },
    /// A server, of this machine or another.
    Server {
        /// Where it listens, and how to make sure of it.
        server: Server,
        /// The name of the space there.
        name: String,
    },
}

impl Place {
    /// The name of the space.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Memory(name)
            | Self::SharedMemory(name)
            | Self::File { name, .. }
            | Self::Server { name, .. } => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, Place, shell_word};

    fn parsed(url: &str) -> (Place, Option<u64>) {
        let address = Address::parse(url).unwrap();
        (address.place, address.size_bytes)
    }

    #[test]
    fn a_url_is_a_scheme_and_a_name_and_perhaps_a_size() {
        assert_eq!(parsed("shm://jobs"), (Place::SharedMemory("jobs".into()), None));
        assert_eq!(parsed("mem://jobs"), (Place::Memory("jobs".into()), None));
        let jobs = Place::SharedMemory("jobs".into());
        assert_eq!(parsed("shm://jobs?size=4G"), (jobs.clone(), Some(4 << 30)));
        assert_eq!(parsed("shm://jobs?size=4096"), (jobs, Some(4096)));
    }

    #[test]
    fn a_word_that_a_shell_would_change_stands_in_quotes() {
        for (word, shown) in [
            ("file:///srv/shop.tupelo", "file:///srv/shop.tupelo"),
            ("file:///srv/shop.tupelo?space=old", "'file:///srv/shop.tupelo?space=old'"),
            ("/srv/my jobs.tupelo", "'/srv/my jobs.tupelo'"),
            ("/srv/o'neil", r"'/srv/o'\''neil'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), shown);
        }
    }

    #[test]
    fn what_is_no_url_is_refused_with_one_that_is() {
        for (url, says) in [
            ("jobs", "write shm://jobs"),
            ("a/b", "write shm://NAME"),
            ("shm://", "shm://jobs"),
            ("http://host:1/jobs", "there are mem://, shm://, file://, unix://, tcp:// and tls://"),
            ("http://host:1/jobs", "tcp://hub:7667/jobs"),
            ("redis://host:1/jobs", "write shm://jobs"),
            ("shm://a/b", "without a slash"),
            ("shm://?size=1G", "shm://jobs"),
            ("shm://jobs?sise=1G", "?size=512M"),
            ("shm://jobs?size=1.5G", "?size=512M"),
            ("shm://jobs?size=0", "?size=512M"),
            ("shm://jobs?size=99999999T", "?size=512M"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
        }
    }
}
