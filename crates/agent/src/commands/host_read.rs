//! `host.read`: what the kernel says of this host now.

use crate::message::{Answer, Nothing, params};
use crate::session::Call;
use serde_json::json;

/// Reads everything back.
pub fn run(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let reading = call.session.host.with_applied(|applied| applied.read())?;
    let qdisc = &reading.qdisc;
    Ok(json!({
        "interface": reading.interface,
        "mtu": reading.mtu,
        "maximum_mtu": reading.maximum_mtu,
        "overlay_mtu": reading.overlay_mtu,
        "offloads": reading.offloads,
        "moderation_seconds": reading.moderation_seconds,
        "qdisc": {"kind": qdisc.kind, "default": qdisc.default, "bits_per_second": qdisc.bits_per_second, "burst_bytes": qdisc.burst_bytes,
                  "limit_bytes": qdisc.limit_bytes, "sent_bytes": qdisc.sent_bytes,
                  "sent_packets": qdisc.sent_packets, "drops": qdisc.drops, "overlimits": qdisc.overlimits,
                  "backlog_bytes": qdisc.backlog_bytes},
        "congestion_control_route": reading.congestion_control_route,
        "sysctls": reading.sysctls,
        "tcp_metrics_entries": reading.tcp_metrics_entries,
    }))
}
