//! `frames.wire`: how many bytes encapsulations take, and what is left inside.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, params};
use framegauge_frames::{BitRate, Family, Fit, FittedLayer, InnerCeiling, Mtu, Stack};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    mtu: u32,
    encapsulations: Vec<String>,
    bits_per_second: Option<u64>,
}

/// Does the sum.
pub fn run(call: &Call) -> Answer {
    let request: Ask = params(&call.request)?;
    let failure = |error: &dyn std::fmt::Display| Failure::invalid_params("frames.wire", error);
    let least = Family::V4.minimum_mtu_bytes();
    let outside = format!("mtu: found {}, expected {least} to {} bytes", request.mtu, u16::MAX);
    let mtu = Mtu::new(request.mtu).map_err(|_| failure(&outside))?;
    let rate = request.bits_per_second.map(BitRate::new).transpose();
    let rate = rate.map_err(|error| failure(&format!("bits_per_second: {error}")))?;
    let stack =
        Stack::parse(request.encapsulations.iter().map(String::as_str)).map_err(|error| failure(&error))?;
    let fit = stack.fit(mtu).map_err(|error| failure(&error))?;
    Ok(shown(&fit, rate))
}

fn shown(fit: &Fit, rate: Option<BitRate>) -> Value {
    json!({
        "mtu": fit.mtu.bytes(),
        "inner_mtu": fit.inner_mtu.bytes(),
        "overhead_bytes": fit.overhead_bytes(),
        "frame_overhead_bytes": fit.frame_overhead_bytes(),
        "frame_bytes": fit.frame_bytes,
        "wire_bytes": fit.wire_bytes,
        "bits_per_second": rate.map(BitRate::bits_per_second),
        "layers": fit.layers.iter().map(layer).collect::<Vec<Value>>(),
        "families": fit.ceilings(rate).iter().map(inside).collect::<Vec<Value>>(),
    })
}

fn layer(fitted: &FittedLayer) -> Value {
    let parts: Vec<Value> = fitted
        .parts
        .iter()
        .map(|part| json!({"name": part.name, "bytes": part.bytes, "source": part.source}))
        .collect();
    json!({
        "name": fitted.layer.to_string(),
        "underlay": fitted.layer.encapsulation.underlay().map(version),
        "within_mtu": fitted.within_mtu,
        "overhead_bytes": fitted.overhead_bytes,
        "inner_mtu": fitted.inner_mtu.bytes(),
        "parts": parts,
        "range": fitted.range.map(|range| json!({
            "least_bytes": range.least_bytes,
            "most_bytes": range.most_bytes,
            "why": range.why,
        })),
    })
}

fn inside(ceiling: &InnerCeiling) -> Value {
    json!({
        "family": version(ceiling.family),
        "mss_bytes": ceiling.mss_bytes,
        "segment_payload_bytes": ceiling.segment_payload_bytes,
        "goodput_bits_per_second": ceiling.goodput_bits_per_second,
        "packets_per_second": ceiling.packets_per_second,
    })
}

fn version(family: Family) -> u8 {
    match family {
        Family::V4 => 4,
        Family::V6 => 6,
    }
}
