//! Datagrams through the pipe of a host agent, over loopback: results, refusals, cancellation.

mod common;

use common::Agent;
use serde_json::{Value, json};

fn serve(agent: &mut Agent) -> Value {
    let params = json!({"token": "ab".repeat(16), "address": "127.0.0.1"});
    agent.call("datagrams.serve", params)["result"]["port"].clone()
}

fn close(agent: &mut Agent, expected: &Value) -> Value {
    agent.call("datagrams.close", json!({"expected": expected, "silence_seconds": 0.5}))
}

fn order(port: &Value, changes: &Value) -> Value {
    let mut order = json!({"address": "127.0.0.1", "port": port, "token": "ab".repeat(16), "flows": 2,
        "size_bytes": 200, "rate_per_second": 100.0, "spurt_seconds": null, "pause_seconds": null,
        "duration_seconds": 0.1});
    for (key, value) in changes.as_object().expect("an object") {
        order[key] = value.clone();
    }
    order
}

#[test]
fn both_ends_agree_and_each_keeps_a_table() {
    let mut agent = Agent::start();
    let port = serve(&mut agent);
    let ran = agent.call("datagrams.run", order(&port, &json!({})))["result"].clone();
    let closed = close(&mut agent, &ran["sent"])["result"].clone();
    assert_eq!((&ran["sent"], &ran["bytes"], &ran["dropped_by_host"]), (&json!(20), &json!(4000), &json!(0)));
    assert_eq!(
        (&closed["received"], &closed["bytes"], &closed["refused"]),
        (&json!(20), &json!(4000), &json!(0))
    );
    assert_eq!(closed["clock"], ran["clock"]);
    for spool in [&ran["datagrams"], &closed["datagrams"]] {
        let asked = json!({"spool": spool, "offset_bytes": 0, "length_bytes": 6});
        let read = agent.call("spool.read", asked)["result"]["data"].clone();
        assert_eq!(read, "QVJST1cx", "an Arrow file begins with ARROW1");
    }
    agent.end();
}

#[test]
fn what_cannot_be_done_is_refused_with_its_code() {
    let mut agent = Agent::start();
    assert_eq!(close(&mut agent, &json!(0))["error"]["code"], -32006);
    let port = serve(&mut agent);
    let again = json!({"token": "ab".repeat(16), "address": "127.0.0.1"});
    assert_eq!(agent.call("datagrams.serve", again)["error"]["code"], -32006);
    for (changes, code) in [
        (json!({"token": "ab"}), -32602),
        (json!({"flows": 0}), -32602),
        (json!({"flows": 513}), -32602),
        (json!({"size_bytes": 19}), -32602),
        (json!({"size_bytes": 65_508}), -32602),
        (json!({"rate_per_second": 0}), -32602),
        (json!({"rate_per_second": 1e6, "duration_seconds": 60.0}), -32003),
        (json!({"spurt_seconds": 0.1}), -32602),
        (json!({"spurt_seconds": 0.1, "pause_seconds": 0.0}), -32602),
        (json!({"speed": 1}), -32602),
    ] {
        let answer = agent.call("datagrams.run", order(&port, &changes));
        assert_eq!(answer["error"]["code"], code, "{changes}: {answer}");
    }
    assert_eq!(close(&mut agent, &json!(0))["result"]["received"], 0);
    agent.end();
}

#[test]
fn a_run_can_be_cancelled() {
    let mut agent = Agent::start();
    let port = serve(&mut agent);
    let run = agent
        .send("datagrams.run", order(&port, &json!({"duration_seconds": 3600.0, "rate_per_second": 1.0})));
    let cancel = agent.send("cancel", json!({"id": run}));
    let (first, second) = (agent.answer(), agent.answer());
    let (cancelled, ended) = if first["id"] == cancel { (first, second) } else { (second, first) };
    assert_eq!(cancelled["result"]["cancelled"], true);
    assert_eq!((&ended["id"], &ended["error"]["code"]), (&json!(run), &json!(-32005)));
    agent.end();
}
