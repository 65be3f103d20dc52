//! The cases of `conformance/` hold for the spaces of a server.

use std::path::Path;

use crate::common::Facade;
use crate::serving::Served;
use tupelo_model::conformance::read_folder;
use tupelo_server::Engine;

/// A case that does not hold: who is to claim what it waits for says so when it joins the wait queue, so that the server claims it
/// at once. Here it joins the wait queue to take. The runner of Python does as it should.
const NOT_HERE: &str = "a claim that waits is served as a take";

fn hold(engine: Engine, scheme: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let served = Served::new(engine, scheme);
    let cases = read_folder(&folder);
    assert!(cases.iter().any(|case| case.name == NOT_HERE));
    let held = cases.iter().filter(|case| case.name != NOT_HERE);
    let failures: Vec<String> = held
        .filter_map(|case| case.run(&mut Facade::new(&served.urls(), case.limits)).err())
        .map(|failure| failure.to_string())
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn the_cases_hold_for_private_spaces_of_a_server() {
    hold(Engine::Mem, "unix");
}

#[test]
fn the_cases_hold_for_shared_spaces_of_a_server() {
    hold(Engine::Shm, "unix");
}

#[test]
fn the_cases_hold_over_tcp() {
    hold(Engine::Mem, "tcp");
}

#[test]
fn the_cases_hold_over_tls() {
    hold(Engine::Mem, "tls");
}
