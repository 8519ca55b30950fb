//! `framegauge-agent lease SECONDS SETTING=VALUE…`: changes settings of this host for as long as somebody renews it.
//!
//! The one part that changes a host of the user's own. Old values are read first; a guard, a second process that knows
//! them, is there before anything changes. Each line `renew` on standard input gives both the whole time again, and is
//! answered. When it runs out, when a line `end` comes or the input ends, the guard puts everything back; if the guard
//! is gone, this process does. If this process is killed or stopped, the guard's input ends, or its time runs out.

use crate::tools::permitted;
use framegauge_drivers::host::settings::Setting;
use framegauge_drivers::own::{self, Attempt, Lock, PollSet};

use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, ExitCode};

const NANOSECONDS: f64 = 1e9;
const LONGEST_SECONDS: f64 = 3600.0;
/// Root's, and empty after a reboot.
const LOCKS: &str = "/run";
const OTHER: &str = "another lease under way on this host";
/// How long the guard may take to end.
const PATIENCE_SECONDS: f64 = 2.0;

/// Settings and their values.
pub type Values = Vec<(Setting, String)>;

/// Runs `lease` or, with the first word `guard`, the second process of one.
pub fn run(words: impl Iterator<Item = String>) -> ExitCode {
    match parse(words) {
        Err(error) => {
            eprintln!("framegauge-agent lease: {error}");
            ExitCode::from(2)
        }
        Ok(asked) => {
            let done = if asked.guard {
                guard(asked.seconds, &asked.values)
            } else {
                hold(asked.seconds, &asked.values)
            };
            done.unwrap_or_else(|error| {
                eprintln!("framegauge-agent lease: {error}");
                ExitCode::FAILURE
            })
        }
    }
}

/// What is asked for.
pub struct Asked {
    guard: bool,
    /// How long it holds unless it is renewed.
    pub seconds: f64,
    /// What each setting is to be.
    pub values: Values,
}

/// Reads what follows `lease`; the message says what was found and what was expected.
pub fn parse(words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut words = words.peekable();
    let guard = words.next_if(|word| word == "guard").is_some();
    let seconds = words.next().unwrap_or_default();
    let seconds: f64 = seconds.parse().map_err(|_| format!("found {seconds:?}, expected seconds"))?;
    if !(seconds > 0.0 && seconds <= LONGEST_SECONDS) {
        return Err(format!("found {seconds} s, expected more than 0 and at most {LONGEST_SECONDS}"));
    }
    let mut values = Values::new();
    for word in words {
        let (name, value) = word
            .split_once('=')
            .ok_or(format!("found {word:?}, expected SETTING=VALUE, such as mtu:eth0=9000"))?;
        let setting = Setting::parse(name)?;
        if !guard {
            setting.allows(value)?;
        }
        if values.iter().any(|(other, _)| *other == setting) {
            return Err(format!("found {setting} twice, expected each setting once"));
        }
        values.push((setting, value.into()));
    }
    if values.is_empty() {
        return Err("found no setting, expected SETTING=VALUE, such as mtu:eth0=9000".into());
    }
    Ok(Asked { guard, seconds, values })
}

/// The holder: changes, renews, and sees to it that all is put back.
fn hold(seconds: f64, wanted: &Values) -> Result<ExitCode, String> {
    let mut input = Lines::new(own::termination_signals().map_err(|error| error.to_string())?)?;
    permitted::check(Path::new(permitted::FILE), wanted.iter().map(|(setting, _)| setting))?;
    let _alone = alone("holder")?;
    let mut before = Values::new();
    for (setting, _) in wanted {
        before.push((setting.clone(), setting.before()?));
    }
    let mut guard = start_guard(seconds, &before)?;
    input.watched = guard.stdout.take();
    let mut held = Vec::new();
    let mut failed = None;
    for ((setting, value), (_, old)) in wanted.iter().zip(&before) {
        let now = setting.write(value).and_then(|()| setting.read());
        match now {
            Ok(now) => held.push(json!({"setting": setting.to_string(), "before": old, "now": now})),
            Err(error) => {
                failed = Some(error.to_string());
                break;
            }
        }
    }
    let ended = if failed.is_none() {
        say(&json!({"held": held, "seconds": seconds}));
        serve(seconds, &mut input, &mut guard)
    } else {
        "failure"
    };
    // Both put everything back: which of them is slow, or stopped, does not matter.
    let left = put_back(&before);
    drop(guard.stdin.take());
    dismiss(&mut guard);
    say(&json!({"ended": ended, "restored": left.is_empty(), "failed": failed.as_ref().or(left.first())}));
    Ok(if left.is_empty() && failed.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A lock that only one process of a network namespace can have, as long as it lives. What another lease has changed is
/// no old value: whoever put that back would leave the host changed for ever. Other users cannot take it.
fn alone(part: &str) -> Result<Lock, String> {
    let unknown =
        |error: &dyn std::fmt::Display| format!("cannot tell whether there is a lease already: {error}");
    let network = std::fs::metadata("/proc/self/ns/net").map_err(|error| unknown(&error))?.ino();
    match Lock::take(&locks(), &format!("framegauge-lease-{network}-{part}")) {
        Ok(Attempt::Ours(lock)) => Ok(lock),
        Ok(Attempt::Theirs) => Err(format!("there is {OTHER}")),
        Err(error) => Err(unknown(&error)),
    }
}

fn locks() -> PathBuf {
    match own::effective_user() {
        0 => LOCKS.into(),
        // Who may change nothing hears that from the kernel.
        user => std::env::temp_dir().join(format!("framegauge-{user}")),
    }
}

/// A guard puts back whatever it is told, so only a lease may tell it: its parent is this same program.
fn is_of_a_lease() -> bool {
    let file =
        |process: &str| std::fs::metadata(format!("/proc/{process}/exe")).map(|exe| (exe.dev(), exe.ino()));
    let parent = std::os::unix::process::parent_id().to_string();
    matches!((file(&parent), file("self")), (Ok(one), Ok(other)) if one == other)
}

fn start_guard(seconds: f64, before: &Values) -> Result<Child, String> {
    let mut words = vec!["lease".to_string(), "guard".to_string(), seconds.to_string()];
    words.extend(before.iter().map(|(setting, value)| format!("{setting}={value}")));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut guard = own::spawn_agent(&words).map_err(|error| error.to_string())?;
    // It has said that it is there before anything changes: one byte, and nothing more until it ends.
    let mut first = [0u8; 1];
    let ready = guard.stdout.as_mut().is_some_and(|output| output.read_exact(&mut first).is_ok());
    if ready { Ok(guard) } else { Err(format!("the guard did not start: is there {OTHER}?")) }
}

/// Renews until the time is over, the input ends, a line says so or a signal comes: which of them.
fn serve(seconds: f64, input: &mut Lines, guard: &mut Child) -> &'static str {
    let mut until = unless_renewed(seconds);
    loop {
        match input.next(until) {
            Ok(line) if line == "renew" => {
                until = unless_renewed(seconds);
                if let Some(pipe) = guard.stdin.as_mut() {
                    let _ = pipe.write_all(b"renew\n");
                }
                say(&json!({"renewed": seconds}));
            }
            Ok(line) if line == "end" => return "end",
            Ok(_) => {}
            Err(why) => return why,
        }
    }
}

/// The guard: waits for the end of the lease, and puts back what it was told.
fn guard(seconds: f64, before: &Values) -> Result<ExitCode, String> {
    let mut input = Lines::new(own::termination_signals().map_err(|error| error.to_string())?)?;
    if !is_of_a_lease() {
        return Err("a guard is started by a lease, which knows the old values".into());
    }
    let _alone = alone("guard")?;
    let mut output = std::io::stdout();
    let _ = output.write_all(b"!").and_then(|()| output.flush());
    let mut until = unless_renewed(seconds);
    while let Ok(line) = input.next(until) {
        if line == "renew" {
            until = unless_renewed(seconds);
        }
    }
    let left = put_back(before);
    for line in &left {
        eprintln!("framegauge-agent lease: {line}");
    }
    Ok(if left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// In the opposite order of the changes; what could not be put back, a line each.
fn put_back(before: &Values) -> Vec<String> {
    let restore = |(setting, value): &(Setting, String)| match setting.read() {
        Ok(now) if now == *value => None,
        _ => setting.write(value).err().map(|error| error.to_string()),
    };
    before.iter().rev().filter_map(restore).collect()
}

/// Waits for the guard's end; one that hangs has nothing left to do.
fn dismiss(guard: &mut Child) {
    let until = deadline(PATIENCE_SECONDS);
    while matches!(guard.try_wait(), Ok(None)) {
        if own::monotonic_nanoseconds() >= until {
            let _ = guard.kill().and_then(|()| guard.wait());
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// When a lease of so many seconds begins to end: a little earlier, so that everything is back within it.
fn unless_renewed(seconds: f64) -> u64 {
    deadline(seconds - (seconds / 10.0).min(1.0))
}

fn deadline(seconds: f64) -> u64 {
    own::monotonic_nanoseconds() + (seconds * NANOSECONDS) as u64
}

fn say(value: &serde_json::Value) {
    let mut output = std::io::stdout();
    let _ = writeln!(output, "{value}").and_then(|()| output.flush());
}

/// Lines of standard input, until a time or a signal to end.
struct Lines {
    input: File,
    signals: OwnedFd,
    /// Ends with the guard.
    watched: Option<ChildStdout>,
    pending: Vec<u8>,
}

impl Lines {
    const LONGEST: usize = 4096;

    fn new(signals: OwnedFd) -> Result<Self, String> {
        // Unbuffered: what a buffer holds is not seen by poll.
        let input = std::io::stdin().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
        Ok(Self { input: input.into(), signals, watched: None, pending: Vec::new() })
    }

    /// The next line; otherwise why there is none: "time", "signal", "input" or "guard".
    fn next(&mut self, until: u64) -> Result<String, &'static str> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim().to_string());
            }
            let now = own::monotonic_nanoseconds();
            if now >= until {
                return Err("time");
            }
            if self.pending.len() > Self::LONGEST {
                return Err("input");
            }
            let mut set = PollSet::default();
            let input = set.add(self.input.as_raw_fd(), true, false);
            let signals = set.add(self.signals.as_raw_fd(), true, false);
            let watched = self.watched.as_ref().map(|output| set.add(output.as_raw_fd(), true, false));
            set.wait(Some(until - now)).map_err(|_| "input")?;
            // It says nothing after its first line: it has ended. Alone nobody would be left to undo this.
            if watched.is_some_and(|place| set.readable(place)) {
                return Err("guard");
            }
            if set.readable(signals) {
                return Err("signal");
            }
            if set.readable(input) {
                let mut bytes = [0u8; 512];
                match self.input.read(&mut bytes) {
                    Ok(count) if count > 0 => self.pending.extend_from_slice(&bytes[..count]),
                    _ => return Err("input"),
                }
            }
        }
    }
}
