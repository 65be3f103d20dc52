//! Where a server listens, as it stands in the URLs of its spaces.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

/// Longest host name in a URL, in bytes: as in the domain name system.
const HOST_BYTES_MAX: usize = 253;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A Unix socket of this machine, by its absolute path: `unix:///run/tupelo.sock`.
    Unix(PathBuf),
    /// A TCP port, without encryption: `tcp://host:7667`.
    Tcp(Host),
    /// A TCP port that speaks TLS: `tls://host:7668`.
    Tls(Host),
    /// A TCP port that speaks HTTP, for those that are no clients: `http://host:7680`.
    Http(Host),
}

/// A host and a port of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    /// A name, or the digits of an address; that of IPv6 without brackets.
    pub name: String,
    /// The port. A server that listens on port 0 gets one that is free.
    pub port: u16,
}

/// The port of `tcp://` URLs that name none.
pub const TCP_PORT: u16 = 7667;
/// The port of `tls://` URLs that name none.
pub const TLS_PORT: u16 = 7668;
/// The port of `http://` URLs that name none.
pub const HTTP_PORT: u16 = 7680;

impl Endpoint {
    /// What a server of this scheme is called, with its address as it stands behind `://`. `None` for another scheme.
    ///
    /// # Errors
    ///
    /// What is wrong with the address, in words.
    pub fn parse(scheme: &str, address: &str) -> Option<Result<Self, String>> {
        match scheme {
            "unix" if address.starts_with('/') => Some(Ok(Self::Unix(address.into()))),
            "unix" => Some(Err("the path of a socket begins with /".to_owned())),
            "tcp" => Some(Host::parse(address, TCP_PORT).map(Self::Tcp)),
            "tls" => Some(Host::parse(address, TLS_PORT).map(Self::Tls)),
            "http" => Some(Host::parse(address, HTTP_PORT).map(Self::Http)),
            _ => None,
        }
    }

    /// The scheme of its URLs, with what follows it: `tcp://`.
    pub const fn scheme(&self) -> &'static str {
        match self {
            Self::Unix(_) => "unix://",
            Self::Tcp(_) => "tcp://",
            Self::Tls(_) => "tls://",
            Self::Http(_) => "http://",
        }
    }

    /// The URL of a space of this server.
    pub fn url(&self, space: &str) -> String {
        match self {
            Self::Unix(_) => format!("{self}?space={space}"),
            Self::Tcp(_) | Self::Tls(_) => format!("{self}/{space}"),
            Self::Http(_) => format!("{self}/v1/spaces/{space}"),
        }
    }

    /// The same with this port, if it has one.
    #[must_use]
    pub fn on_port(&self, port: u16) -> Self {
        let with_port = |host: &Host| Host { name: host.name.clone(), port };
        match self {
            Self::Unix(path) => Self::Unix(path.clone()),
            Self::Tcp(host) => Self::Tcp(with_port(host)),
            Self::Tls(host) => Self::Tls(with_port(host)),
            Self::Http(host) => Self::Http(with_port(host)),
        }
    }

    /// The host of those that have one.
    pub const fn host(&self) -> Option<&Host> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(host) | Self::Tls(host) | Self::Http(host) => Some(host),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme())?;
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp(host) | Self::Tls(host) | Self::Http(host) => host.fmt(f),
        }
    }
}

impl Host {
    /// Whether it is this machine for certain, whoever answers for names.
    pub fn is_loopback(&self) -> bool {
        self.name.eq_ignore_ascii_case("localhost")
            || self.name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Understands `name`, `name:port`, `127.0.0.1:port` and `[::1]:port`.
    fn parse(text: &str, default_port: u16) -> Result<Self, String> {
        let (name, port) = match text.strip_prefix('[') {
            Some(bracketed) => bracketed
                .split_once(']')
                .ok_or_else(|| format!("the bracket of {text:?} is not closed"))?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let is_host = |character: char| {
            character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_' | ':' | '%')
        };
        if name.is_empty() || name.len() > HOST_BYTES_MAX || !name.chars().all(is_host) {
            return Err(format!("{name:?} is not the name or address of a host"));
        }
        let port = match port {
            "" => default_port,
            _ => port
                .strip_prefix(':')
                .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(|| {
                    format!("{port:?} is not a port: write a colon, and a number up to 65535")
                })?,
        };
        Ok(Self { name: name.to_owned(), port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, port } = self;
        if name.contains(':') { write!(f, "[{name}]:{port}") } else { write!(f, "{name}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, Host};

    fn parsed(scheme: &str, address: &str) -> Result<String, String> {
        Endpoint::parse(scheme, address).unwrap().map(|endpoint| endpoint.to_string())
    }

    #[test]
    fn addresses_are_understood_and_written_as_they_are_understood() {
        for (scheme, address, url) in [
            ("unix", "/run/t.sock", "unix:///run/t.sock"),
            ("tcp", "hub", "tcp://hub:7667"),
            ("tcp", "hub:1", "tcp://hub:1"),
            ("tls", "hub.example.org", "tls://hub.example.org:7668"),
            ("tls", "127.0.0.1:0", "tls://127.0.0.1:0"),
            ("tcp", "[::1]:65535", "tcp://[::1]:65535"),
            ("tcp", "[fe80::1%eth0]", "tcp://[fe80::1%eth0]:7667"),
        ] {
            assert_eq!(parsed(scheme, address).as_deref(), Ok(url));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason() {
        for (scheme, address, reason) in [
            ("unix", "run/t.sock", "begins with /"),
            ("tcp", "", "not the name"),
            ("tcp", ":7667", "not the name"),
            ("tcp", "user@hub", "not the name"),
            ("tcp", "hub:", "not a port"),
            ("tcp", "hub:+1", "not a port"),
            ("tcp", "hub:65536", "not a port"),
            ("tcp", "[::1", "not closed"),
            ("tcp", "[::1]7667", "not a port"),
            ("tcp", "::1", "not the name"),
        ] {
            let problem = parsed(scheme, address).unwrap_err();
            assert!(problem.contains(reason), "{address:?}: {problem}");
        }
        assert_eq!(Endpoint::parse("ftp", "hub"), None);
    }

    #[test]
    fn the_url_of_a_space_names_its_server_and_its_name() {
        let host = || Host { name: "hub".to_owned(), port: 7 };
        assert_eq!(Endpoint::Unix("/t.sock".into()).url("jobs"), "unix:///t.sock?space=jobs");
        assert_eq!(Endpoint::Tcp(host()).url("jobs"), "tcp://hub:7/jobs");
        assert_eq!(Endpoint::Tls(host()).url("jobs"), "tls://hub:7/jobs");
        assert_eq!(Endpoint::Http(host()).url("jobs"), "http://hub:7/v1/spaces/jobs");
    }
}
