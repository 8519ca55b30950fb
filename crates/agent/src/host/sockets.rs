//! `sockets.read` and `sockets.listening`: the host's TCP sockets.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Nothing, params};
use framegauge_drivers::generators::sockets::{ConnectedSocket, connected_sockets, listening_sockets};
use serde_json::{Value, json};
use std::collections::BTreeSet;

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
