//! One conversation on the pipe: reads requests, starts each on a thread of its own, answers.

use crate::arguments::Role;
use crate::dispatch::dispatch;
use crate::host::state::HostState;
use crate::pipe::message::{self, Answer, Failure, Request};
use crate::rack::state::RackState;
use framegauge_drivers::spool::Spools;
use framegauge_drivers::{Result, poll};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A lock whose data stays usable though a thread died holding it: cleaning up must go on.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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
    /// Writes one message. A reader that is gone is noticed at the other end of the pipe.
    pub fn write(&self, message: &Value) {
        let mut output = lock(&self.output);
        let mut line = message.to_string();
        line.push('\n');
        let _ = output.write_all(line.as_bytes()).and_then(|()| output.flush());
    }

    fn answer(&self, id: Option<u64>, answer: &Answer) {
        self.write(&match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(failure) => json!({"jsonrpc": "2.0", "id": id, "error": failure.value()}),
        });
    }

    /// Asks the request `id` to stop; false when it is not running.
    pub fn cancel(&self, id: u64) -> bool {
        let found = lock(&self.running).get(&id).cloned();
        found.inspect(|cancellation| cancellation.cancel()).is_some()
    }

    /// Notes that the other end has said hello.
    pub fn greet(&self) {
        self.greeted.store(true, Ordering::Release);
    }

    /// Puts everything back.
    fn end(&self) {
        let running: Vec<_> = lock(&self.running).values().cloned().collect();
        running.iter().for_each(|cancellation| cancellation.cancel());
        self.rack.end();
        self.host.end();
    }
}

/// Serves the pipe until its input ends or is silent for too long, a signal comes or `shutdown` is called; puts
/// everything back.
pub fn serve(role: Role, signals: OwnedFd) -> Result<()> {
    let patience = role.patience();
    let session = Arc::new(Session {
        host: HostState::new(&role)?,
        rack: RackState::new(&role),
        role,
        spools: Spools::default(),
        greeted: AtomicBool::new(false),
        running: Mutex::default(),
        output: Mutex::new(std::io::stdout()),
    });
    let (word, words) = std::sync::mpsc::channel();
    let on_signal = word.clone();
    std::thread::spawn(move || {
        let _ = poll::await_signal(&signals);
        let _ = on_signal.send(Word::End);
    });
    let reading = session.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            let _ = word.send(Word::Heard);
            if !line.trim().is_empty() && !take(&reading, &line) {
                break;
            }
        }
        let _ = word.send(Word::End);
    });
    await_end(&words, patience);
    session.end();
    Ok(())
}

enum Word {
    Heard,
    End,
}

fn await_end(words: &Receiver<Word>, patience: Option<Duration>) {
    loop {
        let word = match patience {
            Some(patience) => words.recv_timeout(patience).ok(),
            None => words.recv().ok(),
        };
        match word {
            Some(Word::Heard) => {}
            Some(Word::End) => return,
            None => {
                eprintln!("framegauge-agent: nothing was heard for too long; everything is put back");
                return;
            }
        }
    }
}

/// Takes one line; false when it was the last.
fn take(session: &Arc<Session>, line: &str) -> bool {
    let request = match message::read(line) {
        Ok(request) => request,
        Err((id, failure)) => {
            session.answer(id, &Err(failure));
            return true;
        }
    };
    let greeted = session.greeted.load(Ordering::Acquire);
    if !greeted && request.method != "hello" {
        let failure = Failure::invalid_request("the first request must be hello");
        session.answer(Some(request.id), &Err(failure));
        return true;
    }
    let (id, last) = (request.id, request.method == "shutdown");
    let cancellation = Arc::new(Cancellation::default());
    // Hello is answered before the next line is read, so that its order counts.
    let at_once = matches!(request.method.as_str(), "hello" | "cancel" | "shutdown");
    if !at_once {
        lock(&session.running).insert(id, cancellation.clone());
    }
    let call = Call { session: session.clone(), request, cancellation };
    let work = move || {
        let answer = dispatch(&call);
        lock(&call.session.running).remove(&id);
        call.session.answer(Some(id), &answer);
    };
    if at_once {
        work();
    } else {
        std::thread::spawn(work);
    }
    !last
}
