//! What a command gets: its request, the conversation that it belongs to, and whether it is to stop.

use crate::arguments::Role;
use crate::host::state::HostState;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Request};
use crate::rack::state::RackState;
use framegauge_drivers::Result;
use framegauge_drivers::spool::Spools;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Requests that may be under way, each on a thread of its own: some for each of 250 hosts.
pub(super) const MOST_REQUESTS: usize = 2048;

type Hook = Box<dyn FnOnce() + Send>;

/// Tells a command that it is to stop.
#[derive(Default)]
pub struct Cancellation {
    asked: AtomicBool,
    hook: Mutex<Option<Hook>>,
}

impl Cancellation {
    /// Whether it was asked to stop.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Calls `hook` when asked to stop, at once if that was before.
    pub fn on_cancel(&self, hook: Hook) {
        *lock(&self.hook) = Some(hook);
        if self.asked() {
            self.call();
        }
    }

    fn cancel(&self) {
        self.asked.store(true, Ordering::Release);
        self.call();
    }

    fn call(&self) {
        if let Some(hook) = lock(&self.hook).take() {
            hook();
        }
    }
}

/// What a command gets besides its request.
pub struct Call {
    /// The conversation.
    pub session: Arc<Session>,
    /// The request.
    pub request: Request,
    /// Whether to stop.
    pub cancellation: Arc<Cancellation>,
}

impl Call {
    /// Tells how far the work is.
    pub fn progress(&self, fraction: Option<f64>, text: &str) {
        let fraction = fraction.map(|fraction| fraction.clamp(0.0, 1.0));
        let params = json!({"id": self.request.id, "fraction": fraction, "text": text});
        self.session.write(&json!({"jsonrpc": "2.0", "method": "progress", "params": params}));
    }
}

/// The state of the conversation.
pub struct Session {
    /// What kind of agent this is.
    pub role: Role,
    /// Bulk records.
    pub spools: Spools,
    /// The rack, on a rack agent.
    pub rack: RackState,
    /// The host, on a host agent.
    pub host: HostState,
    greeted: AtomicBool,
    running: Mutex<HashMap<u64, Arc<Cancellation>>>,
    output: Mutex<std::io::Stdout>,
}

impl Session {
    /// A conversation in which nothing was said yet.
    pub(super) fn new(role: Role) -> Result<Self> {
        Ok(Self {
            host: HostState::new(&role)?,
            rack: RackState::new(&role),
            role,
            spools: Spools::default(),
            greeted: AtomicBool::new(false),
            running: Mutex::default(),
            output: Mutex::new(std::io::stdout()),
        })
    }

    /// Writes one message. A reader that is gone is noticed at the other end of the pipe.
    pub fn write(&self, message: &Value) {
        let mut output = lock(&self.output);
        let mut line = message.to_string();
        line.push('\n');
        let _ = output.write_all(line.as_bytes()).and_then(|()| output.flush());
    }

    pub(super) fn answer(&self, id: Option<u64>, answer: &Answer) {
        self.write(&match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(failure) => json!({"jsonrpc": "2.0", "id": id, "error": failure.value()}),
        });
    }

    /// Asks the request `id` to stop; false when it is not running.
    pub fn cancel(&self, id: u64) -> bool {
        let running = lock(&self.running).get(&id).cloned();
        running.inspect(|cancellation| cancellation.cancel()).is_some()
    }

    /// Notes that the other end has said hello.
    pub fn greet(&self) {
        self.greeted.store(true, Ordering::Release);
    }

    /// Whether the other end has said hello.
    pub(super) fn is_greeted(&self) -> bool {
        self.greeted.load(Ordering::Acquire)
    }

    /// Notes that a request is at work, which can be asked to stop; false if there are too many.
    pub(super) fn note_running(&self, id: u64, cancellation: Arc<Cancellation>) -> bool {
        let mut running = lock(&self.running);
        let room = running.len() < MOST_REQUESTS;
        if room {
            running.insert(id, cancellation);
        }
        room
    }

    /// Notes that a request has been worked off.
    pub(super) fn note_done(&self, id: u64) {
        lock(&self.running).remove(&id);
    }

    /// Puts everything back.
    pub(super) fn end(&self) {
        let running: Vec<_> = lock(&self.running).values().cloned().collect();
        running.iter().for_each(|cancellation| cancellation.cancel());
        self.rack.end();
        self.host.end();
    }
}
