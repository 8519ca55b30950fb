//! A learning bridge (`ip link add type bridge`) of the calling thread's network namespace, kept from learning.

use crate::error::{OsError, Result};
use crate::netlink::{
    CREATE, DUMP, EXCLUSIVE, Message, REPLACE, Socket, attribute, attribute_u32, attributes,
};
use crate::rtnetlink::link_header;

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
const RTM_NEWNEIGH: u16 = 28;
const BRIDGE_FAMILY: u8 = 7;

/// Creates the bridge `name`, without spanning tree and multicast snooping, and brings it up.
pub fn create(name: &str) -> Result<()> {
    const FORWARD_DELAY: u16 = 1;
    const SPANNING_TREE: u16 = 5;
    const MULTICAST_SNOOPING: u16 = 23;
    let up = libc::IFF_UP as u32;
    let mut message = Message::new(RTM_NEWLINK, CREATE | EXCLUSIVE, &link_header(0, up, up));
    message.text(libc::IFLA_IFNAME, name).nest(libc::IFLA_LINKINFO, |info| {
        info.attribute(1, b"bridge").nest(2, |data| {
            data.u32(FORWARD_DELAY, 0).u32(SPANNING_TREE, 0).attribute(MULTICAST_SNOOPING, &[0]);
        });
    });
    Socket::route()?.request(message, &format!("create the bridge {name}")).map(drop)
}

/// Makes the interface with index `port` a port of the bridge with index `bridge` and brings it up.
pub fn attach(port: i32, bridge: i32) -> Result<()> {
    let up = libc::IFF_UP as u32;
    let mut message = Message::new(RTM_NEWLINK, 0, &link_header(port, up, up));
    message.u32(libc::IFLA_MASTER, bridge as u32);
    Socket::route()?.request(message, "make an interface a port of the bridge").map(drop)
}

/// Says that `address` is behind `port` for good, and keeps the port from learning and from being flooded:
/// nobody receives a frame that is not for him.
pub fn pin(port: i32, address: [u8; 6]) -> Result<()> {
    const LEARNING: u16 = 8;
    const UNICAST_FLOOD: u16 = 9;
    const MULTICAST_FLOOD: u16 = 27;
    const PROTOCOL_INFO: u16 = 12;
    let socket = Socket::route()?;
    let mut header = link_header(port, 0, 0);
    header[0] = BRIDGE_FAMILY;
    let mut message = Message::new(RTM_SETLINK, 0, &header);
    message.nest(PROTOCOL_INFO, |flags| {
        flags.attribute(LEARNING, &[0]).attribute(UNICAST_FLOOD, &[0]).attribute(MULTICAST_FLOOD, &[0]);
    });
    socket.request(message, "keep a port of the bridge from learning")?;

    // A static entry. NUD_PERMANENT would make the address the bridge's own.
    const NO_ARP: u16 = 0x40;
    const FOR_MASTER: u8 = 0x04;
    let mut header = [0u8; 12];
    header[0] = BRIDGE_FAMILY;
    header[4..8].copy_from_slice(&port.to_ne_bytes());
    header[8..10].copy_from_slice(&NO_ARP.to_ne_bytes());
    header[10] = FOR_MASTER;
    let mut message = Message::new(RTM_NEWNEIGH, CREATE | REPLACE, &header);
    message.attribute(2, &address);
    socket.request(message, "tell the bridge where an address is").map(drop)
}

/// The index of every bridge port in this namespace, and whether it forwards.
pub fn ports() -> Result<Vec<(i32, bool)>> {
    const SLAVE_DATA: u16 = 5;
    const STATE: u16 = 1;
    const FORWARDING: u8 = 3;
    let operation = "list the ports of the bridge";
    let answers =
        Socket::route()?.request(Message::new(RTM_GETLINK, DUMP, &link_header(0, 0, 0)), operation)?;
    answers
        .iter()
        .filter(|body| body.get(16..).is_some_and(|rest| attribute_u32(rest, libc::IFLA_MASTER).is_some()))
        .map(|body| {
            let index = body.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
            let state = attribute(&body[16..], libc::IFLA_LINKINFO)
                .and_then(|info| attribute(info, SLAVE_DATA))
                .and_then(|data| attributes(data).find(|(kind, _)| *kind == STATE))
                .and_then(|(_, value)| value.first().copied());
            index
                .map(|index| (index, state == Some(FORWARDING)))
                .ok_or_else(|| OsError::errno(operation, libc::EBADMSG))
        })
        .collect()
}
