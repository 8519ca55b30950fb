//! Synchronized reads through the pipe of host agents, over loopback: results, refusals, cancellation.

mod common;

use common::Agent;
use serde_json::{Value, json};

fn serve(agent: &mut Agent) -> Value {
    let params = json!({"token": "ab".repeat(16), "address": "127.0.0.1", "nodelay": true});
    agent.call("rr.serve", params)["result"]["port"].clone()
}

fn order(ports: &[Value], changes: &Value) -> Value {
    let servers: Vec<Value> = ports
        .iter()
        .enumerate()
        .map(|(place, port)| json!({"address": "127.0.0.1", "port": port, "response_bytes": 1000 + place}))
        .collect();
    let mut order = json!({"servers": servers, "token": "ab".repeat(16), "request_bytes": 100, "rounds": 4,
        "nodelay": true, "silence_seconds": 60.0});
    for (key, value) in changes.as_object().expect("an object") {
        order[key] = value.clone();
    }
    order
}

#[test]
fn all_servers_answer_every_round_and_both_ends_agree() {
    let (mut client, mut one, mut other) = (Agent::start(), Agent::start(), Agent::start());
    let ports = [serve(&mut one), serve(&mut other)];
    let ran = client.call("incast.run", order(&ports, &json!({})))["result"].clone();
    assert_eq!(ran["bytes"], 4 * (1000 + 1001));
    assert_eq!(ran["nodelay"], json!([true]));
    for (agent, stripe) in [(&mut one, 1000), (&mut other, 1001)] {
        let closed = agent.call("rr.close", json!({}))["result"].clone();
        assert_eq!((&closed["requests"], &closed["bytes"]), (&json!(4), &json!(4 * (100 + stripe))));
        assert_eq!(closed["congestion_control"], ran["congestion_control"]);
        assert!(closed["retransmits"].is_u64() && ran["retransmits"].is_u64());
        assert!(closed["mean_segment_payload_bytes"].as_f64().expect("it sent") > 4.0);
    }
    for name in ["rounds", "responses"] {
        let spool = json!({"spool": ran[name], "offset_bytes": 0, "length_bytes": 6});
        let read = client.call("spool.read", spool);
        assert_eq!(read["result"]["data"], "QVJST1cx", "an Arrow file begins with ARROW1");
    }
    [client, one, other].into_iter().for_each(Agent::end);
}

#[test]
fn what_cannot_be_done_is_refused_with_its_code() {
    let mut agent = Agent::start();
    let port = serve(&mut agent);
    for (changes, code) in [
        (json!({"token": "cd".repeat(16)}), -32007),
        (json!({"token": "ab"}), -32602),
        (json!({"servers": []}), -32602),
        (
            json!({"servers": vec![json!({"address": "127.0.0.1", "port": 1, "response_bytes": 1}); 513]}),
            -32602,
        ),
        (json!({"servers": [{"address": "127.0.0.1", "port": port, "response_bytes": 0}]}), -32602),
        (
            json!({"servers": [{"address": "127.0.0.1", "port": port, "response_bytes": (16 << 20) + 1}]}),
            -32602,
        ),
        (json!({"servers": [{"address": "127.0.0.1", "port": port}]}), -32602),
        (json!({"request_bytes": 0}), -32602),
        (json!({"rounds": 0}), -32602),
        (json!({"rounds": 20_000_001}), -32003),
        (json!({"silence_seconds": -1}), -32602),
        (json!({"speed": 1}), -32602),
    ] {
        let answer = agent.call("incast.run", order(std::slice::from_ref(&port), &changes));
        assert_eq!(answer["error"]["code"], code, "{changes}: {answer}");
    }
    assert_eq!(agent.call("rr.close", json!({}))["result"]["refused"], 1);
    agent.end();
}

#[test]
fn a_server_that_does_not_answer_is_an_error_that_names_it() {
    let mut agent = Agent::start();
    #[allow(clippy::disallowed_methods, reason = "a server that never answers")]
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let changes = json!({"silence_seconds": 0.1});
    let error = agent.call("incast.run", order(&[json!(address.port())], &changes))["error"].clone();
    assert_eq!((&error["code"], &error["data"]["errno"]), (&json!(-32004), &json!(110)));
    let message = error["message"].as_str().expect("a line");
    assert!(message.starts_with(&format!("server {address}: no connection after 0.1 s")), "{message}");
    agent.end();
}

#[test]
fn a_run_can_be_cancelled() {
    let (mut client, mut server) = (Agent::start(), Agent::start());
    let port = serve(&mut server);
    let run = client.send("incast.run", order(&[port], &json!({"rounds": 10_000_000})));
    let cancel = client.send("cancel", json!({"id": run}));
    let (first, second) = (client.answer(), client.answer());
    let (cancelled, ended) = if first["id"] == cancel { (first, second) } else { (second, first) };
    assert_eq!(cancelled["result"]["cancelled"], true);
    assert_eq!((&ended["id"], &ended["error"]["code"]), (&json!(run), &json!(-32005)));
    [client, server].into_iter().for_each(Agent::end);
}
