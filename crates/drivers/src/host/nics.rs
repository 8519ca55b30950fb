//! The NICs of hosts and routers: names, addresses, neighbours and routes, all of them static.

use crate::host::{HostSettings, network, quiet_sysctls_of};
use crate::rack::join as rack;
use framegauge_fabric::{Ends, Leg, Owner};
use framegauge_linux::Result;
use framegauge_linux::rtnetlink;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// One NIC, and where packets go by it.
#[derive(Debug, Clone)]
pub struct Nic {
    /// Its interface.
    pub interface: String,
    /// Its Ethernet address.
    pub hardware: [u8; 6],
    /// Its address.
    pub address: IpAddr,
    /// Everybody else in its subnet.
    pub neighbours: Vec<(IpAddr, [u8; 6])>,
    /// Subnets that packets go to through a router: an address of each, and the router's.
    pub routes: Vec<(IpAddr, IpAddr)>,
    /// What its shaper lets pass, where that is not what the host's shaping says.
    pub bits_per_second: Option<u64>,
}

/// The address of an end: its subnet, and whose it is among `hosts` hosts and the routers after them.
pub fn address(ends: &Ends, end: usize, hosts: usize, version: u8) -> IpAddr {
    let number = match ends.owner(end) {
        Owner::Host(host) => host,
        Owner::Router(router) => hosts + router,
    };
    rack::address_in_subnet(ends.subnet(end), number, version)
}

/// The NICs of a host or a router.
pub fn of(ends: &Ends, owner: Owner, hosts: usize, version: u8) -> Vec<Nic> {
    let at = |end: usize| address(ends, end, hosts, version);
    let own = ends.ends_of(owner);
    let is_own = |subnet: usize| own.iter().any(|end| ends.subnet(*end) == subnet);
    let away = (0..ends.subnets()).filter(|subnet| !is_own(*subnet));
    let legs: Vec<(usize, Leg)> =
        away.filter_map(|subnet| Some((subnet, ends.leg_to_subnet(owner, subnet)?))).collect();
    let nic = |end: &usize| Nic {
        interface: rack::interface(*end),
        hardware: rack::hardware(*end),
        address: at(*end),
        neighbours: (0..ends.len())
            .filter(|other| ends.owner(*other) != owner && ends.subnet(*other) == ends.subnet(*end))
            .map(|other| (at(other), rack::hardware(other)))
            .collect(),
        routes: legs
            .iter()
            .filter(|(_, leg)| leg.from == *end)
            .map(|(subnet, leg)| (rack::address_in_subnet(*subnet, 0, version), at(leg.to)))
            .collect(),
        bits_per_second: None,
    };
    own.iter().map(nic).collect()
}

/// The largest packet that a host sends to anybody, by its own MTU and those of whom it passes and meets; `mtu` says that
/// of a host or a router.
pub fn largest_packet(ends: &Ends, host: Owner, mtu: impl Fn(Owner) -> u32) -> u32 {
    let others =
        (0..ends.len()).filter(|end| ends.owner(*end) != host && matches!(ends.owner(*end), Owner::Host(_)));
    let ways = others.filter_map(|end| ends.legs(host, end));
    let smallest = |legs: Vec<Leg>| legs.iter().map(|leg| mtu(ends.owner(leg.to))).min();
    ways.filter_map(smallest).max().unwrap_or(u32::MAX).min(mtu(host))
}

impl Nic {
    /// Gives it its address, its neighbours and its routes; the interface is up.
    pub(crate) fn address(&self, congestion_control: &str) -> Result<()> {
        let (name, (net, prefix)) = (self.interface.as_str(), network(self.address));
        rtnetlink::add_address(name, self.address, prefix)?;
        rtnetlink::set_route(name, net, prefix, None, congestion_control)?;
        rtnetlink::add_neighbours(name, &self.neighbours)?;
        self.routes.iter().try_for_each(|(there, gateway)| {
            let (net, prefix) = network(*there);
            rtnetlink::set_route(name, net, prefix, Some(*gateway), congestion_control)
        })
    }
}

/// What makes a router of a host: it takes packets on, whichever way they came, and tells nobody of shorter ways.
pub(crate) fn forwarding_sysctls(settings: &HostSettings) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut set = |name: String, value: &str| all.insert(name, value.to_owned());
    if !settings.forwards {
        return all;
    }
    if settings.nics.iter().any(|nic| nic.address.is_ipv6()) {
        set("net.ipv6.conf.all.forwarding".into(), "1");
        return all;
    }
    set("net.ipv4.ip_forward".into(), "1");
    for conf in settings.nics.iter().map(|nic| nic.interface.as_str()).chain(["all"]) {
        set(format!("net.ipv4.conf.{conf}.rp_filter"), "0");
        set(format!("net.ipv4.conf.{conf}.send_redirects"), "0");
    }
    all
}

/// What keeps the kernel's own background traffic off every NIC.
pub(crate) fn quiet_sysctls(nics: &[Nic]) -> BTreeMap<String, String> {
    nics.iter().flat_map(|nic| quiet_sysctls_of(&nic.interface, nic.address)).collect()
}
