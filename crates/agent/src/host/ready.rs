//! `process.ready`: waits until a program is ready for others.

use crate::arguments::Role;
use crate::host::folder;
use crate::host::processes::known;
use crate::pipe::call::Call;
use crate::pipe::fields::within;
use crate::pipe::message::{Answer, Failure, params};
use framegauge_drivers::host::ready::{self, Sign, Words};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

const METHOD: &str = "process.ready";
const LONGEST_SECONDS: f64 = 1e6;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    process: u64,
    port: Option<u16>,
    words: Option<String>,
    file: Option<PathBuf>,
    within_seconds: f64,
}

/// Waits in the agent, so that no look costs a message.
pub fn run(call: &Call) -> Answer {
    let request: Asked = params(&call.request)?;
    let most = Duration::from_secs_f64(within(
        METHOD,
        "within_seconds",
        request.within_seconds,
        0.0,
        LONGEST_SECONDS,
    )?);
    let (process, mut sign) = (request.process, sign(call, request)?);
    let processes = known(call, process)?;
    let waited = ready::wait(processes, process, &mut sign, most, &|| call.cancellation.asked())?;
    let waited = waited.ok_or_else(Failure::cancelled)?;
    let ending = waited.ending.map(|ending| json!({"exit_code": ending.exit_code, "signal": ending.signal}));
    Ok(json!({"ready": waited.ready, "seconds": waited.elapsed.as_secs_f64(), "ending": ending}))
}

/// Exactly one of the three. The network of a rack's host is all its own; elsewhere others have sockets too.
fn sign(call: &Call, request: Asked) -> Result<Sign, Failure> {
    let failure = |problem: &str| Err(Failure::invalid_params(METHOD, problem));
    match (request.port, request.words, request.file) {
        (Some(0), None, None) => failure("port: found 0, expected 1 to 65535"),
        (Some(port), None, None) => {
            Ok(Sign::Port { port, own: !matches!(call.session.role, Role::Host { fresh: true, .. }) })
        }
        (None, Some(words), None) => {
            let words = Words::new(&words);
            words.map(Sign::Words).or_else(|problem| failure(&format!("words: {problem}")))
        }
        (None, None, Some(file)) if file.is_absolute() => Ok(Sign::File(file)),
        (None, None, Some(file)) => Ok(Sign::File(folder::path(call)?.join(file))),
        (None, None, None) => failure("found none of port, words and file, expected one"),
        _ => failure("found more than one of port, words and file, expected one"),
    }
}
