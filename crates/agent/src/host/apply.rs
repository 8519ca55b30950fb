//! `host.apply`: the rack agent's settings for a host.

use crate::pipe::call::Call;
use crate::pipe::lock::lock;
use crate::pipe::message::{Answer, Failure, params};
use framegauge_drivers::host::aggregates::{self, Asked as Aggregates};
use framegauge_drivers::host::{
    Applied, HostSettings, InitialWindows, Nic, Overlay, Shaping, available_congestion_control, maximum_mtu,
};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::IpAddr;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Apply {
    host: String,
    nics: Vec<Place>,
    forwards: bool,
    tso: bool,
    gro: bool,
    checksum: bool,
    gso_bytes: Option<u32>,
    gro_bytes: Option<u32>,
    congestion_control: String,
    initial_window_segments: Option<u32>,
    initial_receive_window_segments: Option<u32>,
    shaping: Option<Shape>,
    sysctls: BTreeMap<String, String>,
    cpus: Vec<usize>,
    threaded: bool,
    receive_cpu: Option<usize>,
    moderation_seconds: Option<f64>,
    overlay: Option<Inside>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    interface: String,
    hardware: [u8; 6],
    mtu: u32,
    address: IpAddr,
    neighbours: Vec<Neighbour>,
    routes: Vec<Route>,
    bits_per_second: Option<u64>,
    packet_bytes: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Route {
    subnet: IpAddr,
    gateway: IpAddr,
}

impl Place {
    fn nic(self) -> Nic {
        Nic {
            interface: self.interface,
            hardware: self.hardware,
            mtu: self.mtu,
            address: self.address,
            neighbours: self.neighbours.into_iter().map(|other| (other.address, other.hardware)).collect(),
            routes: self.routes.into_iter().map(|route| (route.subnet, route.gateway)).collect(),
            bits_per_second: self.bits_per_second,
            packet_bytes: self.packet_bytes,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Inside {
    interface: String,
    mtu: u32,
    hardware: [u8; 6],
    address: IpAddr,
    peers: Vec<Peer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Peer {
    address: IpAddr,
    hardware: [u8; 6],
    outside: IpAddr,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Neighbour {
    address: IpAddr,
    hardware: [u8; 6],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    bits_per_second: u64,
    burst_bytes: u32,
    limit_bytes: u64,
    aggregate_bytes: u32,
}

/// Applies the settings; what cannot be honoured is refused first.
pub fn run(call: &Call) -> Answer {
    let request: Apply = params(&call.request)?;
    let mut applied = lock(&call.session.host.applied);
    if applied.is_some() {
        return Err(Failure::state("this host has its settings already"));
    }
    let available = available_congestion_control()?;
    if !available.contains(&request.congestion_control) {
        return Err(Failure::refused("congestion control", request.congestion_control, available.join(", ")));
    }
    if request.nics.is_empty() {
        return Err(Failure::invalid_params("host.apply", "nics: found none, expected one or more"));
    }
    for nic in &request.nics {
        if let Some(maximum) = maximum_mtu(&nic.interface)?.filter(|maximum| nic.mtu > *maximum) {
            return Err(Failure::refused(&format!("the MTU of {}", request.host), nic.mtu, maximum));
        }
    }
    let aggregates = Aggregates { gso_bytes: request.gso_bytes, gro_bytes: request.gro_bytes };
    for nic in &request.nics {
        if let Some((name, bytes, limit)) = aggregates.refused(&aggregates::read(&nic.interface)?) {
            return Err(Failure::refused(&format!("{name} of {}", request.host), bytes, limit));
        }
    }
    let limit = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    *applied = Some(Applied::apply(HostSettings {
        nics: request.nics.into_iter().map(Place::nic).collect(),
        forwards: request.forwards,
        tso: request.tso,
        gro: request.gro,
        checksum: request.checksum,
        aggregates,
        congestion_control: request.congestion_control,
        windows: InitialWindows {
            send: request.initial_window_segments,
            receive: request.initial_receive_window_segments,
        },
        shaping: request.shaping.map(|shape| Shaping {
            bits_per_second: shape.bits_per_second,
            burst_bytes: shape.burst_bytes,
            limit_bytes: limit(shape.limit_bytes),
            aggregate_bytes: shape.aggregate_bytes,
        }),
        sysctls: request.sysctls,
        cpus: request.cpus,
        threaded: request.threaded,
        receive_cpu: request.receive_cpu,
        moderation_seconds: request.moderation_seconds,
        overlay: request.overlay.map(|inside| Overlay {
            interface: inside.interface,
            mtu: inside.mtu,
            hardware: inside.hardware,
            address: inside.address,
            peers: inside.peers.into_iter().map(|peer| (peer.address, peer.hardware, peer.outside)).collect(),
        }),
    })?);
    Ok(json!({}))
}
