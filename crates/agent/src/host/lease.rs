//! `lease.begin`, `lease.set`, `lease.renew`, `lease.back`, `lease.end`: changes of this host that last only while they
//! are renewed; `lease.keep` and `lease.reopen`, for leases whose changes may stay.

use crate::pipe::call::Call;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use crate::tools::helper::Helper;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    settings: BTreeMap<String, String>,
    seconds: f64,
    #[serde(default)]
    sudo: bool,
    /// Whether changes may outlast the lease, which takes another rule for sudo.
    #[serde(default)]
    stays: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    settings: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    changes: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reopen {
    addresses: Vec<IpAddr>,
}

const OVER: &str = "the lease has run out";

/// What became of a lease that has ended by itself: what its holder said at last, if it could.
fn over(answer: Option<&Value>) -> Failure {
    Failure::state(match answer.and_then(|answer| answer["restored"].as_bool()) {
        Some(true) => format!("{OVER}, and everything was put back"),
        Some(false) => format!("{OVER}, and not everything is as it was: {}", differences(answer)),
        None => format!(
            "{OVER}; nothing was heard of its end, and its guard puts everything back within its time"
        ),
    })
}

/// What is not as it was and the commands that mend it, in one line.
fn differences(answer: Option<&Value>) -> String {
    let rows = answer.and_then(|answer| answer["differs"].as_array()).map_or(&[][..], Vec::as_slice);
    let line = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_string();
        let words: Vec<&str> =
            row["commands"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mend = if words.is_empty() { String::new() } else { format!(" (mend: {})", words.join("; ")) };
        format!("{}: found {}, expected {}{mend}", text("what"), text("found"), text("expected"))
    };
    rows.iter().map(line).collect::<Vec<_>>().join(", ")
}

/// Starts the program that holds the lease; answers with what it has changed.
fn start(request: &Begin) -> Result<(Helper, Value), Failure> {
    let mut words =
        vec![if request.stays { "change" } else { "lease" }.to_string(), request.seconds.to_string()];
    words.extend(request.settings.iter().map(|(setting, value)| format!("{setting}={value}")));
    let mut lease = Helper::start("lease", &words, request.sudo)?;
    let first = lease.hear()?;
    if first["held"].is_array() {
        return Ok((lease, first));
    }
    lease.stop();
    let reason = first["failed"].as_str().unwrap_or("nothing was said");
    Err(Failure::state(match first["restored"].as_bool() {
        Some(false) => format!("{reason}; not everything is as it was: {}", differences(Some(&first))),
        _ => format!("nothing was changed: {reason}"),
    }))
}

/// Changes settings; answers with their old values and what they are now.
pub fn begin(call: &Call) -> Answer {
    let request: Begin = params(&call.request)?;
    let mut held = lock(&call.session.host.lease);
    if held.is_some() {
        return Err(Failure::state("a lease is under way: lease.end comes first"));
    }
    let (lease, first) = start(&request)?;
    *held = Some(lease);
    Ok(first)
}

/// Gives the lease its whole time again.
pub fn renew(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let mut held = lock(&call.session.host.lease);
    let lease = held.as_mut().ok_or_else(|| Failure::state("lease.begin comes first"))?;
    // Its answer, not that it could be told: it may be putting everything back by now.
    lease.tell("renew\n");
    let answer = lease.hear().ok();
    if answer.as_ref().is_some_and(|answer| answer["renewed"].is_number()) {
        return Ok(json!({}));
    }
    if let Some(mut ended) = held.take() {
        ended.stop();
    }
    Err(over(answer.as_ref()))
}

/// Says a line to the lease: its answer, which has not failed.
fn ask(call: &Call, line: &str) -> Answer {
    let mut held = lock(&call.session.host.lease);
    let lease = held.as_mut().ok_or_else(|| Failure::state("lease.begin comes first"))?;
    lease.tell(&format!("{line}\n"));
    match lease.hear().ok() {
        Some(answer) if answer["ended"].is_null() => match answer["failed"].as_str() {
            Some(reason) if answer["left"].is_null() => Err(Failure::state(reason.to_string())),
            _ => Ok(answer),
        },
        // It has ended, or is about to: its guard puts everything back.
        answer => {
            if let Some(mut ended) = held.take() {
                ended.stop();
            }
            Err(over(answer.as_ref()))
        }
    }
}

/// Changes further settings, all of them or none; answers with their old values and what they are now.
pub fn set(call: &Call) -> Answer {
    let request: Set = params(&call.request)?;
    let words: Vec<String> =
        request.settings.iter().map(|(setting, value)| format!("{setting}={value}")).collect();
    ask(call, &format!("set {}", json!(words)))
}

/// Puts back the newest changes, so that so many are left.
pub fn back(call: &Call) -> Answer {
    let request: Count = params(&call.request)?;
    ask(call, &format!("back {}", request.changes))
}

/// Has so many of the oldest changes outlast the lease.
pub fn keep(call: &Call) -> Answer {
    let request: Count = params(&call.request)?;
    ask(call, &format!("keep {}", request.changes))
}

/// Ends the connections with these hosts whose MSS is below what routes allow.
pub fn reopen(call: &Call) -> Answer {
    let request: Reopen = params(&call.request)?;
    ask(call, &format!("reopen {}", json!(request.addresses)))
}

/// Puts everything back.
pub fn end(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let lease = lock(&call.session.host.lease).take();
    let mut lease = lease.ok_or_else(|| Failure::state("lease.begin comes first"))?;
    lease.tell("end\n");
    let answer = lease.hear();
    lease.stop();
    answer
}
