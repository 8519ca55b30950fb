//! `cpu.begin` and `cpu.end`: what this host's work costs.

use crate::message::{Answer, Failure, Nothing, params};
use crate::session::{Call, lock};
use framegauge_drivers::cpu::{CpuMeter, CpuUse};
use serde_json::{Value, json};

/// Begins the interval.
pub fn begin(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let host = &call.session.host;
    let meter = host.with_applied(|applied| CpuMeter::begin(applied.pollers(), &host.processes))?;
    *lock(&host.meter) = Some(meter);
    Ok(json!({}))
}

/// Ends it and reports.
pub fn end(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let host = &call.session.host;
    let meter = lock(&host.meter).take().ok_or_else(|| Failure::state("cpu.begin comes first"))?;
    let used = meter.end(&host.processes)?;
    Ok(json!({
        "elapsed_seconds": used.elapsed_seconds,
        "programs": describe(&used.programs),
        "receive_path": used.receive_path.as_ref().map(describe),
        "polls": used.polls,
        "meter_seconds": used.meter_seconds,
        "not_measured": used.not_measured,
    }))
}

fn describe(used: &CpuUse) -> Value {
    json!({"cpu_seconds": used.cpu_seconds, "instructions": used.instructions, "cycles": used.cycles})
}
