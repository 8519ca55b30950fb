//! `rack.set`: changes ports, the MTU of a host or router, of one NIC, or of routes, while the rack works, or ends
//! connections.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, params};
use crate::rack::speed;
use crate::rack::state::Rack;
use framegauge_drivers::rack::nics::largest_packet;
use framegauge_fabric::Owner;
use framegauge_networks::{LinkOverride, QueueSpec};
use serde::Deserialize;
use serde_json::{Value, json};

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
    mtu: Option<u32>,
    route_mtu: Option<u32>,
    reopen: Option<bool>,
}

/// Changes ports, or a host's MTU.
pub fn run(call: &Call) -> Answer {
    // Which of the two it is decides the message about what is wrong.
    let is_host = call.request.params.get("host").is_some();
    if !is_host {
        return set_ports(call, params(&call.request)?);
    }
    let Host { host: name, mtu, route_mtu, reopen } = params(&call.request)?;
    let (host, nic) = place(&name);
    match (mtu, route_mtu, reopen) {
        (Some(mtu), None, None) => set_mtu(call, &name, mtu),
        (None, Some(mtu), None) => tell(call, &name, &json!({"route_mtu": mtu, "nic": nic})),
        (None, None, Some(true)) if host == name => tell(call, &name, &json!({"reopen": true})),
        _ => {
            let expected =
                "expected exactly one of mtu, route_mtu and reopen: true (of a host, not of a NIC)";
            Err(Failure::invalid_params(METHOD, format!("found other keys beside host, {expected}")))
        }
    }
}

/// A host or router and one of its NICs, from 0, that a name such as `h1.2` stands for; none: all of its NICs.
fn place(name: &str) -> (&str, Option<usize>) {
    let number = |text: &str| text.parse::<usize>().ok()?.checked_sub(1);
    let end = name.split_once('.').and_then(|(host, text)| Some((host, Some(number(text)?))));
    end.unwrap_or((name, None))
}

/// Has a host do what concerns nothing else.
fn tell(call: &Call, name: &str, settings: &Value) -> Answer {
    let answer = call.session.rack.host(place(name).0)?.call("host.set", settings.clone())?;
    Ok(json!({"time_seconds": answer["time_seconds"], "changed": [name], "closed": answer["closed"]}))
}

fn set_mtu(call: &Call, name: &str, mtu: u32) -> Answer {
    let (host, nic) = place(name);
    let agent = call.session.rack.host(host)?;
    let mut current = call.session.rack.current();
    let rack = current.as_mut().ok_or_else(|| Failure::state("no rack is up"))?;
    let change = rack
        .network
        .as_ref()
        .and_then(|(spec, network)| spec.with_router_mtu(&network.hosts(), network, host, mtu));
    if change.is_some() && nic.is_some() {
        let problem = format!("found {name}, expected {host}: the NICs of a router have one MTU");
        return Err(Failure::invalid_params(METHOD, problem));
    }
    let change = change.transpose().map_err(|problem| Failure::invalid_params(METHOD, problem))?;
    let mut time_seconds = agent.call("host.set", json!({"mtu": mtu, "nic": nic}))?["time_seconds"].clone();
    let before = rack.mtus.clone();
    if let Some((_, network)) = &rack.network {
        let own = (0..network.ends.len()).filter(|end| network.ends.owner_name(*end) == host).enumerate();
        for (_, end) in own.filter(|(place, _)| nic.is_none_or(|nic| nic == *place)) {
            rack.mtus[end] = mtu;
        }
    }
    if let (Some(change), Some(fabric)) = (change, &rack.fabric) {
        time_seconds = fabric.change(change.ports)?.into();
        rack.network = Some((change.spec, change.network));
        fit_shapers(rack, &before)?;
    }
    Ok(json!({"time_seconds": time_seconds, "changed": [name]}))
}

/// Lets the shapers of hosts count by the largest packet that passes now: a router's MTU bounds what others send.
fn fit_shapers(rack: &Rack, before: &[u32]) -> Result<(), Failure> {
    let Some((_, network)) = &rack.network else { return Ok(()) };
    for (index, name) in network.hosts().iter().enumerate() {
        let Some(agent) = rack.hosts.get(name) else { continue };
        for (nic, end) in network.ends.ends_of(Owner::Host(index)).iter().enumerate() {
            let largest = |mtus: &[u32]| largest_packet(&network.ends, *end, |end| mtus[end]);
            let packet_bytes = largest(&rack.mtus);
            if packet_bytes != largest(before) {
                agent.call("host.set", json!({"packet_bytes": packet_bytes, "nic": nic}))?;
            }
        }
    }
    Ok(())
}

fn set_ports(call: &Call, request: Ports) -> Answer {
    let failure = |problem: String| Failure::invalid_params(METHOD, problem);
    let mut current = call.session.rack.current();
    let rack = current.as_mut().ok_or_else(|| Failure::state("no rack is up"))?;
    let (Some(fabric), Some((spec, network))) = (&rack.fabric, &rack.network) else {
        return Err(Failure::state("this rack has no fabric, whose ports could be changed"));
    };
    let up = request.up;
    let link = LinkOverride {
        from: request.from,
        to: request.to,
        bits_per_second: request.bits_per_second,
        delay_seconds: request.delay_seconds,
        mtu: request.mtu,
        buffer_bytes: request.buffer_bytes,
        queue: request.queue,
        ..LinkOverride::default()
    };
    let change = spec.changed(&network.hosts(), network, &link, up).map_err(failure)?;
    if request.bits_per_second.is_some() {
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
