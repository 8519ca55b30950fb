//! `host.counters`: the counters of interfaces and protocols, and what the host's threads have waited for a CPU.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Nothing, params};
use framegauge_drivers::meters::waits::{Programs, SchedStat};
use framegauge_drivers::meters::{self, waits};
use serde_json::{Value, json};

/// Reads the counters.
pub fn run(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let counters = call.session.host.with_applied(|applied| meters::host(&applied.interfaces()))?;
    let interface = counters.interface;
    let host = &call.session.host;
    let waits = host.with_applied(|applied| waits::read(applied.pollers(), &host.processes))?;
    Ok(json!({
        "interface": {"rx_packets": interface.rx_packets, "rx_bytes": interface.rx_bytes,
                      "tx_packets": interface.tx_packets, "tx_bytes": interface.tx_bytes,
                      "rx_dropped": interface.rx_dropped, "tx_dropped": interface.tx_dropped,
                      "rx_errors": interface.rx_errors, "tx_errors": interface.tx_errors},
        "loopback_packets": counters.loopback_packets,
        "nstat": counters.nstat,
        "scheduling": {"precedence": waits.precedence.name(), "generators": describe(&waits.generators),
                       "receive_path": describe(&waits.receive_path),
                       "programs": describe_programs(&waits.programs)},
    }))
}

fn describe_programs(programs: &Programs) -> Value {
    json!({"run_seconds": programs.run_nanoseconds as f64 * 1e-9,
           "waited_seconds": programs.waited_microseconds.map(|sum| sum as f64 * 1e-6),
           "gave_way_seconds": programs.gave_way_nanoseconds as f64 * 1e-9})
}

fn describe(waited: &SchedStat) -> Value {
    json!({"run_seconds": waited.run_nanoseconds as f64 * 1e-9,
           "waited_seconds": waited.wait_nanoseconds as f64 * 1e-9, "turns": waited.slices})
}
