//! `host.read`: this host's settings, as the kernel has them now.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Nothing, params};
use framegauge_drivers::host::watched::Feature;
use framegauge_drivers::host::{NicReading, RouteWindows};
use serde_json::{Value, json};

/// Reads everything back.
pub fn run(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let reading = call.session.host.with_applied(|applied| applied.read())?;
    let nics: Vec<Value> = reading.nics.iter().map(describe).collect();
    // The first NIC's stand at the top level, too: mostly it is the only one.
    let mut answer = nics.first().cloned().unwrap_or_default();
    answer["nics"] = json!(nics);
    answer["overlay_mtu"] = json!(reading.overlay_mtu);
    answer["sysctls"] = json!(reading.sysctls);
    answer["tcp_metrics_entries"] = json!(reading.tcp_metrics_entries);
    let exceptions = reading.path_mtu_exceptions.iter();
    let exceptions =
        exceptions.map(|exception| json!({"destination": exception.destination, "mtu": exception.mtu}));
    answer["path_mtu_exceptions"] = exceptions.collect();
    Ok(answer)
}

fn describe(nic: &NicReading) -> Value {
    let (qdisc, sizes) = (&nic.qdisc, &nic.aggregates);
    let mut answer = json!({
        "interface": nic.interface,
        "mtu": nic.mtu,
        "maximum_mtu": nic.maximum_mtu,
        "offloads": nic.offloads,
        "aggregates": {"gso_bytes": sizes.gso_bytes, "gso_ipv4_bytes": sizes.gso_ipv4_bytes,
                       "gro_bytes": sizes.gro_bytes, "gro_ipv4_bytes": sizes.gro_ipv4_bytes,
                       "tso_maximum_bytes": sizes.tso_maximum_bytes},
        "moderation_seconds": nic.moderation_seconds,
        "qdisc": {"kind": qdisc.kind, "default": qdisc.default, "bits_per_second": qdisc.bits_per_second, "burst_bytes": qdisc.burst_bytes,
                  "limit_bytes": qdisc.limit_bytes, "sent_bytes": qdisc.sent_bytes,
                  "sent_packets": qdisc.sent_packets, "drops": qdisc.drops, "overlimits": qdisc.overlimits,
                  "backlog_bytes": qdisc.backlog_bytes},
        "congestion_control_route": nic.congestion_control_route,
        "route_windows": nic.route_windows.as_ref().map(|all| all.iter().map(windows).collect::<Vec<_>>()),
    });
    if !nic.features.is_empty() {
        let state = |feature: &Feature| json!({"on": feature.on, "changeable": feature.changeable});
        let features =
            nic.features.iter().map(|(name, feature)| (name.clone(), json!(feature.as_ref().map(state))));
        answer["features"] = features.collect();
    }
    answer
}

fn windows(route: &RouteWindows) -> Value {
    json!({
        "destination": format!("{}/{}", route.destination, route.prefix_length),
        "initial_window_segments": route.windows.send,
        "initial_receive_window_segments": route.windows.receive,
    })
}
