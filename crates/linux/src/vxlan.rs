//! A VXLAN interface (RFC 7348) between peers that are known beforehand: nothing is learnt and nothing is flooded.

use crate::error::Result;
use crate::netlink::{CREATE, EXCLUSIVE, Message, REPLACE, Socket};
use crate::rtnetlink::{link, link_header, octets};
use std::net::IpAddr;

const RTM_NEWLINK: u16 = 16;
const RTM_NEWNEIGH: u16 = 28;
/// The port that IANA has assigned; the kernel's own default is older.
const PORT: u16 = 4789;
/// The network identifier.
const IDENTIFIER: u32 = 77;

/// Creates the interface `name` on top of `parent`, whose address is `local`, with this MTU and Ethernet address.
pub fn create(name: &str, parent: &str, local: IpAddr, mtu: u32, hardware: [u8; 6]) -> Result<()> {
    const ID: u16 = 1;
    const LINK: u16 = 3;
    const LEARNING: u16 = 7;
    const DESTINATION_PORT: u16 = 15;
    let local_kind = if local.is_ipv4() { 4 } else { 17 };
    let parent = link(parent)?.index as u32;
    let mut message = Message::new(RTM_NEWLINK, CREATE | EXCLUSIVE, &link_header(0, 0, 0));
    message
        .text(libc::IFLA_IFNAME, name)
        .u32(libc::IFLA_MTU, mtu)
        .attribute(libc::IFLA_ADDRESS, &hardware)
        .nest(libc::IFLA_LINKINFO, |info| {
            info.attribute(1, b"vxlan").nest(2, |data| {
                data.u32(ID, IDENTIFIER)
                    .u32(LINK, parent)
                    .attribute(local_kind, &octets(local))
                    .attribute(LEARNING, &[0])
                    .attribute(DESTINATION_PORT, &PORT.to_be_bytes());
            });
        });
    Socket::route()?.request(message, &format!("create the VXLAN interface {name}")).map(drop)
}

/// Says behind which underlay address each Ethernet address of the overlay is.
pub fn add_peers(interface: &str, peers: &[([u8; 6], IpAddr)]) -> Result<()> {
    const BRIDGE_FAMILY: u8 = 7;
    const PERMANENT: u16 = 0x80;
    const FOR_ITSELF: u8 = 0x02;
    let (index, socket) = (link(interface)?.index, Socket::route()?);
    for (hardware, address) in peers {
        let mut header = [0u8; 12];
        header[0] = BRIDGE_FAMILY;
        header[4..8].copy_from_slice(&index.to_ne_bytes());
        header[8..10].copy_from_slice(&PERMANENT.to_ne_bytes());
        header[10] = FOR_ITSELF;
        let mut message = Message::new(RTM_NEWNEIGH, CREATE | REPLACE, &header);
        message.attribute(2, hardware).attribute(1, &octets(*address));
        socket.request(message, &format!("add the VXLAN peer {address} to {interface}"))?;
    }
    Ok(())
}
