//! Replays the golden conversations of `pipe/transcripts` against the real binary.
#![allow(clippy::disallowed_methods, reason = "a test starts the agent and reads the transcripts")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn transcripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pipe/transcripts");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the transcripts are there")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    found.sort();
    found
}

/// Whether `found` is as `expected` says; `{"$any": TYPE}` stands for any value of that type.
fn matches(expected: &Value, found: &Value) -> bool {
    if let Some(kind) = expected.get("$any").and_then(Value::as_str) {
        return match kind {
            "integer" => found.is_i64() || found.is_u64(),
            "number" => found.is_number(),
            "string" => found.is_string(),
            "boolean" => found.is_boolean(),
            "object" => found.is_object(),
            "array" => found.is_array(),
            _ => panic!("no such matcher: {kind}"),
        };
    }
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            expected.len() == found.len()
                && expected
                    .iter()
                    .all(|(key, value)| found.get(key).is_some_and(|found| matches(value, found)))
        }
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(value, found)| matches(value, found))
        }
        _ => expected == found,
    }
}

fn replay(path: &Path) {
    let name = path.file_name().and_then(|name| name.to_str()).expect("a readable name");
    let role = name.split('-').next().expect("ROLE-what.jsonl");
    let mut agent = Command::new(env!("CARGO_BIN_EXE_framegauge-agent"))
        .arg(role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the agent starts");
    let mut input = agent.stdin.take().expect("a pipe");
    let mut output = BufReader::new(agent.stdout.take().expect("a pipe")).lines();
    for (number, line) in std::fs::read_to_string(path).expect("a readable transcript").lines().enumerate() {
        let step: Value = serde_json::from_str(line).expect("a transcript is JSON");
        if let Some(message) = step.get("send") {
            writeln!(input, "{message}").expect("the agent reads");
        } else if let Some(raw) = step.get("send_raw").and_then(Value::as_str) {
            writeln!(input, "{raw}").expect("the agent reads");
        } else {
            let answer = output.next().expect("an answer").expect("a readable answer");
            let answer: Value = serde_json::from_str(&answer).expect("an answer is JSON");
            assert!(matches(&step["receive"], &answer), "{name}:{}: found {answer}", number + 1);
        }
    }
    drop(input);
    assert!(agent.wait().expect("the agent ends").success(), "{name}");
}

#[test]
fn every_golden_conversation_is_as_recorded() {
    let all = transcripts();
    assert!(all.len() >= 15, "found {} transcripts", all.len());
    for path in all {
        replay(&path);
    }
}
