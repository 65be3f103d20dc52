//! URLs of a server's spaces: the address of the server, the name of the space, and how to make sure of the server.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use tupelo_client::{RECONNECT, Server, Trust};
use tupelo_protocol::Endpoint;

use super::{Address, Place, bytes, check_name, misuse};
use crate::error::Error;

/// A URL that is right, of the scheme that the user has written.
fn example(scheme: &str) -> &'static str {
    match scheme {
        "unix" => "unix:///run/user/1000/tupelo.sock?space=jobs",
        "tls" => "tls://hub:7668/jobs",
        _ => "tcp://hub:7667/jobs",
    }
}

/// Understands the address behind `://`, and the options behind the question mark.
pub(super) fn parse(
    url: &str,
    (scheme, address): (&str, &str),
    options: Option<&str>,
) -> Result<Address, Error> {
    let example = example(scheme);
    let (server, name, size_bytes) = parts(url, (scheme, address), options)?;
    let name = name.ok_or_else(|| {
        let hint = format!("write the address of the server, and the space, as in {example}");
        misuse(format!("{url:?} names no space"), &hint)
    })?;
    check_name(url, name, example)?;
    Ok(Address { place: Place::Server { server, name: name.into() }, size_bytes, sync: None })
}

/// The server, the name of a space if there is one, and the size of a new one.
fn parts<'u>(
    url: &str,
    (scheme, address): (&str, &'u str),
    options: Option<&'u str>,
) -> Result<(Server, Option<&'u str>, Option<u64>), Error> {
    let options = Options::parse(url, scheme, options)?;
    let (address, name) = match scheme {
        "unix" => (address, options.space),
        _ => address.split_once('/').map_or((address, None), |(host, name)| (host, Some(name))),
    };
    let endpoint = Endpoint::parse(scheme, address).unwrap_or_else(|| Err(String::new()));
    let endpoint = endpoint.map_err(|problem| {
        misuse(format!("{url:?}: {problem}"), &format!("write {}", example(scheme)))
    })?;
    let size_bytes = options.size_bytes;
    let token = options.token(&endpoint)?;
    let reconnect = options.reconnect.unwrap_or(RECONNECT);
    let server = Server { endpoint, trust: options.trust(url)?, token, reconnect };
    Ok((server, name.filter(|name| !name.is_empty()), size_bytes))
}

/// The server of a URL that names no space of it; `None` for all others.
pub(crate) fn alone(url: &str) -> Result<Option<Server>, Error> {
    let Some((scheme, rest)) = url.split_once("://") else { return Ok(None) };
    if !["unix", "tcp", "tls"].contains(&scheme) {
        return Ok(None);
    }
    let (address, options) = rest.split_once('?').map_or((rest, None), |(a, o)| (a, Some(o)));
    let (server, name, _) = parts(url, (scheme, address), options)?;
    Ok(name.is_none().then_some(server))
}

/// The URL of a space of the server at `url`, which names none: with the options that are there.
pub(crate) fn url_of(url: &str, name: &str) -> String {
    let (address, options) = url.split_once('?').map_or((url, ""), |(a, o)| (a, o));
    let is_unix = address.starts_with("unix:");
    let address = if is_unix { address } else { address.trim_end_matches('/') };
    match (is_unix, options) {
        (true, "") => format!("{address}?space={name}"),
        (true, options) => format!("{address}?space={name}&{options}"),
        (false, "") => format!("{address}/{name}"),
        (false, options) => format!("{address}/{name}?{options}"),
    }
}

/// What stands behind the question mark.
#[derive(Default)]
struct Options<'u> {
    space: Option<&'u str>,
    size_bytes: Option<u64>,
    reconnect: Option<Duration>,
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    token_file: Option<PathBuf>,
}

/// The environment variable with the token for servers that ask for one.
const TOKEN: &str = "TUPELO_TOKEN";
/// Bytes of a file with a token.
const TOKEN_BYTES_MAX: u64 = 1024;

impl<'u> Options<'u> {
    fn parse(url: &str, scheme: &str, options: Option<&'u str>) -> Result<Self, Error> {
        let mut parsed = Self::default();
        for option in options.unwrap_or_default().split('&').filter(|option| !option.is_empty()) {
            let refused = || {
                let problem = format!("{url:?} has the option {option:?}");
                let hint = match scheme {
                    "unix" => {
                        "the options are the space, the size of a new one, reconnect_s and token_file, as in \
                         ?space=jobs&size=512M"
                    }
                    "tls" => {
                        "the options are the size of a new space, reconnect_s, and the files ca, certificate, key and token_file, as in \
                         ?size=512M&ca=/etc/tupelo/ca.pem"
                    }
                    _ => {
                        "the options are the size of a new space, reconnect_s and token_file, as in ?size=512M"
                    }
                };
                misuse(problem, hint)
            };
            let (option, value) = option.split_once('=').ok_or_else(refused)?;
            let path = || Some(PathBuf::from(value)).filter(|path| path.is_absolute());
            match (option, scheme) {
                ("space", "unix") => parsed.space = Some(value),
                ("size", _) => parsed.size_bytes = Some(bytes(value).ok_or_else(refused)?),
                ("reconnect_s", _) => parsed.reconnect = Some(seconds(value).ok_or_else(refused)?),
                ("ca", "tls") => parsed.ca = Some(path().ok_or_else(refused)?),
                ("certificate", "tls") => parsed.certificate = Some(path().ok_or_else(refused)?),
                ("key", "tls") => parsed.key = Some(path().ok_or_else(refused)?),
                ("token_file", _) => parsed.token_file = Some(path().ok_or_else(refused)?),
                _ => return Err(refused()),
            }
        }
        Ok(parsed)
    }

    /// The token: of the file that the URL names, or else of the environment. A token of the environment is not sent
    /// where others could read it on its way.
    fn token(&self, endpoint: &Endpoint) -> Result<Option<String>, Error> {
        let Some(path) = &self.token_file else {
            let is_read_by_others = matches!(endpoint, Endpoint::Tcp(host) if !host.is_loopback());
            return Ok(std::env::var(TOKEN).ok().filter(|_| !is_read_by_others));
        };
        let mut token = String::new();
        let read =
            File::open(path).and_then(|file| file.take(TOKEN_BYTES_MAX).read_to_string(&mut token));
        read.map_err(|error| {
            let problem = format!("the file with the token, {}: {error}", path.display());
            misuse(
                problem,
                "write the token into a file that only you can read, and name that as token_file",
            )
        })?;
        Ok(Some(token.trim().to_owned()))
    }

    /// The files of TLS.
    fn trust(self, url: &str) -> Result<Trust, Error> {
        let own = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                let problem = format!("{url:?} has one of certificate and key without the other");
                return Err(misuse(
                    problem,
                    "give both, as ?certificate=/path/own.pem&key=/path/own.key",
                ));
            }
        };
        Ok(Trust { ca: self.ca, own })
    }
}

/// Longest time for which a connection is made again: a day.
const RECONNECT_S_MAX: f64 = 86_400.0;

/// A time in seconds, from 0 on.
fn seconds(text: &str) -> Option<Duration> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = is_number.then(|| text.parse().ok()).flatten()?;
    (0.0..=RECONNECT_S_MAX).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use tupelo_client::{Server, Trust};
    use tupelo_protocol::Endpoint;

    use super::{alone, url_of};
    use crate::url::{Address, Place};

    /// The server, as its endpoint is written, the name, the size, and the files.
    fn parsed(url: &str) -> (String, String, Option<u64>, Trust) {
        let Address { place, size_bytes, .. } = Address::parse(url).unwrap();
        let Place::Server { server, name } = place else { panic!("{place:?}") };
        let Server { endpoint, trust, .. } = server;
        (endpoint.to_string(), name, size_bytes, trust)
    }

    fn plain(
        endpoint: &str,
        name: &str,
        size_bytes: Option<u64>,
    ) -> (String, String, Option<u64>, Trust) {
        (endpoint.to_owned(), name.to_owned(), size_bytes, Trust::default())
    }

    #[test]
    fn a_space_of_a_server_is_its_address_and_a_name() {
        let socket = |name, size| plain("unix:///run/t.sock", name, size);
        assert_eq!(parsed("unix:///run/t.sock?space=jobs"), socket("jobs", None));
        assert_eq!(parsed("unix:///run/t.sock?space=a&size=4K"), socket("a", Some(4096)));
        assert_eq!(parsed("unix:///run/t.sock?size=4K&space=a"), socket("a", Some(4096)));
        assert_eq!(parsed("tcp://hub/jobs"), plain("tcp://hub:7667", "jobs", None));
        assert_eq!(parsed("tcp://[::1]:1/a?size=4K"), plain("tcp://[::1]:1", "a", Some(4096)));
        assert_eq!(parsed("tls://hub/jobs"), plain("tls://hub:7668", "jobs", None));
    }

    #[test]
    fn a_url_of_tls_names_the_files_by_which_both_sides_are_known() {
        let (_, _, size_bytes, trust) =
            parsed("tls://hub/a?ca=/c.pem&size=4K&certificate=/o.pem&key=/o.key");
        assert_eq!(size_bytes, Some(4096));
        let own = Some(("/o.pem".into(), "/o.key".into()));
        assert_eq!(trust, Trust { ca: Some("/c.pem".into()), own });
    }

    #[test]
    fn a_url_says_how_long_a_connection_is_made_again() {
        let reconnect_ms = |url| match Address::parse(url).unwrap().place {
            Place::Server { server, .. } => server.reconnect.as_millis(),
            place => panic!("{place:?}"),
        };
        assert_eq!(reconnect_ms("tcp://hub/jobs"), 60_000);
        assert_eq!(reconnect_ms("tcp://hub/jobs?reconnect_s=0"), 0);
        assert_eq!(reconnect_ms("unix:///t.sock?space=a&reconnect_s=2.5"), 2_500);
    }

    #[test]
    fn the_url_that_the_server_shows_is_understood() {
        for url in ["unix:///t.sock?space=jobs", "tcp://hub:7/jobs", "tls://[::1]:7/jobs"] {
            let Place::Server { server, name } = Address::parse(url).unwrap().place else {
                panic!()
            };
            assert_eq!(Endpoint::url(&server.endpoint, &name), url);
        }
    }

    #[test]
    fn a_server_alone_is_an_address_without_a_space_whose_spaces_have_its_options() {
        for (url, space) in [
            ("tcp://hub", "tcp://hub/jobs"),
            ("tcp://hub:7/", "tcp://hub:7/jobs"),
            ("tls://hub?ca=/ca.pem", "tls://hub/jobs?ca=/ca.pem"),
            ("unix:///t.sock", "unix:///t.sock?space=jobs"),
            ("unix:///t.sock?reconnect_s=1", "unix:///t.sock?space=jobs&reconnect_s=1"),
        ] {
            let server = alone(url).unwrap().unwrap();
            assert_eq!(url_of(url, "jobs"), space);
            let Place::Server { server: of_space, name } = Address::parse(space).unwrap().place
            else {
                panic!()
            };
            assert_eq!((of_space, &*name), (server, "jobs"), "{url}");
            assert_eq!(alone(space), Ok(None));
        }
        assert_eq!((alone("shm://jobs"), alone("jobs")), (Ok(None), Ok(None)));
        assert!(alone("tcp://hub?sise=1").is_err());
    }

    #[test]
    fn what_is_no_url_of_a_server_is_refused_with_one_that_is() {
        for (url, says) in [
            ("unix://sock?space=jobs", "begins with /"),
            ("unix:///run/sock", "names no space"),
            ("unix:///run/sock?space=a/b", "without a slash"),
            ("unix:///run/sock?space=jobs&sise=1G", "&size=512M"),
            ("tcp://hub/jobs?reconnect_s=-1", "reconnect_s"),
            ("tcp://hub/jobs?reconnect_s=1e3", "reconnect_s"),
            ("tcp://hub/jobs?reconnect_s=86401", "reconnect_s"),
            ("tcp://hub/jobs?reconnect_s=", "reconnect_s"),
            ("tcp://hub", "names no space"),
            ("tcp://hub/", "names no space"),
            ("tcp://hub:x/jobs", "write tcp://hub:7667/jobs"),
            ("tcp:///jobs", "write tcp://hub:7667/jobs"),
            ("tcp://hub/a/b", "without a slash"),
            ("tcp://hub/jobs?space=a", "?size=512M"),
            ("tcp://hub/jobs?ca=/ca.pem", "?size=512M"),
            ("tls://hub/jobs?ca=ca.pem", "?size=512M&ca=/etc"),
            ("tls://hub/jobs?certificate=/o.pem", "without the other"),
            ("tls://hub/jobs?key=/o.key", "without the other"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
        }
    }
}
