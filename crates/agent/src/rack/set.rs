//! `rack.set`: changes ports or a host's MTU while the rack works.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, params};
use crate::rack::speed;
use framegauge_networks::{LinkOverride, QueueSpec};
use serde::Deserialize;
use serde_json::json;

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
    let Host { host, mtu } = params(&call.request)?;
    let answer = call.session.rack.host(&host)?.call("host.set", json!({"mtu": mtu}))?;
    Ok(json!({"time_seconds": answer["time_seconds"], "changed": [host]}))
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
