//! A connection that is far slower than its peers, and nothing says why.
//!
//! Peers are those that carried about as much from or to the same service, at about the same RTT. Compared is the time for
//! each byte in which the application had something to send, on a scale of ratios. The distance is that from the median in
//! median absolute deviations, scaled to standard deviations (Iglewicz and Hoaglin, 1993).

use crate::Thresholds;
use crate::findings::Finding;
use crate::flows::{Flow, median};
use crate::kinds::Kind;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Where all peers are alike, a spread of a quarter counts: then six of them are four and a half times as slow.
const LEAST_SPREAD: f64 = 0.25;
/// From a median absolute deviation to a standard deviation, of a normal distribution.
const TO_DEVIATION: f64 = 1.4826;

/// The outliers of all services.
pub(crate) fn outliers(flows: &[Flow], origin: i64, limits: &Thresholds) -> Vec<Finding> {
    let mut by_service: BTreeMap<(SocketAddr, bool), Vec<&Flow>> = BTreeMap::new();
    for flow in flows {
        by_service.entry((flow.server, flow.sender == flow.server)).or_default().push(flow);
    }
    by_service.into_values().flat_map(|all| of_service(&all, origin, limits)).collect()
}

fn of_service(all: &[&Flow], origin: i64, limits: &Thresholds) -> Vec<Finding> {
    let middle = |of: fn(&Flow) -> f64| median(&mut all.iter().map(|flow| of(flow)).collect::<Vec<f64>>());
    let (bytes, rtt) = (middle(|flow| flow.bytes as f64), middle(|flow| flow.rtt as f64));
    let is_peer = |flow: &&&Flow| {
        (bytes / 2.0..=bytes * 2.0).contains(&(flow.bytes as f64)) && flow.rtt as f64 <= rtt * 2.0
    };
    let peers: Vec<&Flow> = all.iter().filter(is_peer).copied().collect();
    if peers.len() < limits.peers as usize {
        return Vec::new();
    }
    let slowness: Vec<f64> = peers.iter().map(|flow| slowness(flow).ln()).collect();
    let centre = median(&mut slowness.clone());
    let away = |value: &f64| (value - centre).abs();
    let spread = TO_DEVIATION * median(&mut slowness.iter().map(away).collect::<Vec<f64>>());
    let mut findings = Vec::new();
    for (flow, value) in peers.iter().zip(&slowness) {
        let distance = (value - centre) / spread.max(LEAST_SPREAD);
        if distance > limits.peer_distance && !flow.is_explained {
            findings.push(finding(flow, peers.len() - 1, centre.exp(), origin));
        }
    }
    findings
}

/// Seconds for each byte while the application had something to send.
fn slowness(flow: &Flow) -> f64 {
    flow.busy.max(1) as f64 / 1e9 / flow.bytes.max(1) as f64
}

fn finding(flow: &Flow, peers: usize, usual: f64, origin: i64) -> Finding {
    Finding {
        kind: Kind::Unexplained,
        connection: Some(flow.connection),
        begin_seconds: (flow.begin - origin) as f64 / 1e9,
        end_seconds: (flow.end - origin) as f64 / 1e9,
        count: 1,
        lost_seconds: 0.0,
        packets: Vec::new(),
        text: format!(
            "While it had something to send it carried {:.2} Mb/s, its {peers} peers {:.2} Mb/s (the median), with as \
             much to carry at such an RTT. Nothing that was seen explains that.",
            8e-6 / slowness(flow),
            8e-6 / usual,
        ),
        remedy: Kind::Unexplained.remedy(),
    }
}
