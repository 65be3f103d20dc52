//! HTTP: claims, which last from one request to the next; events and lines, which come as long as there are some.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use crate::http::{Http, jobs};
use crate::serving::settings;
use serde_json::{Value as Json, json};
use tupelo_server::rights::add;
use tupelo_server::{Engine, Settings};

/// What becomes of a claim: what the end of it is answered.
fn end(http: &Http, claim: &Json, end: &str, body: &Json) -> crate::http::Answer {
    let path = format!("/v1/claims/{}/{end}", claim["claim"].as_str().unwrap());
    http.ask("POST", &path, "", &body.to_string())
}

fn claim(http: &Http, more: &Json) -> Json {
    let mut body = json!({ "template": jobs(), "timeout_s": 60 });
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    http.verb("claim", &body)
}

#[test]
fn what_is_put_with_the_end_of_a_claim_appears_with_it_k2_k4() {
    let http = Http::new();
    http.verb("put", &json!({ "tuple": ["job", 1] }));
    let held = claim(&http, &json!({}));
    assert_eq!((&held["tuple"], &held["attempt"]), (&json!(["job", 1]), &json!(1)));
    assert!(held["fence"].as_u64().unwrap() > 0);
    assert_eq!(http.verb("count", &json!({ "template": jobs() })), json!({ "count": 0 }));
    assert_eq!(end(&http, &held, "renew", &json!({ "ttl_s": 60 })).json(), json!({ "renewed": 1 }));
    let done = end(&http, &held, "done", &json!({ "tuples": [["done", 1], ["done", 2]] }));
    assert_eq!(done.json(), json!({ "done": 1 }));
    let results = json!({ "template": ["done", { "$formal": ":int" }] });
    assert_eq!(http.verb("count", &results), json!({ "count": 2 }));
    // It is over.
    for how in ["done", "fail", "renew"] {
        assert_eq!(end(&http, &held, how, &json!({})).refusal(410).0, "TUP-007", "{how}");
    }
}

#[test]
fn a_claim_that_fails_is_back_and_one_more_attempt_k2() {
    let http = Http::new();
    http.verb("put", &json!({ "tuple": ["job", 1] }));
    let held = claim(&http, &json!({}));
    let failed = end(&http, &held, "fail", &json!({ "reason": "no paper" }));
    assert_eq!(failed.json(), json!({ "failed": 1 }));
    let again = claim(&http, &json!({}));
    assert_eq!(again["attempt"], json!(2));
    assert!(again["fence"].as_u64() > held["fence"].as_u64());
    // What makes no sense changes nothing.
    for (how, body) in [
        ("done", json!({ "tuple": [{ "$formal": ":int" }] })),
        ("done", json!({ "lease_s": 1 })),
        ("fail", json!({ "reason": 7 })),
        ("renew", json!({ "ttl_s": 0 })),
        ("renew", json!({ "ttl_s": 86_400.000_000_000_01 })),
    ] {
        assert_eq!(end(&http, &again, how, &body).status, 400, "{how} {body}");
        // Of no claim at all it makes no sense either.
        let nobody = json!({ "claim": "0".repeat(32) });
        assert_eq!(end(&http, &nobody, how, &body).status, 400, "{how} {body}");
        assert_eq!(end(&http, &nobody, how, &json!({})).refusal(410).0, "TUP-007", "{how}");
    }
    assert_eq!(end(&http, &again, "done", &json!({})).json(), json!({ "done": 1 }));
}

#[test]
fn a_claim_that_nobody_renews_is_back_when_its_time_is_over_k2() {
    let http = Http::new();
    http.verb("put", &json!({ "tuple": ["job", 1] }));
    let held = claim(&http, &json!({ "ttl_s": 0.05 }));
    let again = claim(&http, &json!({}));
    assert_eq!(again["attempt"], json!(2));
    assert_eq!(end(&http, &held, "done", &json!({})).refusal(410).0, "TUP-007");
    let none = http.verb("claim", &json!({ "template": jobs() }));
    assert_eq!(none, json!({ "tuple": null }));
}

#[test]
fn a_claim_is_its_own_clients_alone() {
    let file = std::env::temp_dir().join(format!("tupelo-http-kept-{}", std::process::id()));
    let rules = ["* : take, put".parse().unwrap()];
    let [one, other] = ["one", "other"].map(|name| add(&file, name, &rules).unwrap());
    let http = Http::with(Settings { tokens: Some(file.clone()), ..settings(Engine::Mem) });
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let ask = |token: &str, path: &str, body: &Json| {
        http.ask("POST", path, &bearer(token), &body.to_string())
    };
    ask(&one, &http.path("put"), &json!({ "tuple": ["job", 1] }));
    let held = ask(&one, &http.path("claim"), &json!({ "template": jobs() })).json();
    let path = format!("/v1/claims/{}/done", held["claim"].as_str().unwrap());
    assert_eq!(ask(&other, &path, &json!({})).refusal(410).0, "TUP-007");
    assert_eq!(ask(&one, &path, &json!({})).json(), json!({ "done": 1 }));
    std::fs::remove_file(file).unwrap();
}

/// The lines of an answer that goes on, behind its head.
fn lines(stream: TcpStream) -> impl Iterator<Item = String> {
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    lines.skip_while(|line| !line.is_empty()).skip(1)
}

/// The next event: its number, what happened, and what is told of it.
fn event(lines: &mut impl Iterator<Item = String>) -> (String, String, Json) {
    let mut field = |name: &str| {
        let line = lines.find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].trim().to_owned()
    };
    let (id, kind, data) = (field("id:"), field("event:"), field("data:"));
    (id, kind, serde_json::from_str(&data).unwrap())
}

#[test]
fn a_client_is_told_each_event_once_and_in_order_n1() {
    let http = Http::new();
    http.verb("put", &json!({ "tuple": ["job", 0] }));
    let path = http.path("events?template=job,%20:int&on=put,take");
    let mut told = lines(http.send("GET", &path, "", ""));
    assert!(told.any(|line| line == ": listening"));
    http.verb("put", &json!({ "tuple": ["job", 1] }));
    http.verb("put", &json!({ "tuple": ["other", 1] }));
    http.verb("take", &json!({ "template": ["job", 1] }));
    let data = json!({ "tuple": ["job", 1], "missed": 0 });
    assert_eq!(event(&mut told), ("1".into(), "put".into(), data.clone()));
    assert_eq!(event(&mut told), ("2".into(), "take".into(), data));
}

#[test]
fn a_query_that_makes_no_sense_is_refused_with_what_to_type() {
    let http = Http::new();
    for (path, status, says) in [
        ("events", 400, "?template="),
        ("events?template=job&on=puts", 400, "on=put,take"),
        ("events?template=job&buffer=many", 400, "from 1 on"),
        ("events?template=job&buffer=0", 400, ""),
        ("events?template=%zz", 400, "?template="),
        ("events?template=(((", 400, ""),
        ("scan", 400, "?template="),
        ("scan?template=job&on=put", 400, "where"),
    ] {
        let (_, text) = http.ask("GET", &http.path(path), "", "").refusal(status);
        assert!(text.contains(says), "{path}: {text}");
    }
    assert_eq!(http.ask("POST", &http.path("events"), "", "{}").status, 405);
    assert_eq!(http.ask("GET", &http.path("claim"), "", "").status, 405);
}

#[test]
fn many_tuples_come_and_go_as_lines_o5_o6() {
    let http = Http::new();
    let put = |lines: &str| http.post_lines(&http.path("put"), lines);
    assert_eq!(put("[\"job\", 1]\n\n{\"tuple\": [\"job\", 2]}\n").json(), json!({ "put": 2 }));
    let many: Vec<_> = (3..=600).map(|number| json!(["job", number]).to_string()).collect();
    assert_eq!(put(&many.join("\n")).json(), json!({ "put": 598 }));
    let (_, text) = put("[\"job\", 1]\n[\"job\", {\"$formal\": \":int\"}]\n").refusal(400);
    assert!(text.contains("line 2"), "{text}");
    let scanned = http.ask("GET", &http.path("scan?template=job,+:int"), "", "");
    let numbers = |text: &str| -> Vec<i64> {
        text.lines()
            .filter_map(|line| serde_json::from_str::<Json>(line).ok())
            .filter_map(|line| line["tuple"][1].as_i64())
            .collect()
    };
    assert_eq!(numbers(&scanned.text), (1..=600).collect::<Vec<_>>());
    let body = json!({ "template": jobs(), "at_most": 3 }).to_string();
    let accept = "Accept: application/x-ndjson\r\n";
    let taken = http.ask("POST", &http.path("take_all"), accept, &body);
    assert_eq!(numbers(&taken.text), [1, 2, 3]);
    assert_eq!(http.verb("count", &json!({ "template": jobs() })), json!({ "count": 597 }));
    let none = json!({ "template": ["none"] }).to_string();
    assert_eq!(http.ask("POST", &http.path("read_all"), accept, &none).text, "");
}

/// Begins a transaction; returns its path.
fn begin(http: &Http, more: &Json) -> String {
    let begun = http.verb("begin", more);
    format!("/v1/transactions/{}", begun["transaction"].as_str().unwrap())
}

/// Does something in a transaction, or ends it.
fn inside(http: &Http, path: &str, act: &str, body: &Json) -> crate::http::Answer {
    http.ask("POST", &format!("{path}/{act}"), "", &body.to_string())
}

#[test]
fn what_is_done_in_a_transaction_takes_effect_at_its_commit_x1_x2() {
    let http = Http::new();
    http.verb("put", &json!({ "tuples": [["job", 1], ["job", 2]] }));
    let path = begin(&http, &json!({}));
    let taken = inside(&http, &path, "take", &json!({ "template": jobs() })).json();
    assert_eq!(taken, json!({ "tuple": ["job", 1] }));
    let put = inside(&http, &path, "put", &json!({ "tuple": ["done", 1] })).json();
    assert_eq!(put, json!({ "put": 1 }));
    let results = json!({ "template": ["done", { "$formal": ":int" }] });
    assert_eq!(http.verb("count", &results), json!({ "count": 0 }), "it is not there yet");
    // In the transaction it is.
    assert_eq!(inside(&http, &path, "count", &results).json(), json!({ "count": 1 }));
    let read = inside(&http, &path, "read", &json!({ "template": jobs() })).json();
    assert_eq!(read, json!({ "tuple": ["job", 2] }));
    let nothing = inside(&http, &path, "take_all", &json!({ "template": ["none"] })).json();
    assert_eq!(nothing, json!({ "tuples": [] }));
    assert_eq!(inside(&http, &path, "commit", &json!({})).json(), json!({ "committed": 1 }));
    assert_eq!(http.verb("count", &results), json!({ "count": 1 }));
    assert_eq!(http.verb("count", &json!({ "template": jobs() })), json!({ "count": 1 }));
    for act in ["commit", "abort", "count"] {
        let body = if act == "count" { results.clone() } else { json!({}) };
        assert_eq!(inside(&http, &path, act, &body).refusal(410).0, "TUP-008", "{act}");
    }
}

#[test]
fn a_transaction_that_is_aborted_or_takes_too_long_has_had_no_effect_x2_x6() {
    let http = Http::new();
    http.verb("put", &json!({ "tuple": ["job", 1] }));
    let path = begin(&http, &json!({}));
    let taken = inside(&http, &path, "take", &json!({ "template": jobs() })).json();
    assert_eq!(taken, json!({ "tuple": ["job", 1] }));
    assert_eq!(inside(&http, &path, "abort", &json!({})).json(), json!({ "aborted": 1 }));
    let path = begin(&http, &json!({ "ttl_s": 0.2 }));
    inside(&http, &path, "take_all", &json!({ "template": jobs() }));
    // It is back as soon as the time is over.
    let taken = http.verb("take", &json!({ "template": jobs(), "timeout_s": 60 }));
    assert_eq!(taken, json!({ "tuple": ["job", 1] }));
    assert_eq!(inside(&http, &path, "commit", &json!({})).refusal(410).0, "TUP-008");
}

#[test]
fn a_put_unless_something_matches_sees_what_its_transaction_has_put_o8_x2() {
    let http = Http::new();
    let path = begin(&http, &json!({}));
    let unless = json!({ "tuple": ["job", 1], "unless": jobs() });
    assert_eq!(inside(&http, &path, "put", &unless).json(), json!({ "put": 1 }));
    assert_eq!(inside(&http, &path, "put", &unless).json(), json!({ "put": 0 }));
    assert_eq!(inside(&http, &path, "commit", &json!({})).json(), json!({ "committed": 1 }));
    assert_eq!(http.verb("count", &json!({ "template": jobs() })), json!({ "count": 1 }));
}

#[test]
fn what_makes_no_sense_in_a_transaction_is_refused_and_it_goes_on() {
    let http = Http::new();
    let path = begin(&http, &json!({}));
    let waits = inside(&http, &path, "take", &json!({ "template": jobs(), "timeout_s": 1 }));
    assert!(waits.refusal(400).1.contains("does not wait"));
    assert_eq!(inside(&http, &path, "swap", &json!({})).status, 404);
    assert_eq!(http.ask("GET", &format!("{path}/commit"), "", "").status, 405);
    assert_eq!(inside(&http, &path, "commit", &json!({ "now": 1 })).status, 400);
    let nobody = format!("/v1/transactions/{}", "0".repeat(32));
    assert_eq!(inside(&http, &nobody, "commit", &json!({})).refusal(410).0, "TUP-008");
    // A claim is none.
    http.verb("put", &json!({ "tuple": ["job", 1] }));
    let held = claim(&http, &json!({}));
    let as_transaction = format!("/v1/transactions/{}", held["claim"].as_str().unwrap());
    assert_eq!(inside(&http, &as_transaction, "abort", &json!({})).status, 410);
    assert_eq!(end(&http, &held, "done", &json!({})).json(), json!({ "done": 1 }));
    inside(&http, &path, "put", &json!({ "tuple": ["job", 2] }));
    assert_eq!(inside(&http, &path, "commit", &json!({})).json(), json!({ "committed": 1 }));
    assert_eq!(http.verb("count", &json!({ "template": jobs() })), json!({ "count": 1 }));
}

#[test]
fn what_makes_no_sense_is_refused_before_it_is_looked_for() {
    let http = Http::new();
    let nobody = format!("/v1/transactions/{}", "0".repeat(32));
    for (act, body) in
        [("commit", json!({ "now": 1 })), ("take", json!({})), ("put", json!({ "tuple": 7 }))]
    {
        assert_eq!(inside(&http, &nobody, act, &body).status, 400, "{act} {body}");
    }
    for no_number in ["%C2%84", "0", &"F".repeat(32)] {
        for path in ["transactions", "claims"].map(|kind| format!("/v1/{kind}/{no_number}")) {
            let end = if path.contains("claims") { "done" } else { "abort" };
            let (_, told) = inside(&http, &path, end, &json!({})).refusal(400);
            assert!(told.contains("32 digits"), "{path}: {told}");
        }
    }
}
