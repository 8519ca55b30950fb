//! Streams through the pipe of a host agent, over loopback: the sizes of sockets and messages, and what is refused.

mod common;

use common::Agent;
use serde_json::{Value, json};

fn serve(agent: &mut Agent, changes: &Value) -> Value {
    let mut asked = json!({"token": "ab".repeat(16), "address": "0.0.0.0", "sample_seconds": 0.0});
    change(&mut asked, changes);
    agent.call("stream.serve", asked)
}

fn run(agent: &mut Agent, port: &Value, changes: &Value) -> Value {
    let mut asked = json!({"address": "127.0.0.1", "port": port, "token": "ab".repeat(16), "flows": 2,
        "size_bytes": 100_000, "duration_seconds": null, "repeat_seconds": 0.0, "reverse": false, "sample_seconds": 0.0});
    change(&mut asked, changes);
    agent.call("stream.run", asked)
}

fn change(asked: &mut Value, changes: &Value) {
    for (key, value) in changes.as_object().expect("an object") {
        asked[key] = value.clone();
    }
}

/// Linux keeps twice what is asked: 2 * 57344 = 114688 (socket(7)).
#[test]
fn both_ends_say_what_their_sockets_and_calls_were() {
    let mut agent = Agent::start();
    let sizes = json!({"socket_buffer_bytes": 57_344, "message_bytes": 16_384});
    for reverse in [false, true] {
        let port = serve(&mut agent, &sizes)["result"]["port"].clone();
        let mut asked = sizes.clone();
        asked["reverse"] = json!(reverse);
        let client = run(&mut agent, &port, &asked)["result"].clone();
        let server = agent.call("stream.close", json!({}))["result"].clone();
        assert_eq!(client["bytes"], 200_000);
        for end in [&client, &server] {
            assert_eq!(
                (&end["send_buffer_bytes"], &end["receive_buffer_bytes"]),
                (&json!(114_688), &json!(114_688))
            );
            assert!((1..=16_384).contains(&end["largest_call_bytes"].as_u64().expect("payload")), "{end}");
        }
    }
    agent.end();
}

/// Only the sending end paces: SO_MAX_PACING_RATE of its sockets is what was asked, whole bytes per second.
#[test]
fn the_sending_end_says_how_it_was_paced() {
    let mut agent = Agent::start();
    for (asked, kept) in [(json!(null), json!([null])), (json!(80_000_007), json!([80_000_000]))] {
        for reverse in [false, true] {
            let port = serve(&mut agent, &json!({}))["result"]["port"].clone();
            let changes = json!({"reverse": reverse, "pacing_bits_per_second": asked});
            let client = run(&mut agent, &port, &changes)["result"].clone();
            let server = agent.call("stream.close", json!({}))["result"].clone();
            let (sender, receiver) = if reverse { (server, client) } else { (client, server) };
            assert_eq!(sender["max_pacing_bits_per_second"], kept);
            assert_eq!(receiver["max_pacing_bits_per_second"], json!([]));
        }
    }
    agent.end();
}

#[test]
fn without_sockets_there_is_nothing_to_read() {
    let mut agent = Agent::start();
    serve(&mut agent, &json!({"socket_buffer_bytes": null, "message_bytes": null}));
    let server = agent.call("stream.close", json!({}))["result"].clone();
    for name in ["send_buffer_bytes", "receive_buffer_bytes", "largest_call_bytes"] {
        assert_eq!(server[name], Value::Null, "{name}");
    }
    agent.end();
}

#[test]
fn sizes_out_of_range_are_one_line_each() {
    let mut agent = Agent::start();
    let port = serve(&mut agent, &json!({}))["result"]["port"].clone();
    let bounds = [
        ("socket_buffer_bytes", 4095, "4096 and 536870912"),
        ("socket_buffer_bytes", 536_870_913, "4096 and 536870912"),
        ("message_bytes", 0, "1 and 16777216"),
        ("message_bytes", 16_777_217, "1 and 16777216"),
        ("subflows", 0, "1 and 8"),
        ("subflows", 9, "1 and 8"),
    ];
    for (name, value, range) in bounds {
        let changes = json!({name: value});
        for (method, answer) in
            [("stream.serve", serve(&mut agent, &changes)), ("stream.run", run(&mut agent, &port, &changes))]
        {
            assert_eq!(answer["error"]["code"], -32602);
            let message = format!("{method}: {name}: {value} is not within {range}");
            assert_eq!(answer["error"]["message"], message);
        }
    }
    agent.end();
}
