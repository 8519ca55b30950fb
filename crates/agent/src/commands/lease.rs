//! `lease.begin`, `lease.renew`, `lease.end`: changes of this host that last only while they are renewed.

use crate::message::{Answer, Failure, Nothing, params};
use crate::session::{Call, lock};
use framegauge_drivers::process;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long the lease may take to change, or to put back.
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    settings: BTreeMap<String, String>,
    seconds: f64,
    #[serde(default)]
    sudo: bool,
}

/// A lease under way: a program of its own, which may run with more privilege than this one.
pub struct Lease {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Lease {
    fn start(asked: &Begin) -> Result<(Self, Value), Failure> {
        let mut words = vec!["lease".to_string(), asked.seconds.to_string()];
        words.extend(asked.settings.iter().map(|(setting, value)| format!("{setting}={value}")));
        let mut child = process::spawn_self(&words, asked.sudo)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::lost("the lease has no pipe"));
        };
        let mut lease = Self { child, input: Some(input), lines: listen(output) };
        let first = lease.hear()?;
        if first["held"].is_array() {
            return Ok((lease, first));
        }
        lease.stop();
        let why = first["failed"].as_str().unwrap_or("nothing was said");
        Err(Failure::state(format!("nothing was changed: {why}")))
    }

    fn hear(&mut self) -> Result<Value, Failure> {
        self.lines.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => Failure::lost("the lease says nothing"),
            RecvTimeoutError::Disconnected => Failure::state(format!("no lease: {}", self.last_words())),
        })
    }

    /// What it, or sudo, said on standard error.
    fn last_words(&mut self) -> String {
        let said = self.child.stderr.take().and_then(|errors| std::io::read_to_string(errors).ok());
        let said = said.unwrap_or_default();
        let last: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        last.last().map_or_else(|| "it ended without a word".to_string(), ToString::to_string)
    }

    fn tell(&mut self, word: &str) -> bool {
        self.input.as_mut().is_some_and(|input| input.write_all(word.as_bytes()).is_ok())
    }

    /// Lets it put everything back, and waits for that.
    pub fn stop(&mut self) {
        drop(self.input.take());
        let until = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn listen(output: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let Ok(value) = serde_json::from_str(&line) else { break };
            if sender.send(value).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Changes settings; answers with their old values and what they are now.
pub fn begin(call: &Call) -> Answer {
    let asked: Begin = params(&call.request)?;
    let mut held = lock(&call.session.host.lease);
    if held.is_some() {
        return Err(Failure::state("a lease is under way: lease.end comes first"));
    }
    let (lease, first) = Lease::start(&asked)?;
    *held = Some(lease);
    Ok(first)
}

/// Gives the lease its whole time again.
pub fn renew(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let mut held = lock(&call.session.host.lease);
    let lease = held.as_mut().ok_or_else(|| Failure::state("lease.begin comes first"))?;
    if lease.lines.try_recv().is_err() && lease.tell("renew\n") {
        return Ok(json!({}));
    }
    if let Some(mut over) = held.take() {
        over.stop();
    }
    Err(Failure::state("the lease has run out, and everything was put back"))
}

/// Puts everything back.
pub fn end(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let lease = lock(&call.session.host.lease).take();
    let mut lease = lease.ok_or_else(|| Failure::state("lease.begin comes first"))?;
    lease.tell("end\n");
    let said = lease.hear();
    lease.stop();
    said
}
