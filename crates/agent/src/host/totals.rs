//! `host.totals`: what this host has counted since it began, of interfaces, protocols and CPUs.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, params};
use framegauge_drivers::meters::totals::{Counted, totals};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    interfaces: Vec<String>,
}

/// Reads the counters.
pub fn run(call: &Call) -> Answer {
    let Named { interfaces } = params(&call.request)?;
    let totals = totals(&interfaces)?;
    let cpu = totals.cpu;
    Ok(json!({
        "life": totals.life,
        "interfaces": totals.interfaces.iter().map(interface).collect::<Vec<Value>>(),
        "cpu": {"user": cpu.user, "nice": cpu.nice, "system": cpu.system, "idle": cpu.idle, "iowait": cpu.iowait,
                "irq": cpu.irq, "softirq": cpu.softirq, "steal": cpu.steal},
        "receive_softirqs": totals.softirqs.receive,
        "transmit_softirqs": totals.softirqs.transmit,
        "counters": totals.counters,
    }))
}

fn interface(interface: &Counted) -> Value {
    let counted = interface.statistics;
    json!({
        "interface": interface.name,
        "index": interface.index,
        "mtu": interface.mtu,
        "rx_packets": counted.rx_packets,
        "rx_bytes": counted.rx_bytes,
        "tx_packets": counted.tx_packets,
        "tx_bytes": counted.tx_bytes,
        "rx_dropped": counted.rx_dropped,
        "tx_dropped": counted.tx_dropped,
        "rx_errors": counted.rx_errors,
        "tx_errors": counted.tx_errors,
    })
}
