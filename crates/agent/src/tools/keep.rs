//! `framegauge-agent keep`: a second process of an agent that outlives it, to put away what it leaves.
//!
//! ```text
//! keep program       starts a program, and ends all of it (`crates/drivers/src/host/keeper.rs`)
//! keep second        the other of the two processes that do so
//! keep group PATH    ends what is in the cgroup of the agent, and removes it, when its input ends
//! keep folder        makes a folder, says where it is, and removes it when its input ends
//! ```
//!
//! Its input is of the agent alone. So it ends on every way out: also where the agent is killed, and where the connection
//! to it is lost. Where this process is killed instead, the agent puts away what there is.

use framegauge_drivers::host::processes::leave_group;
use framegauge_drivers::host::{folder, keeper};
use framegauge_drivers::own::{self, PollSet};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;

/// Runs `keep`; `words` follow it.
pub fn run(mut words: impl Iterator<Item = String>) -> ExitCode {
    let done = match (words.next().as_deref(), words.next()) {
        (Some("program"), None) => keeper::first(),
        (Some("second"), None) => keeper::second(),
        (Some("folder"), None) => keep_folder(),
        (Some("group"), Some(path)) => keep_group(Path::new(&path)),
        _ => {
            eprintln!(
                "framegauge-agent keep: expected `program`, `second`, `folder` or `group PATH`; an agent starts this"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("framegauge-agent keep: {error}");
            ExitCode::FAILURE
        }
    }
}

fn keep_folder() -> framegauge_drivers::Result<()> {
    let signals = own::termination_signals()?;
    match folder::make() {
        Ok(path) => {
            say(&json!({"path": path}));
            await_end(&signals)?;
            folder::remove(&path)
        }
        Err(error) => {
            say(&json!({"operation": error.operation, "errno": error.code()}));
            Ok(())
        }
    }
}

fn keep_group(path: &Path) -> framegauge_drivers::Result<()> {
    let signals = own::termination_signals()?;
    await_end(&signals)?;
    leave_group(path);
    Ok(())
}

fn say(value: &Value) {
    let mut output = std::io::stdout();
    let _ = writeln!(output, "{value}").and_then(|()| output.flush());
}

/// Waits until the input ends or a signal says that everything is to end.
fn await_end(signals: &OwnedFd) -> framegauge_drivers::Result<()> {
    let mut input = std::io::stdin().lock();
    loop {
        let mut set = PollSet::default();
        let places = [input_descriptor(), signals.as_raw_fd()].map(|raw| set.add(raw, true, false));
        set.wait(None)?;
        if set.readable(places[1]) {
            return Ok(());
        }
        if set.readable(places[0]) && !matches!(input.read(&mut [0; 64]), Ok(1..)) {
            return Ok(());
        }
    }
}

fn input_descriptor() -> i32 {
    std::io::stdin().as_raw_fd()
}
