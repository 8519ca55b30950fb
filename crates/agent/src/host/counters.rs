//! `host.counters`: the counters of interfaces and protocols.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Nothing, params};
use framegauge_drivers::meters;
use serde_json::json;

/// Reads the counters.
pub fn run(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let counters = call.session.host.with_applied(|applied| meters::host(&applied.interfaces()))?;
    let interface = counters.interface;
    Ok(json!({
        "interface": {"rx_packets": interface.rx_packets, "rx_bytes": interface.rx_bytes,
                      "tx_packets": interface.tx_packets, "tx_bytes": interface.tx_bytes,
                      "rx_dropped": interface.rx_dropped, "tx_dropped": interface.tx_dropped,
                      "rx_errors": interface.rx_errors, "tx_errors": interface.tx_errors},
        "loopback_packets": counters.loopback_packets,
        "nstat": counters.nstat,
    }))
}
