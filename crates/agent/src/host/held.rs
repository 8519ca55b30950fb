//! `held.begin` and `held.end`: whether something else held this host's CPUs.

use crate::pipe::call::Call;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use framegauge_drivers::meters::held::HeldMeter;
use serde_json::json;

/// Of somebody's own host, which may have many CPUs: 0.03 % of each, at some 3 µs per wake-up.
const EVERY_NANOSECONDS: u64 = 10_000_000;

/// Begins the interval on every CPU that this agent may use.
pub fn begin(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    *lock(&call.session.host.held) = Some(HeldMeter::everywhere(EVERY_NANOSECONDS)?);
    Ok(json!({}))
}

/// Ends it and reports the CPUs that were held.
pub fn end(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let meter =
        lock(&call.session.host.held).take().ok_or_else(|| Failure::state("held.begin comes first"))?;
    let cpus = meter.cpus();
    let mut held = meter.end();
    let refused = cpus - held.len();
    held.retain(|cpu| cpu.count > 0);
    let reason = format!("held CPUs: no real-time scheduling on {refused} of {cpus} CPUs (CAP_SYS_NICE)");
    Ok(json!({"held": held, "not_measured": if refused > 0 { vec![reason] } else { vec![] }}))
}
