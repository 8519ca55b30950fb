//! The IPv6 neighbours of an interface that somebody has entered for good, and those for which it answers (proxies).

use crate::error::Result;
use crate::netlink::{CREATE, DUMP, Message, REPLACE, Socket, address_of, attribute};
use std::fmt;
use std::net::IpAddr;

const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
/// `struct ndmsg`, in bytes: family, interface, state, flags and type.
const NEIGHBOUR_BYTES: usize = 12;
const PERMANENT: u16 = 0x80;
const PROXY: u8 = 0x08;

/// An entry that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// Whose.
    pub address: IpAddr,
    /// Its link-layer address; none of a proxy.
    pub hardware: Vec<u8>,
    /// This interface answers for it.
    pub proxy: bool,
}

impl fmt::Display for Neighbour {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.proxy {
            return write!(out, "proxy {}", self.address);
        }
        let bytes: Vec<String> = self.hardware.iter().map(|byte| format!("{byte:02x}")).collect();
        write!(out, "{} lladdr {} nud permanent", self.address, bytes.join(":"))
    }
}

/// Those of the interface of this index.
pub fn read(interface: u32) -> Result<Vec<Neighbour>> {
    let mut all = Vec::new();
    for flags in [0, PROXY] {
        let mut header = [0u8; NEIGHBOUR_BYTES];
        (header[0], header[10]) = (libc::AF_INET6 as u8, flags);
        let message = Message::new(RTM_GETNEIGH, DUMP, &header);
        let answers = Socket::route()?.request(message, "list the neighbours")?;
        all.extend(answers.iter().filter_map(|body| parse(body, interface)));
    }
    Ok(all)
}

/// Reads one answer; `None` if it is no such entry of this interface, or damaged.
pub fn parse(body: &[u8], interface: u32) -> Option<Neighbour> {
    let attributes = body.get(NEIGHBOUR_BYTES..)?;
    let index = u32::from_ne_bytes(body[4..8].try_into().ok()?);
    let state = u16::from_ne_bytes(body[8..10].try_into().ok()?);
    let proxy = body[10] & PROXY != 0;
    if index != interface || body[0] != libc::AF_INET6 as u8 || !(proxy || state & PERMANENT != 0) {
        return None;
    }
    let address = attribute(attributes, NDA_DST).and_then(address_of).filter(IpAddr::is_ipv6)?;
    // The kernel has entries of its own for multicast.
    (!address.is_multicast()).then(|| Neighbour {
        address,
        hardware: attribute(attributes, NDA_LLADDR).unwrap_or(&[]).to_vec(),
        proxy,
    })
}

/// Enters one again.
pub fn put_back(interface: u32, neighbour: &Neighbour) -> Result<()> {
    let mut header = [0u8; NEIGHBOUR_BYTES];
    header[0] = libc::AF_INET6 as u8;
    header[4..8].copy_from_slice(&interface.to_ne_bytes());
    let (state, flags) = if neighbour.proxy { (0, PROXY) } else { (PERMANENT, 0) };
    header[8..10].copy_from_slice(&state.to_ne_bytes());
    header[10] = flags;
    let mut message = Message::new(RTM_NEWNEIGH, CREATE | REPLACE, &header);
    if let IpAddr::V6(address) = neighbour.address {
        message.attribute(NDA_DST, &address.octets());
    }
    if !neighbour.hardware.is_empty() {
        message.attribute(NDA_LLADDR, &neighbour.hardware);
    }
    Socket::route()?.request(message, &format!("enter the neighbour {neighbour} again")).map(drop)
}
