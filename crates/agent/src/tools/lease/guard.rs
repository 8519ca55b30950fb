//! The second process of a lease: it knows the old values, and puts them back when the lease ends.
//!
//! The holder tells it of each change before it makes it, and waits for one byte: the guard has heard. After `kept` the
//! guard has forgotten what is to stay, so that none of the two can put it back.

use super::lines::Lines;
use super::{OTHER, Values, alone, deadline, parsed, put_back, unless_renewed, words_of};
use framegauge_drivers::own::{self, PollSet};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, ChildStdout, ExitCode};

/// How long the guard may take to answer, or to end.
const PATIENCE_SECONDS: f64 = 2.0;
const HEARD: &[u8] = b"!";

/// The guard as the holder sees it; dropped, its input ends, and it puts everything back.
pub struct Guard {
    child: Child,
    output: Option<ChildStdout>,
}

impl Guard {
    /// Starts it with what it is to put back; it has answered before anything changes.
    pub fn start(seconds: f64, before: &Values) -> Result<Self, String> {
        let mut words = vec!["lease".to_string(), "guard".to_string(), seconds.to_string()];
        words.extend(words_of(before));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut child = own::spawn_agent(&words).map_err(|error| error.to_string())?;
        let output = child.stdout.take();
        let mut guard = Self { child, output };
        // With no limit: it may wait for the end of another guard's process.
        let mut first = [0u8; 1];
        let ready = guard.output.as_mut().is_some_and(|output| output.read_exact(&mut first).is_ok());
        if ready { Ok(guard) } else { Err(format!("the guard did not start: is there {OTHER}?")) }
    }

    /// Its output, which can be read only once it has ended.
    pub fn watched(&self) -> Option<&ChildStdout> {
        self.output.as_ref()
    }

    /// Gives it the whole time again.
    pub fn renew(&mut self) {
        if let Some(pipe) = self.child.stdin.as_mut() {
            let _ = pipe.write_all(b"renew\n");
        }
    }

    /// Says a line to it and waits until it has heard it.
    pub fn tell(&mut self, line: &str) -> Result<(), String> {
        let gone = || "the guard of the lease does not answer".to_string();
        let pipe = self.child.stdin.as_mut().ok_or_else(gone)?;
        pipe.write_all(format!("{line}\n").as_bytes()).map_err(|_| gone())?;
        let output = self.output.as_mut().ok_or_else(gone)?;
        let until = deadline(PATIENCE_SECONDS);
        loop {
            let now = own::monotonic_nanoseconds();
            if now >= until {
                return Err(gone());
            }
            let mut set = PollSet::default();
            let place = set.add(output.as_raw_fd(), true, false);
            set.wait(Some(until - now)).map_err(|_| gone())?;
            if set.readable(place) {
                let mut heard = [0u8; 1];
                return output.read_exact(&mut heard).map_err(|_| gone());
            }
        }
    }

    /// Ends its input and waits for its end; one that hangs has nothing left to do.
    pub fn dismiss(mut self) {
        drop(self.child.stdin.take());
        let until = deadline(PATIENCE_SECONDS);
        while matches!(self.child.try_wait(), Ok(None)) {
            if own::monotonic_nanoseconds() >= until {
                let _ = self.child.kill().and_then(|()| self.child.wait());
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

/// A guard puts back whatever it is told, so only a lease may tell it: its parent is this same program.
fn is_of_a_lease() -> bool {
    let file =
        |process: &str| std::fs::metadata(format!("/proc/{process}/exe")).map(|exe| (exe.dev(), exe.ino()));
    let parent = std::os::unix::process::parent_id().to_string();
    matches!((file(&parent), file("self")), (Ok(one), Ok(other)) if one == other)
}

/// The guard itself: waits for the end of the lease, and puts back what it was told.
pub fn run(seconds: f64, mut before: Values) -> Result<ExitCode, String> {
    let mut input = Lines::new(own::termination_signals().map_err(|error| error.to_string())?)?;
    if !is_of_a_lease() {
        return Err("a guard is started by a lease, which knows the old values".into());
    }
    let _alone = alone("guard")?;
    let mut output = std::io::stdout();
    let mut hear = || output.write_all(HEARD).and_then(|()| output.flush());
    let _ = hear();
    let mut until = unless_renewed(seconds);
    while let Ok(line) = input.next(until, None) {
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match word {
            "renew" => until = unless_renewed(seconds),
            "more" => {
                // Without an answer the holder changes nothing.
                if let Ok(more) = parsed(rest) {
                    before.extend(more);
                    let _ = hear();
                }
            }
            "left" => {
                before.truncate(rest.parse().unwrap_or(before.len()));
                let _ = hear();
            }
            "kept" => {
                before.drain(..rest.parse().unwrap_or(0).min(before.len()));
                let _ = hear();
            }
            _ => {}
        }
    }
    let left = put_back(&before);
    for line in &left {
        eprintln!("framegauge-agent lease: {line}");
    }
    Ok(if left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
