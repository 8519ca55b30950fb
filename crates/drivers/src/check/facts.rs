//! What a host says of itself that bears on its MTUs: interfaces, tunnels, settings, remembered path MTUs, rules of its
//! firewall, routes. All of it are readings; nothing is sent, and only what is said of rules needs privilege.

use crate::check::rdma::RdmaPort;
use framegauge_linux::ethtool::{self, Offload};
use framegauge_linux::links::{self, Interface, InterfaceAddress};
use framegauge_linux::neighbour_tables::{self, NeighbourTable};
use framegauge_linux::routes::{self, PathMtuException};
use framegauge_linux::{OsError, Result, clock, process, qdisc, sysctl};
use std::collections::BTreeMap;
use std::net::IpAddr;

pub use super::ruleset::Rules;
pub use framegauge_linux::routes::Way;

/// Settings that decide how this host deals with path MTUs; those that exist are told.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const SYSCTLS: [&str; 23] = [
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_forward_use_pmtu",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_no_pmtu_disc",
    "net.ipv4.fib_multipath_hash_policy",
    "net.ipv4.icmp_ratelimit",
    "net.ipv4.icmp_ratemask",
    "net.ipv4.route.min_adv_mss",
    "net.ipv4.route.min_pmtu",
    "net.ipv4.route.mtu_expires",
    "net.ipv4.tcp_base_mss",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_min_snd_mss",
    "net.ipv4.tcp_mtu_probe_floor",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_probe_interval",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv6.conf.all.disable_ipv6",
    "net.ipv6.conf.all.forwarding",
    "net.ipv6.route.mtu_expires",
];

/// Everything.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The host's name.
    pub hostname: String,
    /// The kernel's release.
    pub kernel: String,
    /// Its interfaces without loopbacks.
    pub interfaces: Vec<InterfaceFacts>,
    /// Settings by their name.
    pub sysctls: BTreeMap<String, String>,
    /// What its clock is made of; none where nobody says.
    pub clock_source: Option<String>,
    /// The path MTUs that the kernel remembers.
    pub path_mtu_cache: Vec<PathMtuException>,
    /// Its rules, or why they could not be read.
    pub rules: std::result::Result<Rules, String>,
    /// Fragments that it has made of packets since it was started, of IPv4 and of IPv6; none where nobody counts them.
    pub fragments_created: [Option<u64>; 2],
    /// Packets that it has put together from fragments since it was started, likewise.
    pub packets_reassembled: [Option<u64>; 2],
    /// The neighbour tables of its kernel, of IPv4 and of IPv6; none where they could not be read.
    pub neighbour_tables: [Option<NeighbourFacts>; 2],
    /// Which kernel that is: hosts with the same text share these tables.
    pub boot: Option<String>,
    /// Its ports of RDMA.
    pub rdma: Vec<RdmaPort>,
}

/// One interface.
#[derive(Debug, Clone)]
pub struct InterfaceFacts {
    /// As the kernel lists it.
    pub interface: Interface,
    /// The name of its driver.
    pub driver: Option<String>,
    /// The speed that the device says it has.
    pub bits_per_second: Option<u64>,
    /// The name of the interface that it stands on, or that leads to a tunnel's other end.
    pub parent: Option<String>,
    /// The name of the bridge, bond, team or VRF that it is a port of.
    pub master: Option<String>,
    /// What a tunnel takes from its underlay's MTU, in bytes.
    pub overhead_bytes: Option<u32>,
    /// Its addresses without link-local ones of IPv6.
    pub addresses: Vec<InterfaceAddress>,
    /// Whether TSO, GSO, GRO, transmit checksums and LRO are on (`Offload::NAMED`).
    pub offloads: Option<BTreeMap<&'static str, bool>>,
    /// Programs that may drop or cut packets, and that no rule set shows: `xdp`, `tc_ingress`, `tc_egress`.
    pub programs: Vec<&'static str>,
}

/// A neighbour table.
#[derive(Debug, Clone, Copy)]
pub struct NeighbourFacts {
    /// As the kernel describes it.
    pub table: NeighbourTable,
    /// Entries of this network namespace that are permanent, and need no room.
    pub permanent: usize,
}

/// The way to a destination.
#[derive(Debug, Clone)]
pub struct RouteFacts {
    /// What a UDP socket says of it.
    pub way: std::result::Result<Way, String>,
    /// The interface that leads there.
    pub interface: Option<String>,
}

/// Reads everything.
pub fn gather() -> Result<Facts> {
    let all = links::interfaces()?;
    let addresses = links::addresses()?;
    let filtered = qdisc::filtered().unwrap_or_default();
    let interfaces: Vec<InterfaceFacts> = all
        .iter()
        .filter(|interface| !interface.loopback)
        .map(|interface| {
            let programs = programs(interface, &filtered);
            InterfaceFacts { programs, ..of_interface(interface, &all, &addresses) }
        })
        .collect();
    let names = interfaces.iter().map(|facts| facts.interface.name.as_str());
    Ok(Facts {
        hostname: sysctl::read("kernel.hostname")?,
        kernel: process::kernel_release(),
        clock_source: std::fs::read_to_string(CLOCK_SOURCE).ok().map(|name| name.trim().to_string()),
        sysctls: settings(names),
        path_mtu_cache: routes::path_mtu_exceptions()?,
        rules: super::ruleset::read(),
        fragments_created: counted("FragCreates"),
        packets_reassembled: counted("ReasmOKs"),
        neighbour_tables: neighbour_facts(),
        boot: clock::boot().ok(),
        rdma: super::rdma::ports(),
        interfaces,
    })
}

/// A counter of both IP versions (RFC 4293), as the kernel counts them in this network namespace.
fn counted(name: &str) -> [Option<u64>; 2] {
    let counters = crate::meters::protocol_counters().unwrap_or_default();
    ["Ip", "Ip6"]
        .map(|version| counters.get(&format!("{version}{name}")).and_then(|count| u64::try_from(*count).ok()))
}

/// Both tables.
fn neighbour_facts() -> [Option<NeighbourFacts>; 2] {
    let tables = neighbour_tables::read().unwrap_or_default();
    [4, 6].map(|version| {
        let table = *tables.iter().find(|table| table.version == version)?;
        Some(NeighbourFacts { table, permanent: neighbour_tables::permanent(version).ok()? })
    })
}

fn of_interface(interface: &Interface, all: &[Interface], addresses: &[InterfaceAddress]) -> InterfaceFacts {
    let name = interface.name.as_str();
    let tunnel = interface.tunnel;
    let towards = |remote: IpAddr| routes::interface_to(remote, None).ok().flatten();
    let parent = interface.parent.or_else(|| tunnel?.remote.and_then(towards));
    let offload = |(word, which)| Some((word, ethtool::get(name, which).ok()?));
    InterfaceFacts {
        interface: interface.clone(),
        driver: ethtool::driver(name).ok().filter(|driver| !driver.is_empty()),
        bits_per_second: ethtool::speed(name).ok().flatten(),
        parent: parent.and_then(|index| name_of(index, all)),
        master: interface.master.and_then(|index| name_of(index, all)),
        overhead_bytes: tunnel.and_then(|tunnel| Some(tunnel.encapsulation?.overhead_bytes())),
        addresses: addresses
            .iter()
            .filter(|entry| entry.index == interface.index && !is_link_local(entry.address))
            .copied()
            .collect(),
        offloads: Offload::NAMED.into_iter().map(offload).collect(),
        programs: Vec::new(),
    }
}

fn programs(interface: &Interface, filtered: &BTreeMap<i32, (bool, bool)>) -> Vec<&'static str> {
    let index = i32::try_from(interface.index).ok();
    let (incoming, outgoing) = index.and_then(|index| filtered.get(&index)).copied().unwrap_or_default();
    let all = [("xdp", interface.xdp), ("tc_ingress", incoming), ("tc_egress", outgoing)];
    all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
}

fn name_of(index: u32, all: &[Interface]) -> Option<String> {
    all.iter().find(|interface| interface.index == index).map(|interface| interface.name.clone())
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// The settings that exist, and the MTU that IPv6 has on each interface: a router may have announced a smaller one.
fn settings<'a>(interfaces: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let globals = SYSCTLS.iter().filter_map(|name| Some((name.to_string(), sysctl::read(name).ok()?)));
    let of_interfaces = interfaces.filter_map(|name| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{name}/mtu")).ok()?;
        // As sysctl(8) writes them, a dot in a name is a slash.
        Some((format!("net.ipv6.conf.{}.mtu", name.replace('.', "/")), text.trim().to_string()))
    });
    globals.chain(of_interfaces).collect()
}

/// Asks the kernel for the way to each destination.
pub fn ways(destinations: &[IpAddr]) -> Result<Vec<RouteFacts>> {
    let all = links::interfaces()?;
    let route = |destination: &IpAddr| {
        let way = routes::way_to(*destination).map_err(|error| reason(&error));
        let source = way.as_ref().ok().map(|way| way.source);
        let index = source.and_then(|_| routes::interface_to(*destination, source).ok().flatten());
        RouteFacts { way, interface: index.and_then(|index| name_of(index, &all)) }
    };
    Ok(destinations.iter().map(route).collect())
}

/// The kernel's reason without its number.
fn reason(error: &OsError) -> String {
    let text = error.source.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}
