//! Builders of whole frames, for tests and probes.

use std::net::{IpAddr, SocketAddr};

use crate::icmp::{ICMP, ICMPV6};
use crate::view::{PROTOCOL_TCP, PROTOCOL_UDP};
use crate::{TcpFlags, checksum};

/// Before the packet in a frame.
const ETHERNET_BYTES: usize = 14;

/// The addresses below the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// Source MAC address.
    pub source_mac: [u8; 6],
    /// Destination MAC address.
    pub destination_mac: [u8; 6],
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port; of the same IP version as the source.
    pub destination: SocketAddr,
}

/// The fields of a TCP header that matter to tests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TcpFields {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flag bits.
    pub flags: TcpFlags,
    /// Options as they are on the wire; padded with 0 to a multiple of 4, cut at 40 bytes.
    pub options: Vec<u8>,
    /// IPv4 identification.
    pub identification: u16,
    /// The window; none: 65,535.
    pub window: Option<u16>,
    /// What the IP header says of congestion, in the low two bits (RFC 3168).
    pub ecn: u8,
}

/// A TCP frame with correct checksums and without FCS or padding.
///
/// An IPv4 packet of more than 65,535 bytes has a total length that is cut to 16 bits.
pub fn tcp_frame(addresses: &Addresses, fields: &TcpFields, payload: &[u8]) -> Vec<u8> {
    let mut options = fields.options.clone();
    options.truncate(40);
    options.resize(options.len().next_multiple_of(4), 0);
    let header_bytes = 20 + options.len();

    let mut segment = Vec::with_capacity(header_bytes + payload.len());
    segment.extend(addresses.source.port().to_be_bytes());
    segment.extend(addresses.destination.port().to_be_bytes());
    segment.extend(fields.seq.to_be_bytes());
    segment.extend(fields.ack.to_be_bytes());
    segment.extend([(header_bytes as u8 / 4) << 4, fields.flags.0]);
    segment.extend(fields.window.unwrap_or(u16::MAX).to_be_bytes());
    segment.extend([0, 0, 0, 0]);
    segment.extend(options);
    segment.extend(payload);
    finish(addresses, (fields.identification, fields.ecn), PROTOCOL_TCP, 16, segment)
}

/// A UDP frame with correct checksums and without FCS or padding.
pub fn udp_frame(addresses: &Addresses, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::with_capacity(8 + payload.len());
    datagram.extend(addresses.source.port().to_be_bytes());
    datagram.extend(addresses.destination.port().to_be_bytes());
    datagram.extend(((8 + payload.len()) as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    finish(addresses, (0, 0), PROTOCOL_UDP, 6, datagram)
}

/// A router's ICMP error that a packet is larger than the MTU of the next link (RFC 792, RFC 1191; RFC 4443), without FCS or
/// padding: it quotes the packet of that frame, so that the message has so many bytes.
pub fn too_big_frame(addresses: &Addresses, mtu: u32, about: &[u8], message_bytes: usize) -> Vec<u8> {
    let quoted = &about[ETHERNET_BYTES.min(about.len())..];
    let quoted = &quoted[..quoted.len().min(message_bytes.saturating_sub(8))];
    let is_v4 = addresses.source.is_ipv4();
    let mut message = if is_v4 { vec![3, 4, 0, 0, 0, 0] } else { vec![2, 0, 0, 0] };
    match is_v4 {
        true => message.extend((mtu as u16).to_be_bytes()),
        false => message.extend(mtu.to_be_bytes()),
    }
    message.extend(quoted);
    if is_v4 {
        // ICMP has no pseudo header; ICMPv6 has (RFC 4443 section 2.3).
        let sum = checksum::internet_checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        return headed(addresses, (0, 0), ICMP, message);
    }
    finish(addresses, (0, 0), ICMPV6, 2, message)
}

/// The options of a Linux SYN: MSS, SACK permitted, timestamps, window scale (RFC 9293, 2018, 7323).
pub fn syn_options(mss: u16, window_scale: u8) -> Vec<u8> {
    let mut options = vec![2, 4];
    options.extend(mss.to_be_bytes());
    options.extend([4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0]);
    options.extend([1, 3, 3, window_scale]);
    options
}

/// The timestamps option of an established connection with its padding: 12 bytes (RFC 7323 appendix A).
pub fn timestamp_options(value: u32, echo: u32) -> Vec<u8> {
    let mut options = vec![1, 1, 8, 10];
    options.extend(value.to_be_bytes());
    options.extend(echo.to_be_bytes());
    options
}

/// Fills in the transport checksum and puts IP and Ethernet headers in front.
fn finish(
    addresses: &Addresses,
    (identification, ecn): (u16, u8),
    protocol: u8,
    checksum_at: usize,
    mut segment: Vec<u8>,
) -> Vec<u8> {
    let (source, destination) = (addresses.source.ip(), addresses.destination.ip());
    let sum = checksum::transport_checksum(source, destination, protocol, &segment);
    // Zero would say that a UDP datagram has no checksum (RFC 768).
    let sum = if sum == 0 && protocol == PROTOCOL_UDP { 0xffff } else { sum };
    segment[checksum_at..checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
    headed(addresses, (identification, ecn), protocol, segment)
}

/// Puts IP and Ethernet headers in front.
fn headed(
    addresses: &Addresses,
    (identification, ecn): (u16, u8),
    protocol: u8,
    segment: Vec<u8>,
) -> Vec<u8> {
    let (source, destination) = (addresses.source.ip(), addresses.destination.ip());
    let mut frame = Vec::with_capacity(54 + segment.len());
    frame.extend(addresses.destination_mac);
    frame.extend(addresses.source_mac);
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            frame.extend([0x08, 0x00]);
            let mut header = vec![0x45, ecn];
            header.extend(((20 + segment.len()) as u16).to_be_bytes());
            header.extend(identification.to_be_bytes());
            header.extend([0x40, 0, 64, protocol, 0, 0]);
            header.extend(source.octets());
            header.extend(destination.octets());
            let sum = checksum::internet_checksum(&header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            frame.extend(header);
        }
        (source, destination) => {
            frame.extend([0x86, 0xdd, 0x60, ecn << 4, 0, 0]);
            frame.extend((segment.len() as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend(as_v6(source));
            frame.extend(as_v6(destination));
        }
    }
    frame.extend(segment);
    frame
}

fn as_v6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}
