//! `relay`: passes a request to a host's agent.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, params};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Relay {
    host: String,
    method: String,
    params: Value,
}

/// Passes it on; progress and cancellation included.
pub fn run(call: &Call) -> Answer {
    let Relay { host, method, params } = params(&call.request)?;
    let agent = call.session.rack.host(&host)?;
    let mut progress =
        |event: &Value| call.progress(event["fraction"].as_f64(), event["text"].as_str().unwrap_or(""));
    agent.relay(&method, params, |hook| call.cancellation.on_cancel(hook), &mut progress)
}
