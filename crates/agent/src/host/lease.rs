//! `lease.begin`, `lease.renew`, `lease.end`: changes of this host that last only while they are renewed.

use crate::pipe::call::Call;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use crate::tools::helper::Helper;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    settings: BTreeMap<String, String>,
    seconds: f64,
    #[serde(default)]
    sudo: bool,
}

/// Starts the program that holds the lease; answers with what it has changed.
fn start(asked: &Begin) -> Result<(Helper, Value), Failure> {
    let mut words = vec!["lease".to_string(), asked.seconds.to_string()];
    words.extend(asked.settings.iter().map(|(setting, value)| format!("{setting}={value}")));
    let mut lease = Helper::start("lease", &words, asked.sudo)?;
    let first = lease.hear()?;
    if first["held"].is_array() {
        return Ok((lease, first));
    }
    lease.stop();
    let why = first["failed"].as_str().unwrap_or("nothing was said");
    Err(Failure::state(format!("nothing was changed: {why}")))
}

/// Changes settings; answers with their old values and what they are now.
pub fn begin(call: &Call) -> Answer {
    let asked: Begin = params(&call.request)?;
    let mut held = lock(&call.session.host.lease);
    if held.is_some() {
        return Err(Failure::state("a lease is under way: lease.end comes first"));
    }
    let (lease, first) = start(&asked)?;
    *held = Some(lease);
    Ok(first)
}

/// Gives the lease its whole time again.
pub fn renew(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let mut held = lock(&call.session.host.lease);
    let lease = held.as_mut().ok_or_else(|| Failure::state("lease.begin comes first"))?;
    // Its answer, not that it could be told: it may be putting everything back by now.
    if lease.tell("renew\n") && lease.hear().is_ok_and(|said| said["renewed"].is_number()) {
        return Ok(json!({}));
    }
    if let Some(mut over) = held.take() {
        over.stop();
    }
    Err(Failure::state("the lease has run out, and everything was put back"))
}

/// Puts everything back.
pub fn end(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let lease = lock(&call.session.host.lease).take();
    let mut lease = lease.ok_or_else(|| Failure::state("lease.begin comes first"))?;
    lease.tell("end\n");
    let said = lease.hear();
    lease.stop();
    said
}
