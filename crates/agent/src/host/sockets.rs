//! `sockets.read`, `.listening`, `.watch` and `.watched`: the host's TCP sockets, now and for a while.

use crate::pipe::call::Call;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use framegauge_drivers::generators::sockets::{ConnectedSocket, connected_sockets, listening_sockets};
use framegauge_drivers::meters::sockets::{Role, SocketWatch, Summary};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const METHOD: &str = "sockets.watch";
const SHORTEST_SECONDS: f64 = 0.001;
const LONGEST_SECONDS: f64 = 10.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Watch {
    #[serde(default = "usual_interval")]
    interval_seconds: f64,
}

fn usual_interval() -> f64 {
    0.02
}

/// Lists them.
pub fn read(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let sockets: Vec<Value> = connected_sockets()?.iter().map(shown).collect();
    Ok(json!({"sockets": sockets}))
}

/// The ports on which something listens.
pub fn listening(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let ports: BTreeSet<u16> = listening_sockets()?.iter().map(|socket| socket.port).collect();
    Ok(json!({"ports": ports}))
}

/// `nodelay` is null: the kernel lists it of no socket, only a socket's own process can ask.
fn shown(socket: &ConnectedSocket) -> Value {
    let info = socket.info;
    json!({"local": socket.local.to_string(), "remote": socket.remote.to_string(), "state": socket.state,
           "congestion_control": socket.congestion_control, "mss_bytes": info.map(|info| info.mss_bytes),
           "path_mtu": info.map(|info| info.path_mtu), "retransmits": info.map(|info| info.retransmits),
           "srtt_seconds": info.map(|info| info.srtt_seconds),
           "cwnd_segments": info.map(|info| info.cwnd_segments), "nodelay": null})
}

/// Begins to look at the sockets of the host's programs; an earlier watch is given up.
pub fn watch(call: &Call) -> Answer {
    let Watch { interval_seconds } = params(&call.request)?;
    if !(SHORTEST_SECONDS..=LONGEST_SECONDS).contains(&interval_seconds) {
        let expected = format!("expected {SHORTEST_SECONDS} to {LONGEST_SECONDS}");
        let problem = format!("interval_seconds: found {interval_seconds}, {expected}");
        return Err(Failure::invalid_params(METHOD, problem));
    }
    // The conversation holds the watch, so that the watch must not hold the conversation.
    let session = Arc::downgrade(&call.session);
    let trees = move || session.upgrade().map(|session| session.host.processes.trees()).unwrap_or_default();
    let private = call.session.role.works_apart();
    let watch = SocketWatch::begin(Box::new(trees), private, interval_seconds)?;
    *lock(&call.session.host.watch) = Some(watch);
    Ok(json!({}))
}

/// Ends it and tells what was seen.
pub fn watched(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let watch = lock(&call.session.host.watch).take();
    let watched = watch.ok_or_else(|| Failure::state("sockets.watch comes first"))?.end()?;
    let sockets: Vec<Value> = watched.sockets.iter().map(summed_up).collect();
    let unread: Vec<Value> =
        watched.unread.iter().map(|(program, reason)| json!({"program": **program, "why": reason})).collect();
    Ok(json!({"looks": watched.looks, "started_seconds": watched.started_seconds, "seconds": watched.seconds,
              "cpu_seconds": watched.cpu_seconds, "sockets": sockets, "unread": unread, "more": watched.more,
              "lost": watched.lost}))
}

fn summed_up(summary: &Summary) -> Value {
    let congestion_control: Vec<&str> = summary.congestion_control.iter().map(|name| &**name).collect();
    json!({"process": summary.owner.as_ref().map(|owner| owner.process),
           "program": summary.owner.as_ref().map(|owner| &*owner.program),
           "local": summary.local.map(|address| address.to_string()),
           "remote": summary.remote.map(|address| address.to_string()),
           "role": match summary.role { Role::Server => "server", Role::Client => "client" },
           "port": summary.port, "loopback": summary.loopback, "connections": summary.connections,
           "congestion_control": congestion_control, "nodelay": summary.nodelay,
           "mss_bytes": summary.mss_bytes, "sent_bytes": summary.sent_bytes,
           "received_bytes": summary.received_bytes, "first_seconds": summary.first_seconds,
           "last_seconds": summary.last_seconds})
}
