//! The IPv6 addresses of an interface. Layout: `linux/if_addr.h`.

use crate::error::Result;
use crate::netlink::{CREATE, DUMP, Message, REPLACE, Socket, address_of, attribute, attribute_u32};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_GETADDR: u16 = 22;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_CACHEINFO: u16 = 6;
const IFA_FLAGS: u16 = 8;
const IFA_RT_PRIORITY: u16 = 9;
const ADDRESS_BYTES: usize = 8;
const FOREVER: u32 = u32::MAX;
const TEMPORARY: u32 = 0x01;
/// No duplicate address detection.
const NO_DAD: u32 = 0x02;
/// What somebody may ask for an address, in the words of `ip address`.
const WORDS: [(u32, &str); 4] =
    [(0x10, "home"), (0x100, "mngtmpaddr"), (0x200, "noprefixroute"), (0x400, "autojoin")];

/// An address with what was asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WholeAddress {
    /// The address.
    pub address: Ipv6Addr,
    /// The other end's, on a point-to-point link.
    pub peer: Option<Ipv6Addr>,
    /// How many of its bits are the network's.
    pub prefix_length: u8,
    /// Seconds for which it is preferred and valid; `None`: for ever.
    pub lifetimes: Option<(u32, u32)>,
    flags: u32,
    no_dad: bool,
    priority: u32,
}

impl WholeAddress {
    /// Whether it is the same, however long it still lives.
    pub fn is_same(&self, other: &Self) -> bool {
        let identity =
            |entry: &Self| (entry.address, entry.peer, entry.prefix_length, entry.flags, entry.priority);
        identity(self) == identity(other) && self.lifetimes.is_some() == other.lifetimes.is_some()
    }
}

impl fmt::Display for WholeAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.address)?;
        if let Some(peer) = self.peer {
            write!(out, " peer {peer}")?;
        }
        write!(out, "/{}", self.prefix_length)?;
        for (bit, word) in WORDS {
            if self.flags & bit != 0 {
                write!(out, " {word}")?;
            }
        }
        let shown =
            |seconds: u32| if seconds == FOREVER { "forever".to_string() } else { seconds.to_string() };
        if let Some((preferred, valid)) = self.lifetimes {
            write!(out, " valid_lft {} preferred_lft {}", shown(valid), shown(preferred))?;
        }
        Ok(())
    }
}

/// The addresses of the interface of this index, without temporary ones, which the kernel makes by itself.
pub fn read(interface: u32) -> Result<Vec<WholeAddress>> {
    let mut header = [0u8; ADDRESS_BYTES];
    header[0] = libc::AF_INET6 as u8;
    let answers = Socket::route()?.request(Message::new(RTM_GETADDR, DUMP, &header), "list the addresses")?;
    Ok(answers.iter().filter_map(|body| parse(body, interface)).collect())
}

/// Reads one answer; `None` if it is no such address of this interface, or damaged.
pub fn parse(body: &[u8], interface: u32) -> Option<WholeAddress> {
    let attributes = body.get(ADDRESS_BYTES..)?;
    let index = u32::from_ne_bytes(body.get(4..8)?.try_into().ok()?);
    if index != interface || body[0] != libc::AF_INET6 as u8 {
        return None;
    }
    let address = |kind| match attribute(attributes, kind).and_then(address_of) {
        Some(IpAddr::V6(address)) => Some(address),
        _ => None,
    };
    let (own, far) = (address(IFA_LOCAL), address(IFA_ADDRESS));
    let flags = attribute_u32(attributes, IFA_FLAGS).unwrap_or(u32::from(body[2]));
    if flags & TEMPORARY != 0 {
        return None;
    }
    let cache = attribute(attributes, IFA_CACHEINFO).unwrap_or(&[]);
    let seconds = |place: usize| cache.get(place..place + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let (preferred, valid) = (seconds(0).unwrap_or(FOREVER), seconds(4).unwrap_or(FOREVER));
    Some(WholeAddress {
        address: own.or(far)?,
        peer: own.and(far),
        prefix_length: body[1],
        lifetimes: ((preferred, valid) != (FOREVER, FOREVER)).then_some((preferred, valid)),
        flags: flags & WORDS.iter().fold(0, |all, (bit, _)| all | bit),
        no_dad: flags & NO_DAD != 0,
        priority: attribute_u32(attributes, IFA_RT_PRIORITY).unwrap_or(0),
    })
}

/// Gives an interface an address again. It had been looked for on the link before, so it may be used at once.
pub fn put_back(interface: u32, address: &WholeAddress) -> Result<()> {
    let socket = Socket::route()?;
    let operation = format!("give the address {address} back");
    for no_dad in [true, address.no_dad] {
        socket.request(request(RTM_NEWADDR, interface, address, no_dad), &operation)?;
    }
    Ok(())
}

/// Takes an address away.
pub fn remove(interface: u32, address: &WholeAddress) -> Result<()> {
    let operation = format!("take the address {address} away");
    match Socket::route()?.request(request(RTM_DELADDR, interface, address, false), &operation) {
        Err(error) if error.code() == libc::EADDRNOTAVAIL => Ok(()),
        other => other.map(drop),
    }
}

fn request(kind: u16, interface: u32, address: &WholeAddress, no_dad: bool) -> Message {
    let mut header = [0u8; ADDRESS_BYTES];
    (header[0], header[1]) = (libc::AF_INET6 as u8, address.prefix_length);
    header[4..].copy_from_slice(&interface.to_ne_bytes());
    let flags = if kind == RTM_NEWADDR { CREATE | REPLACE } else { 0 };
    let mut message = Message::new(kind, flags, &header);
    message.attribute(IFA_LOCAL, &address.address.octets());
    message.attribute(IFA_ADDRESS, &address.peer.unwrap_or(address.address).octets());
    let (preferred, valid) = address.lifetimes.unwrap_or((FOREVER, FOREVER));
    let words = [preferred, valid, 0, 0].map(u32::to_ne_bytes).concat();
    message.attribute(IFA_CACHEINFO, &words);
    message.u32(IFA_FLAGS, address.flags | if no_dad { NO_DAD } else { 0 });
    if address.priority != 0 {
        message.u32(IFA_RT_PRIORITY, address.priority);
    }
    message
}
