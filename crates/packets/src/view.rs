//! A view of one frame.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use crate::error::{Layer, LengthSource, require};
use crate::{ParseError, TcpView, TrafficClass};

const ETHERNET_BYTES: usize = 14;
const VLAN_TAG_BYTES: usize = 4;
const IPV4_MINIMUM_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;

pub(crate) const TYPE_IPV4: u16 = 0x0800;
pub(crate) const TYPE_VLAN: u16 = 0x8100;
pub(crate) const TYPE_IPV6: u16 = 0x86dd;

pub(crate) const PROTOCOL_TCP: u8 = 6;
pub(crate) const PROTOCOL_UDP: u8 = 17;

/// The version of the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// IPv4 (RFC 791).
    V4,
    /// IPv6 (RFC 8200).
    V6,
}

/// A UDP header and its payload (RFC 768).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpView<'a> {
    datagram: &'a [u8],
}

impl<'a> UdpView<'a> {
    /// Source port.
    pub fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.datagram[0], self.datagram[1]])
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.datagram[2], self.datagram[3]])
    }

    /// The payload.
    pub fn payload(&self) -> &'a [u8] {
        &self.datagram[UDP_BYTES..]
    }
}

/// What the IP packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport<'a> {
    /// A TCP segment.
    Tcp(TcpView<'a>),
    /// A UDP datagram.
    Udp(UdpView<'a>),
    /// Anything else: another protocol, a fragment, an IPv6 extension header, or no IP at all.
    Other,
}

/// The IP layer of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    version: IpVersion,
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    /// Of the whole frame: where the IP payload lies.
    payload_start: usize,
    payload_end: usize,
}

/// A parsed frame; borrows its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    frame: &'a [u8],
    ethertype: u16,
    network_start: usize,
    network: Option<Network>,
    transport: Transport<'a>,
}

/// Reads an Ethernet II frame without FCS. Fails only where a layer contradicts itself or is cut short:
/// unknown content is [`Transport::Other`].
pub fn parse(frame: &[u8]) -> Result<Packet<'_>, ParseError> {
    require(Layer::Ethernet, ETHERNET_BYTES, frame.len(), LengthSource::Slice)?;
    let mut network_start = ETHERNET_BYTES;
    if type_before(frame, network_start) == TYPE_VLAN {
        require(Layer::VlanTag, VLAN_TAG_BYTES, frame.len() - ETHERNET_BYTES, LengthSource::Slice)?;
        network_start += VLAN_TAG_BYTES;
    }
    let ethertype = type_before(frame, network_start);
    let mut packet = Packet { frame, ethertype, network_start, network: None, transport: Transport::Other };
    match ethertype {
        TYPE_IPV4 => packet.read_ipv4()?,
        TYPE_IPV6 => packet.read_ipv6()?,
        _ => {}
    }
    Ok(packet)
}

/// The EtherType that ends right before `end`.
fn type_before(frame: &[u8], end: usize) -> u16 {
    u16::from_be_bytes([frame[end - 2], frame[end - 1]])
}

impl<'a> Packet<'a> {
    fn read_ipv4(&mut self) -> Result<(), ParseError> {
        let packet = &self.frame[self.network_start..];
        require(Layer::Ipv4, IPV4_MINIMUM_BYTES, packet.len(), LengthSource::Slice)?;
        check_version(Layer::Ipv4, packet[0] >> 4, 4, "4")?;
        let header_bytes = usize::from(packet[0] & 0x0f) * 4;
        if header_bytes < IPV4_MINIMUM_BYTES {
            let words = u32::from(packet[0] & 0x0f);
            return Err(ParseError::Value {
                layer: Layer::Ipv4,
                field: "header length",
                found: words,
                expected: "5 to 15",
            });
        }
        let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        require(Layer::Ipv4, header_bytes, total, LengthSource::Ipv4TotalLength)?;
        require(Layer::Ipv4, total, packet.len(), LengthSource::Slice)?;
        let address = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
        self.network = Some(Network {
            version: IpVersion::V4,
            source: address(12).into(),
            destination: address(16).into(),
            protocol: packet[9],
            payload_start: self.network_start + header_bytes,
            payload_end: self.network_start + total,
        });
        // A fragment's payload has no transport header, or not all of the segment that the header announces.
        let fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
        if fragment { Ok(()) } else { self.read_transport(LengthSource::Ipv4TotalLength) }
    }

    fn read_ipv6(&mut self) -> Result<(), ParseError> {
        let packet = &self.frame[self.network_start..];
        require(Layer::Ipv6, IPV6_BYTES, packet.len(), LengthSource::Slice)?;
        check_version(Layer::Ipv6, packet[0] >> 4, 6, "6")?;
        let payload = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
        require(Layer::Ipv6, IPV6_BYTES + payload, packet.len(), LengthSource::Slice)?;
        let address = |at: usize| {
            let octets: [u8; 16] = std::array::from_fn(|index| packet[at + index]);
            IpAddr::V6(Ipv6Addr::from(octets))
        };
        self.network = Some(Network {
            version: IpVersion::V6,
            source: address(8),
            destination: address(24),
            protocol: packet[6],
            payload_start: self.network_start + IPV6_BYTES,
            payload_end: self.network_start + IPV6_BYTES + payload,
        });
        self.read_transport(LengthSource::Ipv6PayloadLength)
    }

    fn read_transport(&mut self, length_source: LengthSource) -> Result<(), ParseError> {
        let Some(network) = self.network else {
            return Ok(());
        };
        let bytes = &self.frame[network.payload_start..network.payload_end];
        self.transport = match network.protocol {
            PROTOCOL_TCP => Transport::Tcp(TcpView::new(bytes, length_source)?),
            PROTOCOL_UDP => Transport::Udp(read_udp(bytes, length_source)?),
            _ => Transport::Other,
        };
        Ok(())
    }

    /// The bytes that were parsed.
    pub fn frame(&self) -> &'a [u8] {
        self.frame
    }

    /// Destination MAC address.
    pub fn destination_mac(&self) -> [u8; 6] {
        std::array::from_fn(|index| self.frame[index])
    }

    /// Source MAC address.
    pub fn source_mac(&self) -> [u8; 6] {
        std::array::from_fn(|index| self.frame[6 + index])
    }

    /// EtherType, of what is inside the tag if there is one.
    pub fn ethertype(&self) -> u16 {
        self.ethertype
    }

    /// IP version, if it is IP.
    pub fn ip_version(&self) -> Option<IpVersion> {
        self.network.map(|network| network.version)
    }

    /// What its IP header tells queues, if it is IP.
    pub fn traffic_class(&self) -> Option<TrafficClass> {
        let version = self.ip_version()?;
        let start = [self.frame[self.network_start], self.frame[self.network_start + 1]];
        Some(TrafficClass::read(version, start))
    }

    /// IP protocol number, if it is IP; of IPv6 the next header, extension or not.
    pub fn protocol(&self) -> Option<u8> {
        self.network.map(|network| network.protocol)
    }

    /// Source address; the port is 0 unless it is TCP or UDP.
    pub fn source(&self) -> Option<SocketAddr> {
        self.network.map(|network| SocketAddr::new(network.source, self.ports().0))
    }

    /// Destination address; the port is 0 unless it is TCP or UDP.
    pub fn destination(&self) -> Option<SocketAddr> {
        self.network.map(|network| SocketAddr::new(network.destination, self.ports().1))
    }

    /// What the IP packet carries.
    pub fn transport(&self) -> Transport<'a> {
        self.transport
    }

    /// The TCP segment, if it is one.
    pub fn tcp(&self) -> Option<TcpView<'a>> {
        match self.transport {
            Transport::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// The UDP datagram, if it is one.
    pub fn udp(&self) -> Option<UdpView<'a>> {
        match self.transport {
            Transport::Udp(udp) => Some(udp),
            _ => None,
        }
    }

    /// Where the IP header begins, in bytes from the start of the frame.
    pub fn network_start(&self) -> usize {
        self.network_start
    }

    /// Bytes of all headers that were understood: Ethernet, tag, IP, TCP or UDP.
    pub fn header_bytes(&self) -> usize {
        let network_end = self.network.map_or(self.network_start, |network| network.payload_start);
        network_end
            + match self.transport {
                Transport::Tcp(tcp) => tcp.header_bytes(),
                Transport::Udp(_) => UDP_BYTES,
                Transport::Other => 0,
            }
    }

    /// Where the payload lies in the frame: after [`Self::header_bytes`], without Ethernet padding.
    pub fn payload_range(&self) -> Range<usize> {
        let end = match (self.network, self.transport) {
            (_, Transport::Udp(udp)) => self.header_bytes() + udp.payload().len(),
            (Some(network), _) => network.payload_end,
            (None, _) => self.frame.len(),
        };
        self.header_bytes()..end
    }

    /// Bytes of TCP or UDP payload; of anything else, bytes after the last header understood.
    pub fn payload_bytes(&self) -> usize {
        self.payload_range().len()
    }

    fn ports(&self) -> (u16, u16) {
        match self.transport {
            Transport::Tcp(tcp) => (tcp.source_port(), tcp.destination_port()),
            Transport::Udp(udp) => (udp.source_port(), udp.destination_port()),
            Transport::Other => (0, 0),
        }
    }

    /// A hash of the one-way five-tuple, the same on every machine and in every run; without IP, of the MAC
    /// addresses and the EtherType.
    pub fn flow_hash(&self) -> u64 {
        let Some(network) = self.network else {
            let hash = fnv1a(FNV_OFFSET, &self.frame[..12]);
            return mix(fnv1a(hash, &self.ethertype.to_be_bytes()));
        };
        let hash =
            [network.source, network.destination].iter().fold(FNV_OFFSET, |hash, address| match address {
                IpAddr::V4(address) => fnv1a(hash, &address.octets()),
                IpAddr::V6(address) => fnv1a(hash, &address.octets()),
            });
        let (source, destination) = self.ports();
        let hash = fnv1a(fnv1a(hash, &source.to_be_bytes()), &destination.to_be_bytes());
        mix(fnv1a(hash, &[network.protocol]))
    }
}

fn check_version(layer: Layer, version: u8, required: u8, expected: &'static str) -> Result<(), ParseError> {
    if version != required {
        return Err(ParseError::Value { layer, field: "version", found: u32::from(version), expected });
    }
    Ok(())
}

fn read_udp(bytes: &[u8], length_source: LengthSource) -> Result<UdpView<'_>, ParseError> {
    require(Layer::Udp, UDP_BYTES, bytes.len(), length_source)?;
    let length = usize::from(u16::from_be_bytes([bytes[4], bytes[5]]));
    require(Layer::Udp, UDP_BYTES, length, LengthSource::UdpLength)?;
    require(Layer::Udp, length, bytes.len(), length_source)?;
    Ok(UdpView { datagram: &bytes[..length] })
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a (RFC 9923).
fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

/// MurmurHash3's finaliser: FNV alone leaves the low bits, by which ECMP chooses, too much alike.
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}
