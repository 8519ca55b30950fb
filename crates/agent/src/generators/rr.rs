//! `rr.serve`, `rr.run`, `rr.close`: request and response.

use crate::pipe::call::Call;
use crate::pipe::fields::{nanoseconds, token, within};
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use framegauge_drivers::generators::rr::client::{self as rr_client, RrOrder};
use framegauge_drivers::generators::rr::server::RrServing;
use framegauge_traffic::{Arrivals, Load, Rr, RrHello, RrSpec};
use serde::Deserialize;
use serde_json::json;
use std::net::{IpAddr, SocketAddr};

const MOST_CONNECTIONS: u32 = 512;
const MOST_SECONDS: f64 = 86_400.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    token: String,
    address: IpAddr,
    nodelay: bool,
}

/// Starts the serving end.
pub fn serve(call: &Call) -> Answer {
    let request: Serve = params(&call.request)?;
    let token = token("rr.serve", &request.token)?;
    let mut serving = lock(&call.session.host.rr_serving);
    if serving.is_some() {
        return Err(Failure::state("this host answers requests already; rr.close first"));
    }
    let started = RrServing::start(request.address, call.session.host.ports, token, request.nodelay)?;
    let port = started.port();
    *serving = Some(started);
    Ok(json!({"port": port}))
}

/// Ends the serving end.
pub fn close(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let serving = lock(&call.session.host.rr_serving).take();
    let served = serving.ok_or_else(|| Failure::state("this host answers no requests"))?.finish()?;
    Ok(json!({"requests": served.requests, "bytes": served.bytes, "connections": served.connections,
              "refused": served.refused, "congestion_control": served.congestion_control,
              "nodelay": served.nodelay, "retransmits": served.sent.retransmits,
              "timeouts": served.sent.timeouts,
              "mean_segment_payload_bytes": served.sent.mean_segment_payload_bytes()}))
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Spacing {
    Uniform,
    Poisson,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    address: IpAddr,
    port: u16,
    token: String,
    connections: u32,
    request_bytes: u32,
    response_bytes: u32,
    header_bytes: u32,
    rate_per_second: Option<f64>,
    arrivals: Spacing,
    seed: u64,
    duration_seconds: f64,
    nodelay: bool,
}

fn order(request: &Run) -> Result<RrOrder, Failure> {
    let method = "rr.run";
    let size = |name, value, least| within(method, name, value, least, RrHello::MOST_BYTES);
    let duration_nanoseconds =
        nanoseconds(method, "duration_seconds", request.duration_seconds, MOST_SECONDS)?;
    let load = match request.rate_per_second {
        None => Load::Closed,
        Some(rate) => {
            let rate_per_second = within(method, "rate_per_second", rate, 0.001, 1e7)?;
            let most = Rr::MOST_REQUESTS as f64;
            if rate_per_second * request.duration_seconds > most {
                let request = rate_per_second * request.duration_seconds;
                return Err(Failure::refused("requests in one rr.run", request, most));
            }
            let arrivals = match request.arrivals {
                Spacing::Uniform => Arrivals::Uniform,
                Spacing::Poisson => Arrivals::Poisson { seed: request.seed },
            };
            Load::Open { rate_per_second, arrivals }
        }
    };
    Ok(RrOrder {
        address: SocketAddr::new(request.address, request.port),
        token: token(method, &request.token)?,
        spec: RrSpec {
            connections: within(method, "connections", request.connections, 1, MOST_CONNECTIONS)?,
            load,
            duration_nanoseconds,
        },
        request_bytes: size("request_bytes", request.request_bytes, 1)?,
        response_bytes: size("response_bytes", request.response_bytes, 1)?,
        header_bytes: size("header_bytes", request.header_bytes, 0)?,
        nodelay: request.nodelay,
    })
}

/// Makes requests until their time has passed.
pub fn run(call: &Call) -> Answer {
    let request: Run = params(&call.request)?;
    let order = order(&request)?;
    let outcome = rr_client::run(&order, &mut |requests, seconds| {
        let fraction =
            (request.duration_seconds > 0.0).then(|| (seconds / request.duration_seconds).min(1.0));
        call.progress(fraction, &format!("{requests} requests in {seconds:.0} s"));
        !call.cancellation.asked()
    })?;
    let transactions = call.session.spools.keep(outcome.transactions);
    Ok(json!({"requests": outcome.requests, "bytes": outcome.bytes, "active_seconds": outcome.active_seconds,
              "started_seconds": outcome.started_seconds, "congestion_control": outcome.congestion_control,
              "nodelay": outcome.nodelay, "late_requests": outcome.late_requests,
              "unfinished_requests": outcome.unfinished_requests, "transactions": transactions}))
}
