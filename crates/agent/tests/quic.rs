//! QUIC through the pipe of a host agent, over loopback: results, refusals, cancellation.

mod common;

use common::Agent;
use serde_json::{Value, json};

fn settings() -> Value {
    json!({"plpmtud": true, "congestion_control": "cubic", "gso": false, "gro": false})
}

fn serve(agent: &mut Agent) -> Value {
    let params = json!({"token": "ab".repeat(16), "address": "127.0.0.1", "settings": settings()});
    agent.call("quic.serve", params)["result"].clone()
}

fn order(served: &Value, changes: &Value) -> Value {
    let mut order = json!({"address": "127.0.0.1", "port": served["port"], "key": served["key"],
        "token": "ab".repeat(16), "flows": 2, "size_bytes": 100_000, "duration_seconds": null,
        "repeat_seconds": 0.0, "settings": settings()});
    for (key, value) in changes.as_object().expect("an object") {
        order[key] = value.clone();
    }
    order
}

#[test]
fn both_ends_agree_and_the_transfers_have_a_table() {
    let mut agent = Agent::start();
    let served = serve(&mut agent);
    let ran = agent.call("quic.run", order(&served, &json!({})))["result"].clone();
    let closed = agent.call("quic.close", json!({}))["result"].clone();
    assert_eq!((&ran["bytes"], &ran["written_bytes"]), (&json!(200_000), &json!(200_000)));
    assert_eq!((&closed["bytes"], &closed["connections"]), (&json!(200_000), &json!(2)));
    assert_eq!((&closed["refused"], &ran["congestion_control"]), (&json!(0), &json!(["cubic"])));
    for end in [&ran, &closed] {
        assert_eq!(end["settled_bytes"].as_array().map(Vec::len), Some(2), "{end}");
    }
    let asked = json!({"spool": ran["transfers"], "offset_bytes": 0, "length_bytes": 6});
    let read = agent.call("spool.read", asked)["result"]["data"].clone();
    assert_eq!(read, "QVJST1cx", "an Arrow file begins with ARROW1");
    agent.end();
}

#[test]
fn what_cannot_be_done_is_refused_with_its_code() {
    let mut agent = Agent::start();
    assert_eq!(agent.call("quic.close", json!({}))["error"]["code"], -32006);
    let served = serve(&mut agent);
    let again = json!({"token": "ab".repeat(16), "address": "127.0.0.1", "settings": settings()});
    assert_eq!(agent.call("quic.serve", again)["error"]["code"], -32006);
    let mut fast = settings();
    fast["congestion_control"] = json!("bbr");
    for changes in [
        json!({"token": "ab"}),
        json!({"key": "abc"}),
        json!({"key": "zz"}),
        json!({"flows": 0}),
        json!({"flows": 513}),
        json!({"size_bytes": 0}),
        json!({"duration_seconds": 1.0}),
        json!({"size_bytes": null}),
        json!({"settings": fast}),
        json!({"speed": 1}),
    ] {
        let answer = agent.call("quic.run", order(&served, &changes));
        assert_eq!(answer["error"]["code"], -32602, "{changes}: {answer}");
    }
    let stranger = agent.call("quic.run", order(&served, &json!({"key": "ab"})));
    assert_eq!(stranger["error"]["code"], -32007, "{stranger}");
    assert_eq!(agent.call("quic.close", json!({}))["result"]["bytes"], 0);
    agent.end();
}

#[test]
fn a_run_can_be_cancelled() {
    let mut agent = Agent::start();
    let served = serve(&mut agent);
    let run =
        agent.send("quic.run", order(&served, &json!({"size_bytes": null, "duration_seconds": 3600.0})));
    let cancel = agent.send("cancel", json!({"id": run}));
    let (first, second) = (agent.answer(), agent.answer());
    let (cancelled, ended) = if first["id"] == cancel { (first, second) } else { (second, first) };
    assert_eq!(cancelled["result"]["cancelled"], true);
    assert_eq!((&ended["id"], &ended["error"]["code"]), (&json!(run), &json!(-32005)));
    agent.end();
}
