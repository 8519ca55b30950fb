//! Which packets tell of errors.

use crate::{IpVersion, Packet};

pub(crate) const ICMP: u8 = 1;
pub(crate) const ICMPV6: u8 = 58;
/// Destination unreachable (fragmentation needed among them), source quench, redirect, time exceeded, parameter problem
/// (RFC 1122, section 3.2.2).
pub(crate) const ICMP_ERRORS: [u8; 5] = [3, 4, 5, 11, 12];
/// ICMPv6 messages from here on are information (RFC 4443, section 2.1).
pub(crate) const FIRST_INFORMATION: u8 = 128;

impl Packet<'_> {
    /// Whether it is an ICMP or ICMPv6 error message, the packet's first fragment; behind IPv6 extension headers it is
    /// not found.
    pub fn is_icmp_error(&self) -> bool {
        let Some(kind) = self.frame().get(self.payload_range()).and_then(|message| message.first()) else {
            return false;
        };
        match (self.ip_version(), self.protocol()) {
            (Some(IpVersion::V4), Some(ICMP)) => ICMP_ERRORS.contains(kind),
            (Some(IpVersion::V6), Some(ICMPV6)) => *kind < FIRST_INFORMATION,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;

    /// A message of this type in an IPv4 or IPv6 packet of this protocol, with eight bytes of ICMP.
    fn message(version: u8, protocol: u8, kind: u8) -> Vec<u8> {
        let mut frame = vec![0; 12];
        let icmp = [kind, 0, 0, 0, 0, 0, 0, 0];
        if version == 4 {
            frame.extend([0x08, 0x00, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0]);
            frame.extend([10, 77, 0, 3, 10, 77, 0, 1]);
        } else {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, protocol, 64]);
            frame.extend([0; 32]);
        }
        frame.extend(icmp);
        frame
    }

    #[test]
    fn errors_are_told_from_everything_else() {
        let is_error =
            |version, protocol, kind| parse(&message(version, protocol, kind)).unwrap().is_icmp_error();
        for kind in [3, 4, 5, 11, 12] {
            assert!(is_error(4, 1, kind), "{kind}");
            assert!(!is_error(4, 132, kind) && !is_error(4, 58, kind), "{kind}");
        }
        // Echo and its answer, timestamp.
        for kind in [0, 8, 13] {
            assert!(!is_error(4, 1, kind), "{kind}");
        }
        // Packet too big; echo request.
        assert!(is_error(6, 58, 2) && !is_error(6, 58, 128) && !is_error(6, 1, 2));
        let mut cut = message(4, 1, 3);
        cut.truncate(34);
        cut[17] = 20;
        assert!(!parse(&cut).unwrap().is_icmp_error());
    }
}
