//! Messages of other hosts: what is accepted is written back as it came.

use framegauge_frames::Family;
use framegauge_pathmtu::{Acknowledgement, Carrier, Datagram, Echo, Probe};
use framegauge_traffic::{DatagramHead, Hello, RrHello};

/// The opening message of a stream, then the token.
pub fn hello(bytes: &[u8]) {
    let Some((bytes, rest)) = bytes.split_first_chunk::<{ Hello::BYTES }>() else { return };
    let Some(token) = rest.first_chunk() else { return };
    if let Ok(hello) = Hello::decode(bytes, token) {
        assert_eq!(hello.encode(), *bytes);
    }
}

/// The opening message of request/response, then the token.
pub fn rr_hello(bytes: &[u8]) {
    let Some((bytes, rest)) = bytes.split_first_chunk::<{ RrHello::BYTES }>() else { return };
    let Some(token) = rest.first_chunk() else { return };
    if let Ok(hello) = RrHello::decode(bytes, token) {
        assert_eq!(hello.encode(), *bytes);
    }
}

/// The token, then a datagram of a workload.
pub fn datagram_head(bytes: &[u8]) {
    let Some((token, bytes)) = bytes.split_first_chunk() else { return };
    if let Some(head) = DatagramHead::decode(bytes, token) {
        assert_eq!(head.encode(token), bytes[..DatagramHead::BYTES]);
    }
}

/// The token, then a probe or an acknowledgement of the path MTU check.
pub fn check_message(bytes: &[u8]) {
    let Some((token, bytes)) = bytes.split_first_chunk() else { return };
    if let Ok(probe) = Probe::read(token, bytes) {
        let mut written = vec![0; 36];
        probe.write(token, &mut written);
        assert_eq!(written[..32], bytes[..32]);
    }
    if let Ok(answer) = Acknowledgement::read(token, bytes) {
        assert_eq!(answer.to_bytes(token)[..], bytes[..36]);
    }
}

/// The token, the identifier, family and kind, bytes that were cut off, then an ICMP echo of the path MTU check, read as
/// an answer and as quoted: what is accepted is what would have been sent.
pub fn check_echo(bytes: &[u8]) {
    let Some((token, bytes)) = bytes.split_first_chunk() else { return };
    let Some((&[high, low, flags, more], bytes)) = bytes.split_first_chunk() else { return };
    let family = if flags & 1 == 1 { Family::V6 } else { Family::V4 };
    let echo = Echo { family, identifier: u16::from_be_bytes([high, low]), headed: flags & 2 == 2 };
    let carrier = Carrier::Echo(echo);
    let datagram = Datagram { kept: bytes, bytes: bytes.len() + usize::from(more), fragment_bytes: 0 };
    if let Ok(answer) = carrier.answer(token, datagram) {
        assert!(answer.cut_bytes.is_none_or(|cut| cut < answer.ip_bytes));
    }
    if let Ok(Probe { id, .. }) = carrier.quoted(token, bytes) {
        let mut payload = vec![0; 200];
        let sent = carrier.write(&Probe { id, ip_bytes: 100 }, token, family, &mut payload);
        // All but the checksum and the size.
        assert_eq!((&sent[..2], &sent[4..36]), (&bytes[..2], &bytes[4..36]));
    }
}
