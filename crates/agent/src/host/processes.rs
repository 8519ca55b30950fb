//! `process.spawn`, `.wait`, `.signal`, `.kill`, `.output`: programs that run in this host.

use crate::general::spool::MOST_BYTES;
use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, params};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use framegauge_drivers::host::processes::{Ending, Limits, Output, Processes, Program};
use framegauge_drivers::own;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spawn {
    argv: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    directory: Option<PathBuf>,
    #[serde(default)]
    limits: Limited,
    user: Option<String>,
    #[serde(default)]
    precedence: Precedence,
}

/// What of the agent's precedence a program keeps.
#[derive(Deserialize, Default, PartialEq)]
enum Precedence {
    /// It may take all the CPU that there is, and so gives way to what keeps the network going.
    #[default]
    #[serde(rename = "nice")]
    Nice,
    /// All of it: it waits for the network more than it computes.
    #[serde(rename = "real time")]
    RealTime,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Limited {
    open_files: Option<u64>,
    address_space_bytes: Option<u64>,
    cpu_seconds: Option<u64>,
    file_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wait {
    process: u64,
    timeout_seconds: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Signal {
    process: u64,
    signal: i32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kill {
    process: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    process: u64,
    stream: Stream,
    offset_bytes: u64,
    length_bytes: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stream {
    Stdout,
    Stderr,
}

fn processes(call: &Call) -> &Processes {
    &call.session.host.processes
}

/// The programs, if the one of that number is among them.
pub(super) fn known(call: &Call, process: u64) -> Result<&Processes, Failure> {
    match processes(call).knows(process) {
        true => Ok(processes(call)),
        false => Err(Failure::state(format!("there is no process {process}"))),
    }
}

fn describe(ending: Option<Ending>) -> Value {
    json!({
        "ended": ending.is_some(),
        "exit_code": ending.and_then(|ending| ending.exit_code),
        "signal": ending.and_then(|ending| ending.signal),
    })
}

/// Starts a program.
pub fn spawn(call: &Call) -> Answer {
    let request: Spawn = params(&call.request)?;
    if request.argv.is_empty() {
        return Err(Failure::invalid_params("process.spawn", "argv is empty"));
    }
    let user = request.user.map(|name| processes(call).user(&name)).transpose()?.flatten();
    let program = Program {
        user,
        soft_open_files: own::open_files_of_programs(),
        gives_way: request.precedence == Precedence::Nice,
        arguments: request.argv,
        environment: request.environment,
        directory: request.directory,
        limits: Limits {
            open_files: request.limits.open_files,
            address_space_bytes: request.limits.address_space_bytes,
            cpu_seconds: request.limits.cpu_seconds,
            file_bytes: request.limits.file_bytes,
        },
    };
    call.session.host.keep_group()?;
    let (process, pid) = processes(call).spawn(&program)?;
    Ok(json!({"process": process, "pid": pid}))
}

/// Waits for its end.
pub fn wait(call: &Call) -> Answer {
    let request: Wait = params(&call.request)?;
    let timeout = request.timeout_seconds.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, 1e6)));
    let stop = || call.cancellation.asked();
    let ending = known(call, request.process)?.wait(request.process, timeout, &stop)?;
    if ending.is_none() && call.cancellation.asked() {
        return Err(Failure::cancelled());
    }
    Ok(describe(ending))
}

/// Signals it.
pub fn signal(call: &Call) -> Answer {
    let request: Signal = params(&call.request)?;
    known(call, request.process)?.signal(request.process, request.signal)?;
    Ok(json!({}))
}

/// Ends it with everything it started.
pub fn kill(call: &Call) -> Answer {
    let Kill { process } = params(&call.request)?;
    Ok(describe(known(call, process)?.kill(process)?))
}

/// Reads a part of its output.
pub fn output(call: &Call) -> Answer {
    let request: Read = params(&call.request)?;
    let stream = match request.stream {
        Stream::Stdout => Output::Standard,
        Stream::Stderr => Output::Errors,
    };
    let length = request.length_bytes.min(MOST_BYTES) as usize;
    let (data, size) =
        known(call, request.process)?.output(request.process, stream, request.offset_bytes, length)?;
    Ok(json!({"data": STANDARD.encode(data), "size_bytes": size}))
}
