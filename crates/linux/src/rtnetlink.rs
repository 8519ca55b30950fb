//! Links, addresses, routes and neighbours of the calling thread's network namespace.

use crate::error::{OsError, Result};
use crate::netlink::{
    CREATE, DUMP, EXCLUSIVE, Message, REPLACE, Socket, attribute, attribute_text, attribute_u32,
};
use std::net::IpAddr;

const GSO_MAX_SIZE: u16 = 41;
const GSO_MAX_SEGS: u16 = 40;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWNEIGH: u16 = 28;

/// What the kernel says of an interface.
#[derive(Debug, Clone)]
pub struct Link {
    /// The interface's index.
    pub index: i32,
    /// Its name.
    pub name: String,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// The largest MTU the device takes, in bytes, where it says so.
    pub maximum_mtu: Option<u32>,
    /// Its Ethernet address.
    pub address: [u8; 6],
    /// Packet and byte counters.
    pub statistics: LinkStatistics,
}

/// `rtnl_link_stats64`, the part that is read here.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinkStatistics {
    /// Packets handed up to the stack.
    pub rx_packets: u64,
    /// Packets handed to the device.
    pub tx_packets: u64,
    /// Bytes, Ethernet header included.
    pub rx_bytes: u64,
    /// Bytes, Ethernet header included.
    pub tx_bytes: u64,
    /// Bad packets received.
    pub rx_errors: u64,
    /// Failed transmissions.
    pub tx_errors: u64,
    /// Received packets that were dropped.
    pub rx_dropped: u64,
    /// Packets dropped before they left.
    pub tx_dropped: u64,
}

pub(crate) fn link_header(index: i32, flags: u32, change: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&change.to_ne_bytes());
    header
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 }
}

pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Reads one interface.
pub fn link(name: &str) -> Result<Link> {
    let mut message = Message::new(RTM_GETLINK, 0, &link_header(0, 0, 0));
    message.text(libc::IFLA_IFNAME, name);
    let operation = format!("look up the interface {name}");
    let answers = Socket::route()?.request(message, &operation)?;
    answers.iter().find_map(|body| parse_link(body)).ok_or_else(|| OsError::errno(operation, libc::ENODEV))
}

/// Reads one answer about a link; none if it says too little.
pub fn parse_link(body: &[u8]) -> Option<Link> {
    let attributes = body.get(16..)?;
    let statistics = attribute(attributes, libc::IFLA_STATS64).unwrap_or(&[]);
    let counter = |place: usize| {
        statistics
            .get(place * 8..place * 8 + 8)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u64::from_ne_bytes)
    };
    Some(Link {
        index: i32::from_ne_bytes(body.get(4..8)?.try_into().ok()?),
        name: attribute_text(attributes, libc::IFLA_IFNAME)?,
        mtu: attribute_u32(attributes, libc::IFLA_MTU)?,
        maximum_mtu: attribute_u32(attributes, 51).filter(|maximum| *maximum > 0),
        address: attribute(attributes, libc::IFLA_ADDRESS)?.try_into().ok()?,
        statistics: LinkStatistics {
            rx_packets: counter(0),
            tx_packets: counter(1),
            rx_bytes: counter(2),
            tx_bytes: counter(3),
            rx_errors: counter(4),
            tx_errors: counter(5),
            rx_dropped: counter(6),
            tx_dropped: counter(7),
        },
    })
}

impl std::ops::AddAssign for LinkStatistics {
    fn add_assign(&mut self, other: Self) {
        self.rx_packets += other.rx_packets;
        self.tx_packets += other.tx_packets;
        self.rx_bytes += other.rx_bytes;
        self.tx_bytes += other.tx_bytes;
        self.rx_errors += other.rx_errors;
        self.tx_errors += other.tx_errors;
        self.rx_dropped += other.rx_dropped;
        self.tx_dropped += other.tx_dropped;
    }
}

/// Changes to an interface; `None` leaves a property as it is.
#[derive(Debug, Default, Clone, Copy)]
pub struct LinkChange {
    /// Up or down.
    pub up: Option<bool>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// Ethernet address.
    pub address: Option<[u8; 6]>,
    /// Length of the transmit queue in packets.
    pub queue_packets: Option<u32>,
    /// Largest aggregate that the stack builds for it, in bytes (`gso_max_size`).
    pub aggregate_bytes: Option<u32>,
    /// Most segments in such an aggregate (`gso_max_segs`).
    pub aggregate_segments: Option<u32>,
}

/// Applies `change` to the interface `name`.
pub fn change_link(name: &str, change: LinkChange) -> Result<()> {
    let index = link(name)?.index;
    let (flags, mask) = match change.up {
        Some(true) => (libc::IFF_UP as u32, libc::IFF_UP as u32),
        Some(false) => (0, libc::IFF_UP as u32),
        None => (0, 0),
    };
    let mut message = Message::new(RTM_NEWLINK, 0, &link_header(index, flags, mask));
    let mut operation = format!("change the interface {name}");
    if let Some(address) = change.address {
        message.attribute(libc::IFLA_ADDRESS, &address);
    }
    if let Some(packets) = change.queue_packets {
        message.u32(libc::IFLA_TXQLEN, packets);
    }
    if let Some(bytes) = change.aggregate_bytes {
        message.u32(GSO_MAX_SIZE, bytes);
    }
    if let Some(segments) = change.aggregate_segments {
        message.u32(GSO_MAX_SEGS, segments);
    }
    if let Some(mtu) = change.mtu {
        message.u32(libc::IFLA_MTU, mtu);
        operation = format!("set MTU {mtu} on {name}");
    }
    Socket::route()?.request(message, &operation).map(drop)
}

/// Creates a veth pair: `name` here, `peer` in the network namespace of thread `peer_thread`.
pub fn create_veth(name: &str, peer: &str, peer_thread: u32) -> Result<()> {
    let mut message = Message::new(RTM_NEWLINK, CREATE | EXCLUSIVE, &link_header(0, 0, 0));
    message.text(libc::IFLA_IFNAME, name).nest(libc::IFLA_LINKINFO, |info| {
        info.attribute(1, b"veth").nest(2, |data| {
            data.nest(1, |other| {
                other
                    .raw(&link_header(0, 0, 0))
                    .text(libc::IFLA_IFNAME, peer)
                    .u32(libc::IFLA_NET_NS_PID, peer_thread);
            });
        });
    });
    Socket::route()?.request(message, &format!("create the veth pair {name} - {peer}")).map(drop)
}

/// Moves an interface to the network namespace of thread `id`, where it is down.
pub fn move_link(name: &str, id: u32) -> Result<()> {
    let mut message = Message::new(RTM_NEWLINK, 0, &link_header(link(name)?.index, 0, 0));
    message.u32(libc::IFLA_NET_NS_PID, id);
    Socket::route()?.request(message, &format!("move the interface {name} to thread {id}")).map(drop)
}

/// Deletes an interface.
pub fn delete_link(name: &str) -> Result<()> {
    let index = link(name)?.index;
    let message = Message::new(RTM_DELLINK, 0, &link_header(index, 0, 0));
    Socket::route()?.request(message, &format!("delete the interface {name}")).map(drop)
}

/// Adds an address without the automatic prefix route and without duplicate address detection:
/// the caller sets its own route, and a fresh namespace has nobody to collide with.
pub fn add_address(interface: &str, address: IpAddr, prefix: u8) -> Result<()> {
    const NO_DAD: u32 = 0x02;
    const NO_PREFIX_ROUTE: u32 = 0x200;
    let mut header = [0u8; 8];
    header[0] = family(address);
    header[1] = prefix;
    header[4..8].copy_from_slice(&link(interface)?.index.to_ne_bytes());
    let mut message = Message::new(RTM_NEWADDR, CREATE | REPLACE, &header);
    message.attribute(2, &octets(address)).attribute(1, &octets(address)).u32(8, NO_DAD | NO_PREFIX_ROUTE);
    Socket::route()?.request(message, &format!("add {address}/{prefix} to {interface}")).map(drop)
}

/// Sets the route to `network/prefix`, on the link or through a gateway there, with the congestion control that new
/// connections over it use, whatever their program asks for by default (`ip route … congctl NAME`).
pub fn set_route(
    interface: &str,
    network: IpAddr,
    prefix: u8,
    gateway: Option<IpAddr>,
    congestion_control: &str,
) -> Result<()> {
    const CONGESTION_CONTROL: u16 = 16;
    let mut header = [0u8; 12];
    header[0] = family(network);
    header[1] = prefix;
    header[4] = libc::RT_TABLE_MAIN;
    header[5] = libc::RTPROT_STATIC;
    header[6] = if gateway.is_some() { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
    header[7] = libc::RTN_UNICAST;
    let mut message = Message::new(RTM_NEWROUTE, CREATE | REPLACE, &header);
    message
        .attribute(libc::RTA_DST, &octets(network))
        .u32(libc::RTA_OIF, link(interface)?.index as u32)
        .nest(libc::RTA_METRICS, |metrics| {
            metrics.text(CONGESTION_CONTROL, congestion_control);
        });
    if let Some(gateway) = gateway {
        message.attribute(libc::RTA_GATEWAY, &octets(gateway));
    }
    let operation =
        format!("route {network}/{prefix} through {interface} with congestion control {congestion_control}");
    Socket::route()?.request(message, &operation).map(drop)
}

/// The congestion control that the on-link route of `interface` asks for.
pub fn route_congestion_control(interface: &str, version: u8) -> Result<Option<String>> {
    let index = link(interface)?.index as u32;
    let mut header = [0u8; 12];
    header[0] = if version == 4 { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 };
    let answers = Socket::route()?.request(Message::new(RTM_GETROUTE, DUMP, &header), "list the routes")?;
    Ok(answers
        .iter()
        .filter_map(|body| body.get(12..))
        .filter(|route| attribute_u32(route, libc::RTA_OIF) == Some(index))
        .filter_map(|route| attribute(route, libc::RTA_METRICS))
        .find_map(|metrics| attribute_text(metrics, 16)))
}

/// Adds permanent neighbour entries, so that no ARP or neighbour discovery runs beside a measurement.
pub fn add_neighbours(interface: &str, neighbours: &[(IpAddr, [u8; 6])]) -> Result<()> {
    const PERMANENT: u16 = 0x80;
    let (index, socket) = (link(interface)?.index, Socket::route()?);
    for (address, hardware) in neighbours {
        let mut header = [0u8; 12];
        header[0] = family(*address);
        header[4..8].copy_from_slice(&index.to_ne_bytes());
        header[8..10].copy_from_slice(&PERMANENT.to_ne_bytes());
        let mut message = Message::new(RTM_NEWNEIGH, CREATE | REPLACE, &header);
        message.attribute(1, &octets(*address)).attribute(2, hardware);
        socket.request(message, &format!("add the neighbour {address} on {interface}"))?;
    }
    Ok(())
}
