//! Names and addresses of the rack's interfaces, by number.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The Ethernet address of end `index` (from 0): locally administered.
pub fn hardware(index: usize) -> [u8; 6] {
    let [high, low] = (index as u16 + 1).to_be_bytes();
    [0x02, 0x66, 0x67, 0x00, high, low]
}

/// The Ethernet address of host `index` (from 0) in an overlay.
pub fn overlay_hardware(index: usize) -> [u8; 6] {
    let [high, low] = (index as u16 + 1).to_be_bytes();
    [0x02, 0x66, 0x67, 0x01, high, low]
}

/// The address of host `index` (from 0) in the first subnet, inside its own namespace only.
pub fn address(index: usize, version: u8) -> IpAddr {
    address_in_subnet(0, index, version)
}

/// The address of host or router `index` (from 0) in a subnet (from 0): 10.77.0.0 and up by 256, or fd77:: and up by a
/// /64.
pub fn address_in_subnet(subnet: usize, index: usize, version: u8) -> IpAddr {
    address_in(77, subnet, index, version)
}

/// The address of host `index` (from 0) in an overlay.
pub fn overlay_address(index: usize, version: u8) -> IpAddr {
    address_in(78, 0, index, version)
}

fn address_in(network: u8, subnet: usize, index: usize, version: u8) -> IpAddr {
    let number = index as u16 + 1;
    match version {
        // fd77:: and fd78::, as 10.77.0.0 and 10.78.0.0.
        6 => {
            let subnet = subnet as u16;
            Ipv6Addr::new(0xfd77 + u16::from(network - 77), 0, 0, subnet, 0, 0, 0, number).into()
        }
        _ => Ipv4Addr::new(10, network, subnet as u8, number as u8).into(),
    }
}

/// The interface of end `index` (from 0); unique on this machine, so that its kernel threads can be told apart.
pub fn interface(index: usize) -> String {
    format!("fg{}", index + 1)
}

/// The overlay's interface of host `index` (from 0).
pub fn overlay_interface(index: usize) -> String {
    format!("fgx{}", index + 1)
}
