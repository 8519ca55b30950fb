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

mod guard;
mod lines;

use crate::tools::permitted;
use framegauge_drivers::generators::sockets::end_small_connections_with;
use framegauge_drivers::host::settings::Setting;
use framegauge_drivers::own::{self, Attempt, Lock, lock_folder};

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

/// Settings and their values.
pub type Values = Vec<(Setting, String)>;

/// Runs `lease` or `change`; `lease` with the first word `guard` is the second process of either.
pub fn run(command: &str, words: impl Iterator<Item = String>) -> ExitCode {
    let failed = |error: String| {
        eprintln!("framegauge-agent {command}: {error}");
        ExitCode::FAILURE
    };
    match parse(words) {
        Err(error) => {
            eprintln!("framegauge-agent {command}: {error}");
            ExitCode::from(2)
        }
        Ok(asked) if asked.guard => guard::run(asked.seconds, asked.values).unwrap_or_else(failed),
        Ok(asked) => hold(&asked, command == "change").unwrap_or_else(failed),
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
        let (setting, value) = named(&word)?;
        if !guard {
            setting.allows(&value)?;
        }
        if values.iter().any(|(other, _)| *other == setting) {
            return Err(format!("found {setting} twice, expected each setting once"));
        }
        values.push((setting, value));
    }
    if values.is_empty() {
        return Err("found no setting, expected SETTING=VALUE, such as mtu:eth0=9000".into());
    }
    Ok(Asked { guard, seconds, values })
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

/// The changes of a lease, the process that looks after them, and the old values in the order of the changes.
struct Held {
    guard: Guard,
    before: Values,
    /// What was changed and is there for good.
    kept: usize,
}

impl Held {
    /// Reads the old values; the guard has them before anything changes.
    fn begin(asked: &Asked) -> Result<Self, String> {
        let before = before(&asked.values)?;
        Ok(Self { guard: Guard::start(asked.seconds, &before)?, before, kept: 0 })
    }

    /// Writes settings whose old values the guard has: what they were and are.
    fn write(&self, wanted: &Values) -> Result<Vec<Value>, String> {
        let first = self.before.len() - wanted.len();
        let mut held = Vec::new();
        for ((setting, value), (_, old)) in wanted.iter().zip(&self.before[first..]) {
            let now =
                setting.write(value).and_then(|()| setting.read()).map_err(|error| error.to_string())?;
            held.push(json!({"setting": setting.to_string(), "before": old, "now": now}));
        }
        Ok(held)
    }

    /// Further changes: all of them, or none.
    fn set(&mut self, text: &str) -> Result<Value, String> {
        let wanted = parsed(text)?;
        for (setting, value) in &wanted {
            setting.allows(value)?;
        }
        permitted::check(Path::new(permitted::FILE), wanted.iter().map(|(setting, _)| setting))?;
        let before = before(&wanted)?;
        self.guard.tell(&format!("more {}", json!(words_of(&before))))?;
        let count = self.before.len();
        self.before.extend(before);
        match self.write(&wanted) {
            Ok(held) => Ok(json!({"held": held})),
            Err(error) => {
                let left = self.back(count)?;
                Err(left["failed"].as_str().map_or(error.clone(), |other| format!("{error}; {other}")))
            }
        }
    }

    /// Puts back the newest changes, so that so many are left.
    fn back(&mut self, count: usize) -> Result<Value, String> {
        let count = count.min(self.before.len());
        let left = put_back(&self.before[count..]);
        if left.is_empty() {
            self.before.truncate(count);
            self.guard.tell(&format!("left {count}"))?;
        }
        Ok(json!({"restored": left.is_empty(), "failed": left.first(), "left": self.before.len()}))
    }

    /// Has the oldest changes outlast the lease.
    fn keep(&mut self, count: usize) -> Result<Value, String> {
        let count = count.min(self.before.len());
        self.guard.tell(&format!("kept {count}"))?;
        self.before.drain(..count);
        self.kept += count;
        Ok(json!({"kept": self.kept, "left": self.before.len()}))
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

fn before(wanted: &Values) -> Result<Values, String> {
    wanted.iter().map(|(setting, _)| Ok((setting.clone(), setting.before()?))).collect()
}

fn reopen(text: &str) -> Result<Value, String> {
    let others: Vec<IpAddr> =
        serde_json::from_str(text).map_err(|_| format!("found {text:?}, expected addresses"))?;
    let closed = end_small_connections_with(|address| others.contains(&address));
    Ok(json!({"closed": closed.map_err(|error| error.to_string())?}))
}

/// The holder: changes, renews, and sees to it that all is put back.
fn hold(asked: &Asked, may_stay: bool) -> Result<ExitCode, String> {
    let mut input = Lines::new(own::termination_signals().map_err(|error| error.to_string())?)?;
    permitted::check(Path::new(permitted::FILE), asked.values.iter().map(|(setting, _)| setting))?;
    let _alone = alone("holder")?;
    let mut held = Held::begin(asked)?;
    let written = held.write(&asked.values);
    let ended = match &written {
        Ok(changed) => {
            say(&json!({"held": changed, "seconds": asked.seconds}));
            serve(asked.seconds, &mut input, &mut held, may_stay)
        }
        Err(_) => "failure",
    };
    // Both put everything back: which of them is slow, or stopped, does not matter.
    let left = put_back(&held.before);
    held.guard.dismiss();
    let failed = written.err();
    say(&json!({"ended": ended, "restored": left.is_empty(), "failed": failed.as_ref().or(left.first())}));
    Ok(if left.is_empty() && failed.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A lock that only one process of a network namespace can have, as long as it lives. What another lease has changed is
/// no old value: whoever put that back would leave the host changed for ever. Other users cannot take it.
fn alone(part: &str) -> Result<Lock, String> {
    let unknown =
        |error: &dyn std::fmt::Display| format!("cannot tell whether there is a lease already: {error}");
    let network = std::fs::metadata("/proc/self/ns/net").map_err(|error| unknown(&error))?.ino();
    match Lock::take(&lock_folder(), &format!("framegauge-lease-{network}-{part}")) {
        Ok(Attempt::Ours(lock)) => Ok(lock),
        Ok(Attempt::Theirs) => Err(format!("there is {OTHER}")),
        Err(error) => Err(unknown(&error)),
    }
}

/// Renews and changes until the time is over, the input ends, a line says so or a signal comes: which of them.
fn serve(seconds: f64, input: &mut Lines, held: &mut Held, may_stay: bool) -> &'static str {
    let mut until = unless_renewed(seconds);
    loop {
        // A guard says nothing unless it is asked: it has ended. Alone nobody would be left to undo this.
        let line = match input.next(until, held.guard.watched()) {
            Ok(line) => line,
            Err(why) => return why,
        };
        match line.as_str() {
            "renew" => {
                until = unless_renewed(seconds);
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

/// In the opposite order of the changes; what could not be put back, a line each.
fn put_back(before: &[(Setting, String)]) -> Vec<String> {
    let restore = |(setting, value): &(Setting, String)| match setting.read() {
        Ok(now) if now == *value => None,
        _ => setting.write(value).err().map(|error| error.to_string()),
    };
    before.iter().rev().filter_map(restore).collect()
}

/// When a lease of so many seconds begins to end: a little earlier, so that everything is back within it.
fn unless_renewed(seconds: f64) -> u64 {
    deadline(seconds - (seconds / 10.0).min(1.0))
}

fn deadline(seconds: f64) -> u64 {
    own::monotonic_nanoseconds() + (seconds * NANOSECONDS) as u64
}

fn say(value: &Value) {
    let mut output = std::io::stdout();
    let _ = writeln!(output, "{value}").and_then(|()| output.flush());
}
