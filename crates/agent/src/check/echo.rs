//! `check.echo`: finds the path MTU from this host to hosts that run no agent.

use crate::check::two_ended::{MOST_PATHS, SIZES, describe, describe_tcp, seed};
use crate::pipe::call::Call;
use crate::pipe::fields::{chance, nanoseconds, token, within};
use crate::pipe::message::{Answer, params};
use framegauge_drivers::check::path::{Echoed, Order, PathOutcome, PathSpec, TcpFinding, echo};
use framegauge_pathmtu::Config;
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    token: String,
    target_mtu: u32,
    false_claim: f64,
    bits_per_second: Option<u64>,
    in_flight_bytes: u32,
    gap_seconds: f64,
    patience_seconds: f64,
    paths: Vec<Path>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Path {
    source: IpAddr,
    destination: IpAddr,
    tcp_port: Option<u16>,
}

/// Searches every path with echoes of its own, and looks at TCP.
pub fn run(call: &Call) -> Answer {
    let request: Run = params(&call.request)?;
    within("check.echo", "target_mtu", request.target_mtu, SIZES.0, SIZES.1)?;
    within("check.echo", "paths", request.paths.len(), 1, MOST_PATHS)?;
    let patience = nanoseconds("check.echo", "patience_seconds", request.patience_seconds, 86_400.0)?;
    let gap = nanoseconds("check.echo", "gap_seconds", request.gap_seconds, 10.0)?;
    let token = token("check.echo", &request.token)?;
    let order = Order {
        paths: request.paths.iter().map(Path::spec).collect(),
        search: Config {
            target: request.target_mtu,
            // An echo has no port, so that several would all take the same way.
            flows: 1,
            exact: true,
            false_claim: chance("check.echo", "false_claim", request.false_claim)?,
            controls_a_probe: 3,
            in_flight_bytes: request.in_flight_bytes,
            patience: Duration::from_nanos(patience),
            gap: Duration::from_nanos(gap),
            seed: seed(&token),
        },
        token,
        bits_per_second: request.bits_per_second,
    };
    let echoed = echo(&order, &|| call.cancellation.asked(), &|share| {
        call.progress(Some(share), "searching");
    })?;
    Ok(match echoed {
        Echoed::Paths(paths) => {
            json!({"paths": paths.iter().map(one_ended).collect::<Vec<_>>(), "missing": null})
        }
        Echoed::Forbidden { tcp, missing } => {
            json!({"paths": tcp.iter().map(tcp_alone).collect::<Vec<_>>(), "missing": missing})
        }
    })
}

impl Path {
    fn spec(&self) -> PathSpec {
        PathSpec {
            source: self.source,
            destination: SocketAddr::new(self.destination, 0),
            tcp_port: self.tcp_port,
        }
    }
}

/// As `check.run` describes a path, and what the echoes themselves showed.
fn one_ended(path: &PathOutcome) -> Value {
    let mut answer = describe(path);
    let pieces = path.report.flows.iter().filter_map(|flow| flow.fragment_bytes).min();
    answer["reply_fragment_bytes"] = json!(pieces);
    answer["fragmented_bytes"] = json!(path.fragmented_bytes);
    answer["reply_cut_bytes"] = json!(path.cut_bytes);
    answer
}

/// Where no echo may be sent.
fn tcp_alone(tcp: &Option<TcpFinding>) -> Value {
    json!({
        "flows": [], "told_by": [], "seconds": 0.0, "controls": {"sent": 0, "lost": 0}, "packets_sent": 0, "bytes_sent": 0,
        "route_mtu_bytes": null, "interface": null, "tcp": tcp.as_ref().map(describe_tcp), "said": null, "slowly": null,
        "reply_fragment_bytes": null, "fragmented_bytes": null, "reply_cut_bytes": null,
    })
}
