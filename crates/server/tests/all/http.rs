//! HTTP: each verb, what is waited for, and what is refused.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::serving::{Served, settings};
use serde_json::{Value as Json, json};
use tupelo_server::rights::add;
use tupelo_server::{Endpoint, Engine, Host, Settings};

/// A server, and a space of it that is this test's.
pub(crate) struct Http {
    pub(crate) served: Served,
    port: u16,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code and the hint of a refusal with this status.
    pub(crate) fn refusal(&self, status: u16) -> (String, String) {
        assert_eq!(self.status, status, "{self:?}");
        let error = &self.json()["error"];
        let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        (text("code"), format!("{} {}", text("message"), text("hint")))
    }
}

impl Http {
    pub(crate) fn new() -> Self {
        Self::with(settings(Engine::Mem))
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let host = Host { name: "127.0.0.1".into(), port: 0 };
        let endpoints = vec![Endpoint::Http(host)];
        let served = Served::with(Settings { endpoints, ..settings });
        let port = served.endpoint.host().unwrap().port;
        Self { served, port }
    }

    /// Posts a body of lines.
    pub(crate) fn post_lines(&self, path: &str, lines: &str) -> Answer {
        answer(self.send_as("application/x-ndjson", "POST", path, ("", lines)))
    }

    /// Sends a request, and nothing more.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        self.send_as("application/json", method, path, (headers, body))
    }

    fn send_as(
        &self,
        kind: &str,
        method: &str,
        path: &str,
        (headers, body): (&str, &str),
    ) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        // So that a server that never answers is a failure, and no hang.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        stream
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        answer(self.send(method, path, headers, body))
    }

    /// Asks with a body of another kind.
    fn ask_as(&self, kind: &str, (method, path): (&str, &str), body: &str) -> Answer {
        answer(self.send_as(kind, method, path, ("", body)))
    }

    pub(crate) fn path(&self, verb: &str) -> String {
        format!("/v1/spaces/{}/{verb}", self.served.space)
    }

    /// What a verb is answered in the space of the test.
    pub(crate) fn verb(&self, verb: &str, body: &Json) -> Json {
        let answer = self.ask("POST", &self.path(verb), "", &body.to_string());
        assert_eq!(answer.status, 200, "{verb} {body}: {answer:?}");
        answer.json()
    }
}

fn answer(mut stream: TcpStream) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, text: body.to_owned() }
}

pub(crate) fn jobs() -> Json {
    json!(["job", { "$formal": ":int" }])
}

#[test]
fn each_verb_does_over_http_what_it_does() {
    let http = Http::new();
    let verb = |name, body| http.verb(name, &body);
    assert_eq!(verb("put", json!({ "tuple": ["job", 1] })), json!({ "put": 1 }));
    let many = json!({ "tuples": [["job", 2], { "tuple": ["job", 3] }] });
    assert_eq!(verb("put", many), json!({ "put": 2 }));
    assert_eq!(verb("count", json!({ "template": jobs() })), json!({ "count": 3 }));
    assert_eq!(verb("read", json!({ "template": jobs() })), json!({ "tuple": ["job", 1] }));
    let last = json!({ "template": jobs(), "order": "lifo" });
    assert_eq!(verb("read", last), json!({ "tuple": ["job", 3] }));
    let most = json!({ "template": jobs(), "order": { "max": 1 } });
    assert_eq!(verb("read", most), json!({ "tuple": ["job", 3] }));
    let even = json!({ "template": jobs(), "where": "f[1] % 2 == 0" });
    assert_eq!(verb("take", even), json!({ "tuple": ["job", 2] }));
    let swapped = json!({ "template": ["job", 1], "tuple": ["job", 10] });
    assert_eq!(verb("swap", swapped), json!({ "tuple": ["job", 1] }));
}

#[test]
fn what_is_put_if_absent_or_found_all_at_once_is_one_step_o5_o8() {
    let http = Http::new();
    let verb = |name, body| http.verb(name, &body);
    let absent = json!({ "tuple": ["leader", 1], "unless": "\"leader\", _" });
    assert_eq!(verb("put", absent.clone()), json!({ "put": 1 }));
    assert_eq!(verb("put", absent), json!({ "put": 0 }));
    verb("put", json!({ "tuples": [["job", 3], ["job", 10]] }));
    let too_many = json!({ "template": jobs(), "at_least": 3 });
    assert_eq!(verb("take_all", too_many), json!({ "tuples": null }));
    let all = json!({ "template": jobs() });
    let both = json!({ "tuples": [{ "tuple": ["job", 3] }, { "tuple": ["job", 10] }] });
    assert_eq!(verb("read_all", all.clone()), both);
    assert_eq!(verb("take_all", all.clone()), both);
    assert_eq!(verb("take", all.clone()), json!({ "tuple": null }));
    assert_eq!(verb("take_all", all), json!({ "tuples": [] }));
}

#[test]
fn values_of_every_kind_come_back_the_same_v3() {
    let http = Http::new();
    let fields = json!([
        null,
        true,
        1.5,
        { "$bytes": "00ff" },
        { "$decimal": "1.50" },
        { "$float": "nan" },
        [1, [2]],
        { "a": 1 },
        "text"
    ]);
    http.verb("put", &json!({ "tuple": fields }));
    let large = "123456789012345678901234567890";
    let body = format!("{{\"tuple\": [\"large\", {large}]}}");
    assert_eq!(http.ask("POST", &http.path("put"), "", &body).status, 200);
    let entry = json!({ "name": "Job", "bases": [], "fields": { "id": 7 } });
    http.verb("put", &json!({ "entry": entry }));

    let rest = json!({ "template": [null, { "$formal": "..." }] });
    assert_eq!(http.verb("take", &rest), json!({ "tuple": fields }));
    let taken = http.ask(
        "POST",
        &http.path("take"),
        "",
        "{\"template\": [\"large\", {\"$formal\": \":int\"}]}",
    );
    assert!(taken.text.contains(large), "{taken:?}");
    let by_class = json!({ "template": "Job{id: :int}" });
    assert_eq!(http.verb("take", &by_class), json!({ "entry": entry }));
}

#[test]
fn a_take_that_waits_is_served_by_a_put_and_ends_with_its_time_t1_t5() {
    let http = Http::new();
    let waits = json!({ "template": jobs(), "timeout_s": 60 }).to_string();
    let waiting = http.send("POST", &http.path("take"), "", &waits);
    // It may not wait yet: then it finds the tuple.
    http.verb("put", &json!({ "tuple": ["job", 1] }));
    assert_eq!(answer(waiting).json(), json!({ "tuple": ["job", 1] }));
    let short = json!({ "template": jobs(), "timeout_s": 0.01 });
    assert_eq!(http.verb("take", &short), json!({ "tuple": null }));
}

#[test]
fn a_client_that_goes_while_it_waits_takes_nothing_t5() {
    let http = Http::new();
    let waits = json!({ "template": jobs(), "timeout_s": 60 }).to_string();
    for _ in 0..20 {
        drop(http.send("POST", &http.path("take"), "", &waits));
    }
    http.verb("put", &json!({ "tuple": ["job", 1] }));
    // One of them may have it for the moment until the server knows that it has gone.
    let found = json!({ "template": jobs(), "timeout_s": 60 });
    assert_eq!(http.verb("take", &found), json!({ "tuple": ["job", 1] }));
}

#[test]
fn a_request_that_comes_again_with_its_key_has_no_second_effect() {
    let http = Http::new();
    let put = |key: &str| {
        let header = format!("Idempotency-Key: {key}\r\n");
        http.ask("POST", &http.path("put"), &header, "{\"tuple\": [\"job\", 1]}")
    };
    let key = "01890a5d-ac96-774b-bcce-b302099a8057";
    assert_eq!(put(key).json(), json!({ "put": 1 }));
    assert_eq!(put(key).json(), json!({ "put": 1 }));
    assert_eq!(http.verb("count", &json!({ "template": jobs() })), json!({ "count": 1 }));
    assert_eq!(put("11890a5d-ac96-774b-bcce-b302099a8057").json(), json!({ "put": 1 }));
    assert_eq!(http.verb("count", &json!({ "template": jobs() })), json!({ "count": 2 }));
    // It goes with its request: another one is done.
    let header = format!("Idempotency-Key: {key}\r\n");
    let other = http.ask("POST", &http.path("put"), &header, "{\"tuple\": [\"job\", 2]}");
    assert_eq!(other.json(), json!({ "put": 1 }));
    let path = format!("/v1/spaces/{}-other", http.served.space);
    let made = http.ask("PUT", &path, "", "{\"tuples_max\": 1}");
    assert_eq!(made.status, 200);
    let elsewhere = |header: &str| {
        http.ask("POST", &format!("{path}/put"), header, "{\"tuple\": [\"job\", 1]}")
    };
    assert_eq!(elsewhere("").json(), json!({ "put": 1 }));
    // What was refused is done when there is room.
    assert_eq!(elsewhere(&header).refusal(507).0, "TUP-005");
    http.ask("POST", &format!("{path}/take"), "", "{\"template\": \"...\"}");
    assert_eq!(elsewhere(&header).json(), json!({ "put": 1 }));
    assert_eq!(put("mine").refusal(400).0, "TUP-019");
    let header = format!("Idempotency-Key: {key}\r\n");
    let body = json!({ "template": jobs() }).to_string();
    let refused = http.ask("POST", &http.path("take"), &header, &body);
    assert!(refused.refusal(400).1.contains("can not be sent twice"));
}

#[test]
fn a_put_that_comes_again_to_the_next_server_of_a_shared_space_has_no_second_effect() {
    let servers = [(); 2].map(|()| Http::with(settings(Engine::Shm)));
    let space = format!("/v1/spaces/{}", servers[0].served.space);
    let ask = |http: &Http, method: &str, verb: &str, header: &str, body: &str| {
        http.ask(method, &format!("{space}{verb}"), header, body)
    };
    let key = "Idempotency-Key: 01890a5d-ac96-774b-bcce-b302099a8057\r\n";
    for http in &servers {
        let put = ask(http, "POST", "/put", key, "{\"tuple\": [\"job\", 1]}");
        assert_eq!(put.json(), json!({ "put": 1 }));
    }
    let count = json!({ "template": jobs() }).to_string();
    let counted = ask(&servers[1], "POST", "/count", "", &count);
    assert_eq!(counted.json(), json!({ "count": 1 }));
    assert_eq!(ask(&servers[1], "DELETE", "", "", "").status, 200);
}

#[test]
fn what_is_wrong_is_refused_with_what_to_type_and_nothing_happens() {
    let http = Http::new();
    http.verb("put", &json!({ "tuple": ["job", 1] }));
    for (verb, body, code, says) in [
        ("put", "{\"tuple\": [\"job\", 1]", "TUP-019", "this is no JSON"),
        ("put", "[1]", "TUP-019", "no object"),
        ("put", "{}", "TUP-019", "has no tuple"),
        ("put", "{\"tuple\": [1], \"lease\": 1}", "TUP-019", "lease_s"),
        ("put", "{\"tuple\": [1], \"lease_s\": -1}", "TUP-019", "not negative"),
        ("put", "{\"tuple\": [1], \"tuples\": []}", "TUP-019", "tuples, and a tuple"),
        ("put", "{\"tuples\": [[1], 2]}", "TUP-019", "tuple 1"),
        ("take", "{}", "TUP-019", "has no template"),
        ("take", "{\"template\": 7}", "TUP-001", "a template is a list"),
        ("take", "{\"template\": [{\"$formal\": \":job\"}]}", "TUP-001", "field 0"),
        ("take", "{\"template\": [\"job\", 1], \"where\": \"f[\"}", "TUP-001", "condition"),
        ("take", "{\"template\": [\"job\", 1], \"order\": \"best\"}", "TUP-019", "fifo"),
        ("take", "{\"template\": [\"job\", 1], \"timeout_s\": 3601}", "TUP-019", "3600 s"),
        ("take", "{\"template\": [\"job\", 1], \"timeout_s\": \"1\"}", "TUP-019", "seconds"),
        ("take_all", "{\"template\": [\"job\", 1], \"at_most\": 1.5}", "TUP-019", "whole number"),
        ("swap", "{\"template\": [\"job\", 1]}", "TUP-019", "has no tuple"),
        (
            "count",
            "{\"template\": [\"job\", 1], \"order\": \"fifo\"}",
            "TUP-019",
            "template, where",
        ),
    ] {
        let (given, told) = http.ask("POST", &http.path(verb), "", body).refusal(400);
        assert_eq!(given, code, "{verb} {body}: {told}");
        assert!(told.contains(says), "{verb} {body}: {told}");
    }
    let everything = json!({ "template": [{ "$formal": "..." }] });
    assert_eq!(http.verb("count", &everything), json!({ "count": 1 }));
}

#[test]
fn paths_and_methods_that_are_not_there_are_told_from_those_that_are() {
    let http = Http::new();
    let (_, told) = http.ask("POST", &http.path("get"), "", "{}").refusal(404);
    assert!(told.contains("put, take, read"), "{told}");
    let (_, told) = http.ask("GET", "/", "", "").refusal(404);
    assert!(told.contains("/v1/spaces/NAME/VERB"), "{told}");
    let (_, told) = http.ask("GET", &http.path("take"), "", "").refusal(405);
    assert!(told.contains("POST"), "{told}");
    http.ask("POST", "/metrics", "", "{}").refusal(405);
    http.ask("GET", "/v1/spaces/jobs", "", "").refusal(405);
    let (code, _) = http.ask("DELETE", "/v1/spaces/none", "", "").refusal(404);
    assert_eq!(code, "TUP-013");
    http.ask("PUT", "/v1/spaces/a%2Fb", "", "").refusal(400);
    http.ask("PUT", "/v1/spaces/%zz", "", "").refusal(400);
}

#[test]
fn a_path_and_its_methods_come_before_what_the_body_is_called() {
    let http = Http::new();
    for (method, path, allowed) in [
        ("PUT", "/livez".to_owned(), "GET"),
        ("POST", "/readyz".to_owned(), "GET"),
        ("POST", "/v1/spaces".to_owned(), "GET"),
        ("PUT", http.path("take"), "POST"),
        ("POST", "/v1/spaces/jobs".to_owned(), "PUT, DELETE"),
        ("PUT", format!("/v1/claims/{}/done", "0".repeat(32)), "POST"),
        ("PUT", format!("/v1/transactions/{}/commit", "0".repeat(32)), "POST"),
    ] {
        let (_, told) = http.ask_as("text/plain", (method, &path), "").refusal(405);
        assert!(told.contains(allowed), "{method} {path}: {told}");
    }
    http.ask_as("text/plain", ("POST", "/v1/none"), "").refusal(404);
    // What may have an effect is read if it is called JSON, and not else.
    http.ask_as("text/plain", ("POST", &http.path("put")), "{\"tuple\": [1]}").refusal(415);
    http.ask_as("text/plain", ("PUT", "/v1/spaces/jobs"), "{}").refusal(415);
    let everything = json!({ "template": [{ "$formal": "..." }] });
    assert_eq!(http.verb("count", &everything), json!({ "count": 0 }));
}

#[test]
fn a_name_of_a_space_has_as_many_bytes_as_the_description_says_b2() {
    let http = Http::new();
    let described = http.ask("GET", "/openapi.json", "", "").json();
    let space = &described["paths"]["/v1/spaces/{space}/put"]["post"]["parameters"][0];
    let most = space["schema"]["maxLength"].as_u64().unwrap();
    let put = |bytes: u64| {
        let begin = &http.served.space;
        let path =
            format!("/v1/spaces/{begin:x<bytes$}/put", bytes = usize::try_from(bytes).unwrap());
        http.ask("POST", &path, "", "{\"tuple\": [1]}")
    };
    assert_eq!(put(most).json(), json!({ "put": 1 }));
    let (_, told) = put(most + 1).refusal(400);
    assert!(told.contains("use at most 100"), "{told}");
}

#[test]
fn spaces_are_made_listed_and_removed() {
    let http = Http::new();
    let name = format!("caf%C3%A9-{}", http.served.space);
    let path = format!("/v1/spaces/{name}");
    let limits = "{\"tuples_max\": 1, \"when_full\": \"error\", \"size_bytes\": 1000000}";
    let made = http.ask("PUT", &path, "", limits).json();
    assert_eq!(made, json!({ "space": format!("café-{}", http.served.space) }));
    let spaces = http.ask("GET", "/v1/spaces", "", "").json();
    assert_eq!(spaces["spaces"], json!([made["space"]]));
    let put = || http.ask("POST", &format!("{path}/put"), "", "{\"tuple\": [1]}");
    assert_eq!(put().status, 200);
    assert_eq!(put().refusal(507).0, "TUP-005");
    assert_eq!(http.ask("DELETE", &path, "", "").json(), json!({ "removed": 1 }));
    assert_eq!(http.ask("GET", "/v1/spaces", "", "").json(), json!({ "spaces": [] }));
    http.ask("PUT", &path, "", "{\"tuples_maximum\": 1}").refusal(400);
    http.ask("PUT", &path, "", "{\"when_full\": \"panic\"}").refusal(400);
    // Also of a space that is there.
    http.ask("PUT", &path, "", "").json();
    for limit in ["tuples_max", "size_bytes"] {
        let (_, told) = http.ask("PUT", &path, "", &format!("{{\"{limit}\": 0}}")).refusal(400);
        assert!(told.contains("1 or more"), "{told}");
    }
}

#[test]
fn a_web_page_can_not_ask() {
    let http = Http::new();
    let page = "Origin: https://evil.example\r\n";
    let (code, _) = http.ask("POST", &http.path("put"), page, "{\"tuple\": [1]}").refusal(403);
    assert_eq!(code, "TUP-006");
    let everything = json!({ "template": [{ "$formal": "..." }] });
    assert_eq!(http.verb("count", &everything), json!({ "count": 0 }));
}

#[test]
fn the_holder_of_a_token_is_served_as_its_rules_say() {
    let settings = settings(Engine::Mem);
    let Endpoint::Unix(socket) = &settings.endpoints[0] else { panic!() };
    let file = socket.with_extension("toml");
    let rules = ["web : take, read (\"public\", _)", "web : put"].map(|rule| rule.parse().unwrap());
    let token = add(&file, "ci", &rules).unwrap();
    let http = Http::with(Settings { tokens: Some(file.clone()), ..settings });
    fs::remove_file(file).unwrap();
    let ask = |method: &str, path: &str, header: &str, body: &str| {
        http.ask(method, path, &format!("{header}\r\n"), body)
    };
    let bearer = format!("Authorization: Bearer {token}");
    let put = |header: &str, space: &str| {
        ask("POST", &format!("/v1/spaces/{space}/put"), header, "{\"tuple\": [\"public\", 1]}")
    };
    assert_eq!(put(&bearer, "web").json(), json!({ "put": 1 }));
    for header in ["Accept: */*", "Authorization: Bearer tupelo_ci_00", "Authorization: Basic eDp5"]
    {
        assert_eq!(put(header, "web").refusal(401).0, "TUP-006", "{header}");
    }
    assert_eq!(put(&bearer, "payroll").refusal(403).0, "TUP-006");
    ask("POST", "/v1/spaces/web/put", &bearer, "{\"tuple\": [\"secret\", 2]}");
    let count = ask("POST", "/v1/spaces/web/count", &bearer, "{\"template\": \"...\"}");
    assert_eq!(count.json(), json!({ "count": 1 }));
    assert_eq!(ask("DELETE", "/v1/spaces/web", &bearer, "").refusal(403).0, "TUP-006");
    assert_eq!(ask("PUT", "/v1/spaces/web", &bearer, "").refusal(403).0, "TUP-006");
    assert!(!ask("GET", "/metrics", &bearer, "").text.contains("web"));
    assert_eq!(ask("GET", "/v1/spaces", &bearer, "").json(), json!({ "spaces": ["web"] }));
    assert_eq!(http.ask("GET", "/livez", "", "").status, 200);
    assert_eq!(http.ask("GET", "/metrics", "", "").status, 401);
}

#[test]
fn figures_and_health_are_told() {
    let http = Http::new();
    http.verb("put", &json!({ "tuples": [["job", 1], ["job", 2]] }));
    http.verb("take", &json!({ "template": jobs() }));
    let page = http.ask("GET", "/metrics", "", "").text;
    let space = &http.served.space;
    for line in [
        format!("tupelo_tuples{{space=\"{space}\"}} 1\n"),
        format!("tupelo_shape_puts_total{{space=\"{space}\",shape=\"(str, int)\"}} 2\n"),
        format!("tupelo_shape_takes_total{{space=\"{space}\",shape=\"(str, int)\"}} 1\n"),
        format!("tupelo_shape_oldest_seconds{{space=\"{space}\",shape=\"(str, int)\"}} 0\n"),
        format!("tupelo_field_tuples{{space=\"{space}\",shape=\"(str, int)\",field=\"job\"}} 1\n"),
        format!("tupelo_field_tuples{{space=\"{space}\",shape=\"(str, int)\"}} 0\n"),
        "# TYPE tupelo_tuples gauge\n".to_owned(),
    ] {
        assert!(page.contains(&line), "{line} is not in\n{page}");
    }
    // The second look knows that the tuple was there at the first one.
    let page = http.ask("GET", "/metrics", "", "").text;
    let labels = format!("{{space=\"{space}\",shape=\"(str, int)\",field=\"job\"}} ");
    let name = "tupelo_field_oldest_seconds";
    let oldest = page.lines().find_map(|line| line.strip_prefix(&format!("{name}{labels}")));
    assert!(oldest.unwrap().parse::<f64>().unwrap() > 0.0, "{page}");
    for path in ["/livez", "/readyz"] {
        let answer = http.ask("GET", path, "", "");
        assert_eq!((answer.status, answer.text.as_str()), (200, "ok\n"));
    }
}

#[test]
fn the_description_has_every_path() {
    let http = Http::new();
    let described = http.ask("GET", "/openapi.json", "", "").json();
    let mut paths: Vec<_> = described["paths"].as_object().unwrap().keys().cloned().collect();
    paths.sort_unstable();
    let verbs = ["put", "take", "read", "take_all", "read_all", "swap", "count"];
    let more = ["claim", "begin", "events", "scan"];
    let inside = ["put", "take", "read", "take_all", "read_all", "count", "commit", "abort"];
    let inside = inside.map(|act| format!("/v1/transactions/{{transaction}}/{act}"));
    let ends = ["done", "fail", "renew"].map(|end| format!("/v1/claims/{{claim}}/{end}"));
    let verbs = verbs.iter().chain(&more).map(|verb| format!("/v1/spaces/{{space}}/{verb}"));
    let mut expected: Vec<_> = verbs.chain(ends).chain(inside).collect();
    let others =
        ["/livez", "/readyz", "/metrics", "/openapi.json", "/v1/spaces", "/v1/spaces/{space}"];
    expected.extend(others.map(str::to_owned));
    expected.sort_unstable();
    assert_eq!(paths, expected);
}
