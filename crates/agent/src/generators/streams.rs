//! `stream.serve`, `stream.run`, `stream.close`: long transfers.

use crate::pipe::call::Call;
use crate::pipe::fields::{nanoseconds, token, within};
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use framegauge_drivers::generators::stream::client::{
    self as streaming, MOST_SUBFLOWS, SenderSummary, Sizes, StreamOrder,
};
use framegauge_drivers::generators::stream::server::Serving;
use framegauge_traffic::{Amount, StreamSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU32, NonZeroU64};

const MOST_FLOWS: u32 = 512;

/// The kernel raises what is less, and cannot double what is much more.
const SOCKET_BUFFER_BYTES: (u32, u32) = (4096, 1 << 29);
const MESSAGE_BYTES: (u32, u32) = (1, 1 << 24);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    token: String,
    address: IpAddr,
    sample_seconds: f64,
    socket_buffer_bytes: Option<u32>,
    message_bytes: Option<u32>,
    subflows: Option<u8>,
}

/// What was asked of sockets and calls.
fn sizes(
    method: &str,
    socket_buffer_bytes: Option<u32>,
    message_bytes: Option<u32>,
    subflows: Option<u8>,
) -> Result<Sizes, Failure> {
    let checked = |name, value: Option<u32>, (least, most)| {
        value.map(|value| within(method, name, value, least, most)).transpose()
    };
    Ok(Sizes {
        socket_buffer_bytes: checked("socket_buffer_bytes", socket_buffer_bytes, SOCKET_BUFFER_BYTES)?,
        message_bytes: checked("message_bytes", message_bytes, MESSAGE_BYTES)?.and_then(NonZeroU32::new),
        subflows: subflows.map(|count| within(method, "subflows", count, 1, MOST_SUBFLOWS)).transpose()?,
    })
}

/// Starts the serving end.
pub fn serve(call: &Call) -> Answer {
    let request: Serve = params(&call.request)?;
    let token = token("stream.serve", &request.token)?;
    let sample = nanoseconds("stream.serve", "sample_seconds", request.sample_seconds, 60.0)?;
    let sizes = sizes("stream.serve", request.socket_buffer_bytes, request.message_bytes, request.subflows)?;
    let mut serving = lock(&call.session.host.serving);
    if serving.is_some() {
        return Err(Failure::state("this host serves streams already; stream.close first"));
    }
    let started = Serving::start(request.address, call.session.host.ports, token, sample, sizes)?;
    let port = started.port();
    *serving = Some(started);
    Ok(json!({"port": port}))
}

/// What the sender's sockets said, added to `answer`.
fn add_sender(call: &Call, mut answer: Value, sender: SenderSummary) -> Value {
    let samples = call.session.spools.keep(sender.samples);
    answer["congestion_control"] = json!(sender.congestion_control);
    answer["retransmits"] = json!(sender.retransmits);
    answer["srtt_median_seconds"] = json!(sender.srtt_median_seconds);
    answer["mean_segment_payload_bytes"] = json!(sender.mean_segment_payload_bytes);
    answer["path_mtu"] = json!(sender.path_mtu);
    answer["sender_mss_bytes"] = json!(sender.sender_mss_bytes);
    answer["max_pacing_bits_per_second"] = json!(sender.max_pacing_bits_per_second);
    if let Some(subflows) = sender.subflows {
        answer["subflows"] = json!(subflows);
    }
    answer["send_buffer_bytes"] = json!(sender.buffers.map(|buffers| buffers.send_bytes));
    answer["receive_buffer_bytes"] = json!(sender.buffers.map(|buffers| buffers.receive_bytes));
    answer["largest_call_bytes"] = json!(sender.largest_call_bytes);
    answer["samples"] = json!(samples);
    answer
}

/// Ends the serving end.
pub fn close(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let serving = lock(&call.session.host.serving).take();
    let served = serving.ok_or_else(|| Failure::state("this host serves no streams"))?.finish()?;
    let answer = json!({"bytes": served.bytes, "connections": served.connections, "refused": served.refused});
    Ok(add_sender(call, answer, served.sender))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    address: IpAddr,
    port: u16,
    token: String,
    flows: u32,
    size_bytes: Option<u64>,
    duration_seconds: Option<f64>,
    repeat_seconds: f64,
    reverse: bool,
    sample_seconds: f64,
    pacing_bits_per_second: Option<u64>,
    socket_buffer_bytes: Option<u32>,
    message_bytes: Option<u32>,
    subflows: Option<u8>,
}

/// Below this a single segment would take seconds, above it no link is known.
const PACING_BITS_PER_SECOND: (u64, u64) = (8_000, 10_000_000_000_000);

/// Runs a stream to its end.
pub fn run(call: &Call) -> Answer {
    let method = "stream.run";
    let request: Run = params(&call.request)?;
    let amount = match (request.size_bytes, request.duration_seconds) {
        (Some(size), None) if size > 0 => Amount::Bytes(size),
        (None, Some(seconds)) => {
            Amount::Nanoseconds(nanoseconds(method, "duration_seconds", seconds, 86_400.0)?)
        }
        _ => {
            return Err(Failure::invalid_params(
                method,
                "give size_bytes (above 0) or duration_seconds, not both",
            ));
        }
    };
    let pacing = match request.pacing_bits_per_second {
        None => None,
        Some(rate) => {
            let (least, most) = PACING_BITS_PER_SECOND;
            NonZeroU64::new(within(method, "pacing_bits_per_second", rate, least, most)? / 8)
        }
    };
    let order = StreamOrder {
        address: SocketAddr::new(request.address, request.port),
        token: token(method, &request.token)?,
        spec: StreamSpec {
            flows: within(method, "flows", request.flows, 1, MOST_FLOWS)?,
            amount,
            repeat_nanoseconds: nanoseconds(method, "repeat_seconds", request.repeat_seconds, 86_400.0)?,
            reverse: request.reverse,
        },
        sample_nanoseconds: nanoseconds(method, "sample_seconds", request.sample_seconds, 60.0)?,
        pacing_bytes_per_second: pacing,
        sizes: sizes(method, request.socket_buffer_bytes, request.message_bytes, request.subflows)?,
    };
    let expected = request.duration_seconds.unwrap_or(request.repeat_seconds);
    let outcome = streaming::run(&order, &mut |bytes, seconds| {
        let fraction = (expected > 0.0).then(|| (seconds / expected).min(1.0));
        call.progress(fraction, &format!("{:.0} MB in {seconds:.0} s", bytes as f64 * 1e-6));
        !call.cancellation.asked()
    })?;
    let transfers = call.session.spools.keep(outcome.transfers);
    let answer = json!({"rounds": outcome.rounds, "bytes": outcome.bytes,
                        "active_seconds": outcome.active_seconds,
                        "started_seconds": outcome.started_seconds, "transfers": transfers});
    Ok(add_sender(call, answer, outcome.sender))
}
