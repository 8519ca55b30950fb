//! What a VXLAN packet carries (RFC 7348).

use crate::{Packet, Transport, parse};

/// The port that IANA has assigned.
pub(crate) const PORT: u16 = 4789;
const HEADER_BYTES: usize = 8;
/// The flag that says that there is a network identifier.
pub(crate) const VALID: u8 = 0x08;

impl<'a> Packet<'a> {
    /// The packet inside, if this is VXLAN and that can be parsed.
    pub fn inside_vxlan(&self) -> Option<Packet<'a>> {
        let Transport::Udp(outside) = self.transport() else { return None };
        let payload = outside.payload();
        if outside.destination_port() != PORT || payload.first()? & VALID == 0 {
            return None;
        }
        parse(payload.get(HEADER_BYTES..)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use crate::build::{Addresses, TcpFields, tcp_frame, udp_frame};
    use crate::{Segmentation, VirtioNetHeader, parse};

    fn addresses(port: u16) -> Addresses {
        Addresses {
            source_mac: [2, 0, 0, 0, 0, 1],
            destination_mac: [2, 0, 0, 0, 0, 2],
            source: ([10, 0, 0, 1], 50_000).into(),
            destination: ([10, 0, 0, 2], port).into(),
        }
    }

    fn outside(port: u16, flags: u8, inside: &[u8]) -> Vec<u8> {
        udp_frame(&addresses(port), &[&[flags, 0, 0, 0, 0, 0, 77, 0], inside].concat())
    }

    #[test]
    fn the_payload_inside_is_told() {
        let inside = tcp_frame(&addresses(80), &TcpFields::default(), &[7; 100]);
        let frame = outside(4789, 0x08, &inside);
        let tunnel = parse(&frame).unwrap().inside_vxlan().unwrap();
        assert_eq!((tunnel.frame(), tunnel.payload_bytes()), (inside.as_slice(), 100));
        // To the switch it is one frame of UDP; its TCP payload is counted all the same.
        let plan = Segmentation::plan(&VirtioNetHeader::default(), &frame).unwrap();
        assert_eq!((plan.tcp_payload_bytes(0), plan.captured_bytes(0)), (100, frame.len() as u32));
    }

    #[test]
    fn what_is_no_vxlan_has_nothing_inside() {
        let inside = tcp_frame(&addresses(80), &TcpFields::default(), &[7; 100]);
        for frame in [outside(4788, 0x08, &inside), outside(4789, 0, &inside), outside(4789, 0x08, &[1; 13])]
        {
            assert!(parse(&frame).unwrap().inside_vxlan().is_none());
        }
        assert!(parse(&udp_frame(&addresses(4789), &[])).unwrap().inside_vxlan().is_none());
        assert!(parse(&inside).unwrap().inside_vxlan().is_none());
    }
}
