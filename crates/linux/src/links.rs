//! Every interface and address of the calling thread's network namespace, tunnels with what they encapsulate.
//! Layouts: `linux/if_link.h`, `linux/if_addr.h`.

use crate::error::Result;
use crate::netlink::{
    DUMP, Message, Socket, address_of, attribute, attribute_text, attribute_u32, family_of,
};
use crate::rtnetlink::link_header;
use crate::tunnel::{self, Tunnel};
use std::net::IpAddr;

const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_MAX_MTU: u16 = 51;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// `struct ifinfomsg` and `struct ifaddrmsg`, in bytes.
const LINK_BYTES: usize = 16;
const ADDRESS_BYTES: usize = 8;

/// What the kernel says of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// The largest MTU the device takes, in bytes, where it says so.
    pub maximum_mtu: Option<u32>,
    /// It is up, and so is what it stands on.
    pub up: bool,
    /// It was told to be up, whether or not there is a carrier.
    pub enabled: bool,
    /// It is a loopback.
    pub loopback: bool,
    /// Its packets begin with an Ethernet header (`ARPHRD_ETHER`, and a loopback's).
    pub ethernet: bool,
    /// What it is, as `ip link add type` calls it; `None` for a NIC.
    pub kind: Option<String>,
    /// The index of the interface that it stands on, where it is in the same namespace and known.
    pub parent: Option<u32>,
    /// The index of the bridge, bond, team or VRF that it is a port of.
    pub master: Option<u32>,
    /// What it encapsulates, where it is a tunnel.
    pub tunnel: Option<Tunnel>,
    /// An XDP program sees what it takes in.
    pub xdp: bool,
}

/// One address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface's index.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// How many of its bits are the network's.
    pub prefix_length: u8,
}

/// Lists every interface.
pub fn interfaces() -> Result<Vec<Interface>> {
    let message = Message::new(RTM_GETLINK, DUMP, &link_header(0, 0, 0));
    let answers = Socket::route()?.request(message, "list the interfaces")?;
    Ok(answers.iter().filter_map(|body| parse_interface(body)).collect())
}

/// Lists every address of both IP versions.
pub fn addresses() -> Result<Vec<InterfaceAddress>> {
    let message = Message::new(RTM_GETADDR, DUMP, &[0; ADDRESS_BYTES]);
    let answers = Socket::route()?.request(message, "list the addresses")?;
    Ok(answers.iter().filter_map(|body| parse_address(body)).collect())
}

/// Reads one answer about an interface; `None` if it is damaged.
pub fn parse_interface(body: &[u8]) -> Option<Interface> {
    let attributes = body.get(LINK_BYTES..)?;
    let word = |place: usize| body.get(place..place + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let (index, flags) = (word(4)?, word(8)?);
    let info = attribute(attributes, libc::IFLA_LINKINFO).unwrap_or(&[]);
    let kind = attribute_text(info, tunnel::INFO_KIND);
    let data = attribute(info, tunnel::INFO_DATA).unwrap_or(&[]);
    let tunnel = kind.as_deref().and_then(|kind| tunnel::parse(kind, data));
    // A veth's is its other end, and one with a namespace id counts elsewhere.
    let stands_on_it = kind.as_deref() != Some("veth") && attribute(attributes, IFLA_LINK_NETNSID).is_none();
    let below = attribute_u32(attributes, libc::IFLA_LINK).filter(|below| stands_on_it && *below != index);
    let parent = tunnel.and_then(|tunnel| tunnel.link).or(below).filter(|parent| *parent != 0);
    let carries = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
    Some(Interface {
        index,
        name: attribute_text(attributes, libc::IFLA_IFNAME)?,
        mtu: attribute_u32(attributes, libc::IFLA_MTU)?,
        maximum_mtu: attribute_u32(attributes, IFLA_MAX_MTU).filter(|maximum| *maximum > 0),
        up: flags & carries == carries,
        enabled: flags & libc::IFF_UP as u32 != 0,
        loopback: flags & libc::IFF_LOOPBACK as u32 != 0,
        ethernet: [libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK]
            .contains(&u16::from_ne_bytes([body[2], body[3]])),
        kind,
        parent,
        master: attribute_u32(attributes, libc::IFLA_MASTER).filter(|master| *master != 0),
        tunnel,
        xdp: attribute(attributes, IFLA_XDP)
            .and_then(|xdp| attribute(xdp, IFLA_XDP_ATTACHED)?.first().copied())
            .is_some_and(|mode| mode != 0),
    })
}

/// Reads one answer about an address; `None` if it is damaged.
pub fn parse_address(body: &[u8]) -> Option<InterfaceAddress> {
    let attributes = body.get(ADDRESS_BYTES..)?;
    // On a point-to-point link the address is the other end's, and the local one is one's own.
    let octets = attribute(attributes, IFA_LOCAL).or_else(|| attribute(attributes, IFA_ADDRESS))?;
    let address = address_of(octets).filter(|address| family_of(*address) == body[0])?;
    let index = u32::from_ne_bytes(body.get(4..8)?.try_into().ok()?);
    Some(InterfaceAddress { index, address, prefix_length: body[1] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_running_kernel_lists_its_loopback() {
        let all = interfaces().expect("the kernel answers");
        let own = all.iter().find(|entry| entry.loopback).expect("every namespace has a loopback");
        assert_eq!((own.name.as_str(), own.index, own.parent), ("lo", 1, None));
        assert!(own.ethernet, "its packets have an Ethernet header of zeros");
        assert!(!own.xdp, "nobody has given it a program");
        let link = crate::rtnetlink::link("lo").expect("it is there");
        assert_eq!((own.mtu, own.maximum_mtu), (link.mtu, link.maximum_mtu));
        let addresses = addresses().expect("the kernel answers");
        assert!(addresses.iter().all(|entry| all.iter().any(|interface| interface.index == entry.index)));
    }

    proptest! {
        #[test]
        fn damaged_answers_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (parse_interface(&bytes), parse_address(&bytes));
        }

        #[test]
        fn an_address_reads_back(index: u32, prefix in 0u8..=32, own: [u8; 4], other: [u8; 4], both: bool) {
            let mut body = vec![libc::AF_INET as u8, prefix, 0, 0];
            body.extend(index.to_ne_bytes());
            for (kind, octets) in [(IFA_ADDRESS, if both { other } else { own }), (IFA_LOCAL, own)] {
                if kind == IFA_ADDRESS || both {
                    body.extend(8u16.to_ne_bytes());
                    body.extend(kind.to_ne_bytes());
                    body.extend(octets);
                }
            }
            let address = parse_address(&body).expect("it is whole");
            prop_assert_eq!(address, InterfaceAddress { index, address: own.into(), prefix_length: prefix });
            body[0] = libc::AF_INET6 as u8;
            prop_assert_eq!(parse_address(&body), None);
        }
    }
}
