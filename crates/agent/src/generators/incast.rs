//! `incast.run`: synchronized reads from servers that answer requests (`rr.serve`).

use crate::pipe::call::Call;
use crate::pipe::fields::{nanoseconds, token, within};
use crate::pipe::message::{Answer, Failure, params};
use framegauge_drivers::generators::incast::{self as reads, IncastOrder, Server};
use framegauge_traffic::{Incast, RrHello};
use serde::Deserialize;
use serde_json::json;
use std::net::{IpAddr, SocketAddr};

const METHOD: &str = "incast.run";
const MOST_SERVERS: usize = 512;
const MOST_SECONDS: f64 = 86_400.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    address: IpAddr,
    port: u16,
    response_bytes: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    servers: Vec<Asked>,
    token: String,
    request_bytes: u32,
    rounds: u32,
    nodelay: bool,
    silence_seconds: f64,
}

fn order(request: &Run) -> Result<IncastOrder, Failure> {
    let size = |name, value| within(METHOD, name, value, 1, RrHello::MOST_BYTES);
    within(METHOD, "servers", request.servers.len(), 1, MOST_SERVERS)?;
    let answers =
        u64::from(within(METHOD, "rounds", request.rounds, 1, u32::MAX)?) * request.servers.len() as u64;
    if answers > Incast::MOST_ANSWERS {
        return Err(Failure::refused("answers in one incast.run", answers, Incast::MOST_ANSWERS));
    }
    let server = |entry: &Asked| {
        let response_bytes = size("response_bytes", entry.response_bytes)?;
        Ok(Server { address: SocketAddr::new(entry.address, entry.port), response_bytes })
    };
    Ok(IncastOrder {
        servers: request.servers.iter().map(server).collect::<Result<_, Failure>>()?,
        token: token(METHOD, &request.token)?,
        request_bytes: size("request_bytes", request.request_bytes)?,
        rounds: request.rounds,
        silence_nanoseconds: nanoseconds(METHOD, "silence_seconds", request.silence_seconds, MOST_SECONDS)?,
        nodelay: request.nodelay,
    })
}

/// Asks all servers in every round.
pub fn run(call: &Call) -> Answer {
    let request: Run = params(&call.request)?;
    let order = order(&request)?;
    let outcome = reads::run(&order, &mut |rounds, seconds| {
        let fraction = f64::from(rounds) / f64::from(order.rounds);
        call.progress(Some(fraction), &format!("{rounds} of {} rounds in {seconds:.0} s", order.rounds));
        !call.cancellation.asked()
    })?;
    let rounds = call.session.spools.keep(outcome.rounds);
    let responses = call.session.spools.keep(outcome.responses);
    Ok(json!({"bytes": outcome.bytes, "active_seconds": outcome.active_seconds,
              "started_seconds": outcome.started_seconds, "handshake_seconds": outcome.handshake_seconds,
              "congestion_control": outcome.congestion_control, "nodelay": outcome.nodelay,
              "retransmits": outcome.sent.retransmits, "timeouts": outcome.sent.timeouts,
              "rounds": rounds, "responses": responses}))
}
