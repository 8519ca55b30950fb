//! `framegauge-agent counters`: answers each line of input with the instructions and cycles of this host so far.
//!
//! A program of its own, since counting what others do takes privilege (`perf_event_paranoid`, perf_event_open(2)).

use framegauge_drivers::meters::cpu::WholeCounters;
use serde_json::json;
use std::io::{BufRead, Write};
use std::process::ExitCode;

/// Serves until its input ends.
pub fn run() -> ExitCode {
    let mut counters = match WholeCounters::open() {
        Ok(counters) => counters,
        Err(error) => {
            eprintln!("framegauge-agent counters: {error}");
            return ExitCode::FAILURE;
        }
    };
    for line in std::io::stdin().lock().lines() {
        let Ok(_) = line else { break };
        let counts = match counters.read() {
            Ok((instructions, cycles)) => json!({"instructions": instructions, "cycles": cycles}),
            Err(error) => {
                eprintln!("framegauge-agent counters: {error}");
                return ExitCode::FAILURE;
            }
        };
        let mut output = std::io::stdout();
        if writeln!(output, "{counts}").and_then(|()| output.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}
