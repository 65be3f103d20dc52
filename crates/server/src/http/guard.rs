//! Who may ask at all. A server of this machine alone has no passwords, and every web page that is open in a browser of
//! the machine can send requests to it: none of them may come through.

use std::net::IpAddr;

use hyper::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use hyper::{HeaderMap, Method};
use tupelo_protocol::{Fault, Host};

/// What a request has to be called that has a body: JSON, or a line of JSON for each tuple.
const JSON: [&str; 2] = ["application/json", super::lines::KIND];

/// Refuses requests that a web page could send. Pages name their origin. A foreign name that points to this address is
/// not a name of this machine. A browser asks first before it sends JSON, so the body has to be that ([`require_json`]).
pub(super) fn refuse_strangers(headers: &HeaderMap, host: IpAddr) -> Result<(), Fault> {
    if let Some(origin) = text(headers, ORIGIN) {
        let problem = format!("the request comes from the web page {origin}");
        return Err(fault(problem, "ask from a program, as with curl"));
    }
    let asked = text(headers, HOST).unwrap_or_default();
    if host.is_loopback() && !is_this_machine(asked) {
        let problem =
            format!("the request is for {asked:?}, and this server is for this machine alone");
        return Err(fault(problem, "ask at http://127.0.0.1, http://[::1] or http://localhost"));
    }
    Ok(())
}

/// Refuses what may have an effect, and whose body is not called JSON.
pub(super) fn require_json(method: &Method, headers: &HeaderMap) -> Result<(), Fault> {
    if *method == Method::POST || *method == Method::PUT {
        let given = text(headers, CONTENT_TYPE).unwrap_or_default();
        let kind = given.split(';').next().unwrap_or_default().trim();
        if !JSON.iter().any(|known| kind.eq_ignore_ascii_case(known)) {
            let problem = format!("the body is called {given:?}, and only JSON is read");
            let hint = "send the header Content-Type: application/json, as in curl --json '{\"tuple\": [\"job\", 7]}'";
            return Err(fault(problem, hint));
        }
    }
    Ok(())
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
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

    use super::{refuse_strangers, require_json};

    fn headers(given: &[(&'static str, &str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        given.iter().map(header).collect()
    }

    fn is_stranger(given: &[(&'static str, &str)], host: &str) -> bool {
        refuse_strangers(&headers(given), host.parse::<IpAddr>().unwrap()).is_err()
    }

    #[test]
    fn programs_of_this_machine_are_served_by_any_of_its_names() {
        for host in ["127.0.0.1:7680", "localhost", "LOCALHOST:1", "[::1]:7680", "127.1.2.3"] {
            assert!(!is_stranger(&[("host", host)], "127.0.0.1"), "{host}");
        }
        assert!(!is_stranger(&[("host", "localhost")], "::1"));
    }

    #[test]
    fn names_that_were_made_to_point_here_are_refused() {
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:7680", ""] {
            assert!(is_stranger(&[("host", host)], "127.0.0.1"), "{host}");
        }
        // A server for other machines has a name.
        assert!(!is_stranger(&[("host", "hub:7680")], "10.0.0.1"));
    }

    #[test]
    fn web_pages_are_refused() {
        let page = [("host", "localhost"), ("origin", "https://evil.example")];
        assert!(is_stranger(&page, "127.0.0.1"));
        for method in [Method::POST, Method::PUT] {
            for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"] {
                let form = headers(&[("content-type", kind)]);
                require_json(&method, &form).unwrap_err();
            }
            require_json(&method, &HeaderMap::new()).unwrap_err();
            let json = headers(&[("content-type", "application/json; charset=utf-8")]);
            require_json(&method, &json).unwrap();
        }
        require_json(&Method::GET, &HeaderMap::new()).unwrap();
    }
}
