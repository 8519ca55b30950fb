//! One conversation on the pipe: reads requests, starts each on a thread of its own, answers.

use crate::arguments::Role;
use crate::pipe::call::{Call, Cancellation, MOST_REQUESTS, Session};
use crate::pipe::message::{self, Answer, Failure};
use framegauge_drivers::meters::waits::counted;
use framegauge_drivers::{OsError, Result, own};
use std::io::{BufRead, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Finds the command that a call asks for, and runs it.
pub type Dispatch = fn(&Call) -> Answer;

/// Serves the pipe until its input ends or is silent for too long, a signal comes or `shutdown` is called; puts
/// everything back.
pub fn serve(role: Role, signals: OwnedFd, dispatch: Dispatch) -> Result<()> {
    let patience = role.patience();
    let session = Arc::new(Session::new(role)?);
    let (word, words) = std::sync::mpsc::channel();
    let on_signal = word.clone();
    started(move || {
        let _ = own::await_signal(&signals);
        let _ = on_signal.send(Word::End);
    })?;
    let reading = session.clone();
    started(move || {
        let mut input = std::io::stdin().lock();
        while let Ok(Some(line)) = next(&mut input) {
            let _ = word.send(Word::Heard);
            if !line.trim_ascii().is_empty() && !take(&reading, &line, dispatch) {
                break;
            }
        }
        let _ = word.send(Word::End);
    })?;
    await_end(&words, patience);
    session.end();
    Ok(())
}

/// Starts a thread. An error is that of a limit on processes or on memory: of this user, or of its cgroup.
fn started(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let refused =
        |error: std::io::Error| OsError::errno("start a thread", error.raw_os_error().unwrap_or_default());
    std::thread::Builder::new().spawn(work).map(drop).map_err(refused)
}

/// The next line, without its end; none at the end of the input. Of a line that is too long only the beginning is kept,
/// one byte more than there may be.
fn next(input: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if input.by_ref().take(message::LONGEST_LINE + 1).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() as u64 > message::LONGEST_LINE {
        input.skip_until(b'\n')?;
    }
    Ok(Some(line))
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
fn take(session: &Arc<Session>, line: &[u8], dispatch: Dispatch) -> bool {
    let request = match message::read(line) {
        Ok(request) => request,
        Err((id, failure)) => {
            session.answer(id, &Err(failure));
            return true;
        }
    };
    if !session.is_greeted() && request.method != "hello" {
        let failure = Failure::invalid_request("the first request must be hello");
        session.answer(Some(request.id), &Err(failure));
        return true;
    }
    let (id, last) = (request.id, request.method == "shutdown");
    let cancellation = Arc::new(Cancellation::default());
    // Hello is answered before the next line is read, so that its order counts.
    let at_once = matches!(request.method.as_str(), "hello" | "cancel" | "shutdown");
    if !at_once && !session.note_running(id, cancellation.clone()) {
        let failure = Failure::state(format!("{MOST_REQUESTS} requests are under way already"));
        session.answer(Some(id), &Err(failure));
        return true;
    }
    let call = Call { session: session.clone(), request, cancellation };
    let work = move || {
        let answer = dispatch(&call);
        call.session.note_done(id);
        call.session.answer(Some(id), &answer);
    };
    if at_once {
        work();
    } else if let Err(error) = started(counted(work)) {
        session.note_done(id);
        session.answer(Some(id), &Err(error.into()));
    }
    !last
}
