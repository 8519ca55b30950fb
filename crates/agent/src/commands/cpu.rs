//! `cpu.begin` and `cpu.end`: what this host's work costs.

use crate::message::{Answer, Failure, Nothing, params};
use crate::session::{Call, lock};
use framegauge_drivers::cpu::{CpuMeter, CpuUse, HostCpu, WholeMeter};
use framegauge_drivers::processes::Processes;
use serde_json::{Value, json};

/// The meter of an emulated host, or of one that is somebody's own.
pub enum Meter {
    /// Its programs and its receive path.
    Parts(CpuMeter),
    /// All of it.
    Whole(WholeMeter),
}

impl Meter {
    fn end(self, processes: &Processes) -> framegauge_drivers::Result<HostCpu> {
        match self {
            Self::Parts(meter) => meter.end(processes),
            Self::Whole(meter) => meter.end(),
        }
    }
}

/// Begins the interval.
pub fn begin(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let host = &call.session.host;
    let meter = host.with_applied(|applied| match applied.is_adopted() {
        true => WholeMeter::begin().map(Meter::Whole),
        false => CpuMeter::begin(applied.pollers(), &host.processes).map(Meter::Parts),
    })?;
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
