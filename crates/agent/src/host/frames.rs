//! `host.frames`: switches off everything that builds or merges aggregates on some interfaces.

use crate::arguments::Role;
use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, params};
use framegauge_drivers::rack::bare::stop_aggregates;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Frames {
    interfaces: Vec<String>,
}

/// Switches TSO, GSO and GRO off. Nothing is put back: only interfaces that end with this agent are touched.
pub fn run(call: &Call) -> Answer {
    let Frames { interfaces } = params(&call.request)?;
    if !matches!(call.session.role, Role::Host { fresh: true, .. }) {
        return Err(Failure::state("this host is not a rack's: its interfaces stay as they are"));
    }
    interfaces.iter().try_for_each(|interface| stop_aggregates(interface))?;
    Ok(json!({}))
}
