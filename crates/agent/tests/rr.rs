//! Request and response through the pipe of a host agent, over loopback: results, refusals, cancellation.

mod common;

use common::Agent;
use serde_json::{Value, json};

fn serve(agent: &mut Agent) -> Value {
    let params = json!({"token": "ab".repeat(16), "address": "127.0.0.1", "nodelay": true});
    agent.call("rr.serve", params)["result"]["port"].clone()
}

fn order(port: &Value, changes: &Value) -> Value {
    let mut order = json!({"address": "127.0.0.1", "port": port, "token": "ab".repeat(16), "connections": 1,
        "request_bytes": 100, "response_bytes": 1000, "header_bytes": 0, "rate_per_second": null,
        "arrivals": "uniform", "seed": 1, "duration_seconds": 0.05, "nodelay": true});
    for (key, value) in changes.as_object().expect("an object") {
        order[key] = value.clone();
    }
    order
}

#[test]
fn requests_are_answered_and_both_ends_agree() {
    let mut agent = Agent::start();
    let port = serve(&mut agent);
    let changes = json!({"rate_per_second": 200.0, "arrivals": "poisson", "seed": 5});
    let ran = agent.call("rr.run", order(&port, &changes))["result"].clone();
    let closed = agent.call("rr.close", json!({}))["result"].clone();
    assert_eq!(ran["bytes"], json!(1100 * ran["requests"].as_u64().expect("a count")));
    assert_eq!((&ran["requests"], &ran["bytes"]), (&closed["requests"], &closed["bytes"]));
    assert_eq!((&ran["nodelay"], &closed["nodelay"]), (&json!([true]), &json!([true])));
    assert_eq!((&closed["connections"], &closed["refused"]), (&json!(1), &json!(0)));
    let spool = json!({"spool": ran["transactions"], "offset_bytes": 0, "length_bytes": 6});
    assert_eq!(
        agent.call("spool.read", spool)["result"]["data"],
        "QVJST1cx",
        "an Arrow file begins with ARROW1"
    );
    agent.end();
}

#[test]
fn what_cannot_be_done_is_refused_with_its_code() {
    let mut agent = Agent::start();
    assert_eq!(agent.call("rr.close", json!({}))["error"]["code"], -32006);
    let port = serve(&mut agent);
    let again = json!({"token": "ab".repeat(16), "address": "127.0.0.1", "nodelay": true});
    assert_eq!(agent.call("rr.serve", again)["error"]["code"], -32006);
    for (changes, code) in [
        (json!({"token": "cd".repeat(16)}), -32007),
        (json!({"token": "ab"}), -32602),
        (json!({"token": "+b".repeat(16)}), -32602),
        (json!({"connections": 0}), -32602),
        (json!({"connections": 513}), -32602),
        (json!({"request_bytes": 0}), -32602),
        (json!({"response_bytes": (16 << 20) + 1}), -32602),
        (json!({"rate_per_second": 0}), -32602),
        (json!({"rate_per_second": 1e6, "duration_seconds": 60.0}), -32003),
        (json!({"arrivals": "burst"}), -32602),
        (json!({"speed": 1}), -32602),
    ] {
        let answer = agent.call("rr.run", order(&port, &changes));
        assert_eq!(answer["error"]["code"], code, "{changes}: {answer}");
    }
    assert_eq!(agent.call("rr.close", json!({}))["result"]["refused"], 1);
    agent.end();
}

#[test]
fn a_run_can_be_cancelled_and_its_sockets_are_listed_meanwhile() {
    let mut agent = Agent::start();
    let port = serve(&mut agent);
    let changes = json!({"duration_seconds": 3600.0, "connections": 3});
    let run = agent.send("rr.run", order(&port, &changes));
    let local = format!("127.0.0.1:{port}");
    loop {
        let listed = agent.call("sockets.read", json!({}))["result"]["sockets"].clone();
        let sockets = listed.as_array().expect("a list");
        if sockets.iter().filter(|each| each["local"] == local.as_str()).count() == 3 {
            assert!(sockets.iter().all(|each| each["nodelay"].is_null()));
            break;
        }
    }
    let cancel = agent.send("cancel", json!({"id": run}));
    let (first, second) = (agent.answer(), agent.answer());
    let (cancelled, ended) = if first["id"] == cancel { (first, second) } else { (second, first) };
    assert_eq!(cancelled["result"]["cancelled"], true);
    assert_eq!((&ended["id"], &ended["error"]["code"]), (&json!(run), &json!(-32005)));
    agent.end();
}
