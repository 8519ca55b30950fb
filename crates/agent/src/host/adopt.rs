//! `host.adopt`: takes a user's own host, which is measured as it is and not changed.

use crate::pipe::call::Call;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, params};
use crate::tools::helper::Helper;
use framegauge_drivers::host::Applied;
use framegauge_drivers::host::watched::Watched;
use serde::Deserialize;
use serde_json::json;
use std::net::IpAddr;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Adopt {
    interface: String,
    address: IpAddr,
    sysctls: Vec<String>,
    /// Of the interface, by the names of `ethtool -k`.
    #[serde(default)]
    features: Vec<String>,
    /// Count instructions and cycles of the whole host.
    #[serde(default)]
    count: bool,
    #[serde(default)]
    sudo: bool,
}

/// Changes nothing: says which interface and which sysctls and features readings are of. Once more is another choice.
pub fn run(call: &Call) -> Answer {
    let request: Adopt = params(&call.request)?;
    let mut applied = lock(&call.session.host.applied);
    if applied.as_ref().is_some_and(|applied| !applied.is_adopted()) {
        return Err(Failure::state("this host has its settings already"));
    }
    let watched = Watched { sysctls: request.sysctls, features: request.features };
    *applied = Some(Applied::adopt(request.interface, request.address, watched)?);
    let mut counters = lock(&call.session.host.counters);
    if request.count && counters.is_none() {
        let started = Helper::start("counter", &["counters".to_string()], request.sudo);
        *counters = Some(started.map_err(|failure| failure.message));
    }
    Ok(json!({}))
}
