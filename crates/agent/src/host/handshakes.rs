//! `wire.begin` and `wire.end`: handshakes seen on the interfaces, and aggregates above 64 KiB.

use crate::pipe::call::Call;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use framegauge_drivers::meters::handshakes as wire;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    /// Also count aggregates above 64 KiB.
    #[serde(default)]
    aggregates: bool,
}

/// Starts to capture.
pub fn begin(call: &Call) -> Answer {
    let Begin { aggregates } = params(&call.request)?;
    let meter = call.session.host.with_applied(|applied| {
        let interfaces = applied.used_interfaces();
        let counts = aggregates.then(|| wire::count(&interfaces)).transpose()?;
        Ok(wire::WireMeter { captures: wire::start(&interfaces)?, counts })
    })?;
    *lock(&call.session.host.capture) = Some(meter);
    Ok(json!({}))
}

/// Ends the capture.
pub fn end(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let capture = lock(&call.session.host.capture).take();
    let meter = capture.ok_or_else(|| Failure::state("wire.begin comes first"))?;
    let (syns, lost) = wire::finish(&meter.captures)?;
    let syns: Vec<Value> = syns
        .iter()
        .map(|syn| {
            json!({"direction": if syn.outgoing { "out" } else { "in" }, "source": syn.source,
                   "destination": syn.destination, "ack": syn.ack, "mss_bytes": syn.mss_bytes,
                   "timestamps": syn.timestamps, "window_scale": syn.window_scale,
                   "sack_permitted": syn.sack_permitted})
        })
        .collect();
    let mut answer = json!({"syns": syns, "lost": lost});
    if let Some([received, sent]) = meter.counts.as_deref().map(wire::counted) {
        let summary =
            |tally: wire::BigSeen| json!({"count": tally.count, "largest_bytes": tally.largest_bytes});
        answer["aggregates"] = summary(received);
        answer["aggregates"]["sent"] = summary(sent);
    }
    Ok(answer)
}
