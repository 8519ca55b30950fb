//! What comes over the pipe is bounded: lines, requests under way; and a line that is no text does not end the agent.
#![allow(clippy::disallowed_methods, reason = "a test starts the agent")]

mod common;

use common::Agent;
use serde_json::json;

/// A line of `/proc/PID/status`, a number.
fn status(agent: &Agent, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", agent.pid())).expect("procfs");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("such a line");
    line.trim_start_matches(':')
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .expect("a number")
}

#[test]
fn a_line_without_end_costs_no_memory() {
    let mut agent = Agent::start();
    agent.send_line(&vec![b'['; 64 << 20]);
    let answer = agent.answer();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(-32600)));
    assert!(
        answer["error"]["message"].as_str().is_some_and(|text| text.contains("more than 16777216 bytes"))
    );
    assert!(status(&agent, "VmHWM") < 64 << 10, "{} kB", status(&agent, "VmHWM"));
    agent.call("hello", json!({"protocol": 1, "client": "test"}));
    agent.end();
}

#[test]
fn a_line_that_is_no_text_is_answered() {
    let mut agent = Agent::start();
    agent.send_line(b"\xff\xfe");
    assert_eq!(agent.answer()["error"]["code"], -32700);
    agent.send_line(b"{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"\xff\"}");
    assert_eq!(agent.answer()["error"]["code"], -32700);
    agent.send_line(&vec![b'['; 100_000]);
    assert_eq!(agent.answer()["error"]["code"], -32700);
    agent.end();
}

/// Lets the agent have no more address space than so much above what it has.
fn leave(agent: &Agent, kilobytes: u64) {
    let most = (status(agent, "VmSize") + kilobytes) << 10;
    let words = [format!("--pid={}", agent.pid()), format!("--as={most}:unlimited")];
    assert!(std::process::Command::new("prlimit").args(words).status().expect("prlimit").success());
}

#[test]
fn without_room_for_a_thread_a_request_is_answered_and_a_later_one_is_done() {
    let mut agent = Agent::start();
    agent.call("hello", json!({"protocol": 1, "client": "test"}));
    leave(&agent, 512);
    let refused = agent.call("check.routes", json!({"destinations": []}));
    assert_eq!(refused["error"]["data"]["operation"], "start a thread", "{refused}");
    leave(&agent, 1 << 20);
    assert_eq!(agent.call("check.routes", json!({"destinations": []}))["result"], json!({"routes": []}));
    agent.end();
}

#[test]
fn requests_under_way_are_few() {
    let mut agent = Agent::start();
    // Each waits for its program, which lasts.
    let spawned = agent.call(
        "process.spawn",
        json!({"argv": ["sleep", "1000"], "environment": {}, "directory": null, "limits": {}}),
    );
    let process = spawned["result"]["process"].as_u64().expect("a process");
    for _ in 0..3000 {
        agent.send("process.wait", json!({"process": process, "timeout_seconds": 1000.0}));
    }
    for _ in 0..3000 - 2048 {
        let answer = agent.answer();
        assert_eq!(answer["error"]["code"], -32006, "{answer}");
        assert_eq!(answer["error"]["message"], "2048 requests are under way already");
    }
    assert!(status(&agent, "Threads") <= 2048 + 16, "{} threads", status(&agent, "Threads"));
    agent.end();
}
