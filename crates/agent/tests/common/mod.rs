//! An agent at the other end of a pipe.
#![allow(clippy::disallowed_methods, reason = "a test starts the agent")]
#![allow(dead_code, reason = "not every test uses all of it")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The agent.
pub const BINARY: &str = env!("CARGO_BIN_EXE_framegauge-agent");

/// A copy of the agent that every user may run.
fn reachable_binary() -> PathBuf {
    static COPIES: AtomicU32 = AtomicU32::new(0);
    let number = COPIES.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("framegauge-agent-{}-{number}", std::process::id()));
    // By another program: what this one has open for writing, a child that another test starts meanwhile has as well,
    // and then the copy is "text file busy".
    let copied = Command::new("install").args(["-m", "755", BINARY]).arg(&path).status();
    assert!(copied.expect("a program").success());
    path
}

/// Whether this is root; otherwise what needs root is not run, in CI it fails.
pub fn is_root() -> bool {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let root =
        text.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"));
    if !root {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "needs root, also in CI");
        eprintln!("not run: needs root");
    }
    root
}

/// The running children of a process.
pub fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("procfs").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = parent.to_string();
    pids.filter(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        fields.next().is_some_and(|state| state != "Z") && fields.next() == Some(&parent)
    })
    .collect()
}

/// Kills processes of these tests, as nearly at once as can be.
pub fn killed(pids: &[u32]) {
    signalled("-KILL", pids);
}

/// Has a process do nothing more.
pub fn stopped(pid: u32) {
    signalled("-STOP", &[pid]);
}

fn signalled(signal: &str, pids: &[u32]) {
    let done = Command::new("kill").arg(signal).args(pids.iter().map(u32::to_string)).status();
    assert!(done.expect("a program").success());
}

/// Waits for what must come; how long it takes is nobody's business, unless it takes for ever.
pub fn eventually(what: &str, found: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !found() {
        assert!(Instant::now() < until, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// An agent, and the pipe to it.
pub struct Agent {
    process: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    last: u64,
}

impl Agent {
    /// Starts it, and greets it.
    pub fn start() -> Self {
        Self::start_with(&["host"])
    }

    /// Starts one with these arguments, and greets it.
    pub fn start_with(arguments: &[&str]) -> Self {
        let mut command = Command::new(BINARY);
        command.args(arguments);
        Self::start_by(command)
    }

    /// An agent of the user `nobody`, who may do nothing special; only root can start it.
    pub fn start_as_nobody() -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--"]);
        // Nobody may not enter the folder of the build.
        let binary = reachable_binary();
        command.arg(&binary).arg("host");
        let agent = Self::start_by(command);
        std::fs::remove_file(binary).expect("it runs, and needs no name any more");
        agent
    }

    /// A rack agent; only root can start it.
    pub fn start_rack() -> Self {
        Self::start_with(&["rack"])
    }

    fn start_by(mut command: Command) -> Self {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the agent starts");
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

    /// The result of a request that must succeed.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].take()
    }

    /// The error of a request that must fail.
    pub fn refusal(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params);
        assert!(answer["error"].is_object(), "{method}: {answer}");
        answer["error"].take()
    }

    /// What a program prints on its standard output, which must end by itself and well.
    pub fn printed(&mut self, spawn: Value) -> String {
        let process = self.ask("process.spawn", spawn)["process"].clone();
        let ended = self.ask("process.wait", json!({"process": process, "timeout_seconds": 30}));
        let out = self.output(&process, "stdout");
        assert_eq!(ended["exit_code"], 0, "{ended} {out} {}", self.output(&process, "stderr"));
        out
    }

    /// What a program has printed so far.
    pub fn output(&mut self, process: &Value, stream: &str) -> String {
        let asked = json!({"process": process, "stream": stream, "offset_bytes": 0, "length_bytes": 1 << 20});
        let data = self.ask("process.output", asked)["data"].take();
        let bytes = STANDARD.decode(data.as_str().expect("text")).expect("base64");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Ends it by a signal that it cannot know of.
    pub fn kill(mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
    }

    /// Ends it, by closing its input.
    pub fn end(mut self) {
        drop(self.input.take());
        assert!(self.process.wait().expect("the agent ends").success());
    }
}
