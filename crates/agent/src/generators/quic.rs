//! `quic.serve`, `quic.run`, `quic.close`: long transfers by QUIC, whose path MTU is found by probes.

use crate::pipe::call::Call;
use crate::pipe::fields::{nanoseconds, token, within};
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use framegauge_drivers::generators::quic::client::{self as asking, QuicOrder};
use framegauge_drivers::generators::quic::server::QuicServing;
use framegauge_drivers::generators::quic::{Congestion, Key, QuicSettings, QuicSummary};
use framegauge_traffic::{Amount, StreamSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};

const MOST_FLOWS: u32 = 512;
const MOST_SECONDS: f64 = 86_400.0;
/// A public key of a few kinds more than today's has room.
const MOST_KEY_BYTES: usize = 1024;

/// What both ends are told of their QUIC.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    plpmtud: bool,
    congestion_control: String,
    gso: Option<bool>,
    gro: Option<bool>,
}

fn settings(method: &str, options: &Settings) -> Result<QuicSettings, Failure> {
    let congestion = match options.congestion_control.as_str() {
        "cubic" => Congestion::Cubic,
        "reno" => Congestion::NewReno,
        other => {
            let text = format!("congestion_control: found {other}, expected cubic or reno");
            return Err(Failure::invalid_params(method, &text));
        }
    };
    Ok(QuicSettings {
        plpmtud: options.plpmtud,
        congestion,
        segmentation: options.gso,
        aggregation: options.gro,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    token: String,
    address: IpAddr,
    settings: Settings,
}

/// Starts the serving end.
pub fn serve(call: &Call) -> Answer {
    let request: Serve = params(&call.request)?;
    let token = token("quic.serve", &request.token)?;
    let settings = settings("quic.serve", &request.settings)?;
    let mut serving = lock(&call.session.host.quic_serving);
    if serving.is_some() {
        return Err(Failure::state("this host serves QUIC already; quic.close first"));
    }
    let started = QuicServing::start(request.address, call.session.host.ports, token, settings)?;
    let answer = json!({"port": started.port(), "key": as_hex(&started.key().0)});
    *serving = Some(started);
    Ok(answer)
}

/// Ends the serving end.
pub fn close(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let serving = lock(&call.session.host.quic_serving).take();
    let served = serving.ok_or_else(|| Failure::state("this host serves no QUIC"))?.finish()?;
    let answer = json!({"bytes": served.bytes, "connections": served.connections, "refused": served.refused});
    Ok(with(answer, &served.summary))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    address: IpAddr,
    port: u16,
    token: String,
    key: String,
    flows: u32,
    size_bytes: Option<u64>,
    duration_seconds: Option<f64>,
    repeat_seconds: f64,
    settings: Settings,
}

/// Runs the transfers to their end.
pub fn run(call: &Call) -> Answer {
    let method = "quic.run";
    let request: Run = params(&call.request)?;
    let amount = match (request.size_bytes, request.duration_seconds) {
        (Some(size), None) if size > 0 => Amount::Bytes(size),
        (None, Some(seconds)) => {
            Amount::Nanoseconds(nanoseconds(method, "duration_seconds", seconds, MOST_SECONDS)?)
        }
        _ => {
            let text = "give size_bytes (above 0) or duration_seconds, not both";
            return Err(Failure::invalid_params(method, text));
        }
    };
    let settings = settings(method, &request.settings)?;
    let order = QuicOrder {
        address: SocketAddr::new(request.address, request.port),
        token: token(method, &request.token)?,
        key: Key(from_hex(method, &request.key)?),
        spec: StreamSpec {
            flows: within(method, "flows", request.flows, 1, MOST_FLOWS)?,
            amount,
            repeat_nanoseconds: nanoseconds(method, "repeat_seconds", request.repeat_seconds, MOST_SECONDS)?,
            reverse: false,
        },
        settings,
    };
    let expected = request.duration_seconds.unwrap_or(request.repeat_seconds);
    let outcome = asking::run(&order, &mut |bytes, seconds| {
        let fraction = (expected > 0.0).then(|| (seconds / expected).min(1.0));
        call.progress(fraction, &format!("{:.0} MB in {seconds:.0} s", bytes as f64 * 1e-6));
        !call.cancellation.asked()
    })?;
    let transfers = call.session.spools.keep(outcome.transfers);
    let answer = json!({"rounds": outcome.rounds, "bytes": outcome.bytes, "written_bytes": outcome.written,
                        "active_seconds": outcome.active_seconds,
                        "started_seconds": outcome.started_seconds,
                        "congestion_control": [settings.congestion.name()], "transfers": transfers});
    Ok(with(answer, &outcome.summary))
}

/// What an end sent and found, added to `answer`.
fn with(mut answer: Value, summary: &QuicSummary) -> Value {
    let sizes: Vec<Value> =
        summary.sizes.iter().map(|(size, count)| json!({"payload_bytes": size, "count": count})).collect();
    answer["sizes"] = json!(sizes);
    answer["calls"] = json!(summary.calls);
    answer["refused_calls"] = json!(summary.refused_calls);
    answer["received"] = json!(summary.received);
    answer["received_aggregates"] = json!(summary.received_aggregates);
    answer["settled_bytes"] = json!(summary.settled_bytes);
    answer["probes"] = json!(summary.probes);
    answer["lost_probes"] = json!(summary.lost_probes);
    answer["black_holes"] = json!(summary.black_holes);
    answer["lost_packets"] = json!(summary.lost_packets);
    answer["rtt_seconds"] = json!(summary.rtt_seconds);
    answer
}

fn as_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(method: &str, text: &str) -> Result<Vec<u8>, Failure> {
    let failure = || Failure::invalid_params(method, "key: expected hex digits, as quic.serve gave them");
    if !text.is_ascii() || !text.len().is_multiple_of(2) || text.len() > 2 * MOST_KEY_BYTES {
        return Err(failure());
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| failure()))
        .collect()
}
