//! A second process of this binary that works for an agent, perhaps with more privilege: lines in, JSON out.

use crate::pipe::message::Failure;
use framegauge_drivers::own;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long it may take to say something, or to end.
const PATIENCE: Duration = Duration::from_secs(15);

/// One of them; it ends when it is dropped, since its input does.
pub struct Helper {
    name: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Helper {
    /// Starts this binary with `words`, with `sudo` through `sudo -n`.
    pub fn start(name: &'static str, words: &[String], sudo: bool) -> Result<Self, Failure> {
        Self::of(name, own::spawn_self(words, sudo)?)
    }

    /// One that has been started, with pipes.
    pub fn of(name: &'static str, mut child: Child) -> Result<Self, Failure> {
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::lost(format!("the {name} has no pipe")));
        };
        Ok(Self { name, child, input: Some(input), lines: listen(output) })
    }

    /// What it says next; why it says nothing otherwise.
    pub fn hear(&mut self) -> Result<Value, Failure> {
        self.lines.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => Failure::lost(format!("the {} says nothing", self.name)),
            RecvTimeoutError::Disconnected => {
                let (name, words) = (self.name, self.last_words());
                Failure::state(format!("no {name}: {words}"))
            }
        })
    }

    /// What it, or sudo, said on standard error.
    fn last_words(&mut self) -> String {
        let text = self.child.stderr.take().and_then(|errors| std::io::read_to_string(errors).ok());
        let text = text.unwrap_or_default();
        let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        last.map_or_else(|| "it ended without a word".to_string(), ToString::to_string)
    }

    /// Says a line to it; false if it cannot hear any more.
    pub fn tell(&mut self, line: &str) -> bool {
        self.input.as_mut().is_some_and(|input| input.write_all(line.as_bytes()).is_ok())
    }

    /// Ends its input, and waits for its end.
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
