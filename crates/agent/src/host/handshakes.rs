//! `wire.begin` and `wire.end`: handshakes seen on the interfaces.

use crate::pipe::call::Call;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use framegauge_drivers::meters::handshakes as wire;
use serde_json::{Value, json};

/// Starts to capture.
pub fn begin(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let capture = call.session.host.with_applied(|applied| wire::start(&applied.used_interfaces()))?;
    *lock(&call.session.host.capture) = Some(capture);
    Ok(json!({}))
}

/// Ends the capture.
pub fn end(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let capture = lock(&call.session.host.capture).take();
    let capture = capture.ok_or_else(|| Failure::state("wire.begin comes first"))?;
    let (syns, lost) = wire::finish(&capture)?;
    let syns: Vec<Value> = syns
        .iter()
        .map(|syn| {
            json!({"direction": if syn.outgoing { "out" } else { "in" }, "source": syn.source,
                   "destination": syn.destination, "ack": syn.ack, "mss_bytes": syn.mss_bytes,
                   "timestamps": syn.timestamps, "window_scale": syn.window_scale,
                   "sack_permitted": syn.sack_permitted})
        })
        .collect();
    Ok(json!({"syns": syns, "lost": lost}))
}
