//! An agent that hears nothing for longer than it was told to wait puts everything back and ends; an empty line is enough.
#![allow(clippy::disallowed_methods, reason = "a test starts the agent and waits")]

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn start() -> Child {
    Command::new(env!("CARGO_BIN_EXE_framegauge-agent"))
        .args(["host", "--patience", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the agent starts")
}

fn ended_within(agent: &mut Child, seconds: u64) -> bool {
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        if agent.try_wait().expect("it is a child").is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn silence_ends_it_and_it_says_why() {
    let mut agent = start();
    let _open = agent.stdin.take();
    assert!(ended_within(&mut agent, 20));
    let said = agent.wait_with_output().expect("it has ended").stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("nothing was heard for too long"), "{said}");
}

#[test]
fn empty_lines_keep_it() {
    let mut agent = start();
    let mut input = agent.stdin.take().expect("a pipe");
    for _ in 0..12 {
        std::thread::sleep(Duration::from_millis(200));
        input.write_all(b"\n").expect("it lives");
    }
    assert!(agent.try_wait().expect("it is a child").is_none());
    drop(input);
    assert!(ended_within(&mut agent, 20));
}
