//! `frames.predict`: how long a short transfer takes at best.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, params};
use framegauge_frames::{BitRate, Family, Mtu, Picoseconds, ceiling, slow_start_transfer_time};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Predict {
    size_bytes: u64,
    mtu: u32,
    family: u8,
    bits_per_second: u64,
    rtt_seconds: f64,
}

/// The completion time of a short transfer by the slow-start model of `frames`.
pub fn run(call: &Call) -> Answer {
    const INITIAL_WINDOW_SEGMENTS: u32 = 10;
    let asked: Predict = params(&call.request)?;
    let wrong = |error: &dyn std::fmt::Display| Failure::invalid_params("frames.predict", error);
    let mtu = Mtu::new(asked.mtu).map_err(|error| wrong(&error))?;
    let rate = BitRate::new(asked.bits_per_second).map_err(|error| wrong(&error))?;
    let family = if asked.family == 6 { Family::V6 } else { Family::V4 };
    let best = ceiling(mtu, family, true, rate);
    let time = slow_start_transfer_time(
        asked.size_bytes,
        best.segment_payload_bytes,
        best.goodput_bits_per_second,
        // A switch stores each frame before it forwards it: the second serialisation on the way.
        Picoseconds::from_seconds_f64(asked.rtt_seconds) + rate.serialisation(u64::from(best.wire_bytes)),
        INITIAL_WINDOW_SEGMENTS,
        true,
    );
    Ok(json!({"completion_seconds": time.as_seconds_f64()}))
}
