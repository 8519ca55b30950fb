//! `host.frames`: nothing builds or merges aggregates on these interfaces any more.

use crate::message::{Answer, params};
use crate::session::Call;
use framegauge_drivers::bare::stop_aggregates;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Frames {
    interfaces: Vec<String>,
}

/// Switches TSO, GSO and GRO off; they are as good as gone with the namespace, so nothing is put back.
pub fn run(call: &Call) -> Answer {
    let Frames { interfaces } = params(&call.request)?;
    interfaces.iter().try_for_each(|interface| stop_aggregates(interface))?;
    Ok(json!({}))
}
