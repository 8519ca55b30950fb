//! How it is known that a program is ready: by a port, by words, by a file; and what is said of one that is not.
#![allow(clippy::disallowed_methods, reason = "a test starts the agent")]

mod common;

use common::{Agent, BINARY, is_root};
use serde_json::{Value, json};
use std::net::TcpListener;

/// How long to wait for what does come.
const LONG: f64 = 60.0;

fn spawn(agent: &mut Agent, script: &str) -> Value {
    agent.ask("process.spawn", json!({"argv": ["sh", "-c", script]}))["process"].take()
}

/// A port of this machine on which nothing listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a loopback").port()
}

/// A program of which a grandchild, in a session of its own, listens on the port; it is this same agent.
fn server(port: u16) -> String {
    let hello =
        json!({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"protocol": 1, "client": "x"}});
    let serve = json!({"jsonrpc": "2.0", "id": 2, "method": "stream.serve",
                       "params": {"token": "0".repeat(32), "address": "127.0.0.1", "sample_seconds": 0.01}});
    format!(
        "setsid sh -c '(echo \"$0\"; echo \"$1\"; sleep 1000) | {BINARY} host --ports {port}-{port}' '{hello}' '{serve}' & wait"
    )
}

#[test]
fn a_port_counts_when_the_programs_own_tree_listens() {
    if !is_root() {
        return;
    }
    let mut agent = Agent::start();
    let strangers = TcpListener::bind("127.0.0.1:0").expect("a loopback");
    let (other, own) = (strangers.local_addr().expect("an address").port(), free_port());
    let process = spawn(&mut agent, &server(own));
    let mut ready = |port: u16, within: f64| {
        agent.ask("process.ready", json!({"process": process, "port": port, "within_seconds": within}))
    };
    let found = ready(own, LONG);
    assert_eq!((&found["ready"], &found["ending"]), (&json!(true), &json!(null)), "{found}");
    assert!(found["seconds"].as_f64().is_some_and(|seconds| seconds < LONG));
    // Another's port is listened on, and does not count.
    let found = ready(other, 0.0);
    assert_eq!((&found["ready"], &found["ending"]), (&json!(false), &json!(null)), "{found}");
    let ports = agent.ask("sockets.listening", json!({}))["ports"].take();
    let ports: Vec<u16> = serde_json::from_value(ports).expect("ports");
    assert!(ports.contains(&own) && ports.contains(&other) && ports.is_sorted(), "{ports:?}");
    agent.ask("process.kill", json!({"process": process}));
    let ports = agent.ask("sockets.listening", json!({}))["ports"].take();
    assert!(!ports.as_array().expect("ports").contains(&json!(own)), "{ports}");
    agent.end();
}

#[test]
fn a_racks_host_sees_the_ports_of_its_own_network_only() {
    if !is_root() {
        return;
    }
    let outside = TcpListener::bind("127.0.0.1:0").expect("a loopback");
    let outside = outside.local_addr().expect("an address").port();
    let mut agent = Agent::start_rack();
    agent.ask("rack.bare", json!({"hosts": ["h1"]}));
    let mut relay =
        |method: &str, params| agent.ask("relay", json!({"host": "h1", "method": method, "params": params}));
    assert_eq!(relay("sockets.listening", json!({})), json!({"ports": []}));
    // There is one such port in the host and one outside: each is free in its own network.
    let process = relay("process.spawn", json!({"argv": ["sh", "-c", server(outside)]}))["process"].take();
    let asked = json!({"process": process, "port": outside, "within_seconds": LONG});
    assert_eq!(relay("process.ready", asked)["ready"], true);
    assert_eq!(relay("sockets.listening", json!({})), json!({"ports": [outside]}));
    agent.ask("rack.down", json!({}));
    agent.end();
}

#[test]
fn words_count_wherever_and_whenever_they_were_printed() {
    if !is_root() {
        return;
    }
    let mut agent = Agent::start();
    let script = "echo starting; printf 'Server Rea' >&2; printf 'dy, port 7' >&2; exec sleep 1000";
    let process = spawn(&mut agent, script);
    let mut ready = |words: &str, within: f64| {
        let asked = json!({"process": process, "words": words, "within_seconds": within});
        agent.ask("process.ready", asked)["ready"].clone()
    };
    assert_eq!(ready("^Server (Ready|ready), port \\d$", LONG), true);
    assert_eq!(ready("^starting$", LONG), true);
    assert_eq!(ready("starting.*Ready", 0.01), false);
    agent.end();
}

#[test]
fn a_file_counts_when_it_is_there() {
    if !is_root() {
        return;
    }
    let mut agent = Agent::start();
    let path = std::env::temp_dir().join(format!("framegauge-ready-{}", std::process::id()));
    let process = spawn(&mut agent, "read line; exec sleep 1000");
    let asked = json!({"process": process, "file": path, "within_seconds": 0.01});
    assert_eq!(agent.ask("process.ready", asked)["ready"], false);
    let process = spawn(&mut agent, &format!("echo > {}; exec sleep 1000", path.display()));
    let asked = json!({"process": process, "file": path, "within_seconds": LONG});
    assert_eq!(agent.ask("process.ready", asked)["ready"], true);
    std::fs::remove_file(path).expect("it is there");
    agent.end();
}

#[test]
fn a_program_that_ends_before_is_told_at_once() {
    if !is_root() {
        return;
    }
    let mut agent = Agent::start();
    let signs = [("port", json!(free_port())), ("words", json!("never")), ("file", json!("/no/such/file"))];
    for (sign, value) in signs {
        let process = spawn(&mut agent, "echo no; exit 3");
        let answer =
            agent.ask("process.ready", json!({"process": process, sign: value, "within_seconds": LONG}));
        assert_eq!(answer["ready"], false, "{sign}");
        assert_eq!(answer["ending"], json!({"exit_code": 3, "signal": null}), "{sign}");
    }
    let process = spawn(&mut agent, "echo it is ready; kill -9 $$");
    agent.ask("process.wait", json!({"process": process, "timeout_seconds": null}));
    let asked = json!({"process": process, "words": "ready", "within_seconds": LONG});
    let answer = agent.ask("process.ready", asked);
    assert_eq!((&answer["ready"], &answer["ending"]["signal"]), (&json!(true), &json!(9)));
    agent.end();
}

#[test]
fn a_wait_can_be_cancelled_and_a_wrong_one_is_refused() {
    if !is_root() {
        return;
    }
    let mut agent = Agent::start();
    let process = spawn(&mut agent, "exec sleep 1000");
    let waiting =
        agent.send("process.ready", json!({"process": process, "words": "never", "within_seconds": LONG}));
    let cancel = agent.send("cancel", json!({"id": waiting}));
    let mut answers = [agent.answer(), agent.answer()];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!(waiting), &json!(-32005)));
    assert_eq!((&answers[1]["id"], &answers[1]["result"]["cancelled"]), (&json!(cancel), &json!(true)));
    let wrong = [
        json!({"process": process, "within_seconds": 1}),
        json!({"process": process, "port": 0, "within_seconds": 1}),
        json!({"process": process, "port": 65536, "within_seconds": 1}),
        json!({"process": process, "port": 1, "words": "x", "within_seconds": 1}),
        json!({"process": process, "words": "(", "within_seconds": 1}),
        json!({"process": process, "file": "/x", "within_seconds": -1}),
        json!({"process": process, "file": "/x"}),
    ];
    for asked in wrong {
        assert_eq!(agent.refusal("process.ready", asked.clone())["code"], -32602, "{asked}");
    }
    let unknown = json!({"process": 99, "file": "/x", "within_seconds": 1});
    assert_eq!(agent.refusal("process.ready", unknown)["code"], -32006);
    agent.end();
}
