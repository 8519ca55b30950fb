//! `stream.serve`, `stream.run`, `stream.close`.

use crate::message::{Answer, Failure, Nothing, params};
use crate::session::{Call, lock};
use framegauge_drivers::serving::Serving;
use framegauge_drivers::streaming::{self, SenderSummary, StreamOrder};
use framegauge_drivers::traffic::{Amount, StreamSpec, TOKEN_BYTES, Token};
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};

const MOST_FLOWS: u32 = 512;

fn token(method: &str, text: &str) -> Result<Token, Failure> {
    let wrong = || Failure::invalid_params(method, "token: expected 32 hex digits");
    let mut token = [0; TOKEN_BYTES];
    if text.len() != 2 * TOKEN_BYTES || !text.is_ascii() {
        return Err(wrong());
    }
    for (place, byte) in token.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).map_err(|_| wrong())?;
    }
    Ok(token)
}

fn nanoseconds(method: &str, name: &str, seconds: f64, most: f64) -> Result<u64, Failure> {
    if (0.0..=most).contains(&seconds) {
        return Ok((seconds * 1e9) as u64);
    }
    Err(Failure::invalid_params(method, format!("{name}: {seconds} is not within 0 and {most}")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    token: String,
    address: IpAddr,
    sample_seconds: f64,
}

/// Starts the serving end.
pub fn serve(call: &Call) -> Answer {
    let asked: Serve = params(&call.request)?;
    let token = token("stream.serve", &asked.token)?;
    let sample = nanoseconds("stream.serve", "sample_seconds", asked.sample_seconds, 60.0)?;
    let mut serving = lock(&call.session.host.serving);
    if serving.is_some() {
        return Err(Failure::state("this host serves streams already; stream.close first"));
    }
    let started = Serving::start(asked.address, token, sample)?;
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
}

/// Runs a stream to its end.
pub fn run(call: &Call) -> Answer {
    let method = "stream.run";
    let asked: Run = params(&call.request)?;
    let amount = match (asked.size_bytes, asked.duration_seconds) {
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
    if !(1..=MOST_FLOWS).contains(&asked.flows) {
        return Err(Failure::invalid_params(
            method,
            format!("flows: {} is not within 1 and {MOST_FLOWS}", asked.flows),
        ));
    }
    let order = StreamOrder {
        address: SocketAddr::new(asked.address, asked.port),
        token: token(method, &asked.token)?,
        spec: StreamSpec {
            flows: asked.flows,
            amount,
            repeat_nanoseconds: nanoseconds(method, "repeat_seconds", asked.repeat_seconds, 86_400.0)?,
            reverse: asked.reverse,
        },
        sample_nanoseconds: nanoseconds(method, "sample_seconds", asked.sample_seconds, 60.0)?,
    };
    let expected = asked.duration_seconds.unwrap_or(asked.repeat_seconds);
    let outcome = streaming::run(&order, &mut |bytes, seconds| {
        let fraction = (expected > 0.0).then(|| (seconds / expected).min(1.0));
        call.progress(fraction, &format!("{:.0} MB in {seconds:.0} s", bytes as f64 * 1e-6));
        !call.cancellation.asked()
    })?;
    let transfers = call.session.spools.keep(outcome.transfers);
    let answer = json!({"rounds": outcome.rounds, "bytes": outcome.bytes,
                        "active_seconds": outcome.active_seconds, "transfers": transfers});
    Ok(add_sender(call, answer, outcome.sender))
}
