//! Who may ask at all. A server of this machine alone has no passwords, and every web page that is open in a browser of
//! the machine can send requests to it: none of them may come through.

use std::net::IpAddr;

use hyper::header::{CONTENT_TYPE, HOST, ORIGIN};
use hyper::{HeaderMap, Method};
use tupelo_protocol::{Fault, Host};

/// What a request has to be called that has a body: JSON, or a line of JSON for each tuple.
const JSON: [&str; 2] = ["application/json", super::lines::KIND];

/// Why a request is not served.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It comes from a web page, or was sent to another name.
    Stranger(Fault),
    /// Its body is not JSON.
    NotJson(Fault),
}

/// Refuses requests that a web page could send. Pages name their origin. A foreign name that points to this address is
/// not a name of this machine. For a body of JSON, a browser asks the server first.
pub(super) fn check(method: &Method, headers: &HeaderMap, host: IpAddr) -> Result<(), Refused> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(origin) = text(ORIGIN) {
        let problem = format!("the request comes from the web page {origin}");
        return Err(Refused::Stranger(fault(problem, "ask from a program, as with curl")));
    }
    let asked = text(HOST).unwrap_or_default();
    if host.is_loopback() && !is_this_machine(asked) {
        let problem =
            format!("the request is for {asked:?}, and this server is for this machine alone");
        return Err(Refused::Stranger(fault(
            problem,
            "ask at http://127.0.0.1, http://[::1] or http://localhost",
        )));
    }
    if *method == Method::POST || *method == Method::PUT {
        let given = text(CONTENT_TYPE).unwrap_or_default();
        let kind = given.split(';').next().unwrap_or_default().trim();
        if !JSON.iter().any(|known| kind.eq_ignore_ascii_case(known)) {
            let problem = format!("the body is called {given:?}, and only JSON is read");
            let hint = "send the header Content-Type: application/json, as in curl --json '{\"tuple\": [\"job\", 7]}'";
            return Err(Refused::NotJson(fault(problem, hint)));
        }
    }
    Ok(())
}

fn fault(problem: String, hint: &str) -> Fault {
    Fault::new("TUP-006", problem, Some(hint))
}

/// Whether the header `Host` has a name that always means this machine, whoever answers for names.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    Host { name: name.to_owned(), port: 0 }.is_loopback()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use hyper::header::{HeaderName, HeaderValue};
    use hyper::{HeaderMap, Method};

    use super::{Refused, check};

    fn checked(
        method: &Method,
        headers: &[(&'static str, &str)],
        host: &str,
    ) -> Result<(), Refused> {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let headers: HeaderMap = headers.iter().map(header).collect();
        check(method, &headers, host.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn programs_of_this_machine_are_served_by_any_of_its_names() {
        for host in ["127.0.0.1:7680", "localhost", "LOCALHOST:1", "[::1]:7680", "127.1.2.3"] {
            assert_eq!(checked(&Method::GET, &[("host", host)], "127.0.0.1"), Ok(()), "{host}");
        }
        let json = [("host", "localhost"), ("content-type", "application/json; charset=utf-8")];
        assert_eq!(checked(&Method::POST, &json, "::1"), Ok(()));
    }

    #[test]
    fn names_that_were_made_to_point_here_are_refused() {
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:7680", ""] {
            let refused = checked(&Method::GET, &[("host", host)], "127.0.0.1");
            assert!(matches!(refused, Err(Refused::Stranger(_))), "{host}");
        }
        // A server for other machines has a name.
        assert_eq!(checked(&Method::GET, &[("host", "hub:7680")], "10.0.0.1"), Ok(()));
    }

    #[test]
    fn web_pages_are_refused() {
        let page = [("host", "localhost"), ("origin", "https://evil.example")];
        assert!(matches!(checked(&Method::GET, &page, "127.0.0.1"), Err(Refused::Stranger(_))));
        for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"] {
            let form = [("host", "localhost"), ("content-type", kind)];
            let refused = checked(&Method::POST, &form, "127.0.0.1");
            assert!(matches!(refused, Err(Refused::NotJson(_))), "{kind}");
        }
        let none = checked(&Method::POST, &[("host", "localhost")], "127.0.0.1");
        assert!(matches!(none, Err(Refused::NotJson(_))));
    }
}
