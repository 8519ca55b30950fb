//! `check.serve`, `check.run`, `check.trace`, `check.close`: the path MTU from this host to others.

use super::state::Check;
use crate::pipe::call::Call;
use crate::pipe::fields::{chance, nanoseconds, token, within};
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use framegauge_drivers::check::path::{
    Bulk, FlowSockets, Order, PathOutcome, PathSpec, Responder, TcpFinding, TraceOrder, TraceSpec,
    run as search, trace as follow,
};
use framegauge_pathmtu::{Config, Hop, HopOutcome, Token, Told, TraceConfig, Verdict};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

pub(super) const MOST_PATHS: usize = 4096;
const MOST_FLOWS: u16 = 1024;
const MOST_CONTROLS: u32 = 16;
const MOST_PORTS: usize = 4096;
/// An IPv4 host must take packets of so many bytes (RFC 791); a check for less makes no sense.
pub(super) const SIZES: (u32, u32) = (576, 65_535);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    token: String,
    addresses: Vec<IpAddr>,
    ports: usize,
}

/// Starts to answer.
pub fn serve(call: &Call) -> Answer {
    let request: Serve = params(&call.request)?;
    let token = token("check.serve", &request.token)?;
    within("check.serve", "ports", request.ports, 1, MOST_PORTS)?;
    let mut check = lock(&call.session.host.check);
    if check.is_some() {
        return Err(Failure::state("this host takes part in a check already; check.close first"));
    }
    let responder = Responder::start(&request.addresses, request.ports, call.session.host.ports, token)?;
    let endpoints: Vec<Value> = responder
        .endpoints()
        .iter()
        .map(|endpoint| json!({"address": endpoint.address, "ports": endpoint.ports, "tcp_port": endpoint.tcp_port}))
        .collect();
    *check = Some(Check { responder, sockets: FlowSockets::default(), token });
    Ok(json!({"endpoints": endpoints}))
}

/// Stops answering and gives the ports back.
pub fn close(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let check = lock(&call.session.host.check).take();
    let answered = check.ok_or_else(not_serving)?.responder.finish()?;
    Ok(json!({"answered": answered.answered, "refused": answered.refused}))
}

fn not_serving() -> Failure {
    Failure::state("this host takes part in no check; check.serve comes first")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    target_mtu: u32,
    flows: u16,
    exact: bool,
    false_claim: f64,
    controls_a_probe: u32,
    bits_per_second: Option<u64>,
    in_flight_bytes: u32,
    patience_seconds: f64,
    paths: Vec<Path>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Path {
    source: IpAddr,
    destination: IpAddr,
    port: u16,
    tcp_port: Option<u16>,
}

/// Searches every path.
pub fn run(call: &Call) -> Answer {
    let request: Run = params(&call.request)?;
    within("check.run", "target_mtu", request.target_mtu, SIZES.0, SIZES.1)?;
    within("check.run", "flows", request.flows, 1, MOST_FLOWS)?;
    within("check.run", "controls_a_probe", request.controls_a_probe, 1, MOST_CONTROLS)?;
    within("check.run", "paths", request.paths.len(), 1, MOST_PATHS)?;
    let patience = nanoseconds("check.run", "patience_seconds", request.patience_seconds, 86_400.0)?;
    chance("check.run", "false_claim", request.false_claim)?;
    let mut check = lock(&call.session.host.check);
    let check = check.as_mut().ok_or_else(not_serving)?;
    let order = Order {
        paths: request.paths.iter().map(Path::spec).collect(),
        search: Config {
            target: request.target_mtu,
            flows: request.flows,
            exact: request.exact,
            false_claim: request.false_claim,
            controls_a_probe: request.controls_a_probe,
            in_flight_bytes: request.in_flight_bytes,
            patience: Duration::from_nanos(patience),
            gap: Duration::ZERO,
            seed: seed(&check.token),
        },
        token: check.token,
        bits_per_second: request.bits_per_second,
    };
    let text = "searching";
    let outcomes = search(&order, &mut check.sockets, &|| call.cancellation.asked(), &|share| {
        call.progress(Some(share), text);
    })?;
    Ok(json!({"paths": outcomes.iter().map(describe).collect::<Vec<_>>()}))
}

impl Path {
    fn spec(&self) -> PathSpec {
        PathSpec {
            source: self.source,
            destination: SocketAddr::new(self.destination, self.port),
            tcp_port: self.tcp_port,
        }
    }
}

/// Of the order of sizes, which nothing on the way can foresee: the token was drawn anew and was on no wire.
pub(super) fn seed(token: &Token) -> u64 {
    token.iter().fold(0, |seed: u64, byte| seed.rotate_left(5) ^ u64::from(*byte))
}

pub(super) fn describe(path: &PathOutcome) -> Value {
    let flows: Vec<Value> = path
        .report
        .flows
        .iter()
        .zip(&path.source_ports)
        .map(|(flow, port)| {
            json!({"source_port": port, "verdict": verdict(flow.verdict), "path_mtu_bytes": flow.path_mtu_bytes,
                   "delivered_bytes": flow.delivered_bytes, "fragmented": flow.fragment_bytes.is_some()})
        })
        .collect();
    let mut reports: BTreeMap<(Option<IpAddr>, Option<u32>), u32> = BTreeMap::new();
    for Told { by, mtu_bytes } in
        path.report.flows.iter().flat_map(|flow| flow.told.into_iter().chain(flow.disproved))
    {
        *reports.entry((by, mtu_bytes)).or_default() += 1;
    }
    let slowly = path
        .report
        .slowly
        .map(|slowly| json!({"flows": slowly.arrived, "bytes_per_second": slowly.bytes_per_second}));
    let reports: Vec<Value> = reports
        .iter()
        .map(|((by, mtu), flows)| json!({"address": by, "mtu_bytes": mtu, "flows": flows}))
        .collect();
    json!({
        "flows": flows, "told_by": reports, "seconds": path.seconds,
        "controls": {"sent": path.report.controls.sent, "lost": path.report.controls.lost},
        "packets_sent": path.report.sent_packets, "bytes_sent": path.report.sent_bytes,
        "route_mtu_bytes": path.way.and_then(|way| way.route_mtu_bytes), "interface": path.interface,
        "tcp": path.tcp.as_ref().map(describe_tcp), "said": path.said, "slowly": slowly,
    })
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::CarriesTarget => "carries_target",
        Verdict::TooSmall => "too_small",
        Verdict::BlackHole => "black_hole",
        Verdict::Unreachable => "unreachable",
        Verdict::Unknown => "unknown",
    }
}

pub(super) fn describe_tcp(tcp: &TcpFinding) -> Value {
    let bulk = tcp.bulk.map(|bulk| match bulk {
        Bulk::Passed => "passed",
        Bulk::Stalled => "stalled",
    });
    json!({"connected": tcp.connected, "mss_bytes": tcp.mss_bytes,
           "announced_mss_bytes": tcp.announced_mss_bytes, "route_mtu_bytes": tcp.route_mtu_bytes,
           "peer_announced_mss_bytes": tcp.peer_announced_mss_bytes, "bulk": bulk, "refused": tcp.refused, "error": tcp.error})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Follow {
    hops: u8,
    patient: bool,
    small_bytes: u32,
    traces: Vec<Traced>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Traced {
    source: IpAddr,
    source_port: u16,
    destination: IpAddr,
    port: u16,
    large_bytes: u32,
}

/// Finds the hop on flows that `check.run` has used.
pub fn trace(call: &Call) -> Answer {
    let request: Follow = params(&call.request)?;
    within("check.trace", "hops", request.hops, 1, 64)?;
    within("check.trace", "small_bytes", request.small_bytes, 100, SIZES.1)?;
    let mut check = lock(&call.session.host.check);
    let check = check.as_mut().ok_or_else(not_serving)?;
    let mut traces = Vec::new();
    for trace in &request.traces {
        within("check.trace", "large_bytes", trace.large_bytes, 100, SIZES.1)?;
        let flow = check.sockets.flow(trace.source, trace.source_port);
        let unknown = || {
            let message = format!("no flow of check.run has {} port {}", trace.source, trace.source_port);
            Failure::invalid_params("check.trace", message)
        };
        traces.push(TraceSpec {
            source: trace.source,
            flow: flow.ok_or_else(unknown)?,
            destination: SocketAddr::new(trace.destination, trace.port),
            small_bytes: request.small_bytes,
            large_bytes: trace.large_bytes,
        });
    }
    let config = TraceConfig { hops: request.hops, patient: request.patient };
    let order = TraceOrder { traces, config, token: check.token };
    let hop_lists = follow(&order, &check.sockets, &|| call.cancellation.asked())?;
    let traces: Vec<Value> = hop_lists
        .iter()
        .map(|hops| json!({"hops": hops.iter().map(describe_hop).collect::<Vec<_>>()}))
        .collect();
    Ok(json!({"traces": traces}))
}

fn describe_hop(hop: &Hop) -> Value {
    json!({"ttl": hop.ttl, "small": describe_outcome(hop.small), "large": describe_outcome(hop.large)})
}

fn describe_outcome(outcome: HopOutcome) -> Value {
    let (name, address, mtu) = match outcome {
        HopOutcome::Silent => ("silent", None, None),
        HopOutcome::Expired(by) => ("expired", Some(by), None),
        HopOutcome::Delivered => ("delivered", None, None),
        HopOutcome::TooBig(by, mtu) => ("too_big", by, mtu),
        HopOutcome::Unreachable(by) => ("unreachable", Some(by), None),
    };
    json!({"outcome": name, "address": address, "mtu_bytes": mtu})
}
