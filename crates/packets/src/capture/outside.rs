//! The outermost IP packet of a frame: what a link sees of it, whatever it wraps.

use super::Record;
use super::walk::{Walk, Why, word};
use crate::view::PROTOCOL_UDP;

/// What a link sees of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// A whole packet, or the first fragment of one.
    Packet {
        /// Its IP version is 6.
        is_v6: bool,
        /// What it carries, behind extension headers.
        protocol: u8,
        /// Of UDP: the ports, and the first four bytes of what it carries, where they are there.
        datagram: Option<(u16, u16, Option<[u8; 4]>)>,
    },
    /// A later fragment: what it is a part of only the first one says.
    Fragment,
}

/// The outermost IP packet; `None` where there is none, or where its header is damaged.
pub fn outside(record: &Record<'_>) -> Option<Outside> {
    let end = record.captured.len().max(record.original_bytes as usize);
    let mut walk = Walk { bytes: record.captured, at: 0, end, datagram: None, fragment: None };
    let ip = match walk.link(record.link).and_then(|inside| walk.network(inside)) {
        Ok(ip) => ip,
        Err(Why::Fragment) => return Some(Outside::Fragment),
        Err(_) => return None,
    };
    let datagram = (ip.protocol == PROTOCOL_UDP).then(|| walk.take::<8>().ok()).flatten();
    let datagram = datagram.map(|header| (word(header, 0), word(header, 2), walk.peek::<4>().ok().copied()));
    Some(Outside::Packet { is_v6: ip.source.is_ipv6(), protocol: ip.protocol, datagram })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::LinkType;

    fn seen(captured: &[u8]) -> Option<Outside> {
        let original_bytes = captured.len() as u32;
        outside(&Record {
            number: 1,
            nanoseconds: 0,
            link: LinkType::Ip,
            interface: 0,
            captured,
            original_bytes,
        })
    }

    fn ipv4(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 20 + payload.len() as u8, 0, 1];
        bytes.extend(fragment.to_be_bytes());
        bytes.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn what_a_link_sees() {
        // RFC 768: ports 51820 and 40000, a length of 12; then a data message of WireGuard.
        let datagram = [0xca, 0x6c, 0x9c, 0x40, 0, 12, 0, 0, 4, 0, 0, 0];
        let udp = Some((51_820, 40_000, Some([4, 0, 0, 0])));
        let packet = |datagram| Some(Outside::Packet { is_v6: false, protocol: 17, datagram });
        assert_eq!(seen(&ipv4(17, 0, &datagram)), packet(udp));
        assert_eq!(seen(&ipv4(17, 0, &datagram[..8])), packet(Some((51_820, 40_000, None))));
        assert_eq!(seen(&ipv4(17, 0, &datagram[..5])), packet(None));
        let esp = Outside::Packet { is_v6: false, protocol: 50, datagram: None };
        assert_eq!(seen(&ipv4(50, 0, &[1; 16])), Some(esp));
        assert_eq!(seen(&ipv4(17, 0x2000, &datagram)), packet(udp), "the first fragment");
        assert_eq!(seen(&ipv4(17, 185, &datagram)), Some(Outside::Fragment));
        assert_eq!(seen(&[0x45, 0]), None);
    }
}
