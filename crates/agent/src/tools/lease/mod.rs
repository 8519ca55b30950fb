//! `framegauge-agent lease SECONDS SETTING=VALUE…`: changes settings of this host for as long as somebody renews it.
//!
//! The one part that changes a host of the user's own. Old values are read first; a guard, a second process that knows
//! them, is there before anything changes. Each line `renew` on standard input gives both the whole time again, and is
//! answered. When it runs out, when a line `end` comes or the input ends, the guard puts everything back; if the guard
//! is gone, this process does. If this process is killed or stopped, the guard's input ends, or its time runs out.
//!
//! Further changes stand on the first ones (`set ["mtu:eth0=9000"]`), and are put back before them (`back 2` leaves two).
//! `framegauge-agent change` is the same for changes that may stay: `keep 2` has the two oldest outlast the lease, and
//! `reopen ["10.0.0.2"]` ends connections with these hosts whose MSS is below what their routes allow now.

mod change;
mod guard;
mod lines;

use crate::tools::permitted::{self, Permitted};
use framegauge_drivers::generators::sockets::end_small_connections_with;
use framegauge_drivers::host::settings::Setting;
use framegauge_drivers::own::{self, Attempt, Lock, lock_folder};

use change::{Change, Values, before, put_back, told, write};
use guard::Guard;
use lines::Lines;
use serde_json::{Value, json};
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

const NANOSECONDS: f64 = 1e9;
const LONGEST_SECONDS: f64 = 3600.0;
const OTHER: &str = "another lease under way on this host";
const LOCKS: &str = "framegauge-lease-";

/// Runs `lease` or `change`.
pub fn run(command: &str, words: impl Iterator<Item = String>) -> ExitCode {
    let report = |error: String, code: u8| {
        eprintln!("framegauge-agent {command}: {error}");
        ExitCode::from(code)
    };
    match parse(words) {
        Err(error) => report(error, 2),
        Ok(request) => hold(&request, command == "change").unwrap_or_else(|error| report(error, 1)),
    }
}

/// What is asked for.
pub struct Asked {
    /// How long it holds unless it is renewed.
    pub seconds: f64,
    /// What each setting is to be.
    pub values: Values,
}

/// Reads what follows `lease`; the message says what was found and what was expected.
pub fn parse(words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut words = words;
    let seconds = words.next().unwrap_or_default();
    let seconds: f64 = seconds.parse().map_err(|_| format!("found {seconds:?}, expected seconds"))?;
    if !(seconds > 0.0 && seconds <= LONGEST_SECONDS) {
        return Err(format!("found {seconds} s, expected more than 0 and at most {LONGEST_SECONDS}"));
    }
    let mut values = Values::new();
    for word in words {
        let (setting, value) = named(&word)?;
        setting.allows(&value)?;
        if values.iter().any(|(other, _)| *other == setting) {
            return Err(format!("found {setting} twice, expected each setting once"));
        }
        values.push((setting, value));
    }
    if values.is_empty() {
        return Err("found no setting, expected SETTING=VALUE, such as mtu:eth0=9000".into());
    }
    Ok(Asked { seconds, values })
}

fn named(word: &str) -> Result<(Setting, String), String> {
    let (name, value) = word
        .split_once('=')
        .ok_or(format!("found {word:?}, expected SETTING=VALUE, such as mtu:eth0=9000"))?;
    Ok((Setting::parse(name)?, value.into()))
}

/// Reads a list of `SETTING=VALUE` as JSON.
fn parsed(text: &str) -> Result<Values, String> {
    let words: Vec<String> =
        serde_json::from_str(text).map_err(|_| format!("found {text:?}, expected a list"))?;
    words.iter().map(|word| named(word)).collect()
}

fn words_of(values: &[(Setting, String)]) -> Vec<String> {
    values.iter().map(|(setting, value)| format!("{setting}={value}")).collect()
}

/// The changes of a lease in their order, and the process that looks after them.
struct Held {
    guard: Guard,
    changes: Vec<Change>,
    /// What was changed and is there for good.
    kept: usize,
}

impl Held {
    /// Makes changes: the guard has read what was there before. All of them, or none.
    fn make(&mut self, values: &Values) -> Result<Vec<Value>, String> {
        self.guard.tell(&format!("more {}", json!(words_of(values))))?;
        let count = self.changes.len();
        before(values, &mut self.changes)?;
        write(values, &self.changes[count..])
    }

    /// Further changes.
    fn set(&mut self, text: &str) -> Result<Value, String> {
        let values = parsed(text)?;
        demand(&values)?;
        let count = self.changes.len();
        match self.make(&values) {
            Ok(held) => Ok(json!({"held": held})),
            Err(error) => {
                let left = self.back(count)?;
                Err(left["failed"].as_str().map_or(error.clone(), |other| format!("{error}; {other}")))
            }
        }
    }

    /// Puts back the newest changes, so that so many are left.
    fn back(&mut self, count: usize) -> Result<Value, String> {
        let count = count.min(self.changes.len());
        let differences = put_back(&self.changes[count..]);
        if differences.is_empty() {
            self.changes.truncate(count);
            self.guard.tell(&format!("left {count}"))?;
        }
        let mut answer = told(&differences, None);
        answer["left"] = json!(self.changes.len());
        Ok(answer)
    }

    /// Has the oldest changes outlast the lease.
    fn keep(&mut self, count: usize) -> Result<Value, String> {
        let count = count.min(self.changes.len());
        self.guard.tell(&format!("kept {count}"))?;
        self.changes.drain(..count);
        self.kept += count;
        Ok(json!({"kept": self.kept, "left": self.changes.len()}))
    }

    /// Answers one line; `None` if it is no command.
    fn answer(&mut self, line: &str, may_stay: bool) -> Option<Result<Value, String>> {
        let (word, rest) = line.split_once(' ')?;
        let number = || rest.parse().map_err(|_| format!("found {rest:?}, expected how many changes"));
        match word {
            "set" => Some(self.set(rest)),
            "back" => Some(number().and_then(|count| self.back(count))),
            "keep" if may_stay => Some(number().and_then(|count| self.keep(count))),
            "reopen" if may_stay => Some(reopen(rest)),
            "keep" | "reopen" => {
                Some(Err(format!("found {word}, expected framegauge-agent change for that")))
            }
            _ => None,
        }
    }
}

fn demand(values: &Values) -> Result<(), String> {
    Permitted::read(Path::new(permitted::FILE))?.demand(values.iter())
}

fn reopen(text: &str) -> Result<Value, String> {
    let others: Vec<IpAddr> =
        serde_json::from_str(text).map_err(|_| format!("found {text:?}, expected addresses"))?;
    let closed = end_small_connections_with(|address| others.contains(&address));
    Ok(json!({"closed": closed.map_err(|error| error.to_string())?}))
}

/// The holder: changes, renews, and sees to it that all is put back.
fn hold(request: &Asked, may_stay: bool) -> Result<ExitCode, String> {
    let mut input = Lines::new(own::termination_signals().map_err(|error| error.to_string())?)?;
    demand(&request.values)?;
    let _alone = alone("holder")?;
    Lock::sweep(&lock_folder(), LOCKS);
    let mut held = Held { guard: Guard::start(request.seconds)?, changes: Vec::new(), kept: 0 };
    let outcome = held.make(&request.values);
    let ended = match &outcome {
        Ok(changed) => {
            say(&json!({"held": changed, "seconds": request.seconds}));
            serve(request.seconds, &mut input, &mut held, may_stay)
        }
        Err(_) => "failure",
    };
    let differences = put_back(&held.changes);
    if differences.is_empty() {
        let _ = held.guard.tell("left 0");
    }
    // What it could not do, the guard tries again.
    held.guard.dismiss();
    let mut end = told(&differences, outcome.as_ref().err());
    end["ended"] = json!(ended);
    say(&end);
    Ok(if differences.is_empty() && outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A lock that only one process of a network namespace can have, as long as it lives. What another lease has changed is
/// no old value: whoever put that back would leave the host changed for ever. Other users cannot take it.
fn alone(part: &str) -> Result<Lock, String> {
    let unknown =
        |error: &dyn std::fmt::Display| format!("cannot tell whether there is a lease already: {error}");
    let network = std::fs::metadata("/proc/self/ns/net").map_err(|error| unknown(&error))?.ino();
    match Lock::take(&lock_folder(), &format!("{LOCKS}{network}-{part}")) {
        Ok(Attempt::Ours(lock)) => Ok(lock),
        Ok(Attempt::Theirs) => Err(format!("there is {OTHER}")),
        Err(error) => Err(unknown(&error)),
    }
}

/// Renews and changes until the time is over, the input ends, a line says so or a signal comes: which of them.
fn serve(seconds: f64, input: &mut Lines, held: &mut Held, may_stay: bool) -> &'static str {
    let mut until = unless_renewed(seconds, 1.0);
    loop {
        // A guard says nothing unless it is asked: it has ended. Alone nobody would be left to undo this.
        let line = match input.next(until, Some(held.guard.watched())) {
            Ok(line) => line,
            Err(reason) => return reason,
        };
        match line.as_str() {
            "renew" => {
                until = unless_renewed(seconds, 1.0);
                held.guard.renew();
                say(&json!({"renewed": seconds}));
            }
            "end" => return "end",
            _ => match held.answer(&line, may_stay) {
                Some(Ok(answer)) => say(&answer),
                Some(Err(error)) => say(&json!({"failed": error})),
                None => {}
            },
        }
    }
}

/// When a lease of so many seconds begins to end: a little earlier, so that everything is back within it. `later`: by how
/// much that is less.
fn unless_renewed(seconds: f64, later: f64) -> u64 {
    deadline(seconds - (seconds / 10.0).min(1.0) / later)
}

fn deadline(seconds: f64) -> u64 {
    own::monotonic_nanoseconds() + (seconds * NANOSECONDS) as u64
}

fn say(value: &Value) {
    let mut output = std::io::stdout();
    let _ = writeln!(output, "{value}").and_then(|()| output.flush());
}
