//! `rack.set`: changes ports, or the MTU of a host or router, while the rack works.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, params};
use crate::rack::speed;
use crate::rack::state::Rack;
use framegauge_drivers::rack::nics::largest_packet;
use framegauge_fabric::Owner;
use framegauge_networks::{LinkOverride, QueueSpec};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

const METHOD: &str = "rack.set";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ports {
    from: String,
    to: String,
    bits_per_second: Option<u64>,
    delay_seconds: Option<f64>,
    mtu: Option<u32>,
    buffer_bytes: Option<u64>,
    queue: Option<QueueSpec>,
    up: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    host: String,
    mtu: u32,
}

/// Changes ports, or a host's MTU.
pub fn run(call: &Call) -> Answer {
    // Which of the two it is decides the message about what is wrong.
    let is_host = call.request.params.get("host").is_some();
    if !is_host {
        return set_ports(call, params(&call.request)?);
    }
    set_mtu(call, params(&call.request)?)
}

fn set_mtu(call: &Call, Host { host, mtu }: Host) -> Answer {
    let agent = call.session.rack.host(&host)?;
    let mut current = call.session.rack.current();
    let rack = current.as_mut().ok_or_else(|| Failure::state("no rack is up"))?;
    let change = rack
        .network
        .as_ref()
        .and_then(|(spec, network)| spec.with_router_mtu(&network.hosts(), network, &host, mtu));
    let change = change.transpose().map_err(|problem| Failure::invalid_params(METHOD, problem))?;
    let mut time_seconds = agent.call("host.set", json!({"mtu": mtu}))?["time_seconds"].clone();
    let before = rack.mtus.clone();
    rack.mtus.insert(host.clone(), mtu);
    if let (Some(change), Some(fabric)) = (change, &rack.fabric) {
        time_seconds = fabric.change(change.ports)?.into();
        rack.network = Some((change.spec, change.network));
        fit_shapers(rack, &before)?;
    }
    Ok(json!({"time_seconds": time_seconds, "changed": [host]}))
}

/// Lets the shapers of hosts count by the largest packet that passes now: a router's MTU bounds what others send.
fn fit_shapers(rack: &Rack, before: &BTreeMap<String, u32>) -> Result<(), Failure> {
    let Some((_, network)) = &rack.network else { return Ok(()) };
    for (index, name) in network.hosts().iter().enumerate() {
        let largest = |mtus: &BTreeMap<String, u32>| {
            let name = |owner| network.ends.owner_name(network.ends.ends_of(owner)[0]);
            largest_packet(&network.ends, Owner::Host(index), |owner| {
                mtus.get(name(owner)).copied().unwrap_or(u32::MAX)
            })
        };
        let packet_bytes = largest(&rack.mtus);
        if let Some(agent) = rack.hosts.get(name).filter(|_| packet_bytes != largest(before)) {
            agent.call("host.set", json!({"packet_bytes": packet_bytes}))?;
        }
    }
    Ok(())
}

fn set_ports(call: &Call, asked: Ports) -> Answer {
    let wrong = |problem: String| Failure::invalid_params(METHOD, problem);
    let mut current = call.session.rack.current();
    let rack = current.as_mut().ok_or_else(|| Failure::state("no rack is up"))?;
    let (Some(fabric), Some((spec, network))) = (&rack.fabric, &rack.network) else {
        return Err(Failure::state("this rack has no fabric, whose ports could be changed"));
    };
    let up = asked.up;
    let link = LinkOverride {
        from: asked.from,
        to: asked.to,
        bits_per_second: asked.bits_per_second,
        delay_seconds: asked.delay_seconds,
        mtu: asked.mtu,
        buffer_bytes: asked.buffer_bytes,
        queue: asked.queue,
        ..LinkOverride::default()
    };
    let change = spec.changed(&network.hosts(), network, &link, up).map_err(wrong)?;
    if asked.bits_per_second.is_some() {
        speed::check(&change.network, call.session.rack.most_bits_per_second())?;
    }
    let names: Vec<String> = change.ports.iter().map(|(port, _)| network.config.port_name(*port)).collect();
    let shapers = rack.shaper_factor.map_or_else(Vec::new, |factor| change.shapers(factor));
    let time_seconds = fabric.change(change.ports)?;
    rack.network = Some((change.spec, change.network));
    for (host, nic, bits_per_second) in shapers {
        let agent = rack.hosts.get(&host).ok_or_else(|| Failure::lost("a host"))?;
        agent.call("host.set", json!({"shaper": {"nic": nic, "bits_per_second": bits_per_second}}))?;
    }
    Ok(json!({"time_seconds": time_seconds, "changed": names}))
}
