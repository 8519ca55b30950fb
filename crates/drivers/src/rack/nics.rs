//! The NICs of a rack's hosts and routers: which interface, which address, whom each reaches directly and whom through a router.

use crate::host::nics::Nic;
use crate::rack::addresses::{address_in_subnet, hardware, interface};
use framegauge_fabric::{Ends, Leg, Owner};
use std::net::IpAddr;

/// The address of an end: its subnet, and whose it is among `hosts` hosts and the routers after them.
pub fn address(ends: &Ends, end: usize, hosts: usize, version: u8) -> IpAddr {
    let number = match ends.owner(end) {
        Owner::Host(host) => host,
        Owner::Router(router) => hosts + router,
    };
    address_in_subnet(ends.subnet(end), number, version)
}

/// The NICs of a host or a router; `mtu` says that of an end.
pub fn of(ends: &Ends, owner: Owner, hosts: usize, version: u8, mtu: impl Fn(usize) -> u32) -> Vec<Nic> {
    let at = |end: usize| address(ends, end, hosts, version);
    let own = ends.ends_of(owner);
    let is_own = |subnet: usize| own.iter().any(|end| ends.subnet(*end) == subnet);
    let away = (0..ends.subnets()).filter(|subnet| !is_own(*subnet));
    let legs: Vec<(usize, Leg)> =
        away.filter_map(|subnet| Some((subnet, ends.leg_to_subnet(owner, subnet)?))).collect();
    let nic = |end: &usize| Nic {
        interface: interface(*end),
        hardware: hardware(*end),
        mtu: mtu(*end),
        address: at(*end),
        neighbours: (0..ends.len())
            .filter(|other| ends.owner(*other) != owner && ends.subnet(*other) == ends.subnet(*end))
            .map(|other| (at(other), hardware(other)))
            .collect(),
        routes: legs
            .iter()
            .filter(|(_, leg)| leg.from == *end)
            .map(|(subnet, leg)| (address_in_subnet(*subnet, 0, version), at(leg.to)))
            .collect(),
        bits_per_second: None,
        packet_bytes: Some(largest_packet(ends, *end, &mtu)),
    };
    own.iter().map(nic).collect()
}

/// The largest packet that somebody sends to anybody by one of his ends, by its MTU and those of the ends that it passes and
/// reaches; `mtu` says that of an end.
pub fn largest_packet(ends: &Ends, from: usize, mtu: impl Fn(usize) -> u32) -> u32 {
    let owner = ends.owner(from);
    let others =
        (0..ends.len()).filter(|end| ends.owner(*end) != owner && matches!(ends.owner(*end), Owner::Host(_)));
    let ways = others.filter_map(|end| ends.legs(owner, end)).filter(|legs| legs[0].from == from);
    let smallest = |legs: Vec<Leg>| legs.iter().map(|leg| mtu(leg.to)).min();
    ways.filter_map(smallest).max().unwrap_or(u32::MAX).min(mtu(from))
}
