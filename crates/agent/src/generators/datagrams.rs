//! `datagrams.serve`, `datagrams.run`, `datagrams.close`: datagrams at a stated rate, one way.

use crate::pipe::call::Call;
use crate::pipe::fields::{nanoseconds, token, within};
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, params};
use framegauge_drivers::generators::datagrams::receiver::{Awaited, Receiving};
use framegauge_drivers::generators::datagrams::sender::{self, DatagramsOrder};
use framegauge_traffic::{DatagramHead, Datagrams, DatagramsSpec, Periods};
use serde::Deserialize;
use serde_json::json;
use std::net::{IpAddr, SocketAddr};

const MOST_FLOWS: u32 = 512;
const MOST_SECONDS: f64 = 86_400.0;
/// The payload that an IPv4 packet can hold (RFC 791, RFC 768).
const MOST_BYTES: u32 = 65_507;
/// The shortest period: below it the sender's own timers decide.
const LEAST_PERIOD_SECONDS: f64 = 1e-4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    token: String,
    address: IpAddr,
}

/// Starts the receiving end.
pub fn serve(call: &Call) -> Answer {
    let request: Serve = params(&call.request)?;
    let token = token("datagrams.serve", &request.token)?;
    let mut receiving = lock(&call.session.host.receiving);
    if receiving.is_some() {
        return Err(Failure::state("this host receives datagrams already; datagrams.close first"));
    }
    let started = Receiving::start(request.address, call.session.host.ports, token)?;
    let port = started.port();
    *receiving = Some(started);
    Ok(json!({"port": port}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Close {
    expected: u64,
    silence_seconds: f64,
}

/// Ends the receiving end.
pub fn close(call: &Call) -> Answer {
    let request: Close = params(&call.request)?;
    let silence_nanoseconds =
        nanoseconds("datagrams.close", "silence_seconds", request.silence_seconds, 60.0)?;
    let receiving = lock(&call.session.host.receiving).take();
    let receiving = receiving.ok_or_else(|| Failure::state("this host receives no datagrams"))?;
    let outcome = receiving.finish(Awaited { expected: request.expected, silence_nanoseconds })?;
    let datagrams = call.session.spools.keep(outcome.datagrams);
    Ok(
        json!({"received": outcome.received, "bytes": outcome.bytes, "refused": outcome.refused, "clock": outcome.clock,
              "datagrams": datagrams}),
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    address: IpAddr,
    port: u16,
    token: String,
    flows: u32,
    size_bytes: u32,
    rate_per_second: f64,
    spurt_seconds: Option<f64>,
    pause_seconds: Option<f64>,
    duration_seconds: f64,
}

fn order(request: &Run) -> Result<DatagramsOrder, Failure> {
    let method = "datagrams.run";
    let flows = within(method, "flows", request.flows, 1, MOST_FLOWS)?;
    let rate_per_second = within(method, "rate_per_second", request.rate_per_second, 0.001, 1e7)?;
    let duration_nanoseconds =
        nanoseconds(method, "duration_seconds", request.duration_seconds, MOST_SECONDS)?;
    let (expected, most) =
        (rate_per_second * f64::from(flows) * request.duration_seconds, Datagrams::MOST as f64);
    if expected > most {
        return Err(Failure::refused("datagrams in one datagrams.run", expected, most));
    }
    let period = |name, seconds| {
        within(method, name, seconds, LEAST_PERIOD_SECONDS, MOST_SECONDS)?;
        nanoseconds(method, name, seconds, MOST_SECONDS)
    };
    let periods = match (request.spurt_seconds, request.pause_seconds) {
        (None, None) => None,
        (Some(spurt), Some(pause)) => Some(Periods {
            spurt_nanoseconds: period("spurt_seconds", spurt)?,
            pause_nanoseconds: period("pause_seconds", pause)?,
        }),
        _ => {
            return Err(Failure::invalid_params(
                method,
                "give both spurt_seconds and pause_seconds, or neither",
            ));
        }
    };
    Ok(DatagramsOrder {
        address: SocketAddr::new(request.address, request.port),
        token: token(method, &request.token)?,
        spec: DatagramsSpec { flows, rate_per_second, periods, duration_nanoseconds },
        size_bytes: within(method, "size_bytes", request.size_bytes, DatagramHead::BYTES as u32, MOST_BYTES)?,
    })
}

/// Sends until the duration has passed.
pub fn run(call: &Call) -> Answer {
    let request: Run = params(&call.request)?;
    let order = order(&request)?;
    let sent = sender::run(&order, &mut |datagrams, seconds| {
        let fraction =
            (request.duration_seconds > 0.0).then(|| (seconds / request.duration_seconds).min(1.0));
        call.progress(fraction, &format!("{datagrams} datagrams in {seconds:.0} s"));
        !call.cancellation.asked()
    })?;
    let datagrams = call.session.spools.keep(sent.datagrams);
    Ok(json!({"sent": sent.sent, "bytes": sent.bytes, "dropped_by_host": sent.dropped_by_host,
              "active_seconds": sent.active_seconds, "started_seconds": sent.started_seconds,
              "clock": sent.clock, "datagrams": datagrams}))
}
