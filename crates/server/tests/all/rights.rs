//! Tokens and rules: what a client may do, and that it learns nothing of what it may not see.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::serving::{Served, settings};
use serde_json::{Value as Json, json};
use tupelo::{
    ConnectOptions, Error, EventKind, Kind, Order, Space, SubscribeTerms, TupleView, Want, fields,
    template,
};
use tupelo_server::rights::{Rule, add, list, remove};
use tupelo_server::{Endpoint, Engine, Host, Limits, Settings};

/// A server that asks for tokens, and their files.
struct Guarded {
    served: Served,
    folder: PathBuf,
}

impl Guarded {
    /// With a token of each name, which has these rules.
    fn new(tokens: &[(&str, &[&str])]) -> Self {
        Self::limited(tokens, Limits::default())
    }

    /// The same, with these limits for each.
    fn limited(tokens: &[(&str, &[&str])], limits: Limits) -> Self {
        let host = Host { name: "127.0.0.1".into(), port: 0 };
        let settings = settings(Engine::Mem);
        let Endpoint::Unix(socket) = &settings.endpoints[0] else { panic!() };
        let folder = socket.with_extension("tokens");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("tokens.toml");
        for (name, rules) in tokens {
            let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
            let token = add(&file, name, &rules).unwrap();
            fs::write(folder.join(name), token).unwrap();
        }
        let endpoints = vec![Endpoint::Tcp(host)];
        let (tokens, audit) = (Some(file), Some(folder.join("audit.jsonl")));
        let served = Served::with(Settings { endpoints, tokens, audit, limits, ..settings });
        Self { served, folder }
    }

    /// What the audit log says of each line: the event, the token, the space and the rule.
    fn logged(&self) -> Vec<[Json; 4]> {
        let text = fs::read_to_string(self.folder.join("audit.jsonl")).unwrap();
        let line = |line: &str| {
            let line: Json = serde_json::from_str(line).unwrap();
            ["event", "token", "space", "rule"].map(|key| line[key].clone())
        };
        text.lines().map(line).collect()
    }

    fn url(&self, space: &str, name: &str) -> String {
        let token = self.folder.join(name);
        format!("{}?token_file={}", self.served.endpoint.url(space), token.display())
    }

    fn connect(&self, space: &str, name: &str) -> Space {
        Space::connect(&self.url(space, name), &ConnectOptions::default()).unwrap()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // The system cleans its folder of temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Why there is no connection.
fn refused(url: &str) -> Error {
    let error = Space::connect(url, &ConnectOptions::default()).unwrap_err();
    assert_eq!(error.code(), "TUP-006", "{error}");
    error
}

/// A call of a verb.
type Verb<'v> = &'v dyn Fn(&Space) -> Result<(), Error>;

fn text(tuple: TupleView<'_>) -> Result<String, Error> {
    Ok(tuple.to_tuple()?.to_string())
}

#[test]
fn a_client_needs_a_token_that_the_server_knows() {
    let guarded = Guarded::new(&[("ci", &["jobs : put, take"])]);
    let url = guarded.served.endpoint.url("jobs");
    let error = refused(&url);
    assert!(error.to_string().contains("asks for a token"), "{error}");
    assert!(error.hint().unwrap().contains("TUPELO_TOKEN"), "{error}");
    let right = fs::read_to_string(guarded.folder.join("ci")).unwrap();
    let (beginning, end) = right.split_at(right.len() - 1);
    let other_end = if end == "0" { "1" } else { "0" };
    for wrong in ["", "hello", "tupelo_ci_", "tupelo_none_00", &format!("{beginning}{other_end}")] {
        fs::write(guarded.folder.join("wrong"), wrong).unwrap();
        let error = refused(&guarded.url("jobs", "wrong"));
        assert!(error.to_string().contains("does not know the token"), "{wrong}: {error}");
    }
    let space = guarded.connect("jobs", "ci");
    space.put(&fields!["job", 1]).unwrap();
    // The space is another one's, if anybody's.
    let error = refused(&guarded.url("payroll", "ci"));
    assert!(error.to_string().contains("may not use in payroll"), "{error}");
    assert!(error.hint().unwrap().contains("jobs : put, take"), "{error}");
}

#[test]
fn each_verb_needs_its_right() {
    let guarded = Guarded::new(&[
        ("putter", &["* : put"]),
        ("taker", &["* : take"]),
        ("reader", &["* : read"]),
        ("admin", &["* : admin"]),
    ]);
    let spaces = ["putter", "taker", "reader"].map(|name| guarded.connect("verbs", name));
    let jobs = [template!["job", Kind::Int]];
    let verbs: [(&str, Verb<'_>); 8] = [
        ("putter", &|space| space.put(&fields!["job", 1]).map(drop)),
        ("taker", &|space| space.try_take(&jobs, Order::Fifo, text).map(drop)),
        ("taker", &|space| space.take_all(&jobs, None, text).map(drop)),
        ("taker", &|space| space.take(&jobs, Order::Fifo, Some(Duration::ZERO), text).map(drop)),
        ("reader", &|space| space.try_read(&jobs, Order::Fifo, text).map(drop)),
        ("reader", &|space| space.read_all(&jobs, None, text).map(drop)),
        ("reader", &|space| space.count(&jobs).map(drop)),
        ("reader", &|space| space.present(&jobs).map(drop)),
    ];
    for (number, (name, verb)) in verbs.into_iter().enumerate() {
        for (space, holder) in spaces.iter().zip(["putter", "taker", "reader"]) {
            let refused = verb(space).is_err_and(|error| error.code() == "TUP-006");
            assert_eq!(refused, holder != name, "verb {number} as {holder}");
        }
    }
    // A swap is a take and a put; what is put if absent asks whether something is there.
    for space in &spaces {
        let swapped = space.try_swap(&jobs, &fields!["job", 2], text);
        assert_eq!(swapped.unwrap_err().code(), "TUP-006");
        let put = space.put_if_absent(&fields!["job", 2], &jobs);
        assert_eq!(put.unwrap_err().code(), "TUP-006");
    }
    let remove = |name| tupelo::remove(&guarded.url("verbs", name));
    assert_eq!(remove("putter").unwrap_err().code(), "TUP-006");
    let fresh = ConnectOptions { fresh: true, ..ConnectOptions::default() };
    let anew = |name| Space::connect(&guarded.url("verbs", name), &fresh).map(drop);
    assert_eq!(anew("putter").unwrap_err().code(), "TUP-006");
    anew("admin").unwrap();
    remove("admin").unwrap();
}

/// Whatever a client asks with rules for some tuples, it is answered as if there were no others.
#[test]
fn what_a_client_may_not_see_changes_no_answer() {
    let rules: &[&str] = &[
        "jobs* : take, read (\"public\", _)",
        "jobs* : put (\"public\", :int)",
        "jobs* : put (\"mine\", _)",
    ];
    let guarded = Guarded::new(&[("ci", rules), ("admin", &["* : put, take, read, admin"])]);
    let secrets = guarded.connect("jobs-with", "admin");
    secrets.put(&fields!["secret", 1]).unwrap();
    secrets.put(&fields!["secret", "two"]).unwrap();
    secrets.put(&fields![3]).unwrap();
    guarded.connect("jobs-without", "admin");
    let (with, without) =
        (guarded.connect("jobs-with", "ci"), guarded.connect("jobs-without", "ci"));

    let everything = [template![..]];
    let pairs = [template![Kind::Str, Kind::Int]];
    let secret = [template!["secret", Kind::Int]];
    for asked in [&everything, &pairs, &secret] {
        let answers = |space: &Space| -> Vec<String> {
            let now = Some(Duration::ZERO);
            let to = fields!["mine", 1];
            vec![
                format!("{:?}", space.count(asked)),
                format!("{:?}", space.try_read(asked, Order::Fifo, text)),
                format!("{:?}", space.try_read(asked, Order::Lifo, text)),
                format!("{:?}", space.read_all(asked, None, text)),
                format!("{:?}", space.present(asked)),
                format!("{:?}", space.read(asked, Order::Fifo, now, text)),
                format!("{:?}", space.put_if_absent(&to, asked)),
                format!("{:?}", space.try_swap(asked, &to, text)),
                format!("{:?}", space.try_take_many(asked, 1, 2, text)),
                format!("{:?}", space.take(asked, Order::Fifo, now, text)),
                format!("{:?}", space.take_all(asked, None, text)),
                format!("{:?}", space.try_take(asked, Order::Random, text)),
            ]
        };
        for put in [false, true] {
            if put {
                for space in [&with, &without] {
                    space.put(&fields!["public", 7]).unwrap();
                    space.put(&fields!["public", 8]).unwrap();
                }
            }
            let (seen, expected) = (answers(&with), answers(&without));
            for (number, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
                let expected = expected.replace("jobs-without", "jobs-with");
                assert_eq!(*seen, expected, "answer {number} to {asked:?}, put: {put}");
            }
        }
    }
    assert_eq!(secrets.count(&[template!["secret", ..]]), Ok(2));
}

#[test]
fn a_call_that_waits_is_not_woken_by_what_it_may_not_take() {
    let guarded =
        Guarded::new(&[("ci", &["waits : take (\"public\", _)"]), ("admin", &["* : put, admin"])]);
    let (admin, one) = (guarded.connect("waits", "admin"), guarded.connect("waits", "ci"));
    let waiting = std::thread::spawn(move || {
        one.take(&[template![Kind::Str, Kind::Int]], Order::Fifo, None, text)
    });
    admin.put(&fields!["secret", 1]).unwrap();
    admin.put(&fields!["public", 2]).unwrap();
    assert_eq!(waiting.join().unwrap(), Ok("(\"public\", 2)".to_owned()));
}

#[test]
fn a_file_has_no_token_but_its_hash_and_each_name_once() {
    let guarded = Guarded::new(&[("ci", &["jobs : take"]), ("other", &["* : read"])]);
    let file = guarded.folder.join("tokens.toml");
    let written = fs::read_to_string(&file).unwrap();
    let token = fs::read_to_string(guarded.folder.join("ci")).unwrap();
    let secret = token.rsplit('_').next().unwrap();
    assert!(secret.len() == 48 && !written.contains(secret) && written.contains("$argon2id$"));
    let names = |file| list(file).unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(&file), ["ci", "other"]);
    for (name, says) in
        [("ci", "already"), ("CI", "is no name"), ("", "is no name"), ("a_b", "no name")]
    {
        let error = add(&file, name, &[]).unwrap_err().to_string();
        assert!(error.contains(says), "{name}: {error}");
    }
    remove(&file, "ci").unwrap();
    assert_eq!(names(&file), ["other"]);
    assert!(remove(&file, "ci").unwrap_err().to_string().contains("no token \"ci\""));
    fs::write(&file, "[[token]]\nname = \"x\"\nhash = \"plain\"\nrules = []\n").unwrap();
    let settings = Settings { tokens: Some(file.clone()), ..settings(Engine::Mem) };
    let error = tupelo_server::serve(&settings, |_| panic!("it serves")).unwrap_err().to_string();
    assert!(error.contains("the hash of \"x\""), "{error}");
    fs::write(&file, "[[tokens]]\n").unwrap();
    assert!(list(&file).unwrap_err().to_string().contains("tokens"));
}

#[test]
fn what_is_denied_and_what_is_done_to_spaces_is_logged_with_its_rule() {
    let guarded = Guarded::new(&[("ci", &["log* : take"]), ("boss", &["log* : admin, read"])]);
    let name = format!("log-{}", guarded.served.space);
    refused(&guarded.served.endpoint.url(&name));
    let by_boss = guarded.connect(&name, "boss");
    let by_ci = guarded.connect(&name, "ci");
    assert_eq!(by_ci.put(&fields!["job", 1]).unwrap_err().code(), "TUP-006");
    // Neither what is allowed nor what is refused for another reason.
    assert_eq!(by_boss.count(&[template!["job", Kind::Int]]), Ok(0));
    assert_eq!(by_ci.try_take(&[template!["job", Kind::Int]], Order::Fifo, text), Ok(None));
    let fresh = ConnectOptions { fresh: true, ..ConnectOptions::default() };
    Space::connect(&guarded.url(&name, "boss"), &fresh).unwrap();
    assert_eq!(tupelo::remove(&guarded.url(&name, "ci")).unwrap_err().code(), "TUP-006");
    tupelo::remove(&guarded.url(&name, "boss")).unwrap();
    let (null, rule) = (Json::Null, json!("log* : admin, read"));
    let done = |event: &str| [json!(event), json!("boss"), json!(name), rule.clone()];
    let denied = |token: Json| [json!("denied"), token, null.clone(), null.clone()];
    assert_eq!(
        guarded.logged(),
        [
            denied(null.clone()),
            done("made"),
            denied(json!("ci")),
            done("made anew"),
            denied(json!("ci")),
            done("removed"),
        ]
    );
}

#[test]
fn a_list_of_spaces_has_those_of_the_token_and_figures_for_who_may_see_them() {
    let guarded = Guarded::new(&[
        ("all", &["* : admin, put"]),
        ("one", &["listed-1* : take"]),
        ("none", &["other : take"]),
    ]);
    let [first, second] = [1, 2].map(|number| format!("listed-{number}-{}", guarded.served.space));
    for name in [&first, &second] {
        guarded.connect(name, "all").put(&fields!["job", 1]).unwrap();
    }
    let listed = |token: &str| {
        let url = guarded.url("", token);
        let spaces = tupelo::spaces_of(&url).unwrap().unwrap();
        // A connection of its own to each space, by its URL.
        let opens = |space: &tupelo::ServerSpace| {
            Space::connect(&space.url, &ConnectOptions::default()).is_ok()
        };
        assert!(spaces.iter().all(opens), "{spaces:?}");
        spaces
    };
    let all = listed("all");
    let names: Vec<_> = all.iter().map(|space| space.url.clone()).collect();
    assert_eq!(names, [&first, &second].map(|name| guarded.url(name, "all")));
    assert!(all.iter().all(|space| space.tuples == Some(1) && space.bytes > Some(0)), "{all:?}");
    let one = listed("one");
    assert_eq!(one.len(), 1, "{one:?}");
    assert_eq!((one[0].tuples, one[0].bytes), (None, None));
    assert_eq!(one[0].url, guarded.url(&first, "one"));
    assert_eq!(listed("none"), []);
    assert_eq!(tupelo::spaces_of(&guarded.url(&first, "all")), Ok(None), "it names a space");
}

#[test]
fn a_token_has_and_does_no_more_at_a_time_than_its_limits_b2() {
    let limits =
        Limits { waits: Some(1), subscriptions: Some(1), tuples: Some(2), ..Limits::default() };
    let guarded = Guarded::limited(&[("ci", &["* : put, take, read"])], limits);
    let name = format!("limited-{}", guarded.served.space);
    let space = guarded.connect(&name, "ci");
    let jobs = [template!["job", Kind::Int]];
    let first = space.waiter(&jobs, Want::Take).unwrap();
    let second = space.waiter(&jobs, Want::Take).unwrap();
    let error = second.wait(Some(Duration::from_secs(60))).unwrap_err();
    assert_eq!(error.code(), "TUP-017", "{error}");
    assert!(error.to_string().contains("\"ci\" has 1 waits open"), "{error}");
    drop((first, second));
    let terms = SubscribeTerms::new(vec![EventKind::Put], 16);
    let subscription = space.subscribe(&jobs, &terms).unwrap();
    assert_eq!(space.subscribe(&jobs, &terms).unwrap_err().code(), "TUP-017");
    drop(subscription);
    space.subscribe(&jobs, &terms).unwrap();
    space.put(&fields!["job", 1]).unwrap();
    space.put(&fields!["job", 2]).unwrap();
    let error = space.put(&fields!["job", 3]).unwrap_err();
    assert!(error.to_string().contains("2 tuples") && error.code() == "TUP-017", "{error}");
    // What makes room is not refused.
    assert!(space.try_take(&jobs, Order::Fifo, text).unwrap().is_some());
    space.put(&fields!["job", 3]).unwrap();
}
