//! What an IP header tells the queues on its way: the differentiated services codepoint (RFC 2474) and explicit
//! congestion notification (RFC 3168).

use crate::{IpVersion, checksum};

/// The two bits in which the ends of a flow and the queues between them speak of congestion (RFC 3168 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EcnCodepoint {
    /// 00: the ends do not understand marks.
    #[default]
    NotEct,
    /// 01: the ends do; today of flows that ask for low latency (RFC 9331).
    Ect1,
    /// 10: the ends do.
    Ect0,
    /// 11: congestion was met.
    Ce,
}

/// The type of service of IPv4 and the traffic class of IPv6: the codepoint of differentiated services in the upper
/// six bits, that of congestion in the lower two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TrafficClass(pub u8);

impl TrafficClass {
    /// The differentiated services codepoint, 0 to 63.
    pub const fn dscp(self) -> u8 {
        self.0 >> 2
    }

    /// What it says of congestion.
    pub const fn ecn(self) -> EcnCodepoint {
        match self.0 & 3 {
            0 => EcnCodepoint::NotEct,
            1 => EcnCodepoint::Ect1,
            2 => EcnCodepoint::Ect0,
            _ => EcnCodepoint::Ce,
        }
    }

    /// That of an IP header whose first bytes are these.
    pub(crate) const fn read(version: IpVersion, start: [u8; 2]) -> TrafficClass {
        match version {
            IpVersion::V4 => TrafficClass(start[1]),
            IpVersion::V6 => TrafficClass(start[0] << 4 | start[1] >> 4),
        }
    }
}

/// Makes ECT of an IP header CE, as a queue that marks does; leaves alone what is not ECT, and what is shorter than
/// the header of its version. The IPv4 checksum is updated for the one bit that changes: a wrong one stays as wrong
/// as it was (RFC 1624).
pub(crate) fn mark(version: IpVersion, ip: &mut [u8]) {
    match (version, ip) {
        (IpVersion::V4, [version_and_length, class, rest @ ..]) if rest.len() >= 18 && *class & 3 != 0 => {
            let old = u16::from_be_bytes([*version_and_length, *class]);
            *class |= 3;
            let new = u16::from_be_bytes([*version_and_length, *class]);
            let sum = checksum::replace(u16::from_be_bytes([rest[8], rest[9]]), old, new);
            rest[8..10].copy_from_slice(&sum.to_be_bytes());
        }
        (IpVersion::V6, [_, class, rest @ ..]) if rest.len() >= 38 && *class & 0x30 != 0 => *class |= 0x30,
        _ => {}
    }
}
