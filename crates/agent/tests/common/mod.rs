//! A host agent at the other end of a pipe.
#![allow(clippy::disallowed_methods, reason = "a test starts the agent")]
#![allow(dead_code, reason = "not every test uses all of it")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A host agent, and the pipe to it.
pub struct Agent {
    process: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    last: u64,
}

impl Agent {
    /// Starts it, and greets it.
    pub fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_framegauge-agent"))
            .arg("host")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the agent starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let mut agent = Self { process, input, output, last: 0 };
        agent.call("hello", json!({"protocol": 1, "client": "test"}));
        agent
    }

    /// Sends a request; its number.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        writeln!(self.input.as_mut().expect("a pipe"), "{message}").expect("the agent reads");
        self.last
    }

    /// Sends a line as it is, with its end.
    pub fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("a pipe");
        input.write_all(line).and_then(|()| input.write_all(b"\n")).expect("the agent reads");
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The next message that is no progress.
    pub fn answer(&mut self) -> Value {
        loop {
            let line = self.output.next().expect("an answer").expect("a readable answer");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message.get("method").is_none() {
                return message;
            }
        }
    }

    /// The answer to a request.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let number = self.send(method, params);
        let answer = self.answer();
        assert_eq!(answer["id"], number);
        answer
    }

    /// Ends it, by closing its input.
    pub fn end(mut self) {
        drop(self.input.take());
        assert!(self.process.wait().expect("the agent ends").success());
    }
}
