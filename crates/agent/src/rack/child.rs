//! The agent of a host, a child process of the rack agent, with requests in parallel on its one pipe.

use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, PROTOCOL};
use framegauge_drivers::own;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a child may take to put everything back before it is ended.
const PATIENCE: Duration = Duration::from_secs(5);

enum Word {
    Progress(Value),
    Answer(Answer),
}

type Waiting = Arc<Mutex<Option<HashMap<u64, Sender<Word>>>>>;

/// A host's agent.
pub struct ChildAgent {
    name: String,
    child: Mutex<Child>,
    input: Mutex<Option<ChildStdin>>,
    waiting: Waiting,
    next: AtomicU64,
}

impl ChildAgent {
    /// Starts the agent of host `name`, in fresh namespaces, and greets it.
    pub fn start(name: &str, arguments: &[&str]) -> Result<Arc<Self>, Failure> {
        let mut child = own::spawn_agent(arguments)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::lost(format!("the agent of {name} has no pipe")));
        };
        let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        let hears = waiting.clone();
        std::thread::spawn(move || listen(output, &hears));
        let agent = Arc::new(Self {
            name: name.to_string(),
            child: Mutex::new(child),
            input: Mutex::new(Some(input)),
            waiting,
            next: AtomicU64::new(1),
        });
        let hello = json!({"protocol": PROTOCOL, "client": "rack agent"});
        match agent.call("hello", hello) {
            Ok(_) => Ok(agent),
            Err(failure) => {
                agent.stop();
                Err(failure)
            }
        }
    }

    /// The child's process id.
    pub fn pid(&self) -> u32 {
        lock(&self.child).id()
    }

    /// Asks and waits for the answer.
    pub fn call(&self, method: &str, params: Value) -> Answer {
        let (_, words) = self.ask(method, params)?;
        self.hear(&words, &mut |_| {})
    }

    /// Asks; the answer comes on the channel. Returns the child's number for the request.
    fn ask(&self, method: &str, params: Value) -> Result<(u64, Receiver<Word>), Failure> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = channel();
        match lock(&self.waiting).as_mut() {
            Some(waiting) => waiting.insert(id, sender),
            None => return Err(self.gone()),
        };
        let mut line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        line.push('\n');
        let mut input = lock(&self.input);
        let written =
            input.as_mut().map(|input| input.write_all(line.as_bytes()).and_then(|()| input.flush()));
        match written {
            Some(Ok(())) => Ok((id, receiver)),
            _ => Err(self.gone()),
        }
    }

    fn hear(&self, words: &Receiver<Word>, progress: &mut dyn FnMut(&Value)) -> Answer {
        loop {
            match words.recv() {
                Ok(Word::Progress(params)) => progress(&params),
                Ok(Word::Answer(answer)) => return answer,
                Err(_) => return Err(self.gone()),
            }
        }
    }

    fn gone(&self) -> Failure {
        Failure::lost(format!("the agent of {} has ended", self.name))
    }

    /// Passes a request on: `cancel` gets a hook that cancels it in the child, `progress` its progress.
    pub fn relay(
        self: &Arc<Self>,
        method: &str,
        params: Value,
        on_cancel: impl FnOnce(Box<dyn FnOnce() + Send>),
        progress: &mut dyn FnMut(&Value),
    ) -> Answer {
        let (id, words) = self.ask(method, params)?;
        let agent = self.clone();
        on_cancel(Box::new(move || drop(agent.ask("cancel", json!({"id": id})))));
        self.hear(&words, progress)
    }

    /// Closes the child's pipe, so that it puts everything back; ends it if it does not. True if it went by itself.
    pub fn stop(&self) -> bool {
        drop(lock(&self.input).take());
        let mut child = lock(&self.child);
        let deadline = Instant::now() + PATIENCE;
        let mut pause = Duration::from_micros(200);
        while Instant::now() < deadline {
            if let Ok(Some(_)) = child.try_wait() {
                return true;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
        false
    }
}

/// Hands the child's messages to whoever waits for them; at the end nobody waits any more.
fn listen(output: ChildStdout, waiting: &Waiting) {
    for line in BufReader::new(output).lines() {
        let Some(message) = line.ok().and_then(|line| serde_json::from_str::<Value>(&line).ok()) else {
            break;
        };
        if message["method"] == "progress" {
            let params = &message["params"];
            if let (Some(id), Some(waiting)) = (params["id"].as_u64(), lock(waiting).as_ref())
                && let Some(sender) = waiting.get(&id)
            {
                let _ = sender.send(Word::Progress(params.clone()));
            }
            continue;
        }
        let Some(id) = message["id"].as_u64() else { continue };
        let answer = match message.get("error") {
            Some(error) => Err(Failure::from_value(error)),
            None => Ok(message["result"].clone()),
        };
        if let Some(sender) = lock(waiting).as_mut().and_then(|waiting| waiting.remove(&id)) {
            let _ = sender.send(Word::Answer(answer));
        }
    }
    lock(waiting).take();
}
