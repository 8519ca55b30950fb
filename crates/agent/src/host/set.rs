//! `host.set`: the MTU of a rack's host, or the rate of a NIC's shaper, while it works.

use crate::pipe::call::Call;
use crate::pipe::lock::lock;
use crate::pipe::message::Failure;
use crate::pipe::message::{Answer, params};
use framegauge_drivers::own::monotonic_nanoseconds;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    mtu: Option<u32>,
    shaper: Option<NicRate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NicRate {
    /// From 0.
    nic: usize,
    bits_per_second: u64,
}

/// Changes it; connections that are there keep their MSS.
pub fn run(call: &Call) -> Answer {
    let asked: Set = params(&call.request)?;
    let mut applied = lock(&call.session.host.applied);
    let applied = applied.as_mut().filter(|applied| !applied.is_adopted());
    let applied = applied.ok_or_else(|| Failure::state("only a rack's own host is changed so"))?;
    if let Some(mtu) = asked.mtu {
        applied.change_mtu(mtu)?;
    }
    if let Some(NicRate { nic, bits_per_second }) = asked.shaper {
        applied.change_rate(nic, bits_per_second)?;
    }
    Ok(json!({"time_seconds": monotonic_nanoseconds() as f64 * 1e-9}))
}
