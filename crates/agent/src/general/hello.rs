//! `hello`, `cancel` and `shutdown`: the conversation itself.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, Nothing, PROTOCOL, params};
use framegauge_drivers::own;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    protocol: u64,
    #[serde(rename = "client")]
    _client: String,
}

/// Agrees on the version.
pub fn hello(call: &Call) -> Answer {
    let Hello { protocol, _client: _ } = params(&call.request)?;
    if protocol != PROTOCOL {
        return Err(Failure::protocol(protocol));
    }
    call.session.greet();
    Ok(json!({
        "protocol": PROTOCOL,
        "agent": env!("CARGO_PKG_VERSION"),
        "role": call.session.role.name(),
        "pid": std::process::id(),
        "user_id": own::effective_user(),
        "kernel": own::kernel_release(),
        "cpus": own::allowed_cpus().len(),
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cancel {
    id: u64,
}

/// Asks another request to stop.
pub fn cancel(call: &Call) -> Answer {
    let Cancel { id } = params(&call.request)?;
    Ok(json!({"cancelled": call.session.cancel(id)}))
}

/// Answers; the reading loop then ends.
pub fn shutdown(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    Ok(json!({}))
}
