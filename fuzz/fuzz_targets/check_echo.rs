//! ICMP echoes of the path MTU check, as answers and as quoted: what is accepted is what would have been sent.
#![no_main]

use framegauge_frames::Family;
use framegauge_pathmtu::{Carrier, Datagram, Echo, Probe, Token};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<u8>, Token, u16, bool, bool, u16)| {
    let (bytes, token, identifier, v6, headed, more) = input;
    let family = if v6 { Family::V6 } else { Family::V4 };
    let carrier = Carrier::Echo(Echo { family, identifier, headed });
    let datagram = Datagram { kept: &bytes, bytes: bytes.len() + usize::from(more), fragment_bytes: 0 };
    if let Ok(answer) = carrier.answer(&token, datagram) {
        assert!(answer.cut_bytes.is_none_or(|cut| cut < answer.ip_bytes));
    }
    if let Ok(Probe { id, .. }) = carrier.quoted(&token, &bytes) {
        let mut payload = vec![0; 200];
        let sent = carrier.write(&Probe { id, ip_bytes: 100 }, &token, family, &mut payload);
        // All but the checksum and the size.
        assert_eq!((&sent[..2], &sent[4..36]), (&bytes[..2], &bytes[4..36]));
    }
});
