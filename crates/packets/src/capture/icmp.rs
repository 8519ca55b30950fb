//! What routers and hosts say of packets that they could not deliver: ICMP (RFC 792, RFC 1191) and ICMPv6 (RFC 4443).

use std::net::{IpAddr, SocketAddr};

use super::Record;
use super::segment::LATEST_NANOSECONDS;
use super::walk::{Inside, Ip, Walk, Why, long, word};
use crate::icmp::{FIRST_INFORMATION, ICMP, ICMP_ERRORS, ICMPV6};
use crate::view::PROTOCOL_TCP;

const UNREACHABLE: u8 = 3;
const FRAGMENTATION_NEEDED: u8 = 4;
const PACKET_TOO_BIG: u8 = 2;

/// An ICMP or ICMPv6 error message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpNote {
    /// When, in nanoseconds since 1970 by the clock of the capture.
    pub nanoseconds: i64,
    /// The packet's number in its capture, from 1.
    pub number: u64,
    /// Who says it.
    pub source: IpAddr,
    /// To whom: who has sent the packet that it is about.
    pub destination: IpAddr,
    /// The type of ICMP or ICMPv6, by the version of the addresses.
    pub kind: u8,
    /// The code, which says more.
    pub code: u8,
    /// Of "fragmentation needed" and "packet too big": the largest packet that would have fitted, in bytes. `None`
    /// where a router does not say it, and for all other messages.
    pub mtu: Option<u32>,
    /// The TCP segment that it is about, if it is about one, at any depth of tunnels.
    pub quoted: Option<Quoted>,
}

/// The beginning of a TCP segment, as an ICMP message repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoted {
    /// Who has sent the segment.
    pub source: SocketAddr,
    /// Where it should have gone to.
    pub destination: SocketAddr,
    /// Its sequence number.
    pub seq: u32,
    /// Bytes of its IP packet, by its header.
    pub ip_bytes: u32,
}

impl IcmpNote {
    /// Whether it says that a packet was larger than the next link's MTU.
    pub fn is_too_big(&self) -> bool {
        match self.source {
            IpAddr::V4(_) => (self.kind, self.code) == (UNREACHABLE, FRAGMENTATION_NEEDED),
            IpAddr::V6(_) => self.kind == PACKET_TOO_BIG,
        }
    }
}

/// The message behind this IP header, where the walk stands.
pub(super) fn note(walk: &mut Walk<'_>, ip: &Ip, record: &Record<'_>) -> Result<IcmpNote, Why> {
    let other = Why::NotTcp { protocol: ip.protocol };
    let header = match (ip.source, ip.protocol) {
        (IpAddr::V4(_), ICMP) | (IpAddr::V6(_), ICMPV6) => walk.take::<8>()?,
        _ => return Err(other),
    };
    let (kind, code) = (header[0], header[1]);
    let is_error = if ip.source.is_ipv4() { ICMP_ERRORS.contains(&kind) } else { kind < FIRST_INFORMATION };
    if !is_error {
        return Err(other);
    }
    let mut note = IcmpNote {
        nanoseconds: record.nanoseconds.clamp(0, LATEST_NANOSECONDS),
        number: record.number,
        source: ip.source,
        destination: ip.destination,
        kind,
        code,
        mtu: None,
        quoted: quoted(walk),
    };
    if note.is_too_big() {
        let mtu = if ip.source.is_ipv4() { u32::from(word(header, 6)) } else { long(header, 4) };
        // Routers older than RFC 1191 say 0.
        note.mtu = Some(mtu).filter(|mtu| *mtu != 0);
    }
    Ok(note)
}

/// The eight bytes of TCP behind the IP header that is quoted, of which more need not be there.
fn quoted(walk: &mut Walk<'_>) -> Option<Quoted> {
    // What is behind the message is none of the packet that it quotes, whose own length reaches further.
    walk.bytes = &walk.bytes[..walk.end.min(walk.bytes.len())];
    let ip = walk.innermost(Inside::Ip).ok().filter(|ip| ip.protocol == PROTOCOL_TCP)?;
    let header = walk.peek::<8>().ok()?;
    Some(Quoted {
        source: SocketAddr::new(ip.source, word(header, 0)),
        destination: SocketAddr::new(ip.destination, word(header, 2)),
        seq: long(header, 4),
        ip_bytes: u32::try_from(walk.end - ip.start).unwrap_or(u32::MAX),
    })
}
