//! From a packet to its TCP segment.

use std::net::{Ipv4Addr, SocketAddr};

use super::icmp::{IcmpNote, note};
use super::segment::LATEST_NANOSECONDS;
use super::walk::{Fragment, Ip, Walk, Why, long, word};
use super::{Fragments, LinkType, Record, SACK_BLOCKS, SackBlocks, Segment};
use crate::tcp::{Options, TCP_MINIMUM_BYTES};
use crate::view::{PROTOCOL_TCP, PROTOCOL_UDP};
use crate::{SynOptions, TcpFlags, checksum};

/// Ethernet, IPv4 and the ports.
const PLAIN_BYTES: usize = 14 + 20 + 4;
const DO_NOT_FRAGMENT: u16 = 0x4000;

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// A TCP segment.
    Tcp(Segment),
    /// An ICMP or ICMPv6 error message.
    Icmp(IcmpNote),
    /// Neither.
    Other(Why),
}

/// Whether checksums are computed, which takes a look at every byte that was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Checksums {
    /// They are left alone: [`Segment::checksum_is_right`] is `None`.
    Ignore,
    /// They are computed where the whole segment was captured. A NIC fills them in, so a capture on the sending host
    /// has wrong ones that prove nothing.
    Verify,
}

/// Finds the TCP segment or the ICMP error in a packet: behind VLAN tags, IPv6 extension headers and up to four tunnels
/// (VXLAN, Geneve, GRE, IP in IP), of which the innermost packet counts.
///
/// Lengths are those on the wire, by the IP header, whatever was captured; where that has none (BIG TCP and aggregates),
/// by the packet's original length. Of a fragmented packet the first fragment is a segment, with its own bytes: the others
/// are put to it by [`Reassembly`](super::Reassembly).
#[inline]
pub fn decode(record: &Record<'_>, checksums: Checksums) -> Decoded {
    let end = record.captured.len().max(record.original_bytes as usize);
    let mut walk = Walk { bytes: record.captured, at: 0, end, datagram: None, fragment: None };
    let ip = match walk.link(record.link).and_then(|inside| walk.innermost(inside)) {
        Ok(ip) => ip,
        Err(why) => return Decoded::Other(why),
    };
    if ip.protocol == PROTOCOL_TCP {
        return segment(&walk, &ip, record, checksums);
    }
    note(&mut walk, &ip, record).map_or_else(Decoded::Other, Decoded::Icmp)
}

/// Source and destination of the segment that [`decode`] finds in a packet, or of what the error quotes, without a look at
/// the rest; `None` where it finds neither. It may find ends where the rest of a header is damaged.
#[inline]
pub fn ends(record: &Record<'_>) -> Option<(SocketAddr, SocketAddr)> {
    outline(record).ends
}

/// What a packet shows without a look at more than its headers' places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outline {
    /// As [`ends`] finds them.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// The packet is a fragment: of a segment the first one, or any other one of whatever it may be.
    pub fragment: Option<Fragment>,
}

/// The outline of a packet.
#[inline]
pub fn outline(record: &Record<'_>) -> Outline {
    match plain_ends(record) {
        Some(ends) => Outline { ends: Some(ends), fragment: None },
        None => walked_outline(record),
    }
}

/// Those of most packets, from their places: TCP behind IPv4 without options, on Ethernet without tags, and no fragment.
#[inline]
fn plain_ends(record: &Record<'_>) -> Option<(SocketAddr, SocketAddr)> {
    let head = record.captured.first_chunk::<PLAIN_BYTES>().filter(|_| record.link == LinkType::Ethernet)?;
    let is_whole = word(head, 20) & !DO_NOT_FRAGMENT == 0;
    if head[12..15] != [8, 0, 0x45] || head[23] != PROTOCOL_TCP || !is_whole {
        return None;
    }
    let end = |address: usize, port: usize| {
        SocketAddr::from((Ipv4Addr::from_bits(long(head, address)), word(head, port)))
    };
    Some((end(26, 34), end(30, 36)))
}

#[inline(never)]
fn walked_outline(record: &Record<'_>) -> Outline {
    let end = record.captured.len().max(record.original_bytes as usize);
    let mut walk = Walk { bytes: record.captured, at: 0, end, datagram: None, fragment: None };
    let ip = match walk.link(record.link).and_then(|inside| walk.innermost(inside)) {
        Ok(ip) => ip,
        Err(Why::Fragment) => return Outline { ends: None, fragment: walk.fragment },
        Err(_) => return Outline::default(),
    };
    if ip.protocol == PROTOCOL_TCP {
        let Ok(ports) = walk.peek::<4>() else { return Outline::default() };
        let (source, destination) = (word(ports, 0), word(ports, 2));
        let ends = (SocketAddr::new(ip.source, source), SocketAddr::new(ip.destination, destination));
        return Outline { ends: Some(ends), fragment: walk.fragment.filter(|_| ip.is_fragment) };
    }
    let quoted = note(&mut walk, &ip, record).ok().and_then(|note| note.quoted);
    Outline { ends: quoted.map(|quoted| (quoted.source, quoted.destination)), fragment: None }
}

/// The segment behind this IP header, where the walk stands. It is written once, at its place: copies of it would take
/// as long as all the rest.
#[inline]
fn segment(walk: &Walk<'_>, ip: &Ip, record: &Record<'_>, checksums: Checksums) -> Decoded {
    let header = match walk.peek::<TCP_MINIMUM_BYTES>() {
        Ok(header) => header,
        Err(why) => return Decoded::Other(why),
    };
    let header_bytes = usize::from(header[12] >> 4) * 4;
    let payload = walk.at + header_bytes;
    if header_bytes < TCP_MINIMUM_BYTES || payload > walk.end {
        return Decoded::Other(Why::Malformed);
    }
    let options_end = payload.min(walk.bytes.len());
    let flags = TcpFlags(header[13]);
    let options = Said::read(flags, &walk.bytes[walk.at + TCP_MINIMUM_BYTES..options_end]);
    let checksum_is_right = match checksums {
        Checksums::Verify if !ip.is_fragment && !ip.is_rerouted => is_right(walk, ip),
        _ => None,
    };
    Decoded::Tcp(Segment {
        nanoseconds: record.nanoseconds.clamp(0, LATEST_NANOSECONDS),
        number: record.number,
        source: SocketAddr::new(ip.source, word(header, 0)),
        destination: SocketAddr::new(ip.destination, word(header, 2)),
        seq: long(header, 4),
        ack: long(header, 8),
        flags,
        window: word(header, 14),
        payload_bytes: bytes(walk.end - payload),
        ip_bytes: bytes(walk.end - ip.start),
        timestamps: options.timestamps,
        sack: options.sack,
        syn: options.syn,
        multipath: options.multipath,
        fast_open: options.fast_open,
        identification: ip.identification,
        hops: ip.hops,
        ecn: ip.ecn,
        checksum_is_right,
        option_bytes: (header_bytes - TCP_MINIMUM_BYTES) as u8,
        options_are_cut: options_end < payload,
        fragments: ip.is_fragment.then(|| Fragments {
            first_bytes: u16::try_from(walk.end - ip.start).unwrap_or(u16::MAX),
            are_whole: false,
        }),
    })
}

/// Whether the checksum of the segment is right, and that of the tunnel's datagram around it, without which nobody looks
/// inside; `None` where they were cut.
fn is_right(walk: &Walk<'_>, ip: &Ip) -> Option<bool> {
    let segment = walk.bytes.get(walk.at..walk.end)?;
    let is_right = checksum::transport_checksum(ip.source, ip.destination, PROTOCOL_TCP, segment) == 0;
    let Some(around) = walk.datagram else { return Some(is_right) };
    let datagram = walk.bytes.get(around.start..around.end)?;
    // A datagram over IPv4 and, in a tunnel, over IPv6 may have none (RFC 768, RFC 6935).
    let has_none = datagram.get(6..8)? == [0, 0];
    let sum = || checksum::transport_checksum(around.source, around.destination, PROTOCOL_UDP, datagram);
    Some(is_right && (has_none || sum() == 0))
}

/// A length that the original length of the packet bounds, or one of 32 bits.
fn bytes(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// What the options say, as far as they are there.
#[derive(Default)]
struct Said {
    timestamps: Option<(u32, u32)>,
    sack: SackBlocks,
    syn: Option<SynOptions>,
    multipath: bool,
    fast_open: bool,
}

impl Said {
    #[inline]
    fn read(flags: TcpFlags, options: &[u8]) -> Said {
        let syn = flags.contains(TcpFlags::SYN).then(SynOptions::default);
        let mut fields = Said { syn, ..Said::default() };
        match options {
            [] => {}
            // What nearly every segment of an established connection has, and nothing else (RFC 7323 appendix A).
            [1, 1, 8, 10, values @ ..] if values.len() == 8 && fields.syn.is_none() => {
                fields.timestamps = Some((long(values, 0), long(values, 4)));
            }
            _ => fields.read_all(options),
        }
        fields
    }

    fn read_all(&mut self, options: &[u8]) {
        for (kind, value) in Options::new(options) {
            if let Some(syn) = &mut self.syn {
                syn.read(kind, value);
            }
            match kind {
                5 => self.read_sack(value),
                8 if value.len() == 8 => self.timestamps = Some((long(value, 0), long(value, 4))),
                30 => self.multipath = true,
                34 => self.fast_open = true,
                // Experimental options share two kinds and tell themselves apart by two bytes (RFC 6994).
                253 | 254 if value.starts_with(&[0xf9, 0x89]) => self.fast_open = true,
                _ => {}
            }
        }
    }

    fn read_sack(&mut self, value: &[u8]) {
        let (blocks, rest) = value.as_chunks::<8>();
        if blocks.is_empty() || blocks.len() > SACK_BLOCKS || !rest.is_empty() {
            return;
        }
        for (to, block) in self.sack.blocks.iter_mut().zip(blocks) {
            *to = (long(block, 0), long(block, 4));
        }
        self.sack.count = blocks.len() as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Wherever the ends of a packet are looked for, they are the same.
        #[test]
        fn plain_packets_have_the_ends_that_a_walk_finds(
            mut bytes in proptest::collection::vec(any::<u8>(), 34..90),
            fragment in prop_oneof![Just(0u16), Just(0x4000), Just(0x2000), any::<u16>()],
            version in prop_oneof![5 => Just(0x45u8), 1 => any::<u8>()],
            total in any::<bool>(),
        ) {
            bytes[12..15].copy_from_slice(&[8, 0, version]);
            bytes[20..22].copy_from_slice(&fragment.to_be_bytes());
            bytes[23] = PROTOCOL_TCP;
            if total {
                let length = (bytes.len() - 14) as u16;
                bytes[16..18].copy_from_slice(&length.to_be_bytes());
            }
            let original_bytes = bytes.len() as u32;
            let (link, captured) = (LinkType::Ethernet, &bytes[..]);
            let record = Record { number: 1, nanoseconds: 0, link, interface: 0, captured, original_bytes };
            if let (Some(plain), Some(walked)) = (plain_ends(&record), walked_outline(&record).ends) {
                prop_assert_eq!(plain, walked);
            }
            if let Decoded::Tcp(segment) = decode(&record, Checksums::Ignore) {
                prop_assert_eq!(ends(&record), Some((segment.source, segment.destination)));
            }
        }
    }
}
