//! Servers that other machines reach: who is let in, and what all others are told.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::authority::{Authority, Signed};
use crate::serving::{Served, settings};
use tupelo::{ConnectOptions, Error, Kind, Order, Space, TupleView, fields, template};
use tupelo_server::{Certificates, Endpoint, Engine, Host, ServeError, Settings, serve};

fn host(port: u16) -> Host {
    Host { name: "127.0.0.1".into(), port }
}

fn certificates(server: Signed, client_ca: Option<&Authority>) -> Certificates {
    let Signed { certificate, key } = server;
    Certificates { certificate, key, client_ca: client_ca.map(Authority::ca) }
}

/// A server with TLS, and its port.
fn served(certificates: Certificates) -> (Served, u16) {
    let endpoints = vec![Endpoint::Tls(host(0))];
    let certificates = Some(certificates);
    let served = Served::with(Settings { endpoints, certificates, ..settings(Engine::Mem) });
    let port = served.endpoint.host().unwrap().port;
    (served, port)
}

fn connect(url: &str) -> Result<Space, Error> {
    Space::connect(url, &ConnectOptions::default())
}

/// The error, which is one of a connection that does not come about.
fn refused(url: &str) -> String {
    let error = connect(url).unwrap_err();
    assert_eq!(error.code(), "TUP-002", "{error}");
    error.to_string()
}

/// Puts and takes a tuple that fills many records of TLS.
fn exchange(space: &Space) {
    let text = "x".repeat(3_000_000);
    space.put(&fields!["large", text.as_str()]).unwrap();
    let take = |tuple: TupleView<'_>| Ok::<_, Error>(tuple.to_tuple()?);
    let taken = space.try_take(&[template!["large", Kind::Str]], Order::Fifo, take);
    let sent =
        [tupelo::Value::from("large"), tupelo::Value::from(text.as_str())].into_iter().collect();
    assert_eq!(taken.unwrap(), Some(sent));
}

#[test]
fn a_server_is_trusted_if_the_named_authority_has_signed_for_the_host_in_the_url() {
    let authority = Authority::new();
    let (served, port) = served(certificates(authority.sign("server", "127.0.0.1"), None));
    let ca = authority.ca();
    let ca = ca.display();
    exchange(&connect(&format!("tls://127.0.0.1:{port}/jobs?ca={ca}")).unwrap());

    // The system's own authorities have not signed it, and neither has another one.
    let message = refused(&format!("tls://127.0.0.1:{port}/jobs"));
    assert!(message.contains("is not trusted (UnknownIssuer)"), "{message}");
    assert!(message.contains("?ca=/path/ca.pem"), "{message}");
    let other = Authority::new();
    let message = refused(&format!("tls://127.0.0.1:{port}/jobs?ca={}", other.ca().display()));
    assert!(message.contains("is not trusted"), "{message}");

    // It is for another name.
    let message = refused(&format!("tls://localhost:{port}/jobs?ca={ca}"));
    assert!(message.contains("is not trusted (NotValidForName"), "{message}");
    drop(served);
}

#[test]
fn a_server_that_asks_for_certificates_serves_only_those_whom_its_authority_knows() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let server = servers.sign("server", "127.0.0.1");
    let (_served, port) = served(certificates(server, Some(&clients)));
    let url = |own: &Signed| {
        let (ca, certificate) = (servers.ca(), own.certificate.display());
        let (ca, key) = (ca.display(), own.key.display());
        format!("tls://127.0.0.1:{port}/jobs?ca={ca}&certificate={certificate}&key={key}")
    };
    exchange(&connect(&url(&clients.sign("client", "worker"))).unwrap());

    let message = refused(&format!("tls://127.0.0.1:{port}/jobs?ca={}", servers.ca().display()));
    assert!(message.contains("asks for a certificate of this program"), "{message}");
    let message = refused(&url(&servers.sign("client", "worker")));
    assert!(message.contains("it has ended the handshake"), "{message}");
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let authority = Authority::new();
    let signed = authority.sign("server", "127.0.0.1");
    for (query, says) in [
        ("ca=/nowhere/ca.pem".to_owned(), "/nowhere/ca.pem can not be used"),
        (format!("ca={}", signed.key.display()), "it has none"),
        (format!("certificate={0}&key={0}", signed.certificate.display()), "the key /"),
    ] {
        let message = refused(&format!("tls://127.0.0.1:1/jobs?{query}"));
        assert!(message.contains(says), "{message}");
    }
    let broken = Certificates {
        certificate: signed.certificate.clone(),
        key: authority.sign("other", "127.0.0.1").key,
        client_ca: None,
    };
    let endpoints = vec![Endpoint::Tls(host(0))];
    let certificates = Some(broken);
    let settings = Settings { endpoints, certificates, ..settings(Engine::Mem) };
    let error = serve(&settings, |_| panic!("it serves")).unwrap_err();
    assert!(matches!(error, ServeError::Unusable { .. }), "{error}");
    assert!(error.to_string().contains("other.key"), "{error}");
}

#[test]
fn the_wrong_scheme_for_a_port_is_told() {
    let authority = Authority::new();
    let (_served, secure) = served(certificates(authority.sign("server", "127.0.0.1"), None));
    let plain = Served::new(Engine::Mem, "tcp");
    let plain = plain.endpoint.host().unwrap().port;

    let message = refused(&format!("tls://127.0.0.1:{plain}/jobs"));
    assert!(message.contains("is not TLS") && message.contains("as tcp://"), "{message}");
    let message = refused(&format!("tcp://127.0.0.1:{secure}/jobs"));
    assert!(message.contains("did not answer as a tupelo server does"), "{message}");
    assert!(message.contains("tls://"), "{message}");

    // A browser is told, and its connection ends; a server that is asked nothing goes on.
    let mut browser = TcpStream::connect(("127.0.0.1", secure)).unwrap();
    browser.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    browser.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    browser.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.first(), Some(&21), "an alert of TLS: {answer:?}");
}

#[test]
fn hosts_that_are_not_there_are_named() {
    // Nothing can listen on port 1 but a program of the administrator's.
    let message = refused("tcp://127.0.0.1:1/jobs");
    assert!(message.contains("at tcp://127.0.0.1:1: nothing listens there"), "{message}");
    assert!(message.contains("tupelo serve --listen tcp://127.0.0.1:1"), "{message}");
    let message = refused("tcp://no-such-host.invalid/jobs");
    assert!(message.contains("nobody knows this host"), "{message}");
}

#[test]
fn an_address_that_other_machines_reach_asks_for_certificates_or_for_consent() {
    let anywhere = || Host { name: "0.0.0.0".into(), port: 0 };
    let refused = |settings: &Settings| {
        let error = serve(settings, |_| panic!("it serves")).unwrap_err().to_string();
        assert!(error.contains("every machine that reaches this one"), "{error}");
        assert!(error.contains("--client-ca") && error.contains("--insecure"), "{error}");
    };
    let tcp = Settings { endpoints: vec![Endpoint::Tcp(anywhere())], ..settings(Engine::Mem) };
    refused(&tcp);
    let authority = Authority::new();
    let signed = || certificates(authority.sign("server", "127.0.0.1"), None);
    let endpoints = vec![Endpoint::Tls(anywhere())];
    let tls = Settings { endpoints, certificates: Some(signed()), ..settings(Engine::Mem) };
    refused(&tls);

    // With consent, or if clients are asked who they are.
    Served::with(Settings { insecure: true, ..tcp });
    let asking = Certificates { client_ca: Some(authority.ca()), ..signed() };
    Served::with(Settings { certificates: Some(asking), ..tls });
}
