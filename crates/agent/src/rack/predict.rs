//! `frames.predict`: how long a short transfer takes at best.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, params};
use framegauge_frames::{BitRate, Family, Mtu, Picoseconds, switched_transfer_time};
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
    let request: Predict = params(&call.request)?;
    let failure = |error: &dyn std::fmt::Display| Failure::invalid_params("frames.predict", error);
    let mtu = Mtu::new(request.mtu).map_err(|error| failure(&error))?;
    let rate = BitRate::new(request.bits_per_second).map_err(|error| failure(&error))?;
    let family = if request.family == 6 { Family::V6 } else { Family::V4 };
    let rtt = Picoseconds::from_seconds_f64(request.rtt_seconds);
    let time = switched_transfer_time(request.size_bytes, mtu, family, rate, rtt);
    Ok(json!({"completion_seconds": time.as_seconds_f64()}))
}
