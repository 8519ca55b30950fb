//! `framegauge-agent`: the data plane's one binary. It speaks JSON-RPC on its standard input and output
//! and ends, putting everything back, when its input ends. Eight commands do not speak on the pipe: `exec` becomes a
//! program inside a host of a rack; `diagnose` reads capture files; `simulate` runs a scenario in virtual time; an agent starts `lease`,
//! `change`, `counters` and `sockets`, which may need more privilege than it has, and `keep`, which outlives it.
#![allow(clippy::disallowed_methods)]

use framegauge_agent::arguments::{self, Arguments, Role};
use framegauge_agent::dispatch;
use framegauge_agent::pipe::serve::serve;
use framegauge_agent::tools::{self, counters, diagnose, exec, keep, lease, simulate, sockets};
use framegauge_drivers::own;
use std::process::ExitCode;

/// As Python's `framegauge.cli.limits` says it.
const NO_THREAD: &str = "found no process or thread more, expected some: a limit of this user (ulimit -u) or of its \
    cgroup (pids.max)";

/// Where the kernel has no thread more, `std::thread` panics: that is one line, without the places in its own source.
fn say_of_threads_plainly() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>();
        if text.is_some_and(|text| text.starts_with("failed to spawn thread")) {
            eprintln!("framegauge-agent: {NO_THREAD}");
        } else {
            usual(panic);
        }
    }));
}

fn main() -> ExitCode {
    say_of_threads_plainly();
    let mut words = std::env::args_os().skip(1);
    match words.next().and_then(|word| word.into_string().ok()).as_deref() {
        Some("exec") => return exec::run(words),
        Some("counters") => return counters::run(),
        Some("diagnose") => {
            tools::end_with_reader();
            return diagnose::run(words);
        }
        Some("keep") => return keep::run(words.map(|word| word.to_string_lossy().into_owned())),
        Some("simulate") => {
            tools::end_with_reader();
            return simulate::run(words);
        }
        Some("sockets") => return sockets::run(words.map(|word| word.to_string_lossy().into_owned())),
        Some(command @ ("lease" | "change")) => {
            return lease::run(command, words.map(|word| word.to_string_lossy().into_owned()));
        }
        _ => {}
    }
    match arguments::parse(std::env::args().skip(1)) {
        Ok(Arguments::Text(text)) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Ok(Arguments::Run(role)) => run(role),
        Err(error) => {
            eprintln!("framegauge-agent: {error}");
            ExitCode::from(2)
        }
    }
}

/// Enough for thousands of connections; far more would make programs slow that close all they might have inherited.
const OPEN_FILES: u64 = 65_536;

fn run(role: Role) -> ExitCode {
    // Where it cannot be raised, the servers wait for descriptors.
    let _ = own::raise_open_files(OPEN_FILES);
    // Signals first: every later thread inherits the mask.
    let outcome = own::termination_signals().and_then(|signals| {
        role.prepare()?;
        if role.works_apart() {
            let name = role.host_name();
            own::apart(name.as_deref(), || serve(role, signals, dispatch::dispatch))
        } else {
            serve(role, signals, dispatch::dispatch)
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("framegauge-agent: {error}");
            ExitCode::FAILURE
        }
    }
}
