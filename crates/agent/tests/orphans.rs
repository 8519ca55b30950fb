//! What works for somebody who is gone ends.
#![allow(clippy::disallowed_methods, reason = "a test starts the agent")]

mod common;

use common::{BINARY, eventually};
use std::cell::RefCell;
use std::fs;
use std::process::{Child, Command, Stdio};

/// A process that waits for input which never comes, and never ends.
fn waiting(words: &[&str]) -> Child {
    let pipes = || Stdio::piped();
    Command::new(BINARY).args(words).stdin(pipes()).stdout(pipes()).stderr(pipes()).spawn().expect("starts")
}

#[test]
fn a_simulation_and_a_diagnosis_end_when_nobody_reads_what_they_say() {
    for words in [["simulate", "/nonexistent"], ["diagnose", "-"]] {
        for closed in ["output", "errors"] {
            let mut process = waiting(&words);
            assert!(process.try_wait().expect("its state").is_none(), "{words:?} waits");
            match closed {
                "output" => drop(process.stdout.take()),
                _ => drop(process.stderr.take()),
            }
            let process = RefCell::new(process);
            eventually("it ends", || process.borrow_mut().try_wait().expect("its state").is_some());
        }
    }
}

#[test]
fn a_simulation_and_a_diagnosis_end_first_where_memory_is_used_up() {
    for words in [["simulate", "/nonexistent"], ["diagnose", "-"]] {
        let mut process = waiting(&words);
        let place = format!("/proc/{}/oom_score_adj", process.id());
        eventually("it offers itself", || {
            fs::read_to_string(&place).expect("its place in the order") == "1000\n"
        });
        process.kill().expect("a process to end");
        process.wait().expect("its end");
    }
}

#[test]
fn one_whose_words_go_to_a_file_goes_on() {
    let null = || Stdio::null();
    let words = ["simulate", "/nonexistent"];
    let mut process = Command::new(BINARY)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(null())
        .stderr(null())
        .spawn()
        .expect("starts");
    drop(process.stdin.take());
    assert_eq!(process.wait().expect("its end").code(), Some(2), "it reads no scenario, and says so");
}
