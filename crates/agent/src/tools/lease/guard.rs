//! The second process of a lease: it knows the old values, and puts them back when the lease ends.
//!
//! It is a copy of the first one, made before anything is promised, and no command starts it: what it puts back it has read
//! by itself. Then it leaves all by which its caller could end it or hold it up, or there is no lease. The holder tells it
//! of each change before it makes it, and waits until it has answered. After `kept` the guard has forgotten what is to stay,
//! so that none of the two can put it back.
//!
//! ```text
//!   holder (the caller's cgroup, terminal, sudo)     guard (a session of its own, the root of all cgroups)
//!     more [...]  ─────────────────────────────────>   allowed? reads the old values
//!     changes     <──────────────────────────────── !
//!     renew       ─────────────────────────────────>   the whole time again
//!     ends, is killed, says nothing in time ───────>   ends the holder if it lives, and puts everything back
//! ```

use super::change::{Change, before, put_back};
use super::lines::Lines;
use super::{alone, deadline, parsed, permitted, unless_renewed};
use framegauge_drivers::own::{self, Copy, PollSet};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

/// How long the guard may take to answer, or to end.
const PATIENCE_SECONDS: f64 = 2.0;
/// To get ready, and to read what a change may take along, in every network of a busy machine.
const READING_SECONDS: f64 = 10.0;
const HEARD: &str = "!";
/// Lines in the kernel's log about what could not be put back.
const MOST_WARNINGS: usize = 10;
const LONGEST_ANSWER: usize = 64 * 1024;

/// The guard as the holder sees it; dropped, its input ends, and it puts everything back.
pub struct Guard {
    copy: Copy,
}

impl Guard {
    /// Starts it; it is where its caller cannot reach it when this returns.
    pub fn start(seconds: f64) -> Result<Self, String> {
        let holder = std::process::id();
        let copy = own::copy(|| run(seconds, holder)).map_err(|error| error.to_string())?;
        let mut guard = Self { copy };
        guard.answer(deadline(READING_SECONDS)).map(|()| guard)
    }

    /// Its output, which can be read only once it has ended.
    pub fn watched(&self) -> RawFd {
        self.copy.output.as_raw_fd()
    }

    /// Gives it the whole time again.
    pub fn renew(&mut self) {
        if let Some(pipe) = self.copy.input.as_mut() {
            let _ = pipe.write_all(b"renew\n");
        }
    }

    /// Says a line to it and waits until it has answered.
    pub fn tell(&mut self, line: &str) -> Result<(), String> {
        let gone = || "the guard of the lease does not answer".to_string();
        let pipe = self.copy.input.as_mut().ok_or_else(gone)?;
        pipe.write_all(format!("{line}\n").as_bytes()).map_err(|_| gone())?;
        self.answer(deadline(READING_SECONDS))
    }

    /// What it says next: that it has heard, or why it does not do it.
    fn answer(&mut self, until: u64) -> Result<(), String> {
        let gone = || "the guard of the lease does not answer".to_string();
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let now = own::monotonic_nanoseconds();
            if now >= until || line.len() > LONGEST_ANSWER {
                return Err(gone());
            }
            let mut set = PollSet::default();
            let place = set.add(self.copy.output.as_raw_fd(), true, false);
            set.wait(Some(until - now)).map_err(|_| gone())?;
            if set.readable(place) {
                let mut byte = [0u8; 1];
                self.copy.output.read_exact(&mut byte).map_err(|_| gone())?;
                line.push(byte[0]);
            }
        }
        let line = String::from_utf8_lossy(&line);
        if line.trim() == HEARD { Ok(()) } else { Err(line.trim().to_string()) }
    }

    /// Ends its input and waits for its end; one that hangs has nothing left to do.
    pub fn dismiss(mut self) {
        drop(self.copy.input.take());
        let until = deadline(PATIENCE_SECONDS);
        while !self.copy.has_ended() && own::monotonic_nanoseconds() < until {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        self.copy.kill();
        own::sweep_groups();
    }
}

fn say(answer: &Result<(), String>) {
    let line = answer.as_ref().map_or_else(|reason| reason.replace('\n', " "), |()| HEARD.to_string());
    let mut output = std::io::stdout();
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// What the guard needs before it promises anything.
fn prepare() -> Result<(Lines, own::Lock), String> {
    let text = |error: framegauge_drivers::OsError| error.to_string();
    own::detach().map_err(text)?;
    let input = Lines::new(own::termination_signals().map_err(text)?)?;
    Ok((input, alone("guard").map_err(|reason| format!("the guard did not start: {reason}"))?))
}

/// The guard itself: waits for the end of the lease, and puts back what was there before it.
fn run(seconds: f64, holder: u32) -> u8 {
    let (mut input, _alone) = match prepare() {
        Ok(ready) => ready,
        Err(reason) => {
            say(&Err(reason));
            return 1;
        }
    };
    say(&Ok(()));
    let mut changes = Vec::new();
    // The holder ends the lease a little earlier, and tells of it.
    let time = || unless_renewed(seconds, 2.0);
    let mut until = time();
    let reason = loop {
        let line = match input.next(until, None) {
            Ok(line) => line,
            Err(reason) => break reason,
        };
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("renew", _) => until = time(),
            ("more", rest) => say(&more(rest, &mut changes)),
            ("left", rest) => {
                changes.truncate(rest.parse().unwrap_or(changes.len()));
                say(&Ok(()));
            }
            ("kept", rest) => {
                changes.drain(..rest.parse().unwrap_or(0).min(changes.len()));
                say(&Ok(()));
            }
            _ => {}
        }
    };
    if reason == "time" {
        // It may be stopped in the middle of a change, which it would make when everything is back.
        own::end_original(holder);
    }
    let differences = put_back(&changes);
    for difference in differences.iter().take(MOST_WARNINGS) {
        // Whoever would tell of it may be gone. Without a log it is told by the exit code alone.
        let _ = own::warn(&format!("framegauge-agent lease: {}", difference.line()));
    }
    u8::from(!differences.is_empty())
}

/// Reads what is there before further changes, if this host's administrator permits them.
fn more(text: &str, changes: &mut Vec<Change>) -> Result<(), String> {
    let values = parsed(text)?;
    permitted::Permitted::read(Path::new(permitted::FILE))?.demand(values.iter())?;
    before(&values, changes)
}
