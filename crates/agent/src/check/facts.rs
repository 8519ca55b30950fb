//! `check.facts` and `check.routes`: what the kernel of this host says about its interfaces and routes. Readings only.

use crate::pipe::call::Call;
use crate::pipe::message::{Answer, Failure, Nothing, params};
use framegauge_drivers::check::facts::{self, InterfaceFacts, NeighbourFacts, RouteFacts};
use framegauge_drivers::check::rdma::RdmaPort;
use framegauge_frames::{Family, rdma_paths};
use framegauge_pathmtu::{ClampedTo, ErrorFilter, LengthFilter, MssClamp};
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::IpAddr;

/// Reads everything.
pub fn run(call: &Call) -> Answer {
    let Nothing {} = params(&call.request)?;
    let host = facts::gather()?;
    let cache: Vec<Value> = host
        .path_mtu_cache
        .iter()
        .map(|exception| {
            json!({"destination": exception.destination.to_string(), "mtu": exception.mtu,
                   "family": version(exception.destination)})
        })
        .collect();
    let rules = host.rules.as_ref();
    let of_both = |[ipv4, ipv6]: [Option<u64>; 2]| json!({"ipv4": ipv4, "ipv6": ipv6});
    let [neighbours_v4, neighbours_v6] = host.neighbour_tables.map(|table| table.map(neighbours));
    Ok(json!({
        "hostname": host.hostname,
        "kernel": host.kernel,
        "interfaces": host.interfaces.iter().map(interface).collect::<Vec<Value>>(),
        "sysctls": host.sysctls,
        "clock_source": host.clock_source,
        "path_mtu_cache": cache,
        "mss_clamps": {
            "rules": rules.ok().map(|rules| rules.mss_clamps.iter().map(clamp).collect::<Vec<Value>>()),
            "error": rules.err(),
        },
        "error_filters": {
            "rules": rules.ok().map(|rules| rules.error_filters.iter().map(filter).collect::<Vec<Value>>()),
            "error": rules.err(),
        },
        "length_filters": {
            "rules": rules.ok().map(|rules| rules.length_filters.iter().map(by_length).collect::<Vec<Value>>()),
            "error": rules.err(),
        },
        "fragments_created": of_both(host.fragments_created),
        "packets_reassembled": of_both(host.packets_reassembled),
        "neighbour_tables": {"boot_id": host.boot, "ipv4": neighbours_v4, "ipv6": neighbours_v6},
        "rdma": host.rdma.iter().map(|port| rdma(port, &host.interfaces)).collect::<Vec<Value>>(),
    }))
}

fn neighbours(facts: NeighbourFacts) -> Value {
    let NeighbourFacts { table, permanent } = facts;
    json!({"entries": table.entries, "most": table.most, "refused": table.refused, "permanent": permanent})
}

/// A port of RDMA, and from which MTU of its interface on Linux offers each path MTU.
fn rdma(port: &RdmaPort, interfaces: &[InterfaceFacts]) -> Value {
    let own = interfaces.iter().find(|facts| Some(&facts.interface.name) == port.interface.as_ref());
    let levels = rdma_paths(Family::V4)
        .map(|path| json!({"path_mtu": path.path_mtu_bytes, "mtu": path.linux_mtu_bytes}));
    json!({
        "device": port.device,
        "port": port.port,
        "link_layer": port.link_layer,
        "state": port.state,
        "interface": port.interface,
        "mtu": own.map(|own| own.interface.mtu),
        "active_mtu": port.active_mtu.as_ref().ok(),
        "error": port.active_mtu.as_ref().err(),
        "levels": levels,
    })
}

fn clamp(rule: &MssClamp) -> Value {
    let (to, size) = match rule.to {
        ClampedTo::Size(size) => ("size", Some(size)),
        ClampedTo::RouteMtu => ("route_mtu", None),
        ClampedTo::Unknown => ("unknown", None),
    };
    let mut clamp =
        json!({"family": rule.family, "table": rule.table, "chain": rule.chain, "to": to, "mss_bytes": size});
    if let Some(line) = &rule.line {
        clamp["line"] = line.as_str().into();
    }
    clamp
}

fn filter(rule: &ErrorFilter) -> Value {
    let family = if rule.version == Family::V4 { 4 } else { 6 };
    json!({"ip_version": family, "family": rule.family, "table": rule.table, "chain": rule.chain,
           "handle": rule.handle, "line": rule.line, "program": program(rule.by_iptables),
           "certain": rule.certain})
}

/// Which lists a rule.
fn program(by_iptables: bool) -> &'static str {
    if by_iptables { "iptables" } else { "nft" }
}

fn by_length(rule: &LengthFilter) -> Value {
    let family = if rule.version == Family::V4 { 4 } else { 6 };
    json!({"ip_version": family, "family": rule.family, "table": rule.table, "chain": rule.chain, "hook": rule.hook,
           "device": rule.device, "handle": rule.handle, "line": rule.line,
           "program": program(rule.by_iptables),
           "above_bytes": rule.above, "to_bytes": rule.to, "certain": rule.certain})
}

fn interface(facts: &InterfaceFacts) -> Value {
    let own = &facts.interface;
    // The kernel has one kind for a tunnel of packets and for a NIC of a program, such as that of a virtual machine.
    let kind = own.kind.as_deref().map(|kind| if kind == "tun" && own.ethernet { "tap" } else { kind });
    let addresses: Vec<Value> = facts
        .addresses
        .iter()
        .map(|entry| {
            json!({"address": entry.address.to_string(), "prefix_length": entry.prefix_length,
                   "family": version(entry.address)})
        })
        .collect();
    json!({
        "name": own.name,
        "index": own.index,
        "mtu": own.mtu,
        "maximum_mtu": own.maximum_mtu,
        "up": own.up,
        "enabled": own.enabled,
        "kind": kind,
        "driver": facts.driver,
        "bits_per_second": facts.bits_per_second,
        "parent": facts.parent,
        "master": facts.master,
        "overhead_bytes": facts.overhead_bytes,
        "addresses": addresses,
        "offloads": facts.offloads,
        "programs": facts.programs,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    destinations: Vec<String>,
}

/// Asks the kernel for its routes.
pub fn routes(call: &Call) -> Answer {
    let Ask { destinations } = params(&call.request)?;
    let addresses: Vec<IpAddr> = destinations
        .iter()
        .map(|text| {
            let problem = || format!("destinations: found {text:?}, expected an IPv4 or IPv6 address");
            text.parse().map_err(|_| Failure::invalid_params("check.routes", problem()))
        })
        .collect::<Result<_, Failure>>()?;
    let answer = facts::ways(&addresses)?;
    let routes: Vec<Value> =
        destinations.iter().zip(&answer).map(|(destination, answer)| route(destination, answer)).collect();
    Ok(json!({"routes": routes}))
}

fn route(destination: &str, facts: &RouteFacts) -> Value {
    let way = facts.way.as_ref();
    json!({
        "destination": destination,
        "source": way.ok().map(|way| way.source.to_string()),
        "interface": facts.interface,
        "route_mtu_bytes": way.ok().map(|way| way.mtu),
        "error": way.err(),
    })
}

fn version(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}
